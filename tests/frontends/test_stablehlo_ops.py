"""Import of each StableHLO op, against its meaning written down here.

The meanings are those of the specification (https://openxla.org/stablehlo/spec), in plain numpy,
and share nothing with the compiler. The import is run by the golden meaning of TTIR.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import numpy as np
import pytest

from tests.frontends.running import refusals
from tests.frontends.stablehlo import run_text

Array = np.ndarray
GENERATOR = np.random.default_rng(7)
FLOATS = GENERATOR.normal(size=(3, 4)).astype(np.float32)
OTHERS = (GENERATOR.normal(size=(3, 4)) + 0.1).astype(np.float32)
INTEGERS = GENERATOR.integers(-9, 9, (3, 4)).astype(np.int32)
DIVISORS = np.where(GENERATOR.random((3, 4)) < 0.5, 3, -4).astype(np.int32)
FLAGS = GENERATOR.random((3, 4)) < 0.5
SIGNS = GENERATOR.random((3, 4)) < 0.5

NAMES = {"float32": "f32", "int32": "i32", "bool": "i1", "int64": "i64", "uint32": "ui32"}


def type_of(array: Array) -> str:
    sizes = "".join(f"{size}x" for size in array.shape)
    return f"tensor<{sizes}{NAMES[array.dtype.name]}>"


def run(operation: str, operands: Sequence[Array], results: Sequence[Array]) -> list[Array]:
    """Runs one operation; `{types}` in its text is its function type."""
    types = ", ".join(type_of(each) for each in operands)
    outputs = ", ".join(type_of(each) for each in results)
    names = ", ".join(f"%x{index}" for index in range(len(operands)))
    arguments = ", ".join(f"%x{index}: {type_of(each)}" for index, each in enumerate(operands))
    count = f":{len(results)}" if len(results) > 1 else ""
    returned = ", ".join(f"%r#{i}" for i in range(len(results))) if count else "%r"
    body = operation.replace("{operands}", names).replace("{types}", f"({types}) -> ({outputs})")
    text = f"""
    func.func @main({arguments}) -> ({outputs}) {{
      %r{count} = {body}
      return {returned} : {outputs}
    }}"""
    return run_text(text, operands)


def check(operation: str, operands: Sequence[Array], *expected: Any) -> None:
    wanted = [np.asarray(each) for each in expected]
    found = run(operation, operands, wanted)
    for got, want in zip(found, wanted, strict=True):
        assert got.shape == want.shape
        np.testing.assert_allclose(
            got.astype(np.float64), want.astype(np.float64), rtol=2e-5, atol=2e-5
        )


UNARY: list[tuple[str, Callable[[Array], Array], Array]] = [
    ("abs", np.abs, FLOATS),
    ("cbrt", np.cbrt, FLOATS),
    ("ceil", np.ceil, FLOATS),
    ("cosine", np.cos, FLOATS),
    ("exponential", np.exp, FLOATS),
    ("exponential_minus_one", np.expm1, FLOATS),
    ("floor", np.floor, FLOATS),
    ("log", np.log, np.abs(FLOATS)),
    ("log_plus_one", np.log1p, np.abs(FLOATS)),
    ("logistic", lambda x: 1 / (1 + np.exp(-x)), FLOATS),
    ("negate", np.negative, INTEGERS),
    ("not", np.logical_not, FLAGS),
    ("not", np.invert, INTEGERS),
    ("popcnt", lambda x: np.vectorize(lambda n: bin(int(n) & 0xFFFFFFFF).count("1"))(x), INTEGERS),
    (
        "count_leading_zeros",
        lambda x: np.vectorize(lambda n: 32 - (int(n) & 0xFFFFFFFF).bit_length())(x),
        INTEGERS,
    ),
    ("round_nearest_even", np.rint, FLOATS * 3),
    ("round_nearest_even", np.rint, np.asarray([0.5, 1.5, 2.5, -0.5, -1.5, -2.5], np.float32)),
    (
        "round_nearest_afz",
        lambda x: np.sign(x) * np.floor(np.abs(x) + 0.5),
        np.asarray([0.5, 1.5, 2.5, -0.5, -1.5, -2.4], np.float32),
    ),
    ("rsqrt", lambda x: 1 / np.sqrt(x), np.abs(FLOATS)),
    ("sign", np.sign, FLOATS),
    ("sine", np.sin, FLOATS),
    ("sqrt", np.sqrt, np.abs(FLOATS)),
    ("tan", np.tan, FLOATS),
    ("tanh", np.tanh, FLOATS),
]


@pytest.mark.parametrize(("name", "meaning", "x"), UNARY)
@pytest.mark.parametrize("form", ["stablehlo.{} {{operands}} : {{types}}",
                                  '"mhlo.{}"({{operands}}) : {{types}}'])  # fmt: skip
def test_unary(name: str, meaning: Callable[[Array], Array], x: Array, form: str) -> None:
    check(form.format(name), [x], meaning(x).astype(x.dtype))


BINARY: list[tuple[str, Callable[[Array, Array], Array], Array, Array]] = [
    ("add", np.add, FLOATS, OTHERS),
    ("add", np.logical_or, FLAGS, SIGNS),
    ("and", np.logical_and, FLAGS, SIGNS),
    ("and", np.bitwise_and, INTEGERS, DIVISORS),
    ("atan2", np.arctan2, FLOATS, OTHERS),
    ("divide", np.divide, FLOATS, OTHERS),
    ("divide", lambda a, b: np.trunc(a / b), INTEGERS, DIVISORS),
    ("maximum", np.maximum, FLOATS, OTHERS),
    ("maximum", np.logical_or, FLAGS, SIGNS),
    ("minimum", np.minimum, INTEGERS, DIVISORS),
    ("minimum", np.logical_and, FLAGS, SIGNS),
    ("multiply", np.multiply, FLOATS, OTHERS),
    ("multiply", np.logical_and, FLAGS, SIGNS),
    ("or", np.bitwise_or, INTEGERS, DIVISORS),
    ("power", np.power, np.abs(FLOATS), OTHERS),
    ("remainder", np.fmod, FLOATS, OTHERS),
    ("remainder", np.fmod, INTEGERS, DIVISORS),
    ("shift_left", np.left_shift, INTEGERS, np.abs(DIVISORS)),
    ("shift_right_arithmetic", np.right_shift, INTEGERS, np.abs(DIVISORS)),
    (
        "shift_right_logical",
        lambda a, b: (a.astype(np.uint32) >> b.astype(np.uint32)).astype(np.int32),
        INTEGERS,
        np.abs(DIVISORS),
    ),
    ("subtract", np.subtract, FLOATS, OTHERS),
    ("xor", np.bitwise_xor, INTEGERS, DIVISORS),
    ("xor", np.logical_xor, FLAGS, SIGNS),
]


@pytest.mark.parametrize(("name", "meaning", "a", "b"), BINARY)
def test_binary(name: str, meaning: Callable[[Array, Array], Array], a: Array, b: Array) -> None:
    check(f"stablehlo.{name} {{operands}} : {{types}}", [a, b], meaning(a, b).astype(a.dtype))


def _total_order(array: Array) -> Array:
    """Integers that are ordered as the bits of these floats are in IEEE 754."""
    bits = array.view(np.int32)
    return np.where(bits < 0, np.int32(-(2**31)) - bits - 1, bits)


@pytest.mark.parametrize("kind", ["FLOAT", "TOTALORDER"])
@pytest.mark.parametrize(
    ("direction", "meaning"),
    [("EQ", np.equal), ("NE", np.not_equal), ("GE", np.greater_equal), ("GT", np.greater),
     ("LE", np.less_equal), ("LT", np.less)],
)  # fmt: skip
def test_compare(direction: str, meaning: Callable[[Array, Array], Array], kind: str) -> None:
    a, b = np.rint(FLOATS), np.rint(OTHERS)
    form = f"stablehlo.compare {direction}, {{operands}}, {kind} : {{types}}"
    # The total order of IEEE 754 has -0.0 before 0.0.
    keys = [_total_order(x) if kind == "TOTALORDER" else x for x in (a, b)]
    check(form, [a, b], meaning(*keys))
    generic = (
        f'"stablehlo.compare"({{operands}}) <{{comparison_direction = '
        f"#stablehlo<comparison_direction {direction}>}}> : {{types}}"
    )
    check(generic, [a, b], meaning(a, b))


def test_select_and_clamp() -> None:
    check("stablehlo.select {operands} : {types}", [FLAGS, FLOATS, OTHERS],
          np.where(FLAGS, FLOATS, OTHERS))  # fmt: skip
    one = np.asarray(True)
    check("stablehlo.select {operands} : {types}", [one, FLOATS, OTHERS], FLOATS)
    low, high = np.float32(-0.5), np.float32(0.25)
    check("stablehlo.clamp {operands} : {types}",
          [np.asarray(low), FLOATS, np.asarray(high)], np.clip(FLOATS, low, high))  # fmt: skip


# Movement


def test_broadcast_in_dim() -> None:
    x = FLOATS[:, :1].reshape(3, 1)
    expected = np.broadcast_to(x.reshape(3, 1, 1), (3, 2, 4)).astype(np.float32)
    check("stablehlo.broadcast_in_dim {operands}, dims = [0, 2] : {types}", [x], expected)
    swapped = np.broadcast_to(FLOATS.T.reshape(4, 1, 3), (4, 2, 3))
    check("stablehlo.broadcast_in_dim {operands}, dims = [2, 0] : {types}", [FLOATS], swapped)


def test_pad_grows_between_elements_and_cuts_off() -> None:
    value = np.asarray(9.0, np.float32)
    expected = np.full((3, 7), 9.0, np.float32)
    expected[:, ::2] = FLOATS
    form = "stablehlo.pad {operands}, low = [1, -1], high = [-1, 2], interior = [0, 1] : {types}"
    result = np.full((3, 8), 9.0, np.float32)
    result[1:] = np.pad(expected[:2, 1:], ((0, 0), (0, 2)), constant_values=9.0)
    check(form, [FLOATS, value], result)


def test_slices() -> None:
    check("stablehlo.slice {operands} [0:3:2, 1:3] : {types}", [FLOATS], FLOATS[0:3:2, 1:3])
    for row, column in ((1, 2), (-4, 9), (0, 0)):
        starts = [np.asarray(row, np.int32), np.asarray(column, np.int32)]
        r, c = min(max(row, 0), 1), min(max(column, 0), 2)
        form = "stablehlo.dynamic_slice {operands}, sizes = [2, 2] : {types}"
        check(form, [FLOATS, *starts], FLOATS[r : r + 2, c : c + 2])
        update = np.ones((2, 2), np.float32)
        expected = FLOATS.copy()
        expected[r : r + 2, c : c + 2] = 1
        form = "stablehlo.dynamic_update_slice {operands} : {types}"
        check(form, [FLOATS, update, *starts], expected)


def test_a_row_of_a_cache_is_chosen() -> None:
    """One place along one dimension, which is clamped; nothing else is read there, not even NaN."""
    cache = FLOATS.copy()
    cache[1] = np.nan
    row = np.full((1, 4), 7.0, np.float32)
    for place in (1, -3, 9):
        starts = [np.asarray(place, np.int32), np.asarray(0, np.int32)]
        expected = cache.copy()
        expected[min(max(place, 0), 2)] = 7.0
        form = "stablehlo.dynamic_update_slice {operands} : {types}"
        check(form, [cache, row, *starts], expected)


def test_other_movements() -> None:
    check("stablehlo.transpose {operands}, dims = [1, 0] : {types}", [FLOATS], FLOATS.T)
    check("stablehlo.reverse {operands}, dims = [1] : {types}", [FLOATS], FLOATS[:, ::-1])
    check("stablehlo.reshape {operands} : {types}", [FLOATS], FLOATS.reshape(2, 6))
    check("stablehlo.concatenate {operands}, dim = 1 : {types}", [FLOATS, OTHERS],
          np.concatenate([FLOATS, OTHERS], 1))  # fmt: skip
    check("stablehlo.iota dim = 1 : tensor<3x4xi32>", [], np.tile(np.arange(4, dtype=np.int32),
                                                                  (3, 1)))  # fmt: skip


# Products


def dot_general(a: Array, b: Array, batch: Any, contracted: Any) -> Array:
    free_a = [d for d in range(a.ndim) if d not in batch[0] + contracted[0]]
    free_b = [d for d in range(b.ndim) if d not in batch[1] + contracted[1]]
    shape = [a.shape[d] for d in batch[0] + free_a] + [b.shape[d] for d in free_b]
    result = np.zeros(shape)
    for place in np.ndindex(*shape):
        in_batch = place[: len(batch[0])]
        in_a = place[len(batch[0]) : len(batch[0]) + len(free_a)]
        in_b = place[len(batch[0]) + len(free_a) :]
        for inner in np.ndindex(*[a.shape[d] for d in contracted[0]]):
            at_a, at_b = [0] * a.ndim, [0] * b.ndim
            for dims, places in ((batch[0], in_batch), (free_a, in_a), (contracted[0], inner)):
                for dim, index in zip(dims, places, strict=True):
                    at_a[dim] = index
            for dims, places in ((batch[1], in_batch), (free_b, in_b), (contracted[1], inner)):
                for dim, index in zip(dims, places, strict=True):
                    at_b[dim] = index
            result[place] += a[tuple(at_a)] * b[tuple(at_b)]
    return result.astype(np.float32)


@pytest.mark.parametrize(
    ("shapes", "batch", "contracted"),
    [
        (((3, 4), (4, 5)), ([], []), ([1], [0])),
        (((3, 4), (5, 4)), ([], []), ([1], [1])),
        (((4, 3), (4, 5)), ([], []), ([0], [0])),
        (((2, 3, 4), (4, 5)), ([], []), ([2], [0])),
        (((2, 3, 4), (2, 4, 5)), ([0], [0]), ([2], [1])),
        (((2, 3, 4), (2, 5, 4)), ([0], [0]), ([2], [2])),
        (((2, 4, 3), (2, 4, 5)), ([0], [0]), ([1], [1])),
        (((3, 2, 4), (5, 4, 2)), ([1], [2]), ([2], [1])),
        (((2, 3, 4), (3, 4, 5)), ([], []), ([1, 2], [0, 1])),
        (((3,), (3,)), ([], []), ([0], [0])),
        (((2, 3), (2, 3)), ([0], [0]), ([1], [1])),
    ],
)
def test_dot_general(shapes: Any, batch: Any, contracted: Any) -> None:
    a, b = (GENERATOR.normal(size=shape).astype(np.float32) for shape in shapes)
    form = "stablehlo.dot_general {operands}, "
    if batch[0]:
        form += f"batching_dims = {batch[0]} x {batch[1]}, "
    form += f"contracting_dims = {contracted[0]} x {contracted[1]} : {{types}}"
    check(form, [a, b], dot_general(a, b, batch, contracted))


def convolution(
    image: Array, kernel: Array, stride: Any, pad: Any, lhs: Any, rhs: Any, reverse: Any,
    groups: int, batches: int,
) -> Array:  # fmt: skip
    """Of `[b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1]`."""
    batch, channels, *extents = image.shape
    filters, inner, *window = kernel.shape
    wide = np.zeros(
        [batch, channels, *((e - 1) * d + 1 for e, d in zip(extents, lhs, strict=True))]
    )
    wide[(slice(None), slice(None), *(slice(None, None, d) for d in lhs))] = image
    low = [max(p[0], 0) for p in pad]
    high = [max(p[1], 0) for p in pad]
    wide = np.pad(wide, [(0, 0), (0, 0), *zip(low, high, strict=True)])
    cut = [slice(max(-p[0], 0), size - max(-p[1], 0))
           for p, size in zip(pad, wide.shape[2:], strict=True)]  # fmt: skip
    wide = wide[(slice(None), slice(None), *cut)]
    flips = tuple(axis + 2 for axis, flag in enumerate(reverse) if flag)
    kernel = np.flip(kernel, flips) if flips else kernel
    sizes = [(n - (k - 1) * d - 1) // s + 1
             for n, k, d, s in zip(wide.shape[2:], window, rhs, stride, strict=True)]  # fmt: skip
    result = np.zeros([batch // batches, filters, *sizes])
    for b, f in product(range(batch // batches), range(filters)):
        group = f // (filters // max(groups, batches))
        source = b + (group * (batch // batches) if batches > 1 else 0)
        first = group * inner if groups > 1 else 0
        for place in np.ndindex(*sizes):
            for tap in np.ndindex(*window):
                at = [p * s + t * d for p, s, t, d in zip(place, stride, tap, rhs, strict=True)]
                values = wide[(source, slice(first, first + inner), *at)]
                result[(b, f, *place)] += values @ kernel[(f, slice(None), *tap)]
    return result.astype(np.float32)


@pytest.mark.parametrize(
    ("shapes", "stride", "pad", "lhs", "rhs", "reverse", "groups", "batches"),
    [
        (((2, 3, 6, 5), (4, 3, 3, 2)), (1, 1), ((0, 0), (0, 0)), (1, 1), (1, 1), (0, 0), 1, 1),
        (((1, 3, 7, 6), (4, 3, 3, 3)), (2, 1), ((1, 2), (0, 1)), (1, 1), (1, 2), (0, 0), 1, 1),
        (((1, 4, 5, 5), (6, 2, 3, 3)), (1, 1), ((1, 1), (1, 1)), (1, 1), (1, 1), (1, 0), 2, 1),
        (((1, 2, 4, 4), (3, 2, 3, 3)), (1, 1), ((1, 1), (1, 1)), (2, 2), (1, 1), (0, 0), 1, 1),
        (((1, 2, 4, 4), (3, 2, 3, 3)), (1, 1), ((1, 2), (1, 2)), (2, 2), (1, 1), (1, 1), 1, 1),
        (((1, 2, 4, 4), (3, 2, 2, 2)), (1, 1), ((1, 1), (1, 1)), (2, 2), (1, 1), (0, 0), 1, 1),
        (((4, 2, 5, 5), (6, 2, 3, 3)), (1, 1), ((0, 0), (0, 0)), (1, 1), (1, 1), (0, 0), 1, 2),
        (((1, 2, 6, 6), (3, 2, 3, 3)), (1, 1), ((-1, 0), (0, -1)), (1, 1), (1, 1), (0, 0), 1, 1),
        (((1, 2, 6), (3, 2, 3)), (2,), ((1, 1),), (1,), (1,), (0,), 1, 1),
        (((1, 2, 4, 4, 4), (3, 2, 2, 3, 2)), (1, 2, 1), ((0, 1), (1, 1), (0, 0)), (1, 1, 1),
         (1, 1, 1), (0, 0, 0), 1, 1),
    ],
)  # fmt: skip
def test_convolution(
    shapes: Any, stride: Any, pad: Any, lhs: Any, rhs: Any, reverse: Any, groups: int, batches: int
) -> None:
    image, kernel = (GENERATOR.normal(size=shape).astype(np.float32) for shape in shapes)
    expected = convolution(image, kernel, stride, pad, lhs, rhs, reverse, groups, batches)
    rank = image.ndim - 2
    spatial = ", ".join(map(str, range(rank)))
    flags = ", ".join("true" if flag else "false" for flag in reverse)
    window = (
        f"stride = {list(stride)}, pad = {[list(p) for p in pad]}, lhs_dilate = {list(lhs)}, "
        f"rhs_dilate = {list(rhs)}, reverse = [{flags}]"
    )
    numbers = f"batch_group_count = {batches} : i64, feature_group_count = {groups} : i64"
    form = (
        f"stablehlo.convolution({{operands}}) dim_numbers = [b, f, {spatial}]x[o, i, {spatial}]"
        f"->[b, f, {spatial}], window = {{{window}}} {{{numbers}}} : {{types}}"
    )
    check(form, [image, kernel], expected)
    # The same in the order of jax, and in the generic form.
    moved = np.moveaxis(image, 1, -1), np.moveaxis(np.moveaxis(kernel, 0, -1), 0, -2)
    attribute = f"#stablehlo.conv<[b, {spatial}, f]x[{spatial}, i, o]->[b, {spatial}, f]>"
    widths = str([list(p) for p in pad])
    generic = (
        f'"stablehlo.convolution"({{operands}}) <{{dimension_numbers = {attribute}, {numbers}, '
        f"window_strides = array<i64: {', '.join(map(str, stride))}>, "
        f"padding = dense<{widths}> : tensor<{rank}x2xi64>, "
        f"lhs_dilation = array<i64: {', '.join(map(str, lhs))}>, "
        f"rhs_dilation = array<i64: {', '.join(map(str, rhs))}>, "
        f"window_reversal = array<i1: {flags}>}}> : {{types}}"
    )
    check(generic, list(moved), np.moveaxis(expected, 1, -1))


@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize(
    ("source", "target"), [("ui32", "ui16"), ("ui32", "ui8"), ("f32", "ui16"), ("ui16", "f32")]
)
def test_bitcast_between_sizes(source: str, target: str, known: bool) -> None:
    dtypes = {"ui32": np.uint32, "ui16": np.uint16, "ui8": np.uint8, "f32": np.float32}
    from_, to = (np.dtype(dtypes[name]) for name in (source, target))
    floats = np.asarray([[1.5, -2.25, 3.0e5], [0.1, 7.0, -1.0e-3]], np.float32)
    bits = floats.view(from_).reshape(2, 3, *([2] if from_.itemsize < 4 else []))
    expected = bits.view(to)
    expected = expected.reshape(*bits.shape, -1) if to.itemsize < from_.itemsize else expected
    expected = expected.reshape(2, 3) if to.itemsize == 4 else expected

    def type_of_bits(array: Array, name: str) -> str:
        return f"tensor<{'x'.join(map(str, array.shape))}x{name}>"

    types = type_of_bits(bits, source), type_of_bits(expected, target)
    value = f"stablehlo.constant dense<{bits.tolist()}> : {types[0]}"
    text = f"""
    func.func @main(%x: {types[0]}) -> {types[1]} {{
      %c = {value if known else f"stablehlo.optimization_barrier %x : {types[0]}"}
      %r = stablehlo.bitcast_convert %c : ({types[0]}) -> {types[1]}
      return %r : {types[1]}
    }}"""
    (found,) = run_text(text, [bits])
    assert found.astype(to).tobytes() == expected.tobytes()


def test_a_bitcast_keeps_all_bits() -> None:
    text = """
    func.func @main(%x: tensor<4x3xui16>) -> tensor<4xui32> {
      %r = stablehlo.bitcast_convert %x : (tensor<4x3xui16>) -> tensor<4xui32>
      return %r : tensor<4xui32>
    }"""
    (message,) = refusals(text)
    assert "(4, 3) elements of 16 bits are not (4,) of 32" in message


def test_the_next_number_of_constants() -> None:
    text = """
    func.func @main() -> tensor<2xf32> {
      %x = stablehlo.constant dense<[1.0, -2.0]> : tensor<2xf32>
      %y = stablehlo.constant dense<[2.0, 0.0]> : tensor<2xf32>
      %r = chlo.next_after %x, %y : tensor<2xf32>, tensor<2xf32> -> tensor<2xf32>
      return %r : tensor<2xf32>
    }"""
    expected = np.nextafter(np.asarray([1, -2], np.float32), np.asarray([2, 0], np.float32))
    np.testing.assert_array_equal(run_text(text, [])[0], expected)


def test_tuples() -> None:
    text = """
    func.func @main(%x: tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<2x1xi32>) {
      %t = stablehlo.tuple %x, %x : tuple<tensor<2x3xf32>, tensor<2x3xf32>>
      %a = stablehlo.get_tuple_element %t[1] :
        (tuple<tensor<2x3xf32>, tensor<2x3xf32>>) -> tensor<2x3xf32>
      %k = stablehlo.custom_call @mhlo.topk(%a) {mhlo.attributes = {k = 1 : i64, largest = true}} :
        (tensor<2x3xf32>) -> tuple<tensor<2x1xf32>, tensor<2x1xi32>>
      %i = stablehlo.get_tuple_element %k[1] :
        (tuple<tensor<2x1xf32>, tensor<2x1xi32>>) -> tensor<2x1xi32>
      return %a, %i : tensor<2x3xf32>, tensor<2x1xi32>
    }"""
    x = FLOATS[:2, :3]
    same, places = run_text(text, [x])
    np.testing.assert_array_equal(same, x)
    np.testing.assert_array_equal(places[:, 0], x.argmax(1))


def test_shardings_over_a_mesh_of_one_device_change_nothing() -> None:
    text = """
    sdy.mesh @mesh = <["x"=1, "y"=1]>
    func.func @main(%x: tensor<3x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {?}]>})
        -> (tensor<3x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) {
      %0 = sdy.sharding_constraint %x <@mesh, [{"x"}, {}]> : tensor<3x4xf32>
      %1 = sdy.reshard %0 <@mesh, [{}, {}]> : tensor<3x4xf32>
      %2 = sdy.all_gather [{"x"}, {}] %1 out_sharding=<@mesh, [{}, {}]> : tensor<3x4xf32>
      %3 = sdy.all_slice [{"x"}, {}] %2 out_sharding=<@mesh, [{"x"}, {}]> : tensor<3x4xf32>
      %4 = sdy.all_reduce {"x"} %3 out_sharding=<@mesh, [{}, {}]> : tensor<3x4xf32>
      return %4 : tensor<3x4xf32>
    }"""
    np.testing.assert_array_equal(run_text(text, [FLOATS])[0], FLOATS)
