"""Passes, their tables and their drivers; one room per dialect, and one for meshes.

`passes.py` and `pipelines.py` list passes and pipelines, `registry.py` finds them by name and
`pass_runner.py` runs them. `rewriting.py` has the drivers of rewrites; `functions.py`, `device.py`
and `const_eval.py` are passes on any dialect.
"""
