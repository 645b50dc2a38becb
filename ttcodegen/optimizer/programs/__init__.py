"""Core assignment of the library's programs, by kind of op.

- `attention_and_norms`: Core assignment of decode attention, and program configs of sharded norms
- `convolution`: Core assignment and L1 shards of convolutions
- `matmul`: Core assignment of matmuls, chosen by the library or by a program config
- `windows`: Blocking plan of 2D convolutions, and core assignment and L1 shards of pools
"""
