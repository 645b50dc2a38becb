"""TT-Lang: operations written as dataflow kernels in Python, simulated with numpy.

- `compiler/`: Compiler of TT-Lang operations to device programs
- `projects/`: TT-Lang programs: a runner, and C++ projects of the operations that they call
- `simulator/`: Simulator of TT-Lang: blocks, pipes, semaphores and scheduling on numpy
- `ttl/`: `ttl`: the language of TT-Lang (specification 0.22)
- `ttnn/`: `ttnn`: what TT-Lang programs use, on numpy; takes torch tensors if torch is installed

The language follows the TT-Lang specification, version 0.22. `ttl` and `ttnn` are the packages
that programs import; `programs` runs such programs.
"""
