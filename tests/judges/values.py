"""Functions of StableHLO and TTIR with inputs and the values that they have to give.

The values are numpy's, those of the reference interpreters of StableHLO and jax, or found by hand;
none are the product's own.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tests.judges.case import Array, Case, element_of, type_of
from tests.judges.extreme_values import exact_extremes


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
    given = np.array([-3, 0.5, 7], np.float32)
    # The upper bound last; no number if a bound is none.
    for name, low, high, found in (
        ("crossed", "3.0", "-1.0", -1.0),
        ("nan_below", "0x7FC00000", "2.0", np.nan),
        ("nan_above", "-1.0", "0xFFC00000", np.nan),
    ):
        body = f"""
            %a = stablehlo.constant dense<{low}> : tensor<f32>
            %b = stablehlo.constant dense<{high}> : tensor<f32>
            %r = "stablehlo.clamp"(%a, %0, %b)
                : (tensor<f32>, tensor<3xf32>, tensor<f32>) -> tensor<3xf32>"""
        cases.append(Case(f"clamp_{name}", body, [given], np.full(3, found, np.float32)))
    low, high = np.array([3, -1, 2], np.float32), np.array([-1, 3, 2], np.float32)
    body = '%r = "stablehlo.clamp"(%1, %0, %2) : (tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) '
    expected = np.array([-1, 0.5, 2], np.float32)
    cases.append(Case("clamp_tensors", f"{body}-> tensor<3xf32>", [given, low, high], expected))
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
    """To narrower integers: those of integers take the lowest bits, those of floats are cut off
    and end at the limits, as XLA's do."""
    floats = np.array([1e9, -1e9, 300.7, -129.5, 3.9, -3.9, 3e9, -np.inf, 65534.5], np.float32)
    cases: list[Case] = []
    for name in ("int8", "int16", "uint8", "uint16"):
        limits = np.iinfo(name)
        cases.append(_convert(f"i32_to_{name}", WIDE, WIDE.astype(name)))
        ended = np.clip(np.trunc(floats), limits.min, limits.max).astype(name)
        cases.append(_convert(f"f32_to_{name}", floats, ended))
    beyond = np.array([3e9, np.inf, 2147483648.0, 2147483520.0, -3e9, -np.inf, -1.9, 1.9], "f4")
    for name in ("int32", "uint32"):
        limits = np.iinfo(name)
        ended = np.clip(np.trunc(beyond.astype(np.float64)), limits.min, limits.max).astype(name)
        cases.append(_convert(f"f32_to_{name}", beyond, ended))
    small = np.array([200, 255, 127, 128], np.uint8)
    cases.append(_convert("ui8_to_i8", small, small.astype(np.int8)))
    below = np.array([-1, -128, 127, 0], np.int8)
    cases.append(_convert("i8_to_ui16", below, below.astype(np.uint16)))
    return cases


def _remainders() -> list[Case]:
    """The sign is the dividend's, of the lowest number too."""
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


def _products() -> list[Case]:
    """Matmuls of integers, which wrap as sums and products of integers do."""
    draw = np.random.default_rng(0)
    cases: list[Case] = []
    for first, second, result, summed in (
        ("int8", "int8", "int8", 5),
        ("int8", "int8", "int32", 2000),
        ("int8", "uint32", "uint32", 3),
        ("int16", "uint8", "int32", 300),
        ("uint16", "uint16", "uint16", 7),
        ("int32", "int32", "int32", 40),
        ("uint32", "uint32", "uint32", 300),
    ):
        limits = [np.iinfo(name) for name in (first, second)]
        a, b = (
            draw.integers(each.min, each.max, shape, dtype=each.dtype, endpoint=True)
            for each, shape in zip(limits, [(4, summed), (summed, 6)], strict=True)
        )
        expected = (a.astype(np.int64) @ b.astype(np.int64)).astype(result)
        body = f"""
            %r = stablehlo.dot_general %0, %1, contracting_dims = [1] x [0]
            : ({type_of(a)}, {type_of(b)}) -> {type_of(expected)}"""
        cases.append(Case(f"product_{first}_{second}_{result}", body, [a, b], expected))
    given = draw.integers(-128, 127, (4, 6), dtype=np.int8, endpoint=True)
    for between, result in (("uint32", "uint32"), ("uint16", "uint32"), ("int16", "int32")):
        wide = given.astype(between)
        expected = (wide.astype(np.int64) @ wide.T.astype(np.int64)).astype(result)
        body = f"""
            %c = stablehlo.convert %0 : ({type_of(given)}) -> {type_of(wide)}
            %r = stablehlo.dot_general %c, %c, contracting_dims = [1] x [1]
            : ({type_of(wide)}, {type_of(wide)}) -> {type_of(expected)}"""
        cases.append(Case(f"product_of_bytes_as_{between}", body, [given], expected))
    return cases


