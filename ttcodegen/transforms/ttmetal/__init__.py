"""Passes on device programs: L1 placement, buffer aliases, shared kernels.

- `aliases`: Circular buffers aliased to the shards of tensors in L1
- `device_programs`: Hand-written device programs: completion and semantics; deduplication of equal
  kernels
- `host_functions`: Host functions of device programs: delayed reshapes, hoisted constants, weight
  data types
- `memory`: L1 placement and sharding of tensors between device programs
- `passes`: Tables of the passes and pipelines to device programs
"""
