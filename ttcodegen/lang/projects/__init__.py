"""Programs of TT-Lang: running them, and projects of the operations that they compile.

- `called_operations`: Operations of TT-Lang that modules call: the programs that have them are
  named on the command line
- `programs`: Runs Python programs that import `ttl` and `ttnn`, and finds operations that modules
  call
- `projects`: Projects of operations: written, built, run, and compared with the simulator
- `supervision`: A process that watches the one in which a user's program runs
"""
