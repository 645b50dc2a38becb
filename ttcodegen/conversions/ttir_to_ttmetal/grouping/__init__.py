"""Grouping of ops into device programs, and its analyses.

- `grouping`: Grouping of the ops of a function into device programs
- `index_maps`: Data movement ops as affine maps from the result to its sources, and the tiles these
  read
- `operand_pairs`: Sums, differences and products that the matrix engine computes of two circular
  buffers
- `row_plan`: Computation of programs with several passes over rows of tiles, such as a softmax
- `tile_operations`: Operations on tiles: elementwise chains, reductions, and destination registers
"""