def _reduced(name: str, kind: str, dtype: str, values: Array, expected: Array) -> Case:
    element = element_of(values)
    body = f"""
        %i = stablehlo.constant dense<{kind[1:]}> : tensor<{element}>
        %r = stablehlo.reduce(%0 init: %i) applies stablehlo.{dtype} across dimensions = [1]
        : ({type_of(values)}, tensor<{element}>) -> {type_of(expected)}"""
    return Case(name, body, [values], expected)


def _sums() -> list[Case]:
    draw = np.random.default_rng(1)
    bytes_ = draw.integers(-128, 127, (2, 40), dtype=np.int8, endpoint=True)
    words = draw.integers(0, 65535, (2, 40), dtype=np.uint16, endpoint=True)
    numbers = draw.uniform(0.8, 1.25, (3, 30)).astype(np.float32)
    sums = [array.astype(np.int64).sum(1).astype(array.dtype) for array in (bytes_, words)]
    product = np.prod(numbers.astype(np.float64), 1).astype(np.float32)
    near = _reduced("prod_of_floats", "=1.0", "multiply", numbers, product)
    return [
        _reduced("sum_of_bytes", "=0", "add", bytes_, sums[0]),
        _reduced("sum_of_words", "=0", "add", words, sums[1]),
        replace(near, near=1e-5),
    ]


_NONE = float("nan")
_INF = float("inf")


def _extremes() -> list[Case]:
    """Cases of argmax and argmin, with NaN and infinities, expected as JAX has them."""
    rows = np.array(
        [[1, _NONE, _INF, _NONE], [_INF, 3, _INF, 1], [2, 2, -_INF, 0], [-0.0, 0.0, 0, -1]],
        np.float32,
    )
    whole = np.array([[5, -128, 127, -128], [-1, 16777217, 16777216, 3]], np.int32)
    least = np.array([[2147483647, -2147483648, -2147483647]], np.int32)
    cases: list[Case] = []
    for name, direction, values, expected in (
        ("argmax_none", "GT", rows, [1, 0, 0, 0]),
        ("argmin_none", "LT", rows, [1, 3, 2, 3]),
        ("argmax_whole", "GT", whole, [2, 1]),
        ("argmin_whole", "LT", whole, [1, 0]),
        ("argmin_least", "LT", least, [1]),
    ):
        cases.append(_place(name, direction, values, np.array(expected, np.int32)))
    return cases


def _place(name: str, direction: str, values: Array, expected: Array) -> Case:
    """As jax writes argmax and argmin."""
    element, shape = element_of(values), type_of(values)
    is_float = element.startswith("f")
    limits = np.iinfo(values.dtype) if not is_float else None
    worst = "inf" if direction == "LT" else "-inf"
    if limits is not None:
        worst = str(limits.max if direction == "LT" else limits.min)
    else:
        worst = "0x7F800000" if direction == "LT" else "0xFF800000"
    places = shape.replace(f"x{element}>", "xi32>")
    result = type_of(expected)
    both = f"(tensor<{element}>, tensor<{element}>) -> tensor<i1>"
    body = f"""
        %i = stablehlo.iota dim = 1 : {places}
        %w = stablehlo.constant dense<{worst}> : tensor<{element}>
        %z = stablehlo.constant dense<0> : tensor<i32>
        %f:2 = stablehlo.reduce(%0 init: %w), (%i init: %z) across dimensions = [1]
        : ({shape}, {places}, tensor<{element}>, tensor<i32>)
        -> ({result.replace("xi32>", f"x{element}>")}, {result})
        reducer(%a: tensor<{element}>, %b: tensor<{element}>) (%c: tensor<i32>, %d: tensor<i32>)  {{
        %1 = stablehlo.compare {direction}, %a, %b : {both}
        %2 = stablehlo.compare NE, %a, %a : {both}
        %3 = stablehlo.or %1, %2 : tensor<i1>
        %4 = stablehlo.compare EQ, %a, %b : {both}
        %5 = stablehlo.compare LT, %c, %d : (tensor<i32>, tensor<i32>) -> tensor<i1>
        %6 = stablehlo.and %4, %5 : tensor<i1>
        %7 = stablehlo.or %3, %6 : tensor<i1>
        %8 = stablehlo.select %3, %a, %b : tensor<i1>, tensor<{element}>
        %9 = stablehlo.select %7, %c, %d : tensor<i1>, tensor<i32>
        stablehlo.return %8, %9 : tensor<{element}>, tensor<i32>
        }}
        %r = stablehlo.reshape %f#1 : ({result}) -> {result}"""
    return Case(name, body, [values], expected)


