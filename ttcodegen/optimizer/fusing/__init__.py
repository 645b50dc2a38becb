"""Rewrites of TTNN calls into fused ones."""
