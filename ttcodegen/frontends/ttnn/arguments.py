"""Arguments, mesh and call attributes of a TTNN module."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import prod
from typing import TypeVar

from xdsl.dialects.builtin import FunctionType, ModuleOp
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import Attribute, Block, BlockArgument, Operation, SSAValue, Use
from xdsl.rewriter import Rewriter
from xdsl.utils.exceptions import VerifyException

from ttcodegen.compat.ttnn_modules import DEVICE_OPS, name_of
from ttcodegen.dialects.core.datatypes import element_of, shape_of, tensor_type
from ttcodegen.dialects.operations.attribute_kinds import INTEGERS, AttributeKind
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.dialects.ttcore.device import MESHES, MeshShape, declared_mesh, set_mesh, shape_in
from ttcodegen.dialects.ttnn.placement import TTNNLayoutAttr, placed_type
from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.ops.collectives.device_calls import Chips
from ttcodegen.ops.collectives.mesh_sharding import implied_mesh
from ttcodegen.ops.collectives.reference import mesh_axis
from ttcodegen.ops.collectives.ttnn_calls import normalize
from ttcodegen.ops.core.builder import OpBuilder, builder_before
from ttcodegen.ops.dialects import TTNNOp, ttnn_op_classes

# Argument attributes of TTNN functions.


def shard_arguments(module: ModuleOp) -> None:
    """Makes public functions shard their arguments themselves: callers pass interleaved DRAM
    tensors."""
    called = {op.callee.string_value() for op in module.walk() if isinstance(op, CallOp)}
    for function in module.ops:
        if isinstance(function, FuncOp) and function.sym_name.data not in called:
            _shard_arguments(function)


def _shard_arguments(function: FuncOp) -> None:
    """Shards the arguments of a function; caches, which callers read after the call, are
    unchanged."""
    if not function.body.blocks:
        return
    (block, *_) = function.body.blocks
    for argument in block.args:
        encoding = getattr(argument.type, "encoding", None)
        if not isinstance(encoding, TTNNLayoutAttr) or encoding.data.shards is None:
            continue
        if any(_overwrites(use.operation, argument) for use in argument.uses):
            continue
        placement = encoding.data

        def insert(made: Operation) -> None:
            assert block.first_op is not None
            block.insert_op_before(made, block.first_op)

        builder = OpBuilder(ttnn_op_classes(), insert)
        sharded = builder.emit("composite_to_layout", [argument], placed_type(placement))
        sharded.name_hint = argument.name_hint
        argument.replace_uses_with_if(sharded, partial(_is_other, sharded.owner))
        whole = placement.with_(buffer_type="dram", memory_layout="interleaved", shards=None)
        Rewriter.replace_value_with_new_type(argument, placed_type(whole))
    function.function_type = FunctionType.from_lists(
        [argument.type for argument in block.args], function.function_type.outputs.data
    )


def _is_other(made: Operation | Block, use: Use) -> bool:
    """Returns whether a use is not by the given op."""
    return use.operation is not made


def _overwrites(op: Operation, value: BlockArgument) -> bool:
    """Returns whether a call overwrites a value."""
    if not isinstance(op, CatalogueOp) or op.definition.in_place is None:
        return False
    return op.optional_operand(op.definition.in_place) is value


# Attributes and operands of calls that nothing has verified yet.

Properties = Mapping[str, Attribute]

T = TypeVar("T")


def given(op: Operation, properties: Properties, name: str, kind: AttributeKind[T]) -> T | None:
    """Decodes an attribute of a call, None if absent; raises CompileError if it has
    another kind."""
    attribute = properties.get(name)
    if attribute is None:
        return None
    try:
        return kind.decode(attribute)
    except (ValueError, TypeError, AttributeError, KeyError):
        raise CompileError(
            f"'{name_of(op)}': attribute '{name}' should be {kind.expected}, found {attribute}", op
        ) from None


def divided_operands(
    op: Operation, operands: Sequence[SSAValue], properties: Properties, count: int
) -> list[SSAValue | None]:
    """Assigns operands to `count` optional slots, None for absent ones.

    Uses `operandSegmentSizes`; without it, the last ones are absent.
    """
    sizes = given(op, properties, "operandSegmentSizes", INTEGERS)
    if sizes is None:
        sizes = [1] * len(operands)
    sizes = [*sizes, *[0] * (count - len(sizes))]
    if len(sizes) != count or not {0, 1}.issuperset(sizes) or sum(sizes) != len(operands):
        raise CompileError(
            f"'{name_of(op)}': its {len(operands)} operands are not those of "
            f"operandSegmentSizes {sizes}",
            op,
        )
    values = iter(operands)
    return [next(values) if size else None for size in sizes]


# The mesh of a module of TTNN, and how its tensors are divided among the chips.

_PLACEMENT = re.compile(r"<\s*(shard|replicate)\s*(?:,\s*(-?\d+))?")


def declare_mesh(module: ModuleOp) -> None:
    """Declares the mesh that device ops or collectives imply."""
    if MESHES in module.attributes:
        return
    shapes = [shape_in(op) for op in module.walk() if name_of(op) in DEVICE_OPS]
    shape = max(shapes, key=prod, default=())
    if prod(shape) <= 1:
        shape = implied_mesh(module)
    if prod(shape) > 1:
        set_mesh(module, shape)


def expand(module: ModuleOp) -> None:
    """Expands ops that are several calls: distributed norms and point-to-point transfers."""
    for op in list(module.walk()):
        rule = _EXPANDED.get(name_of(op).removeprefix("ttnn."))
        if rule is None:
            continue
        builder = builder_before(op, ttnn_op_classes())
        value = rule(builder, op)
        # Keep the placement that the module gives the result.
        value = builder.emit("composite_to_layout", [value], op.results[0].type)
        value.name_hint = op.results[0].name_hint
        Rewriter.replace_op(op, [], [value])


def _norm(builder: OpBuilder, op: Operation) -> SSAValue:
    assert isinstance(op, TTNNOp)
    try:
        mesh_axis(op)
        op.verify_()
    except VerifyException as error:
        raise CompileError(str(error), op) from None
    for index, value in enumerate(op.operands):
        plain = tensor_type(element_of(value.type), shape_of(value.type))
        if value.type != plain:
            # The calls compute in the default placement: a typecast does not take shards away.
            op.operands[index] = builder.emit("composite_to_layout", [value], plain)
    return normalize(builder, op)


def _send(builder: OpBuilder, op: Operation) -> SSAValue:
    """Point-to-point transfer of the sender's shard to the receiver.

    Other devices keep the second operand, or have undefined values.
    """
    mesh = declared_mesh(op)
    sender, receiver = (_device_index(op, name, mesh) for name in ("send_coord", "receive_coord"))
    value, *kept = op.operands
    if any(shape_of(each.type) != shape_of(value.type) for each in kept):
        raise CompileError(f"'{name_of(op)}' sends a tensor of another shape than it keeps", op)
    filled = [isinstance(each.owner, TTNNOp) and each.owner.name == "ttnn.full" for each in kept]
    keeps = kept[0] if kept and not all(filled) else None
    if sender == receiver:
        raise CompileError(f"'{name_of(op)}': a chip sends to another one", op)
    return Chips(builder, op).send(value, sender, receiver, keeps)


def _device_index(op: Operation, name: str, mesh: MeshShape) -> int:
    """Device index of a mesh coordinate attribute; raises CompileError if it is out of range."""
    place = given(op, {**op.attributes, **op.properties}, name, INTEGERS) or []
    if len(place) != 2 or not all(0 <= at < size for at, size in zip(place, mesh, strict=True)):
        raise CompileError(
            f"'{name_of(op)}': '{name}' should be row and column of a chip of the mesh of "
            f"{mesh[0]}x{mesh[1]}, found {place}",
            op,
        )
    return place[0] * mesh[1] + place[1]


_EXPANDED: dict[str, Callable[[OpBuilder, Operation], SSAValue]] = {
    "distributed_rms_norm": _norm,
    "distributed_layer_norm": _norm,
    "point_to_point": _send,
}


def spell_distribute(op: Operation, properties: dict[str, Attribute]) -> None:
    """`mapper_config = #ttnn.mesh_mapper_config<placements = [<shard, 3 : i64>, <replicate>]>`."""
    if "placements" in properties:
        return
    text = str(properties.pop("mapper_config", ""))
    _set_mesh_dims(
        op,
        properties,
        [int(dim) if kind == "shard" else None for kind, dim in _PLACEMENT.findall(text)],
    )


def spell_aggregate(op: Operation, properties: dict[str, Attribute]) -> None:
    """`composer_config = #ttnn.mesh_composer_config<dims = [0 : i64, 1 : i64]>`."""
    if "placements" in properties:
        return
    text = re.sub(r":\s*\w+", "", str(properties.pop("composer_config", "")))
    listed = re.search(r"dims = \[([^\]]*)\]", text)
    dims: list[int | None] = []
    if listed is not None:
        dims += [int(number) for number in re.findall(r"-?\d+", listed[1])]
    override = re.search(r"mesh_shape_override = [^\d]*([\d, x]+)", text)
    if override is not None:
        taken = [int(size) for size in re.findall(r"\d+", override[1])]
        if len(taken) == len(dims):
            dims = [dim if size > 1 else None for dim, size in zip(dims, taken, strict=True)]
    _set_mesh_dims(op, properties, dims)


def _set_mesh_dims(op: Operation, properties: dict[str, Attribute], dims: list[int | None]) -> None:
    """Records a dimension per mesh axis, None for replication.

    A single dimension is for the axis with several devices; an axis of size 1 divides nothing.
    """
    mesh, rank = declared_mesh(op), len(shape_of(op.operands[0].type))
    if len(dims) == 1 and shape_of(op.operands[0].type) == shape_of(op.results[0].type):
        # Equal shapes: the tensor is replicated, whatever the dimension says.
        dims = [None]
    if len(dims) == 1:
        dims = [None, *dims] if mesh[0] == 1 else [*dims, None]
    dims += [None] * (2 - len(dims))
    if len(dims) > 2:
        raise CompileError(
            f"'{name_of(op)}' divides along {len(dims)} axes, and a mesh has rows and columns",
            op,
            remedy="name a dimension, or none, for each of two axes",
        )
    placements: list[int] = []
    for dim, chips in zip(dims, mesh, strict=True):
        if dim is None or chips == 1:
            placements.append(-1)
        elif -rank <= dim < rank:
            placements.append(dim % rank)
        else:
            raise CompileError(
                f"'{name_of(op)}' divides dimension {dim} of a tensor of rank {rank}", op
            )
    properties["placements"] = INTEGERS.encode(placements)
    properties["mesh_shape"] = INTEGERS.encode(list(mesh))


def spell_collective(op: Operation, properties: dict[str, Attribute]) -> None:
    """Records the mesh on a collective."""
    properties["mesh_shape"] = INTEGERS.encode(list(declared_mesh(op)))
