"""Queries of the op model about a single op."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import pytest

from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.dialects.ttnn.program_configs import CoreGrid, MatmulMultiCast
from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.optimizer.call import call_of, interleaved
from ttcodegen.optimizer.candidates import CandidateGenerator, sharded_as
from ttcodegen.optimizer.cost.calls import CostModel
from ttcodegen.optimizer.op_model import op_constraints, op_runtime, ops_of
from ttcodegen.optimizer.optimize import placed_calls
from ttcodegen.optimizer.programs.matmul import automatic_config
from ttcodegen.systems.cards import default_system

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


def test_the_cost_of_an_op_as_it_is() -> None:
    reported = op_constraints(op_named("matmul"))
    assert reported.circular_buffers > 0
    assert reported.tensors == reported.output_bytes == 0
    assert reported.output is not None
    assert reported.output.buffer_type == "dram"
    assert op_runtime(op_named("matmul")) > op_runtime(op_named("exp")) > 3000


def test_the_cost_of_an_op_with_other_placements() -> None:
    op = op_named("exp")
    (source,) = call_of(op).operands
    in_l1 = sharded_as(source, "block_sharded", CoreGrid(8, 8))
    assert in_l1 is not None
    reported = op_constraints(op, [in_l1], in_l1)
    assert reported.output_bytes == 128 * 128 * 2
    assert reported.tensors == 2 * reported.output_bytes
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


def test_what_has_no_layouts_is_refused() -> None:
    plain = MODULE.replace(f", {LAYOUT}", "")
    with pytest.raises(CompileError, match="tensors without a layout"):
        op_constraints(ops_of(plain)[0])
    with pytest.raises(CompileError, match="no architecture 'grayskull'"):
        op_runtime(op_named("exp"), arch="grayskull")


def test_blocks_of_a_product_are_as_large_as_the_l1_of_the_chip_allows() -> None:
    call = call_of(op_named("matmul"))
    sizes: list[int] = []
    for l1 in (200_000, 1_400_000):
        config = automatic_config(call, CoreGrid(2, 2), l1)
        assert isinstance(config, MatmulMultiCast)
        sizes.append(config.out_block_h * config.out_block_w)
    assert sizes[0] < sizes[1]


@pytest.mark.parametrize("turns_left", [False, True])
def test_a_transposed_product_with_a_bias_has_a_configuration_or_is_in_dram(
    turns_left: bool,
) -> None:
    """Of a right factor in L1 the library may make a program that refuses the bias."""
    call = call_of(op_named("matmul"))
    left, right = call.operands
    bias = right.with_(shape=(1, 1024))
    call = replace(
        call,
        operands=(left, interleaved(right, "l1"), bias),
        attributes={**call.attributes, "transpose_a": turns_left, "transpose_b": True},
    )
    generator = CandidateGenerator(
        CostModel(default_system("wormhole_b0").chip), True, placed_calls()
    )
    for candidate in generator.of(call, [False] * 3):
        configured = "matmul_program_config" in candidate.attributes
        placements = (*candidate.operands, *candidate.results)
        assert configured or all(p.buffer_type == "dram" for p in placements)


def test_the_model_knows_the_kinds_of_calls_from_the_start() -> None:
    # What is not loaded counts as elementwise: in a process of its own nothing else has loaded it.
    code = (
        "from ttcodegen.optimizer.cost.calls import CostModel\n"
        "from ttcodegen.ops.core.definition import call_kind\n"
        "from ttcodegen.systems.cards import default_system\n"
        "CostModel(default_system('wormhole_b0').chip)\n"
        "print(call_kind('matmul').name)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "PRODUCT\n"
