"""Flatbuffers of lowered programs and system descriptions: `.ttnn`, `.ttm` and `.ttsys` files.

- `decoding`: Encoding and decoding of flatbuffers by a schema
- `modules`: Functions of `.ttnn` and `.ttm` files as modules, and their verification
- `program`: Contents of `.ttnn` and `.ttm` files as Python values: one class per table
- `reader`: Readers of `.ttnn` and `.ttm` files
- `schema`: Parser of flatbuffer schemas
- `system`: System descriptions as `.ttsys` files, by the schema `ttsys.fbs`
- `writer`: Writers of `.ttnn` and `.ttm` files
"""
