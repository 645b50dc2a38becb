"""Attention of training loops: the forward pass, which saves intermediates, and its gradient.

The reference system calls kernels of tt-train (`ttml::metal::sdpa_fw`, `sdpa_bw`), which the ttnn
library does not export. They are decomposed to matmuls, exponentials and sums; a forward pass
without intermediates is the library's attention.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from xdsl.dialects.builtin import TensorType, i1
from xdsl.ir import Attribute, SSAValue
from xdsl.utils.exceptions import VerifyException

from ttcodegen.dialects.core.datatypes import bf16, element_of, f32, shape_of
from ttcodegen.dialects.operations.attribute_kinds import BOOLEAN, ENUMERATOR, NUMBER
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.foundation.lazy_numpy import Array, np
from ttcodegen.ops.attention.reference import default_scale
from ttcodegen.ops.core.builder import OpBuilder
from ttcodegen.ops.core.definition import (
    Call,
    TTIRDefinition,
    attribute,
    operand,
    optional,
    register,
)
from ttcodegen.ops.core.dimensions import expect_shape, require
from ttcodegen.ops.core.traits import Trait

Shape = tuple[int, ...]

KEPT_WIDTH = 32
"""Columns of the saved log-sum-exp, which is repeated over one tile."""
MASKS = ("none", "causal", "arbitrary")
_MASK = "attention_mask"


def in_four_dimensions(shape: Sequence[int]) -> Shape:
    """Returns (batch, heads, rows, size) of a shape of rank 2 or more.

    Unless the rank is 4, all leading dimensions are heads.
    """
    return tuple(shape) if len(shape) == 4 else (1, prod(shape[:-2]), *shape[-2:])


@dataclass(frozen=True)
class _Sizes:
    """Sizes derived from the shapes of query, key and value."""

    batch: int
    heads: int
    groups: int
    """Number of key/value heads."""
    rows: int
    """Number of queries and of keys."""
    size: int
    width: int
    """Head size of values and output."""

    @staticmethod
    def of(query: Sequence[int], key: Sequence[int], value: Sequence[int]) -> _Sizes:
        q, k, v = (in_four_dimensions(shape) for shape in (query, key, value))
        return _Sizes(q[0], q[1], k[1], q[2], q[3], v[3])

    @property
    def query(self) -> Shape:
        return (self.batch, self.heads, self.rows, self.size)

    @property
    def output(self) -> Shape:
        return (self.batch, self.heads, self.rows, self.width)

    @property
    def scores(self) -> Shape:
        return (self.batch, self.heads, self.rows, self.rows)

    @property
    def kept(self) -> Shape:
        return (self.batch, self.heads, self.rows, KEPT_WIDTH)

    def grouped(self, columns: int) -> Shape:
        """Shape with the query heads that share key heads merged into the rows."""
        return (self.batch, self.groups, self.heads // self.groups * self.rows, columns)


def _sizes(op: CatalogueOp) -> _Sizes:
    return _Sizes.of(op.shape("query"), op.shape("key"), op.shape("value"))


# Verification


def _expect_as(op: CatalogueOp, name: str, expected: Shape) -> None:
    found = op.shape(name)
    fits = len(found) > 1 and in_four_dimensions(found) == expected
    require(op, fits, f"{name} of shape {expected}", found)


def _verify_operands(op: CatalogueOp) -> _Sizes:
    """Query (batch, heads, rows, head size); keys and values with as many rows and heads that
    divide those of the query. A mask of rows x rows is given exactly for mask_type arbitrary.
    """
    for name in ("query", "key", "value"):
        require(op, len(op.shape(name)) > 1, f"{name} of rank 2 or more", op.shape(name))
    sizes = _sizes(op)
    groups = sizes.groups
    fits = groups > 0 and sizes.heads % groups == 0
    require(op, fits, f"heads of keys that divide the query's {sizes.heads}", groups)
    _expect_as(op, "key", (sizes.batch, groups, sizes.rows, sizes.size))
    _expect_as(op, "value", (sizes.batch, groups, sizes.rows, sizes.width))
    kind, mask = op.parameter("mask_type"), op.optional_operand(_MASK)
    require(op, kind in MASKS, f"mask_type to be one of {', '.join(MASKS)}", kind)
    if (kind == "arbitrary") != (mask is not None):
        raise VerifyException(
            f"{op.name}: an attention_mask is there if, and only if, mask_type is arbitrary; "
            f"found {kind} {'with' if mask is not None else 'without'} one"
        )
    if mask is not None:
        _expect_as(op, _MASK, (1, 1, sizes.rows, sizes.rows))
    dropout = op.parameter("dropout_probability")
    require(op, dropout == 0, "a dropout_probability of 0, as the reference does", dropout)
    return sizes


def _expect_result(op: CatalogueOp, index: int, expected: Shape) -> None:
    found = shape_of(op.results[index].type)
    if len(found) < 2 or in_four_dimensions(found) != expected:
        expect_shape(op, expected, index)


def _verify_forward(op: CatalogueOp) -> None:
    """The output has the rows of the query and the size of a value; intermediates have width 32."""
    sizes = _verify_operands(op)
    wanted = 2 if op.parameter("return_intermediates") else 1
    if len(op.results) != wanted:
        raise VerifyException(
            f"{op.name} has {wanted} results with return_intermediates = "
            f"{str(wanted == 2).lower()}, found {len(op.results)}"
        )
    _expect_result(op, 0, sizes.output)
    if wanted == 2:
        _expect_result(op, 1, sizes.kept)


def _verify_backward(op: CatalogueOp) -> None:
    """Gradients have the shapes of their operands."""
    sizes = _verify_operands(op)
    _expect_as(op, "grad_output", sizes.output)
    _expect_as(op, "attn_output", sizes.output)
    _expect_as(op, "intermediates", sizes.kept)
    for index, name in enumerate(("query", "key", "value")):
        _expect_result(op, index, in_four_dimensions(op.shape(name)))


# Numpy semantics


def _scores_of(call: Call, sizes: _Sizes) -> Array:
    """Returns the scaled and masked attention scores of all heads."""
    query = call.array("query").reshape(sizes.grouped(sizes.size))
    key = call.array("key").reshape(sizes.batch, sizes.groups, sizes.rows, sizes.size)
    scores = np.matmul(query, np.swapaxes(key, -1, -2)) * default_scale(sizes.size)
    scores = scores.reshape(sizes.scores)
    if call["mask_type"] == "causal":
        hidden = np.triu(np.ones((sizes.rows, sizes.rows), bool), 1)
        scores = np.where(hidden, -np.inf, scores).astype(scores.dtype)
    mask = call.optional(_MASK)
    return scores if mask is None else scores + mask.reshape(1, 1, sizes.rows, sizes.rows)


def _sizes_of(call: Call) -> _Sizes:
    return _Sizes.of(*(call.array(name).shape for name in ("query", "key", "value")))


def _sdpa_fw(call: Call) -> list[Array]:
    sizes = _sizes_of(call)
    scores = _scores_of(call, sizes)
    top = scores.max(axis=-1, keepdims=True)
    exponentials = np.exp(scores - top)
    total = exponentials.sum(axis=-1, keepdims=True)
    weights = (exponentials / total).reshape(sizes.grouped(sizes.rows))
    value = call.array("value").reshape(sizes.batch, sizes.groups, sizes.rows, sizes.width)
    kept = np.broadcast_to(np.log(total) + top, sizes.kept)
    results = (np.matmul(weights, value), kept)
    return [x.reshape(info.shape) for x, info in zip(results, call.results, strict=False)]


def _sdpa_bw(call: Call) -> list[Array]:
    sizes = _sizes_of(call)
    shape = (sizes.batch, sizes.groups, sizes.rows)
    query = call.array("query").reshape(sizes.grouped(sizes.size))
    key = call.array("key").reshape(*shape, sizes.size)
    value = call.array("value").reshape(*shape, sizes.width)
    arrived = call.array("grad_output").reshape(sizes.grouped(sizes.width))
    given = call.array("attn_output").reshape(sizes.grouped(sizes.width))
    kept = call.array("intermediates").reshape(sizes.kept)[..., :1]
    weights = np.exp(_scores_of(call, sizes) - kept).reshape(sizes.grouped(sizes.rows))
    slopes = np.matmul(arrived, np.swapaxes(value, -1, -2))
    slopes = slopes - (arrived * given).sum(axis=-1, keepdims=True)
    slopes = weights * slopes * default_scale(sizes.size)
    results = (
        np.matmul(slopes, key),
        np.matmul(np.swapaxes(slopes, -1, -2), query),
        np.matmul(np.swapaxes(weights, -1, -2), arrived),
    )
    return [x.reshape(info.shape) for x, info in zip(results, call.results, strict=True)]


# Decomposition


def _product(
    builder: OpBuilder, a: SSAValue, b: SSAValue, element: Attribute, **transposes: bool
) -> SSAValue:
    """Emits a batched matmul."""
    left, right = shape_of(a.type), shape_of(b.type)
    rows = left[-1] if transposes.get("transpose_a") else left[-2]
    columns = right[-2] if transposes.get("transpose_b") else right[-1]
    result = TensorType(element, [*left[:-2], rows, columns])
    return builder.emit("matmul", [a, b], result, **transposes)


def _scores(
    builder: OpBuilder, op: CatalogueOp, sizes: _Sizes, query: SSAValue, key: SSAValue
) -> SSAValue:
    """Attention scores of `_scores_of` in f32."""
    scores = _product(builder, query, key, f32, transpose_b=True)
    scores = builder.reshape(scores, sizes.scores)
    factor = builder.full([1] * 4, default_scale(sizes.size), f32)
    scores = builder.broadcasting("multiply", scores, factor)
    mask = builder.optional(op, _MASK)
    if mask is not None:
        mask = builder.reshape(builder.typecast(mask, f32), (1, 1, sizes.rows, sizes.rows))
        scores = builder.broadcasting("add", scores, mask)
    if op.parameter("mask_type") == "causal":
        rows, columns = (_positions(builder, sizes.rows, axis) for axis in (2, 3))
        visible = builder.broadcasting("ge", rows, columns, element=i1)
        hidden = builder.full([1] * 4, float("-inf"), f32)
        scores = builder.broadcasting("where", visible, scores, hidden, element=f32)
    return scores


def _positions(builder: OpBuilder, count: int, axis: int) -> SSAValue:
    """Returns 0, 1, ... along one axis of a tensor of rank 4."""
    line = TensorType(f32, [count if dim == axis else 1 for dim in range(4)])
    return builder.emit("arange", [], line, start=0, end=count, arange_dimension=axis)


def _decompose_forward(builder: OpBuilder, op: CatalogueOp) -> Sequence[SSAValue]:
    sizes = _sizes(op)
    shape = (sizes.batch, sizes.groups, sizes.rows)
    element = element_of(op.operand("query").type)
    query, key, value = (
        builder.typecast(builder.operand(op, name), element) for name in ("query", "key", "value")
    )
    key, value = (
        builder.reshape(key, (*shape, sizes.size)),
        builder.reshape(value, (*shape, sizes.width)),
    )
    if len(op.results) == 1 and element == bf16 and sizes.width == sizes.size:
        return [_in_library(builder, op, sizes, (query, key, value))]
    query = builder.reshape(query, sizes.grouped(sizes.size))
    scores = _scores(builder, op, sizes, query, key)
    top = builder.reduce("max", scores, [3])
    exponentials = builder.like("exp", builder.broadcasting("subtract", scores, top))
    total = builder.reduce("sum", exponentials, [3])
    weights = builder.typecast(builder.broadcasting("div", exponentials, total), element)
    weights = builder.reshape(weights, sizes.grouped(sizes.rows))
    output = _product(builder, weights, value, element)
    results = [output]
    if len(op.results) == 2:
        kept = builder.broadcasting("add", builder.like("log", total), top)
        results.append(builder.repeat(kept, sizes.kept))
    return _as_results(builder, op, results)


def _as_results(
    builder: OpBuilder, op: CatalogueOp, values: Sequence[SSAValue]
) -> Sequence[SSAValue]:
    """Converts values to the shapes and element types of the op's results."""
    return [
        builder.typecast(builder.reshape(value, shape_of(result.type)), element_of(result.type))
        for value, result in zip(values, op.results, strict=True)
    ]


