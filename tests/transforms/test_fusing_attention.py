from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from xdsl.dialects.builtin import TensorType
from xdsl.ir import SSAValue

from tests.transforms.numpy_execution import run
from tests.transforms.programs import Program, Transformed, apply, transformed
from ttcodegen.dialects.core.datatypes import bf16, f32, shape_of
from ttcodegen.transforms.ttir.canonicalize import TTIRCanonicalizePass
from ttcodegen.transforms.ttir.fusing.rules import TTIRFusingPass

PASSES = (TTIRCanonicalizePass(), TTIRFusingPass())
ATTENTION = "scaled_dot_product_attention"


def broadcast(p: Program, value: SSAValue, *factors: int) -> SSAValue:
    shape = [a * b for a, b in zip(shape_of(value.type), factors, strict=True)]
    result = TensorType(value.type.element_type, shape)
    return p.make.emit("broadcast", [value], result, broadcast_dimensions=list(factors))


def test_a_dimension_repeated_behind_another_is_interleaved() -> None:
    p = Program()
    value = p.make.reshape(p.argument(2, 3, 5, 8), [2, 3, 1, 5, 8])
    value = p.make.reshape(broadcast(p, value, 1, 1, 4, 1, 1), [2, 12, 5, 8])
    result = transformed(p.returns(value), *PASSES)
    assert result.names == ["repeat_interleave"]
    assert result.op("repeat_interleave").parameter("repeats") == 4


def test_a_dimension_repeated_in_front_of_another_is_repeated() -> None:
    p = Program()
    value = p.make.reshape(p.argument(3, 5), [1, 3, 5])
    value = p.make.reshape(broadcast(p, value, 4, 1, 1), [12, 5])
    result = transformed(p.returns(value), *PASSES)
    assert result.names == ["repeat"]


def test_a_repetition_that_is_joined_with_two_dimensions_stays() -> None:
    p = Program()
    value = p.make.reshape(broadcast(p, p.argument(2, 3, 1, 5), 1, 1, 4, 1), [24, 5])
    result = transformed(p.returns(value), *PASSES)
    assert result.names == ["broadcast", "reshape"]


@pytest.mark.parametrize("shape", [[2, 64, 96], [128, 96]])
def test_heads_are_concatenated(shape: list[int]) -> None:
    p = Program()
    value = p.make.reshape(p.make.permute(p.argument(2, 3, 64, 32), [0, 2, 1, 3]), shape)
    result = transformed(p.returns(value), *PASSES)
    assert result.names[0] == "concatenate_heads"


@dataclass(frozen=True)
class Attention:
    """An attention as frontends spell it, and what may be different about it."""

    heads: int = 4
    key_heads: int = 4
    queries: int = 8
    keys: int = 16
    size: int = 32
    mask: tuple[int, ...] | None = (1, 1, 8, 16)
    guard: str = ""
    """Branch of a select for rows without scores: "", "first" or "last"."""
    split_scale: bool = False
    kept_scores: bool = False
    wide: bool = False

    def build(self, p: Program) -> list[SSAValue]:
        make = p.make
        source = f32 if self.wide else bf16
        q = p.argument(2, self.heads, self.queries, self.size, element=source)
        k = self._repeated(p, p.argument(2, self.key_heads, self.keys, self.size, element=source))
        v = self._repeated(p, p.argument(2, self.key_heads, self.keys, self.size, element=source))
        q, k, v = (make.typecast(value, f32) for value in (q, k, v))
        k = make.permute(k, [0, 1, 3, 2])
        scale = self.size**-0.5
        if self.split_scale:
            q, k = (
                make.like("multiply", x, make.full(shape_of(x.type), scale**0.5, f32))
                for x in (q, k)
            )
        shape = [2, self.heads, self.queries, self.keys]
        scores = make.emit("matmul", [q, k], TensorType(f32, shape))
        if not self.split_scale:
            scores = make.like("multiply", scores, make.full(shape, scale, f32))
        if self.mask is not None:
            mask = make.typecast(p.argument(*self.mask, element=bf16), f32)
            scores = make.broadcasting("add", scores, mask)
        probabilities = self._softmax(p, scores)
        result = make.emit("matmul", [probabilities, v], TensorType(f32, [*shape[:3], self.size]))
        results = [make.typecast(result, source)]
        return [*results, scores] if self.kept_scores else results

    def _repeated(self, p: Program, value: SSAValue) -> SSAValue:
        groups = self.heads // self.key_heads
        if groups == 1:
            return value
        batch, heads, length, size = shape_of(value.type)
        value = p.make.reshape(value, [batch, heads, 1, length, size])
        value = broadcast(p, value, 1, 1, groups, 1, 1)
        return p.make.reshape(value, [batch, heads * groups, length, size])

    def _softmax(self, p: Program, scores: SSAValue) -> SSAValue:
        make = p.make
        result = make.like("softmax", scores, dimension=3)
        if not self.guard:
            return result
        infinity = make.full(shape_of(scores.type), float("-inf"), f32)
        seen = make.reduce("max", make.like("ne", scores, infinity, element=bf16), [3])
        zero = make.full(shape_of(scores.type), 0.0, f32)
        choice = [seen, result, zero]
        if self.guard == "first":
            choice = [make.like("logical_not", seen), zero, result]
        return make.emit("where", choice, result.type)


