"""Conversions of integers to each other, and selections by any number, in C++ for both targets, as
numpy has them: of integers the lowest bits are kept, and everything but zero is true."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path

import numpy as np
import pytest

from tests.op_cases.cpp_runs import run_cpp
from ttcodegen.compilation import CompileOptions, compile_module
from ttcodegen.foundation.diagnostics import Source
from ttcodegen.project.checking import run_in_numpy
from ttcodegen.project.cpu_backend import CPUBackend
from ttcodegen.project.toolchain import Toolchain

DTYPES = {
    "i8": np.int8,
    "ui8": np.uint8,
    "i16": np.int16,
    "ui16": np.uint16,
    "i32": np.int32,
    "ui32": np.uint32,
}
NUMBERS = (0, 1, 2, -1, -7, 100, 127, -128, 150, 255, 300, 2**15, 2**16 - 1, 2**16, 2**24 + 1)
NUMBERS += (-(2**24) - 1, 2**31 - 1, 2**31, -(2**31), -(2**31) + 1, 2**31 + 5, 2**32 - 1)
FLOATS = (0.0, -0.0, 0.5, -0.25, 1.0, -1.0, 1e-3, np.nan, np.inf, 3e38, 100.0)
SHAPE = (4, len(NUMBERS))
PAIRS = tuple(permutations(DTYPES, 2))


def tensor(element: str) -> str:
    return f"tensor<{'x'.join(map(str, SHAPE))}x{element}>"


def arrays() -> dict[str, np.ndarray]:
    numbers = np.resize(np.array(NUMBERS, np.int64), SHAPE)
    found = {name: numbers.astype(dtype) for name, dtype in DTYPES.items()}
    return {**found, "f32": np.resize(np.array(FLOATS, np.float32), SHAPE)}


CONDITIONS = ("i32", "ui32", "i8", "f32")


def program() -> tuple[str, list[np.ndarray]]:
    """The text, and the results of numpy."""
    given = arrays()
    names = ", ".join(f"%{name}: {tensor(name)}" for name in given)
    lines: list[str] = []
    types: list[str] = []
    expected: list[np.ndarray] = []
    for source, result in PAIRS:
        lines.append(f'"ttir.typecast"(%{source}) : ({tensor(source)}) -> {tensor(result)}')
        types.append(tensor(result))
        expected.append(given[source].astype(DTYPES[result]))
    # The values of a selection, and the others.
    others = {"i32": ("%negated", ~given["i32"]), "f32": ("%raised", given["f32"] + np.float32(1))}
    for condition in CONDITIONS:
        for values, (name, other) in others.items():
            operands = ", ".join(map(tensor, (condition, values, values)))
            lines.append(
                f'"ttir.where"(%{condition}, %{values}, {name}) : ({operands}) -> {tensor(values)}'
            )
            types.append(tensor(values))
            expected.append(np.where(given[condition] != 0, given[values], other))
    body = "\n".join(f"  %{index} = {line}" for index, line in enumerate(lines))
    results = ", ".join(f"%{index}" for index in range(len(lines)))
    i32, f32 = tensor("i32"), tensor("f32")
    return (
        f"func.func @f({names}) -> ({', '.join(types)}) {{\n"
        f'  %negated = "ttir.bitwise_not"(%i32) : ({i32}) -> {i32}\n'
        f'  %one = "ttir.full"() <{{shape = array<i32: {", ".join(map(str, SHAPE))}>, '
        f"fill_value = 1.0 : f32}}> : () -> {f32}\n"
        f'  %raised = "ttir.add"(%f32, %one) : ({f32}, {f32}) -> {f32}\n'
        f"{body}\n  return {results} : {', '.join(types)}\n}}\n"
    ), expected


@pytest.mark.slow
@pytest.mark.parametrize("target", ["ttnn", "ttmetal"])
def test_cpp_converts_and_selects_as_numpy(
    target: str, toolchain: Toolchain, cpu_backend: CPUBackend, tmp_path: Path
) -> None:
    assert cpu_backend is not None
    text, expected = program()
    source = Source("f.mlir", text)
    compiled = compile_module(source, CompileOptions("f", target=target))
    runs = run_in_numpy(source, compiled, lambda *_: tuple(arrays().values()))
    (found,) = run_cpp(compiled, runs, tmp_path / "out", toolchain)
    for array, meant, flatbuffer in zip(found, expected, runs[0].flatbuffer, strict=True):
        np.testing.assert_array_equal(flatbuffer, meant)
        np.testing.assert_array_equal(array, meant)
