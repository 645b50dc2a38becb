"""Fusion of TTNN calls: QKV projections, activations, and residual sums of normalizations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import cast

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from ttcodegen.dialects.core.datatypes import (
    bf16,
    element_of,
    f32,
    normalized_data_type,
    shape_of,
    tensor_type,
)
from ttcodegen.dialects.operations.attribute_kinds import STRING
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.dialects.ttcore.tile import TILE_SIDE
from ttcodegen.dialects.ttnn.program_configs import Conv2dConfig, FusedActivation, config_attribute
from ttcodegen.ops.attention.heads import MOST_USERS
from ttcodegen.ops.core.builder import OpBuilder
from ttcodegen.ops.core.definition import has_trait
from ttcodegen.ops.core.traits import Trait
from ttcodegen.ops.dialects import ttnn_op_classes
from ttcodegen.ops.elementwise.activations import ACTIVATION_PARAMETERS, ACTIVATIONS
from ttcodegen.ops.elementwise.binary import ACTIVATED, OPERAND_ACTIVATIONS
from ttcodegen.ops.movement.data_movement import reshaped
from ttcodegen.ops.reduction.norms import NORMS, RESIDUAL
from ttcodegen.optimizer.overrides.overrides import MERGED, FunctionOverrides, overrides_of
from ttcodegen.optimizer.rewrites import RESHAPES
from ttcodegen.transforms.const_eval import constant_values
from ttcodegen.transforms.rewriting import body_of, erase_dead

# QKV projections of one input become one matmul, whose result ttnn splits into heads: in prefill
# as matrices (split_query_key_value_and_split_heads), in decode on one core per user
# (nlp_create_qkv_heads_decode).

HEADS_FIRST = [0, 2, 1, 3]


@dataclass(frozen=True)
class FuseProjections(ModulePass):
    """Fuses the QKV projections of one input into a matmul with concatenated constant weights."""

    name = "ttnn-fuse-projections"

    overrides: str = ""
    """Text of an overrides file, which may forbid fusing a call."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in op.walk():
            if isinstance(function, FuncOp):
                given = overrides_of(self.overrides, function)
                for group in _qkv_groups(function):
                    ops = [op for p in group for op in (p.heads, p.matmul)]
                    if not given.keeps_apart(*ops) and not any(map(given.decides, ops)):
                        made = _fuse_projections(body_of(function), group)
                        _keep_names(made, given, [each.matmul for each in group])
                erase_dead(function)


@dataclass(frozen=True)
class _Projection:
    """Projection to heads: `permute(reshape(linear(x, weight, bias)))`; no permute in decode."""

    heads: CatalogueOp
    matmul: CatalogueOp
    users: int
    """Number of users or sequences."""
    positions: int
    """Sequence length; 0 in decode, where the heads of a user are rows of a matrix."""
    count: int
    """Number of heads."""
    size: int
    """Head size."""


def _projection(op: Operation, constants: set[SSAValue]) -> _Projection | None:
    if not isinstance(op, CatalogueOp):
        return None
    name = op.definition.short_name
    if name == "permute" and op.parameter("permutation") == HEADS_FIRST:
        users, count, positions, size = op.result_shape
    elif (decoded := _heads_of_tokens(op)) is not None:
        if _heads_of_tokens(op.operands[0].owner) is not None:
            return None  # A reshape of heads that the reshape before has matched already.
        (users, count, size), positions = decoded, 0
    else:
        return None
    if size % TILE_SIDE or users < 1:
        return None
    value = op.operands[0]
    while isinstance(value.owner, CatalogueOp) and value.owner.definition.short_name in RESHAPES:
        value = value.owner.operands[0]
    matmul = value.owner
    if not isinstance(matmul, CatalogueOp) or len(shape_of(value.type)) < 2:
        return None
    if not has_trait(matmul, Trait.MATRIX_PRODUCT):
        return None
    settings = ("transpose_a", "activation", "dtype")
    if any(matmul.parameter(name) for name in settings):
        return None
    fits = shape_of(value.type)[-1] == count * size and len(matmul.shape("b")) == 2
    fixed = all(operand in constants for operand in matmul.operands[1:])
    if not fits or not fixed:
        return None
    return _Projection(op, matmul, users, positions, count, size)


