"""The language of the catalogue: definitions, traits, calls, tile lowerings, engines.

- `builder`: Builder of catalogue ops, and the values of splat constants
- `calls`: C++ call rows of the catalogue, and the names of their parameters
- `conversions`: Conversions between data types, as the device kernel of `ttnn::typecast` computes
  them
- `definition`: Definitions of ops and the registry of all of them
- `dimensions`: Dimension labels of ops, and verification of shapes
- `engine`: Device arithmetic in numpy: matrix and vector engines, random numbers, memoized results
- `lowering`: Lowerings of ops to tile operations and to CPU functions
- `traits`: Traits and rules of ops: kinds, operation counts, collective movement and mesh size
"""
