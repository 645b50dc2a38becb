"""Compute kernels of TT-Lang: block expressions as loops over tiles.

- `accumulation`: Accumulation of matmuls over the iterations of a loop
- `accumulation_translation`: Translation of compute kernels whose loops accumulate matmuls
- `compute`: Code generation for block expressions in compute kernels
- `expressions`: Block expressions as trees, and their functions on tiles
- `operators`: Translation of operators and language functions to block expressions
- `sources`: Tiles of circular buffers, and their loads into destination registers
- `translation`: Translation of compute kernels: blocks, block expressions, kept values
"""
