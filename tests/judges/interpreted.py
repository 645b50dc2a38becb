"""Functions of the kinds that StableHLO's interpreter is tested by, with values of numpy."""

from __future__ import annotations

import numpy as np

from tests.judges.values import Array, Case, element_of, type_of


def interpreted() -> list[Case]:
    """Cases of the interpreter tests that the testdata of jax does not cover."""
    return [*_high_products(), *_half_bits(), *_scans(), *_grouped_products(), *_others()]


def _high_products() -> list[Case]:
    draw = np.random.default_rng(1)
    cases: list[Case] = []
    for name in ("int8", "uint8", "int16", "uint16", "int32", "uint32"):
        limits = np.iinfo(name)
        a, b = (
            draw.integers(limits.min, limits.max, 40, dtype=limits.dtype, endpoint=True)
            for _ in range(2)
        )
        a[:3], b[:3] = [limits.min, limits.max, limits.min], [limits.min, limits.max, limits.max]
        whole = [int(x) * int(y) >> limits.bits for x, y in zip(a, b, strict=True)]
        type_ = type_of(a)
        body = f'%r = "chlo.mulhi"(%0, %1) : ({type_}, {type_}) -> {type_}'
        cases.append(Case(f"mulhi_{element_of(a)}", body, [a, b], np.array(whole).astype(name)))
    return cases


def _half_bits() -> list[Case]:
    """Numbers of f16 and their bits: the ends, subnormal ones, and between."""
    bits = np.array(
        [0, 0x8000, 1, 0x83FF, 0x400, 0x3C00, 0xBC01, 0x7BFF, 0xFBFF, 0x7C00, 0xFC00, 0x3555],
        np.uint16,
    )
    halves = bits.view(np.float16)
    there, back = type_of(bits), type_of(halves)
    bytes_ = bits.view(np.uint8).reshape(-1, 2)
    to_float = f"""
        %h = stablehlo.bitcast_convert %0 : ({there}) -> {back}
        %r = stablehlo.convert %h : ({back}) -> tensor<12xf32>"""
    return [
        Case("bits_of_f16", f"%r = stablehlo.bitcast_convert %0 : ({back}) -> {there}",
             [halves], bits),
        Case("bytes_of_f16", f"%r = stablehlo.bitcast_convert %0 : ({back}) -> {type_of(bytes_)}",
             [halves], bytes_),
        # The device has f16 as bf16, which leaves three bits less.
        Case("f16_of_bits", to_float, [bits], halves.astype(np.float32), near=0.004),
    ]  # fmt: skip


def _scans() -> list[Case]:
    given = np.array([[3, 1, 4], [1, 5, -9]], np.int32)
    start = np.array([2, -1], np.int32)
    cases: list[Case] = []
    for result, name, extra, places in (
        ("0", "scan", "", (0, 1, 2)),
        ("1", "scan_carry", "", (0, 1, 2)),
        ("0", "scan_from_the_end", "attributes {is_reverse = true} ", (2, 1, 0)),
    ):
        outputs, carry = np.zeros_like(given), start
        for place in places:
            carry = given[:, place] - 2 * carry
            outputs[:, place] = np.maximum(carry, 0)
        expected = (outputs, carry)[int(result)]
        body = f"""
            %c = stablehlo.constant dense<2> : tensor<2xi32>
            %s:2 = chlo.scan(%0) inits (%1) dimension=1 {extra}{{
            ^bb0(%a: tensor<2xi32>, %b: tensor<2xi32>):
              %d = stablehlo.constant dense<2> : tensor<2xi32>
              %z = stablehlo.constant dense<0> : tensor<2xi32>
              %m = stablehlo.multiply %d, %b : tensor<2xi32>
              %n = stablehlo.subtract %a, %m : tensor<2xi32>
              %o = stablehlo.maximum %n, %z : tensor<2xi32>
              stablehlo.return %o, %n : tensor<2xi32>, tensor<2xi32>
            }} : (tensor<2x3xi32>, tensor<2xi32>) -> (tensor<2x3xi32>, tensor<2xi32>)
            %r = stablehlo.optimization_barrier %s#{result} : {type_of(expected)}
            """
        cases.append(Case(name, body, [given, start], expected))
    return cases


def _ragged(name: str, given: list[Array], expected: Array, dimensions: str) -> Case:
    types = ", ".join(map(type_of, given))
    batch, contracting, ragged, group = dimensions.split(";")
    left_batch, right_batch = batch.split("x")
    left, right = contracting.split("x")
    body = f"""
        %r = "chlo.ragged_dot"(%0, %1, %2) {{ragged_dot_dimension_numbers = #chlo.ragged_dot<
          lhs_batching_dimensions = [{left_batch}], rhs_batching_dimensions = [{right_batch}],
          lhs_contracting_dimensions = [{left}], rhs_contracting_dimensions = [{right}],
          lhs_ragged_dimensions = [{ragged}], rhs_group_dimensions = [{group}]
        >}} : ({types}) -> {type_of(expected)}"""
    return Case(name, body, given, expected, near=0.02)


