"""Normalisations of rows that are sharded: the library takes the shards of rectangles alone."""

from __future__ import annotations

import pytest

from tests.optimizer.modules import INPUT, WEIGHT, compiled, entry
from ttcodegen.dialects.core.datatypes import DataType
from ttcodegen.dialects.ttcore.shards import CoreRange, Shards
from ttcodegen.dialects.ttnn.placement import TensorPlacement
from ttcodegen.dialects.ttnn.program_configs import LayerNormSharded
from ttcodegen.optimizer.optimize import placement_text
from ttcodegen.optimizer.programs.attention_and_norms import norm_config, norm_misfit

WIDTHS = (320, 896, 1152, 1408, 2304, 2560, 2816, 2880, 3200)
"""Their tiles do not fill rows of 8 cores, one or two on each, but other rectangles."""
PRIME = (352, 416)
"""11 and 13 tiles: only one core has them all."""
IN_DRAM = TensorPlacement((32, 1152), DataType.BFLOAT16)


def normalized(norm: str, width: int, inner: int = 256) -> str:
    """The rows of a product, normalised."""
    rows, weight = f"tensor<32x{width}xbf16>", f"tensor<{inner}x{width}xbf16>"
    segments = "1, 1, 0"
    return f"""
func.func @f(%x: tensor<32x{inner}xbf16> {{{INPUT}}}, %w: {weight} {{{WEIGHT}}}, %g: tensor<{width}xbf16> {{{WEIGHT}}}) -> {rows} {{
  %h = "ttir.matmul"(%x, %w) : (tensor<32x{inner}xbf16>, {weight}) -> {rows}
  %a = "ttir.{norm}"(%h, %g) <{{normalized_shape = array<i64: {width}>, epsilon = 1.0e-05 : f32, operandSegmentSizes = array<i32: {segments}>}}> : ({rows}, tensor<{width}xbf16>) -> {rows}
  return %a : {rows}
}}
"""  # noqa: E501 -- MLIR as it is printed


@pytest.mark.parametrize("norm", ["rms_norm", "layer_norm"])
@pytest.mark.parametrize("width", WIDTHS + PRIME)
def test_sharded_rows_lie_on_a_rectangle(norm: str, width: int) -> None:
    program = entry(compiled(normalized(norm, width), 2))
    (call,) = [op for op in program.operations if op.name == f"ttnn.{norm}"]
    source = program.tensors[call.operands[0]].type.placement
    if source.shards is None:
        assert width in PRIME
        return
    ranges = source.shards.core_ranges
    box = source.shards.bounding_box()
    assert sum(r.cores for r in ranges) == box.columns * box.rows


def test_no_configuration_is_made_for_other_cores() -> None:
    """36 of 40 cores: layernorm_device_operation.cpp:173 of tt-metal 0.70.1."""
    cores = (CoreRange(0, 0, 7, 3), CoreRange(0, 4, 3, 4))
    rows = IN_DRAM.sharded("width_sharded", Shards((32, 32), cores))
    assert norm_config(rows) is None
    box = rows.with_(shards=Shards((32, 32), (CoreRange(0, 0, 5, 5),)))
    config = norm_config(box)
    assert isinstance(config, LayerNormSharded)
    assert norm_misfit(rows, config) == "the cores of its operand's shards are no rectangle"


def test_the_explanation_names_the_cores_that_there_are() -> None:
    assert "ws 6x6 [32x32]" in compiled(normalized("rms_norm", 1152), 2).explanation
    cores = (CoreRange(0, 0, 7, 3), CoreRange(0, 4, 3, 4))
    rows = IN_DRAM.sharded("width_sharded", Shards((32, 32), cores))
    assert placement_text(rows) == "l1 ws 8x4+4x1 [32x32]"
