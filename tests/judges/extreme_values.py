"""Maxima and minima of float32 that are compared, selected, subtracted or become integers.

Numbers with bits beyond the eleven that the matrix engine keeps, and infinities.
"""

from __future__ import annotations

import numpy as np

from tests.judges.case import Array, Case, type_of

_INF = float("inf")
_DRAW = np.random.default_rng(30)
ROWS = np.concatenate(
    [
        _DRAW.uniform(-1e5, 1e5, (3, 41)),
        _DRAW.uniform(-3e38, -1e38, (1, 41)),
        np.where(np.arange(41) % 2, -3.4e38, 3.4028234663852886e38)[None],
        _DRAW.uniform(200000.0, 200001.0, (1, 41)),
        -(2.0**24) - np.arange(41.0)[None],
        np.where(np.arange(41) == 5, _INF, 1.0)[None],
        np.where(np.arange(41) == 5, -_INF, -0.1)[None],
        np.full((1, 41), -_INF),
        np.full((1, 41), 0.1),
    ]
).astype(np.float32)


def _reduced(name: str, shape: str, dimensions: str, result: str) -> str:
    initial = "0xFF800000" if name == "maximum" else "0x7F800000"
    return f"""
        %i = stablehlo.constant dense<{initial}> : tensor<f32>
        %m = stablehlo.reduce(%0 init: %i) applies stablehlo.{name} across dimensions = {dimensions}
        : ({shape}, tensor<f32>) -> {result}"""


def _back(result: str, kept: str, shape: str) -> str:
    return f"%b = stablehlo.broadcast_in_dim %m, dims = {kept} : ({result}) -> {shape}"


def _against(name: str, axes: tuple[int, ...], x: Array) -> list[Case]:
    """A case of a reduction whose extreme is compared with the elements, subtracted from them, and
    compared with a small offset."""
    found = (np.max if name == "maximum" else np.min)(x, axis=axes, keepdims=True)
    shape, result = type_of(x), type_of(found.squeeze(axes))
    kept = [axis for axis in range(x.ndim) if axis not in axes]
    reduced = (
        _reduced(name, shape, str(list(axes)), result) + "\n" + _back(result, str(kept), shape)
    )
    equal = (
        reduced
        + f"""
        %r = stablehlo.compare EQ, %0, %b : ({shape}, {shape}) -> {shape.replace("f32", "i1")}"""
    )
    less = reduced + f"\n%r = stablehlo.subtract %0, %b : {shape}"
    stem = f"{name}_{''.join(map(str, axes))}"
    with np.errstate(invalid="ignore", over="ignore"):
        return [
            Case(f"places_of_{stem}", equal, [x], x == found),
            Case(f"less_{stem}", less, [x], x - found),
        ]


def _summed() -> Case:
    """log(sum(exp(x))) of large numbers, as jax writes it: infinite maxima are not subtracted."""
    shape, result = "tensor<4x41xf32>", "tensor<4xf32>"
    x = ROWS[[3, 5, 0, 9]]
    x[0] = _DRAW.uniform(-2e6, -1e6, 41)
    body = (
        _reduced("maximum", shape, "[1]", result)
        + f"""
        %f = stablehlo.is_finite %m : ({result}) -> tensor<4xi1>
        %z = stablehlo.constant dense<0.0> : {result}
        %s = stablehlo.select %f, %m, %z : tensor<4xi1>, {result}
        %b = stablehlo.broadcast_in_dim %s, dims = [0] : ({result}) -> {shape}
        %d = stablehlo.subtract %0, %b : {shape}
        %e = stablehlo.exponential %d : {shape}
        %n = stablehlo.constant dense<0.0> : tensor<f32>
        %t = stablehlo.reduce(%e init: %n) applies stablehlo.add across dimensions = [1]
        : ({shape}, tensor<f32>) -> {result}
        %l = stablehlo.log %t : {result}
        %r = stablehlo.add %l, %s : {result}"""
    )
    wide = x.astype(np.float64)
    most = np.where(np.isfinite(wide.max(1)), wide.max(1), 0)
    with np.errstate(divide="ignore"):
        expected = np.log(np.exp(wide - most[:, None]).sum(1)) + most
    return Case("logarithm_of_sum", body, [x], expected.astype(np.float32), 1e-6)


