"""Mixture of experts: which experts a token goes to, and picking what they made of it.

How tokens travel to experts is in `experts_travel.py`, which of their experts devices have in
`expert_remap.py`, what experts compute in `moe_compute.py`.
Ops whose operands are buffers inside a fused kernel of the library are refused.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects.builtin import TensorType, i1
from xdsl.ir import SSAValue

from ttcodegen.dialects.core.datatypes import element_of, shape_of, si32
from ttcodegen.dialects.operations.attribute_kinds import INTEGER
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.foundation.lazy_numpy import Array, np
from ttcodegen.ops.core.builder import OpBuilder
from ttcodegen.ops.core.definition import (
    Call,
    OperandSpec,
    TTIRDefinition,
    attribute,
    operand,
    register,
)
from ttcodegen.ops.core.index_normalization import places
from ttcodegen.ops.core.shape_checks import expect_rank, expect_shape, require
from ttcodegen.ops.reduction.sorting import order


def expert_operand(name: str, count: Callable[[CatalogueOp], int]) -> OperandSpec:
    """An operand that names experts."""
    return operand(name, input_kind="index", places=count)


def mapping_operand() -> OperandSpec:
    """An operand (..., experts, devices) with a one for the device of each expert."""
    return operand("expert_mapping", input_kind="expert_mapping")


def chosen_experts(builder: OpBuilder, indices: SSAValue, count: int) -> SSAValue:
    """(tokens, k, experts), true where the expert is the one that the index names; of indices
    (tokens, k)."""
    tokens, k = shape_of(indices.type)
    indices = builder.reshape(builder.typecast(indices, si32), (tokens, k, 1))
    line = TensorType(si32, [1, 1, count])
    experts = builder.emit("arange", [], line, start=0, end=count, arange_dimension=2)
    return builder.broadcasting("eq", indices, experts, element=i1)


def picked(made: Array, metadata: Array) -> Array:
    """(k, tokens, hidden) of what experts made of all tokens (experts, tokens, hidden), for experts
    (..., k)."""
    named = places(metadata, len(made)).reshape(-1, metadata.shape[-1])
    return made[named.T, np.arange(len(named))[np.newaxis]]


def picked_results(
    builder: OpBuilder, made: SSAValue, named: SSAValue, here: SSAValue | None = None
) -> SSAValue:
    """Selects expert outputs by matmul with the one-hot experts (tokens, k).

    `here` (all experts, experts) is the one-hot matrix of the experts local to this device.
    """
    experts, tokens, hidden = shape_of(made.type)
    element = element_of(made.type)
    count = experts if here is None else shape_of(here.type)[0]
    chosen = builder.typecast(chosen_experts(builder, named, count), element)
    k = shape_of(named.type)[1]
    if here is not None:
        local = TensorType(element, [tokens, k, experts])
        chosen = builder.emit("matmul", [chosen, builder.typecast(here, element)], local)
    found = builder.emit(
        "matmul",
        [chosen, builder.permute(made, [1, 0, 2])],
        TensorType(element, [tokens, k, hidden]),
    )
    return builder.permute(found, [1, 0, 2])


# topk_router_gpt


def _verify_router(op: CatalogueOp) -> None:
    """(tokens, hidden) times (hidden, experts) plus (tokens, experts); results are (tokens, k)."""
    expect_rank(op, 2, "input", "weight", "bias")
    (tokens, hidden), experts = op.shape("input"), op.parameter("num_experts")
    for name, expected in (("weight", (hidden, experts)), ("bias", (tokens, experts))):
        require(op, op.shape(name) == expected, f"{name} of shape {expected}", op.shape(name))
    k = op.parameter("k")
    require(op, 0 < k <= experts, f"k from 1 to {experts}, the number of experts", k)
    expect_shape(op, (tokens, k))
    expect_shape(op, (tokens, k), 1)


def _router(call: Call) -> list[Array]:
    """The greatest scores decide, and share a softmax among them. Scores are of the element type of
    the input, which decides where they are equal."""
    dtype = np.dtype(call.operand_dtypes["input"][0])

    def held(array: Array) -> Array:
        return array.astype(dtype).astype(array.dtype)

    scores = held(np.matmul(call.array("input"), held(call.array("weight"))))
    scores = held(scores + held(call.array("bias")))
    indices = order(scores, 1, True)[:, : call["k"]]
    scores = np.take_along_axis(scores, indices, 1)
    exponentials = np.exp(scores - scores.max(axis=1, keepdims=True))
    return [indices, exponentials / exponentials.sum(axis=1, keepdims=True)]


def _decompose_router(builder: OpBuilder, op: CatalogueOp) -> Sequence[SSAValue]:
    tokens, experts, k = op.shape("input")[0], op.parameter("num_experts"), op.parameter("k")
    indices, weights = op.results
    source = builder.operand(op, "input")
    element = element_of(source.type)
    weight, bias = (
        builder.typecast(builder.operand(op, name), element) for name in ("weight", "bias")
    )
    scores = builder.emit("matmul", [source, weight], TensorType(element, [tokens, experts]))
    scores = builder.like("add", scores, bias)
    selected = builder.emit_op(
        "topk",
        [scores],
        [TensorType(element, [tokens, k]), indices.type],
        k=k,
        dim=1,
        largest=True,
        sorted=True,
    )
    shares = builder.like("softmax", selected.results[0], dimension=1)
    return [selected.results[1], builder.typecast(shares, element_of(weights.type))]


def _router_inner(op: CatalogueOp) -> int:
    return op.shape("input")[1]


register(
    TTIRDefinition(
        "ttir.topk_router_gpt",
        (
            operand("input", fan_in=_router_inner),
            operand("weight", input_kind="weight", fan_in=_router_inner),
            operand("bias"),
        ),
        (attribute("k", INTEGER), attribute("num_experts", INTEGER)),
        results=2,
        verify=_verify_router,
        numpy=_router,
        decompose=_decompose_router,
    )
)
