from __future__ import annotations

import numpy as np
import pytest

from tests.transforms.numpy_execution import run
from tests.transforms.programs import Transformed, apply, compare, operations
from ttcodegen.dialects.core.datatypes import constant_array
from ttcodegen.foundation.diagnostics import CompileError, Source
from ttcodegen.parsing import check_supported, parse_module
from ttcodegen.transforms.ttir.element_types import TTIRElementTypeNormalizationPass


def normalized(text: str) -> Transformed:
    module = parse_module(Source("in.mlir", text))
    return apply(module, TTIRElementTypeNormalizationPass())


def unary(op: str, source: str, target: str, attributes: str = "") -> str:
    return (
        f"func.func @f(%a: tensor<4x{source}>) -> tensor<4x{target}> {{\n"
        f'  %0 = "ttir.{op}"(%a) {attributes} : (tensor<4x{source}>) -> tensor<4x{target}>\n'
        f"  return %0 : tensor<4x{target}>\n}}\n"
    )


def constant(value: str, element: str, shape: str = "4x") -> str:
    type_ = f"tensor<{shape}{element}>"
    return (
        f"func.func @f() -> {type_} {{\n"
        f'  %0 = "ttir.constant"() <{{value = dense<{value}> : {type_}}}> : () -> {type_}\n'
        f"  return %0 : {type_}\n}}\n"
    )


@pytest.mark.parametrize(
    ("source", "device"),
    [
        ("i1", "bf16"), ("i8", "si32"), ("i16", "si32"), ("i32", "si32"), ("i64", "si32"),
        ("ui8", "ui8"), ("ui16", "ui16"), ("ui32", "ui32"), ("ui64", "ui32"),
        ("f16", "bf16"), ("bf16", "bf16"), ("f32", "f32"), ("f64", "f32"),
    ],
)  # fmt: skip
def test_signatures_are_normalized_and_the_source_is_kept(source: str, device: str) -> None:
    result = normalized(unary("abs", source, source))
    function = result.function
    assert str(function.function_type) == f"(tensor<4x{device}>) -> tensor<4x{device}>"
    assert str(function.body.block.args[0].type) == f"tensor<4x{device}>"
    kept = function.attributes["ttcodegen.source_types"]
    assert str(kept) == f"(tensor<4x{source}>) -> tensor<4x{source}>"


@pytest.mark.parametrize(
    ("value", "element", "expected"),
    [
        ("[1, -1, 9223372036854775807, -9223372036854775808]", "i64",
         [1, -1, 2**31 - 1, -(2**31)]),
        ("[1, 18446744073709551615, 3, 4]", "ui64", [1, 2**32 - 1, 3, 4]),
        ("[-128, 127, 0, 1]", "i8", [-128, 127, 0, 1]),
        ("[true, false, true, true]", "i1", [1.0, 0.0, 1.0, 1.0]),
        ("[1.0, -1.0e300, 1.0e300, 0xFFF0000000000000]", "f64",
         [1.0, -3.4028235e38, 3.4028235e38, -np.inf]),
        ("[1.0, 65504.0, 0.5, -2.0]", "f16", [1.0, 65536.0, 0.5, -2.0]),
    ],
)  # fmt: skip
def test_constants_are_converted(value: str, element: str, expected: list[float]) -> None:
    result = normalized(constant(value, element))
    found = constant_array(result.op("constant").parameter("value"))
    np.testing.assert_array_equal(found.astype(np.float64), np.array(expected, dtype=np.float64)
                                  if element != "f64" else np.float32(expected))  # fmt: skip


@pytest.mark.parametrize(("value", "element", "size"), [("true", "i1", 2), ("7", "i64", 4)])
def test_a_splat_stays_one_element(value: str, element: str, size: int) -> None:
    result = normalized(constant(value, element, "100000x100000x"))
    assert len(result.op("constant").parameter("value").data.data) == size


@pytest.mark.parametrize("source", ["f32", "i32", "bf16", "ui8"])
def test_a_conversion_to_a_boolean_is_a_comparison(source: str) -> None:
    text = unary("typecast", source, "i1")
    result = normalized(text)
    assert result.names == ["ne"]
    (found,) = run(result.function, [np.array([0, 1, 2, 200])])
    np.testing.assert_array_equal(found, [0, 1, 1, 1])


