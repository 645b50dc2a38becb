"""Passes, their tables and their drivers; one room per dialect, and one for meshes.

- `const_eval`: Const-eval hoisting, roles and names of arguments, and evaluation of ops in numpy
- `device`: System and device of a module, and verification that it fits the device
- `functions`: Inlining, dead function elimination, and common subexpressions
- `loops`: Loops of calls: outlined bodies, hoisted invariants, and loops that are unrolled
- `mesh/`: Sharding over meshes: propagation, partition, shards of arguments
- `module_text`: Printing of modules as MLIR
- `pass_runner`: Runner of pass pipelines, with timing and precondition checks
- `passes`: The table of the single passes; pipelines.py puts them together
- `registry`: All passes and pipelines by name, as `ttcodegen` runs them and `ttcodegen-opt` offers
  them
- `rewriting`: Rewrite drivers: single walk, worklist of local patterns, and rebuilding of functions
- `ttir/`: Passes on TTIR: canonical form, element types, decompositions, movement rules
- `ttmetal/`: Passes on device programs: L1 placement, buffer aliases, shared kernels
- `ttnn/`: Passes on TTNN: layouts, compute configurations, deallocation
"""
