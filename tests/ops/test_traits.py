"""Traits of the catalogue for passes and costs that treat kinds of ops alike."""

from __future__ import annotations

import pytest

import ttcodegen.ops as catalogue
from ttcodegen.ops.core.definition import TTIR, TTNN
from ttcodegen.ops.core.traits import OpShapes, Trait

catalogue.load()


def shapes(*operands: tuple[int, ...], result: tuple[int, ...], **attributes: object) -> OpShapes:
    return OpShapes(attributes, operands, [result])


@pytest.mark.parametrize(
    ("name", "flops", "found"),
    [
        ("add", 64, shapes((8, 8), (8, 8), result=(8, 8))),
        ("permute", 0, shapes((8, 4), result=(4, 8))),
        ("to_layout", 0, shapes((8, 4), result=(8, 4))),
        ("softmax", 5 * 32, shapes((8, 4), result=(8, 4))),
        ("matmul", 2 * 8 * 16 * 4, shapes((8, 4), (4, 16), result=(8, 16))),
        ("matmul", 2 * 8 * 16 * 4, shapes((4, 8), (4, 16), result=(8, 16), transpose_a=True)),
        ("linear", 8 * 16 * 9, shapes((8, 4), (4, 16), (16,), result=(8, 16))),
        ("max_pool2d", 9 * 16, shapes((1, 1, 64, 1), result=(1, 1, 16, 1), kernel_size=[3, 3])),
        (
            "conv2d",
            2 * 64 * 8 * 3 * 9,
            shapes((1, 1, 64, 3), (8, 3, 3, 3), result=(1, 1, 64, 8), out_channels=8),
        ),
    ],
)
def test_work_of_an_op(name: str, flops: int, found: OpShapes) -> None:
    assert TTNN[name].flops(found) == flops


def test_what_moves_elements_computes_nothing() -> None:
    rearranging = {name for name, definition in TTNN.items() if definition.rearranges}
    assert {"permute", "reshape", "pad", "to_layout", "to_device"} <= rearranging
    assert not any(TTNN[name].computes for name in rearranging)


def test_fills_are_made_of_attributes_alone() -> None:
    fills = {name for name, definition in TTIR.items() if definition.fills}
    assert fills == {"arange", "constant", "empty", "full", "ones", "zeros"}


def test_ops_that_draw_are_never_merged() -> None:
    drawing = {name for name, definition in TTNN.items() if definition.draws}
    assert drawing == {"rand", "dropout", "sampling"}
    assert drawing == {name for name, definition in TTIR.items() if definition.draws}


def test_counts_and_engines() -> None:
    counting = {name: definition for name, definition in TTIR.items() if definition.counts}
    assert not any(Trait.TRUTH in definition.traits for definition in counting.values())
    elementwise = {name for name, definition in counting.items() if definition.tile is not None}
    assert {"add", "exp", "gelu_bw", "maximum", "remainder", "sigmoid"} <= elementwise
    sums = {"mean", "sum"}
    others = {"cumsum", "dot_general", "linear", "matmul", "max", "max_pool2d", "min", "prod"}
    assert counting.keys() - elementwise == others | sums
    products = {name for name, definition in TTIR.items() if definition.matrix_engine}
    of_matrices = {"dot_general", "linear", "matmul", "sparse_matmul", "window_product"}
    assert products == of_matrices | sums | {"scaled_dot_product_attention"}