@pytest.mark.parametrize(
    ("source", "target"), [("f64", "f32"), ("i64", "i32"), ("i1", "bf16"), ("f16", "bf16")]
)
def test_conversions_between_what_is_one_type_vanish(source: str, target: str) -> None:
    assert normalized(unary("typecast", source, target)).names == []


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("add", "logical_or"), ("multiply", "logical_and"), ("subtract", "logical_xor"),
        ("bitwise_and", "logical_and"), ("bitwise_or", "logical_or"),
        ("bitwise_xor", "logical_xor"), ("maximum", "maximum"), ("minimum", "minimum"),
    ],
)  # fmt: skip
def test_arithmetic_of_booleans(name: str, expected: str) -> None:
    t = "tensor<4xi1>"
    result = normalized(
        f"func.func @f(%a: {t}, %b: {t}) -> {t} {{\n"
        f'  %0 = "ttir.{name}"(%a, %b) : ({t}, {t}) -> {t}\n  return %0 : {t}\n}}\n'
    )
    assert result.names == [expected]
    a, b = np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1])
    bits = {"logical_or": a | b, "logical_and": a & b, "logical_xor": a ^ b,
            "maximum": a | b, "minimum": a & b}[expected]  # fmt: skip
    (found,) = run(result.function, [a, b])
    np.testing.assert_array_equal(found, bits)


def test_a_sum_of_booleans_is_a_disjunction() -> None:
    text = unary("sum", "i1", "i1", "<{dim_arg = [0 : i32], keep_dim = true}>")
    text = text.replace("-> tensor<4xi1>", "-> tensor<1xi1>").replace(
        "return %0 : tensor<4xi1>", "return %0 : tensor<1xi1>"
    )
    assert normalized(text).names == ["reduce_or"]


@pytest.mark.parametrize(
    ("element", "value", "expected"),
    [
        ("i64", "9223372036854775807 : i64", 2**31 - 1),
        ("i64", "-9223372036854775807 : i64", -(2**31)),
        ("i1", "true", 1),
        ("i64", "-9223372036854775808 : i64", -(2**31)),
        ("i64", "-2147483648 : i64", -(2**31)),
        ("ui64", "18446744073709551615 : ui64", 2**32 - 1),
        ("i32", "0x7F800000 : f32", 2**31 - 1),
        ("i32", "0xFF800000 : f32", -(2**31)),
        ("ui16", "1.0e+10 : f32", 2**16 - 1),
        ("i32", "0x7FC00000 : f32", 0),
        ("i1", "2.5 : f32", 1),
        ("ui32", "-1 : i32", 2**32 - 1),
        ("ui8", "-1 : i32", 255),
    ],
)
def test_numbers_saturate(element: str, value: str, expected: int) -> None:
    t = f"tensor<4x{element}>"
    result = normalized(
        f"func.func @f() -> {t} {{\n"
        f'  %0 = "ttir.full"() <{{fill_value = {value}, shape = array<i32: 4>}}> : () -> {t}\n'
        f"  return %0 : {t}\n}}\n"
    )
    assert result.op("full").parameter("fill_value") == expected


LEFT_OUT = {
    "ttir.full": "fill_value = VALUE : i64, shape = array<i32: 2>",
    "ttir.constant": "value = dense<VALUE> : tensor<2xTYPE>",
    "ttir.constant ": "value = dense<[1, VALUE]> : tensor<2xTYPE>",
}


@pytest.mark.parametrize("op", LEFT_OUT)
@pytest.mark.parametrize(
    ("element", "value", "limits"),
    [
        ("i64", "5000000000", "-2147483648 to 2147483647"),
        ("i64", "2147483648", "-2147483648 to 2147483647"),
        ("i64", "-2147483649", "-2147483648 to 2147483647"),
        ("i64", "9223372036854775806", "-2147483648 to 2147483647"),
        ("ui64", "4294967296", "0 to 4294967295"),
    ],
)
def test_numbers_without_room_are_refused_where_they_stand(
    op: str, element: str, value: str, limits: str
) -> None:
    attributes = LEFT_OUT[op].replace("VALUE", value).replace("TYPE", element)
    t = f"tensor<2x{element}>"
    text = (
        f'func.func @f() -> {t} {{\n  %0 = "{op.strip()}"() <{{{attributes}}}> : () -> {t}\n'
        f"  return %0 : {t}\n}}\n"
    )
    source = Source("in.mlir", text)
    with pytest.raises(CompileError) as error:
        apply(parse_module(source), TTIRElementTypeNormalizationPass())
    assert error.value.render(source).startswith(
        f"in.mlir:2:8: error: the constant holds {value}, and integers of the device are from "
        f"{limits}\n"
    )


def test_bounds_without_room_bound_nothing() -> None:
    bounds = "<{min = -5000000000 : i64, max = 7 : i64}>"
    result = normalized(unary("clamp_scalar", "i64", "i64", bounds))
    clamp = result.op("clamp_scalar")
    assert (clamp.parameter("min"), clamp.parameter("max")) == (-(2**31), 7)


