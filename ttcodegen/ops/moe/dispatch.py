"""Mixture of experts: all-to-all dispatch and combine of tokens."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from xdsl.dialects.builtin import bf16
from xdsl.ir import SSAValue
from xdsl.utils.exceptions import VerifyException

from ttcodegen.dialects.core.datatypes import DataType, element_of, shape_of, tensor_type, ui16
from ttcodegen.dialects.operations.attribute_kinds import INTEGER
from ttcodegen.dialects.operations.operation import CatalogueOp, OperandSpec
from ttcodegen.dialects.ttcore.device import declared_mesh, groups_along
from ttcodegen.foundation.lazy_numpy import Array, np
from ttcodegen.ops.collectives.reference import MESH_SHAPE, mesh_of
from ttcodegen.ops.collectives.ttnn_calls import CCL
from ttcodegen.ops.core.builder import OpBuilder
from ttcodegen.ops.core.calls import (
    CppCalls,
    Text,
    attribute_,
    bind_elements,
    cpp_call,
    cpp_text,
    nullopt,
    operand_,
)
from ttcodegen.ops.core.definition import (
    Call,
    Layout,
    ResultRule,
    TTIRDefinition,
    TTNNDefinition,
    attribute,
    operand,
    register,
)
from ttcodegen.ops.core.dimensions import expect_rank, require
from ttcodegen.ops.core.traits import CallKind, Trait
from ttcodegen.ops.moe.routing import (
    expert_operand,
    experts_here,
    gathered_tokens,
    homes_of_experts,
    joined_tokens,
    mapping_operand,
    needed_devices,
    of_homes,
    other_devices,
    own_tokens,
    picked,
    picked_results,
    token_dim,
    tokens_of_device,
)
from ttcodegen.ops.reduction.sorting import MOST_UINT16

# Dispatch sends tokens to the devices of their experts, combine returns the experts' outputs.
#
# On one device both only move elements. On a mesh each device gets the tokens of all devices.


def _expect_volume(op: CatalogueOp, index: int, like: Sequence[int]) -> None:
    """Raises VerifyException unless a result has as many elements as a tensor of that shape."""
    found = shape_of(op.results[index].type)
    if prod(found) != prod(like):
        raise VerifyException(
            f"{op.name}: expected a result of as many elements as {tuple(like)}, found {found}"
        )


# Lowering to ttnn calls


def _fits_library_exchange(op: CatalogueOp) -> bool:
    """True if the library can exchange these tokens: bf16, all mesh devices own experts."""
    if op.parameter("num_devices") == 1 or element_of(op.operands[0].type) != bf16:
        return False
    *_, known, owners = op.shape("expert_mapping")
    devices = prod(declared_mesh(op))
    return owners == devices and known % devices == 0 and known <= MOST_UINT16


def _library_mapping(builder: OpBuilder, op: CatalogueOp) -> SSAValue:
    """Returns the expert-to-device mapping in the data type that the library reads."""
    return builder.typecast(builder.operand(op, "expert_mapping"), ui16)


def _between(op: CatalogueOp) -> dict[str, Any]:
    """Returns the attributes that name the devices of the exchange."""
    return {
        "num_devices": op.parameter("num_devices"),
        "cluster_axis": op.parameter("cluster_axis"),
        "mesh_shape": list(declared_mesh(op)),
    }


# all_to_all_dispatch, all_to_all_dispatch_metadata


def _verify_devices(op: CatalogueOp) -> int:
    devices, axis = op.parameter("num_devices"), op.parameter("cluster_axis")
    require(op, devices > 0, "num_devices of 1 or more", devices)
    require(op, axis in (0, 1), "a cluster_axis of 0 or 1", axis)
    return devices


_TRAVELLERS = ("input_tensor", "expert_indices", "expert_scores")


def _dispatched_names(op: CatalogueOp) -> tuple[str, ...]:
    """Returns the dispatched operands, one for each result."""
    scores = ("expert_scores",) if op.name.endswith("metadata") else ()
    return ("input_tensor", "expert_indices", *scores)


def verify_dispatch(op: CatalogueOp) -> None:
    """Tokens, the experts of each and optionally their scores; results hold those of all
    devices.
    """
    names = _dispatched_names(op)
    expect_rank(op, 4, *names, "expert_mapping")
    devices = _verify_devices(op)
    tokens = prod(op.shape("input_tensor")[:3])
    for index, name in enumerate(names):
        shape = op.shape(name)
        require(op, prod(shape[:3]) == tokens, f"{name} of {tokens} tokens", shape)
        found = shape_of(op.results[index].type)
        require(op, found[-1:] == shape[3:], f"a result of {shape[3]} per token", found)
        _expect_volume(op, index, (devices * tokens, shape[3]))


def dispatch(call: Call) -> list[Array]:
    """Reference semantics of dispatch where each device holds all tokens."""
    moved = [call.array(name) for name in _TRAVELLERS if name in call.operands]
    return [x.reshape(info.shape) for x, info in zip(moved, call.results, strict=True)]


def dispatch_on_chips(calls: Sequence[Call]) -> list[list[Array]]:
    """Reference semantics of dispatch: all-gather of tokens along a mesh axis."""
    first = calls[0]
    if first["num_devices"] == 1:
        return [dispatch(call) for call in calls]
    names = [name for name in _TRAVELLERS if name in first.operands]
    found: list[list[Array]] = [[] for _ in calls]
    for group in groups_along(mesh_of(first), first["cluster_axis"]):
        for name, info in zip(names, first.results, strict=True):
            joined = joined_tokens([calls[chip].array(name) for chip in group], info.shape)
            for chip in group:
                found[chip].append(joined)
    return found


def _dispatched_by_library(op: CatalogueOp) -> bool:
    """True if the ttnn call supports the dispatch."""
    # The call with scores leaves its results sharded on given cores.
    return (
        not op.name.endswith("metadata")
        and _fits_library_exchange(op)
        and _own_tokens(op) is not None
    )


def _own_tokens(op: CatalogueOp) -> tuple[int, int] | None:
    devices = op.parameter("num_devices")
    return tokens_of_device(op.shape("input_tensor"), op.result_shape, devices)


def _decompose_dispatch(builder: OpBuilder, op: CatalogueOp) -> Sequence[SSAValue] | None:
    return None if _dispatched_by_library(op) else _dispatch_in_steps(builder, op)


def _lower_dispatch(builder: OpBuilder, op: CatalogueOp) -> Sequence[SSAValue]:
    """Reshapes the tokens to (batch, sequence), over which the library counts the tokens of a
    device.
    """
    devices, hidden = op.parameter("num_devices"), op.shape("input_tensor")[3]
    *_, k = op.shape("expert_indices")
    own = _own_tokens(op)
    assert own is not None
    batch, sequence = own
    tokens = builder.reshape(builder.operand(op, "input_tensor"), (batch, sequence, 1, hidden))
    named = builder.reshape(builder.operand(op, "expert_indices"), (batch, sequence, 1, k))
    made = builder.emit_op(
        "all_to_all_dispatch",
        [tokens, builder.typecast(named, ui16), _library_mapping(builder, op)],
        [
            tensor_type(bf16, (1, devices * batch, sequence, hidden)),
            tensor_type(ui16, (1, devices * batch, sequence, k)),
        ],
        **_between(op),
    )
    return [
        builder.typecast(builder.reshape(value, shape_of(result.type)), element_of(result.type))
        for value, result in zip(made.results, op.results, strict=True)
    ]


def _dispatch_in_steps(builder: OpBuilder, op: CatalogueOp) -> Sequence[SSAValue]:
    values: list[SSAValue] = []
    for name, result in zip(_dispatched_names(op), op.results, strict=True):
        value, shape = builder.operand(op, name), shape_of(result.type)
        if op.parameter("num_devices") > 1:
            value = gathered_tokens(builder, op, value, shape)
        value = builder.reshape(value, shape)
        values.append(builder.typecast(value, element_of(result.type)))
    return values


def _experts_mapped(op: CatalogueOp) -> int:
    """Returns the number of experts of a mapping (1, 1, experts, devices).

    With scores the mapping is transposed.
    """
    return op.shape("expert_mapping")[3 if op.name.endswith("metadata") else 2]


TRAVEL = (
    attribute("num_devices", INTEGER),
    attribute("cluster_axis", INTEGER),
    MESH_SHAPE,
)
COMBINE = (
    *TRAVEL,
    attribute("num_experts_per_tok", INTEGER),
    attribute("output_shard_dim", INTEGER, 2),
)
"""Attributes of the TTIR ops and the calls."""

for _name, _more in (
    ("all_to_all_dispatch", ()),
    ("all_to_all_dispatch_metadata", (operand("expert_scores"),)),
):
    register(
        TTIRDefinition(
            f"ttir.{_name}",
            (
                operand("input_tensor"),
                expert_operand("expert_indices", _experts_mapped),
                *_more,
                # With scores the mapping holds device numbers.
                operand("expert_mapping") if _more else mapping_operand(),
            ),
            TRAVEL,
            results=2 + len(_more),
            verify=verify_dispatch,
            numpy=dispatch,
            chips=dispatch_on_chips,
            decompose=_decompose_dispatch,
            primitives=_dispatch_in_steps,
            lower=_lower_dispatch,
            refused_form=other_devices,
            needed_chips=needed_devices(2 + len(_more), -2 if _more else -1),
            traits=Trait.OWN_NAN_IN_TILES,
        )
    )

# all_to_all_combine


def verify_combine(op: CatalogueOp) -> None:
    """Verifies the shapes of expert outputs, metadata and combined result.

    Outputs are (experts, batch, sequence, hidden), the experts of each token (1, batch, sequence,
    k), the result is (k, batch, sequence, hidden).
    """
    expect_rank(op, 4, "input_tensor", "expert_metadata", "expert_mapping")
    devices = _verify_devices(op)
    experts, *_, hidden = op.shape("input_tensor")
    metadata = op.shape("expert_metadata")
    tokens, k = prod(metadata[1:3]), metadata[3]
    made = prod(op.shape("input_tensor")[1:3])
    require(op, made == tokens, f"input_tensor of {tokens} tokens", op.shape("input_tensor"))
    known = _experts_mapped(op)
    # Experts may be on all devices of the mesh, or on those along the axis.
    owners = op.shape("expert_mapping")[3]
    has_all = known in (experts * devices, experts * owners)
    require(op, has_all, f"results of {known} experts in all", experts)
    asked = op.parameter("num_experts_per_tok")
    require(op, asked == k, f"num_experts_per_tok to be {k}, as expert_metadata has it", asked)
    shard_dim = op.parameter("output_shard_dim")
    require(op, shard_dim in (1, 2), "an output_shard_dim of 1 or 2", shard_dim)
    found = op.result_shape
    require(op, found[:1] + found[3:] == (k, hidden), f"a result ({k}, ..., {hidden})", found)
    batches = metadata[1:3]
    divides = any(size % devices == 0 for size in batches)
    require(op, divides, f"a batch or a sequence that divides among {devices} devices", batches)
    _expect_volume(op, 0, (k, tokens // devices, hidden))


def combine(call: Call) -> Array:
    made = call.array("input_tensor")
    made = made.reshape(made.shape[0], -1, made.shape[3])
    return picked(made, call.array("expert_metadata")).reshape(call.results[0].shape)


def combine_on_chips(calls: Sequence[Call]) -> list[Array]:
    """Returns the experts' outputs for each device's own tokens.

    Experts may be on any device along the axis; outputs of other experts are zero.
    """
    first, mesh = calls[0], mesh_of(calls[0])
    if first["num_devices"] == 1:
        return [combine(call) for call in calls]
    found: list[Array] = [np.zeros(0)] * len(calls)
    for group in groups_along(mesh, first["cluster_axis"]):
        made = [calls[chip].array("input_tensor") for chip in group]
        made = [each.reshape(each.shape[0], -1, each.shape[3]) for each in made]
        for index, chip in enumerate(group):
            call = calls[chip]
            homes = homes_of_experts(call.array("expert_mapping"), group, len(made[0]))
            whole = of_homes(made, homes, call.array("expert_metadata"))
            tokens = call.array("expert_metadata").shape[1:3]
            whole = whole.reshape(len(whole), *tokens, -1)
            dim = token_dim(tokens, call.results[0].shape, len(group))
            share = np.split(whole, len(group), axis=dim)[index]
            found[chip] = share.reshape(call.results[0].shape)
    return found


def _combined_by_library(op: CatalogueOp) -> bool:
    """True if the ttnn call supports the combine."""
    experts, known = op.shape("input_tensor")[0], op.shape("expert_mapping")[2]
    whole = known == experts * prod(declared_mesh(op))
    in_turn = _divided_dim(op) == 1 or op.shape("expert_metadata")[1] == 1
    return _fits_library_exchange(op) and whole and in_turn


def _divided_dim(op: CatalogueOp) -> int:
    devices, tokens = op.parameter("num_devices"), op.shape("expert_metadata")[1:3]
    return token_dim(tokens, op.result_shape, devices)


def _decompose_combine(builder: OpBuilder, op: CatalogueOp) -> SSAValue | None:
    return None if _combined_by_library(op) else _combine_in_steps(builder, op)


def _lower_combine(builder: OpBuilder, op: CatalogueOp) -> SSAValue:
    """Reshapes to (batch, sequence), over which the library counts the tokens of all devices."""
    experts, *_, hidden = op.shape("input_tensor")
    _, batch, sequence, k = op.shape("expert_metadata")
    devices = op.parameter("num_devices")
    if _divided_dim(op) == 2:
        batch, sequence = sequence, 1
    made = builder.operand(op, "input_tensor")
    named = builder.typecast(builder.operand(op, "expert_metadata"), ui16)
    found = builder.emit(
        "all_to_all_combine",
        [
            builder.reshape(made, (experts, batch, sequence, hidden)),
            builder.reshape(named, (1, batch, sequence, k)),
            _library_mapping(builder, op),
        ],
        tensor_type(bf16, (k, batch // devices, sequence, hidden)),
        num_experts_per_tok=k,
        **_between(op),
    )
    found = builder.reshape(found, op.result_shape)
    return builder.typecast(found, op.result_type.element_type)


def _combine_in_steps(builder: OpBuilder, op: CatalogueOp) -> SSAValue:
    made, named = builder.operand(op, "input_tensor"), builder.operand(op, "expert_metadata")
    experts, *_, hidden = shape_of(made.type)
    k = shape_of(named.type)[3]
    named = builder.reshape(named, (prod(shape_of(named.type)) // max(k, 1), k))
    made = builder.reshape(made, (experts, shape_of(named.type)[0], hidden))
    here = None
    if op.parameter("num_devices") > 1:
        mapping, axis = builder.operand(op, "expert_mapping"), op.parameter("cluster_axis")
        here = experts_here(builder, declared_mesh(op), mapping, experts, axis)
    found = picked_results(builder, made, named, here)
    if here is not None:
        found = own_tokens(builder, op, found)
    found = builder.reshape(found, op.result_shape)
    return builder.typecast(found, op.result_type.element_type)


register(
    TTIRDefinition(
        "ttir.all_to_all_combine",
        (
            operand("input_tensor"),
            expert_operand("expert_metadata", _experts_mapped),
            mapping_operand(),
        ),
        COMBINE,
        verify=verify_combine,
        numpy=combine,
        chips=combine_on_chips,
        decompose=_decompose_combine,
        primitives=_combine_in_steps,
        lower=_lower_combine,
        refused_form=other_devices,
        needed_chips=needed_devices(2, -1),
        traits=Trait.OWN_NAN_IN_TILES,
    )
)


# ttnn calls of dispatch and combine.
#
# They move rows of bf16; tokens are counted over all devices along an axis. Signatures and
# restrictions: tt-metal, `ttnn/operations/ccl/all_to_all_dispatch` and
# `all_to_all_combine`.


def _rows(name: str, data_type: DataType) -> OperandSpec:
    return OperandSpec(name, layout=Layout.ROW_MAJOR, data_types=(data_type,))


_MAPPING = _rows("expert_mapping", DataType.UINT16)


def _cpp_dispatch(calls: CppCalls, op: CatalogueOp) -> None:
    calls.include(f"{CCL}/all_to_all_dispatch/all_to_all_dispatch.hpp")
    call = calls.call(
        "ttnn::all_to_all_dispatch",
        *(calls[value] for value in op.operands),
        Text(cpp_text(op.parameter("cluster_axis"))),
        type="std::array<ttnn::Tensor, 2>",
    )
    bind_elements(calls, op, call)


register(
    TTNNDefinition(
        "ttnn.all_to_all_dispatch",
        (
            _rows("input_tensor", DataType.BFLOAT16),
            _rows("expert_indices", DataType.UINT16),
            _MAPPING,
        ),
        TRAVEL,
        results=2,
        verify=verify_dispatch,
        numpy=dispatch,
        chips=dispatch_on_chips,
        cpp=_cpp_dispatch,
        result_rules=(
            ResultRule(layout=Layout.ROW_MAJOR),
            ResultRule(DataType.UINT16, layout=Layout.ROW_MAJOR),
        ),
        traits=Trait.COLLECTIVE,
        call_kind=CallKind.COLLECTIVE,
        nouns=("dispatched", "experts_of_tokens"),
    )
)

register(
    TTNNDefinition(
        "ttnn.all_to_all_combine",
        (
            _rows("input_tensor", DataType.BFLOAT16),
            _rows("expert_metadata", DataType.UINT16),
            _MAPPING,
        ),
        COMBINE,
        verify=verify_combine,
        numpy=combine,
        chips=combine_on_chips,
        cpp=cpp_call(
            "ttnn::all_to_all_combine",
            f"{CCL}/all_to_all_combine/all_to_all_combine.hpp",
            operand_("input_tensor"),
            operand_("expert_mapping"),
            operand_("expert_metadata"),
            lambda calls, op: Text("false"),
            *[nullopt] * 3,
            attribute_("cluster_axis"),
        ),
        result_rules=(ResultRule(layout=Layout.ROW_MAJOR),),
        traits=Trait.COLLECTIVE,
        call_kind=CallKind.COLLECTIVE,
        nouns=("combined",),
    )
)
