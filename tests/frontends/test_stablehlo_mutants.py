"""Mutants of StableHLO, held against the verifier of jaxlib: what is taken here is valid there."""

from __future__ import annotations

import random
import re

import pytest

from ttcodegen.dialects.operations.verification import verify_module
from ttcodegen.foundation.diagnostics import CompileError, Source
from ttcodegen.frontends import source_module

pytestmark = pytest.mark.frameworks
MUTANTS = 600
A, B, D = "tensor<2x3x4xf32>", "tensor<3x4xf32>", "tensor<3x3x3x3xf32>"
SEEDS = (
    (B, f"stablehlo.broadcast_in_dim %a, dims = [1, 2] : ({B}) -> tensor<2x3x4xf32>", A),
    (A, f"stablehlo.transpose %a, dims = [1, 0, 2] : ({A}) -> tensor<3x2x4xf32>",
     "tensor<3x2x4xf32>"),
    (B, f"stablehlo.dot_general %a, %a, contracting_dims = [1] x [1] : ({B}, {B}) -> "
     "tensor<3x3xf32>", "tensor<3x3xf32>"),
    (A, f"stablehlo.dot_general %a, %a, batching_dims = [0] x [0], contracting_dims = [2] x [2] : "
     f"({A}, {A}) -> tensor<2x3x3xf32>", "tensor<2x3x3xf32>"),
    (B, f"stablehlo.concatenate %a, %a, dim = 0 : ({B}, {B}) -> tensor<6x4xf32>",
     "tensor<6x4xf32>"),
    (B, f"stablehlo.slice %a [0:2, 1:4:2] : ({B}) -> tensor<2x2xf32>", "tensor<2x2xf32>"),
    (B, f"stablehlo.reshape %a : ({B}) -> tensor<12xf32>", "tensor<12xf32>"),
    (B, f"stablehlo.reverse %a, dims = [0, 1] : {B}", B),
    (B, f"stablehlo.add %a, %a : {B}", B),
    (B, "stablehlo.iota dim = 1 : tensor<3x4xf32>", B),
    (B, f"stablehlo.convert %a : ({B}) -> tensor<3x4xi32>", "tensor<3x4xi32>"),
    (B, f"stablehlo.pad %a, %z, low = [0, 1], high = [2, 0], interior = [0, 1] : ({B}, "
     "tensor<f32>) -> tensor<5x8xf32>", "tensor<5x8xf32>"),
    (B, "\"stablehlo.gather\"(%a, %j) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], "
     "collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = "
     f"array<i64: 1, 4>, indices_are_sorted = false}}> : ({B}, tensor<2xi32>) -> tensor<2x4xf32>",
     "tensor<2x4xf32>"),
    (B, "\"stablehlo.scatter\"(%a, %j, %u) <{scatter_dimension_numbers = #stablehlo.scatter<"
     "update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], "
     "index_vector_dim = 1>, indices_are_sorted = false, unique_indices = false}> ({\n"
     "  ^bb0(%x: tensor<f32>, %y: tensor<f32>):\n    stablehlo.return %y : tensor<f32>\n  }) : "
     f"({B}, tensor<2xi32>, tensor<2x4xf32>) -> {B}", B),
    (B, f"stablehlo.dynamic_slice %a, %i, %i, sizes = [2, 2] : ({B}, tensor<i32>, tensor<i32>) -> "
     "tensor<2x2xf32>", "tensor<2x2xf32>"),
    (B, f"stablehlo.dynamic_update_slice %a, %a, %i, %i : ({B}, {B}, tensor<i32>, tensor<i32>) -> "
     f"{B}", B),
    (B, f"stablehlo.reduce(%a init: %z) applies stablehlo.add across dimensions = [1] : ({B}, "
     "tensor<f32>) -> tensor<3xf32>", "tensor<3xf32>"),
    (D, "\"stablehlo.reduce_window\"(%a, %z) <{window_dimensions = array<i64: 1, 2, 2, 1>, "
     "window_strides = array<i64: 1, 1, 1, 1>, padding = dense<[[0, 0], [1, 0], [0, 1], [0, 0]]> : "
     "tensor<4x2xi64>}> ({\n  ^bb0(%x: tensor<f32>, %y: tensor<f32>):\n    %s = stablehlo.add %x, "
     f"%y : tensor<f32>\n    stablehlo.return %s : tensor<f32>\n  }}) : ({D}, tensor<f32>) -> {D}",
     D),
    (D, "stablehlo.convolution(%a, %a) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], "
     "window = {stride = [1, 1], pad = [[0, 1], [1, 0]], rhs_dilate = [1, 1]} {batch_group_count = "
     f"1 : i64, feature_group_count = 1 : i64}} : ({D}, {D}) -> tensor<3x2x2x3xf32>",
     "tensor<3x2x2x3xf32>"),
    (B, f"stablehlo.compare LT, %a, %a, FLOAT : ({B}, {B}) -> tensor<3x4xi1>", "tensor<3x4xi1>"),
    (B, f"stablehlo.select %p, %a, %a : tensor<3x4xi1>, {B}", B),
    (B, f"stablehlo.clamp %z, %a, %z : (tensor<f32>, {B}, tensor<f32>) -> {B}", B),
    (B, f"stablehlo.bitcast_convert %a : ({B}) -> tensor<3x4xi32>", "tensor<3x4xi32>"),
    (B, "\"stablehlo.sort\"(%a) <{dimension = 1 : i64, is_stable = true}> ({\n  ^bb0(%x: "
     "tensor<f32>, %y: tensor<f32>):\n    %s = stablehlo.compare LT, %x, %y, FLOAT : (tensor<f32>, "
     "tensor<f32>) -> tensor<i1>\n    stablehlo.return %s : tensor<i1>\n  }) : "
     f"({B}) -> {B}", B),
    (B, f"stablehlo.get_dimension_size %a, dim = 1 : ({B}) -> tensor<i32>", "tensor<i32>"),
    (B, f"stablehlo.reduce_precision %a, format = e5m10 : {B}", B),
)  # fmt: skip
"""The type of an argument, an operation, and the type of its result."""
CONSTANTS = """  %z = stablehlo.constant dense<1.5> : tensor<f32>
  %i = stablehlo.constant dense<0> : tensor<i32>
  %j = stablehlo.constant dense<1> : tensor<2xi32>
  %u = stablehlo.constant dense<1.5> : tensor<2x4xf32>
  %p = stablehlo.constant dense<true> : tensor<3x4xi1>
"""
_NUMBER = re.compile(r"(?<![\w.%#@f])\d+(?=[^\w.]|x)")
_TYPES = ("f32", "bf16", "i32", "i1")


