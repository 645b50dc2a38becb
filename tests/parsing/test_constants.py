"""Constants mean what they say, whatever way they are written."""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np
import pytest

from tests.parsing.reading import body, constant, constant_attribute, failure, operations, parse
from ttcodegen.dialects.core.datatypes import constant_array, splat_value

INFINITIES = [
    ("bf16", "0xFF80"),
    ("f16", "0xFC00"),
    ("f32", "0xFF800000"),
    ("f64", "0xFFF0000000000000"),
]


@pytest.mark.parametrize(("element", "pattern"), INFINITIES)
def test_hexadecimal_splats_of_floats_are_bit_patterns(element: str, pattern: str) -> None:
    assert splat_value(constant(pattern, f"tensor<2x3x{element}>")) == -math.inf
    assert splat_value(constant(pattern, f"tensor<{element}>")) == -math.inf


@pytest.mark.parametrize(("element", "pattern"), INFINITIES)
def test_hexadecimal_elements_of_float_lists_are_bit_patterns(element: str, pattern: str) -> None:
    array = constant_array(constant(f"[1.5, {pattern}]", f"tensor<2x{element}>"))
    assert array.astype(np.float64).tolist() == [1.5, -math.inf]


def test_hexadecimal_integers_are_values() -> None:
    assert splat_value(constant("0xFF", "tensor<2xi32>")) == 255


def test_a_splat_keeps_one_element() -> None:
    value = constant("1.0", "tensor<65536x65536xbf16>")
    assert len(value.data.data) == 2
    assert constant_array(value).shape == (65536, 65536)


@pytest.mark.parametrize(
    ("literal", "type", "expected"),
    [
        ("7", "tensor<f64>", np.array(7.0)),
        ("[[1, 2], [3, -4]]", "tensor<2x2xi8>", np.array([[1, 2], [3, -4]], np.int8)),
        ("[[1], [2]]", "tensor<2x1xui16>", np.array([[1], [2]], np.uint16)),
        ("-5", "tensor<2xsi32>", np.array([-5, -5], np.int32)),
        ("4294967295", "tensor<1xui32>", np.array([4294967295], np.uint32)),
        ("4294967295", "tensor<1xi32>", np.array([-1], np.int32)),
        ("[true, false]", "tensor<2xi1>", np.array([True, False])),
        ("true", "tensor<3xi1>", np.array([True, True, True])),
        ("3", "tensor<1xindex>", np.array([3], np.int64)),
        ("[]", "tensor<0xf32>", np.zeros(0, np.float32)),
        ("", "tensor<0x2xf32>", np.zeros((0, 2), np.float32)),
        ('"0x0000803F000000C0"', "tensor<2xf32>", np.array([1.0, -2.0], np.float32)),
        ('"0x803F"', "tensor<4xbf16>", np.ones(4, ml_dtypes.bfloat16)),
        ('"0x05"', "tensor<4xi1>", np.array([True, False, True, False])),
        ('"0x0501"', "tensor<9xi1>", np.array([1, 0, 1, 0, 0, 0, 0, 0, 1], bool)),
        ('"0x010001"', "tensor<3xi1>", np.array([True, False, True])),
        ('"0xFF"', "tensor<20xi1>", np.ones(20, bool)),
    ],
)
def test_values(literal: str, type: str, expected: np.ndarray) -> None:
    array = constant_array(constant(literal, type))
    assert array.dtype == expected.dtype
    np.testing.assert_array_equal(array, expected)


