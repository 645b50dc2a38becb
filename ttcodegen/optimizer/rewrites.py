"""Rewrites before layouts are assigned: rows, decode forms, fidelity, weight types."""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass, field
from functools import cache
from math import prod

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from ttcodegen.dialects.core.datatypes import DataType, bf16, element_of, f32, shape_of, tensor_type
from ttcodegen.dialects.operations.attribute_kinds import INTEGER, INTEGERS
from ttcodegen.dialects.operations.compute_config import (
    ComputeConfig,
    ComputeConfigAttr,
    MathFidelity,
)
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.dialects.ttcore.shards import Layout, Memory
from ttcodegen.dialects.ttcore.tile import TILE_SIDE
from ttcodegen.dialects.ttnn.placement import (
    TensorPlacement,
    declared_data_type,
    placed_type,
    placement_of,
)
from ttcodegen.foundation.diagnostics import copy_source_offset
from ttcodegen.layout.placements import TiledShape
from ttcodegen.ops.attention.heads import MOST_USERS
from ttcodegen.ops.attention.paged_cache import MOST_USERS as MOST_CACHED
from ttcodegen.ops.attention.paged_cache import write_rows
from ttcodegen.ops.core.builder import OpBuilder
from ttcodegen.ops.core.calls import COMPUTE_CONFIG_ATTRIBUTE
from ttcodegen.ops.core.definition import call_kind, has_trait
from ttcodegen.ops.core.traits import CallKind, Trait
from ttcodegen.ops.dialects import ttnn_op_classes
from ttcodegen.ops.elementwise import binary as elementwise_binary
from ttcodegen.ops.elementwise import unary as elementwise_unary
from ttcodegen.ops.movement.data_movement import reshaped, suits_rows
from ttcodegen.optimizer.cost.calls import apply_if_faster
from ttcodegen.transforms.const_eval import constant_values, is_const_eval
from ttcodegen.transforms.functions import merge_common_subexpressions
from ttcodegen.transforms.rewriting import body_of, erase_dead, functions, keep, rebuild

# Dense rows: elementwise and rowwise ops run on shapes without tile padding, before reshapes.
#
# A tensor of 32x1x8192 takes 32 times as many tiles as 32x8192, and the flattened result of a
# convolution is moved element by element when it is reshaped to 8x56x56x64. Elementwise and rowwise
# ops do not depend on how rows are arranged in outer dimensions.

Shape = tuple[int, ...]

RESHAPES = ("reshape", "reshape_row_major")
MUCH_PADDING = 4
"""Minimum ratio of tiles after a reshape to tiles before it for a row-major result."""
ALONG_ROWS = frozenset({"concat", "slice_static"})
"""Calls, besides normalizations, that are rowwise if they work along the last dimension."""


@cache
def elementwise() -> frozenset[str]:
    """Returns the names of elementwise calls."""
    rows = (*elementwise_unary.ROWS, *elementwise_binary.ROWS)
    return frozenset({*(row.ttnn or row.name for row in rows), "typecast"})


@dataclass(frozen=True)
class DenseRows(ModulePass):
    """Sinks reshapes below rowwise ops and cancels them, unless the cost model predicts a loss.

    A loss is possible, because other operands are reshaped to match."""

    name = "ttnn-dense-rows"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        apply_if_faster(ctx, op, RESHAPES, _use_dense_rows)


def _use_dense_rows(function: FuncOp) -> bool:
    changed = rewrite_calls(function, _Rows())
    changed = _fold_reshapes(function) or changed
    changed = _return_row_major(function) or changed
    return erase_dead(function) or changed


def _return_row_major(function: FuncOp) -> bool:
    """Makes results row-major that would be mostly padding in tiles; False if there are none."""
    made = ttnn_op_classes()["reshape_row_major"]
    changed = False
    terminator = body_of(function).last_op
    for value in () if terminator is None else tuple(terminator.operands):
        op = value.owner
        if isinstance(op, CatalogueOp) and op.definition.short_name == "reshape":
            source, result = op.shape("input"), op.result_shape
            if (
                TiledShape(result).tiles >= MUCH_PADDING * TiledShape(source).tiles
                and value.has_one_use()
            ):
                in_rows = made.create(
                    operands=op.operands, result_types=[value.type], properties=op.properties
                )
                copy_source_offset(op, in_rows)
                in_rows.results[0].name_hint = value.name_hint
                Rewriter.replace_op(op, in_rows)
                changed = True
    return changed


