"""Op definitions: attribute kinds, functions, verification.

- `attribute_kinds`: Kinds of op attributes: conversion between MLIR attributes and Python values
- `compute_config`: Compute kernel configuration: math fidelity, accumulation, and arithmetic of the
  engines
- `functions`: Functions: bodies, names and types of arguments and results, and callees
- `operation`: Op definitions of the catalogue, and ops of these definitions
- `verification`: Verification of modules: ops by their definitions, functions by their types and
  calls
"""
