"""Lowering of TTIR to TTNN."""
