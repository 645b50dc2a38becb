"""A call as the optimizer sees it: operands, footprint, candidate."""