def _heads_of_tokens(op: Operation | Block) -> tuple[int, int, int] | None:
    """Returns (users, heads, size) of a reshape of rows to that shape; None for other ops.

    Unit dimensions may be anywhere before the heads."""
    if not isinstance(op, CatalogueOp) or op.definition.short_name not in RESHAPES:
        return None
    shape = op.result_shape
    users = [size for size in shape[:-2] if size != 1]
    if len(shape) < 3 or len(users) > 1 or element_of(op.results[0].type) not in (bf16, f32):
        return None
    found = (users[0] if users else 1, shape[-2], shape[-1])
    rows = shape_of(op.operands[0].type)
    whole = rows[-1:] == (found[1] * found[2],) and prod(rows[:-1]) == found[0]
    fits = 1 <= found[1] <= TILE_SIDE and 1 <= found[0] <= MOST_USERS
    return found if whole and fits else None


def _qkv_groups(function: FuncOp) -> Iterator[list[_Projection]]:
    """Yields the Q, K and V projections of each input; K and V have the same number of heads."""
    constants = constant_values(function)
    found: dict[object, list[_Projection]] = {}
    for op in body_of(function).ops:
        projection = _projection(op, constants)
        if projection is not None:
            matmul = projection.matmul
            key = (
                matmul.operands[0],
                matmul.definition.short_name,
                matmul.parameter("transpose_b"),
                matmul.parameter("compute_config"),
                (projection.users, projection.positions, projection.size),
                str(element_of(projection.heads.results[0].type)),
                len(matmul.operands),
            )
            found.setdefault(key, []).append(projection)
    for group in found.values():
        counts = sorted({projection.count for projection in group})
        if len(group) == 3 and len(counts) <= 2:
            group.sort(key=lambda p: -p.count)
            if group[1].count == group[2].count:
                yield group


def _fuse_projections(block: Block, group: list[_Projection]) -> Operation:
    """Fuses a group of projections; returns the matmul of all of them."""
    first = min((p.heads for p in group), key=lambda op: _index(block, op))
    needed = [operand for p in group for operand in p.matmul.operands[1:]]
    for value in needed:
        _move_before(block, value, first)
    builder = OpBuilder(ttnn_op_classes(), lambda made: block.insert_op_before(made, first))
    matmul = group[0].matmul
    builder.origin = matmul
    across = 0 if matmul.parameter("transpose_b") else 1
    weight = _concatenated(builder, [p.matmul.operands[1] for p in group], across)
    operands = [matmul.operands[0], weight]
    if len(matmul.operands) > 2:
        rows = [p.matmul.operands[2] for p in group]
        flat = [reshaped(builder, row, (1, shape_of(row.type)[-1])) for row in rows]
        operands.append(_concatenated(builder, flat, 1))
    width = shape_of(weight.type)[across]
    element = element_of(matmul.results[0].type)
    made = builder.emit(
        matmul.definition.short_name,
        operands,
        tensor_type(element, (*matmul.result_shape[:-1], width)),
        transpose_b=matmul.parameter("transpose_b"),
        compute_config=matmul.parameter("compute_config"),
    )
    results = [
        reshaped(builder, result, projection.heads.result_shape)
        for projection, result in zip(group, _split_heads(builder, made, group), strict=True)
    ]
    for projection, result in zip(group, results, strict=True):
        result.name_hint = projection.heads.results[0].name_hint
        Rewriter.replace_op(projection.heads, [], [result])
    assert isinstance(made.owner, Operation)
    return made.owner


