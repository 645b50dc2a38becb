"""Types, numbers, strings and comments in C++."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseIntOrFPElementsAttr,
    IndexType,
    IntegerType,
    Signedness,
    TensorType,
    TupleType,
    f32,
    f64,
    i1,
    i8,
    i32,
    i64,
)
from xdsl.dialects.emitc import EmitC_ArrayType, EmitC_LValueType, EmitC_SizeT
from xdsl.ir import Attribute

from ttcodegen.emitc.spelling import (
    Precedence,
    attribute_value,
    comment_line,
    cpp_type,
    declaration,
    float_value,
    integer_value,
    opaque_value,
    string_literal,
    type_text,
)

UI32 = IntegerType(32, Signedness.UNSIGNED)
UI64 = IntegerType(64, Signedness.UNSIGNED)


@pytest.mark.parametrize(
    "text",
    [
        "bool",
        "int8_t",
        "uint64_t",
        "float",
        "double",
        "size_t",
        "ttnn::Tensor",
        "const ttnn::Tensor&",
        "ttnn::MeshDevice*",
        "const char**",
        "std::tuple<int, float>",
    ],
)
def test_types_are_spelled_as_they_were_given(text: str) -> None:
    assert type_text(cpp_type(text)) == text


@pytest.mark.parametrize(
    ("type_", "text"),
    [
        (IndexType(), "size_t"),
        (EmitC_SizeT(), "size_t"),
        (IntegerType(16, Signedness.SIGNED), "int16_t"),
        (EmitC_LValueType(f32), "float"),
        (TupleType(ArrayAttr([f32, i64])), "std::tuple<float, int64_t>"),
        (TensorType(f32, [2]), None),
    ],
)
def test_type_text(type_: Attribute, text: str | None) -> None:
    assert type_text(type_) == text


def test_array_bounds_stand_behind_the_name() -> None:
    assert declaration(EmitC_ArrayType([2, 3], i32), "x") == "int32_t x[2][3]"


@pytest.mark.parametrize(
    ("value", "type_", "text"),
    [
        (1, i1, "true"),
        (0, i1, "false"),
        (-1, i1, "true"),
        (-5, i32, "-5"),
        (-128, i8, "-128"),
        (2**31 - 1, i32, "2147483647"),
        (-(2**31), i32, "-2147483647 - 1"),
        (-(2**63), i64, "-9223372036854775807 - 1"),
        (2**31, i64, "2147483648"),
        (7, UI32, "7u"),
        (-1, UI32, "4294967295u"),
        (2**64 - 1, UI64, "18446744073709551615ull"),
        (3, IndexType(), "3"),
    ],
)
def test_integers(value: int, type_: Attribute, text: str) -> None:
    assert integer_value(value, type_).text == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1.0, "1.0f"),
        (0.1, "0.1f"),
        (-0.0, "-0.0f"),
        (1e-5, "1e-5f"),
        (100.0, "100.0f"),
        (3.4028234663852886e38, "3.4028235e38f"),
        (1e300, "std::numeric_limits<float>::infinity()"),
        (-math.inf, "-std::numeric_limits<float>::infinity()"),
        (math.nan, "std::numeric_limits<float>::quiet_NaN()"),
    ],
)
def test_floats(value: float, text: str) -> None:
    assert float_value(value).text == text


def test_doubles_have_no_suffix() -> None:
    assert float_value(0.1, double=True).text == "0.1"
    assert float_value(1e-300, double=True).text == "1e-300"


@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_float32_reads_back_as_the_same_number(value: float) -> None:
    text = float_value(value).text
    assert text.endswith("f")
    assert struct.pack("<f", float(text[:-1])) == struct.pack("<f", value)


@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_float32_is_spelled_with_at_most_nine_digits(value: float) -> None:
    mantissa = float_value(value).text[:-1].partition("e")[0]
    assert len(mantissa.strip("-").replace(".", "").strip("0")) <= 9


def test_elements_are_nested_by_rows() -> None:
    matrix = DenseIntOrFPElementsAttr.from_list(TensorType(i32, [2, 2]), [1, 2, 3, 4])
    value = attribute_value(matrix)
    assert value is not None
    assert value.text == "{{1, 2}, {3, 4}}"
    row = attribute_value(DenseIntOrFPElementsAttr.from_list(TensorType(f64, [2]), [0.5, 1.0]))
    assert row is not None
    assert row.text == "{0.5, 1.0}"


@pytest.mark.parametrize("text", ["M_PI", "ttnn::DataType::BFLOAT16", "f(1, 2)", "S{1}", "42u"])
def test_plain_texts_need_no_parentheses(text: str) -> None:
    assert opaque_value(text).precedence is Precedence.PRIMARY


@pytest.mark.parametrize("text", ["a + b", "x ? y : z", "-1", "f(g(1))", "(a)+(b)"])
def test_other_texts_are_put_in_parentheses(text: str) -> None:
    assert opaque_value(text).at_least(Precedence.CONDITIONAL) == f"({text})"


@pytest.mark.parametrize(
    ("text", "literal"),
    [
        ("plain", '"plain"'),
        ('say "no"', '"say \\"no\\""'),
        ("back\\slash", '"back\\\\slash"'),
        ("??/", '"\\?\\?/"'),
        ("line\nbreak\t", '"line\\nbreak\\t"'),
        ("\x011", '"\\0011"'),
        ("é", '"\\303\\251"'),
    ],
)
def test_string_literals(text: str, literal: str) -> None:
    assert string_literal(text) == literal


@given(st.text())
def test_string_literals_are_one_ascii_line(text: str) -> None:
    literal = string_literal(text)
    assert literal.isascii()
    assert literal.isprintable()


@pytest.mark.parametrize(
    ("text", "comment"),
    [
        ("layer 1", "// layer 1"),
        ("", "//"),
        ("a\nint x;", "// a int x;"),
        ("a\rb\x0bc\u2028d", "// a b c d"),
        ("ends in \\", "// ends in /"),
        ("ends in \\  ", "// ends in /"),
        ("what??/", "// what? ?/"),
        ("bidi \u202e tricks", "// bidi tricks"),
    ],
)
def test_comment_lines(text: str, comment: str) -> None:
    assert comment_line(text) == comment


@given(st.text())
def test_comments_never_reach_the_next_line(text: str) -> None:
    comment = comment_line(text)
    assert len(comment.splitlines()) == 1
    assert "\\" not in comment
    assert "??/" not in comment


def test_the_compiler_reads_what_was_meant(check_syntax: Callable[[str], str]) -> None:
    floats = [0.1, 1e-45, 3.4028234663852886e38, 1 / 3, 16777217.0, -1.5e-7, 1e10, -0.0]
    integers = [
        (-(2**31), i32, "int32_t"),
        (-(2**63), i64, "int64_t"),
        (2**63 - 1, i64, "int64_t"),
        (2**64 - 1, UI64, "uint64_t"),
        (2**32 - 1, UI32, "uint32_t"),
    ]
    strings = ["??/??=", 'a"b\\', "tab\tnul\x001", "naïve 输入", "%s\r\n\x7f8"]
    lines = ["#include <bit>", "#include <cstdint>", "#include <limits>", "#include <string_view>"]
    for value in floats:
        bits = struct.unpack("<I", struct.pack("<f", value))[0]
        lines.append(
            f"static_assert(std::bit_cast<uint32_t>({float_value(value).text}) == {bits});"
        )
    for value, type_, name in integers:
        text = integer_value(value, type_).text
        unsigned = f"0x{value % 2**64:x}ull"
        lines.append(f"constexpr {name} number_{len(lines)} = {text};")
        lines.append(
            f"static_assert(static_cast<uint64_t>(number_{len(lines) - 1}) == {unsigned});"
        )
    for text in strings:
        codes = ", ".join(f"char({byte})" for byte in text.encode())
        lines.append(f"constexpr char codes_{len(lines)}[] = {{{codes}}};")
        lines.append(
            f"static_assert(std::string_view({string_literal(text)}, "
            f"sizeof codes_{len(lines) - 1}) == std::string_view(codes_{len(lines) - 1}, "
            f"sizeof codes_{len(lines) - 1}));"
        )
    for text in ["ends in \\", "??/", "/* open", "*/ closed", "a\nsyntax error"]:
        lines.append(comment_line(text))
    assert check_syntax("\n".join(lines) + "\n") == ""
