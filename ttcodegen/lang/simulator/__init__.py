"""Simulator of TT-Lang: blocks, pipes, semaphores and scheduling on numpy.

- `buffer_making`: Constructors of dataflow buffers, with memory of their own or backed by sharded
  tensors
- `buffers`: Dataflow buffers, their blocks, and the states of blocks
- `composition`: Composition of operations: calls of operations in other operations are inlined
- `context`: Execution context: the running launch, node and kernel, and write coverage of tensors
- `expressions`: Block expressions of kernels, and their operators
- `functions`: Tables of `ttl.math` and of functions of whole blocks, debug printing and signposts
- `locations`: Source locations in the user's program, syntax trees of its functions, and their
  variables
- `loops`: Detection of endless loops in kernels, before and during the run
- `meshes`: Meshes of devices: tensors that have a part on each, and collective operations
- `occurrences`: Occurrences of variables in Python syntax
- `operations`: Operation functions, their kernels, and the scheduler
- `pipes`: Pipes, pipe nets and semaphores
- `recording`: Recording of the origins of blocks during simulation
- `shapes`: Shapes and positions of dimensions, and shape rules of operators and functions
- `spelling`: Misspelled names, wrong arguments, and versions of language features
- `tensors`: TT-NN tensors, their slices and memory configs
- `transfers`: Copies between blocks, tensors and pipes, and single elements of blocks
- `unified`: Unified operations: one body whose statements are divided among the kernels
"""
