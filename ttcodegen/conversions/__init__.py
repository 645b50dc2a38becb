"""Lowerings between dialects: one module or folder for each pair, named after it.

`host_functions` and `mesh` are shared by the lowerings of both targets to EmitC.
"""