def fused(attention: Attention) -> Transformed:
    p = Program()
    return transformed(p.returns(*attention.build(p)), *PASSES)


@pytest.mark.parametrize(
    "attention",
    [
        Attention(),
        Attention(mask=None),
        Attention(mask=(2, 1, 1, 16)),
        Attention(mask=(2, 4, 8, 16)),
        Attention(split_scale=True),
        Attention(key_heads=2),
        Attention(key_heads=1, split_scale=True, mask=None),
        Attention(guard="first"),
        Attention(guard="last"),
        Attention(guard="first", mask=None),
        Attention(queries=1, mask=(1, 1, 1, 16)),
        Attention(size=48),
        Attention(size=8, key_heads=2),
    ],
)
def test_attention_is_fused(attention: Attention) -> None:
    result = fused(attention)
    assert "matmul" not in result.names
    op = result.op(ATTENTION)
    assert op.parameter("is_causal") is False
    assert op.parameter("scale") == pytest.approx(attention.size**-0.5, rel=1e-5)
    assert op.shape("key")[1] == attention.key_heads
    assert (op.optional_operand("attention_mask") is None) == (attention.mask is None)


@pytest.mark.parametrize(
    "attention",
    [
        Attention(wide=True),
        Attention(kept_scores=True),
    ],
)
def test_what_the_library_does_not_take_stays(attention: Attention) -> None:
    assert ATTENTION not in fused(attention).names


@pytest.mark.parametrize("guard", ["first", "last"])
def test_a_query_that_may_look_at_nothing_gives_zero(guard: str) -> None:
    p = Program()
    module = p.returns(*Attention(guard=guard, mask=(2, 1, 8, 16)).build(p))
    generator = np.random.default_rng(0)
    inputs = [
        generator.uniform(-1, 1, argument.get_shape())
        for argument in Transformed(module).function.function_type.inputs.data
    ]
    mask = np.zeros(inputs[3].shape)
    mask[0, 0, 3] = -np.inf
    mask[1, 0, 5, :9] = -np.inf
    inputs[3] = mask
    (expected,) = run(Transformed(module).function, inputs)
    result = apply(module, *PASSES)
    assert ATTENTION in result.names
    (found,) = run(result.function, inputs)
    assert not found[0, :, 3].any()
    np.testing.assert_allclose(found, expected, atol=0.02)


def parts_of(
    p: Program, heads: int, key_heads: int, size: int, order: list[int] | None = None
) -> tuple[SSAValue, list[SSAValue]]:
    """A projection, and queries, keys and values out of it."""
    width = (heads + 2 * key_heads) * size
    rows = p.argument(2, 6, width)
    parts: list[SSAValue] = []
    begin = 0
    for count in (heads, key_heads, key_heads):
        part = p.make.slice_dim(rows, 2, begin, begin + count * size)
        part = p.make.reshape(part, [2, 6, count, size])
        parts.append(p.make.permute(part, order or [0, 2, 1, 3]))
        begin += count * size
    return rows, parts


@pytest.mark.parametrize("key_heads", [2, 4])
def test_heads_are_split_off_one_projection(key_heads: int) -> None:
    p = Program()
    _, parts = parts_of(p, 4, key_heads, 32)
    result = transformed(p.returns(*parts), *PASSES)
    assert result.names == ["split_query_key_value_and_split_heads"]
    assert result.op(result.names[0]).parameter("num_heads") == 4


def test_other_parts_of_a_projection_stay() -> None:
    p = Program()
    rows, parts = parts_of(p, 4, 4, 32)
    assert "slice_static" in transformed(p.returns(*parts, p.make.like("exp", rows)), *PASSES).names
    p = Program()
    assert "slice_static" in transformed(p.returns(*parts_of(p, 2, 2, 16)[1]), *PASSES).names
    p = Program()
    turned = parts_of(p, 2, 2, 32, [2, 0, 1, 3])[1]
    assert "slice_static" in transformed(p.returns(*turned), *PASSES).names


@pytest.mark.parametrize("size", [16, 32])
def test_parts_that_torch_takes_out_of_a_projection(size: int) -> None:
    """`nn.MultiheadAttention`: (batch, sequence, 3, width), the three parts in front."""
    p = Program()
    make = p.make
    rows = make.reshape(p.argument(1, 6, 12 * size), [1, 6, 3, 4 * size])
    turned = make.permute(rows, [2, 1, 0, 3])
    parts: list[SSAValue] = []
    for index in range(3):
        part = make.slice_dim(turned, 0, index, index + 1)
        part = make.reshape(part, [1, 6, 4, size])
        parts.append(make.permute(part, [0, 2, 1, 3]))
    result = transformed(p.returns(*parts), *PASSES)
    expected = {
        32: ["split_query_key_value_and_split_heads"],
        16: ["slice_static", "reshape", "permute"] * 3,
    }
    assert sorted(result.names) == sorted(expected[size])


def test_slices_of_inner_parts_come_after_the_reshape() -> None:
    p = Program()
    rows = p.make.reshape(p.argument(4, 6), [4, 2, 3])
    part = p.make.slice_dim(rows, 2, 0, 1)
    assert transformed(p.returns(part), *PASSES).names == ["reshape", "slice_static"]
