"""TOSA to TTIR: what each operation computes, by numpy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.frontends.running import ops_of, read, refusals, run
from ttcodegen.compilation import CompileOptions, compile_module
from ttcodegen.foundation.diagnostics import CompileError, Source

RANDOM = np.random.default_rng(0)
A = RANDOM.uniform(0.5, 2.0, (3, 4, 5)).astype(np.float32)
B = RANDOM.uniform(0.5, 2.0, (3, 1, 5)).astype(np.float32)
K = RANDOM.integers(1, 9, (3, 4, 5)).astype(np.int32)
J = RANDOM.integers(1, 4, (3, 4, 5)).astype(np.int32)
P, Q = A > 1, RANDOM.uniform(0.5, 2.0, (3, 4, 5)) > 1
NAMES = {"float32": "f32", "int32": "i32", "bool": "i1", "int8": "i8", "int64": "i64"}


def type_of(array: np.ndarray) -> str:
    """As MLIR writes the type of a tensor."""
    sizes = "".join(f"{size}x" for size in array.shape)
    return f"tensor<{sizes}{NAMES[array.dtype.name]}>"


def function(body: str, result: np.ndarray, *inputs: np.ndarray) -> str:
    """A function whose body names inputs `%0`, `%1` and gives `%r`."""
    arguments = ", ".join(f"%a{i}: {type_of(each)}" for i, each in enumerate(inputs))
    return f"""module {{
func.func @f({arguments}) -> {type_of(result)} {{
{body}
  return %r : {type_of(result)}
}}
}}"""


def call(operation: str, result: np.ndarray, *inputs: np.ndarray, before: str = "") -> str:
    """One operation on the inputs; `operation` is its name, and attributes after it."""
    name, _, attributes = operation.partition(" ")
    operands = ", ".join(f"%a{i}" for i in range(len(inputs)))
    types = ", ".join(type_of(each) for each in inputs)
    body = f"{before}  %r = tosa.{name} {operands} {attributes} : ({types}) -> {type_of(result)}"
    return function(body, result, *inputs)


def check(text: str, expected: np.ndarray, *inputs: np.ndarray, tolerance: float = 1e-5) -> None:
    """Compares what a text computes with what is expected."""
    (found,) = run(text, *inputs)
    assert found.shape == expected.shape
    np.testing.assert_allclose(
        found.astype(np.float64), expected.astype(np.float64), rtol=tolerance, atol=tolerance
    )


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


UNARY: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "abs": np.abs, "ceil": np.ceil, "cos": np.cos, "exp": np.exp, "floor": np.floor,
    "log": np.log, "negate": np.negative, "reciprocal": np.reciprocal, "sigmoid": sigmoid,
    "rsqrt": lambda x: 1 / np.sqrt(x), "sin": np.sin, "tanh": np.tanh, "identity": lambda x: x,
}  # fmt: skip


@pytest.mark.parametrize("name", UNARY)
def test_unary(name: str) -> None:
    check(call(name, A, A), UNARY[name](A), A)


BINARY: dict[str, tuple[Callable[..., Any], np.ndarray, np.ndarray]] = {
    "add": (np.add, A, B), "sub": (np.subtract, A, B), "pow": (np.power, A, B),
    "maximum": (np.maximum, A, B), "minimum": (np.minimum, B, A), "mul": (np.multiply, A, B),
    "equal": (np.equal, A, A), "greater": (np.greater, A, B),
    "greater_equal": (np.greater_equal, K, J), "logical_and": (np.logical_and, P, Q),
    "logical_or": (np.logical_or, P, Q), "logical_xor": (np.logical_xor, P, Q),
    "bitwise_and": (np.bitwise_and, K, J), "bitwise_or": (np.bitwise_or, K, J),
    "bitwise_xor": (np.bitwise_xor, K, J), "logical_left_shift": (np.left_shift, K, J),
    "logical_right_shift": (np.right_shift, K, J), "intdiv": (np.floor_divide, K, J),
    "int_div": (np.floor_divide, K, J),
    "arithmetic_right_shift {round = false}": (np.right_shift, K, J),
}  # fmt: skip


@pytest.mark.parametrize("operation", BINARY)
def test_binary(operation: str) -> None:
    meaning, a, b = BINARY[operation]
    expected = meaning(a, b)
    check(call(operation, expected, a, b), expected, a, b)


EDGES = np.array([0, -0.0, 1, -1, 2.5, np.inf, -np.inf, np.nan, 6, 1e30], np.float32)
ONE, OTHER = (np.ascontiguousarray(each) for each in np.meshgrid(EDGES, EDGES))
ROWS = np.array([[1, np.nan, 3], [np.nan] * 3, [-np.inf, np.nan, np.nan], [4, 4, 1]], np.float32)
WITHOUT_NAN: dict[str, tuple[np.ndarray, tuple[np.ndarray, ...]]] = {
    "maximum": (np.fmax(ONE, OTHER), (ONE, OTHER)),
    "minimum": (np.fmin(ONE, OTHER), (ONE, OTHER)),
    "reduce_max axis": (np.fmax.reduce(ROWS, axis=1, keepdims=True), (ROWS,)),
    "reduce_min axis": (np.fmin.reduce(ROWS, axis=1, keepdims=True), (ROWS,)),
    "argmax axis": (np.array([2, 0, 0, 0], np.int32), (ROWS,)),
    "clamp min_val = -1.0 : f32, max_val": (
        np.where(np.isnan(EDGES), np.float32(-1), np.clip(EDGES, -1, 2)),
        (EDGES,),
    ),
}
"""Results of operations with NaN ignored, and their operands."""


@pytest.mark.parametrize("name", WITHOUT_NAN)
def test_nan_is_ignored_where_the_operation_says_so(name: str) -> None:
    expected, inputs = WITHOUT_NAN[name]
    operation, _, attribute = name.partition(" ")
    given = {"": "", "axis": "axis = 1 : i32, "}.get(attribute, f"{attribute} = 2.0 : f32, ")
    for mode in ("IGNORE", '"IGNORE"'):
        text = call(f"{operation} {{{given}nan_mode = {mode}}}", expected, *inputs)
        (found,) = run(text, *inputs)
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("name", ["maximum", "minimum"])
def test_nan_is_the_extreme_where_nothing_is_said(name: str) -> None:
    expected = (np.maximum if name == "maximum" else np.minimum)(ONE, OTHER)
    (found,) = run(call(name, expected, ONE, OTHER), ONE, OTHER)
    np.testing.assert_array_equal(found, expected)


def test_shifts_to_the_right_round_upwards_at_halves() -> None:
    numbers = np.array([0, 1, -1, 5, -5, 7, 2**24 + 1, 2**31 - 1, -(2**31)], np.int32)
    x, count = np.meshgrid(numbers, np.array([0, 1, 2, 7, 31], np.int32))
    x, count = np.ascontiguousarray(x), np.ascontiguousarray(count)
    last = np.where(count > 0, x.astype(np.int64) >> np.maximum(count - 1, 0) & 1, 0)
    expected = ((x.astype(np.int64) >> count) + last).astype(np.int32)
    text = call("arithmetic_right_shift {round = true}", expected, x, count)
    (found,) = run(text, x, count)
    np.testing.assert_array_equal(found, expected)


REDUCED: dict[str, tuple[Callable[..., np.ndarray], np.ndarray]] = {
    "reduce_sum": (np.sum, A), "reduce_max": (np.max, A), "reduce_min": (np.min, A),
    "reduce_prod": (np.prod, A), "reduce_product": (np.prod, A), "reduce_all": (np.all, P),
    "reduce_any": (np.any, P),
}  # fmt: skip


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("name", REDUCED)
def test_reductions(name: str, axis: int) -> None:
    meaning, x = REDUCED[name]
    expected = meaning(x, axis=axis, keepdims=True)
    check(call(f"{name} {{axis = {axis} : i32}}", expected, x), expected, x)


def test_argmax() -> None:
    expected = A.argmax(axis=1).astype(np.int32)
    check(call("argmax {axis = 1 : i32}", expected, A), expected, A)


MOVED: dict[str, np.ndarray] = {
    "transpose {perms = array<i32: 2, 0, 1>}": A.transpose(2, 0, 1),
    "reverse {axis = 1 : i32}": A[:, ::-1],
    "reshape {new_shape = array<i64: 12, 5>}": A.reshape(12, 5),
    "tile {multiples = array<i64: 2, 1, 3>}": np.tile(A, (2, 1, 3)),
    "slice {start = array<i64: 1, 0, 2>, size = array<i64: 2, 3, 3>}": A[1:, :3, 2:],
    "clamp {min_val = 0.7 : f32, max_val = 1.5 : f32}": np.clip(A, 0.7, 1.5),
    "clamp {min_fp = 0.0 : f32, max_fp = 6.0 : f32, min_int = 0 : i64, max_int = 6 : i64}": A,
    "clamp {min_val = 0.0 : f32, max_val = 3.40282347E+38 : f32}": A,
    "cast": np.rint(A).astype(np.int32),
}


@pytest.mark.parametrize("operation", MOVED)
def test_attributes(operation: str) -> None:
    check(call(operation, MOVED[operation], A), MOVED[operation], A)


def test_operands_that_are_constants() -> None:
    shape = "  %s = tosa.const_shape {values = dense<[12, 5]> : tensor<2xindex>}"
    body = f"""{shape} : () -> !tosa.shape<2>
  %begin = tosa.const_shape {{values = dense<[1, 0]> : tensor<2xindex>}} : () -> !tosa.shape<2>
  %size = tosa.const_shape {{values = dense<[4, 5]> : tensor<2xindex>}} : () -> !tosa.shape<2>
  %w = tosa.const_shape {{values = dense<[1, 0, 0, 2]> : tensor<4xindex>}} : () -> !tosa.shape<4>
  %fill = "tosa.const"() <{{values = dense<9.0> : tensor<1xf32>}}> : () -> tensor<1xf32>
  %0 = tosa.reshape %a0, %s : (tensor<3x4x5xf32>, !tosa.shape<2>) -> tensor<12x5xf32>
  %1 = tosa.slice %0, %begin, %size
      : (tensor<12x5xf32>, !tosa.shape<2>, !tosa.shape<2>) -> tensor<4x5xf32>
  %r = tosa.pad %1, %w, %fill
      : (tensor<4x5xf32>, !tosa.shape<4>, tensor<1xf32>) -> tensor<5x7xf32>"""
    expected = np.pad(A.reshape(12, 5)[1:5], ((1, 0), (0, 2)), constant_values=9)
    check(function(body, expected, A), expected, A)


def test_spellings_of_earlier_years() -> None:
    body = """  %p = "tosa.const"() {value = dense<[2, 0, 1]> : tensor<3xi32>} : () -> tensor<3xi32>
  %0 = "tosa.transpose"(%a0, %p) : (tensor<3x4x5xf32>, tensor<3xi32>) -> tensor<5x3x4xf32>
  %r = "tosa.mul"(%0, %0) {shift = 0 : i8}
      : (tensor<5x3x4xf32>, tensor<5x3x4xf32>) -> tensor<5x3x4xf32>"""
    expected = A.transpose(2, 0, 1) ** 2
    check(function(body, expected, A), expected, A)


def test_a_product_is_shifted() -> None:
    body = """  %s = "tosa.const"() <{values = dense<2> : tensor<1xi8>}> : () -> tensor<1xi8>
  %r = tosa.mul %a0, %a1, %s
      : (tensor<3x4x5xi32>, tensor<3x4x5xi32>, tensor<1xi8>) -> tensor<3x4x5xi32>"""
    check(function(body, K, K, J), (K * J + 2) >> 2, K, J)


def test_select_broadcasts() -> None:
    expected = np.where(P, A, B)
    check(call("select", expected, P, A, B), expected, P, A, B)


def test_concat() -> None:
    expected = np.concatenate([A, B], axis=1)
    check(call("concat {axis = 1 : i32}", expected, A, B), expected, A, B)


def convolved(x: np.ndarray, w: np.ndarray, stride: int, pad: tuple[int, ...]) -> np.ndarray:
    """A convolution of (N, H, W, C) with (Co, H, W, Ci), the slow way."""
    x = np.pad(x, ((0, 0), pad[:2], pad[2:], (0, 0)))
    rows = (x.shape[1] - w.shape[1]) // stride + 1
    columns = (x.shape[2] - w.shape[2]) // stride + 1
    result = np.zeros((x.shape[0], rows, columns, w.shape[0]), np.float32)
    for i in range(rows):
        for j in range(columns):
            seen = x[:, i * stride :, j * stride :][:, : w.shape[1], : w.shape[2]]
            result[:, i, j] = np.einsum("nhwc,ohwc->no", seen, w)
    return result


ZERO = '  %z = "tosa.const"() <{values = dense<0.0> : tensor<1xf32>}> : () -> tensor<1xf32>\n'


def test_convolution() -> None:
    x = RANDOM.standard_normal((1, 6, 7, 3)).astype(np.float32)
    w = RANDOM.standard_normal((4, 3, 2, 3)).astype(np.float32)
    b = RANDOM.standard_normal(4).astype(np.float32)
    expected = convolved(x, w, 2, (1, 0, 0, 1)) + b
    types = ", ".join([*map(type_of, (x, w, b)), "tensor<1xf32>", "tensor<1xf32>"])
    attributes = "acc_type = f32, dilation = array<i64: 1, 1>, pad = array<i64: 1, 0, 0, 1>"
    body = f"""{ZERO}  %r = tosa.conv2d %a0, %a1, %a2, %z, %z
      {{{attributes}, stride = array<i64: 2, 2>}} : ({types}) -> {type_of(expected)}"""
    check(function(body, expected, x, w, b), expected, x, w, b, tolerance=1e-4)


def test_depthwise_convolution() -> None:
    x = RANDOM.standard_normal((1, 5, 5, 3)).astype(np.float32)
    w = RANDOM.standard_normal((3, 3, 3, 2)).astype(np.float32)
    b = RANDOM.standard_normal(6).astype(np.float32)
    parts = [
        convolved(x[..., c : c + 1], w[..., c, m][None, ..., None], 1, (1, 1, 1, 1))
        for c in range(3)
        for m in range(2)
    ]
    expected = np.concatenate(parts, axis=3) + b
    types = ", ".join([*map(type_of, (x, w, b)), "tensor<1xf32>", "tensor<1xf32>"])
    body = f"""{ZERO}  %r = tosa.depthwise_conv2d %a0, %a1, %a2, %z, %z {{acc_type = f32,
      dilation = array<i64: 1, 1>, pad = array<i64: 1, 1, 1, 1>, stride = array<i64: 1, 1>}}
      : ({types}) -> {type_of(expected)}"""
    check(function(body, expected, x, w, b), expected, x, w, b, tolerance=1e-4)


def test_transposed_convolution() -> None:
    x = RANDOM.standard_normal((1, 3, 3, 2)).astype(np.float32)
    w = RANDOM.standard_normal((3, 2, 2, 2)).astype(np.float32)
    b = RANDOM.standard_normal(3).astype(np.float32)
    full = np.zeros((1, 6, 6, 3), np.float32)
    for i in range(3):
        for j in range(3):
            part = np.einsum("nc,ohwc->nhwo", x[:, i, j], w)
            full[:, 2 * i : 2 * i + 2, 2 * j : 2 * j + 2] += part
    expected = np.pad(full[:, 1:], ((0, 0), (0, 0), (0, 1), (0, 0))) + b
    types = ", ".join([*map(type_of, (x, w, b)), "tensor<1xf32>", "tensor<1xf32>"])
    body = f"""{ZERO}  %r = tosa.transpose_conv2d %a0, %a1, %a2, %z, %z {{acc_type = f32,
      out_pad = array<i64: -1, 0, 0, 1>, stride = array<i64: 2, 2>}}
      : ({types}) -> {type_of(expected)}"""
    check(function(body, expected, x, w, b), expected, x, w, b, tolerance=1e-4)


def test_pools() -> None:
    x = RANDOM.standard_normal((1, 4, 6, 3)).astype(np.float32)
    windows = x.reshape(1, 2, 2, 3, 2, 3)
    attributes = (
        "{kernel = array<i64: 2, 2>, pad = array<i64: 0, 0, 0, 0>, stride = array<i64: 2, 2>"
    )
    expected = windows.max(axis=(2, 4))
    check(call(f"max_pool2d {attributes}}}", expected, x), expected, x)
    expected = windows.mean(axis=(2, 4))
    check(call(f"avg_pool2d {attributes}, acc_type = f32}}", expected, x), expected, x)


def test_products() -> None:
    a = RANDOM.standard_normal((2, 3, 4)).astype(np.float32)
    b = RANDOM.standard_normal((2, 4, 5)).astype(np.float32)
    check(call("matmul", a @ b, a, b), a @ b, a, b)
    x, w = a[0], b[0].T.copy()
    c = RANDOM.standard_normal(5).astype(np.float32)
    check(call("fully_connected", x @ w.T + c, x, w, c), x @ w.T + c, x, w, c)


def test_a_product_of_quantized_integers() -> None:
    a = RANDOM.integers(-128, 127, (1, 3, 4)).astype(np.int8)
    b = RANDOM.integers(-128, 127, (1, 4, 5)).astype(np.int8)
    expected = (a.astype(np.int32) - 3) @ (b.astype(np.int32) + 2)
    body = f"""  %za = "tosa.const"() <{{values = dense<3> : tensor<1xi8>}}> : () -> tensor<1xi8>
  %zb = "tosa.const"() <{{values = dense<-2> : tensor<1xi8>}}> : () -> tensor<1xi8>
  %r = tosa.matmul %a0, %a1, %za, %zb : ({type_of(a)}, {type_of(b)}, tensor<1xi8>, tensor<1xi8>)
      -> tensor<1x3x5xi32>"""
    check(function(body, expected.astype(np.int32), a, b), expected, a, b)


def test_rescale() -> None:
    x = RANDOM.integers(-40000, 40000, (2, 3)).astype(np.int32)
    expected = np.clip(np.floor((x - 5) * (1073741824 / 2.0**38) + 0.5) + 7, -128, 127)
    constants = "\n".join(
        f'  %{name} = "tosa.const"() <{{values = dense<{value}> : tensor<1x{kind}>}}> : '
        f"() -> tensor<1x{kind}>"
        for name, value, kind in (
            ("m", 1073741824, "i32"), ("s", 38, "i8"), ("in", 5, "i32"), ("out", 7, "i8"),
        )
    )  # fmt: skip
    body = f"""{constants}
  %r = tosa.rescale %a0, %m, %s, %in, %out {{input_unsigned = false, output_unsigned = false,
      per_channel = false, rounding_mode = SINGLE_ROUND, scale32 = true}}
      : (tensor<2x3xi32>, tensor<1xi32>, tensor<1xi8>, tensor<1xi32>, tensor<1xi8>)
      -> tensor<2x3xi8>"""
    check(function(body, expected.astype(np.int8), x), expected, x)


@pytest.mark.parametrize("batch", [1, 2])
def test_gather_and_scatter(batch: int) -> None:
    values = RANDOM.standard_normal((batch, 6, 3)).astype(np.float32)
    indices = np.stack([RANDOM.permutation(6)[:4] for _ in range(batch)]).astype(np.int32)
    expected = np.take_along_axis(values, indices[..., None].astype(np.int64), axis=1)
    check(call("gather", expected, values, indices), expected, values, indices)
    rows = RANDOM.standard_normal((batch, 4, 3)).astype(np.float32)
    expected = values.copy()
    np.put_along_axis(expected, indices[..., None].astype(np.int64), rows, axis=1)
    check(call("scatter", expected, values, indices, rows), expected, values, indices, rows)


def test_a_table() -> None:
    x = RANDOM.integers(-128, 128, (2, 3)).astype(np.int8)
    table = RANDOM.permutation(np.arange(-128, 128)).astype(np.int8)
    expected = table[x.astype(np.int64) + 128]
    check(call("table", expected, x, table), expected, x, table)


def resize_text(x: np.ndarray, result: np.ndarray, mode: str, scale: str, border: str) -> str:
    lines = [
        f"  %{name} = tosa.const_shape {{values = dense<[{values}]> : tensor<{count}xindex>}} : "
        f"() -> !tosa.shape<{count}>\n"
        for name, values, count in (("s", scale, 4), ("o", "0, 0", 2), ("b", border, 2))
    ]
    body = f"""{"".join(lines)}  %r = tosa.resize %a0, %s, %o, %b {{mode = "{mode}"}}
      : ({type_of(x)}, !tosa.shape<4>, !tosa.shape<2>, !tosa.shape<2>) -> {type_of(result)}"""
    return function(body, result, x)


def test_resize() -> None:
    x = RANDOM.standard_normal((1, 3, 2, 2)).astype(np.float32)
    rows, columns = np.arange(5) / 2, np.arange(3) / 2
    low, high = np.floor(rows).astype(int), np.ceil(rows).astype(int)
    left, right = np.floor(columns).astype(int), np.ceil(columns).astype(int)
    across = (x[:, :, left] + x[:, :, right]) / 2
    expected = (across[:, low] + across[:, high]) / 2
    check(resize_text(x, expected, "BILINEAR", "2, 1, 2, 1", "0, 0"), expected, x)
    expected = x[:, high][:, :, right]
    check(resize_text(x, expected, "NEAREST_NEIGHBOR", "2, 1, 2, 1", "0, 0"), expected, x)


def test_names_and_places_are_kept() -> None:
    module = read(call("abs", A, A))
    assert ops_of(module) == ["abs"]
    (function_op,) = module.ops
    (op, _) = function_op.regions[0].block.ops
    assert op.source_offset > 0


def test_a_global_that_nobody_uses_is_dropped() -> None:
    declared = "ml_program.global private mutable @seed(dense<0> : tensor<i64>) : tensor<i64>\n"
    text = call("abs", A, A).replace("func.func", declared + "func.func")
    check(text, np.abs(A), A)


def test_everything_is_refused_at_once_with_its_place() -> None:
    body = """  %0 = tosa.custom %a0 {operator_name = "magic", domain_name = "x",
      implementation_attrs = ""} : (tensor<3x4x5xf32>) -> tensor<3x4x5xf32>
  %1 = tosa.clz %a1 : (tensor<3x4x5xi32>) -> tensor<3x4x5xi32>
  %2 = tosa.clz %a1 : (tensor<3x4x5xi32>) -> tensor<3x4x5xi32>
  %r = tosa.abs %0 : (tensor<3x4x5xf32>) -> tensor<3x4x5xf32>"""
    text = function(body, A, A, K)
    assert refusals(text) == [
        "'tosa.custom' is not supported: it is not known what 'magic' computes",
        "'tosa.clz' is not supported: there is no op in the library that counts zeros (2 times)",
    ]
    with pytest.raises(CompileError) as caught:
        compile_module(Source("in.mlir", text), CompileOptions("model"))
    assert caught.value.render(Source("in.mlir", text)).startswith("in.mlir:3:8: error: 'tosa.cu")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            call("reshape {new_shape = array<i64: 60>}", A.reshape(60), A).replace(
                "3x4x5", "?x4x5"
            ),
            "tensors of unknown size are not supported: tensor<?x4x5xf32>",
        ),
        (call("abs", A.reshape(60), A), "expected a result of shape 3x4x5, found 60"),
        (call("reduce_sum", A, A), "attribute 'axis' should be an integer"),
        (call("frobnicate", A, A), "unknown operation 'tosa.frobnicate'"),
        (call("transpose", A, A, K), "'perms' has to be constant"),
    ],
)
def test_refusals(text: str, message: str) -> None:
    assert any(message in found for found in refusals(text))


def test_limits_come_with_a_remedy() -> None:
    text = """func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
      %r = tosa.fft2d %x : (tensor<4xf32>) -> tensor<4xf32>
      return %r : tensor<4xf32>
    }"""
    with pytest.raises(CompileError) as caught:
        read(text)
    assert caught.value.diagnostics[0].remedy
