"""Lowering of kernels (TTKernel) to EmitC.

- `calls`: The calls of a kernel: API functions, methods, prints and zones in C++
- `functions`: Lowering of a kernel's function to a readable C++ file with `kernel_main`
- `kernel_functions`: Functions of a kernel in C++: `kernel_main` with its arguments, and one per
  stage
- `statements`: Statements of kernels in C++: arithmetic, tables, conditionals and profiler zones
"""
