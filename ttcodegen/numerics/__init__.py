"""Execution of source and lowered programs in numpy, and comparison of their outputs.

- `comparison`: Comparison of runs: C++ against flatbuffer tightly, flatbuffer against golden by
  correlation
- `device_interpreter`: Interpreter of `.ttm` programs in numpy with the data types of the device
- `drawing`: Random inputs within the range of a model, drawn by the uses of its arguments
- `edges`: Edge-case inputs for `--check`
- `execution`: Execution of functions op by op in numpy
- `golden_values`: Golden runs of the source in numpy, and golden values in a flatbuffer
- `interpreter`: Interpreter of `.ttnn` programs in numpy with the data types of the device, with op
  events
- `lowered`: Lowered programs in numpy: outputs that depend on rounding, and indices of ties
- `result_sizes`: Check of result sizes before an op runs
- `rounding`: Rounding to device data types, and tensors of a lowered program
- `tolerances`: Tolerances of outputs: data types, saturating functions and order of summation
"""
