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
A, B, C = "tensor<2x3x4xf32>", "tensor<3x4xf32>", "tensor<4x3xf32>"
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
)  # fmt: skip
"""The type of an argument, an operation, and the type of its result."""
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
        f"func.func @main(%a: {argument}) -> {declared} {{\n  %0 = {op}\n"
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
