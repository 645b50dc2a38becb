"""Passes on TTIR: canonical form, element types, decompositions, movement rules.

- `arithmetic_rules`: Arithmetic simplifications: identities, redundant conversions, constant
  folding of splats
- `canonicalize`: Canonical form of TTIR: data movement, empty tensors, chains of reshapes,
  decomposition
- `element_types`: Legalization of element types
- `fusing/`: Fusion patterns: decomposed forms rewritten to the op that computes them
- `integer_arithmetic`: Exact integer arithmetic: matmuls, narrow types, and sorting
- `integer_ranges`: Integer ranges by interval arithmetic, to find ops that need more than 32 bits
  of an operand
- `movement_passes`: Passes on data movement: folding of broadcasts, and cancellation of permutes
- `outline_generics`: Outlines regions of `ttir.generic` to functions, so that function passes see
  their ops
- `own_buffers`: Separation of buffers: each tensor that ops overwrite gets a buffer of its own
- `position_forms`: Positional forms: values and constants as functions of their indices
- `position_values`: Positional forms of values: masks are recognized by the comparisons that define
  them
- `queries`: Queries on ops and values shared by the TTIR rewrite rules
- `source_types`: Conversion of source element types for which the device has fewer bits, with notes
  to users
"""
