"""Queries, keys and values of one input become one product, which the library splits into heads."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from ttcodegen.dialects.datatypes import element_of, shape_of, tensor_type
from ttcodegen.dialects.operation import CatalogueOp
from ttcodegen.dialects.tile import TILE_SIDE
from ttcodegen.ops.data_movement import reshaped
from ttcodegen.ops.definition import has_trait
from ttcodegen.ops.op_builder import OpBuilder
from ttcodegen.ops.traits import Trait
from ttcodegen.ops.ttnn import ttnn_op_classes
from ttcodegen.optimizer.dense_rows import RESHAPES
from ttcodegen.optimizer.overrides import overrides_of
from ttcodegen.transforms.const_eval_hoist import constant_values
from ttcodegen.transforms.rebuilding import body_of
from ttcodegen.transforms.rewriting import erase_dead

HEADS_FIRST = [0, 2, 1, 3]


@dataclass(frozen=True)
class FuseProjections(ModulePass):
    """Weights that are constant are put side by side once, and the input is read once."""

    name = "ttnn-fuse-projections"

    overrides: str = ""
    """The text of a file of overrides: some say that a call is to stay apart."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in op.walk():
            if isinstance(function, FuncOp):
                given = overrides_of(self.overrides, function)
                for group in _groups(function):
                    if not given.keeps_apart(*(op for p in group for op in (p.heads, p.product))):
                        _fuse(body_of(function), group)
                erase_dead(function)


@dataclass(frozen=True)
class _Projection:
    """`permute(reshape(linear(x, weight, bias)))`: heads of one input."""

    heads: CatalogueOp
    product: CatalogueOp

    @property
    def count(self) -> int:
        """How many heads."""
        return self.heads.result_shape[1]


def _projection(op: Operation, constants: set[SSAValue]) -> _Projection | None:
    if not isinstance(op, CatalogueOp) or op.definition.short_name != "permute":
        return None
    if op.parameter("permutation") != HEADS_FIRST or op.result_shape[3] % TILE_SIDE:
        return None
    value, batch = op.operands[0], op.result_shape[0]
    while isinstance(value.owner, CatalogueOp) and value.owner.definition.short_name in RESHAPES:
        value = value.owner.operands[0]
    product = value.owner
    if not isinstance(product, CatalogueOp) or len(shape_of(value.type)) < 2:
        return None
    if not has_trait(product, Trait.MATRIX_PRODUCT):
        return None
    settings = ("transpose_a", "activation", "dtype")
    if any(product.parameter(name) for name in settings) or batch < 1:
        return None
    whole = op.result_shape[1] * op.result_shape[3]
    fits = shape_of(value.type)[-1] == whole and len(product.shape("b")) == 2
    fixed = all(operand in constants for operand in product.operands[1:])
    return _Projection(op, product) if fits and fixed else None


def _groups(function: FuncOp) -> Iterator[list[_Projection]]:
    """Three projections each of one input: one of the query, two of as many heads."""
    constants = constant_values(function)
    found: dict[object, list[_Projection]] = {}
    for op in body_of(function).ops:
        projection = _projection(op, constants)
        if projection is not None:
            product = projection.product
            batch, _, sequence, size = projection.heads.result_shape
            key = (
                product.operands[0],
                product.definition.short_name,
                product.parameter("transpose_b"),
                product.parameter("compute_config"),
                (batch, sequence, size),
                str(element_of(projection.heads.results[0].type)),
                len(product.operands),
            )
            found.setdefault(key, []).append(projection)
    for group in found.values():
        counts = sorted({projection.count for projection in group})
        if len(group) == 3 and len(counts) <= 2:
            group.sort(key=lambda p: -p.count)
            if group[1].count == group[2].count:
                yield group


def _fuse(block: Block, group: list[_Projection]) -> None:
    first = min((p.heads for p in group), key=lambda op: _index(block, op))
    needed = [operand for p in group for operand in p.product.operands[1:]]
    for value in needed:
        _move_before(block, value, first)
    builder = OpBuilder(ttnn_op_classes(), lambda made: block.insert_op_before(made, first))
    product = group[0].product
    builder.origin = product
    across = 0 if product.parameter("transpose_b") else 1
    weight = _side_by_side(builder, [p.product.operands[1] for p in group], across)
    operands = [product.operands[0], weight]
    if len(product.operands) > 2:
        rows = [p.product.operands[2] for p in group]
        flat = [reshaped(builder, row, (1, shape_of(row.type)[-1])) for row in rows]
        operands.append(_side_by_side(builder, flat, 1))
    width = shape_of(weight.type)[across]
    batch, heads, sequence, _ = group[0].heads.result_shape
    element = element_of(product.results[0].type)
    made = builder.emit(
        product.definition.short_name,
        operands,
        tensor_type(element, (*product.result_shape[:-1], width)),
        transpose_b=product.parameter("transpose_b"),
        compute_config=product.parameter("compute_config"),
    )
    rows = reshaped(builder, made, (batch, sequence, width))
    key_heads = group[1].count
    split = builder.emit_op(
        "split_query_key_value_and_split_heads",
        [rows, None],
        [p.heads.results[0].type for p in group],
        num_heads=heads,
        num_kv_heads=None if key_heads == heads else key_heads,
        transpose_key=False,
    )
    for projection, result in zip(group, split.results, strict=True):
        result.name_hint = projection.heads.results[0].name_hint
        Rewriter.replace_op(projection.heads, [], [result])


def _side_by_side(builder: OpBuilder, values: list[SSAValue], dim: int) -> SSAValue:
    shape = list(shape_of(values[0].type))
    shape[dim] = sum(shape_of(value.type)[dim] for value in values)
    return builder.emit("concat", [values], tensor_type(element_of(values[0].type), shape), dim=dim)


def _index(block: Block, op: Operation) -> int:
    return block.get_operation_index(op)


def _move_before(block: Block, value: SSAValue, anchor: Operation) -> None:
    """Moves what makes a constant before an op."""
    op = value.owner
    if not isinstance(op, Operation) or _index(block, op) < _index(block, anchor):
        return
    for operand in op.operands:
        _move_before(block, operand, anchor)
    op.detach()
    block.insert_op_before(op, anchor)
