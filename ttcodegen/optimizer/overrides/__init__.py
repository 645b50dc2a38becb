"""Overrides: decisions of the optimizer, read from files and written to them."""
