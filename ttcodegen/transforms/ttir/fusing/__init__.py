"""Fusion patterns: decomposed forms rewritten to the op that computes them.

- `activations`: Fusion of decomposed activations, and of JAX's complementary error function
- `attention`: Fusion of attention, and analysis of its masks
- `grouped_attention`: Fusion of grouped-query attention and of decode attention
- `heads`: Fusion of head splits, head repetitions and rotary embeddings
- `matmuls`: Fusion of bias, scale, padding and batch norm with matmuls and convolutions
- `normalizations`: Fusion of decomposed reductions with kept dimensions, means, softmax and norms
- `row_statistics`: Row statistics: means, variances and deviations of the rows of a value
- `rules`: The fusing pass and its rules; fusion of table lookups and topk, and empty attention rows
"""
