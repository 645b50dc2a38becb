# ruff: noqa: E501 -- MLIR as it is printed
"""Concatenations and reshapes of rows that do not fill tiles: in which layout they are made."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from tests.optimizer.modules import INPUT, WEIGHT, compiled, entry, names, seconds
from ttcodegen.cli.ttcodegen import main
from ttcodegen.foundation.diagnostics import Source
from ttcodegen.project.checking import run_in_numpy
from ttcodegen.project.cpu_backend import CPUBackend


def joined(batch: int, tokens: int, rows: int, width: int = 256, dim: int = 1) -> str:
    """Class tokens before the rows of a product, as in a vision transformer."""
    patches, class_, whole = (
        f"tensor<{batch}x{each}x{width}xbf16>" for each in (rows, tokens, tokens + rows)
    )
    flat, weight = f"tensor<{batch * rows}x{width}xbf16>", f"tensor<{width}x{width}xbf16>"
    if dim == 2:
        whole = f"tensor<{batch}x{rows}x{2 * width}xbf16>"
        class_ = patches
    return f"""
func.func @main(%x: {flat} {{{INPUT}}}, %w: {weight} {{{WEIGHT}}}, %c: {class_} {{{WEIGHT}}}) -> {whole} {{
  %0 = "ttir.matmul"(%x, %w) : ({flat}, {weight}) -> {flat}
  %1 = "ttir.reshape"(%0) <{{shape = [{batch} : i32, {rows} : i32, {width} : i32]}}> : ({flat}) -> {patches}
  %2 = "ttir.concat"(%c, %1) <{{dim = {dim} : si32}}> : ({class_}, {patches}) -> {whole}
  %3 = "ttir.silu"(%2) : ({whole}) -> {whole}
  return %3 : {whole}
}}
"""


VISION = joined(8, 1, 196, 768)


@pytest.mark.parametrize("level", [1, 2])
def test_rows_that_end_within_tiles_are_joined_row_major(level: int) -> None:
    program = entry(compiled(VISION, level))
    # What is taken from a product is untilized once, and the class tokens when constants are.
    assert [name for name in names(program) if name != "to_memory_config"] == [
        *("to_layout", "matmul", "to_layout", "reshape_row_major"),
        *("concat_row_major", "to_layout", "silu"),
    ]
    assert seconds(compiled(VISION, level)) < 0.6 * seconds(compiled(VISION, 0))


@pytest.mark.parametrize(
    "text",
    [joined(8, 32, 64), joined(8, 1, 196, dim=2), joined(1, 64, 33)],
    ids=["whole tiles", "columns", "tiles before the last operand"],
)
def test_others_are_joined_in_tiles(text: str) -> None:
    assert "concat" in names(entry(compiled(text, 2)))


@pytest.mark.parametrize("shape", [(2, 1, 5, 64), (3, 7, 50, 96), (8, 1, 196, 768)])
def test_joined_rows_are_those_of_both(shape: tuple[int, int, int, int]) -> None:
    batch, tokens, rows, width = shape
    generator = np.random.default_rng(0)
    x = generator.integers(-8, 8, (batch * rows, width)).astype(np.float32)
    c = generator.integers(-8, 8, (batch, tokens, width)).astype(np.float32)
    text = joined(*shape).replace('"ttir.silu"', '"ttir.relu"')

    def given(module: ModuleOp, function: FuncOp) -> tuple[np.ndarray, ...]:
        return x, np.eye(width, dtype=np.float32), c

    (run,) = run_in_numpy(Source("m.mlir", text), compiled(text, 2), given)
    expected = np.maximum(np.concatenate([c, x.reshape(batch, rows, width)], axis=1), 0)
    assert np.array_equal(run.flatbuffer[0], expected)


def pixels(images: int, each: int, channels: int) -> str:
    """Pixels of images that a product returns as rows."""
    rows, whole = (
        f"tensor<{images * each}x{channels}xbf16>",
        f"tensor<{images}x{each}x{channels}xbf16>",
    )
    weight = f"tensor<{channels}x{channels}xbf16>"
    return f"""
func.func @main(%x: {rows} {{{INPUT}}}, %w: {weight} {{{WEIGHT}}}) -> {whole} {{
  %0 = "ttir.matmul"(%x, %w) : ({rows}, {weight}) -> {rows}
  %1 = "ttir.reshape"(%0) <{{shape = [{images} : i32, {each} : i32, {channels} : i32]}}> : ({rows}) -> {whole}
  %2 = "ttir.softmax"(%1) <{{dimension = 1 : si32}}> : ({whole}) -> {whole}
  return %2 : {whole}
}}
"""


@pytest.mark.parametrize("level", [1, 2])
def test_reshapes_that_move_rows_are_row_major(level: int) -> None:
    made = names(entry(compiled(pixels(16, 49, 1024), level)))
    assert "reshape_row_major" in made
    assert "reshape" not in made
    assert seconds(compiled(pixels(16, 49, 1024), level)) < seconds(
        compiled(pixels(16, 49, 1024), 0)
    )


def test_reshapes_that_move_nothing_stay_in_tiles() -> None:
    made = names(entry(compiled(pixels(16, 64, 1024), 1)))
    assert "reshape_row_major" not in made


def test_reshaped_rows_are_the_same() -> None:
    images, each, channels = 16, 49, 1024
    x = np.random.default_rng(0).integers(-3, 3, (images * each, channels)).astype(np.float32)
    text = pixels(images, each, channels).replace(
        '"ttir.softmax"(%1) <{dimension = 1 : si32}>', '"ttir.neg"(%1)'
    )

    def given(module: ModuleOp, function: FuncOp) -> tuple[np.ndarray, ...]:
        return x, np.eye(channels, dtype=np.float32)

    (run,) = run_in_numpy(Source("m.mlir", text), compiled(text, 2), given)
    assert np.array_equal(run.flatbuffer[0], -x.reshape(images, each, channels))


@pytest.mark.slow
def test_the_three_runs_agree(cpu_backend: CPUBackend, tmp_path: Path) -> None:
    for number, shape in enumerate([(8, 1, 196, 768), (2, 3, 7, 50)]):
        (tmp_path / "m.mlir").write_text(joined(*shape))
        out = tmp_path / str(number)
        given = ["--optimize", "2", "--check", "-q"]
        assert main([str(tmp_path / "m.mlir"), "-o", str(out), *given]) == 0
        assert json.loads((out / "check.json").read_text())["passed"]
