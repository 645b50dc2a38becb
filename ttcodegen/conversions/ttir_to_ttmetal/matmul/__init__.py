"""Device programs of matmul over a grid of cores.

- `movement`: Data movement kernels of a matmul
- `plan`: Plan of a matmul program: blocking over the cores, tuning knobs, buffers and epilogue
- `programs`: Matmul programs over a grid of cores, and their compute kernel
"""
