"""The table of the `ttkernel` dialect: every op is a row."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from ttcodegen.dialects.ttkernel.blocks_table import BLOCK_ROWS
from ttcodegen.dialects.ttkernel.dataflow_table import DATAFLOW_ROWS
from ttcodegen.dialects.ttkernel.definition import KernelOp, table
from ttcodegen.dialects.ttkernel.matrix_table import MATRIX_ROWS
from ttcodegen.dialects.ttkernel.unsupported_table import UNSUPPORTED_ROWS
from ttcodegen.dialects.ttkernel.vector_table import VECTOR_ROWS


@cache
def kernel_ops() -> Mapping[str, KernelOp]:
    """All rows by the name of the op, without that of the dialect."""
    return table(MATRIX_ROWS, VECTOR_ROWS, DATAFLOW_ROWS, BLOCK_ROWS, UNSUPPORTED_ROWS)
