"""Types and attributes of all dialects, and dialects outside the op catalogue.

- `core/`: Element types, constants and attribute syntax that all dialects use
- `operations/`: Op definitions: attribute kinds, functions, verification
- `ttcore/`: The `ttcore` dialect: systems, devices, tiles, grids and layouts
- `ttir/`: Types and ops of `ttir` outside the catalogue: generics, shardings, quantized types
- `ttkernel/`: The `ttkernel` dialect: one op per function of the kernel API
- `ttmetal/`: The `ttmetal` dialect: buffers, device programs and their settings
- `ttnn/`: Attributes of `ttnn`: placements and program configurations
"""
