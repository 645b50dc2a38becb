"""Cost model: work of calls, and its time.

- `calls`: Cost of library calls, with and without assigned layouts
- `convolution`: L1 footprint and work of the programs of convolutions and pools
- `measurements`: Constants of the library's kernels fitted to measurements, and measured times of
  calls
- `program_work`: Work of matmul, attention, elementwise, normalization and reduction programs
- `transfers`: Work of data movement: copies, layout changes, reshapes, slices, lookups and
  collectives
- `work`: Work of the programs of a call, and its fabric traffic
"""
