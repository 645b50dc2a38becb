"""Host C++ functions of both targets: recording, layers, variables, interface.

- `cpp_interface`: C++ around the functions of a module: headers with structures, and source files
- `cpu_functions`: CPU functions as C++ functions of host tensors: `src/cpu_functions.cpp`
- `entry_functions`: C++ function of an entry, for both targets: a long one calls functions of its
  parts
- `expressions`: Canonical forms of expressions: the skeleton that equal statements share, and their
  arguments
- `function_writer`: Writer of statements as bodies of C++ host functions, for both targets
- `interface`: Interface of a module's host functions: entry functions, arguments, results,
  signatures
- `layer_analysis`: Analyses of layers: repeated sequences, split points, and values that layers
  share
- `layer_structures`: Structures that functions of layers take: elements of the model's arrays,
  weights, and sizes
- `layers`: Outlining of repeated layers: one function, called with different weights
- `loops`: Loops for consecutive calls of one function
- `outlining`: Outlining: equal groups of statements become one function, and equal calls a loop
- `preparation`: Preparation: the function of weights and constants alone, and the arrays of layer
  weights
- `statements`: Recorded statements of a host function, and groups of them
- `step_loops`: Loops for steps: calls that each take results of the previous one, as in recurrent
  layers
- `tuning_constants`: src/tuning.hpp: tuning knobs and weight data types of a program as named
  constants
- `variables`: Variables of C++ functions with their lifetimes, and option structures of ttnn calls
"""
