"""Import of StableHLO ops, against the results of XLA.

Runs where jax is installed: its compiler takes the same text. Each module is imported, run by the
golden meaning of TTIR, and compiled.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pytest

# A folder of examples may be found as `jax` where jax itself is not installed.
backend = pytest.importorskip("jax.extend.backend", reason="jax is not installed: pip install jax")
import jax  # noqa: E402
import ml_dtypes  # noqa: E402
from jax.interpreters.mlir import make_ir_context  # noqa: E402
from jaxlib import _jax  # noqa: E402
from jaxlib.mlir import ir  # noqa: E402

from tests.frontends.running import run as run_import  # noqa: E402

pytestmark = pytest.mark.frameworks

DTYPES: dict[str, Any] = {
    "f32": np.float32,
    "bf16": ml_dtypes.bfloat16,
    "f16": np.float16,
    "i1": np.bool_,
    "i8": np.int8,
    "i16": np.int16,
    "i32": np.int32,
    "ui8": np.uint8,
    "ui16": np.uint16,
    "ui32": np.uint32,
    "complex<f32>": np.complex64,
}
ROWS = "offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0]"
TO_ROWS = (
    "update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], "
    "index_vector_dim = 1"
)


class Case(NamedTuple):
    """An operation, the types of its operands %0, %1 ... and of its results."""

    name: str
    operation: str
    operands: Sequence[str]
    results: Sequence[str]
    before: str = ""

    @property
    def text(self) -> str:
        """A module of it."""
        arguments = ", ".join(f"%{i}: tensor<{each}>" for i, each in enumerate(self.operands))
        types = ", ".join(f"tensor<{each}>" for each in self.results)
        count = len(self.results)
        names = ", ".join(f"%r#{index}" for index in range(count)) if count > 1 else "%r"
        return f"""module {{
          func.func public @main({arguments}) -> ({types}) {{
            {self.before}
            %r{f":{count}" if count > 1 else ""} = {self.operation}
            return {names} : {types}
          }}
        }}"""

    def inputs(self) -> list[np.ndarray]:
        """Small numbers, the same in each run."""
        generator = np.random.default_rng(11)
        found: list[np.ndarray] = []
        for each in self.operands:
            match = re.fullmatch(r"((?:\d+x)*)(.+)", each)
            assert match is not None
            shape = [int(size) for size in match[1].split("x")[:-1]]
            dtype = np.dtype(DTYPES[match[2]])
            if dtype == np.complex64:
                drawn = generator.normal(size=shape) + 1j * generator.normal(size=shape)
            elif np.issubdtype(dtype, np.integer):
                drawn = generator.permutation(int(np.prod(shape))).reshape(shape) % 7
            else:
                drawn = generator.normal(size=shape)
                drawn = drawn > 0 if dtype == np.bool_ else drawn
            found.append(np.asarray(drawn).astype(dtype))
        return found


def _elementwise() -> Iterator[Case]:
    unary = "abs cbrt ceil cosine exponential floor logistic negate sign sine tan tanh"
    for name in unary.split():
        for element in ("bf16", "f16"):
            yield Case(
                f"{name} {element}",
                f"stablehlo.{name} %0 : tensor<4x6x{element}>",
                [f"4x6x{element}"],
                [f"4x6x{element}"],
            )
    for name in ("add", "subtract", "multiply", "maximum", "minimum", "and", "or", "xor"):
        for element in ("i8", "i16", "ui8", "ui16", "ui32"):
            type_ = f"4x6x{element}"
            operation = f"stablehlo.{name} %0, %1 : tensor<{type_}>"
            yield Case(f"{name} {element}", operation, [type_, type_], [type_])
    for element in ("i8", "ui8", "ui16", "ui32"):
        type_ = f"4x6x{element}"
        yield Case(
            f"shift_right_arithmetic {element}",
            f"stablehlo.shift_right_arithmetic %n, %1 : tensor<{type_}>",
            [type_, type_],
            [type_],
            f"%n = stablehlo.not %0 : tensor<{type_}>",
        )
    for name in ("popcnt", "count_leading_zeros", "not"):
        for element in ("i8", "i16", "ui8", "ui16", "ui32"):
            type_ = f"4x6x{element}"
            operation = f"stablehlo.{name} %0 : tensor<{type_}>"
            yield Case(f"{name} {element}", operation, [type_], [type_])
    for source in ("f32", "bf16", "i1", "i8", "i32", "ui8", "ui32"):
        for target in ("f32", "bf16", "i1", "i8", "i32", "ui16", "ui32"):
            # Floats below zero are no numbers without a sign.
            if source != target and not (source in ("f32", "bf16") and target.startswith("ui")):
                operation = f"stablehlo.convert %n : ({{0}}<4x6x{source}>) -> {{0}}<4x6x{target}>"
                negative = f"%n = stablehlo.negate %0 : tensor<4x6x{source}>"
                if source == "i1":
                    negative = "%n = stablehlo.not %0 : tensor<4x6xi1>"
                yield Case(
                    f"{source} to {target}",
                    operation.format("tensor"),
                    [f"4x6x{source}"],
                    [f"4x6x{target}"],
                    negative,
                )


def _gathers() -> Iterator[Case]:
    def gather(name: str, value: str, places: str, result: str, dims: str, sizes: str) -> Case:
        operation = (
            f'"stablehlo.gather"(%0, %1) <{{dimension_numbers = #stablehlo.gather<{dims}>, '
            f"slice_sizes = array<i64: {sizes}>}}> "
            f": (tensor<{value}>, tensor<{places}>) -> tensor<{result}>"
        )
        return Case(name, operation, [value, places], [result])

    windows = "offset_dims = [1, 2], start_index_map = [0, 1]"
    batch = "collapsed_slice_dims = [1], operand_batching_dims = [0], start_index_map = [1]"
    yield gather("rows", "10x4xf32", "3x1xi32", "3x4xf32", f"{ROWS}, index_vector_dim = 1", "1, 4")
    yield gather("rows outside the table", "3x4xf32", "9xi32", "9x4xf32",
                 f"{ROWS}, index_vector_dim = 1", "1, 4")  # fmt: skip
    yield gather("rows of integers", "10x4xi32", "3xi32", "3x4xi32",
                 f"{ROWS}, index_vector_dim = 1", "1, 4")  # fmt: skip
    yield gather("windows that stick out", "7x5xf32", "3x2xi32", "3x2x3xf32",
                 f"{windows}, index_vector_dim = 1", "2, 3")  # fmt: skip
    yield gather("first dimension of places", "7x5xf32", "2x3xi32", "3x2x3xf32",
                 f"{windows}, index_vector_dim = 0", "2, 3")  # fmt: skip
    yield gather("elements by exchanged places", "7x7xf32", "3x2xi32", "3xf32",
                 "collapsed_slice_dims = [0, 1], start_index_map = [1, 0], index_vector_dim = 1",
                 "1, 1")  # fmt: skip
    yield gather("batches", "5x10x4xf32", "5x3x1xi32", "5x3x4xf32",
                 f"offset_dims = [2], {batch}, start_indices_batching_dims = [0], "
                 "index_vector_dim = 2", "1, 1, 4")  # fmt: skip
    yield gather("batches of another dimension", "5x10x4xf32", "3x5x1xi32", "3x5x4xf32",
                 f"offset_dims = [2], {batch}, start_indices_batching_dims = [1], "
                 "index_vector_dim = 2", "1, 1, 4")  # fmt: skip
    yield gather("truths from the middle", "6x7x8xi1", "2x3x1xui32", "2x3x6x8xi1",
                 "offset_dims = [2, 3], collapsed_slice_dims = [1], start_index_map = [1], "
                 "index_vector_dim = 2", "6, 1, 8")  # fmt: skip


def _scatters() -> Iterator[Case]:
    def scatter(
        name: str, value: str, places: str, update: str, dims: str, body: str, unique: bool = False
    ) -> Case:
        element = f"tensor<{value.rpartition('x')[2]}>"
        kept = f"%z = stablehlo.{body} %x, %y : {element}" if body else ""
        operation = f"""
          "stablehlo.scatter"(%0, %1, %2) <{{
            scatter_dimension_numbers = #stablehlo.scatter<{dims}>,
            unique_indices = {str(unique).lower()}
          }}> ({{
          ^bb0(%x: {element}, %y: {element}):
            {kept}
            stablehlo.return {"%z" if body else "%y"} : {element}
          }}) : (tensor<{value}>, tensor<{places}>, tensor<{update}>) -> tensor<{value}>"""
        return Case(name, operation, [value, places, update], [value])

    for body in ("", "add", "subtract", "multiply", "maximum", "minimum"):
        yield scatter(f"to rows {body}", "10x4xf32", "3x1xi32", "3x4xf32", TO_ROWS, body)
    for body in ("add", "subtract", "multiply"):
        yield scatter(f"to the same rows {body}", "2x4xf32", "9x1xi32", "9x4xf32", TO_ROWS, body)
    for body in ("atan2", "power", "divide"):
        yield scatter(f"any body {body}", "10x4xf32", "3x1xi32", "3x4xf32", TO_ROWS, body, True)
    yield scatter("bits", "10x4xi32", "3x1xi32", "3x4xi32", TO_ROWS, "or", True)
    yield scatter("truths", "10x4xi1", "3x1xi32", "3x4xi1", TO_ROWS, "xor", True)
    yield scatter("elements", "7x7xf32", "3x2xi32", "3xf32",
                  "inserted_window_dims = [0, 1], scatter_dims_to_operand_dims = [1, 0], "
                  "index_vector_dim = 1", "add")  # fmt: skip
    yield scatter("batches", "5x10x4xf32", "5x3x1xi32", "5x3x4xf32",
                  "update_window_dims = [2], inserted_window_dims = [1], input_batching_dims = "
                  "[0], scatter_indices_batching_dims = [0], scatter_dims_to_operand_dims = [1], "
                  "index_vector_dim = 2", "add")  # fmt: skip


def _windows() -> Iterator[Case]:
    forms = {
        "pooling": ("1x8x8x3", "1x4x4x3", "window_dimensions = array<i64: 1, 2, 2, 1>, "
                    "window_strides = array<i64: 1, 2, 2, 1>"),
        "padding": ("1x8x8x3", "1x5x4x3", "window_dimensions = array<i64: 1, 3, 3, 1>, "
                    "window_strides = array<i64: 1, 2, 2, 1>, padding = dense<[[0, 0], [2, 1], "
                    "[1, 0], [0, 0]]> : tensor<4x2xi64>"),
        "dilations": ("2x10x7", "2x6x4", "window_dimensions = array<i64: 1, 3, 2>, "
                      "window_dilations = array<i64: 1, 2, 3>"),
        "holes": ("4x6", "4x10", "window_dimensions = array<i64: 1, 2>, "
                  "base_dilations = array<i64: 1, 2>"),
        "running": ("4x6", "4x6", "window_dimensions = array<i64: 1, 6>, "
                    "padding = dense<[[0, 0], [5, 0]]> : tensor<2x2xi64>"),
        "running back": ("4x6", "4x6", "window_dimensions = array<i64: 1, 6>, "
                         "padding = dense<[[0, 0], [0, 5]]> : tensor<2x2xi64>"),
        "less": ("4x8", "4x5", "window_dimensions = array<i64: 1, 2>, "
                 "padding = dense<[[0, 0], [-1, -1]]> : tensor<2x2xi64>"),
        "volumes": ("1x4x4x4x2", "1x2x2x2x2", "window_dimensions = array<i64: 1, 2, 2, 2, 1>, "
                    "window_strides = array<i64: 1, 2, 2, 2, 1>"),
    }  # fmt: skip
    for body, first in (("add", "0.0"), ("maximum", "0xFF800000"), ("multiply", "1.0")):
        for name, (source, result, attributes) in forms.items():
            operation = f"""
              "stablehlo.reduce_window"(%0, %i) <{{{attributes}}}> ({{
              ^bb0(%x: tensor<f32>, %y: tensor<f32>):
                %z = stablehlo.{body} %x, %y : tensor<f32>
                stablehlo.return %z : tensor<f32>
              }}) : (tensor<{source}xf32>, tensor<f32>) -> tensor<{result}xf32>"""
            first_value = f"%i = stablehlo.constant dense<{first}> : tensor<f32>"
            types = [f"{source}xf32"], [f"{result}xf32"]
            yield Case(f"windows {name} {body}", operation, *types, first_value)


def _selections() -> Iterator[Case]:
    """Of many equal elements the first or the last; padding is never chosen."""
    ties = """
        %c = stablehlo.constant dense<3> : tensor<6x8xi32>
        %m = stablehlo.remainder %0, %c : tensor<6x8xi32>"""
    for direction in ("GE", "GT", "LE", "LT"):
        for element, joins, compares in (("i32", "add", "SIGNED"), ("i1", "or", "UNSIGNED")):
            number = "0" if element == "i32" else "false"
            operation = f"""
              "stablehlo.select_and_scatter"(%{"m" if element == "i32" else "0"}, %1, %i) <{{
                window_dimensions = array<i64: 2, 3>, window_strides = array<i64: 2, 2>,
                padding = dense<[[0, 0], [1, 1]]> : tensor<2x2xi64>}}> ({{
              ^bb0(%x: tensor<{element}>, %y: tensor<{element}>):
                %z = stablehlo.compare {direction}, %x, %y, {compares} :
                  (tensor<{element}>, tensor<{element}>) -> tensor<i1>
                stablehlo.return %z : tensor<i1>
              }}, {{
              ^bb0(%x: tensor<{element}>, %y: tensor<{element}>):
                %z = stablehlo.{joins} %x, %y : tensor<{element}>
                stablehlo.return %z : tensor<{element}>
              }}) : (tensor<6x8x{element}>, tensor<3x4x{element}>, tensor<{element}>)
                -> tensor<6x8x{element}>"""
            before = f"%i = stablehlo.constant dense<{number}> : tensor<{element}>"
            before += ties if element == "i32" else ""
            types = [f"6x8x{element}", f"3x4x{element}"]
            yield Case(f"{direction} of {element}", operation, types, types[:1], before)


def _nothing() -> Iterator[Case]:
    """Reductions of no elements, which are what they start with, and rows without elements."""
    for body in ("add", "maximum", "minimum", "multiply"):
        for dims, result in (("[1]", "3xf32"), ("[0, 1]", "f32"), ("[0]", "0xf32")):
            operation = f"""
              stablehlo.reduce(%0 init: %1) applies stablehlo.{body} across dimensions = {dims} :
                (tensor<3x0xf32>, tensor<f32>) -> tensor<{result}>"""
            yield Case(f"nothing {body} {dims}", operation, ["3x0xf32", "f32"], [result])
    operation = """
      "stablehlo.sort"(%0) <{dimension = 1 : i64, is_stable = true}> ({
      ^bb0(%x: tensor<f32>, %y: tensor<f32>):
        %z = stablehlo.compare LT, %x, %y, TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>
        stablehlo.return %z : tensor<i1>
      }) : (tensor<3x0xf32>) -> tensor<3x0xf32>"""
    yield Case("nothing to sort", operation, ["3x0xf32"], ["3x0xf32"])
    # As `jax.export` writes a sort: what its comparator compares with is outside.
    zero = "%zero = stablehlo.constant dense<0.0> : tensor<f32>"
    operation = """
      "stablehlo.sort"(%0) <{dimension = 1 : i64, is_stable = true}> ({
      ^bb0(%x: tensor<f32>, %y: tensor<f32>):
        %a = stablehlo.compare EQ, %x, %zero, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
        %b = stablehlo.select %a, %zero, %x : tensor<i1>, tensor<f32>
        %c = stablehlo.compare EQ, %y, %zero, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
        %d = stablehlo.select %c, %zero, %y : tensor<i1>, tensor<f32>
        %z = stablehlo.compare LT, %b, %d, TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>
        stablehlo.return %z : tensor<i1>
      }) : (tensor<3x8xf32>) -> tensor<3x8xf32>"""
    yield Case("sort with a number from outside", operation, ["3x8xf32"], ["3x8xf32"], zero)


def _complex() -> Iterator[Case]:
    type_ = "4x6xcomplex<f32>"
    for name in ("add", "subtract", "multiply", "divide", "power"):
        operation = f"stablehlo.{name} %0, %1 : tensor<{type_}>"
        yield Case(f"complex {name}", operation, [type_, type_], [type_])
    for name in ("exponential", "log", "sqrt", "rsqrt", "tanh", "cosine", "sine", "logistic"):
        yield Case(f"complex {name}", f"stablehlo.{name} %0 : tensor<{type_}>", [type_], [type_])
    yield Case("complex abs", f"stablehlo.abs %0 : (tensor<{type_}>) -> tensor<4x6xf32>",
               [type_], ["4x6xf32"])  # fmt: skip
    yield Case("complex product", "stablehlo.dot_general %0, %1, contracting_dims = [1] x [0] : "
               f"(tensor<{type_}>, tensor<6x3xcomplex<f32>>) -> tensor<4x3xcomplex<f32>>",
               [type_, "6x3xcomplex<f32>"], ["4x3xcomplex<f32>"])  # fmt: skip


def _pads() -> Iterator[Case]:
    for low, high, interior, result in (
        ((1, 2), (0, 1), (0, 0), "5x9"),
        ((-1, 2), (0, -3), (0, 0), "3x5"),
        ((0, 0), (0, 0), (1, 2), "7x16"),
        ((-2, 0), (1, 0), (2, 0), "9x6"),
    ):
        yield Case(
            f"pad {low} {high} {interior}",
            f"stablehlo.pad %0, %1, low = {list(low)}, high = {list(high)}, interior = "
            f"{list(interior)} : (tensor<4x6xf32>, tensor<f32>) -> tensor<{result}xf32>",
            ["4x6xf32", "f32"],
            [f"{result}xf32"],
        )


CASES = [
    case
    for cases in (
        _elementwise,
        _gathers,
        _scatters,
        _windows,
        _selections,
        _nothing,
        _complex,
        _pads,
    )
    for case in cases()
]


def of_xla(text: str, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Outputs of a module, compiled and run by XLA."""
    with make_ir_context():
        module = ir.Module.parse(text)
    devices = tuple(jax.local_devices()[:1])
    program = backend.get_backend().compile_and_load(
        module, _jax.DeviceList(devices), _jax.CompileOptions()
    )
    return [np.asarray(each) for each in program.execute([jax.device_put(x) for x in inputs])]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_as_xla_computes_it(case: Case) -> None:
    inputs = case.inputs()
    expected = [_as_pairs(each) for each in of_xla(case.text, inputs)]
    found = run_import(case.text, *[_as_pairs(each) for each in inputs])
    for got, want in zip(found, expected, strict=True):
        assert got.shape == want.shape
        tolerance = 3e-2 if want.dtype.itemsize <= 2 and want.dtype.kind in "fV" else 1e-4
        np.testing.assert_allclose(
            got.astype(np.float64), want.astype(np.float64), rtol=tolerance, atol=tolerance
        )


def _as_pairs(array: np.ndarray) -> np.ndarray:
    if not np.iscomplexobj(array):
        return array
    return np.stack([array.real, array.imag], axis=-1)
