"""Core assignment of the library's programs, by kind of op.

- `attention_and_norms`: Core assignment of decode attention, and program configs of sharded norms
- `convolution`: Core assignment and L1 shards of convolutions
- `matmul`: Core assignment of matmuls, chosen by the library or by a program config
- `pool_slices`: Pools of images in DRAM, which the library computes in slices if they do not fit
  into L1
- `windows`: Blocking plan of 2D convolutions, and core assignment and L1 shards of pools
"""
