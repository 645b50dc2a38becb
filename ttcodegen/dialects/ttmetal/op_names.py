"""Names of the ops of host functions that run programs of the device, and of those that kernels
get their arguments with.

Apart from the dialect, which takes longer to import than a small model to compile.
"""

from __future__ import annotations

CONSTANT = "ttir.constant"
CREATE_BUFFER = "ttmetal.create_buffer"
DEALLOCATE_BUFFER = "ttmetal.deallocate_buffer"
RUN_PROGRAM = "ttmetal.run_program"
ENQUEUE_READ_BUFFER = "ttmetal.enqueue_read_buffer"
ENQUEUE_WRITE_BUFFER = "ttmetal.enqueue_write_buffer"
VIEW = "ttmetal.view"
NAMED_ARGUMENT = "ttkernel.get_named_compile_time_arg_val"
RUN_TIME_ARGUMENT = "ttkernel.get_arg_val"
ACCESSOR_ARGUMENTS = "ttkernel.TensorAccessorArgs"
