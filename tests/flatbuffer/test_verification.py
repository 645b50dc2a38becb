"""Flatbuffers whose calls contradict themselves, by all ways in which they are read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from ttcodegen.compilation import CompileOptions, compile_module
from ttcodegen.explorer.models import flatbuffer_graphs
from ttcodegen.flatbuffer import program as file
from ttcodegen.flatbuffer.decoding import encode
from ttcodegen.flatbuffer.reader import read_ttm, read_ttm_file, read_ttnn, read_ttnn_file
from ttcodegen.flatbuffer.schema import load_schema
from ttcodegen.foundation.diagnostics import CompileError, Source
from ttcodegen.rt import API
from ttcodegen.rt import load_binary as open_binary
from ttcodegen.translation import flatbuffer_to_mlir

CALLS = """func.func @main(%x: tensor<4x32xbf16>, %w: tensor<32x64xbf16>, %i: tensor<2x4xi32>)
    -> (tensor<4x64xbf16>, tensor<64x4xbf16>, tensor<2x8xbf16>, tensor<8x32xbf16>,
        tensor<256xbf16>, tensor<4xbf16>, tensor<2x4x32xbf16>, tensor<4x4xbf16>) {
  %0 = "ttir.matmul"(%x, %w) : (tensor<4x32xbf16>, tensor<32x64xbf16>) -> tensor<4x64xbf16>
  %1 = "ttir.softmax"(%0) <{dimension = 1 : si32}> : (tensor<4x64xbf16>) -> tensor<4x64xbf16>
  %2 = "ttir.permute"(%1) <{permutation = array<i64: 1, 0>}>
      : (tensor<4x64xbf16>) -> tensor<64x4xbf16>
  %3 = "ttir.slice_static"(%1) <{begins = [0 : i32, 8 : i32], ends = [4 : i32, 24 : i32],
      step = [2 : i32, 2 : i32]}> : (tensor<4x64xbf16>) -> tensor<2x8xbf16>
  %4 = "ttir.concat"(%x, %x) <{dim = 0 : si32}>
      : (tensor<4x32xbf16>, tensor<4x32xbf16>) -> tensor<8x32xbf16>
  %5 = "ttir.reshape"(%2) <{shape = [256 : i32]}> : (tensor<64x4xbf16>) -> tensor<256xbf16>
  %6 = "ttir.sum"(%1) <{dim_arg = [1 : i32], keep_dim = false}>
      : (tensor<4x64xbf16>) -> tensor<4xbf16>
  %7 = "ttir.embedding"(%i, %x) : (tensor<2x4xi32>, tensor<4x32xbf16>) -> tensor<2x4x32xbf16>
  %8 = "ttir.pad"(%3) <{padding = array<i32: 1, 1, 0, 0>, value = 0.0 : f32}>
      : (tensor<2x8xbf16>) -> tensor<4x8xbf16>
  %9 = "ttir.slice_static"(%8) <{begins = [0 : i32, 0 : i32], ends = [4 : i32, 4 : i32],
      step = [1 : i32, 1 : i32]}> : (tensor<4x8xbf16>) -> tensor<4x4xbf16>
  return %1, %2, %3, %4, %5, %6, %7, %9 : tensor<4x64xbf16>, tensor<64x4xbf16>, tensor<2x8xbf16>,
      tensor<8x32xbf16>, tensor<256xbf16>, tensor<4xbf16>, tensor<2x4x32xbf16>, tensor<4x4xbf16>
}
"""
PROGRAM = """func.func @main(%x: tensor<32x64xf32>, %w: tensor<64x32xf32>) -> tensor<32x32xf32> {
  %0 = "ttir.matmul"(%x, %w) : (tensor<32x64xf32>, tensor<64x32xf32>) -> tensor<32x32xf32>
  %1 = "ttir.softmax"(%0) <{dimension = 1 : si32}> : (tensor<32x32xf32>) -> tensor<32x32xf32>
  return %1 : tensor<32x32xf32>
}
"""


@cache
def compiled(target: str) -> bytes:
    text = CALLS if target == "ttnn" else PROGRAM
    return compile_module(Source("m.mlir", text), CompileOptions("m", target)).flatbuffer


def changed(program: file.Program, op: str, change: Callable[..., Any]) -> file.Program:
    """The function with the first of its ops of that name changed."""
    operations = list(program.operations)
    index = next(i for i, each in enumerate(operations) if each.name == op)
    found = change(operations[index], program)
    if isinstance(found, file.Program):
        return found
    operations[index] = found
    return replace(program, operations=tuple(operations))


def attribute(name: str, value: file.AttributeValue) -> Callable[..., file.Operation]:
    def change(operation: file.Operation, program: file.Program) -> file.Operation:
        kept = [each for each in operation.attributes if each.name != name]
        return replace(operation, attributes=(*kept, file.Attribute(name, value)))

    return change


def result(**fields: Any) -> Callable[..., file.Program]:
    """Another type of the first result."""

    def change(operation: file.Operation, program: file.Program) -> file.Program:
        return retyped(program, operation.results[0], fields)

    return change


def operand(index: int, **fields: Any) -> Callable[..., file.Program]:
    """Another type of an operand."""

    def change(operation: file.Operation, program: file.Program) -> file.Program:
        return retyped(program, operation.operands[index], fields)

    return change


def retyped(program: file.Program, tensor: int, fields: Mapping[str, Any]) -> file.Program:
    tensors = list(program.tensors)
    tensors[tensor] = replace(tensors[tensor], type=replace(tensors[tensor].type, **fields))
    return replace(program, tensors=tuple(tensors))


INTEGER, INTEGERS = file.Integer, file.Integers
CASES: dict[str, tuple[str, Callable[..., Any], str]] = {
    "matrices that do not fit": ("matmul", operand(0, shape=(4, 64)), "64"),
    "a dimension out of range": ("softmax", attribute("dimension", INTEGER(99)), "dimension 99"),
    "a dimension below": ("softmax", attribute("dimension", INTEGER(-3)), "dimension -3"),
    "another shape of the result": ("softmax", result(shape=(4, 32)), "(4, 32)"),
    "another result of a matmul": ("matmul", result(shape=(64, 4)), "(64, 4)"),
    "a dimension twice": ("permute", attribute("permutation", INTEGERS((0, 0))), "0, 0"),
    "a permutation too long": ("permute", attribute("permutation", INTEGERS((1, 0, 2))), "2"),
    "a step of 0": ("slice_static", attribute("step", INTEGERS((0, 2))), "0:4:0"),
    "a slice beyond the end": ("slice_static", attribute("ends", INTEGERS((4, 65))), "65"),
    "a slice before the start": (
        "slice_static",
        attribute("begins", INTEGERS((0, -70))),
        "out of range",
    ),
    "another number of elements": ("reshape", result(shape=(255,)), "255"),
    "a reshape to another shape": ("reshape", attribute("shape", INTEGERS((16, 16))), "16"),
    "a concat along no dimension": ("concat", attribute("dim", INTEGER(2)), "2"),
    "a concat that is too long": ("concat", result(shape=(9, 32)), "9"),
    "a sum over no dimension": ("sum", attribute("dim_arg", INTEGERS((7,))), "7"),
    "a sum that keeps what it sums": ("sum", attribute("keep_dim", file.Boolean(True)), "(4,)"),
    "rows of another width": ("embedding", result(shape=(1, 8, 33)), "33"),
    "a pad of another size": ("pad_row_major", result(shape=(4, 9)), "9"),
    "padding of three numbers": (
        "pad_row_major",
        attribute("padding", INTEGERS((1, 1, 0))),
        "expected 4 widths",
    ),
    "padding below 0": (
        "pad_row_major",
        attribute("padding", INTEGERS((-1, 3, 0, 0))),
        "0 or more",
    ),
}


def damaged_ttnn(case: str) -> tuple[bytes, str, str]:
    """A file, the op that is wrong in it, and what its message names."""
    name, change, said = CASES[case]
    binary = read_ttnn(compiled("ttnn"))
    (program,) = binary.programs
    wrong = replace(binary, programs=(changed(program, f"ttnn.{name}", change),))
    return encode(load_schema("ttnn.fbs"), wrong), f"ttnn.{name}", said


@pytest.mark.parametrize("case", CASES)
def test_a_call_that_contradicts_itself_is_refused_at_the_op(case: str, tmp_path: Path) -> None:
    data, op, said = damaged_ttnn(case)
    path = tmp_path / "wrong.ttnn"
    path.write_bytes(data)
    with pytest.raises(CompileError) as caught:
        read_ttnn_file(path)
    messages = [each.message for each in caught.value.diagnostics]
    (message,) = [each for each in messages if f": {op}: " in each]
    assert message.startswith("function 'main', operation ")
    assert said in message


def refusals(path: Path, capsys: pytest.CaptureFixture[str]) -> dict[str, str]:
    """The message of each reader that refuses a file; fails where one accepts it."""
    said: dict[str, str] = {}
    for command in ("Run", "Read", "Check", "Compare"):
        arguments: dict[str, Any] = {"binary": path}
        if command == "Compare":
            arguments["other"] = path
        capsys.readouterr()
        try:
            code, _ = getattr(API, command)(args=arguments)()
        except CompileError as error:
            said[command] = error.render()
            continue
        output = capsys.readouterr()
        assert code == 1, command
        said[command] = output.out + output.err
    for name, read in (
        ("Python", lambda: open_binary(str(path))),
        ("explorer", lambda: flatbuffer_graphs(path.read_bytes())),
        ("translation", lambda: flatbuffer_to_mlir(path.read_bytes())),
    ):
        if name == "translation" and path.suffix != ".ttnn":
            continue
        with pytest.raises(CompileError) as caught:
            read()
        said[name] = caught.value.render()
    return said


def test_every_way_to_read_a_file_refuses_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "wrong.ttnn"
    path.write_bytes(damaged_ttnn("a dimension out of range")[0])
    for way, said in refusals(path, capsys).items():
        assert "ttnn.softmax: dimension 99 is out of range" in said, way


PROGRAM_CASES: dict[str, tuple[str, Callable[..., Any], str]] = {
    "a dimension out of range": (
        "ttir.max",
        attribute("dim_arg", INTEGERS((99,))),
        "ttir.max: dimension 99 is out of range",
    ),
    "an unknown attribute": (
        "ttir.exp",
        attribute("speed", INTEGER(9)),
        "'ttir.exp' has no 'speed' here",
    ),
    "a result that keeps what it sums": (
        "ttir.sum",
        attribute("keep_dim", file.Boolean(False)),
        "ttir.sum: ",
    ),
    "a constant of another shape": ("ttir.full", attribute("shape", INTEGERS((3,))), "ttir.full: "),
}


@pytest.mark.parametrize("case", PROGRAM_CASES)
def test_the_meaning_of_a_device_program_is_verified(
    case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name, change, expected = PROGRAM_CASES[case]
    binary = read_ttm(compiled("ttmetal"))
    functions = tuple(
        changed(each, name, change) if any(op.name == name for op in each.operations) else each
        for each in binary.functions
    )
    assert functions != binary.functions
    path = tmp_path / "wrong.ttm"
    path.write_bytes(encode(load_schema("ttm.fbs"), replace(binary, functions=functions)))
    for way, said in refusals(path, capsys).items():
        assert expected in said, way


def test_programs_run_on_tensors_of_their_shapes(tmp_path: Path) -> None:
    binary = read_ttm(compiled("ttmetal"))
    main = binary.function("main")
    wrong = changed(main, "ttmetal.run_program", operand(0, shape=(32, 33)))
    functions = tuple(wrong if each is main else each for each in binary.functions)
    data = encode(load_schema("ttm.fbs"), replace(binary, functions=functions))
    with pytest.raises(CompileError, match="'main' runs 'matmul' on tensors of other shapes"):
        read_ttm(data)


def test_good_files_are_taken(tmp_path: Path) -> None:
    for target, read in (("ttnn", read_ttnn_file), ("ttmetal", read_ttm_file)):
        path = tmp_path / target
        path.write_bytes(compiled(target))
        read(path)
