"""Mixture of experts: which of the experts that a device has tokens go to."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import cast

from xdsl.dialects.builtin import TensorType, i1
from xdsl.ir import SSAValue

from ttcodegen.dialects.core.datatypes import element_of, f32, shape_of
from ttcodegen.dialects.operations.attribute_kinds import INTEGER
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.dialects.ttcore.mesh import declared_mesh
from ttcodegen.foundation.lazy_numpy import Array, np
from ttcodegen.ops.collectives.groups import MESH_SHAPE
from ttcodegen.ops.core.builder import OpBuilder
from ttcodegen.ops.core.definition import Call, TTIRDefinition, attribute, operand, register
from ttcodegen.ops.core.index_normalization import places
from ttcodegen.ops.core.shape_checks import expect_rank, expect_shape, require
from ttcodegen.ops.moe.expert_placement import experts_here, experts_of_device, needed_devices
from ttcodegen.ops.moe.routing import chosen_experts, expert_operand, mapping_operand


def _experts_remapped(op: CatalogueOp) -> int:
    return op.shape("topk_tensor")[3]


def _verify_remap(op: CatalogueOp) -> None:
    """Scores (1, batch, sequence, experts), experts of tokens (1, batch, sequence, k), the device
    of each expert (1, 1, experts, devices)."""
    expect_rank(op, 4, "topk_tensor", "expert_mapping", "expert_metadata")
    first, batch, sequence, experts = op.shape("topk_tensor")
    require(op, first == 1, "the scores that one device has", op.shape("topk_tensor"))
    mapping, metadata = op.shape("expert_mapping"), op.shape("expert_metadata")
    require(op, mapping[2] == experts, f"expert_mapping of {experts} experts", mapping)
    tokens = (batch, sequence)
    require(op, metadata[:3] == (1, *tokens), f"expert_metadata of {tokens} tokens", metadata)
    size = op.parameter("reduction_size")
    require(op, size > 0, "a reduction_size of 1 or more", size)
    devices = mapping[3]
    require(op, devices > 0 and experts % devices == 0, f"devices that divide {experts}", devices)
    expect_shape(op, (1, batch, sequence, experts // devices))
    expect_shape(op, (1, 1, -(-batch * sequence // size), experts // devices), 1)


def _remap(call: Call) -> list[Array]:
    """The scores of the experts that a token goes to; and, for so many tokens each, which experts
    any of them goes to."""
    scores = call.array("topk_tensor")
    experts, size = scores.shape[3], call["reduction_size"]
    named = places(call.array("expert_metadata"), experts)
    line = cast("Array", np.arange(experts))
    hits = np.equal(named.reshape(-1, named.shape[3], 1), line)
    chosen: Array = np.max(hits, axis=1)
    kept = np.where(chosen.reshape(scores.shape), scores, np.zeros((), scores.dtype))
    chosen = np.pad(chosen, ((0, -len(chosen) % size), (0, 0)))
    reduced: Array = np.max(chosen.reshape(1, 1, -1, size, experts), axis=3)
    return [kept, reduced]


def _remap_on_chips(calls: Sequence[Call]) -> list[list[Array]]:
    """As on one device, of the experts that each device has; zeros where it has fewer."""
    found: list[list[Array]] = []
    for chip, call in enumerate(calls):
        mapping, of_all = call.array("expert_mapping"), _remap(call)
        if mapping.shape[3] == 1:
            found.append(of_all)
            continue
        here = experts_of_device(mapping, chip)
        missing = call.results[0].shape[3] - len(here)
        edges = ((0, 0), (0, 0), (0, 0), (0, max(missing, 0)))
        kept = here[: call.results[0].shape[3]]
        found.append([np.pad(each[..., kept], edges) for each in of_all])
    return found


def _decompose_remap(builder: OpBuilder, op: CatalogueOp) -> Sequence[SSAValue]:
    """The library's function divides all but the first group of tokens of a core wrongly: it counts
    one less in them (its writer kernel in tt-metal 0.70.1)."""
    scores = builder.operand(op, "topk_tensor")
    shape = shape_of(scores.type)
    tokens, experts, size = shape[1] * shape[2], shape[3], op.parameter("reduction_size")
    named = builder.operand(op, "expert_metadata")
    named = builder.reshape(named, (tokens, shape_of(named.type)[3]))
    chosen = builder.typecast(chosen_experts(builder, named, experts), f32)
    chosen = builder.reduce("max", chosen, [1])
    hit = builder.typecast(builder.reshape(chosen, shape), i1)
    nothing = builder.full([1] * 4, 0.0, element_of(scores.type))
    kept = builder.broadcasting("where", hit, scores, nothing, element=element_of(scores.type))
    groups = -(-tokens // size)
    chosen = builder.pad(builder.reshape(chosen, (tokens, experts)), [(0, -tokens % size), (0, 0)])
    chosen = builder.reduce("max", builder.reshape(chosen, (groups, size, experts)), [1])
    chosen = builder.reshape(chosen, (groups, experts))
    kept = builder.reshape(kept, (tokens, experts))
    if op.shape("expert_mapping")[3] > 1:
        local = op.result_shape[3]
        mapping = builder.operand(op, "expert_mapping")
        here = experts_here(builder, declared_mesh(op), mapping, local, None)

        def of_device(value: SSAValue) -> SSAValue:
            """The columns of the experts that a device has: products with ones and zeros."""
            element = element_of(value.type)
            result = TensorType(element, [shape_of(value.type)[0], local])
            return builder.emit("matmul", [value, builder.typecast(here, element)], result)

        kept, chosen = of_device(kept), of_device(chosen)
    return [
        builder.typecast(builder.reshape(value, shape_of(result.type)), element_of(result.type))
        for value, result in zip((kept, chosen), op.results, strict=True)
    ]


def _other_devices(op: CatalogueOp) -> str | None:
    """Returns why experts cannot be placed on the mesh, or None if they can."""
    devices, mesh = op.shape("expert_mapping")[3], declared_mesh(op)
    if devices in (1, prod(mesh)):
        return None
    return (
        f"its expert_mapping names {devices} devices, and the mesh of {mesh[0]}x{mesh[1]} has "
        f"{prod(mesh)}"
    )


register(
    TTIRDefinition(
        "ttir.moe_expert_token_remap",
        (
            operand("topk_tensor"),
            mapping_operand(),
            expert_operand("expert_metadata", _experts_remapped),
        ),
        (attribute("reduction_size", INTEGER), MESH_SHAPE),
        results=2,
        verify=_verify_remap,
        numpy=_remap,
        chips=_remap_on_chips,
        decompose=_decompose_remap,
        refused_form=_other_devices,
        needed_chips=needed_devices(1, -1),
    )
)
