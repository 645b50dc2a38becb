"""Integers, booleans and NaN: their meaning in the source and on the device."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import ml_dtypes
import numpy as np
import pytest
from xdsl.dialects.func import FuncOp

from ttcodegen.compilation import CompileOptions, compile_module
from ttcodegen.flatbuffer.reader import read_ttnn
from ttcodegen.foundation.diagnostics import CompileError, Source
from ttcodegen.frontends import read_module
from ttcodegen.numerics.drawing import draw_inputs
from ttcodegen.numerics.golden_values import Golden
from ttcodegen.numerics.interpreter import Interpreter

Run = Callable[..., np.ndarray]
NAN = np.float32(np.nan)
INF = np.float32(np.inf)
POOL = (
    "kernel = 2 : i32, stride = 1 : i32, padding = 0 : i32, dilation = 1 : i32, ceil_mode = false"
)


def source_of(op: str, operands: Sequence[str], result: str, attributes: str = "") -> Source:
    arguments = ", ".join(f"%x{i}: tensor<{type_}>" for i, type_ in enumerate(operands))
    names = ", ".join(f"%x{i}" for i in range(len(operands)))
    types = ", ".join(f"tensor<{type_}>" for type_ in operands)
    text = (
        f"func.func @f({arguments}) -> tensor<{result}> {{\n"
        f'  %0 = "ttir.{op}"({names}) <{{{attributes}}}> : ({types}) -> tensor<{result}>\n'
        f"  return %0 : tensor<{result}>\n}}\n"
    )
    return Source("test.mlir", text)


def golden(source: Source, *arrays: np.ndarray) -> np.ndarray:
    return Golden(read_module(source)).run("f", list(arrays))[0]


def on_device(source: Source, *arrays: np.ndarray) -> np.ndarray:
    compiled = compile_module(source, CompileOptions("m"))
    return Interpreter(read_ttnn(compiled.flatbuffer)).run("f", list(arrays))[0]


def test_booleans_are_counted() -> None:
    source = source_of("sum", ["1000xi1"], "i32", "dim_arg = [0 : i32], keep_dim = false")
    ones = np.ones(1000, dtype=bool)
    assert golden(source, ones) == 1000
    assert on_device(source, ones) == 1000


@pytest.mark.parametrize(("op", "expected"), [("sum", 400), ("prod", 100**4)])
def test_sums_and_products_of_bytes_have_the_room_of_their_result(op: str, expected: int) -> None:
    source = source_of(op, ["4xi8"], "i32", "dim_arg = [0 : i32], keep_dim = false")
    assert golden(source, np.full(4, 100, dtype=np.int8)) == expected


def test_running_sums_of_bytes_have_the_room_of_their_result() -> None:
    source = source_of("cumsum", ["3xi8"], "3xi32", "dim = 0 : i64")
    found = golden(source, np.full(3, 100, dtype=np.int8))
    np.testing.assert_array_equal(found, [100, 200, 300])


def test_powers_of_integers_are_exact() -> None:
    source = source_of("pow", ["4xi32", "4xi32"], "4xi32")
    found = golden(source, np.array([3, 7, -1, 2], np.int32), np.array([19, 11, -3, -1], np.int32))
    np.testing.assert_array_equal(found, [3**19, 7**11, -1, 0])


@pytest.mark.parametrize(
    ("op", "result", "expected"),
    [
        ("add", "4xi32", [0, 1, 1, 2]),
        ("subtract", "4xi32", [0, -1, 1, 0]),
        ("add", "4xi1", [False, True, True, True]),
        ("subtract", "4xi1", [False, True, True, False]),
    ],
)
def test_arithmetic_of_booleans_is_that_of_numbers(
    op: str, result: str, expected: list[int]
) -> None:
    source = source_of(op, ["4xi1", "4xi1"], result)
    operands = np.array([0, 0, 1, 1], bool), np.array([0, 1, 0, 1], bool)
    np.testing.assert_array_equal(golden(source, *operands), expected)
    np.testing.assert_array_equal(
        on_device(source, *operands).astype(bool), np.array(expected) != 0
    )


@pytest.mark.parametrize(
    ("op", "operands"),
    [
        *((op, ["4xi1"]) for op in ("neg", "sigmoid", "cos", "reciprocal", "hardsigmoid", "sqrt")),
        ("atan2", ["4xi1", "4xi1"]),
        ("leaky_relu", ["4xi1"]),
        *((op, ["4xf32"]) for op in ("abs", "exp", "relu", "trunc", "isfinite")),
        *((op, ["4xf32", "4xf32"]) for op in ("add", "multiply", "maximum", "div")),
        *((op, ["4xi32"]) for op in ("sin", "relu", "sigmoid", "abs")),
        *((op, ["4xi32", "4xi32"]) for op in ("subtract", "minimum")),
    ],
)  # fmt: skip
def test_a_boolean_that_is_computed_is_0_or_1(op: str, operands: Sequence[str]) -> None:
    """True where the number that the op computes is not 0."""
    values = {
        "4xi1": np.array([0, 1, 1, 0], bool),
        "4xf32": np.array([0, -2.5, 0.75, 3], np.float32),
        "4xi32": np.array([0, -2, 7, 3], np.int32),
    }
    source = source_of(op, operands, "4xi1")
    arrays = [np.roll(values[type_], index) for index, type_ in enumerate(operands)]
    found = on_device(source, *arrays)
    np.testing.assert_array_equal(found, golden(source, *arrays).astype(found.dtype))


BYTES = np.array([0, -7, 100, 127, -128, 5], np.int8), np.array([2, 3, 100, 2, -1, -3], np.int8)


@pytest.mark.parametrize("result", ["i8", "i32", "f32", "i1"])
@pytest.mark.parametrize(
    ("op", "expected"),
    [
        ("add", [2, -4, 200, 129, -129, 2]),
        ("subtract", [-2, -10, 0, 125, -127, 8]),
        ("multiply", [0, -21, 10000, 254, 128, -15]),
        ("div", [0, -2, 1, 63, 128, -1]),
        ("neg", [0, 7, -100, -127, 128, -5]),
        ("abs", [0, 7, 100, 127, 128, 5]),
        ("square", [0, 49, 10000, 16129, 16384, 25]),
    ],
)
def test_arithmetic_of_bytes_has_the_room_of_its_result(
    op: str, result: str, expected: Sequence[int]
) -> None:
    arrays = BYTES[: 1 if op in ("neg", "abs", "square") else 2]
    source = source_of(op, ["6xi8"] * len(arrays), f"6x{result}")
    numbers = np.array(expected)
    wanted = {"i8": numbers.astype(np.int8), "i1": numbers != 0}.get(result, numbers)
    for run in (golden, on_device):
        np.testing.assert_array_equal(run(source, *arrays), wanted)


@pytest.mark.parametrize("element", ["i8", "ui8", "i32", "ui32", "f32"])
@pytest.mark.parametrize(
    ("op", "operands", "result", "attributes"),
    [
        ("atan2", 2, "4x{}", ""),
        ("clamp_scalar", 1, "4x{}", "min = -1.0 : f32, max = 2.0 : f32"),
        ("max", 1, "{}", "dim_arg = [0 : i32], keep_dim = false"),
        ("max_pool2d", 1, "1x1x1x1x{}", POOL),
        ("sum", 1, "{}", "dim_arg = [0 : i32], keep_dim = false"),
    ],
)
@pytest.mark.parametrize("to", ["i1", "i32", "f32"])
def test_a_result_of_another_type_is_converted(
    element: str, op: str, operands: int, result: str, attributes: str, to: str
) -> None:
    """The result is computed in the operands' type and then converted."""
    shape = "1x2x2x1x" if op == "max_pool2d" else "4x"
    source = source_of(op, [shape + element] * operands, result.format(to), attributes)
    values = np.array([0, 7, 16, 5] if element.startswith("u") else [0, -7, 16, 5])
    dtype = {"i8": np.int8, "ui8": np.uint8, "i32": np.int32, "ui32": np.uint32}.get(
        element, np.float32
    )
    arrays = [values.astype(dtype).reshape((1, 2, 2, 1) if op == "max_pool2d" else 4)] * operands
    found = on_device(source, *arrays)
    expected = golden(source, *arrays)
    np.testing.assert_allclose(found, expected.astype(found.dtype), rtol=1e-2)


