"""Slicing, gather, scatter and embedding.

- `dynamic_slicing`: Reverse, slices with dynamic begins, and dimension sizes
- `embedding`: Embedding lookup and its gradient
- `gather_scatter`: Gather and scatter along a dimension
- `general_gather_scatter`: StableHLO's gather and scatter of slices
- `slicing`: Slices with static bounds
"""
