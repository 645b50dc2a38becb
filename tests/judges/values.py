"""Functions of StableHLO and TTIR with inputs and the values that they have to give.

The values are numpy's, those of the reference interpreters of StableHLO and jax, or found by hand;
none are the product's own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

Array = np.ndarray


@dataclass(frozen=True)
class Case:
    """A function, what it is given and what it has to give."""

    name: str
    body: str
    """The operations, on `%0`, `%1` and so on; the last one defines `%r`."""
    inputs: Sequence[Array]
    expected: Array
    near: float = 0.0
    """The relative error that is allowed, beside what does not matter to the last bits; exact
    otherwise."""
    result: str = ""
    """The element type of the result, where numpy has no name for it."""

    def text(self) -> str:
        """The function as MLIR."""
        arguments = ", ".join(f"%{i}: {type_of(each)}" for i, each in enumerate(self.inputs))
        result = type_of(self.expected)
        lines = "\n".join(f"  {line.strip()}" for line in self.body.strip().splitlines())
        head = f"func.func @{self.name}({arguments}) -> {result} {{"
        return f"{head}\n{lines}\n  return %r : {result}\n}}\n"


_NAMES = {"float32": "f32", "float64": "f64", "float16": "f16", "bool": "i1", "bfloat16": "bf16"}


def element_of(array: Array) -> str:
    """The MLIR name of the elements of an array."""
    name = array.dtype.name
    return _NAMES.get(name) or name.replace("uint", "ui").replace("int", "i")


def type_of(array: Array) -> str:
    """The MLIR type of an array."""
    return f"tensor<{'x'.join([*map(str, array.shape), element_of(array)])}>"


def _binary(name: str, op: str, first: Array, second: Array, expected: Array) -> Case:
    body = f"%r = stablehlo.{op} %0, %1 : {type_of(first)}"
    return Case(name, body, [first, second], expected.astype(first.dtype))


def _convert(name: str, given: Array, expected: Array) -> Case:
    """There and back to 32 bits, so that what a wider tensor keeps would be seen."""
    there = type_of(expected)
    back = expected.astype(np.int32)
    body = f"""
        %c = stablehlo.convert %0 : ({type_of(given)}) -> {there}
        %r = stablehlo.convert %c : ({there}) -> {type_of(back)}"""
    return Case(name, body, [given], back)


def _with_constant(op: str, number: int, given: Array, expected: Array) -> Case:
    type_ = type_of(given)
    body = f"""
        %c = stablehlo.constant dense<{number}> : {type_}
        %r = stablehlo.{op} %0, %c : {type_}"""
    return Case(f"{op}_{element_of(given)}_with_{number}", body, [given], expected)


I32 = np.array([1, 16777218, -16777217, 2147483647, -2147483648, 0], np.int32)
U32 = np.array([1, 0x80000000, 0xFFFFFFFF, 0x9E3779B9, 0x1BD11BDA, 3000000000], np.uint32)
D32 = np.array([2, 0x80000001, 3, 0x9E3779B9, 0x7FFFFFFF, 7], np.uint32)
NUMBER = 123456789
_TO_SIX = "(tensor<i32>, tensor<6xi32>, tensor<i32>) -> tensor<6xi32>"
WIDE = np.array([150, -150, 300, 70000, -70000, 127, -128, 0x7FFF8081], np.int32)
LEAST = {width: np.iinfo(f"int{width}").min for width in (8, 16, 32)}


def _wrapped(array: Array, dtype: str) -> Array:
    return array.astype(dtype)


def _numbers() -> list[Case]:
    """Integers that are no floats, as constants and operands."""
    cases = [
        _with_constant("add", NUMBER, I32, _wrapped(I32.astype(np.int64) + NUMBER, "int32")),
        _with_constant("subtract", NUMBER, I32, _wrapped(I32.astype(np.int64) - NUMBER, "int32")),
        _with_constant("multiply", NUMBER, I32, _wrapped(I32.astype(np.int64) * NUMBER, "int32")),
        _with_constant("xor", 466688986, U32, U32 ^ np.uint32(466688986)),
        _with_constant("or", 466688986, U32, U32 | np.uint32(466688986)),
        _with_constant("maximum", NUMBER, I32, np.maximum(I32, NUMBER)),
        _with_constant("add", 0xBD11BDA1, U32, U32 + np.uint32(0xBD11BDA1)),
        _with_constant("divide", 16777217, I32, np.array([0, 1, -1, 127, -127, 0], np.int32)),
        _with_constant("remainder", 16777217, I32, np.fmod(I32, 16777217)),
        _binary("divide_ui32", "divide", U32, D32, U32 // D32),
        _binary("remainder_ui32", "remainder", U32, D32, U32 % D32),
    ]
    for low, high in ((-NUMBER, NUMBER), (16777217, 2147483646)):
        body = f"""
            %a = stablehlo.constant dense<{low}> : tensor<i32>
            %b = stablehlo.constant dense<{high}> : tensor<i32>
            %r = "stablehlo.clamp"(%a, %0, %b) : {_TO_SIX}"""
        name = f"clamp_to_{high}"
        cases.append(Case(name, body, [I32], np.clip(I32, low, high)))
    body = """
        %c = stablehlo.constant dense<16777217> : tensor<6xi32>
        %n = stablehlo.constant dense<123456789> : tensor<6xi32>
        %p = stablehlo.compare GT, %0, %c : (tensor<6xi32>, tensor<6xi32>) -> tensor<6xi1>
        %r = stablehlo.select %p, %0, %n : tensor<6xi1>, tensor<6xi32>"""
    cases.append(Case("select_a_number", body, [I32], np.where(I32 > 16777217, I32, NUMBER)))
    body = """
        %c = stablehlo.constant dense<123456789> : tensor<i32>
        %r = stablehlo.pad %0, %c, low = [1], high = [2], interior = [0]
            : (tensor<6xi32>, tensor<i32>) -> tensor<9xi32>"""
    cases.append(
        Case("pad_with_a_number", body, [I32], np.pad(I32, (1, 2), constant_values=NUMBER))
    )
    return cases


def _conversions() -> list[Case]:
    """To narrower integers: those of integers take the lowest bits, those of floats end at the
    limits, as XLA's do."""
    floats = np.array([1e9, -1e9, 300.7, -129.5, 3.9, -3.9, np.nan, 255.0], np.float32)
    cases: list[Case] = []
    for name in ("int8", "int16", "uint8", "uint16"):
        limits = np.iinfo(name)
        cases.append(_convert(f"i32_to_{name}", WIDE, WIDE.astype(name)))
        ended = np.clip(np.trunc(np.nan_to_num(floats)), limits.min, limits.max).astype(name)
        cases.append(_convert(f"f32_to_{name}", floats, ended))
    small = np.array([200, 255, 127, 128], np.uint8)
    cases.append(_convert("ui8_to_i8", small, small.astype(np.int8)))
    below = np.array([-1, -128, 127, 0], np.int8)
    cases.append(_convert("i8_to_ui16", below, below.astype(np.uint16)))
    return cases


