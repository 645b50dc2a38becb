"""Arguments whose names say nothing are called for what they are to the function."""

from __future__ import annotations

import cProfile
import re

import pytest
from xdsl.dialects.func import FuncOp

from ttcodegen.compilation import CompiledModule, CompileOptions, compile_module
from ttcodegen.foundation.diagnostics import Source
from ttcodegen.frontends import source_module
from ttcodegen.naming.arguments import argument_titles

DECODE = """
func.func @decode(
    %arg3: tensor<1x32xi32> {ttcore.argument_type = #ttcore.argument_type<input>},
    %arg0: tensor<1x8x64x64xbf16> {ttcore.argument_type = #ttcore.argument_type<input>},
    %arg1: tensor<1x8x1x64xbf16> {ttcore.argument_type = #ttcore.argument_type<input>},
    %arg2: tensor<1xi32> {ttcore.argument_type = #ttcore.argument_type<input>},
    %table: tensor<128x64xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>,
                                 ttir.name = "model.embed_tokens.weight"})
    -> (tensor<1x32x64xbf16>, tensor<1x8x64x64xbf16>) {
  %0 = "ttir.embedding"(%arg3, %table)
    : (tensor<1x32xi32>, tensor<128x64xbf16>) -> tensor<1x32x64xbf16>
  %1 = "ttir.update_cache"(%arg0, %arg1, %arg2) <{batch_offset = 0 : i32}>
    : (tensor<1x8x64x64xbf16>, tensor<1x8x1x64xbf16>, tensor<1xi32>) -> tensor<1x8x64x64xbf16>
  return %0, %1 : tensor<1x32x64xbf16>, tensor<1x8x64x64xbf16>
}
"""

FORGE = """
func.func @forward(
    %image: tensor<1x32x32x64xbf16> {ttcore.argument_type = #ttcore.argument_type<input>},
    %a: tensor<64x64x3x3xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>,
                                ttir.name = "model.model.0.conv.weight"},
    %b: tensor<1x1x1x64xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>,
                               ttir.name = "input_0_divide_3"},
    %c: tensor<1x1x1x64xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>,
                               ttir.name = "input_0_divide_3_fork_clone24"})
    -> tensor<1x32x32x64xbf16> {
  %0 = "ttir.conv2d"(%image, %a) <{stride = 1 : i32, padding = 1 : i32, dilation = 1 : i32,
      groups = 1 : i32}> : (tensor<1x32x32x64xbf16>, tensor<64x64x3x3xbf16>)
    -> tensor<1x32x32x64xbf16>
  %1 = "ttir.multiply"(%0, %b) : (tensor<1x32x32x64xbf16>, tensor<1x1x1x64xbf16>)
    -> tensor<1x32x32x64xbf16>
  %2 = "ttir.add"(%1, %c) : (tensor<1x32x32x64xbf16>, tensor<1x1x1x64xbf16>)
    -> tensor<1x32x32x64xbf16>
  return %2 : tensor<1x32x32x64xbf16>
}
"""


def compiled(text: str) -> CompiledModule:
    return compile_module(Source("model.mlir", text), CompileOptions("model"))


def fields(text: str, struct: str) -> list[str]:
    header = compiled(text).files["src/model.hpp"]
    (body,) = re.findall(rf"struct {struct} {{(.*?)}};", header, re.DOTALL)
    return re.findall(r"ttnn::Tensor (\w+);", body)


def test_caches_positions_and_indices() -> None:
    assert fields(DECODE, "DecodeInputs") == ["indices", "cache", "arg1", "position"]


def test_the_outside_keeps_the_names_of_the_source() -> None:
    (function,) = compiled(DECODE).description.functions
    assert [tensor.name for tensor in function.inputs] == ["arg3", "arg0", "arg1", "arg2"]
    assert [tensor.field for tensor in function.weights] == ["embed_tokens_weight"]


def test_parameters_that_a_compiler_made_are_called_after_the_weight_they_adjust() -> None:
    (function,) = compiled(FORGE).description.functions
    assert [tensor.path for tensor in function.weights] == [
        *("model[0].conv.weight", "model[0].conv.scale", "model[0].conv.bias")
    ]
    assert not re.search("fork_clone|divide_3", "".join(compiled(FORGE).files.values()))


@pytest.mark.parametrize("name", ["image", "arguments", "input_ids", "input_0_mean"])
def test_names_that_say_something_stay(name: str) -> None:
    text = DECODE.replace("%arg3", f"%{name}")
    assert fields(text, "DecodeInputs")[0] == name


def test_what_is_scaled_is_no_scale() -> None:
    """The name of a scale has no layer in it that the other operand could be called after."""
    type_ = "tensor<32x32xbf16>"
    text = f"""func.func @f(%x: {type_}, %scale: {type_}) -> {type_} {{
  %0 = "ttir.multiply"(%x, %scale) : ({type_}, {type_}) -> {type_}
  return %0 : {type_}
}}"""
    assert fields(text, "FInputs") == ["x", "scale"]


def scaled(times: int) -> FuncOp:
    """A function whose input is multiplied by that many arguments, one after the other."""
    type_ = "tensor<32x32xbf16>"
    arguments = ", ".join(f"%arg{index}: {type_}" for index in range(times + 1))
    products = "\n".join(
        f'%{index} = "ttir.multiply"(%{index - 1 if index else "arg0"}, %arg{index + 1})'
        f" : ({type_}, {type_}) -> {type_}"
        for index in range(times)
    )
    text = f"func.func @f({arguments}) -> {type_} {{{products} return %{times - 1} : {type_}}}"
    (function,) = (
        op for op in source_module(Source("scaled.mlir", text)).walk() if isinstance(op, FuncOp)
    )
    return function


def test_arguments_far_from_the_input_are_named_in_linear_work() -> None:
    def calls(times: int) -> int:
        function, profile = scaled(times), cProfile.Profile()
        profile.runcall(argument_titles, function, lambda _: None)
        return sum(entry.callcount for entry in profile.getstats())

    calls(1)  # What is known of ops is looked up once.
    assert calls(160) < 5 * calls(40)
