"""Conversions between data types, by the values that the vendor's simulator gives.

`conversions.tsv` has what `ttnn::typecast` of tt-metal gives for elements at the ends of types, of
the library's own kernel on a simulated Wormhole.
"""

from __future__ import annotations

import csv
import subprocess
from collections.abc import Iterator
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from ttcodegen.compilation import CompileOptions, compile_module
from ttcodegen.foundation.diagnostics import Source
from ttcodegen.numerics.lowered import interpreter_of, read_flatbuffer
from ttcodegen.ops.core.conversions import CONVERSIONS, NAMES, markdown_rows, typecast_on_card
from ttcodegen.project.toolchain import find_toolchain

HERE = Path(__file__).parent
STANDALONE = HERE.parents[1] / "standalone"
NUMBERS = HERE.parents[1] / "docs" / "numbers.md"
DTYPES = {name: dtype for dtype, name in NAMES.items()}


def rows() -> Iterator[tuple[str, str, np.ndarray, np.ndarray]]:
    """The pairs of types, with what is converted and what comes out."""
    found: dict[tuple[str, str], list[tuple[str, str]]] = {}
    with (HERE / "conversions.tsv").open() as file:
        for row in csv.DictReader(file, delimiter="\t"):
            pair = (row["from"], row["to"])
            found.setdefault(pair, []).append((row["given"], row["simulator"]))
    for (source, target), values in found.items():
        yield (
            source,
            target,
            np.array([float(given) for given, _ in values]).astype(_numpy(source)),
            np.array([float(made) for _, made in values]).astype(_numpy(target)),
        )


def _numpy(name: str) -> np.dtype:
    return np.dtype(ml_dtypes.bfloat16 if name == "bf16" else DTYPES[name])


PAIRS = list(rows())


@pytest.mark.parametrize(
    ("source", "target", "given", "made"), PAIRS, ids=[f"{a}-{b}" for a, b, *_ in PAIRS]
)
def test_the_numpy_run_converts_as_a_card(
    source: str, target: str, given: np.ndarray, made: np.ndarray
) -> None:
    computed_with = given.astype(np.float32) if source == "bf16" else given
    found = typecast_on_card(computed_with, DTYPES[target]).astype(_numpy(target))
    assert np.array_equal(found, made, equal_nan=True)


@pytest.mark.parametrize(
    ("source", "target", "given", "made"),
    [row for row in PAIRS if row[0] in ("f32", "bf16") and row[1] in ("si32", "ui32")],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_the_numpy_run_of_device_programs_converts_as_a_card(
    source: str, target: str, given: np.ndarray, made: np.ndarray
) -> None:
    operand, result = (f"tensor<{given.size}x{name}>" for name in (source, target))
    text = (
        f"func.func @f(%x: {operand}) -> {result} {{\n"
        f'  %0 = "ttir.typecast"(%x) : ({operand}) -> {result}\n'
        f"  return %0 : {result}\n}}\n"
    )
    compiled = compile_module(Source("typecast.mlir", text), CompileOptions("m", target="ttmetal"))
    (found,) = interpreter_of(read_flatbuffer(compiled.flatbuffer)).run("f", [given])
    assert np.array_equal(found.astype(_numpy(target)), made, equal_nan=True)


def test_the_cpu_backend_converts_as_a_card(tmp_path: Path) -> None:
    program = tmp_path / "typecast_values"
    includes = [f"-I{STANDALONE / folder}" for folder in ("include", "src")]
    source = STANDALONE / "tests" / "typecast_values.cpp"
    command = [find_toolchain().compiler, "-std=c++20", *includes, source, "-o", program]
    subprocess.run(command, check=True)
    with (HERE / "conversions.tsv").open() as file:
        values = list(csv.DictReader(file, delimiter="\t"))
    given = "\n".join(f"{row['from']} {row['to']} {row['given']}" for row in values)
    done = subprocess.run([program], input=given, capture_output=True, text=True, check=True)
    wrong = [
        (row, made)
        for row, made in zip(values, done.stdout.split(), strict=True)
        if float(row["simulator"]) != float(made)
    ]
    assert wrong == []


def test_each_pair_of_types_has_values() -> None:
    measured = {(source, target) for source, target, *_ in PAIRS}
    assert {(NAMES[a], NAMES[b]) for a, b in CONVERSIONS} <= measured


def test_the_documentation_has_the_table() -> None:
    text = NUMBERS.read_text()
    section = text.split("<!-- conversions -->\n")[1].split("<!-- end -->")[0]
    assert section.splitlines()[2:] == markdown_rows()
