"""Prepare functions: values that host functions of device programs compute once."""

from __future__ import annotations

import re

import numpy as np

from ttcodegen.compilation import CompiledModule, CompileOptions, compile_module
from ttcodegen.foundation.diagnostics import Source
from ttcodegen.numerics.lowered import interpreter_of, read_flatbuffer

WEIGHT = "{ttcore.argument_type = #ttcore.argument_type<parameter>}"


def compiled(text: str) -> CompiledModule:
    return compile_module(Source("m.mlir", text), CompileOptions("m", target="ttmetal"))


def functions(module: CompiledModule) -> dict[str, str]:
    """The bodies of the functions of `src/m.cpp`, in one line each, by their names."""
    found = re.findall(
        r"^\S[^\n;]*?(\w+)\((?:[^;{}]*)\) \{$(.*?)^\}$", module.files["src/m.cpp"], re.M | re.S
    )
    return {name: " ".join(body.split()) for name, body in found}


def test_what_is_made_of_weights_is_computed_once() -> None:
    module = compiled(
        f"""
        func.func @f(%x: tensor<32x64xbf16>, %weight: tensor<64x32xbf16> {WEIGHT},
                     %scale: tensor<64x32xbf16> {WEIGHT}) -> tensor<32x32xbf16> {{
          %0 = "ttir.multiply"(%weight, %scale)
              : (tensor<64x32xbf16>, tensor<64x32xbf16>) -> tensor<64x32xbf16>
          %1 = "ttir.matmul"(%x, %0)
              : (tensor<32x64xbf16>, tensor<64x32xbf16>) -> tensor<32x32xbf16>
          return %1 : tensor<32x32xbf16>
        }}
        """
    )
    bodies = functions(module)
    assert "run_multiply(*constants.programs, weights.weight, weights.scale" in bodies["prepare_f"]
    assert "constants.weight = " in bodies["prepare_f"]
    assert "run_multiply" not in bodies["f"]
    assert "run_matmul(*constants.programs, inputs.x, constants.weight, device)" in bodies["f"]
    assert "support::DeviceTensor weight;" in module.files["src/m.hpp"].partition("FConstants")[2]


def test_a_result_belongs_to_the_caller_and_is_new_in_each_call() -> None:
    module = compiled(
        f"""
        func.func @f(%weight: tensor<64x32xbf16> {WEIGHT}) -> tensor<64x32xbf16> {{
          %0 = "ttir.exp"(%weight) : (tensor<64x32xbf16>) -> tensor<64x32xbf16>
          return %0 : tensor<64x32xbf16>
        }}
        """
    )
    assert "run_exp(*constants.programs, weights.weight, device)" in functions(module)["f"]


def test_what_the_cpu_computes_of_nothing_is_computed_once() -> None:
    module = compiled(
        """
        func.func @f(%x: tensor<32x32xf32>) -> tensor<32x32xf32> {
          %limit = "ttir.full"() <{shape = array<i32: 32, 32>, fill_value = 2.0 : f32}>
              {ttir.should_hoist} : () -> tensor<32x32xf32>
          %0 = "ttir.minimum"(%x, %limit)
              : (tensor<32x32xf32>, tensor<32x32xf32>) -> tensor<32x32xf32>
          return %0 : tensor<32x32xf32>
        }
        """
    )
    assert "run_minimum(*constants.programs, inputs.x, constants.full" in functions(module)["f"]
    assert "FConstants{.full = full" in functions(module)["prepare_f"]


def test_a_weight_that_is_overwritten_differs_from_call_to_call() -> None:
    module = compiled(
        f"""
        func.func @f(%x: tensor<1x1x1x32xbf16>, %at: tensor<1xi32>,
                     %cache: tensor<1x1x64x32xbf16> {WEIGHT}) -> tensor<1x1x64x32xbf16> {{
          %0 = "ttir.update_cache"(%cache, %x, %at) <{{batch_offset = 0 : i32}}>
              : (tensor<1x1x64x32xbf16>, tensor<1x1x1x32xbf16>, tensor<1xi32>)
              -> tensor<1x1x64x32xbf16>
          %1 = "ttir.exp"(%0) : (tensor<1x1x64x32xbf16>) -> tensor<1x1x64x32xbf16>
          return %1 : tensor<1x1x64x32xbf16>
        }}
        """
    )
    bodies = functions(module)
    assert "run_exp" in bodies["f"]
    assert "run_" not in bodies["prepare_f"]


def test_random_numbers_are_drawn_in_each_call() -> None:
    module = compiled(
        """
        func.func @f(%x: tensor<32x32xf32>) -> tensor<32x32xf32> {
          %0 = "ttir.rand"() <{size = [32 : i32, 32 : i32], low = 0.0 : f32,
              high = 1.0 : f32, seed = 0 : ui32}> : () -> tensor<32x32xf32>
          %1 = "ttir.add"(%x, %0)
              : (tensor<32x32xf32>, tensor<32x32xf32>) -> tensor<32x32xf32>
          return %1 : tensor<32x32xf32>
        }
        """
    )
    bodies = functions(module)
    assert "run_rand_add" in bodies["f"]
    assert "rand" not in bodies["prepare_f"]


def test_what_a_program_reads_of_one_number_is_a_tensor() -> None:
    """Programs of rows read tensors; those of single tiles make a number themselves."""
    module = compiled(
        """
        func.func @f(%x: tensor<2x2x8xbf16>) -> tensor<2x2x8xbf16> {
          %0 = "ttir.full"() <{shape = array<i32: 2, 2, 8>, fill_value = 0.5 : f32}>
              : () -> tensor<2x2x8xbf16>
          %1 = "ttir.softmax"(%0) <{dimension = 2 : si32}>
              : (tensor<2x2x8xbf16>) -> tensor<2x2x8xbf16>
          %2 = "ttir.multiply"(%1, %x)
              : (tensor<2x2x8xbf16>, tensor<2x2x8xbf16>) -> tensor<2x2x8xbf16>
          return %2 : tensor<2x2x8xbf16>
        }
        """
    )
    x = np.arange(32, dtype=np.float32).reshape(2, 2, 8)
    (found,) = interpreter_of(read_flatbuffer(module.flatbuffer)).run("f", [x])
    np.testing.assert_allclose(found, x / 8, rtol=1e-2)
