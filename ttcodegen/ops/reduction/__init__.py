"""Reductions, scans, sorting, softmax and norms.

- `batch_norm`: Batch normalization for inference and training
- `exact_extremes`: Bit-exact maxima and minima of float32
- `norms`: Layer norm, RMS norm, group norm and softmax
- `reduce`: Reductions along dimensions
- `scans`: Cumulative sums and products
- `sorting`: Sort, topk and argmax
"""