@pytest.mark.parametrize("element", ["i8", "ui8", "i32", "ui32", "f32"])
@pytest.mark.parametrize(
    ("op", "operands", "result", "attributes"),
    [
        ("concat", 2, "8x{}", "dim = 0 : si32"),
        ("pad", 1, "6x{}", "padding = array<i32: 1, 1>, value = 7.0 : f32"),
        ("reshape", 1, "2x2x{}", "shape = [2 : i32, 2 : i32]"),
        ("reverse", 1, "4x{}", "dimensions = array<i64: 0>"),
    ],
)
@pytest.mark.parametrize("to", ["i1", "i32", "f32"])
def test_ops_that_move_elements_keep_their_type(
    element: str, op: str, operands: int, result: str, attributes: str, to: str
) -> None:
    source = source_of(op, [f"4x{element}"] * operands, result.format(to), attributes)
    if to != element:
        with pytest.raises(
            CompileError, match=rf"ttir\.{op}: expected .* (type, found 2|found {to})"
        ):
            compile_module(source, CompileOptions("m"))
        return
    values = np.array([0, 7, 16, 5], np.int32 if element == "i32" else np.float32)
    values[1] *= -1
    moved = {
        "concat": np.concatenate([values, values]),
        "pad": np.pad(values, 1, constant_values=7),
        "reshape": values.reshape(2, 2),
        "reverse": values[::-1],
    }
    for run in (golden, on_device):
        np.testing.assert_array_equal(run(source, *[values] * operands), moved[op])


