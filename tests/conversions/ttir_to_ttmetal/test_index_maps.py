"""Pieces of a movement, followed element by element, against its meaning in numpy."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from ttcodegen.conversions.ttir_to_ttmetal.grouping.index_maps import Piece, is_view, pieces_of
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.foundation.diagnostics import Source
from ttcodegen.parsing import parse_module
from ttcodegen.transforms.const_eval import evaluate

MOVES = {
    "concat": '"ttir.concat"(%a, %b) {dim = -1 : si32} : (tensor<2x3xf32>, tensor<2x4xf32>)'
    " -> tensor<2x7xf32>",
    "pad": '"ttir.pad"(%a) {padding = array<i32: 1, 0, 2, 3>, value = 7.0 : f32} :'
    " (tensor<2x3xf32>) -> tensor<3x8xf32>",
    "slice": '"ttir.slice_static"(%a) {begins = [1 : i32, -3 : i32], ends = [2 : i32, 3 : i32],'
    " step = [1 : i32, 2 : i32]} : (tensor<2x3xf32>) -> tensor<1x2xf32>",
    "backwards": '"ttir.slice_static"(%a) {begins = [0 : i32, 2 : i32], ends = [2 : i32, 0 : i32],'
    " step = [1 : i32, -1 : i32]} : (tensor<2x3xf32>) -> tensor<2x2xf32>",
    "reshape": '"ttir.reshape"(%a) {shape = [3 : i32, 1 : i32, 2 : i32]} : (tensor<2x3xf32>)'
    " -> tensor<3x1x2xf32>",
    "permute": '"ttir.permute"(%c) {permutation = array<i64: 2, 0, 1>} : (tensor<2x3x4xf32>)'
    " -> tensor<4x2x3xf32>",
    "reverse": '"ttir.reverse"(%c) {dimensions = array<i64: 0, 2>} : (tensor<2x3x4xf32>)'
    " -> tensor<2x3x4xf32>",
    "interleave": '"ttir.repeat_interleave"(%a) {repeats = 3 : ui32, dim = 0 : si32} :'
    " (tensor<2x3xf32>) -> tensor<6x3xf32>",
    "repeat": '"ttir.repeat"(%a) {repeat_dimensions = array<i64: 2, 3>} : (tensor<2x3xf32>)'
    " -> tensor<4x9xf32>",
    "broadcast": '"ttir.broadcast"(%d) {broadcast_dimensions = array<i64: 5, 1>} :'
    " (tensor<1x3xf32>) -> tensor<5x3xf32>",
    "upsample": '"ttir.upsample2d"(%e) {scale_factor = [3 : i32, 2 : i32], mode = "nearest"} :'
    " (tensor<2x2x3x4xf32>) -> tensor<2x6x6x4xf32>",
}


def _op(text: str) -> CatalogueOp:
    result = text.rpartition("->")[2]
    source = f"""func.func @f(%a: tensor<2x3xf32>, %b: tensor<2x4xf32>, %c: tensor<2x3x4xf32>,
                              %d: tensor<1x3xf32>, %e: tensor<2x2x3x4xf32>) -> {result} {{
      %0 = {text}
      return %0 : {result}
    }}"""
    module = parse_module(Source("move.mlir", source))
    return next(op for op in module.walk() if isinstance(op, CatalogueOp))


def _follow(pieces: list[Piece], arrays: list[np.ndarray], result: np.ndarray) -> None:
    for piece in pieces:
        source = arrays[piece.source].reshape(-1)
        for index in product(*(range(a, b) for a, b in zip(piece.low, piece.high, strict=True))):
            number = piece.base
            for position, low, terms in zip(index, piece.low, piece.terms, strict=True):
                for term in terms:
                    local = (position - low) // term.divisor
                    number += (local % term.modulus if term.modulus else local) * term.stride
            result[index] = source[number]


@pytest.mark.parametrize("name", MOVES)
def test_pieces_are_what_the_op_means(name: str) -> None:
    op = _op(MOVES[name])
    arrays = [
        np.arange(np.prod(v.type.get_shape()), dtype=np.float32).reshape(v.type.get_shape())
        for v in op.operands
    ]
    found = np.full(op.result_shape, 7.0, np.float32)
    _follow(pieces_of(op), arrays, found)
    np.testing.assert_array_equal(found, evaluate(op, arrays)[0])


@pytest.mark.parametrize(
    ("source", "result", "expected"),
    [
        ((5, 7), (1, 5, 7), True),
        ((2, 3, 5, 7), (6, 5, 7), True),
        ((7,), (1, 7), True),
        ((2, 64, 40), (128, 40), True),
        ((128, 40), (4, 32, 40), True),
        ((2, 40, 40), (80, 40), False),  # the last rows of each matrix are padding
        ((4, 8), (8, 4), False),
        ((1, 64), (64, 1), False),
        ((3, 1, 5), (3, 5), False),
    ],
)
def test_a_reshape_is_free_if_no_element_leaves_its_place(
    source: tuple[int, ...], result: tuple[int, ...], expected: bool
) -> None:
    assert is_view(source, result) is expected
