"""Attributes of `ttnn`: placements and program configurations."""