def test_a_mask_chooses_between_numbers_that_become_booleans() -> None:
    source = source_of("where", ["3xi1", "3xi8", "3xi8"], "3xi1")
    arrays = np.array([1, 1, 0], bool), np.array([0, -5, 3], np.int8), np.array([1, 1, 4], np.int8)
    for run in (golden, on_device):
        np.testing.assert_array_equal(run(source, *arrays), [False, True, True])


@pytest.mark.parametrize("element", ["ui8", "ui32"])
def test_unsigned_integers_divided_by_zero(element: str) -> None:
    dtype = {"ui8": np.uint8, "ui32": np.uint32}[element]
    arrays = np.array([0, 7, 9], dtype), np.array([0, 0, 2], dtype)
    for result in (element, "f32"):
        source = source_of("div", [f"3x{element}"] * 2, f"3x{result}")
        found = golden(source, *arrays)
        np.testing.assert_array_equal(found, np.array([0, 0, 4], found.dtype))
        np.testing.assert_array_equal(on_device(source, *arrays), found)


@pytest.mark.parametrize(
    ("op", "operands", "result", "attributes", "message"),
    [
        ("remainder", ["4xi1", "4xi1"], "4xi1", "", "expected numbers, found elements of type i1"),
        ("dropout", ["4xf32"], "4xi1", "", "expected floats, found elements of type i1"),
        ("dropout", ["4xi8"], "4xi8", "", "expected floats, found elements of type i8"),
        ("gelu_bw", ["4xi32", "4xi32"], "4xf32", "", "expected floats, found elements of type i32"),
        ("softmax", ["4xi32"], "4xi32", "dimension = 0 : si32", "expected floats"),
        ("logical_left_shift", ["4xi8", "4xi8"], "4xi32", "", "expected a result of i8, found"),
        ("bitwise_not", ["4xui8"], "4xi32", "", "expected a result of ui8, found"),
    ],
)  # fmt: skip
def test_what_has_no_meaning_that_all_runs_share_is_refused(
    op: str, operands: Sequence[str], result: str, attributes: str, message: str
) -> None:
    with pytest.raises(CompileError, match=message) as caught:
        compile_module(source_of(op, operands, result, attributes), CompileOptions("m"))
    assert caught.value.diagnostics[0].place is not None


