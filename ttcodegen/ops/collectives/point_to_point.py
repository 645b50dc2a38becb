"""Point-to-point transfer between two devices of a mesh row or column."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.utils.exceptions import VerifyException

from ttcodegen.dialects.core.datatypes import element_of
from ttcodegen.dialects.operations.attribute_kinds import INTEGERS
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.dialects.ttcore.mesh import MeshShape, declared_mesh
from ttcodegen.dialects.ttnn.placement import given_placement
from ttcodegen.foundation.lazy_numpy import Array, np
from ttcodegen.ops.collectives.collectives import same_values
from ttcodegen.ops.collectives.groups import MESH_SHAPE
from ttcodegen.ops.collectives.reference import mesh_of
from ttcodegen.ops.core.calls import NULLOPT, Argument, CppCalls, Text
from ttcodegen.ops.core.definition import (
    Call,
    ResultRule,
    TTNNDefinition,
    attribute,
    operand,
    optional,
    register,
)
from ttcodegen.ops.core.shape_checks import expect_shape
from ttcodegen.ops.core.traits import CallKind, Trait

_COORDINATES = ("receive_coord", "send_coord")


def _verify(op: CatalogueOp) -> None:
    """Both chips are on one row or one column of the mesh; the tensor that other chips keep is like
    the one that is sent."""
    mesh = declared_mesh(op)
    receiver, sender = places = [list(op.parameter(name)) for name in _COORDINATES]
    for place in places:
        if not _is_in(mesh, place):
            raise VerifyException(f"{op.name}: the mesh of {mesh[0]}x{mesh[1]} has no chip {place}")
    if sender == receiver or not any(s == r for s, r in zip(sender, receiver, strict=True)):
        raise VerifyException(
            f"{op.name}: a chip sends to another one of its row or its column, found {sender} and "
            f"{receiver}"
        )
    kept = op.optional_operand("kept")
    if kept is not None:
        value = op.operand("input")
        if op.shape("kept") != op.shape("input") or element_of(kept.type) != element_of(value.type):
            raise VerifyException(f"{op.name}: sends {value.type} into {kept.type}")
    expect_shape(op, op.shape("input"))


def _is_in(mesh: MeshShape, place: Sequence[int]) -> bool:
    return len(place) == 2 and all(0 <= at < size for at, size in zip(place, mesh, strict=True))


def _sent(calls: Sequence[Call]) -> list[Array]:
    """Reference values of the receiving devices, zeros elsewhere.

    The op leaves the values of devices that receive nothing undefined.
    """
    columns = mesh_of(calls[0])[1]
    receiver, sender = (_number(calls[0][name], columns) for name in _COORDINATES)
    kept = [call.optional("kept") for call in calls]
    sent = calls[sender].array("input")
    found: list[Array] = [np.zeros(sent.shape, sent.dtype) if own is None else own for own in kept]
    found[receiver] = sent
    return found


def _number(place: Sequence[int], columns: int) -> int:
    return int(place[0]) * columns + int(place[1])


def _cpp(calls: CppCalls, op: CatalogueOp) -> None:
    calls.include("ttnn/operations/point_to_point/point_to_point.hpp")
    coordinates = [
        Text(f"/*{name}=*/ttnn::MeshCoordinate({', '.join(map(str, op.parameter(given)))})")
        for name, given in zip(("receiver_coord", "sender_coord"), _COORDINATES, strict=True)
    ]
    arguments: list[Argument] = [calls[op.operand("input")], *coordinates]
    if op.optional_operand("kept") is not None:
        arguments += [Text("ttnn::ccl::Topology::Linear"), _kept(calls, op)]
    calls.bind(op.results[0], calls.call("ttnn::point_to_point", *arguments))


def _kept(calls: CppCalls, op: CatalogueOp) -> Argument:
    """The tensor into which the call writes: what nothing else reads of another such call, else a
    copy, which is where the operand is."""
    kept = op.operand("kept")
    placed, wanted = (given_placement(op.operand(name)) for name in ("kept", "input"))
    readers = [use for use in kept.uses if use.operation.name != "ttnn.deallocate"]
    is_received = isinstance(kept.owner, CatalogueOp) and kept.owner.name == op.name
    if is_received and len(readers) == 1 and placed == wanted:
        return calls[kept]
    memory = NULLOPT if placed == wanted or wanted is None else calls.memory_config(wanted)
    calls.include("ttnn/operations/data_movement/clone/clone.hpp")
    return calls.nested("ttnn::clone", calls[kept], NULLOPT, memory, NULLOPT)


register(
    TTNNDefinition(
        "ttnn.point_to_point",
        (operand("input"), optional("kept")),
        (*(attribute(name, INTEGERS) for name in _COORDINATES), MESH_SHAPE),
        verify=_verify,
        numpy=same_values,
        chips=_sent,
        cpp=_cpp,
        result_rules=(ResultRule(),),
        traits=Trait.COLLECTIVE,
        call_kind=CallKind.COLLECTIVE,
        nouns=("received",),
    )
)