def test_booleans_that_are_no_numbers_are_left_alone() -> None:
    text = (
        unary("max", "i1", "i1", "<{dim_arg = [0 : i32], keep_dim = true}>")
        .replace("tensor<4xi1>\n", "tensor<1xi1>\n")
        .replace(") -> tensor<4xi1> {", ") -> tensor<1xi1> {")
    )
    assert normalized(text).op("max").parameter("keep_dim") is True


def test_all_unsupported_element_types_are_listed() -> None:
    source = Source("in.mlir", unary("abs", "complex<f32>", "complex<f32>"))
    module = parse_module(source)
    with pytest.raises(CompileError) as error:
        apply(module, TTIRElementTypeNormalizationPass())
    message = error.value.render(source)
    assert message.count("complex<f32>, which no device data type represents") == 2
    assert "in.mlir:1:1: error: argument 0 of '@f'" in message
    assert "in.mlir:2:" in message


def test_a_program_of_booleans_keeps_its_results() -> None:
    text = """
    func.func @f(%a: tensor<8xi64>, %b: tensor<8xf32>) -> (tensor<8xi1>, tensor<8xi64>) {
      %0 = "ttir.typecast"(%b) : (tensor<8xf32>) -> tensor<8xi1>
      %1 = "ttir.typecast"(%a) : (tensor<8xi64>) -> tensor<8xi1>
      %2 = "ttir.logical_and"(%0, %1) : (tensor<8xi1>, tensor<8xi1>) -> tensor<8xi1>
      %3 = "ttir.add"(%2, %1) : (tensor<8xi1>, tensor<8xi1>) -> tensor<8xi1>
      %4 = "ttir.typecast"(%3) : (tensor<8xi1>) -> tensor<8xi64>
      %5 = "ttir.add"(%4, %a) : (tensor<8xi64>, tensor<8xi64>) -> tensor<8xi64>
      return %3, %5 : tensor<8xi1>, tensor<8xi64>
    }"""
    inputs = [np.array([0, 1, 0, 3, 0, 5, 0, 7]), np.array([0, 0, 0.5, 0.5, -1, -1, 0, 2])]
    before = parse_module(Source("in.mlir", text))
    (function,) = operations(before, "func.func")
    expected = run(function, inputs)
    result = normalized(text)
    compare([e.astype(np.int64) for e in expected],
            [f.astype(np.int64) for f in run(result.function, inputs)], function)  # fmt: skip


@pytest.mark.parametrize(
    ("element", "shifted", "expected"),
    [
        # The lower and the upper half of a byte.
        ("i8", "logical_left_shift right_shift", [-1, 1, 0]),
        ("i8", "logical_right_shift", [15, 7, 15]),
        ("ui8", "logical_left_shift logical_right_shift", [15, 1, 0]),
    ],
)
def test_shifts_of_bytes_drop_what_is_beyond(
    element: str, shifted: str, expected: list[int]
) -> None:
    t = f"tensor<3x{element}>"
    lines, value = [], "%x"
    for index, name in enumerate(shifted.split()):
        lines.append(f'  %{index} = "ttir.{name}"({value}, %four) : ({t}, {t}) -> {t}')
        value = f"%{index}"
    result = normalized(
        f"func.func @f(%x: {t}, %four: {t}) -> {t} {{\n"
        + "\n".join(lines)
        + f"\n  return {value} : {t}\n}}\n"
    )
    x = np.array([-1, 0x71, -16] if element == "i8" else [0xFF, 0x71, 0xF0])
    (found,) = run(result.function, [x, np.full(3, 4)])
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    ("source", "target", "value", "expected"),
    [
        ("i8", "ui8", [-1, 5], [255, 5]),
        ("ui8", "i8", [255, 5], [-1, 5]),
        ("i16", "ui16", [-2, 5], [65534, 5]),
        ("bf16", "i16", [-1.0, 1.0], [0xBF80 - 65536, 0x3F80]),
        ("i16", "bf16", [0xBF80 - 65536, 0x3F80], [-1.0, 1.0]),
    ],
)
def test_bits_of_narrow_types_are_kept(
    source: str, target: str, value: list[float], expected: list[float]
) -> None:
    s, t = f"tensor<2x{source}>", f"tensor<2x{target}>"
    result = normalized(
        f"func.func @f(%x: {s}) -> {t} {{\n"
        f'  %0 = "ttir.bitcast_convert"(%x) : ({s}) -> {t}\n  return %0 : {t}\n}}\n'
    )
    (found,) = run(result.function, [np.array(value)])
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(("source", "target"), [("f16", "i16"), ("i64", "f64"), ("f16", "bf16")])
def test_bits_that_the_device_does_not_have_are_refused(source: str, target: str) -> None:
    text = unary("bitcast_convert", source, target)
    module = parse_module(Source("in.mlir", text))
    with pytest.raises(CompileError, match="is another type on the device"):
        check_supported(module)
