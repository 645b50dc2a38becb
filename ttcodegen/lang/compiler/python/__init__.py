"""The Python of kernels: evaluation, captured variables, control flow, numbers.

- `block_lifetimes`: States of blocks known at compile time, and uses of variables between
  assignments
- `calls`: Calls in kernels of Python: of functions of the language, of those of the program, whose
  bodies are inlined, and of `print`
- `capture_resolution`: Resolution of a captured variable on the kernel's node
- `captured`: Captured variables of kernels: the operation's body, the module, and builtins
- `evaluation`: Expressions of kernels, evaluated at compile time or computed by the running kernel
- `merging`: Merging of a variable's values over nodes, and affine fitting of numbers by node
- `numbers`: Numbers of kernels: constants of Python as long as possible, else values that the
  kernel computes
- `pipe_nets`: Pipe nets as the kernels see them: which nodes send, which receive, and where the
  others are
- `rewriting`: Syntax rewrites of kernels: `break` and `match` as conditions
- `translation`: Kernels of Python become kernels of the device, statement by statement
- `variable_translation`: Variables of kernels: what becomes a variable of C++, and what loops carry
- `variables`: Variables of kernels, frames of inlined functions, and loop-carried state
"""