def _grouped_products() -> list[Case]:
    """Products of groups of rows, whole numbers that the matrix engine has exactly."""
    draw = np.random.default_rng(2)

    def numbers(*shape: int) -> Array:
        return draw.integers(-8, 8, shape).astype(np.float32)

    rows, matrices = numbers(2, 9, 5), numbers(3, 2, 5, 4)
    sizes = np.array([[4, 0, 5], [1, 2, 3]], np.int32)
    by_rows = np.zeros((2, 9, 4), np.float32)
    for batch in range(2):
        begin = 0
        for group, size in enumerate(sizes[batch]):
            part = slice(begin, begin + size)
            by_rows[batch, part] = rows[batch, part] @ matrices[group, batch]
            begin += size
    left, right, summed = numbers(5, 9), numbers(9, 4), np.array([4, 3, 1], np.int32)
    parts = [(0, 4), (4, 7), (7, 8)]
    by_sums = np.stack([left[:, begin:end] @ right[begin:end] for begin, end in parts])
    return [
        _ragged("groups_of_rows", [rows, matrices, sizes], by_rows, "0x1;2x2;1;0"),
        _ragged("groups_of_sums", [left, right, summed], by_sums, "x;1x0;1;"),
    ]


def _others() -> list[Case]:
    number = np.array(1.0625, np.float32)
    coarse = "%r = stablehlo.reduce_precision %0, format = e5m3 : tensor<f32>"
    row = np.array([1e30, np.nan, 1.0, -3.9, 2e-30], np.float32)
    powers = "%r = stablehlo.reduce_precision %0, format = e5m0 : tensor<5xf32>"
    image = np.arange(16, dtype=np.float32).reshape(1, 4, 4, 1)
    kernel = np.ones((3, 3, 1, 1), np.float32)
    padded = np.pad(image[0, :, :, 0], 1)
    sums = [[padded[i : i + 3, j : j + 3].sum() for j in range(4)] for i in range(4)]
    convolution = """
        %p = stablehlo.constant dense<1> : tensor<2x2xi32>
        %r = "stablehlo.dynamic_conv"(%0, %1, %p) {
          window_strides = array<i64: 1, 1>, lhs_dilation = array<i64: 1, 1>,
          rhs_dilation = array<i64: 1, 1>, window_reversal = array<i1: false, false>,
          dimension_numbers = #stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>,
          batch_group_count = 1 : i64, feature_group_count = 1 : i64
        } : (tensor<1x4x4x1xf32>, tensor<3x3x1x1xf32>, tensor<2x2xi32>) -> tensor<1x4x4x1xf32>"""
    signed = np.array([np.nan, -np.nan, -2.5, 0.0, np.inf, -np.inf], np.float32)
    return [
        Case("sign_of_nan", "%r = stablehlo.sign %0 : tensor<6xf32>", [signed], np.sign(signed)),
        # Constants of 64 bits are folded, with all of their bits.
        Case("bits_of_f64", """
             %c = stablehlo.constant dense<[5, 7]> : tensor<2xui64>
             %s = stablehlo.constant dense<[40, 3]> : tensor<2xui64>
             %e = stablehlo.constant dense<4607182418800017408> : tensor<2xui64>
             %l = stablehlo.shift_left %c, %s : tensor<2xui64>
             %o = stablehlo.or %l, %e : tensor<2xui64>
             %b = stablehlo.bitcast_convert %o : (tensor<2xui64>) -> tensor<2xf64>
             %f = stablehlo.convert %b : (tensor<2xf64>) -> tensor<2xf32>
             %r = stablehlo.add %f, %0 : tensor<2xf32>""",
             [np.array([1, 2], np.float32)],
             np.array([(5 << 40) / 2**52 + 2, 3], np.float32)),
        # Halfway between two: the even one.
        Case("precision_of_one_number", coarse, [number], np.array(1.0, np.float32)),
        # Without a mantissa there is no NaN.
        Case("precision_without_mantissa", powers, [row],
             np.array([np.inf, np.inf, 1.0, -4.0, 0.0], np.float32)),
        Case("convolution_of_constant_padding", convolution, [image, kernel],
             np.array(sums, np.float32).reshape(1, 4, 4, 1), near=0.01),
    ]  # fmt: skip
