"""Upgrades of older and other tools' IR while a module is read.

- `refusals`: Passes and options of the reference compiler (tt-mlir) that are not available
- `ttmetal_programs`: Device programs of 2024: `ttmetal.dispatch`, and TTIR buffers among tensors
- `ttnn_modules`: TTNN modules as tt-mlir prints them (2024 and 2025), read and printed; tuples of
  tensors
"""
