"""Lowering of TTIR to TTMetal: grouping of ops into device programs, one folder per kind.

`grouping` decides which ops form a program, `generics` wraps each group in a `ttir.generic`, and
`convert` turns generics into launches of the programs of `matmul`, `attention`, `rows`, `windows`,
`movement` and `tiles`, which are built from `parts`. `cpu_hoist` moves the rest to the CPU.
"""
