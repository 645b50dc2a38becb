"""Choice of tensor placements and program configs under a cost model.

- `activation_types`: Data types of activations: block floats between the calls of a function
- `batched_rows`: Batched rows: matmuls and rowwise ops run on a batch of matrices instead of its
  flattened rows
- `beam_search`: Beam search over the placements of tensors, with a simulation of the L1 allocator
- `call`: ttnn calls with tensor placements, their candidates, and their L1 footprint
- `candidates`: Candidates of calls: placements of operands and results, and program configs
- `circular_buffers`: L1 bytes of the circular buffers of calls
- `cost/`: Cost model: work of calls, and its time
- `fusing`: Fusion of TTNN calls: QKV projections, activations, and residual sums of normalizations
- `matmul_candidates`: Candidates of matmuls, including those with DRAM-sharded weights
- `movement_buffers`: Circular buffers of permutes, attention heads, embeddings and pools
- `op_model`: Op model: L1 footprint and run time of a single op with given layouts
- `optimize`: Passes that choose placements and program configs, and the explanation of their
  choices
- `overrides/`: Overrides: decisions given from outside and written out
- `parallelism`: Automatic parallelism under the cost model: shardings over a mesh, and pipeline
  stages
- `pooled_means`: Means over all pixels of images as average pooling
- `programs/`: Core assignment of the library's programs, by kind of op
- `refused_choices`: Choices of the optimizer that the library refused: their record and their
  exclusion
- `rewrites`: Rewrites before layouts are assigned: rows, decode forms, fidelity, weight types
- `row_major_moves`: Row-major moves: rows that do not fill tiles are concatenated and reshaped in
  row-major layout
- `sliced_pools`: Results of pools that the library computes in slices
- `wide_products`: Division of wide matmuls of one tile row into pieces with DRAM-sharded weights
"""
