"""Norms, products and attention in the words of flax and jax.numpy."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from xdsl.dialects.builtin import TensorType, i32
from xdsl.ir import SSAValue

from tests.transforms.programs import Formulas, Transformed, transformed
from ttcodegen.dialects.core.datatypes import bf16, element_of, f32, i1, shape_of
from ttcodegen.transforms.ttir.canonicalize import TTIRCanonicalizePass
from ttcodegen.transforms.ttir.fusing.rules import TTIRFusingPass

Build = Callable[[Formulas], "SSAValue | list[SSAValue]"]


def fused(build: Build, expected: list[str] | None, low: float = -2.0) -> Transformed:
    p = Formulas()
    value = build(p)
    module = p.returns(*(value if isinstance(value, list) else [value]))
    result = transformed(module, TTIRCanonicalizePass(), TTIRFusingPass(), low=low, high=2.0)
    if expected is not None:
        assert result.names == expected
    return result


def averaged(p: Formulas, x: SSAValue, keep_dim: bool = True) -> SSAValue:
    """The mean over the last dimension as a sum through a number, with leading ones."""
    shape = shape_of(x.type)
    total = p.make.reduce("sum", x, [len(shape) - 1], keep_dim=False)
    mean = p.n("div", total, float(shape[-1]))
    return p.make.reshape(mean, [*shape[:-1], 1]) if keep_dim else mean


def fast_norm(
    p: Formulas,
    x: SSAValue,
    scale: SSAValue | None = None,
    limited: bool = True,
    wrong: bool = False,
) -> SSAValue:
    """flax: the variance as a difference, and the weight in the factor."""
    mean = averaged(p, x, keep_dim=False)
    squares = averaged(p, p.b("multiply", x, x), keep_dim=False)
    other = squares if wrong else mean
    variance = p.b("subtract", squares, p.b("multiply", other, other))
    if limited:
        variance = p.n("maximum", variance, 0.0)
    kept = [*shape_of(x.type)[:-1], 1]
    inverse = p.u("rsqrt", p.n("add", p.make.reshape(variance, kept), 1e-3))
    factor = inverse if scale is None else p.b("multiply", inverse, scale)
    return p.b("multiply", p.b("subtract", x, p.make.reshape(mean, kept)), factor)


def rounded_norm(p: Formulas, *shape: int) -> SSAValue:
    """jax.numpy: statistics of bf16 are taken in f32, and each is rounded."""
    x = p.argument(*shape, element=bf16)
    wide = p.make.typecast(x, f32)
    mean = averaged(p, wide)
    centered = p.b("subtract", wide, mean)
    variance = p.make.typecast(averaged(p, p.b("multiply", centered, centered)), bf16)
    deviation = p.u("sqrt", p.n("add", variance, 1e-2))
    return p.b("div", p.b("subtract", x, p.make.typecast(mean, bf16)), deviation)


def flax_norm_of_bf16(p: Formulas) -> SSAValue:
    x = p.make.typecast(p.argument(4, 8, element=bf16), f32)
    scale, bias = (
        p.make.typecast(p.make.reshape(p.weight(8, element=bf16), [1, 8]), f32) for _ in range(2)
    )
    return p.make.typecast(p.b("add", fast_norm(p, x, scale), bias), bf16)


def rounded_softmax(p: Formulas) -> SSAValue:
    x = p.argument(4, 8, element=bf16)
    exponentials = p.u("exp", p.b("subtract", x, p.make.reduce("max", x, [1])))
    total = p.make.reduce("sum", p.make.typecast(exponentials, f32), [1])
    return p.b("div", exponentials, p.make.typecast(total, bf16))


def divided_softmax(p: Formulas, inverse_first: bool) -> SSAValue:
    """The sum's inverse is a factor."""
    x = p.argument(4, 8)
    exponentials = p.u("exp", p.b("subtract", x, p.make.reduce("max", x, [1])))
    total = p.make.reduce("sum", exponentials, [1])
    inverse = p.b("div", p.make.full([4, 1], 1.0, f32), total)
    factors = (inverse, exponentials) if inverse_first else (exponentials, inverse)
    return p.make.emit("multiply", factors, x.type)


def guarded_softmax(p: Formulas) -> SSAValue:
    """Infinite maxima count as zero."""
    return guarded(p, p.argument(4, 8))


def guarded(p: Formulas, x: SSAValue) -> SSAValue:
    top = p.make.reduce("max", x, [1])
    finite = p.make.like("isfinite", top, element=i1)
    top = p.make.emit("where", [finite, top, p.make.full([1, 1], 0.0, f32)], top.type)
    exponentials = p.u("exp", p.b("subtract", x, top))
    return p.b("div", exponentials, p.make.reduce("sum", exponentials, [1]))