def _fold_reshapes(function: FuncOp) -> bool:
    """Folds reshapes of reshapes that have no other use; False if there are none."""
    changed = False
    for op in body_of(function).ops:
        if not isinstance(op, CatalogueOp) or op.definition.short_name != "reshape":
            continue
        before = op.operands[0].owner
        if (
            isinstance(before, CatalogueOp)
            and before.definition.short_name == "reshape"
            and before.results[0].has_one_use()
        ):
            op.operands[0] = before.operands[0]
            changed = True
    return changed


@dataclass
class _Rows:
    """Rule that moves the rowwise ops of one function to dense rows."""

    dense: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])
    """Maps a reshaped value to one with the same rows and at most as many tiles."""

    def __call__(
        self, builder: OpBuilder, op: CatalogueOp, operands: Sequence[SSAValue]
    ) -> Sequence[SSAValue] | None:
        name, made = op.definition.short_name, None
        if name in RESHAPES:
            made = self._reshaped(builder, op, operands[0])
            return None if made is None else [made]
        if name == "slice_static":
            made = self._row_per_matrix(builder, op, operands[0])
        if made is None and len(op.results) == 1 and works_on_rows(op):
            made = self._computed(builder, op, operands)
        return None if made is None else [made]

    def _reshaped(self, builder: OpBuilder, op: CatalogueOp, value: SSAValue) -> SSAValue | None:
        """Reshapes the dense rows of a value; None to keep a reshape of a value without them."""
        source = self.dense.get(value, value)
        shape = op.result_shape
        if shape_of(source.type) == shape:
            return source
        squeezed = _without_single_rows(shape)
        if source is value:
            if shape[-1:] == shape_of(value.type)[-1:] or squeezed is None:
                self._remember(op.results[0], value)
                return None
            source = reshaped(builder, value, squeezed)
        result = reshaped(builder, source, shape)
        self._remember(result, source)
        return result

    def _remember(self, value: SSAValue, source: SSAValue) -> None:
        """Records `source` for `value` if it has the same rows and at most as many tiles."""
        shape, other = shape_of(value.type), shape_of(source.type)
        if len(shape) > 1 and len(other) > 1 and shape[-1] == other[-1]:
            if TiledShape(other).tiles <= TiledShape(shape).tiles:
                self.dense[value] = source

    def _computed(
        self, builder: OpBuilder, op: CatalogueOp, operands: Sequence[SSAValue]
    ) -> SSAValue | None:
        """Computes the op on dense rows and reshapes the result.

        None if no operand has dense rows, if they take more tiles, or if an operand broadcasts."""
        shape = op.result_shape
        found = [self.dense[value] for value in operands if value in self.dense]
        found = [v for v in found if prod(shape_of(v.type)[:-1]) == prod(shape[:-1])]
        if not found:
            return None
        rows = min(
            (shape_of(value.type)[:-1] for value in found), key=lambda s: TiledShape((*s, 1)).tiles
        )
        dense_shape = (*rows, shape[-1])
        if TiledShape(dense_shape).tiles > TiledShape(shape).tiles:
            return None
        taken: list[SSAValue] = []
        for value in operands:
            arranged = self._arranged(builder, value, shape, rows)
            if arranged is None:
                return None
            taken.append(arranged)
        made = recreate_op(builder, op, taken, dense_shape)
        result = reshaped(builder, made, shape)
        if result is not made:
            self.dense[result] = made
        return result

    def _row_per_matrix(
        self, builder: OpBuilder, op: CatalogueOp, value: SSAValue
    ) -> SSAValue | None:
        """Rewrites a slice of one row per matrix as a strided slice of the flattened batch.

        None for other slices."""
        shape, source = op.shape("input"), self.dense.get(value)
        if source is None or len(shape) != 3 or op.result_shape[1] != 1 or shape[1] == 1:
            return None
        begins, ends, steps = (op.parameter(key) for key in ("begins", "ends", "step"))
        if (begins[0], ends[0], steps[0]) != (0, shape[0], 1):
            return None
        rows = shape[0] * shape[1]
        matrix = reshaped(builder, source, (rows, shape[2]))
        taken = builder.emit(
            "slice_static",
            [matrix],
            tensor_type(element_of(value.type), (shape[0], op.result_shape[2])),
            begins=[begins[1], begins[2]],
            ends=[rows, ends[2]],
            step=[shape[1], steps[2]],
        )
        result = reshaped(builder, taken, op.result_shape)
        self.dense[result] = taken
        return result

    def _arranged(
        self, builder: OpBuilder, value: SSAValue, shape: Shape, rows: Shape
    ) -> SSAValue | None:
        """Reshapes an operand to `rows`; None if it broadcasts along some of them."""
        found = shape_of(value.type)
        if prod(found[:-1]) == 1:
            width = found[-1:] or (1,)
            return reshaped(builder, value, (*[1] * len(rows), *width)) if len(found) > 1 else value
        if len(found) != len(shape) or found[:-1] != shape[:-1]:
            return None
        dense = self.dense.get(value, value)
        return reshaped(builder, dense, (*rows, found[-1]))