@pytest.mark.parametrize(
    ("element", "dtype"), [("bf16", ml_dtypes.bfloat16), ("f16", np.float16), ("f32", np.float32)]
)
def test_floats_are_rounded_to_nearest_even(element: str, dtype: type) -> None:
    random = np.random.default_rng(1)
    values = np.concatenate(
        [
            random.normal(size=200) * 10.0 ** random.integers(-44, 38, 200),
            [0.0, -0.0, 1e-40, -1e-45, 3.4e38, 1e39, -1e300, 65504.0, 65520.0, 1.00390625],
        ]
    )
    text = "[" + ", ".join(f"{value:.17e}" for value in values) + "]"
    array = constant_array(constant(text, f"tensor<{len(values)}x{element}>"))
    with np.errstate(over="ignore"):
        expected = values.astype(dtype)
    np.testing.assert_array_equal(array.view(np.uint8), expected.view(np.uint8))


def test_bfloat16_is_rounded_once() -> None:
    # Just above the middle of 1 and the next bf16; as float32 it would be on the middle.
    assert splat_value(constant("1.00390625000001", "tensor<bf16>")) == 1.0078125


def test_elements_of_eight_bit_floats_are_rounded() -> None:
    value = constant("[1.06, 448.0]", "tensor<2xf8E4M3FN>")
    array = np.frombuffer(value.data.data, ml_dtypes.float8_e4m3fn)
    assert array.astype(np.float32).tolist() == [1.0, 448.0]


@pytest.mark.parametrize(
    ("literal", "type", "message", "column"),
    [
        ("300", "tensor<2xui8>", "300 is out of range for ui8", 0),
        ("[1, 300]", "tensor<2xui8>", "300 is out of range for ui8", 4),
        ("-1", "tensor<2xui8>", "-1 is out of range for ui8", 0),
        ("1.5", "tensor<2xi32>", "expected an integer, found 1.5", 0),
        ("true", "tensor<2xi32>", "true and false are values of i1 only", 0),
        ("[1.0, true]", "tensor<2xf32>", "expected a number, found true", 6),
        ("[[1, 2], [3]]", "tensor<2x2xi32>", "not arranged in the shape [2, 2]", 0),
        ("[1, 2]", "tensor<3xi32>", "not arranged in the shape [3]", 0),
        ("[ , 2.5]", "tensor<2xf32>", "not arranged in the shape [2]", 0),
        ("[ , 2]", "tensor<2xi32>", "not arranged in the shape [2]", 0),
        ("[[], [2]]", "tensor<2x1xi32>", "not arranged in the shape [2, 1]", 0),
        ("[[], [2 3]]", "tensor<2x1xi32>", "not arranged in the shape [2, 1]", 0),
        ("[[1]2, []]", "tensor<2x1xi32>", "not arranged in the shape [2, 1]", 0),
        ("[1.0, ,2.0]", "tensor<3xf32>", "not arranged in the shape [3]", 0),
        ("[,]", "tensor<2xf32>", "not arranged in the shape [2]", 0),
        ("[1, 2,]", "tensor<3xf32>", "not arranged in the shape [3]", 0),
        ("[1 2]", "tensor<1xi32>", "not arranged in the shape [1]", 0),
        ("[2]", "tensor<0xi32>", "not arranged in the shape [0]", 0),
        ("[1]", "tensor<999999999999xi32>", "not arranged in the shape [999999999999]", 0),
        ("", "tensor<3xi32>", "expected elements", 0),
        ("x", "tensor<2xf32>", "expected a number", 0),
        ("[1, x]", "tensor<2xf32>", "expected '>'", 4),
        ("0x1FF800000", "tensor<f32>", "more bits than f32", 0),
        ('"0x0102"', "tensor<3xi32>", "expected 3 elements of 4 bytes, found 2 bytes", 0),
        ('"0x010"', "tensor<1xi8>", "odd number of digits", 0),
        ('"0xZZ"', "tensor<1xi8>", "not hexadecimal", 0),
        ('"ABCD"', "tensor<2xi8>", "expected a hexadecimal string", 0),
        ("1.0", "tensor<2xf80>", "constants of type f80 are not supported", 0),
    ],
)
def test_refusals_point_to_the_literal(literal: str, type: str, message: str, column: int) -> None:
    start = '  %0 = "ttir.constant"() <{value = dense<'
    message_text = failure(body(f"{start.strip()}{literal}> : {type}}}> : () -> {type}"))
    assert message in message_text
    assert message_text.startswith(f"in.mlir:2:{len(start) + 1 + column}: ")


