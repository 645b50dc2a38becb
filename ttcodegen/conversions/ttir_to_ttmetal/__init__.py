"""Lowering of TTIR to TTMetal: grouping of ops into device programs, one folder per kind.

- `attention/`: Device programs of attention and of key and value caches
- `convert`: Conversion of generics to launches of device programs and functions of their kernels
- `cpu_hoist`: CPU hoisting: ops without a device program move into functions that run on the CPU
- `cpu_loops`: Hoisting of loops whose trip count is only known at run time into functions on the
  CPU
- `generic_regions`: Regions of `ttir.generic`: the group of ops in each, and the index maps of its
  operands
- `generics`: Wraps the ops of each device program in a `ttir.generic`
- `grouping/`: Grouping of ops into device programs, and its analyses
- `matmul/`: Device programs of matmul over a grid of cores
- `movement_programs`: Data movement programs: the reader assembles each output tile from elements
  of its sources
- `parts/`: Parts of all device programs: circular buffers, work split, reader and compute kernels
- `rows`: Device programs with several passes over rows of tiles: softmax and norms
- `sort_and_scatter`: Device programs of sort, topk, argmax and scatter
- `tile_programs`: Programs of elementwise ops on tiles, optionally with a reduction
- `window_plan`: Plan of a convolution or pooling program: work split, circular buffers and costs
- `window_programs`: Device programs of convolutions and pooling, and their data movement kernels

`grouping` decides which ops form a program, `generics` wraps each group in a `ttir.generic`, and
`convert` turns generics into launches of the programs of `matmul`, `attention`, `rows`, `windows`,
`movement` and `tiles`, which are built from `parts`. `cpu_hoist` moves the rest to the CPU.
"""
