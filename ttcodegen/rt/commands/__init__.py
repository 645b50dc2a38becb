"""Sub-commands of `ttcodegen-rt` as callable classes.

- `arguments`: Table of the sub-commands' arguments, for the command line and for Python
- `check`: `check` and `query`: system descriptions, and compatibility of a flatbuffer with one
- `command`: Base of the sub-commands: arguments, messages, artifacts, inputs and results
- `compare`: `compare`: comparison of two programs by outputs and by ops
- `emitc`: `run --emitc`: builds the translated C++ of a program and compares it with its flatbuffer
- `perf`: `perf`: measured and estimated times of ops
- `read`: `read`: sections of a file
- `run`: `run`: runs programs and compares their outputs with golden values
- `validate`: `validate`: validation of a program's calls by the real library
"""
