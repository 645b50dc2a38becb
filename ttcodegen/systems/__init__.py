"""Compilation targets: architectures and system descriptions.

- `cards`: Cards and machines: chips, meshes, links and performance figures
- `description`: System descriptions: the chips of a machine and their resources
- `releases/`: Supported releases of tt-metal, as tables of differences
"""