def test_a_constant_has_a_tensor_type_of_known_size() -> None:
    line = '%0 = "ttir.constant"() <{{value = dense<1> : {0}}}> : () -> {0}'
    assert "a constant has a known size" in failure(body(line.format("tensor<?xi32>")))
    assert "a constant is a tensor" in failure(body(line.format("i32")))


RESOURCES = (
    "{-#\n  dialect_resources: {\n    builtin: {\n"
    '      w: "0x040000000000803F000000C0", "not used": "0x0400000000"\n    }\n  },\n'
    '  external_resources: {\n    mlir_reproducer: { pipeline: "x", verify: true, n: 1 }\n'
    "  }\n#-}\n"
)


@pytest.mark.parametrize("before", [True, False])
def test_resources_of_the_file_are_constants(before: bool) -> None:
    text = body(
        '%0 = "ttir.constant"() <{value = dense_resource<w> : tensor<2xf32>}> : () -> tensor<2xf32>'
    )
    module = parse(RESOURCES + text if before else text + RESOURCES)
    value = operations(module, "ttir.constant")[0].properties["value"]
    assert constant_array(value).tolist() == [1.0, -2.0]


def test_resources_belong_to_their_text() -> None:
    text = body('%0 = "ttir.constant"() <{value = dense_resource<w> : tensor<1xi8>}> : () -> i8')
    first = text + '{-# dialect_resources: {builtin: {w: "0x0400000001"}} #-}'
    second = text + '{-# dialect_resources: {builtin: {w: "0x0400000002"}} #-}'
    values = [
        splat_value(operations(parse(each), "ttir.constant")[0].properties["value"])
        for each in (first, second, first)
    ]
    assert values == [1, 2, 1]
    assert "the data of the resource 'w' are not in the file" in failure(text)


def test_resources_are_checked() -> None:
    text = body('%0 = "ttir.constant"() <{value = dense_resource<w> : tensor<1xi8>}> : () -> i8')
    short = '{-# dialect_resources: {builtin: {w: "0x04"}} #-}'
    assert "starts with its alignment" in failure(text + short)
    long = '{-# dialect_resources: {builtin: {w: "0x04000000010203"}} #-}'
    assert "expected 1 elements of 1 bytes, found 3 bytes" in failure(text + long)


def test_resources_that_are_dense_lists_of_i1() -> None:
    attribute = constant_attribute('dense<"0x00">  : tensor<4xi1>', "tensor<4xi1>")
    assert splat_value(attribute) == 0


def test_dense_arrays_take_every_literal() -> None:
    text = body(
        '%0 = "ttir.x"() <{a = array<f32: 1.0, -2.5, 0x7F800000, 3>, b = array<i1: true, false>, '
        "c = array<i64>, d = array<i32: -1, 0x10>}> : () -> tensor<1xf32>"
    )
    properties = operations(parse(text), "ttir.x")[0].properties
    read = {name: list(value.iter_values()) for name, value in properties.items()}
    assert read["a"] == [1.0, -2.5, math.inf, 3.0]
    assert [bool(value) for value in read["b"]] == [True, False]
    assert read["c"] == []
    assert read["d"] == [-1, 16]
    assert "300 is out of range for i8" in failure(text.replace("i64>", "i8: 300>"))


def test_scalar_attributes_of_floats_are_bit_patterns() -> None:
    text = body('%0 = "ttir.x"() <{a = 0xFF800000 : f32, b = 0xFF80 : bf16}> : () -> tensor<1xf32>')
    properties = operations(parse(text), "ttir.x")[0].properties
    assert [value.value.data for value in properties.values()] == [-math.inf, -math.inf]