def _unary(name: str, op: str, given: Array, expected: Array, near: float = 0.0) -> Case:
    body = f"%r = {op} %0 : {type_of(given)}"
    if op.startswith("chlo"):
        body = f"%r = {op} %0 : {type_of(given)} -> {type_of(expected)}"
    return Case(name, body, [given], expected, near)


def _functions() -> list[Case]:
    """Roundings, and functions at their poles and ends; values of numpy and scipy."""
    halves = np.array(
        [-0.5, 0.5, 1.5, -1.5, 2.5, 0.49999997, 8388609.0, -0.0, _INF, -_INF, _NONE, -7.2],
        np.float32,
    )
    away = np.copysign(np.floor(np.abs(halves.astype(np.float64)) + 0.5), halves)
    poles = np.array([0, -1, -2, -0.5, 0.5, 3.25, 30, _INF, -1e-20], np.float32)
    digamma = np.array(
        [_NONE, _NONE, _NONE, 0.03648998, -1.96351003, 1.01699021, 3.38443846, _INF, 1e20],
        np.float32,
    )
    lgamma = np.array(
        [_INF, _INF, _INF, 1.26551212, 0.57236494, 0.93580193, 71.25703897, _INF, 46.0517018],
        np.float32,
    )
    sizes = np.array([1.0, 1.5, 1e20, 3e38, _INF, 0.5], np.float32)
    inverse = np.array([0.0, 0.96242365, 46.74484904, 89.28999013, _INF, _NONE], np.float32)
    bessel = np.array([0.0, -0.5, 3.0, 20.0], np.float32)
    scaled = np.array([0.0, -0.15642080, 0.19682671, 0.08750622], np.float32)
    return [
        _unary("round_even", "stablehlo.round_nearest_even", halves, np.rint(halves)),
        _unary("round_away", "stablehlo.round_nearest_afz", halves, away.astype(np.float32)),
        _unary("digamma_poles", "chlo.digamma", poles, digamma, 1e-3),
        _unary("lgamma_poles", "chlo.lgamma", poles, lgamma, 1e-3),
        _unary("acosh_large", "chlo.acosh", sizes, inverse, 1e-3),
        _unary("bessel_i1e", "chlo.bessel_i1e", bessel, scaled, 1e-4),
    ]


def _bits() -> list[Case]:
    x = np.array([1.0, -1.0, 0.0, 3.14159, 1e-3, -2.5, _NONE, _INF], np.float32)
    y = np.array([2.0, 0.0, -1.0, 3.0, 1.0, -2.5, 1.0, 0.0], np.float32)
    type_ = type_of(x)
    after = f"%r = chlo.next_after %0, %1 : {type_}, {type_} -> {type_}"
    cases = [Case("next_after", after, [x, y], np.nextafter(x, y))]
    given = np.array([1.0, 1.03125, 70000.0, 1e-8, -3.1415927, 0.1, _NONE, -_INF], np.float32)
    with np.errstate(over="ignore"):
        half = given.astype(np.float16).astype(np.float32)
    half[3] = 0.0
    quarter = np.array([1, 1, 65536, 1.25 * 2**-27, -3, 0.09375, _NONE, -_INF], np.float32)
    for name, exponent, mantissa, expected in (
        ("e5m10", 5, 10, half),
        ("e11m52", 11, 52, given),
        ("e8m2", 8, 2, quarter),
    ):
        body = f"%r = stablehlo.reduce_precision %0, format = e{exponent}m{mantissa} : {type_}"
        cases.append(Case(f"precision_{name}", body, [given], expected))
    cases.append(Case("iota_of_bytes", "%r = stablehlo.iota dim = 0 : tensor<9xui8>", [],
                      np.arange(9, dtype=np.uint8)))  # fmt: skip
    body = """
        %c = stablehlo.constant dense<200> : tensor<5xui8>
        %r = stablehlo.maximum %0, %c : tensor<5xui8>"""
    given = np.array([0, 199, 200, 201, 255], np.uint8)
    cases.append(Case("bytes_of_200", body, [given], np.maximum(given, 200)))
    return [*cases, *_total_orders()]


