"""Passes on TTNN: layouts, compute configurations, deallocation.

- `call_settings`: Settings of calls: compute kernel configs, prepared convolution weights, rules of
  a release
- `layout`: Layout assignment of TTNN tensors, decomposition of layout changes, and deallocation
- `pipelines`: Pipelines to TTNN: options, steps and names
"""
