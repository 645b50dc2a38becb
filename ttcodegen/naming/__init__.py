"""Names of everything in generated projects and flatbuffers.

- `arguments`: Names of function arguments and results, in C++ and at the interface
- `functions`: Names of outlined functions, CPU functions, and their parameters and values
- `members`: Structures of tensors: members nested by the modules of the source, numbered ones as
  arrays
- `modules`: Names of a module's arguments, constants and values, and of the constants of
  src/tuning.hpp
- `programs`: Names of device programs, their kernels and tensors
- `roles`: Roles of values in the ops around them: attention, rotary embeddings, recurrent cells
- `sources`: Names that come from the source: values, and the layer that an op belongs to
- `values`: Names of the values of a function, and the roles of operands in kernels

Each name is decided once, here, for all targets. A value gets the first informative one of: its
name in the source (of the SSA value, of the location), the name of the value that it is a form of
(moved, in another layout, activated, scaled), its role (queries, scores, the bias of a layer), the
layer whose weights compute it, and the noun of its op. Names that tools of the source derive from
the op itself (`%relu_3`) are uninformative.

`ttcodegen.emitc.spelling` makes names C++ identifiers and keeps them distinct.
"""
