"""Quantized element types become integers, and attributes of the ops around them."""

from __future__ import annotations

import pytest
from xdsl.dialects.builtin import IntegerType, Signedness, TensorType, UnregisteredAttr, f32

from tests.numerics.sources import functions, parse
from tests.parsing.reading import failure
from ttcodegen.dialects.ttir.annotations import quantization_of

Q = "tensor<2x3x!quant.uniform<i8:f32, 5.000000e-01:3>>"
R = "tensor<2x3x!quant.uniform<u8<1:200>:f32:1, {0.5:3, 0.25:7, 1.0:2}>>"
S = "tensor<3x2x!quant.uniform<i8:f32, 5.000000e-01:3>>"


def ops(*lines: str, arguments: str, result: str):
    body = "\n".join(lines)
    module = parse(f"func.func @f({arguments}) -> {result} {{\n{body}\nreturn %r : {result}\n}}\n")
    function = functions(module)["f"]
    return function, [op for op in function.body.block.ops if op.name.startswith("ttir.")]


def test_types_say_their_parameters():
    def read(text: str):
        type_ = UnregisteredAttr.with_name_and_type("quant.uniform", True)
        return quantization_of(type_("quant.uniform", True, False, text))

    plain = read("i8:f32, 0.5")
    assert (plain.storage, plain.low, plain.high) == (IntegerType(8), -128, 127)
    assert (plain.axis, plain.scales, plain.zero_points) == (None, (0.5,), (0,))
    several = read("u8<1:200>:bf16:1, {5.0e-1, 0.25:7}")
    assert several.storage == IntegerType(8, Signedness.UNSIGNED)
    assert (several.low, several.high, several.axis) == (1, 200, 1)
    assert (several.scales, several.zero_points) == ((0.5, 0.25), (0, 7))
    assert read("i4:f16, 2.0:-1").storage == IntegerType(8)
    assert read("i4:f16, 2.0:-1").low == -8
    assert read("u1:f64, 2.0").high == 1
    assert read("si8:f32, 2.0") == read("i8:f32, 2.0")
    assert read("ui8:f32, 2.0") == read("u8:f32, 2.0")
    assert read("i64:f32, 2.0") is None
    assert read("i8:f32:{0:1, 1:2}, {{1.0, 2.0}}") is None


def test_conversions_get_attributes():
    _, made = ops(
        f'%0 = "ttir.quantize"(%x) : (tensor<2x3xf32>) -> {R}',
        f'%r = "ttir.dequantize"(%0) : ({R}) -> tensor<2x3xf32>',
        arguments="%x: tensor<2x3xf32>",
        result="tensor<2x3xf32>",
    )
    quantize, dequantize = made
    assert quantize.parameter("scale") == [0.5, 0.25, 1.0]
    assert quantize.parameter("zero_point") == [3, 7, 2]
    assert (quantize.parameter("storage_min"), quantize.parameter("storage_max")) == (1, 200)
    assert dequantize.parameter("axis") == 1
    assert quantize.result_type.element_type == IntegerType(8, Signedness.UNSIGNED)


def test_signatures_have_the_integers():
    function, _ = ops(
        f'%r = "ttir.requantize"(%x) : ({Q}) -> {Q}',
        arguments=f"%x: {Q}",
        result=Q,
    )
    stored = TensorType(IntegerType(8), (2, 3))
    assert list(function.function_type.inputs) == [stored]
    assert list(function.function_type.outputs) == [stored]
    assert function.args[0].type == stored


def test_what_only_moves_moves_integers():
    _, made = ops(
        f'%r = "ttir.permute"(%x) <{{permutation = array<i64: 1, 0>}}> : ({Q}) -> {S}',
        arguments=f"%x: {Q}",
        result=S,
    )
    assert [op.name for op in made] == ["ttir.permute"]


@pytest.mark.parametrize("type_", [Q, R])
def test_anything_else_computes_with_real_numbers(type_):
    _, made = ops(
        f'%r = "ttir.relu"(%x) : ({type_}) -> {type_}', arguments=f"%x: {type_}", result=type_
    )
    assert [op.name for op in made] == ["ttir.dequantize", "ttir.relu", "ttir.quantize"]
    assert made[1].result_type.element_type == f32


def test_scales_along_other_dimensions_take_two_steps():
    _, made = ops(f'%r = "ttir.requantize"(%x) : ({Q}) -> {R}', arguments=f"%x: {Q}", result=R)
    assert [op.name for op in made] == ["ttir.dequantize", "ttir.quantize"]


def test_types_that_are_not_understood_are_listed():
    message = failure("func.func @f(%x: tensor<2x!quant.uniform<i64:f32, 1.0>>) { return }")
    assert "elements of type !quant.uniform<i64:f32, 1.0> are not supported" in message


BLOCKS = "tensor<2x3x!quant.uniform<i8:f32:{0:1, 1:3}, {{0.5}, {0.25:7}}>>"


@pytest.mark.parametrize("types", [f"({Q}) -> {BLOCKS}", f"({BLOCKS}) -> {Q}"])
def test_blocks_along_several_dimensions_are_refused_at_their_place(types):
    argument, _, result = types.partition(" -> ")
    argument = argument[1:-1]
    message = failure(
        f"func.func @f(%x: {argument}) -> {result} {{\n"
        f'  %0 = "ttir.requantize"(%x) : {types}\n  return %0 : {result}\n}}\n'
    )
    assert "<i8:f32:{0:1, 1:3}, {{0.5}, {0.25:7}}> are not supported" in message
    assert "one scale for the tensor, or one for each place along one dimension" in message


def test_constants_hold_stored_integers_or_what_they_mean():
    _, made = ops(
        f'%r = "ttir.constant"() <{{value = dense<3> : tensor<2x3xi8>}}> : () -> {Q}',
        arguments="",
        result=Q,
    )
    assert [op.name for op in made] == ["ttir.constant"]
    assert made[0].result_type == TensorType(IntegerType(8), [2, 3])
    _, made = ops(
        f'%r = "ttir.constant"() <{{value = dense<3.0> : tensor<2x3xf32>}}> : () -> {Q}',
        arguments="",
        result=Q,
    )
    assert [op.name for op in made] == ["ttir.constant", "ttir.quantize"]
