"""What is told of one op."""

from __future__ import annotations

import pytest

from ttcodegen.diagnostics import CompileError
from ttcodegen.dialects.operation import CatalogueOp
from ttcodegen.dialects.program_configs import CoreGrid
from ttcodegen.optimizer.calls import call_of
from ttcodegen.optimizer.op_model import op_constraints, op_runtime, ops_of
from ttcodegen.optimizer.ways import interleaved, sharded_as

LAYOUT = (
    "#ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<32x32x!ttcore.tile<32x32, bf16>, "
    "#ttnn.buffer_type<dram>>, <interleaved>>"
)
TYPE = f"tensor<1024x1024xbf16, {LAYOUT}>"
MODULE = f"""
func.func @f(%a: {TYPE}, %b: {TYPE}) -> {TYPE} {{
  %0 = "ttnn.matmul"(%a, %b) <{{transpose_a = false, transpose_b = false}}> : ({TYPE}, {TYPE}) -> {TYPE}
  %1 = "ttnn.exp"(%0) : ({TYPE}) -> {TYPE}
  return %1 : {TYPE}
}}
"""  # noqa: E501


def op_named(name: str) -> CatalogueOp:
    """The op of that name in the module."""
    (found,) = [op for op in ops_of(MODULE) if op.name == f"ttnn.{name}"]
    return found


def test_an_op_is_told_as_it_stands() -> None:
    told = op_constraints(op_named("matmul"))
    assert told.circular_buffers > 0
    assert told.tensors == told.output_bytes == 0
    assert told.output is not None
    assert told.output.buffer_type == "dram"
    assert op_runtime(op_named("matmul")) > op_runtime(op_named("exp")) > 3000


def test_an_op_is_told_with_tensors_that_lie_elsewhere() -> None:
    op = op_named("exp")
    (source,) = call_of(op).operands
    in_l1 = sharded_as(source, "block_sharded", CoreGrid(8, 8))
    assert in_l1 is not None
    told = op_constraints(op, [in_l1], in_l1)
    assert told.output_bytes == 128 * 128 * 2
    assert told.tensors == 2 * told.output_bytes
    assert op_runtime(op, [in_l1], in_l1) < op_runtime(op)
    product = op_constraints(op_named("matmul"), output=interleaved(source, "l1"))
    assert product.output_bytes == 16 * 2048


def test_what_the_library_does_not_make_is_refused() -> None:
    op = op_named("exp")
    (source,) = call_of(op).operands
    sharded = sharded_as(source, "height_sharded", CoreGrid(8, 8))
    with pytest.raises(CompileError, match="the shards of an operand"):
        op_constraints(op, output=sharded)
    with pytest.raises(CompileError, match="has 1 operands"):
        op_runtime(op, [source, source])
    alone = sharded_as(source, "height_sharded", CoreGrid(1, 1))
    assert alone is not None
    with pytest.raises(CompileError, match="bytes of each L1"):
        op_constraints(op, [alone], alone)
