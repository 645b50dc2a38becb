"""The `ttmetal` dialect: buffers, device programs and their settings.

- `attributes`: Types and attributes of the `ttmetal` dialect: cores and arguments of kernels
- `device_module`: Queries on modules of device programs, and programs as attributes with their
  verification
- `dialect`: The `ttmetal` dialect: device buffers, and programs that run on cores
- `program_verification`: Verification of device programs: grids, arguments, circular buffers and
  symbols of launches
- `programs`: Device programs: circular buffers, semaphores, kernels and their arguments
- `tuning`: Tuning of a device program: its settings, and derived expressions
"""
