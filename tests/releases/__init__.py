"""Releases of tt-metal."""
