"""Compiler of TT-Lang operations to device programs.

- `compute/`: Compute kernels of TT-Lang: block expressions as loops over tiles
- `movement/`: Data movement kernels of TT-Lang: copies, pipes, semaphores
- `operations`: Compilation of operations to modules of a device program and its host function
- `outlining`: Lifting of uniform operations to functions of whole tensors
- `python/`: Translation of kernels written in Python: evaluation, captured variables, control flow,
  numbers
- `resources`: Device resources of kernels: circular buffers, tensors, semaphores, runtime arguments
- `tensor_functions`: TTIR text of functions on whole tensors
"""
