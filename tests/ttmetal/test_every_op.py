"""Ops left to the CPU: none that device programs compute."""

from __future__ import annotations

import pytest

from tests.ttmetal.function_text import call, function, tensor
from tests.ttmetal.modules import text_of
from ttcodegen.compilation import CompiledModule, CompileOptions, compile_module
from ttcodegen.foundation.diagnostics import Source


def compiled(text: str) -> CompiledModule:
    return compile_module(Source("in.mlir", text), CompileOptions("in", target="ttmetal"))


@pytest.mark.parametrize("name", ["integers", "places", "scans", "draws"])
def test_programs_compute_everything(name: str) -> None:
    files = compiled(text_of(name)).files
    assert "src/cpu_functions.cpp" not in files


@pytest.mark.parametrize(
    ("op", "element"),
    [
        ("pow", "si32"),
        ("div", "ui32"),
        ("div", "ui8"),
        ("remainder", "ui32"),
    ],
)
def test_what_the_vector_engine_lacks_is_left(op: str, element: str) -> None:
    """As docs/ttmetal.md says ("Limits")."""
    square = tensor((32, 32), element)
    lone = function("f", [square] * 2, [call(op, ["%a0", "%a1"], [square] * 2, square)])
    files = compiled(f"module {{\n{lone}}}\n").files
    assert f"cpu::{op}(" in files["src/cpu_functions.cpp"]


def test_convolutions_of_integers_are_left() -> None:
    """The matrix engine takes floats ("Limits" again)."""
    x, weight = tensor((1, 8, 8, 16), "si32"), tensor((16, 16, 1, 1), "si32")
    words = {"stride": "1 : i32", "padding": "0 : i32", "dilation": "1 : i32", "groups": "1 : i32"}
    lone = function("f", [x, weight], [call("conv2d", ["%a0", "%a1"], [x, weight], x, **words)])
    files = compiled(f"module {{\n{lone}}}\n").files
    assert "cpu::convolution(" in files["src/cpu_functions.cpp"]


def test_products_of_integers_are_programs_of_the_device() -> None:
    """Of their bytes, which the matrix engine multiplies exactly."""
    square = tensor((32, 32), "si32")
    lone = function("f", [square] * 2, [call("matmul", ["%a0", "%a1"], [square] * 2, square)])
    files = compiled(f"module {{\n{lone}}}\n").files
    assert "src/cpu_functions.cpp" not in files
