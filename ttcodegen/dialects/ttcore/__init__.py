"""The `ttcore` dialect: systems, devices, tiles, grids and layouts.

- `device`: `#ttcore.device`: the device as one grid, its mesh, and traced modules
- `dialect`: The `ttcore` dialect: types, attributes and tuple ops, and system descriptions
- `layouts`: Grids, layouts of tensors, and layouts of memrefs: attributes of the `ttcore` dialect
- `loops`: Host loops around calls of a function
- `shards`: Memory layouts: core ranges, page layouts, kinds of memory, and shards
- `tile`: `!ttcore.tile<32x32, bf16>`, the unit of storage and computation, and enumeration
  attributes
"""
