"""TT-Lang: operations written as dataflow kernels in Python, simulated with numpy.

The language follows the TT-Lang specification, version 0.22. `ttl` and `ttnn` are the packages
that programs import; `programs` runs such programs.
"""
