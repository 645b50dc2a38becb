"""The `ttkernel` dialect: one op per function of the kernel API.

`table.kernel_ops()` is the table that everything is made from; `builder.KernelBuilder` writes
kernels, `cpp_calls.kernel_call` gives the C++ of an op.
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
    """The dialect with all ops of the table."""
    return Dialect(
        "ttkernel",
        list(ttkernel_op_classes().values()),
        [*TTKERNEL_ATTRIBUTES, *THREADS_OF_CONFIGURATIONS],
    )
