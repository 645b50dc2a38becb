"""The naming room: what everything is called that the generated project and the flatbuffer name.

    interface      arguments, results and entry functions, as the source names them
    layers         the layer that an op belongs to
    values         the values of a function, and constants
    intermediates  what an op is replaced by
    functions      functions of equal layers, and of equal preparations of constants
    parameters     what these functions take and compute
    programs       device programs, their kernels and what these take
    cpu_functions  functions that run on the CPU between them
    tuning         constants of src/tuning.hpp

Each name is decided once, here, whatever the target. A value is named for what it is, by the first
of these that says something: what the source calls it (the name of the SSA value, of the location),
the value that it is another form of (moved, laid out anew, activated, scaled), its role (queries,
scores, the bias of a layer), the layer whose weights compute it, and the noun of its op. Names that
the source's tools make of the op itself (`%relu_3`) say nothing.

How a name is spelled in C++, and kept apart from others, is for `ttcodegen.emitc.spelling`.
"""