def mutant(numbers: random.Random) -> str:
    """A module of one operation with one or two of its numbers or element types changed."""
    argument, op, result = numbers.choice(SEEDS)
    for _ in range(numbers.choice((1, 1, 2))):
        places = list(_NUMBER.finditer(op))
        if numbers.random() < 0.15 or not places:
            op = op.replace("xf32", f"x{numbers.choice(_TYPES)}", 1)
            continue
        place = numbers.choice(places)
        number = numbers.choice((0, 1, 2, 3, 5, int(place[0]) + 1))
        op = f"{op[: place.start()]}{number}{op[place.end() :]}"
    declared = re.findall(r"tensor<[^>]*>", op)[-1] if numbers.random() < 0.7 else result
    return (
        f"func.func @main(%a: {argument}) -> {declared} {{\n{CONSTANTS}  %0 = {op}\n"
        f"  return %0 : {declared}\n}}\n"
    )


def is_taken(text: str) -> bool:
    """Returns whether a module is read and passes verification."""
    try:
        verify_module(source_module(Source("mutant.mlir", text)))
    except CompileError:
        return False
    return True


def test_what_is_taken_is_valid_for_jaxlib() -> None:
    mlir = pytest.importorskip("jax._src.interpreters.mlir")
    ir = pytest.importorskip("jaxlib.mlir.ir")
    taken, wrong = 0, list[str]()
    with mlir.make_ir_context():
        for seed in range(MUTANTS):
            text = mutant(random.Random(seed))
            if not is_taken(text):
                continue
            taken += 1
            try:
                ir.Module.parse(text).operation.verify()
            except ir.MLIRError as error:
                wrong.append(f"{text}{error}")
    assert wrong == []
    assert taken > MUTANTS // 20
