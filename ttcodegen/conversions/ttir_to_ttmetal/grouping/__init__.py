"""Grouping of ops into device programs, and the analyses that it asks."""
