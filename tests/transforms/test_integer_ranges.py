"""Ops that need bits of integers which the device does not have."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects.func import FuncOp

from ttcodegen.foundation.diagnostics import Source
from ttcodegen.numerics.drawing import draw_inputs
from ttcodegen.numerics.edges import chosen_edges, loses_upper_half
from ttcodegen.numerics.golden_values import Golden
from ttcodegen.parsing.module import parse_module
from ttcodegen.transforms.ttir.integer_ranges import needs_upper_half

NARROW = "tensor<100xi32>"
LONG = "tensor<100xi64>"
ONE = "tensor<i64>"
WIDEN = f'%0 = "ttir.typecast"(%x) : ({NARROW}) -> {LONG}'


def function(lines: str, result: str, type_: str, argument: str = NARROW) -> str:
    return f"func.func @main(%x: {argument}) -> {type_} {{ {lines} return {result} : {type_} }}"


def users(text: str) -> list[str]:
    return [op.name for op in needs_upper_half(parse_module(Source("m.mlir", text)))]


SUMMED = f'{WIDEN} %1 = "ttir.sum"(%0) <{{dim_arg = array<i32: 0>}}> : ({LONG}) -> {ONE} '
SQUARED = f'{WIDEN} %1 = "ttir.multiply"(%0, %0) : ({LONG}, {LONG}) -> {LONG} '
SHIFT = (
    '%2 = "ttir.full"() <{shape = array<i32: 100>, fill_value = 32 : i32}> : () -> '
    f'{LONG} %3 = "ttir.right_shift"(%1, %2) : ({LONG}, {LONG}) -> {LONG} '
)
TO_FLOAT = f'%2 = "ttir.typecast"(%1) : ({ONE}) -> tensor<f32> '
TO_INT = f'%2 = "ttir.typecast"(%1) : ({ONE}) -> tensor<i32> '
FROM_BYTES = SUMMED.replace("xi32>", "xi8>")
SMALL = (
    '%0 = "ttir.arange"() <{start = 0, end = 100, step = 1, arange_dimension = 0}> : () -> '
    f'{LONG} %1 = "ttir.multiply"(%0, %0) : ({LONG}, {LONG}) -> {LONG} '
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (function(SUMMED + TO_FLOAT, "%2", "tensor<f32>"), ["ttir.typecast"]),
        (function(SUMMED + TO_INT, "%2", "tensor<i32>"), []),
        (function(SUMMED, "%1", ONE), []),
        (function(SQUARED + SHIFT, "%3", LONG), ["ttir.right_shift"]),
        (function(FROM_BYTES + TO_FLOAT, "%2", "tensor<f32>", "tensor<100xi8>"), []),
        (function(SMALL + SHIFT, "%3", LONG), []),
    ],
    ids=["sum to float", "sum to int", "sum", "shifted square", "sum of bytes", "small square"],
)
def test_ops_of_what_leaves_32_bits_need_the_upper_half(text: str, expected: list[str]) -> None:
    assert users(text) == expected


def test_arguments_of_64_bits_count_as_what_programs_take() -> None:
    line = f'%0 = "ttir.gt"(%x, %x) : ({LONG}, {LONG}) -> tensor<100xi1> '
    assert users(function(line, "%0", "tensor<100xi1>", LONG)) == []


@pytest.mark.parametrize(("element", "expected"), [("i64", 1), ("ui64", 0)])
def test_signs_that_are_shifted_down_are_upper_halves(element: str, expected: int) -> None:
    long = f"tensor<100x{element}>"
    line = f'%0 = "ttir.logical_right_shift"(%x, %x) : ({long}, {long}) -> {long} '
    assert len(users(function(line, "%0", long, long))) == expected


def test_ranges_hold_what_random_chains_compute() -> None:
    """No chain of ops of small integers leaves 32 bits without its reader being named."""
    rng = np.random.default_rng(0)
    names = ("add", "subtract", "multiply", "bitwise_and", "bitwise_or", "bitwise_xor", "maximum")
    left = named = 0
    for _ in range(60):
        chain = WIDEN
        last = "%0"
        for index in range(1, int(rng.integers(2, 6))):
            name = rng.choice(names)
            chain += f' %{index} = "ttir.{name}"({last}, %0) : ({LONG}, {LONG}) -> {LONG}'
            last = f"%{index}"
        chain += f' %9 = "ttir.typecast"({last}) : ({LONG}) -> tensor<100xf32> '
        body = function(chain, f"{last}", LONG)
        module = parse_module(Source("m.mlir", body))
        limits = np.array([-(2**31), 2**31 - 1, 0, 1, -1, 2**16, 2**20 + 7])
        x = np.resize(limits, 100).astype(np.int32)
        (found,) = Golden(module).run("main", (x,))
        leaves = bool(((found < -(2**31)) | (found > 2**31 - 1)).any())
        is_named = "ttir.typecast" in users(body)
        assert is_named or not leaves, body
        left, named = left + leaves, named + is_named
    assert left > 20
    assert named < 60


def test_the_choice_of_edges_leaves_32_bits() -> None:
    text = function(SUMMED + TO_FLOAT, "%2", "tensor<f32>")
    module = parse_module(Source("m.mlir", text))
    (main,) = (op for op in module.ops if isinstance(op, FuncOp))
    ((_, inputs),) = chosen_edges(module, main, draw_inputs(module, main, 0))
    (found,) = Golden(module).run("main", inputs)
    assert abs(float(found)) > 2**32
    assert loses_upper_half(module, main) == [True]
