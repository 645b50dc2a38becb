"""Element types, constants and attribute syntax that all dialects use.

- `attribute_syntax`: Attribute syntax: enumerations, dataclasses as parameter lists, and affine
  maps
- `datatypes`: Element types: TTIR and device data types, their spellings, and elements of constants
- `fast_methods`: Faster equivalents of hot xDSL methods, together a fifth of the compile time of a
  large module
"""
