"""Set-up of the vector engine in kernels: formats of registers, and what an op needs before it."""

from __future__ import annotations

import re

import pytest

from tests.ttmetal.function_text import call, function, integers, tensor
from ttcodegen.compilation import CompileOptions, compile_module
from ttcodegen.foundation.diagnostics import Source


def formats_of(element: str, op: str) -> set[str]:
    """The formats in which the compute kernel of a comparison chooses and copies tiles."""
    square = tensor((32, 32), element)
    lone = function("f", [square] * 2, [call(op, ["%a0", "%a1"], [square] * 2, square)])
    source = Source("in.mlir", f"module {{\n{lone}}}\n")
    files = compile_module(source, CompileOptions("in", target="ttmetal")).files
    kernels = [text for path, text in files.items() if path.startswith("kernels/compute")]
    used = r"(?:where_tile|copy_dest_values)<DataFormat::(\w+)>"
    return {found for text in kernels for found in re.findall(used, text)}


@pytest.mark.parametrize("op", ["maximum", "minimum"])
@pytest.mark.parametrize(("element", "expected"), [("bf16", "Float16_b"), ("f32", "Float32")])
def test_tiles_are_taken_in_the_width_of_the_registers(
    op: str, element: str, expected: str
) -> None:
    """Registers of 16 bits hold bf16; those of 32 bits, which f32 needs, hold f32."""
    assert formats_of(element, op) == {expected}


def test_columns_are_reduced_after_an_initialisation_of_their_own() -> None:
    """A maximum of rows records its instructions over those that columns need (tt-metal,
    ckernel_sfpu_reduce.h)."""
    square, one = tensor((32, 32), "f32"), tensor((1, 1), "f32")
    every = {"dim_arg": integers((0, 1)), "keep_dim": "true"}
    lone = function("f", [square], [call("max", ["%a0"], [square], one, **every)])
    source = Source("in.mlir", f"module {{\n{lone}}}\n")
    files = compile_module(source, CompileOptions("in", target="ttmetal")).files
    (kernel,) = (text for path, text in files.items() if path.startswith("kernels/compute"))
    reductions = re.findall(
        r"(sfpu_reduce_init|sfpu_reduce)<[^;]*?(ReduceDim::REDUCE_ROW)?>\(", kernel
    )
    assert reductions == [
        ("sfpu_reduce_init", ""),
        ("sfpu_reduce", "ReduceDim::REDUCE_ROW"),
        ("sfpu_reduce_init", ""),
        ("sfpu_reduce", ""),
    ]
