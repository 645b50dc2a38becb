# ruff: noqa: E501 -- MLIR as it is printed
"""Comparison of call results with the interpreter's, with arrays in place of a simulator's."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.optimizer.modules import INPUT, WEIGHT, compiled
from ttcodegen.cli.rt import main
from ttcodegen.cli.ttcodegen import main as ttcodegen
from ttcodegen.flatbuffer.reader import read_ttnn
from ttcodegen.judging.mocked_device import Card, has_compiler, prepare
from ttcodegen.judging.python_calls import NO_CALLS, joined_steps
from ttcodegen.rt.judging.call_values import CallValues

MODULE = f"""
func.func @main(%x: tensor<2x3xf32> {{{INPUT}}}, %y: tensor<2x3xf32> {{{INPUT}}}) -> tensor<2x3xf32> {{
  %0 = "ttir.add"(%x, %y) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %1 = "ttir.relu"(%0) : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return %1 : tensor<2x3xf32>
}}
"""
X = np.array([[1, -2, 3], [-4, 5, -6]], np.float32)
Y = np.array([[0.5, 0.5, -4], [5, -7, 1]], np.float32)
Array = Callable[[np.ndarray, np.ndarray], np.ndarray]


def differences(
    folder: Path, called: dict[str, Array], data_type: str = "f32"
) -> dict[str, str | None]:
    """By callee what differs, if the calls compute that of the first two tensors."""
    binary = read_ttnn(compiled(MODULE.replace("f32", data_type), 0).flatbuffer)
    (program,) = binary.programs
    joined = joined_steps([program])
    values = CallValues(binary, [program], [X, Y], folder)
    values.give(joined)
    arrays: dict[int, np.ndarray] = {}
    for step in joined[0]:
        answer(step, arrays, called, folder)
    found = values.differences(joined)[program.name]
    return {joined[0][index]["callee"]: difference for index, difference in found}


def answer(
    step: dict[str, Any], arrays: dict[int, np.ndarray], called: dict[str, Array], folder: Path
) -> None:
    """Does what the process of the library does in a step."""
    if step["callee"] is None:
        arrays.update({each["id"]: np.load(each["values"]) for each in step["results"]})
    elif step["callee"] not in NO_CALLS:
        operands = [arrays[each["tensor"]] for each in step["arguments"] if "tensor" in each]
        (result,) = step["results"]
        compute = called.get(step["callee"], _moved)
        arrays[result["id"]] = compute(operands[0], operands[-1])
        np.save(folder / f"{result['id']}.npy", arrays[result["id"]])


def _moved(x: np.ndarray, _: np.ndarray) -> np.ndarray:
    return x


@pytest.mark.parametrize("data_type", ["f32", "bf16", "si32"])
def test_calls_that_compute_the_same_agree(tmp_path: Path, data_type: str) -> None:
    called: dict[str, Array] = {"add": np.add, "relu": lambda x, _: np.maximum(x, 0)}
    found = differences(tmp_path, called, data_type)
    assert found["add"] is None
    assert found["relu"] is None


def test_infinities_of_16_bits_are_right_for_nan(tmp_path: Path) -> None:
    """The device has no NaN in bfloat16: the simulator gives infinities for roots of -1."""
    infinite = np.where(np.isfinite(X), np.inf, X).astype(np.float32)
    for data_type, is_right in (("bf16", True), ("f32", False)):
        given = np.array(X)
        given[0, 0] = np.nan
        text = MODULE.replace("f32", data_type)
        binary = read_ttnn(compiled(text, 0).flatbuffer)
        (program,) = binary.programs
        joined = joined_steps([program])
        values = CallValues(binary, [program], [given, Y], tmp_path)
        values.give(joined)
        arrays: dict[int, np.ndarray] = {}
        called: dict[str, Array] = {
            "add": lambda x, y: np.where(np.isnan(x + y), infinite, x + y),
            "relu": lambda x, _: np.maximum(x, 0),
        }
        for step in joined[0]:
            answer(step, arrays, called, tmp_path)
        found = values.differences(joined)[program.name]
        first = next(each for index, each in found if joined[0][index]["callee"] == "add")
        assert (first is None) == is_right


def test_places_of_equal_values_are_as_right(tmp_path: Path) -> None:
    """A window of a pool whose maximum is there twice, of which the library takes another one."""
    text = f"""
    func.func @main(%x: tensor<1x2x2x32xbf16> {{{INPUT}}})
        -> (tensor<1x1x1x32xbf16>, tensor<1x1x1x32xsi32>) {{
      %0, %1 = "ttir.max_pool2d_with_indices"(%x) <{{kernel = array<i32: 2, 2>,
        stride = array<i32: 2, 2>, dilation = array<i32: 1, 1>, padding = array<i32: 0, 0, 0, 0>,
        ceil_mode = false}}> : (tensor<1x2x2x32xbf16>)
        -> (tensor<1x1x1x32xbf16>, tensor<1x1x1x32xsi32>)
      return %0, %1 : tensor<1x1x1x32xbf16>, tensor<1x1x1x32xsi32>
    }}"""
    binary = read_ttnn(compiled(text, 0).flatbuffer)
    (program,) = binary.programs
    given = np.ones((1, 2, 2, 32), np.float32)
    given[0, 0, 0] = 0
    for place, is_right in ((3, True), (0, False)):
        joined = joined_steps([program])
        values = CallValues(binary, [program], [given], tmp_path)
        values.give(joined)
        for step in joined[0]:
            if step["callee"] == "max_pool2d":
                shape = step["results"][0]["type"]["shape"]
                for result, made in zip(step["results"], (1.0, place), strict=True):
                    np.save(tmp_path / f"{result['id']}.npy", np.full(shape, made, np.float32))
        found = values.differences(joined)[program.name]
        (pool,) = [each for index, each in found if joined[0][index]["callee"] == "max_pool2d"]
        assert (pool is None) == is_right


def test_a_call_that_computes_something_else_is_named_alone(tmp_path: Path) -> None:
    """The call after it is compared for the operand that it had."""
    found = differences(tmp_path, {"add": np.subtract, "relu": lambda x, _: np.maximum(x, 0)})
    assert found["relu"] is None
    assert found["add"] is not None
    assert "largest error 14" in found["add"]


def test_a_call_that_loses_nan_is_named(tmp_path: Path) -> None:
    def lossy(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.where(x + y > 1, np.nan, x + y)

    found = differences(tmp_path, {"add": lossy, "relu": lambda x, _: np.maximum(x, 0)})
    assert found["add"] is not None
    assert found["add"].startswith("NaN is at other positions")


def test_calls_without_their_operands_are_not_compared(tmp_path: Path) -> None:
    binary = read_ttnn(compiled(MODULE, 0).flatbuffer)
    (program,) = binary.programs
    joined = joined_steps([program])
    values = CallValues(binary, [program], [X, Y], tmp_path)
    values.give(joined)
    assert values.differences(joined) == {program.name: []}


def test_a_compiler_of_the_package_is_kept(tmp_path: Path) -> None:
    compiler = tmp_path / "runtime" / "sfpi" / "compiler" / "bin" / "riscv-tt-elf-g++"
    compiler.parent.mkdir(parents=True)
    compiler.write_bytes(b"\x7fELF\xff")
    prepare(tmp_path, Card()).close()
    assert has_compiler(tmp_path)
    compiler.unlink()
    prepare(tmp_path, Card()).close()
    assert not has_compiler(tmp_path)


NORMALIZED = f"""
func.func @main(%x: tensor<64x96xbf16> {{{INPUT}}}, %w: tensor<96x32xbf16> {{{WEIGHT}}}) -> tensor<64x32xbf16> {{
  %0 = "ttir.matmul"(%x, %w) : (tensor<64x96xbf16>, tensor<96x32xbf16>) -> tensor<64x32xbf16>
  %1 = "ttir.softmax"(%0) <{{dimension = 1 : si32}}> : (tensor<64x32xbf16>) -> tensor<64x32xbf16>
  return %1 : tensor<64x32xbf16>
}}
"""


def test_the_library_computes_the_same_on_a_simulator(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    simulator, python = (
        os.environ.get("TTCODEGEN_SIMULATOR"),
        os.environ.get("TTCODEGEN_SIM_PYTHON"),
    )
    if not simulator or not python:
        pytest.skip("TTCODEGEN_SIMULATOR and TTCODEGEN_SIM_PYTHON name no simulator")
    source = tmp_path / "m.mlir"
    source.write_text(NORMALIZED)
    assert ttcodegen([str(source), "-o", str(tmp_path / "out")]) == 0
    arguments = ["validate", str(tmp_path / "out"), "--python", python, "--simulator", simulator]
    assert main(arguments) == 0
    assert "3 calls accepted, 3 compared" in capsys.readouterr().out


def test_card_and_simulator_exclude_each_other(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], ttnn_python: str
) -> None:
    source = tmp_path / "m.mlir"
    source.write_text(MODULE)
    assert ttcodegen([str(source), "-o", str(tmp_path / "out")]) == 0
    arguments = ["validate", str(tmp_path / "out"), "--python", ttnn_python, "--card"]
    assert main([*arguments, "--simulator", "libttsim.so"]) == 1
    assert "--card and --simulator name two devices" in capsys.readouterr().err
    assert main([*arguments[:-1], "--simulator", str(tmp_path / "none.so")]) == 1
    assert "there is no simulator" in capsys.readouterr().err