def _in_library(
    builder: OpBuilder, op: CatalogueOp, sizes: _Sizes, operands: Sequence[SSAValue]
) -> SSAValue:
    """Emits the attention op that the library has a function for."""
    query, key, value = operands
    mask = builder.optional(op, _MASK)
    if mask is not None:
        mask = builder.reshape(builder.typecast(mask, bf16), (1, 1, sizes.rows, sizes.rows))
    output = builder.emit(
        "scaled_dot_product_attention",
        [builder.reshape(query, sizes.query), key, value, mask, None],
        TensorType(bf16, sizes.query),
        is_causal=op.parameter("mask_type") == "causal",
    )
    return _as_results(builder, op, [output])[0]


def _decompose_backward(builder: OpBuilder, op: CatalogueOp) -> Sequence[SSAValue]:
    sizes = _sizes(op)
    shape = (sizes.batch, sizes.groups, sizes.rows)
    element = element_of(op.operand("query").type)

    def shaped(name: str, wanted: Shape) -> SSAValue:
        return builder.reshape(builder.typecast(builder.operand(op, name), element), wanted)

    query = shaped("query", sizes.grouped(sizes.size))
    key, value = shaped("key", (*shape, sizes.size)), shaped("value", (*shape, sizes.width))
    arrived = shaped("grad_output", sizes.grouped(sizes.width))
    kept = builder.typecast(builder.operand(op, "intermediates"), f32)
    kept = builder.slice_dim(builder.reshape(kept, sizes.kept), 3, 0, 1)
    scores = _scores(builder, op, sizes, query, key)
    weights = builder.like("exp", builder.broadcasting("subtract", scores, kept))
    weights = builder.reshape(weights, sizes.grouped(sizes.rows))
    given = builder.typecast(shaped("attn_output", sizes.grouped(sizes.width)), f32)
    along = builder.like("multiply", builder.typecast(arrived, f32), given)
    along = builder.reduce("sum", along, [3])
    slopes = _product(builder, arrived, value, f32, transpose_b=True)
    slopes = builder.broadcasting("subtract", slopes, along)
    slopes = builder.like("multiply", weights, slopes)
    factor = builder.full([1] * 4, default_scale(sizes.size), f32)
    slopes = builder.typecast(builder.broadcasting("multiply", slopes, factor), element)
    weights = builder.typecast(weights, element)
    # The matmuls sum over all query heads that share a key head.
    return _as_results(
        builder,
        op,
        [
            _product(builder, slopes, key, element),
            _product(builder, slopes, query, element, transpose_a=True),
            _product(builder, weights, arrived, element, transpose_a=True),
        ],
    )


_HIDING = optional(_MASK, input_kind="attention_mask")
_DROPOUT = attribute("dropout_probability", NUMBER, 0.0)

register(
    TTIRDefinition(
        "ttir.sdpa_fw",
        (operand("query"), operand("key"), operand("value"), _HIDING),
        (
            attribute("mask_type", ENUMERATOR, "causal"),
            _DROPOUT,
            attribute("return_intermediates", BOOLEAN, False),
        ),
        results=-1,
        verify=_verify_forward,
        numpy=_sdpa_fw,
        decompose=_decompose_forward,
        traits=Trait.SKIPS_HIDDEN,
    )
)

register(
    TTIRDefinition(
        "ttir.sdpa_bw",
        (
            operand("grad_output"),
            operand("attn_output"),
            operand("query"),
            operand("key"),
            operand("value"),
            operand("intermediates"),
            _HIDING,
        ),
        (attribute("mask_type", ENUMERATOR, "arbitrary"), _DROPOUT),
        results=3,
        verify=_verify_backward,
        numpy=_sdpa_bw,
        decompose=_decompose_backward,
        traits=Trait.SKIPS_HIDDEN,
    )
)
