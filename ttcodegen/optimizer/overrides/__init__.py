"""Overrides: decisions given from outside and written out.

- `given_candidates`: Candidates and data types that follow overrides
- `meanings`: Equivalence of library calls, tested by the catalogue's numpy semantics
- `order`: Order of independent calls that overrides give
- `overrides`: Overrides: decisions of the optimizer by call name, as JSON or option strings of
  tt-mlir
- `reference_options`: Overrides in the form of tt-mlir's pipeline options
- `refusals`: Refused entries of overrides, which are listed all at once
- `replaced_calls`: Calls that overrides give in place of others: built, and checked to mean the
  same
"""
