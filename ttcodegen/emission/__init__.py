"""Emission of lowered modules as sources of a project, with the description of the module.

- `buckets`: Buckets: functions of one model for several sizes of its dynamic dimensions
- `convert_to_emitc`: Conversion of kernels and host functions of device programs, TT-Lang ops
  included, to C++ files
- `description`: Description of a compiled module for the project writer: interface, structure,
  tolerances
- `interface_description`: Interface of a project: module name, entry functions, constants, refused
  hosts and links
- `manifest_entries`: Entries of manifest.json: device programs, kernel settings, and the lines of
  C++ of each op
- `program_sources`: Files of a project for its device programs
- `structure`: Structure of a model's arguments and results: tuples, lists and dictionaries of
  tensors
- `templates`: Templates of the package, template texts of device programs, and their src/tuning.hpp
"""
