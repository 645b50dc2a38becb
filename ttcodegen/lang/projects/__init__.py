"""TT-Lang programs: a runner, and C++ projects of the operations that they call.

- `called_operations`: TT-Lang operations that modules call, from programs named on the command line
- `programs`: Runner of Python programs that import `ttl` and `ttnn`, and lookup of their operations
- `projects`: Projects of operations: written, built, run, and compared with the simulator
- `supervision`: Supervisor process of the process that runs a user's program
"""