def test_the_negative_of_a_boolean_is_what_it_was() -> None:
    source = source_of("neg", ["2xi1"], "2xi1")
    values = np.array([False, True])
    np.testing.assert_array_equal(golden(source, values), values)


@pytest.mark.parametrize("index", [7, 5, -1])
@pytest.mark.parametrize(
    ("op", "shapes", "attributes"),
    [
        ("embedding", ((2,), (5, 4)), ""),
        ("gather", ((5, 4), (2, 4)), "dim = 0 : i32"),
        ("gather", ((5, 4), (2, 4)), "dim = -2 : i32"),
        ("embedding_backward", ((2,), (5, 4), (2, 4)), ""),
    ],
)
def test_an_index_out_of_range_is_named(
    op: str, shapes: tuple[tuple[int, ...], ...], attributes: str, index: int
) -> None:
    """None counts from the end."""
    at = 1 if op == "gather" else 0
    shaped = ["x".join(map(str, shape)) for shape in shapes]
    types = [f"{each}x{'i32' if i == at else 'f32'}" for i, each in enumerate(shaped)]
    result = types[1] if op == "embedding_backward" else "2x4xf32"
    source = source_of(op, types, result, attributes)
    dtypes = [np.int32 if i == at else np.float32 for i in range(len(shapes))]
    arrays = [np.zeros(shape, dtype) for shape, dtype in zip(shapes, dtypes, strict=True)]
    golden(source, *arrays)
    arrays[at].flat[1] = index
    with pytest.raises(CompileError, match=rf"'ttir.{op}' cannot run: index {index} is out of"):
        golden(source, *arrays)
    if op != "embedding_backward":  # of f32 that is a scatter, which leaves such indices out
        with pytest.raises(CompileError, match=rf"cannot run: index {index % 2**32} is out of"):
            on_device(source, *arrays)


@pytest.mark.parametrize("run", [golden, on_device])
def test_signs_of_no_number_are_those_of_its_bits(run: Run) -> None:
    source = source_of("sign", ["4xf32"], "4xf32")
    found = run(source, np.array([NAN, -NAN, 3, 0], np.float32))
    np.testing.assert_array_equal(found, [1, -1, 1, 0])


@pytest.mark.parametrize("run", [golden, on_device])
def test_no_number_is_clamped_by_its_sign(run: Run) -> None:
    source = source_of("clamp_tensor", ["3xf32"] * 3, "3xf32")
    bounds = np.full(3, -2, np.float32), np.full(3, 5, np.float32)
    found = run(source, np.array([NAN, -NAN, 7], np.float32), *bounds)
    np.testing.assert_array_equal(found, [5, -2, 5])


@pytest.mark.parametrize("run", [golden, on_device])
@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (NAN, NAN, [NAN] * 6),
        (NAN, -NAN, [NAN] * 6),
        (NAN, 2, [NAN] * 6),
        (-NAN, NAN, [1, 5, NAN, -NAN, INF, -INF]),
        (-NAN, -NAN, [-NAN] * 6),
        (-NAN, 2, [1, 2, 2, -NAN, 2, -INF]),
        (-1, NAN, [1, 5, NAN, -1, INF, -1]),
        (-1, -NAN, [-1] * 6),
        (3, -1, [-1] * 6),
        (INF, -INF, [-INF] * 6),
    ],
)
def test_bounds_that_are_no_number_order_by_their_sign(
    run: Run, low: float, high: float, expected: list[float]
) -> None:
    """Values of `ttnn.clamp` of tt-metal 0.70.1 on the vendor's simulator of a Wormhole."""
    source = source_of("clamp_tensor", ["6xf32"] * 3, "6xf32")
    given = np.array([1, 5, NAN, -NAN, INF, -INF], np.float32)
    found = run(source, given, np.full(6, low, np.float32), np.full(6, high, np.float32))
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(np.signbit(found), np.signbit(expected))


