"""Compilation targets: architectures and system descriptions."""