def works_on_rows(op: CatalogueOp) -> bool:
    """Returns whether an op does not depend on how the rows of its operands are arranged."""
    name, rank = op.definition.short_name, len(op.result_shape)
    if rank < 2 or op.definition.in_place is not None:
        return False
    if name in elementwise() or name == "where":
        return True
    if name not in ALONG_ROWS and call_kind(name) is not CallKind.NORMALIZATION:
        return False
    if name in ("softmax", "concat"):
        dimension: int = op.parameter("dimension" if name == "softmax" else "dim")
        return dimension % rank == rank - 1
    if name == "slice_static":
        begins, ends, steps = (op.parameter(key) for key in ("begins", "ends", "step"))
        return all(
            (begin, end, step) == (0, size, 1)
            for begin, end, step, size in zip(
                begins[:-1], ends[:-1], steps[:-1], op.shape("input")[:-1], strict=True
            )
        )
    return True


def _without_single_rows(shape: Shape) -> Shape | None:
    """Returns (users, heads, size) for the shape (users, heads, 1, size); None for others."""
    if len(shape) < 3 or shape[-2] != 1 or shape[-3] == 1:
        return None
    return (*shape[:-2], shape[-1])


def recreate_op(
    builder: OpBuilder, op: CatalogueOp, operands: Sequence[SSAValue], shape: Shape
) -> SSAValue:
    """Recreates an op on operands whose rows are arranged differently.

    Returns the result, of `shape`, with the element type and the name of the original one."""
    result = op.results[0]
    made = type(op).create(
        operands=operands,
        result_types=[tensor_type(element_of(result.type), shape)],
        properties={**op.properties, **_adapted_attributes(op, len(shape), operands[0])},
        attributes=op.attributes,
        location=op.location,
    )
    made.source_offset = op.source_offset
    builder.insert(made)
    made.results[0].name_hint = result.name_hint
    return made.results[0]


def _adapted_attributes(op: CatalogueOp, rank: int, source: SSAValue) -> dict[str, Attribute]:
    """Returns the attributes that depend on dimensions, adapted to another rank."""
    name = op.definition.short_name
    if name in ("softmax", "concat"):
        return {"dimension" if name == "softmax" else "dim": INTEGER.encode(rank - 1)}
    if name == "slice_static":
        rows = list(shape_of(source.type)[:-1])
        begins, ends, steps = (op.parameter(key) for key in ("begins", "ends", "step"))
        return {
            "begins": INTEGERS.encode([0] * (rank - 1) + [begins[-1]]),
            "ends": INTEGERS.encode([*rows, ends[-1]]),
            "step": INTEGERS.encode([1] * (rank - 1) + [steps[-1]]),
        }
    return {}


# Decode forms of ops in ttnn.
#
# KV caches are updated from height-sharded rows, one core per user, at positions that stay on the
# device; the heads of a user are concatenated across cores; a permutation that only moves unit
# dimensions is a reshape, which often folds away.

Rule = Callable[[OpBuilder, CatalogueOp, Sequence[SSAValue]], Sequence[SSAValue] | None]
"""Returns the replacements of a call's results, from its mapped operands; None to keep it."""

HEADS_LAST = [0, 2, 1, 3]
"""Permutation from (1, heads, users, size) to (1, users, heads, size)."""


@dataclass(frozen=True)
class DecodeCaches(ModulePass):
    """Updates KV caches from shards, and replaces permutations of unit dimensions by reshapes.

    A reshape in row-major form is used only if it saves time: adjacent calls require tiles."""

    name = "ttnn-decode-caches"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in functions(op):
            rewrite_calls(function, _Caches())
            # Attention may repeat the same positions.
            merge_common_subexpressions(function)
        apply_if_faster(ctx, op, ("permute",), lambda f: rewrite_calls(f, _reshaped_by_rows))


