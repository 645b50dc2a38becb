"""Overrides: decisions given from outside and written out."""