def _whole() -> Case:
    """Integers in floats, the largest of which becomes one."""
    x = np.array([[4097, 3, 8191.5], [-4099, -4098, -70001]], np.float32)
    body = (
        _reduced("maximum", type_of(x), "[1]", "tensor<2xf32>")
        + """
        %r = stablehlo.convert %m : (tensor<2xf32>) -> tensor<2xi32>"""
    )
    return Case("whole_maximum", body, [x], np.array([8191, -4098], np.int32))


def _joined() -> Case:
    """The larger one of the maxima of two halves, subtracted."""
    x = ROWS[:3, :40].copy()
    half, result = "tensor<3x20xf32>", "tensor<3xf32>"
    reduces = "\n".join(
        f"""
        %p{n} = stablehlo.slice %0 [0:3, {20 * n}:{20 * n + 20}] : (tensor<3x40xf32>) -> {half}
        %m{n} = stablehlo.reduce(%p{n} init: %i) applies stablehlo.maximum across dimensions = [1]
        : ({half}, tensor<f32>) -> {result}"""
        for n in (0, 1)
    )
    body = f"""
        %i = stablehlo.constant dense<0xFF800000> : tensor<f32>
        {reduces}
        %m = stablehlo.maximum %m0, %m1 : {result}
        %b = stablehlo.broadcast_in_dim %m, dims = [0] : ({result}) -> tensor<3x40xf32>
        %r = stablehlo.subtract %0, %b : tensor<3x40xf32>"""
    return Case("less_larger_maximum", body, [x], x - x.max(1, keepdims=True))


def _windows() -> Case:
    """Places of elements that are the greatest around them."""
    x = _DRAW.uniform(-1e5, 1e5, (9, 11)).astype(np.float32)
    shape = type_of(x)
    body = f"""
        %i = stablehlo.constant dense<0xFF800000> : tensor<f32>
        %m = "stablehlo.reduce_window"(%0, %i) <{{window_dimensions = array<i64: 3, 3>,
            padding = dense<1> : tensor<2x2xi64>}}> ({{
          ^bb0(%a: tensor<f32>, %b: tensor<f32>):
            %c = stablehlo.maximum %a, %b : tensor<f32>
            stablehlo.return %c : tensor<f32>
        }}) : ({shape}, tensor<f32>) -> {shape}
        %r = stablehlo.compare EQ, %0, %m : ({shape}, {shape}) -> {shape.replace("f32", "i1")}"""
    around = np.lib.stride_tricks.sliding_window_view(np.pad(x, 1, constant_values=-_INF), (3, 3))
    return Case("greatest_of_windows", body, [x], x == around.max(axis=(2, 3)))


def _strided_windows() -> Case:
    """Maxima of windows that lie apart, and are less than all in them but one."""
    x = _DRAW.uniform(200000.0, 200001.0, (10, 13)).astype(np.float32)
    result = "tensor<4x5xf32>"
    body = f"""
        %i = stablehlo.constant dense<0xFF800000> : tensor<f32>
        %m = "stablehlo.reduce_window"(%0, %i) <{{window_dimensions = array<i64: 2, 3>,
            window_strides = array<i64: 3, 2>, window_dilations = array<i64: 1, 2>,
            padding = dense<[[1, 1], [0, 0]]> : tensor<2x2xi64>}}> ({{
          ^bb0(%a: tensor<f32>, %b: tensor<f32>):
            %c = stablehlo.maximum %a, %b : tensor<f32>
            stablehlo.return %c : tensor<f32>
        }}) : ({type_of(x)}, tensor<f32>) -> {result}
        %n = stablehlo.constant dense<200000.0> : {result}
        %r = stablehlo.subtract %m, %n : {result}"""
    high = np.pad(x, ((1, 1), (0, 0)), constant_values=-_INF)
    rows = np.maximum(high[0:11:3], high[1:12:3])
    found = np.maximum.reduce([rows[:, first : first + 9 : 2] for first in (0, 2, 4)])
    return Case("maxima_of_windows_apart", body, [x], found - np.float32(200000.0))


def exact_extremes() -> list[Case]:
    """All of them."""
    cube = _DRAW.uniform(-1e5, 1e5, (3, 4, 5)).astype(np.float32)
    return [
        *_against("maximum", (1,), ROWS),
        *_against("minimum", (1,), ROWS),
        *_against("maximum", (0,), ROWS[:6]),
        *_against("maximum", (0, 2), cube),
        *_against("minimum", (0, 1, 2), cube),
        _summed(),
        _whole(),
        _joined(),
        _windows(),
        _strided_windows(),
    ]
