"""Device programs of attention and of key and value caches.

- `compute`: Compute kernels of attention: scores, softmax and weighted sums, whole or in chunks of
  keys
- `plan`: Plan of an attention program: work split and circular buffers
- `programs`: Device programs of attention and of updates of the KV cache
"""