@dataclass(frozen=True)
class DecodeHeads(ModulePass):
    """Concatenates the heads of each user in decode by `nlp_concat_heads_decode`."""

    name = "ttnn-decode-heads"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in functions(op):
            rewrite_calls(function, _concatenated_heads)


def rewrite_calls(function: FuncOp, rule: Rule) -> bool:
    """Applies a rule to each call of a function in order, then erases unused calls.

    Returns whether anything changed."""
    classes = ttnn_op_classes()
    changed = False

    def rewrite(builder: OpBuilder, op: CatalogueOp) -> Sequence[SSAValue]:
        operands = [builder[value] for value in op.operands]
        made = rule(builder, op, operands)
        if made is None:
            keep(builder, op, operands)
            return op.results
        nonlocal changed
        changed = True
        return made

    rebuild(function, lambda insert, m: OpBuilder(classes, insert, m), rewrite)
    return erase_dead(function) or changed


class _Caches:
    """Rule for the cache updates and permutations of one function."""

    def __init__(self) -> None:
        self._positions: dict[tuple[SSAValue, int], SSAValue] = {}
        """Positions repeated per user, by scalar position and number of users."""

    def __call__(
        self, builder: OpBuilder, op: CatalogueOp, operands: Sequence[SSAValue]
    ) -> Sequence[SSAValue] | None:
        name = op.definition.short_name
        if name == "permute":
            return [_permuted(builder, operands[0], op.parameter("permutation"))]
        if name != "update_cache" or not _updates_users(op):
            return None
        cache, rows, position = operands
        users = shape_of(cache.type)[0]
        entry = _permuted(builder, rows, HEADS_LAST)
        if (position, users) not in self._positions:
            one = builder.reshape(position, [1])
            self._positions[position, users] = builder.repeat(one, [users])
        write_rows(builder, op, cache, entry, self._positions[position, users])
        return []


def _updates_users(op: CatalogueOp) -> bool:
    """Returns whether one core per user can write the rows of a cache update."""
    cache, rows = op.operand("cache"), op.operand("input")
    users, heads, _, size = shape_of(cache.type)
    return (
        op.parameter("compute_config") is None
        and users <= MOST_CACHED
        and heads <= TILE_SIDE
        and size % TILE_SIDE == 0
        and shape_of(rows.type)[2] == users
        and all(element_of(value.type) in (bf16, f32) for value in (cache, rows))
    )


def _reshaped_by_rows(
    builder: OpBuilder, op: CatalogueOp, operands: Sequence[SSAValue]
) -> Sequence[SSAValue] | None:
    if op.definition.short_name != "permute":
        return None
    return [_permuted(builder, operands[0], op.parameter("permutation"), by_rows=True)]


def _permuted(
    builder: OpBuilder, value: SSAValue, permutation: Sequence[int], by_rows: bool = False
) -> SSAValue:
    """Permutes a value, with a reshape if only unit dimensions move.

    Folds a permutation of a permutation. `by_rows`: whether the reshape may be row-major."""
    order = list(permutation)
    before = value.owner
    if isinstance(before, CatalogueOp) and before.definition.short_name == "permute":
        order = [before.parameter("permutation")[axis] for axis in order]
        value = before.operands[0]
    shape = shape_of(value.type)
    moved = [axis for axis in order if shape[axis] != 1]
    permuted = tuple(shape[axis] for axis in order)
    if moved == sorted(moved) and (by_rows or not suits_rows(value, permuted)):
        return reshaped(builder, value, permuted)
    return builder.permute(value, order)


def _concatenated_heads(
    builder: OpBuilder, op: CatalogueOp, operands: Sequence[SSAValue]
) -> Sequence[SSAValue] | None:
    """Replaces a reshape of (users, heads, size) to (users, heads * size).

    Unit dimensions are ignored."""
    if op.definition.short_name not in RESHAPES:
        return None
    shape = shape_of(operands[0].type)
    leading = [size for size in shape[:-2] if size != 1]
    if len(shape) < 3 or len(leading) != 1:
        return None
    (users,), (count, size) = leading, shape[-2:]
    rows = op.result_shape
    element = element_of(operands[0].type)
    if (
        rows[-1] != count * size
        or prod(rows[:-1]) != users
        or not 1 < count <= TILE_SIDE
        or size % TILE_SIDE
        or users != MOST_USERS  # The call returns a full tile: fewer users would need a slice.
        or element not in (bf16, f32)
    ):
        return None
    by_user = builder.reshape(operands[0], [1, users, count, size])
    type_ = tensor_type(element, (1, 1, MOST_USERS, count * size))
    made = builder.emit("nlp_concat_heads_decode", [by_user], type_, num_heads=count)
    return [reshaped(builder, made, rows)]


