"""Slicing, gather, scatter and embedding."""