def guarded_weights(p: Formulas, moved: bool = False, other: bool = False) -> SSAValue:
    """In a product that sums over the softmax's dimension, or over another one."""
    weights = guarded(p, p.argument(4, 8))
    if moved:
        weights = p.make.reshape(weights, [2, 2, 8])
    values = p.argument(*([2] if moved else []), 4 if other else 8, 3)
    shape = [8, 3] if other else [*shape_of(weights.type)[:-1], 3]
    return p.make.emit("matmul", [weights, values], TensorType(f32, shape), transpose_a=other)


def rows_as_channels(p: Formulas) -> SSAValue:
    """torch_xla: statistics of rows as those of the channels of a batch of one."""
    x = p.argument(1, 4, 8)
    mean = p.n("div", p.make.reduce("sum", x, [0, 2], keep_dim=False), 8.0)
    centered = p.b("subtract", x, p.make.reshape(mean, [1, 4, 1]))
    squares = p.make.reduce("sum", p.b("multiply", centered, centered), [0, 2], keep_dim=False)
    inverse = p.u("rsqrt", p.n("add", p.n("div", squares, 8.0), 1e-3))
    return p.b("multiply", centered, p.make.reshape(inverse, [1, 4, 1]))


NORMS: dict[str, tuple[Build, list[str] | None]] = {
    "variance as a difference": (lambda p: fast_norm(p, p.argument(4, 8)), ["layer_norm"]),
    "not limited": (lambda p: fast_norm(p, p.argument(4, 8), limited=False), ["layer_norm"]),
    "three dimensions": (lambda p: fast_norm(p, p.argument(2, 3, 8)), ["layer_norm"]),
    "weight in the factor": (
        lambda p: fast_norm(p, p.argument(4, 8), p.weight(1, 8)),
        ["reshape", "layer_norm"],
    ),
    "flax, bf16": (flax_norm_of_bf16, ["layer_norm"]),
    "rounded statistics": (lambda p: rounded_norm(p, 4, 8), ["layer_norm"]),
    "one row": (lambda p: rounded_norm(p, 1, 1, 8), ["layer_norm"]),
    "rows as channels": (rows_as_channels, ["layer_norm"]),
    "rounded softmax": (rounded_softmax, ["softmax"]),
    "softmax, inverse": (lambda p: divided_softmax(p, False), ["softmax"]),
    "softmax, inverse first": (lambda p: divided_softmax(p, True), ["softmax"]),
    "softmax, guarded": (
        guarded_softmax,
        ["max", "isfinite", "where", "subtract", "exp", "sum", "div"],
    ),
    "softmax, guarded, in a product": (guarded_weights, ["softmax", "matmul"]),
    "softmax, guarded, moved before a product": (
        lambda p: guarded_weights(p, moved=True),
        ["softmax", "reshape", "matmul"],
    ),
    "softmax, guarded, in the product of others": (
        lambda p: guarded_weights(p, other=True),
        ["max", "isfinite", "where", "subtract", "exp", "sum", "div", "matmul"],
    ),
}


@pytest.mark.parametrize("case", NORMS)
def test_norms(case: str) -> None:
    fused(*NORMS[case])


def column_weight(p: Formulas) -> SSAValue:
    return fast_norm(p, p.argument(4, 8), p.weight(4, 1))


def other_square(p: Formulas) -> SSAValue:
    return fast_norm(p, p.argument(4, 8), wrong=True)


def crossed_statistics(p: Formulas) -> SSAValue:
    """Of a square matrix the statistics of rows, applied to columns."""
    x = p.argument(8, 8)
    mean = averaged(p, x, keep_dim=False)
    centered = p.b("subtract", x, mean)
    variance = averaged(p, p.b("multiply", x, x), keep_dim=False)
    return p.b("div", centered, p.u("sqrt", p.n("add", variance, 0.5)))


@pytest.mark.parametrize("build", [column_weight, other_square, crossed_statistics])
def test_what_is_no_norm_stays(build: Build) -> None:
    names = fused(build, None, low=0.5).names
    assert "layer_norm" not in names
    assert "rms_norm" not in names


# Products


def product(p: Formulas, *shape: int, columns: int = 6) -> SSAValue:
    x = p.argument(*shape)
    result = TensorType(f32, [*shape[:-1], columns])
    return p.make.emit("matmul", [x, p.weight(shape[-1], columns)], result)


def through_rows(p: Formulas, *shape: int) -> SSAValue:
    """Rows are put into one dimension for the product, and columns become heads."""
    rows = p.make.reshape(p.argument(*shape, 8), [shape[0] * shape[1], 8])
    result = TensorType(f32, [shape[0] * shape[1], 6])
    value = p.make.emit("matmul", [rows, p.weight(8, 6)], result)
    return p.make.reshape(value, [*shape, 2, 3])


