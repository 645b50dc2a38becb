"""Parts of all device programs: circular buffers, work split, reader and compute kernels.

- `compute`: Compute kernels of tiles: elementwise ops, maxima and row reductions
- `data_movement`: Data movement kernels between DRAM, cores and circular buffers, and elementwise
  epilogues
- `loop_nests`: Loop nests of kernels: work split over cores, page indices, access patterns
- `program_parts`: Parts of device programs: tensors, circular buffers, kernels, TT-Lang operations
"""
