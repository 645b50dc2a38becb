# ruff: noqa: E501 -- MLIR as it is printed
"""Heads of attention over many queries: where they are split and concatenated."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.optimizer.modules import INPUT, WEIGHT, compiled, entry, seconds
from ttcodegen.cli.ttcodegen import main
from ttcodegen.project.cpu_backend import CPUBackend
from ttcodegen.systems.releases import RELEASES

USERS, ROWS, HEADS, SIZE = 4, 160, 4, 64
X = f"tensor<{USERS}x{ROWS}x{HEADS * SIZE}xbf16>"
QKV = f"tensor<{USERS}x{ROWS}x{3 * HEADS * SIZE}xbf16>"
W, V = (
    f"tensor<{HEADS * SIZE}x{3 * HEADS * SIZE}xbf16>",
    f"tensor<{HEADS * SIZE}x{HEADS * SIZE}xbf16>",
)
H = f"tensor<{USERS}x{HEADS}x{ROWS}x{SIZE}xbf16>"
ATTENTION = f"""
func.func @main(%x: {X} {{{INPUT}}}, %w: {W} {{{WEIGHT}}}, %v: {V} {{{WEIGHT}}}) -> {X} {{
  %0 = "ttir.matmul"(%x, %w) : ({X}, {W}) -> {QKV}
  %q, %k, %a = "ttir.split_query_key_value_and_split_heads"(%0) <{{num_heads = {HEADS} : ui32, transpose_key = false, operandSegmentSizes = array<i32: 1, 0>}}> : ({QKV}) -> ({H}, {H}, {H})
  %1 = "ttir.scaled_dot_product_attention"(%q, %k, %a) <{{is_causal = false, scale = 0.125 : f32, operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>}}> : ({H}, {H}, {H}) -> {H}
  %2 = "ttir.concatenate_heads"(%1) : ({H}) -> {X}
  %3 = "ttir.matmul"(%2, %v) : ({X}, {V}) -> {X}
  return %3 : {X}
}}
"""
MOVES = ("ttnn.split_query_key_value_and_split_heads", "ttnn.concatenate_heads")


@pytest.mark.parametrize("level", [1, 2])
def test_heads_are_in_l1(level: int) -> None:
    program = entry(compiled(ATTENTION, level))
    moved = [op for op in program.operations if op.name in MOVES]
    assert [op.name for op in moved] == [*MOVES]
    made = [program.tensors[result].type for op in moved for result in op.results]
    assert [type_.buffer_type for type_ in made] == ["l1"] * 4
    assert seconds(compiled(ATTENTION, level)) < seconds(compiled(ATTENTION, 0))


def test_the_calls_say_where() -> None:
    code = "\n".join(compiled(ATTENTION, 1).files.values())
    assert "split_query_key_value_and_split_heads(" in code
    for call in ("split_query_key_value_and_split_heads", "concatenate_heads"):
        text = code.partition(f"ttnn::transformer::{call}(")[2].partition(";")[0]
        assert "L1" in text.upper(), text


@pytest.mark.slow
@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("activations", [[], ["--activations", "bfp8_b"]])
def test_the_three_runs_agree(
    cpu_backend: CPUBackend, tmp_path: Path, release: str, activations: list[str]
) -> None:
    (tmp_path / "m.mlir").write_text(ATTENTION)
    given = ["--optimize", "2", "--check", "-q", "--tt-metal", release, *activations]
    assert main([str(tmp_path / "m.mlir"), "-o", str(tmp_path / "out"), *given]) == 0
    assert json.loads((tmp_path / "out/check.json").read_text())["passed"]