def _total_orders() -> list[Case]:
    """Comparisons in the total order of floats, which NaN and zeros of both signs are in."""
    ordered = np.array([-_NONE, -_INF, -2.0, -0.0, 0.0, 0.5, _INF, _NONE], np.float32)
    places = np.arange(8)
    pairs = np.repeat(ordered, 8).reshape(8, 8), np.tile(ordered, (8, 1))
    type_ = type_of(pairs[0])
    found = {"LT": np.less, "GE": np.greater_equal, "EQ": np.equal}
    return [
        Case(
            f"total_order_{direction.lower()}",
            f"%r = stablehlo.compare {direction}, %0, %1, TOTALORDER :"
            f" ({type_}, {type_}) -> tensor<8x8xi1>",
            pairs,
            compared(places[:, None], places[None, :]),
        )
        for direction, compared in found.items()
    ]


def _scattered() -> list[Case]:
    """Slices of which a part is outside are dropped, as XLA drops them."""
    table = np.zeros((5, 3), np.float32)
    places = np.array([[3], [4], [-1]], np.int32)
    update = np.arange(1, 19, dtype=np.float32).reshape(3, 2, 3)
    expected = table.copy()
    expected[3:5] = update[0]
    body = """
        %r = "stablehlo.scatter"(%0, %1, %2) <{scatter_dimension_numbers = #stablehlo.scatter<
        update_window_dims = [1, 2], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
        ^bb0(%a: tensor<f32>, %b: tensor<f32>):
        stablehlo.return %b : tensor<f32>
        }) : (tensor<5x3xf32>, tensor<3x1xi32>, tensor<3x2x3xf32>) -> tensor<5x3xf32>"""
    cases = [Case("scatter_outside", body, [table, places, update], expected)]
    numbers = np.array([16777217, -2147483648, 5], np.int32)
    more = np.array([16777218, -2147483647, 4], np.int32)
    where = np.array([[0], [1], [2]], np.int32)
    body = """
        %r = "stablehlo.scatter"(%0, %1, %2) <{scatter_dimension_numbers = #stablehlo.scatter<
        inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
        ^bb0(%a: tensor<i32>, %b: tensor<i32>):
        %m = stablehlo.maximum %a, %b : tensor<i32>
        stablehlo.return %m : tensor<i32>
        }) : (tensor<3xi32>, tensor<3x1xi32>, tensor<3xi32>) -> tensor<3xi32>"""
    cases.append(Case("scatter_max", body, [numbers, where, more], np.maximum(numbers, more)))
    return cases


def _solved() -> list[Case]:
    """Triangular systems, of which the other half of the matrix is not read."""
    draw = np.random.default_rng(2)
    a = draw.uniform(-1, 1, (2, 5, 5)).astype(np.float32) + 3 * np.eye(5, dtype=np.float32)
    b = draw.uniform(-1, 1, (2, 5, 3)).astype(np.float32)
    cases: list[Case] = []
    for left, lower, turned, unit in (
        (True, True, False, False),
        (True, False, False, True),
        (True, True, True, False),
        (False, False, False, False),
        (False, True, True, True),
    ):
        matrix = (np.tril if lower else np.triu)(a.astype(np.float64))
        if unit:
            matrix[:, range(5), range(5)] = 1
        if turned:
            matrix = np.swapaxes(matrix, 1, 2)
        right = b if left else np.ascontiguousarray(np.swapaxes(b, 1, 2))
        solved = np.linalg.solve(matrix if left else np.swapaxes(matrix, 1, 2), b)
        expected = (solved if left else np.swapaxes(solved, 1, 2)).astype(np.float32)
        transpose = "TRANSPOSE" if turned else "NO_TRANSPOSE"
        body = f"""
            %r = "stablehlo.triangular_solve"(%0, %1) <{{left_side = {str(left).lower()},
            lower = {str(lower).lower()}, transpose_a = #stablehlo<transpose {transpose}>,
            unit_diagonal = {str(unit).lower()}}}>
            : ({type_of(a)}, {type_of(right)}) -> {type_of(expected)}"""
        name = f"solve_{left}_{lower}_{turned}_{unit}".lower()
        cases.append(Case(name, body, [a, right], expected, 1e-4))
    return cases


