"""Translation of kernels written in Python: evaluation, captured variables, control flow, numbers.

- `block_lifetimes`: Compile-time states of blocks, and uses of variables between assignments
- `calls`: Calls in kernels: language functions, inlined user functions, `print`
- `capture_resolution`: Resolution of a captured variable on the kernel's node
- `captured`: Captured variables of kernels: the operation's body, the module, and builtins
- `evaluation`: Expressions of kernels, evaluated at compile time or computed by the running kernel
- `merging`: Merging of a variable's values over nodes, and affine fitting of numbers by node
- `numbers`: Integers and floats of kernels: Python constants where known, else SSA values
- `pipe_nets`: Pipe nets as kernels see them: senders, receivers, and the positions of both
- `rewriting`: Syntax rewrites of kernels: `break` and `match` as conditions
- `translation`: Translation of Python kernels to device kernels, statement by statement
- `variable_translation`: Mutable variables of kernels, as C++ variables or loop-carried values
- `variables`: Variables of kernels, frames of inlined functions, and loop-carried state
"""
