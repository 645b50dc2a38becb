"""PyTorch to TTIR: graphs of `torch.export`, operation by operation, without decompositions.

- `complex_numbers`: Complex numbers, as pairs of real tensors
- `decompositions/`: Decompositions of ATen operations into other ATen operations, applied before
  the rules
- `elementwise`: Elementwise operations: arithmetic, comparisons, activations
- `graph`: Values of a torch.export graph, torch tensors, and higher-order operations
- `images`: Pooling, resizing and grid sampling of images
- `importing`: Translation of a `torch.export` graph to a TTIR module
- `indexing`: Gather, scatter and index operations
- `layers`: Matmuls, convolutions, normalizations, attention
- `linear_algebra`: Rules of `torch.linalg`: factorizations of small matrices, solutions, inverses,
  determinants
- `movement`: Creation and data movement: ranges, views, concatenation
- `quantization`: Fake quantization of quantization-aware models
- `reductions`: Reductions, softmax, scans, sorting and losses
- `rules`: Table of all rules, by operation name

An exported graph says what the model meant: `linear`, `layer_norm`, `scaled_dot_product_attention`
are one operation each, as they are in TTIR. Through StableHLO each would be taken apart and have to
be found again.
"""
