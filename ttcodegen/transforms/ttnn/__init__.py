"""Passes on TTNN: layouts, compute configurations, deallocation."""
