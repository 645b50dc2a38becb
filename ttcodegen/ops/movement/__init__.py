"""Reshape, permute, concat, padding, layouts and creation."""