def _remainders() -> list[Case]:
    """The sign is the dividend's, of the least number too."""
    cases: list[Case] = []
    for width, least in LEAST.items():
        given = np.array([least, least, least + 1, 7, -7, 7], f"int{width}")
        divisors = np.array([3, -3, 5, -3, 3, 3], f"int{width}")
        expected = np.fmod(given.astype(np.int64), divisors.astype(np.int64))
        cases.append(_binary(f"remainder_i{width}", "remainder", given, divisors, expected))
    return cases


def _shifted() -> list[Case]:
    """Pads that cut off as much as they add."""
    rows = np.arange(12, dtype=np.float32).reshape(4, 3)
    body = """
        %c = stablehlo.constant dense<0.0> : tensor<f32>
        %r = stablehlo.pad %0, %c, low = [{low}, 0], high = [{high}, 0], interior = [0, 0]
            : (tensor<4x3xf32>, tensor<f32>) -> tensor<4x3xf32>"""
    down, up = np.pad(rows[:-1], ((1, 0), (0, 0))), np.pad(rows[1:], ((0, 1), (0, 0)))
    return [
        Case("shift_down", body.format(low=1, high=-1), [rows], down),
        Case("shift_up", body.format(low=-1, high=1), [rows], up),
    ]


def cases() -> list[Case]:
    """All of them."""
    return [*_numbers(), *_conversions(), *_remainders(), *_shifted()]
