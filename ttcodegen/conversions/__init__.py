"""Lowerings between dialects: one module or folder for each pair, named after it.

- `host_functions/`: Host C++ functions of both targets: recording, layers, variables, interface
- `mesh`: Host code of meshes: shards of arguments and results, and exchange between devices
- `ttir_to_ttmetal/`: Lowering of TTIR to TTMetal: grouping of ops into device programs, one folder
  per kind
- `ttir_to_ttnn`: Lowering of TTIR to TTNN, and the calls of functions that run on the CPU
- `ttkernel_to_emitc/`: Lowering of kernels (TTKernel) to EmitC
- `ttmetal_to_emitc/`: Lowering of host functions of device programs (TTMetal) to EmitC
- `ttnn_to_emitc`: Lowering of TTNN functions to EmitC

`host_functions` and `mesh` are shared by the lowerings of both targets to EmitC.
"""
