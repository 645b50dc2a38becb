"""Parsers of StableHLO: assembly, portable bytecode (VHLO), names in locations.

- `assembly`: Custom assembly formats of StableHLO operations
- `bytecode`: MLIR bytecode: sections, strings, operations, and VHLO's attribute order
- `dialect`: Operations of StableHLO and its companion dialects
- `names`: Frontend locations: the layer and source line of an operation
- `operations`: Parsed operations of StableHLO and access to their attributes
- `vhlo`: Portable bytecode: from the versioned dialect VHLO to StableHLO
"""