@pytest.mark.parametrize("run", [golden, on_device])
@pytest.mark.parametrize(("element", "expected"), [("f32", 2), ("bf16", 1)])
def test_argmax_compares_bits_of_bfloat16_and_passes_over_no_number_of_f32(
    run: Run, element: str, expected: int
) -> None:
    source = source_of("argmax", [f"4x{element}"], "i32", "dim_arg = [0 : i32], keep_dim = false")
    dtype = np.float32 if element == "f32" else ml_dtypes.bfloat16
    assert run(source, np.array([1, NAN, 3, 2], dtype)) == expected


@pytest.mark.parametrize("element", ["i128", "i5", "index"])
def test_element_types_that_no_tensor_has_are_refused(element: str) -> None:
    with pytest.raises(CompileError, match=element):
        compile_module(source_of("abs", [f"4x{element}"], f"4x{element}"), CompileOptions("m"))


def test_a_constant_beyond_32_bits_is_refused() -> None:
    text = (
        "func.func @f() -> tensor<2xi64> {{\n"
        '  %0 = "ttir.constant"() <{{value = dense<[1, {value}]> : tensor<2xi64>}}>'
        " : () -> tensor<2xi64>\n  return %0 : tensor<2xi64>\n}}\n"
    )
    with pytest.raises(CompileError, match="the constant holds 1099511627776"):
        compile_module(Source("c.mlir", text.format(value=2**40)), CompileOptions("m"))
    # The limit of the type says that there is no limit.
    compile_module(Source("c.mlir", text.format(value=2**63 - 1)), CompileOptions("m"))