def _split_heads(
    builder: OpBuilder, made: SSAValue, group: list[_Projection]
) -> Sequence[SSAValue]:
    """Splits the rows of the fused matmul into heads of queries, keys and values."""
    query, key, _ = group
    width = shape_of(made.type)[-1]
    counts = {
        "num_heads": query.count,
        "num_kv_heads": None if key.count == query.count else key.count,
    }
    if query.positions:
        rows = reshaped(builder, made, (query.users, query.positions, width))
        return builder.emit_op(
            "split_query_key_value_and_split_heads",
            [rows, None],
            [p.heads.results[0].type for p in group],
            **counts,
            transpose_key=False,
        ).results
    element = element_of(made.type)
    return builder.emit_op(
        "nlp_create_qkv_heads_decode",
        [builder.reshape(made, [1, 1, query.users, width])],
        [tensor_type(element, (1, p.users, p.count, p.size)) for p in group],
        **counts,
    ).results


def _concatenated(builder: OpBuilder, values: list[SSAValue], dim: int) -> SSAValue:
    shape = list(shape_of(values[0].type))
    shape[dim] = sum(shape_of(value.type)[dim] for value in values)
    return builder.emit("concat", [values], tensor_type(element_of(values[0].type), shape), dim=dim)


def _index(block: Block, op: Operation) -> int:
    return block.get_operation_index(op)


def _move_before(block: Block, value: SSAValue, anchor: Operation) -> None:
    """Moves the op that defines a constant, and its producers, before `anchor`."""
    op = value.owner
    if not isinstance(op, Operation) or _index(block, op) < _index(block, anchor):
        return
    for operand in op.operands:
        _move_before(block, operand, anchor)
    op.detach()
    block.insert_op_before(op, anchor)


def _calls_and_overrides(
    module: ModuleOp, overrides: str
) -> Iterator[tuple[CatalogueOp, FunctionOverrides]]:
    """Yields the calls of each function with the overrides of the function.

    The calls are listed before the first of them is rewritten."""
    for function in module.walk():
        if isinstance(function, FuncOp):
            given = overrides_of(overrides, function)
            for op in list(function.walk()):
                if isinstance(op, CatalogueOp):
                    yield op, given


# Activations become parameters of the calls before or after them.


