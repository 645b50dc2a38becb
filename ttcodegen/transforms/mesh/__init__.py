"""Sharding over meshes: propagation, partition, shards of arguments.

- `logical_dimensions`: Logical dimensions of a function, sharded together, and propagation of
  shardings
- `parallelism`: Kinds of parallelism: division of whole functions along the axes of a mesh
- `partition`: Partitioning of a module over the devices of its mesh
- `stages`: Division of functions into pipeline stages, each a function of its own
"""