@pytest.mark.parametrize("op", ["sum", "max", "min", "prod"])
@pytest.mark.parametrize("element", ["i32", "ui32", "i64", "i16"])
@pytest.mark.parametrize("dims", [[1], [0], [0, 1]])
def test_reductions_of_integers_keep_all_of_their_bits(
    op: str, element: str, dims: list[int]
) -> None:
    result = "x".join([*(str(size) for i, size in enumerate((3, 37)) if i not in dims), "i32"])
    listed = ", ".join(f"{dim} : i32" for dim in dims)
    attributes = f"dim_arg = [{listed}], keep_dim = false"
    source = source_of(op, [f"3x37x{element}"], result.replace("i32", element), attributes)
    dtype = {"i32": np.int32, "ui32": np.uint32, "i64": np.int64, "i16": np.int16}[element]
    # As large as the type and the result have room for.
    largest = 2**14 if element == "i16" else 2**31 - 1
    values = np.random.default_rng(0).integers(1, largest // (111 if op == "sum" else 1), (3, 37))
    if op == "prod":
        values = np.where(values % 37, 1, 3)
    found = golden(source, values.astype(dtype))
    np.testing.assert_array_equal(on_device(source, values.astype(dtype)), found)
    if op == "max":
        np.testing.assert_array_equal(found, values.max(axis=tuple(dims)))


def test_check_inputs_tell_integers_of_32_bits_from_floats() -> None:
    def drawn(op: str, attributes: str = "") -> np.ndarray:
        source = source_of(op, ["64xi32"], "i32" if attributes else "64xi32", attributes)
        module = read_module(source)
        (function,) = [each for each in module.ops if isinstance(each, FuncOp)]
        return draw_inputs(module, function, 0)["x0"]

    assert np.abs(drawn("sum", "dim_arg = [0 : i32], keep_dim = false")).max() > 2**24
    assert np.abs(drawn("max", "dim_arg = [0 : i32], keep_dim = false")).max() > 2**28
    assert np.abs(drawn("abs")).max() > 2**28
    assert np.abs(drawn("relu")).max() < 2**24


def test_quotients_of_signed_integers_are_exact_on_the_device() -> None:
    source = source_of("div", ["6xi32", "6xi32"], "6xi32")
    values = np.array([2**31 - 1, -(2**31) + 1, 123456789, -7, 7, 5], np.int32)
    divisors = np.array([2, 3, 7, 2, -2, 0], np.int32)
    expected = [2**30 - 1, -((2**31 - 1) // 3), 123456789 // 7, -3, -3, 0]
    np.testing.assert_array_equal(golden(source, values, divisors), expected)
    np.testing.assert_array_equal(on_device(source, values, divisors), expected)


@pytest.mark.parametrize("op", ["floor", "ceil", "trunc"])
def test_rounding_leaves_integers_as_they_are(op: str) -> None:
    given = np.array([16777217, -2147483648, 2147483647], np.int32)
    source = source_of(op, ["3xi32"], "3xi32")
    np.testing.assert_array_equal(golden(source, given), given)
    np.testing.assert_array_equal(on_device(source, given), given)


def test_bounds_of_unsigned_integers_beyond_31_bits() -> None:
    given = np.array([5, 3000000000, 4294967295], np.uint32)
    source = source_of(
        "clamp_scalar", ["3xui32"], "3xui32", "min = 7 : i32, max = -294967296 : i32"
    )
    expected = np.array([7, 3000000000, 4000000000], np.uint32)
    np.testing.assert_array_equal(golden(source, given), expected)
    np.testing.assert_array_equal(on_device(source, given), expected)


LARGE = (257, -1001, 2**24 + 1, 123456789, 2**31 - 1, -(2**31))


@pytest.mark.parametrize(("element", "dtype"), [("i32", np.int32), ("ui32", np.uint32)])
def test_rows_of_integers_have_all_bits(element: str, dtype: type) -> None:
    table = np.array(LARGE, np.int64).astype(dtype).reshape(3, 2)
    at = np.array([[2, 0], [1, 1]], np.int32)
    source = source_of("embedding", ["2x2xi32", f"3x2x{element}"], f"2x2x2x{element}")
    assert np.array_equal(golden(source, at, table), table[at])
    assert np.array_equal(on_device(source, at, table), table[at])


def test_rows_of_f32_that_are_compared_have_all_bits() -> None:
    text = (
        "func.func @f(%at: tensor<4xi32>, %table: tensor<5x3xf32>, %x: tensor<4x3xf32>) "
        "-> (tensor<4x3xi1>, tensor<4x3xf32>) {\n"
        '  %0 = "ttir.embedding"(%at, %table) '
        ": (tensor<4xi32>, tensor<5x3xf32>) -> tensor<4x3xf32>\n"
        '  %1 = "ttir.eq"(%0, %x) : (tensor<4x3xf32>, tensor<4x3xf32>) -> tensor<4x3xi1>\n'
        "  return %1, %0 : tensor<4x3xi1>, tensor<4x3xf32>\n}\n"
    )
    table = np.random.default_rng(0).standard_normal((5, 3)).astype(np.float32)
    table[3] = [np.inf, -np.inf, 3.4e38]
    at = np.array([3, 0, 4, 3], np.int32)
    compiled = compile_module(Source("test.mlir", text), CompileOptions("m"))
    same, rows = Interpreter(read_ttnn(compiled.flatbuffer)).run("f", [at, table, table[at]])
    assert same.all()
    assert np.array_equal(rows, table[at])


def library_calls(source: Source) -> list[tuple[str, str]]:
    """Names of the ops of the device, each with the element type that it is given."""
    compiled = compile_module(source, CompileOptions("m"))
    program = read_ttnn(compiled.flatbuffer).program("f")
    return [
        (each.name, program.tensors[each.operands[0]].type.placement.data_type.mlir)
        for each in program.operations
        if each.operands and each.name != "ttnn.deallocate"
    ]


@pytest.mark.parametrize("element", ["si32", "ui32", "ui16", "ui8"])
@pytest.mark.parametrize("op", ["isfinite", "isinf", "isnan", "relu6", "sign", "signbit"])
def test_kernels_of_floats_get_floats(op: str, element: str) -> None:
    calls = library_calls(source_of(op, [f"32x32x{element}"], f"32x32x{element}"))
    assert (f"ttnn.{op}", "f32") in calls


@pytest.mark.parametrize(
    ("op", "element", "kernel"),
    [
        ("right_shift", "ui32", "logical_right_shift"),
        ("right_shift", "ui16", "logical_right_shift"),
        ("neg", "ui32", "subtract"),
        ("neg", "ui16", "subtract"),
    ],
)
def test_kernels_that_know_signs_alone_get_no_unsigned_integers(
    op: str, element: str, kernel: str
) -> None:
    operands = [f"32x32x{element}"] * (2 if op == "right_shift" else 1)
    names = [name for name, _ in library_calls(source_of(op, operands, operands[0]))]
    assert f"ttnn.{kernel}" in names
    assert not {"ttnn.neg", "ttnn.bitwise_right_shift"} & set(names)


@pytest.mark.parametrize(
    "op", ["add", "subtract", "multiply", "maximum", "minimum", "eq", "lt", "logical_and"]
)
def test_no_kernel_gets_or_gives_bytes(op: str) -> None:
    calls = library_calls(source_of(op, ["32x32xui8"] * 2, "32x32xui8"))
    assert (f"ttnn.{op}", "u32") in calls
    assert calls[-1] == ("ttnn.typecast", "u32")


@pytest.mark.parametrize("op", ["maximum", "minimum"])
def test_extremes_of_16_bits_are_found_in_32(op: str) -> None:
    calls = library_calls(source_of(op, ["32x32xui16"] * 2, "32x32xui16"))
    assert (f"ttnn.{op}", "u32") in calls


def test_powers_of_integers_wrap_and_are_cut_off() -> None:
    bases = np.array([3, -3, 7, 2, 2, -1, -1, 1, 0, 0, 5, 46341, -2], np.int32)
    exponents = np.array([13, 3, 11, 31, 32, -3, -4, -9, 0, 5, -2, 2, 33], np.int32)
    expected = [3**13, -27, 7**11, 2**31, 0, -1, 1, 1, 1, 0, 0, 46341**2, 0]
    source = source_of("pow", ["13xsi32"] * 2, "13xsi32")
    assert "ttnn.pow" not in [name for name, _ in library_calls(source)]
    np.testing.assert_array_equal(
        on_device(source, bases, exponents), np.array(expected).astype(np.int32)
    )


def test_amounts_of_shifts_beyond_31_leave_the_sign() -> None:
    numbers = np.array([-5, 5, -5, 5, -1024, 1024, -7, 7], np.int32)
    amounts = np.array([32, 40, -1, -31, 5, 5, 31, 0], np.int32)
    source = source_of("right_shift", ["8xsi32"] * 2, "8xsi32")
    found = on_device(source, numbers, amounts)
    np.testing.assert_array_equal(found, [-1, 0, -1, 0, -32, 32, -1, 7])


@pytest.mark.parametrize("fill", [0.1, -np.inf])
def test_the_kernel_that_pads_rows_fills_f32_with_zero_alone(fill: float) -> None:
    text = "0xFF800000" if np.isinf(fill) else str(fill)
    attributes = f"padding = array<i32: 1, 2, 0, 0>, value = {text} : f32"
    source = source_of("pad", ["4x4xf32"], "7x4xf32", attributes)
    assert "ttnn.where" in [name for name, _ in library_calls(source)]
    x = np.arange(16, dtype=np.float32).reshape(4, 4)
    expected = np.pad(x, ((1, 2), (0, 0)), constant_values=np.float32(fill))
    np.testing.assert_array_equal(on_device(source, x), expected)