@dataclass(frozen=True)
class FuseActivations(ModulePass):
    """Fuses an activation into its producer if that has no other use, else into its only user.

    Producers are matmuls, convolutions and binary ops (`ACTIVATED`), users binary ops."""

    name = "ttnn-fuse-activations"

    overrides: str = ""
    """Text of an overrides file, which may forbid fusing a call."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for inner, given in _calls_and_overrides(op, self.overrides):
            _fuse_activations(inner, given)


def _fuse_activations(op: CatalogueOp, given: FunctionOverrides) -> None:
    name = op.definition.short_name
    if name not in ACTIVATIONS or len(op.operands) != 1:
        return
    value = op.operands[0]
    if value.type != op.results[0].type:
        return
    made = value.owner
    if isinstance(made, CatalogueOp) and len(list(value.uses)) == 1:
        if given.keeps_apart(op, made):
            return
        if _fuse_into_producer(made, name):
            _keep_names(made, given, (made, op))
            value.name_hint = op.results[0].name_hint or value.name_hint
            Rewriter.replace_op(op, [], [value])
            return
    if _fuse_into_user(op, name, given):
        Rewriter.replace_op(op, [], [value])


def _keep_names(made: Operation, given: FunctionOverrides, ops: Sequence[CatalogueOp]) -> None:
    """Keeps the names of fused calls that overrides mention, so that the fused call is found."""
    named = [StringAttr(given.names[each]) for each in ops if given.mentions(each)]
    if named:
        made.attributes[MERGED] = ArrayAttr(named)


def _fuse_into_user(op: CatalogueOp, name: str, given: FunctionOverrides) -> bool:
    """Fuses an activation into the only user of its result, as the activation of an operand.

    Returns False if the user cannot apply it.
    """
    uses = list(op.results[0].uses)
    user = uses[0].operation if len(uses) == 1 else None
    if not isinstance(user, CatalogueOp) or user.definition.short_name not in ACTIVATED:
        return False
    attribute = OPERAND_ACTIVATIONS[uses[0].index]
    if user.parameter(attribute) is not None or not _has_floats_only(user):
        return False
    if given.keeps_apart(op, user) or given.decides(op):
        return False
    user.properties[attribute] = STRING.encode(name)
    return True


def _fuse_into_producer(op: CatalogueOp, name: str) -> bool:
    """Sets the activation of a call; returns False if the call cannot apply it."""
    kind = op.definition.short_name
    activation = FusedActivation(name, ACTIVATION_PARAMETERS.get(name, ()))
    if kind == "conv2d":
        config = cast("Conv2dConfig", op.parameter("conv2d_config") or Conv2dConfig())
        if config.fused_activation is not None:
            return False
        fused = replace(config, fused_activation=activation)
        op.properties["conv2d_config"] = config_attribute(fused)
        return True
    if has_trait(op, Trait.MATRIX_PRODUCT) and op.parameter("activation") is None:
        if op.parameter("matmul_program_config") is not None:
            return False
        op.properties["activation"] = STRING.encode(name)
        return True
    if kind in ACTIVATED and op.parameter("activation") is None and _has_floats_only(op):
        op.properties["activation"] = STRING.encode(name)
        return True
    return False


def _has_floats_only(op: CatalogueOp) -> bool:
    types = [normalized_data_type(element_of(value.type)) for value in (*op.operands, *op.results)]
    return all(type_ is not None and type_.is_float for type_ in types)


# Residual sums: a normalization computes the sum of two tensors that has no other use.


@dataclass(frozen=True)
class FuseResiduals(ModulePass):
    """Fuses a sum into the normalization that is its only use, as `layer_norm(x + y)`.

    Transformers that normalize after their layers have such sums. Fusing a sum with other uses
    would save no call, and for a single row a second operand does not pay."""

    name = "ttnn-fuse-residuals"

    overrides: str = ""
    """Text of an overrides file, which may forbid fusing a call."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for inner, given in _calls_and_overrides(op, self.overrides):
            if inner.definition.short_name in NORMS:
                _fuse_residual(inner, given)


def _fuse_residual(norm: CatalogueOp, given: FunctionOverrides) -> None:
    value = norm.operand("input")
    sum_ = value.owner
    if norm.optional_operand(RESIDUAL) is not None or not isinstance(sum_, CatalogueOp):
        return
    if sum_.definition.short_name != "add" or len(list(value.uses)) != 1:
        return
    if len(sum_.operands) != 2 or any(operand.type != value.type for operand in sum_.operands):
        return
    if prod(shape_of(value.type)[:-1]) == 1 or not _has_floats_only(sum_):
        return
    settings = ("activation", *OPERAND_ACTIVATIONS, "dtype")
    if any(sum_.parameter(name) is not None for name in settings):
        return
    if given.keeps_apart(norm, sum_) or given.decides(sum_):
        return
    block = norm.parent
    assert block is not None
    builder = OpBuilder(ttnn_op_classes(), lambda made: block.insert_op_before(made, norm))
    builder.origin = norm
    vectors = [norm.optional_operand(name) for name in ("weight", "bias")]
    made = builder.emit(
        norm.definition.short_name,
        [sum_.operands[0], *vectors, sum_.operands[1]],
        norm.results[0].type,
        epsilon=norm.parameter("epsilon"),
        compute_config=norm.parameter("compute_config"),
    )
    made.name_hint = norm.results[0].name_hint
    Rewriter.replace_op(norm, [], [made])
    Rewriter.erase_op(sum_)
