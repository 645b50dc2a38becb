"""Validation of a program's calls by the real library's Python package.

- `call_json`: JSON serialization of a program's calls for the judge
- `call_values`: Comparison of the results of ttnn calls with the interpreter's for the same
  operands
- `judge`: Makes the calls of files with the real library
- `library`: Process of the real library that answers calls
- `mocked_device`: Mocked device for the Python package of ttnn
- `python_calls`: Translation of a program's calls to the Python package of ttnn
- `simulated_project`: Runs of a project with the real library on the vendor's simulator
"""