def batched(p: Formulas, order: list[int], after: list[int] | None = None) -> SSAValue:
    """A product with a permuted factor, itself permuted."""
    b = p.make.permute(p.argument(2, 6, 3, 5), order)
    size = shape_of(b.type)
    a = p.argument(*size[:2], 4, size[2])
    value = p.make.emit("matmul", [a, b], TensorType(f32, [*size[:2], 4, size[3]]))
    return value if after is None else p.make.permute(value, after)


def squeezed(p: Formulas) -> SSAValue:
    """As jax.numpy does it: a batch of one is dropped for the product."""
    a = p.make.reshape(p.u("neg", p.argument(1, 2, 3, 4)), [2, 3, 4])
    b = p.make.reshape(p.u("exp", p.argument(1, 2, 4, 5)), [2, 4, 5])
    value = p.make.emit("matmul", [a, b], TensorType(f32, [2, 3, 5]))
    return p.make.reshape(value, [1, 2, 3, 5])


def convolved(p: Formulas) -> SSAValue:
    operands = [p.argument(2, 5, 5, 3), p.weight(4, 3, 3, 3), None]
    return p.make.emit("conv2d", operands, TensorType(f32, [2, 5, 5, 4]), padding=[1, 1, 1, 1],
                       stride=[1, 1], dilation=[1, 1])  # fmt: skip


def padded_then_permuted(p: Formulas) -> SSAValue:
    """An image of torch: channels first, padded, and permuted for the convolution."""
    image = p.argument(2, 3, 5, 5)
    padded = p.make.emit("pad", [image], TensorType(f32, [2, 3, 7, 7]),
                         padding=[0, 0, 0, 0, 1, 1, 1, 1], value=0.0)  # fmt: skip
    operands = [p.make.permute(padded, [0, 2, 3, 1]), p.weight(4, 3, 3, 3), None]
    return p.make.emit("conv2d", operands, TensorType(f32, [2, 5, 5, 4]), padding=[0, 0, 0, 0],
                       stride=[1, 1], dilation=[1, 1])  # fmt: skip


def spelled_batch_norm(p: Formulas) -> SSAValue:
    centered = p.b("subtract", convolved(p), p.weight(1, 1, 1, 4))
    factor = p.u("rsqrt", p.n("add", p.u("exp", p.weight(1, 1, 1, 4)), 1e-5))
    scaled = p.b("multiply", centered, p.b("multiply", factor, p.weight(1, 1, 1, 4)))
    return p.b("add", scaled, p.weight(1, 1, 1, 4))


PRODUCTS: dict[str, tuple[Build, list[str]]] = {
    "bias of heads": (
        lambda p: p.b("add", p.make.reshape(product(p, 4, 8), [4, 2, 3]), p.weight(2, 3)),
        ["reshape", "linear", "reshape"],
    ),
    "bias of one head for all": (
        lambda p: p.b("add", p.make.reshape(product(p, 4, 8), [4, 2, 3]), p.weight(3)),
        ["matmul", "reshape", "add"],
    ),
    "bias with a batch": (
        lambda p: p.b("add", product(p, 4, 8), p.weight(1, 1, 6)),
        ["reshape", "linear", "reshape"],
    ),
    "bias after a residual": (
        lambda p: p.b("add", p.b("add", p.argument(4, 6), product(p, 4, 8)), p.weight(6)),
        ["linear", "add"],
    ),
    "two residuals": (
        lambda p: p.b("add", p.b("add", p.argument(4, 6), product(p, 4, 8)), p.argument(6)),
        ["matmul", "add", "add"],
    ),
    "heads without their batch": (
        lambda p: p.n("div", squeezed(p), 3.0),
        ["neg", "exp", "matmul", "div"],
    ),
    "rows of one batch": (lambda p: through_rows(p, 1, 4), ["matmul", "reshape"]),
    "rows of batches": (lambda p: through_rows(p, 2, 4), ["reshape", "matmul", "reshape"]),
    "heads in order": (lambda p: batched(p, [0, 2, 3, 1]), ["permute", "matmul"]),
    "product in order": (
        lambda p: batched(p, [0, 1, 2, 3], [0, 3, 1, 2]),
        ["matmul", "permute"],
    ),
    "product exchanged only": (lambda p: batched(p, [0, 1, 2, 3], [0, 1, 3, 2]), ["matmul"]),
    "product of heads": (
        lambda p: batched(p, [0, 2, 1, 3], [0, 2, 1, 3]),
        ["permute", "matmul", "permute"],
    ),
    "padding before a permute": (padded_then_permuted, ["permute", "conv2d"]),
    "convolution less a number": (
        lambda p: p.b("subtract", convolved(p), p.weight(1, 1, 1, 4)),
        ["neg", "conv2d"],
    ),
    "a number less a convolution": (
        lambda p: p.b("subtract", p.weight(1, 1, 1, 4), convolved(p)),
        ["conv2d", "subtract"],
    ),
}


