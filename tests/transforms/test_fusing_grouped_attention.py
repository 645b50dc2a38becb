"""Attention whose heads are in groups, and whose dimensions are in other orders."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from xdsl.dialects.builtin import TensorType
from xdsl.ir import SSAValue

from tests.transforms.programs import Program, Transformed, transformed
from ttcodegen.dialects.core.datatypes import bf16, element_of, f32, i1, shape_of
from ttcodegen.transforms.ttir.canonicalize import TTIRCanonicalizePass
from ttcodegen.transforms.ttir.fusing.rules import TTIRFusingPass

ATTENTION = "scaled_dot_product_attention"
BATCH, LENGTH, SHARED, GROUPS, SIZE = 2, 6, 3, 4, 32


def matmul(p: Program, a: SSAValue, b: SSAValue, **transposed: bool) -> SSAValue:
    shapes = [shape_of(value.type) for value in (a, b)]
    rows = shapes[0][-1] if transposed.get("transpose_a") else shapes[0][-2]
    columns = shapes[1][-2] if transposed.get("transpose_b") else shapes[1][-1]
    result = TensorType(f32, [*shapes[0][:-2], rows, columns])
    return p.make.emit("matmul", [a, b], result, **transposed)


@dataclass(frozen=True)
class Grouped:
    """`jax.nn.dot_product_attention` as it is lowered, and what may be different about it."""

    mask: tuple[int, ...] | None = None
    """Of the mask that is added to scores (batch, heads, queries, groups, keys)."""
    chosen: float = 0.0
    """The values where a condition of that shape does not hold."""
    causal: bool = False
    scaled_late: bool = False
    wide: bool = False

    def build(self, p: Program) -> SSAValue:
        make = p.make
        element = f32 if self.wide else bf16
        q = p.argument(BATCH, LENGTH, SHARED * GROUPS, SIZE, element=element)
        k, v = (
            make.permute(p.argument(BATCH, LENGTH, SHARED, SIZE, element=element), [0, 2, 1, 3])
            for _ in range(2)
        )
        q = make.permute(make.reshape(q, [BATCH, LENGTH, SHARED, GROUPS, SIZE]), [0, 2, 1, 3, 4])
        q = make.reshape(q, [BATCH, SHARED, LENGTH * GROUPS, SIZE])
        scores = matmul(p, q, k, transpose_b=True)
        scores = make.reshape(scores, [BATCH, SHARED, LENGTH, GROUPS, LENGTH])
        scale = make.full([1] * 5, SIZE**-0.5, f32)
        if not self.scaled_late:
            scores = make.broadcasting("multiply", scores, scale)
        scores = self._masked(p, scores)
        if self.scaled_late:
            scores = make.broadcasting("multiply", scores, scale)
        turned = make.permute(scores, [3, 0, 1, 2, 4])
        weights = make.typecast(make.like("softmax", turned, dimension=4), element)
        weights = make.permute(weights, [1, 2, 4, 0, 3])
        weights = make.reshape(weights, [BATCH, SHARED, LENGTH, GROUPS * LENGTH])
        result = make.typecast(matmul(p, v, weights, transpose_a=True), element)
        result = make.reshape(result, [BATCH, SHARED, SIZE, GROUPS, LENGTH])
        result = make.permute(result, [0, 4, 1, 3, 2])
        return make.reshape(result, [BATCH, LENGTH, SHARED * GROUPS, SIZE])

    def _masked(self, p: Program, scores: SSAValue) -> SSAValue:
        if self.causal:
            hidden = np.triu(np.full((LENGTH, LENGTH), -1e30, np.float32), 1)
            mask = p.make.reshape(constant(p, hidden), [1, 1, LENGTH, 1, LENGTH])
            return p.make.broadcasting("add", scores, mask)
        if self.mask is None:
            return scores
        mask = p.argument(*self.mask, element=bf16)
        if not self.chosen:
            return p.make.broadcasting("add", scores, p.make.typecast(mask, f32))
        zero = p.make.full([1] * 5, 0.0, bf16)
        seen = p.make.broadcasting("gt", mask, zero, element=i1)
        hidden = p.make.full([1] * 5, self.chosen, f32)
        return p.make.broadcasting("where", seen, scores, hidden, element=f32)


def constant(p: Program, array: np.ndarray) -> SSAValue:
    from ttcodegen.dialects.core.datatypes import elements

    value = elements(f32, array.shape, array.tobytes())
    return p.make.emit("constant", [], TensorType(f32, array.shape), value=value)


def fused(p: Program, result: SSAValue) -> Transformed:
    return transformed(p.returns(result), TTIRCanonicalizePass(), TTIRFusingPass())


MASKS = [
    (BATCH, 1, LENGTH, 1, LENGTH),
    (1, 1, 1, 1, LENGTH),
    (1, SHARED, 1, GROUPS, LENGTH),
    (BATCH, SHARED, LENGTH, GROUPS, LENGTH),
    (1, SHARED, LENGTH, 1, LENGTH),
    (1, 1, LENGTH, GROUPS, 1),
]


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("chosen", [0.0, -1e30])
def test_masks_of_grouped_heads(mask: tuple[int, ...], chosen: float) -> None:
    p = Program()
    result = fused(p, Grouped(mask=mask, chosen=chosen).build(p))
    assert "softmax" not in result.names
    assert result.op(ATTENTION).shape("attention_mask")[2:] == (LENGTH, LENGTH)


@pytest.mark.parametrize("causal", [False, True])
def test_the_op_is_what_one_would_write(causal: bool) -> None:
    p = Program()
    result = fused(p, Grouped(causal=causal).build(p))
    assert sorted(result.names) == sorted(["permute"] * 4 + [ATTENTION])
    op = result.op(ATTENTION)
    assert op.parameter("is_causal") is causal
    assert op.shape("query") == (BATCH, SHARED * GROUPS, LENGTH, SIZE)
    assert op.shape("key") == (BATCH, SHARED, LENGTH, SIZE)
    assert op.parameter("scale") == pytest.approx(SIZE**-0.5)


@pytest.mark.parametrize(
    "attention",
    [
        Grouped(wide=True),
        Grouped(mask=MASKS[0], scaled_late=True),
        Grouped(mask=MASKS[0], chosen=-4.0),
    ],
)
def test_other_formulas_stay(attention: Grouped) -> None:
    p = Program()
    assert ATTENTION not in fused(p, attention.build(p)).names


@pytest.mark.parametrize("shape", [(8, SIZE), (3, 8, SIZE), (2, 3, 2, 8, SIZE)])
def test_any_number_of_leading_dimensions(shape: tuple[int, ...]) -> None:
    p = Program()
    q, k, v = (p.argument(*shape, element=bf16) for _ in range(3))
    scores = matmul(p, q, k, transpose_b=True)
    weights = p.make.like("softmax", scores, dimension=len(shape) - 1)
    result = p.make.typecast(matmul(p, p.make.typecast(weights, bf16), v), bf16)
    assert element_of(result.type) == bf16
    assert "softmax" not in fused(p, result).names


def test_the_maximum_may_be_subtracted_in_another_order() -> None:
    p = Program()
    x = p.argument(2, 5, 3, 7)
    maximum = p.make.reduce("max", x, [3], keep_dim=False)
    maximum = p.make.reshape(p.make.permute(maximum, [2, 0, 1]), [3, 2, 5, 1])
    turned = p.make.permute(x, [2, 0, 1, 3])
    exponentials = p.make.like("exp", p.make.broadcasting("subtract", turned, maximum))
    total = p.make.reduce("sum", exponentials, [3])
    result = fused(p, p.make.broadcasting("div", exponentials, total))
    assert sorted(result.names) == ["permute", "softmax"]
    assert result.op("softmax").parameter("numericStable") is True


def joined_heads(p: Program, first: SSAValue, second: SSAValue) -> SSAValue:
    """Scores of heads that are joined with the batch, and two masks: one before they are divided
    and one after, limited to the lowest number as some decoders do."""
    make = p.make
    q, k, v = (p.argument(BATCH * SHARED, LENGTH, SIZE, element=bf16) for _ in range(3))
    scores = make.broadcasting(
        "multiply", matmul(p, q, k, transpose_b=True), make.full([1, 1, 1], 0.25, f32)
    )
    scores = make.broadcasting("add", first, scores)
    scores = make.reshape(scores, [BATCH, SHARED, LENGTH, LENGTH])
    scores = make.broadcasting("add", scores, second)
    scores = make.broadcasting("maximum", scores, make.full([1, 1, 1, 1], -3e38, f32))
    weights = make.like("softmax", scores, dimension=3)
    weights = make.reshape(weights, [BATCH * SHARED, LENGTH, LENGTH])
    return make.typecast(matmul(p, make.typecast(weights, bf16), v), bf16)


def slopes(p: Program) -> SSAValue:
    """Numbers that are added for each head and key: more for later ones."""
    heads = np.linspace(0.1, 0.9, BATCH * SHARED, dtype=np.float32)
    return constant(p, heads[:, None, None] * np.arange(LENGTH, dtype=np.float32))


def hidden_later(p: Program) -> SSAValue:
    later = np.triu(np.full((LENGTH, LENGTH), -3e38, np.float32), 1)
    return constant(p, later[None, None])


def test_masks_in_two_places_are_one() -> None:
    p = Program()
    result = fused(p, joined_heads(p, slopes(p), hidden_later(p)))
    op = result.op(ATTENTION)
    assert op.shape("query") == (1, BATCH * SHARED, LENGTH, SIZE)
    assert op.shape("attention_mask")[-2:] == (LENGTH, LENGTH)
    assert op.parameter("scale") == pytest.approx(0.25)


def test_keys_that_two_masks_hide_are_not_those_that_one_hides() -> None:
    p = Program()
    padding = p.argument(BATCH * SHARED, 1, LENGTH, element=f32)
    assert ATTENTION not in fused(p, joined_heads(p, padding, hidden_later(p))).names
