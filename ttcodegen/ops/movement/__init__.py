"""Reshape, permute, concat, padding, layouts and creation.

- `creation`: Constants, fills, ranges and random tensors
- `data_movement`: Reshape, permute, repeat and concat
- `layout`: Data type, page layout, memory and serialization of tensors
- `rearrangement`: Einops-style rearrange, bitcasts and padding
"""
