"""Comparison of programs on the vendor's simulator with the interpreter."""
