"""The model of cost: work of calls, and the time that it takes.

- `calls`: Cost of library calls, with and without assigned layouts
- `convolution`: L1 footprint and work of the programs of convolutions and pools
- `measurements`: Constants of the library's kernels fitted to measurements, and measured times of
  calls
- `program_work`: Work of matmul, attention, elementwise, movement and row-wise programs
- `transfers`: Work of programs that move data: copies, layout changes, reshapes, slices and lookups
- `work`: Work of a call's programs, and its fabric traffic
"""