_NARROW = (DataType.BFLOAT16, DataType.BFLOAT8_B, DataType.BFLOAT4_B)


def choose_fidelities(function: FuncOp) -> None:
    """Sets HiFi2 with packer accumulation in L1 for convolutions of operands up to 16 bits.

    Matmuls have these defaults; a convolution without a config runs in HiFi4."""
    name = COMPUTE_CONFIG_ATTRIBUTE.name
    config = ComputeConfigAttr(ComputeConfig(MathFidelity.HIFI2, packer_l1_acc=True))
    for op in function.walk():
        if (
            isinstance(op, CatalogueOp)
            and call_kind(op.definition.short_name) is CallKind.CONVOLUTION
            and op.parameter(name) is None
            and all(declared_data_type(value) in _NARROW for value in op.operands)
        ):
            op.properties[name] = config


# Block-float weights of matmuls: half or a quarter of the bytes that each run reads.

TYPES = {"bfp_bf8": DataType.BFLOAT8_B, "bfp_bf4": DataType.BFLOAT4_B}
"""Weight types by their names in pipeline options."""
_WIDER = (DataType.FLOAT32, DataType.BFLOAT16)


@dataclass(frozen=True)
class WeightTypes(ModulePass):
    """Converts const-eval right operands of matmuls to block floats."""

    name = "ttnn-weight-dtype-conversion"

    target: str = "none"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        data_type = TYPES.get(self.target)
        if data_type is None:
            return
        for function in functions(op):
            if not is_const_eval(function):
                _convert_weights(function, data_type)


def _convert_weights(function: FuncOp, data_type: DataType) -> None:
    constants = constant_values(function)
    made: dict[SSAValue, SSAValue] = {}
    for op in list(body_of(function).ops):
        if isinstance(op, CatalogueOp) and has_trait(op, Trait.MATRIX_PRODUCT):
            narrow(op, data_type, constants, made)


def narrow(
    op: CatalogueOp,
    data_type: DataType,
    constants: Container[SSAValue],
    made: dict[SSAValue, SSAValue],
) -> bool:
    """Converts the right operand of a matmul to a narrower type, if it is a const-eval value.

    Args:
        op: the matmul.
        data_type: type of the converted operand.
        constants: const-eval values.
        made: maps operands to converted ones, so that each is converted once.

    Returns:
        Whether the operand was converted.
    """
    value = op.operands[1]
    if value not in constants:
        return False
    placement = placement_of(value)
    if placement.data_type not in _WIDER or placement.layout is not Layout.TILE:
        return False
    if placement.memory is Memory.HOST:
        return False
    if value not in made:
        block = op.parent_block()
        assert block is not None
        builder = OpBuilder(ttnn_op_classes(), lambda new: block.insert_op_before(new, op))
        builder.origin = op
        made[value] = _narrowed(builder, value, placement.with_(data_type=data_type))
    op.operands[1] = made[value]
    return True


def _narrowed(builder: OpBuilder, value: SSAValue, target: TensorPlacement) -> SSAValue:
    """Returns a weight in a block-float type, converted where it keeps most of its accuracy.

    Packers of cores cut mantissas of four bits off, which makes results smaller with each layer;
    the host rounds to nearest (docs/numbers.md). Constants are computed once, so that the
    transfers cost nothing later.
    """
    steps: list[tuple[str, TensorPlacement]] = [("composite_to_layout", target)]
    if target.data_type is DataType.BFLOAT4_B:
        on_host = placement_of(value).on_host()
        rounded = on_host.with_(data_type=target.data_type)
        steps = [("from_device", on_host), ("typecast", rounded), ("to_device", target)]
    narrowed = value
    for name, placement in steps:
        narrowed = builder.emit(name, [narrowed], placed_type(placement))
        narrowed.name_hint = value.name_hint
    return narrowed
