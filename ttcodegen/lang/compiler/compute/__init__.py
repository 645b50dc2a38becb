"""Compute kernels of TT-Lang: block expressions as loops over tiles.

- `accumulation`: Sums of products over the iterations of a loop
- `accumulation_translation`: Compute kernels whose loops add products up
- `compute`: Compute kernels: block expressions become loops over the tiles of the block that they
  are stored in; what one tile needs is computed in the destination registers
- `expressions`: Block expressions as trees, and their functions on tiles
- `operators`: Block expressions of compute kernels: operators, and functions of the language
- `sources`: Tiles of circular buffers, and how they come into destination registers
- `translation`: Compute kernels of Python: blocks, block expressions, and what is kept of them
"""
