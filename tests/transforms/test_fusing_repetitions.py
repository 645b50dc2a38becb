"""Heads that queries share, and masks that are known, as models spell them."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, SSAValue

from tests.transforms.programs import Program, Transformed, transformed
from ttcodegen.dialects.core.datatypes import bf16, element_of, elements, f32, shape_of
from ttcodegen.transforms.ttir.canonicalize import TTIRCanonicalizePass
from ttcodegen.transforms.ttir.fusing.rules import TTIRFusingPass

ATTENTION = "scaled_dot_product_attention"
LENGTH, SIZE = 8, 32


def fused(p: Program, *results: SSAValue) -> Transformed:
    return transformed(p.returns(*results), TTIRCanonicalizePass(), TTIRFusingPass())


def repeated(p: Program, value: SSAValue, name: str, axis: int, factor: int) -> SSAValue:
    shape = list(shape_of(value.type))
    shape[axis] *= factor
    factors = [factor if dim == axis else 1 for dim in range(len(shape))]
    attribute = {"broadcast": "broadcast_dimensions", "repeat": "repeat_dimensions"}[name]
    result = TensorType(element_of(value.type), shape)
    return p.make.emit(name, [value], result, **{attribute: factors})


def shared_heads(p: Program, name: str, heads: int, copies: int) -> SSAValue:
    """As transformers and torch expand the heads of keys."""
    value = p.argument(2, heads, LENGTH, SIZE, element=bf16)
    value = p.make.reshape(value, [2, heads, 1, LENGTH, SIZE])
    value = repeated(p, value, name, 2, copies)
    return p.make.reshape(value, [2, heads * copies, LENGTH, SIZE])


def attention(p: Program, keys: list[SSAValue], mask: SSAValue | None = None) -> SSAValue:
    query = p.argument(2, 4, LENGTH, SIZE, element=bf16)
    return p.make.emit(
        ATTENTION, [query, *keys, mask], query.type, is_causal=False, scale=SIZE**-0.5
    )


@pytest.mark.parametrize("name", ["broadcast", "repeat"])
@pytest.mark.parametrize("heads", [1, 2])
def test_attention_takes_heads_before_they_are_repeated(name: str, heads: int) -> None:
    p = Program()
    keys = [shared_heads(p, name, heads, 4 // heads) for _ in range(2)]
    result = fused(p, attention(p, keys))
    assert result.names == [ATTENTION]
    assert result.op(ATTENTION).shape("key")[1] == heads


def test_heads_that_are_repeated_as_a_whole_stay() -> None:
    p = Program()
    heads = [p.argument(2, 2, LENGTH, SIZE, element=bf16) for _ in range(2)]
    result = fused(p, attention(p, [repeated(p, each, "repeat", 1, 2) for each in heads]))
    assert result.names.count("repeat") == 2


def test_heads_that_keys_alone_repeat_stay() -> None:
    p = Program()
    value = p.argument(2, 4, LENGTH, SIZE, element=bf16)
    result = fused(p, attention(p, [shared_heads(p, "repeat", 2, 2), value]))
    assert "repeat_interleave" in result.names


def test_elements_are_moved_before_they_are_repeated() -> None:
    p = Program()
    value = p.argument(2, LENGTH, 2, SIZE)
    result = TensorType(f32, [2, LENGTH, 6, SIZE])
    copies = p.make.emit("repeat_interleave", [value], result, repeats=3, dim=2)
    found = fused(p, p.make.permute(copies, [0, 2, 3, 1]))
    assert found.names == ["permute", "repeat_interleave"]
    assert found.op("repeat_interleave").parameter("dim") == 1


def known_mask(p: Program, seen: np.ndarray, hidden: float = -3e38) -> SSAValue:
    """As a mask that is added, for both sequences of a batch."""
    array = np.where(seen, 0.0, hidden).astype(np.float32)[np.newaxis, np.newaxis]
    value = elements(f32, array.shape, array.tobytes())
    mask = p.make.emit("constant", [], TensorType(f32, array.shape), value=value)
    return repeated(p, p.make.typecast(mask, bf16), "repeat", 0, 2)


BEFORE = np.subtract.outer(np.arange(LENGTH), np.arange(LENGTH))
"""Distance in positions from a key to a later query, by query and key."""


@pytest.mark.parametrize(("window", "attribute"), [(LENGTH, None), (3, 3), (1, 1)])
def test_known_masks_of_earlier_keys_are_not_read(window: int, attribute: int | None) -> None:
    p = Program()
    keys = [p.argument(2, 4, LENGTH, SIZE, element=bf16) for _ in range(2)]
    mask = known_mask(p, (BEFORE >= 0) & (BEFORE < window))
    result = fused(p, attention(p, keys, mask))
    assert result.names == [ATTENTION]
    op = result.op(ATTENTION)
    assert op.parameter("is_causal")
    assert op.parameter("sliding_window_size") == attribute


def mask_of_positions(p: Program, element: Attribute, bound: float) -> SSAValue:
    """As encoders of transformers spell it: positions of queries that are at least a bound, zero
    there and minus infinity elsewhere."""
    shape = [1, 1, LENGTH, LENGTH]
    positions = p.make.emit(
        "arange", [], TensorType(f32, [LENGTH]), start=0, end=LENGTH, step=1, arange_dimension=0
    )
    column = p.make.reshape(positions, [1, 1, LENGTH, 1])
    least = p.make.full([1, 1, 1, 1], bound, f32)
    visible = p.make.emit("ge", [column, least], TensorType(f32, [1, 1, LENGTH, 1]))
    whole = repeated(p, visible, "repeat", 3, LENGTH)
    numbers = [p.make.full([1, 1, 1, 1], each, element) for each in (0.0, float("-inf"))]
    return p.make.emit("where", [whole, *numbers], TensorType(element, shape))


@pytest.mark.parametrize("element", [bf16, f32])
def test_masks_that_hide_nothing_are_not_read(element: Attribute) -> None:
    p = Program()
    keys = [p.argument(2, 4, LENGTH, SIZE, element=element) for _ in range(2)]
    query = p.argument(2, 4, LENGTH, SIZE, element=element)
    mask = mask_of_positions(p, element, 0.0)
    result = p.make.emit(
        ATTENTION, [query, *keys, mask], query.type, is_causal=False, scale=SIZE**-0.5
    )
    op = fused(p, result).op(ATTENTION)
    assert op.optional_operand("attention_mask") is None
    assert not op.parameter("is_causal")


def test_a_mask_that_hides_all_keys_from_a_query_stays() -> None:
    p = Program()
    keys = [p.argument(2, 4, LENGTH, SIZE, element=bf16) for _ in range(2)]
    op = fused(p, attention(p, keys, mask_of_positions(p, bf16, 1.0))).op(ATTENTION)
    assert op.optional_operand("attention_mask") is not None


OTHERS = {
    "more before than after": (BEFORE > -2) & (BEFORE < 4),
    "not itself": BEFORE > 0,
    "one more": (BEFORE >= 0) & (np.arange(LENGTH) != 2),
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_known_masks_stay(name: str) -> None:
    p = Program()
    keys = [p.argument(2, 4, LENGTH, SIZE, element=bf16) for _ in range(2)]
    op = fused(p, attention(p, keys, known_mask(p, OTHERS[name], -1e30))).op(ATTENTION)
    assert op.optional_operand("attention_mask") is not None
    assert not op.parameter("is_causal")


def test_masks_that_only_make_keys_less_likely_stay() -> None:
    p = Program()
    keys = [p.argument(2, 4, LENGTH, SIZE, element=bf16) for _ in range(2)]
    op = fused(p, attention(p, keys, known_mask(p, BEFORE >= 0, -5.0))).op(ATTENTION)
    assert op.optional_operand("attention_mask") is not None


def spelled_out(
    p: Program, query: SSAValue, mask: bool = False, inverted: bool = False
) -> SSAValue:
    """softmax(Q K^T + bias where something is seen) V."""
    make = p.make
    key, value = (p.argument(2, 4, LENGTH, SIZE, element=bf16) for _ in range(2))
    shape = TensorType(bf16, [2, 4, LENGTH, LENGTH])
    scores = make.emit("matmul", [query, key], shape, transpose_b=True)
    if mask:
        scores = make.broadcasting("add", scores, p.argument(1, 4, 1, LENGTH, element=bf16))
        seen = p.argument(1, 1, LENGTH, LENGTH, element=bf16)
        low = make.full([1] * 4, 0.5, bf16)
        test = make.broadcasting("lt" if inverted else "ge", seen, low)
        hidden = make.full([1] * 4, -3e38, bf16)
        choices = [hidden, scores] if inverted else [scores, hidden]
        scores = make.emit("where", [test, *choices], shape)
    weights = make.like("softmax", scores, dimension=3)
    return make.emit("matmul", [weights, value], query.type)


@pytest.mark.parametrize("inverted", [False, True])
def test_scores_with_a_bias_of_which_some_are_hidden(inverted: bool) -> None:
    """Attention with linear biases, or relative ones, and a mask."""
    p = Program()
    query = p.argument(2, 4, LENGTH, SIZE, element=bf16)
    result = fused(p, spelled_out(p, query, mask=True, inverted=inverted))
    assert ATTENTION in result.names
    assert "matmul" not in result.names


def test_queries_that_were_computed_in_wide_numbers_stay_rounded() -> None:
    p = Program()
    wide = p.make.typecast(p.argument(2, 4, LENGTH, SIZE, element=bf16), f32)
    query = p.make.typecast(p.make.like("exp", wide), bf16)
    result = fused(p, spelled_out(p, query))
    assert ATTENTION in result.names
