"""The simulator of TT-Lang: blocks, pipes, semaphores and scheduling on numpy.

- `buffer_making`: Functions that make dataflow buffers, with memory of their own or that of tensors
  in shards
- `buffers`: Dataflow buffers, their blocks, and the states of blocks
- `composition`: Composition of operations: calls of operations in another one are inlined
- `context`: Execution context: the running launch, node and kernel, and write coverage of tensors
- `expressions`: Block expressions: what kernels compute with, and their operators
- `functions`: Tables of `ttl.math` and of functions of whole blocks, debug printing and signposts
- `locations`: Source locations in the user's program, syntax trees of its functions, and their
  variables
- `loops`: Detection of endless loops in kernels, before and during the run
- `meshes`: Meshes of devices: tensors that have a part on each, and what devices compute together
- `operations`: Operation functions, their kernels, and the scheduler
- `pipes`: Pipes, pipe nets and semaphores
- `recording`: Recording of the origins of blocks during simulation
- `shapes`: Shapes and positions of dimensions, and shape rules of operators and functions
- `spelling`: Names, arguments and features that a version of the language does not have
- `tensors`: TT-NN tensors, their slices and memory configs
- `transfers`: Copies between blocks, tensors and pipes, and single elements of blocks
- `unified`: Operations with one body for all kernels: each statement goes to the kernel that
  carries it out
"""