@pytest.mark.parametrize("case", PRODUCTS)
def test_products(case: str) -> None:
    fused(*PRODUCTS[case])


def test_permutations_that_are_left_are_those_of_heads() -> None:
    result = fused(lambda p: batched(p, [0, 2, 3, 1]), None)
    assert result.op("permute").parameter("permutation") == [0, 2, 1, 3]
    assert result.op("matmul").parameter("transpose_b") is True


def test_a_batch_norm_in_single_ops_goes_into_the_convolution() -> None:
    result = fused(spelled_batch_norm, None)
    assert result.names[-1] == "conv2d"
    assert result.op("conv2d").optional_operand("bias") is not None


# Attention


def causal(p: Formulas, size: int, strict: bool = False) -> SSAValue:
    options = {"start": 0, "end": size, "step": 1}
    shape = TensorType(f32, [size, size])
    rows, columns = (
        p.make.emit("arange", [], shape, arange_dimension=dim, **options) for dim in (0, 1)
    )
    return p.b("gt" if strict else "ge", rows, columns)


def attention(p: Formulas, mask: str, number: float = -3e38, scale_first: bool = False) -> SSAValue:
    """As jax.numpy and flax write it: scores that are chosen by a condition."""
    make = p.make
    q, k, v = (p.argument(2, 16, 4, 32, element=bf16) for _ in range(3))
    if scale_first:
        q = p.n("div", q, 4.0)
    q = make.permute(q, [0, 2, 1, 3])
    k, v = make.permute(k, [0, 2, 3, 1]), make.permute(v, [0, 2, 3, 1])
    scores = make.emit("matmul", [q, k], TensorType(bf16, [2, 4, 16, 16]))
    if not scale_first:
        scores = p.n("multiply", scores, 0.25)
    seen = p.argument(2, 1, 1, 16, element=bf16)
    hidden = make.full([2, 4, 16, 16], number, bf16)
    if mask.startswith("around"):
        places = make.emit("arange", [], TensorType(i32, [16]), start=0, end=16, step=1,
                           arange_dimension=0)  # fmt: skip
        rows, columns = make.reshape(places, [1, 1, 16, 1]), make.reshape(places, [1, 1, 1, 16])
        difference = make.broadcasting("subtract", rows, columns)
        if mask == "around, unevenly":
            difference = p.n("add", difference, 1)
        condition = p.n("lt" if mask == "around, strictly" else "le", p.u("abs", difference), 3)
    elif mask.startswith("causal"):
        condition = causal(p, 16, strict=mask == "causal, strictly")
        condition = make.reshape(make.typecast(condition, bf16), [1, 1, 16, 16])
    else:
        condition = p.n("gt", seen, 0.0)
    choice = [hidden, scores] if mask == "padding, inverted" else [scores, hidden]
    scores = make.emit("where", [condition, *choice], scores.type)
    weights = make.like("softmax", scores, dimension=3)
    result = make.emit("matmul", [v, make.permute(weights, [0, 1, 3, 2])],
                       TensorType(bf16, [2, 4, 32, 16]))  # fmt: skip
    return make.reshape(make.permute(result, [0, 3, 1, 2]), [2, 16, 128])


@pytest.mark.parametrize("scale_first", [False, True])
@pytest.mark.parametrize("mask", ["causal", "padding", "padding, inverted"])
def test_attention_by_choice(mask: str, scale_first: bool) -> None:
    result = fused(lambda p: attention(p, mask, scale_first=scale_first), None)
    op = result.op("scaled_dot_product_attention")
    assert op.parameter("scale") == pytest.approx(0.25)
    assert op.parameter("is_causal") is (mask == "causal")
    assert (op.optional_operand("attention_mask") is None) == (mask == "causal")
    assert "matmul" not in result.names
    assert "concatenate_heads" in result.names
    assert element_of(op.operand("query").type) == bf16


@pytest.mark.parametrize(("mask", "window"), [("around", 7), ("around, strictly", 5)])
def test_keys_around_each_query(mask: str, window: int) -> None:
    op = fused(lambda p: attention(p, mask), None).op("scaled_dot_product_attention")
    assert op.parameter("is_causal") is False
    assert op.parameter("sliding_window_size") == window
    assert op.optional_operand("attention_mask") is None


@pytest.mark.parametrize("mask", ["causal, strictly", "around, unevenly"])
def test_another_triangle_is_a_mask(mask: str) -> None:
    op = fused(lambda p: attention(p, mask), None).op("scaled_dot_product_attention")
    assert op.parameter("is_causal") is False
    assert op.optional_operand("attention_mask") is not None


def test_a_number_that_hides_nothing_stays() -> None:
    names = fused(lambda p: attention(p, "padding", number=-1.0), None).names
    assert "scaled_dot_product_attention" not in names
