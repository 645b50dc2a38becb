"""The real library as judge: a program's calls, made by its Python package on a mocked device.

- `call_json`: JSON serialization of a program's calls for the judge
- `judge`: Makes the calls of files with the real library
- `library`: Process of the real library that answers calls
- `mocked_device`: Mocked device for the Python package of ttnn
- `programs`: Programs of a flatbuffer as lists of calls for the library, and the device that they
  are for
- `python_calls`: Translation of a program's calls to the Python package of ttnn
- `simulator_output`: Output of the vendor's simulator: faults, and functionality that it lacks
- `validated_compilation`: Compilation in which the library refuses choices of the optimizer
"""
