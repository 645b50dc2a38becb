"""The `ttkernel` dialect: one op per function of the kernel API.

- `attributes`: Types and attributes of the `ttkernel` dialect
- `builder`: Builder of kernels: functions of `ttkernel`, `scf` and `arith` ops
- `conditions`: Constraints on kernel ops beyond the kinds of their operands and attributes
- `configurations`: Kernel configurations until mid-2025; `ttmetal` has replaced them by its kernel
  attributes
- `dataflow_table`: Rows of kernel arguments, the network on chip (NoC), semaphores and addresses
- `definition`: Row definitions of the `ttkernel` op table, and the attribute kinds of rows
- `matrix_table`: Rows of compute kernel ops around the matrix engine
- `operation`: Op classes of the `ttkernel` dialect, and the C++ calls that they are emitted as
- `table`: Table of `ttkernel` ops, with rows of building blocks and of unsupported functions
- `vector_table`: Rows of the vector engine's ops (SFPU), which read and write destination registers

Everything is generated from the table `table.kernel_ops()`; `builder.KernelBuilder` builds kernels,
`operation.kernel_call` returns the C++ call of an op.
"""

from __future__ import annotations

from functools import cache

from xdsl.ir import Dialect

from ttcodegen.dialects.ttkernel.attributes import TTKERNEL_ATTRIBUTES
from ttcodegen.dialects.ttkernel.configurations import THREADS_OF_CONFIGURATIONS
from ttcodegen.dialects.ttkernel.operation import ttkernel_op_classes

__all__ = ["ttkernel_dialect"]


@cache
def ttkernel_dialect() -> Dialect:
    """Returns the dialect with all ops of the table."""
    return Dialect(
        "ttkernel",
        list(ttkernel_op_classes().values()),
        [*TTKERNEL_ATTRIBUTES, *THREADS_OF_CONFIGURATIONS],
    )