def _windows() -> list[Case]:
    """Long windows with steps, and selections of unsigned integers."""
    line = np.random.default_rng(3).uniform(-1, 1, (1, 700)).astype(np.float32)
    starts = range(0, 300, 100)
    cases: list[Case] = []
    for name, initial, reduce in (("minimum", "0x7F800000", np.min), ("add", "0.0", np.sum)):
        parts = [reduce(line[:, start : start + 401].astype(np.float64), 1) for start in starts]
        expected = np.stack(parts, 1).astype(np.float32)
        body = f"""
            %i = stablehlo.constant dense<{initial}> : tensor<f32>
            %r = "stablehlo.reduce_window"(%0, %i) <{{window_dimensions = array<i64: 1, 401>,
            window_strides = array<i64: 1, 100>}}> ({{
            ^bb0(%a: tensor<f32>, %b: tensor<f32>):
            %m = stablehlo.{name} %a, %b : tensor<f32>
            stablehlo.return %m : tensor<f32>
            }}) : (tensor<1x700xf32>, tensor<f32>) -> {type_of(expected)}"""
        cases.append(Case(f"long_window_{name}", body, [line], expected, 2e-2))
    return cases


def _limited() -> list[Case]:
    """Indices outside of a tensor: what is gathered there is replaced, and starts are limited,
    those without a sign as well."""
    table = np.arange(40, dtype=np.float32).reshape(10, 4)
    places = np.array([3, -1, 9, 12, -2147483648, 2147483647], np.int32)
    rows = """
        %l = stablehlo.constant dense<0> : tensor<6xi32>
        %h = stablehlo.constant dense<9> : tensor<6xi32>
        %a = stablehlo.compare GE, %1, %l : (tensor<6xi32>, tensor<6xi32>) -> tensor<6xi1>
        %b = stablehlo.compare LE, %1, %h : (tensor<6xi32>, tensor<6xi32>) -> tensor<6xi1>
        %c = stablehlo.and %a, %b : tensor<6xi1>
        %g = "stablehlo.gather"(%0, %1) <{dimension_numbers = #stablehlo.gather<offset_dims = [1],
            collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>,
            slice_sizes = array<i64: 1, 4>}> : (tensor<10x4xf32>, tensor<6xi32>) -> tensor<6x4xf32>
        %d = stablehlo.broadcast_in_dim %c, dims = [0] : (tensor<6xi1>) -> tensor<6x4xi1>
        %n = stablehlo.constant dense<0x7FC00000> : tensor<6x4xf32>
        %r = stablehlo.select %d, %g, %n : tensor<6x4xi1>, tensor<6x4xf32>"""
    inside = (places >= 0) & (places <= 9)
    found = np.where(inside[:, None], table[np.clip(places, 0, 9)], np.float32(np.nan))
    start, column = np.array(3000000000, np.uint32), np.array(1, np.uint32)
    types = "(tensor<10x4xf32>, tensor<ui32>, tensor<ui32>) -> tensor<3x2xf32>"
    slices = f"%r = stablehlo.dynamic_slice %0, %1, %2, sizes = [3, 2] : {types}"
    update, changed = -np.ones((3, 2), np.float32), table.copy()
    changed[7:, 1:3] = update
    types = "(tensor<10x4xf32>, tensor<3x2xf32>, tensor<ui32>, tensor<ui32>) -> tensor<10x4xf32>"
    updates = f"%r = stablehlo.dynamic_update_slice %0, %1, %2, %3 : {types}"
    return [
        Case("rows_outside", rows, [table, places], found),
        Case("slice_beyond", slices, [table, start, column], table[7:, 1:3]),
        Case("update_beyond", updates, [table, update, start, column], changed),
    ]


def cases() -> list[Case]:
    """All of them."""
    return [
        *_solved(),
        *_windows(),
        *_numbers(),
        *_conversions(),
        *_remainders(),
        *_shifted(),
        *_products(),
        *_sums(),
        *_extremes(),
        *exact_extremes(),
        *_functions(),
        *_bits(),
        *_scattered(),
        *_limited(),
    ]
