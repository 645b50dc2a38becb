"""Separation of buffers: each tensor that ops overwrite gets a buffer of its own.

Values are immutable but for in-place ops, which change a single value. Since a reshape may share
the buffer of its operand, and no-op movement is dropped, such an op could overwrite two values; the
value is then cloned. Clones also separate the value after a write from the op that computed it, so
that nothing is folded across the write.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, BlockArgument, Operation, OpResult, SSAValue
from xdsl.passes import ModulePass

from ttcodegen.dialects.core.datatypes import element_of, normalized_data_type, shape_of
from ttcodegen.dialects.operations.functions import body_of
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.foundation.diagnostics import copy_source_offset
from ttcodegen.ops.core.definition import TTIRDefinition, TTNNDefinition
from ttcodegen.ops.dialects import ttir_op_classes
from ttcodegen.transforms.rewriting import erase, functions

CLONE = "ttir.clone"
"""Op that copies a value to a buffer of its own."""
_TTNN_CLONE = "ttnn.clone"
_PERMUTATIONS = frozenset({"permute", "transpose"})


@dataclass(frozen=True)
class TTIROwnBuffers(ModulePass):
    """Clones views that are used after their buffer is overwritten, and overwritten results.

    `drop_clones` removes the clones that turn out to be redundant.
    """

    name = "ttir-own-buffers"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in functions(op):
            if function.body.blocks:
                _separate(body_of(function))


def _separate(block: Block) -> None:
    positions = {op: index for index, op in enumerate(block.ops)}
    writes: dict[SSAValue, list[int]] = {}
    for op, index in positions.items():
        if (value := _overwritten(op)) is not None:
            writes.setdefault(value, []).append(index)
    if not writes:
        return
    shared: list[SSAValue] = []
    for value, at in writes.items():
        _find_views(value, at[-1], at, positions, set(writes), shared)
    for value in dict.fromkeys((*writes, *shared)):
        if isinstance(value, OpResult) and value.op.name not in (CLONE, _TTNN_CLONE):
            _clone(block, value)


def _find_views(
    value: SSAValue,
    last: int,
    writes: list[int],
    positions: Mapping[Operation, int],
    overwritten: set[SSAValue],
    found: list[SSAValue],
) -> None:
    """Collects the views of a value that are created before a write to it and used after it."""
    for view in _views(value):
        if view in overwritten or (made := positions[view.op]) > last:
            continue
        used = max(_uses(view, positions), default=made)
        if any(made < at < used for at in writes):
            found.append(view)


def _uses(value: SSAValue, positions: Mapping[Operation, int]) -> Iterator[int]:
    """Yields the positions of the users of a value and of its views."""
    waiting, seen = [value], {value}
    while waiting:
        current = waiting.pop()
        yield from (positions[use.operation] for use in current.uses if use.operation in positions)
        fresh = [view for view in _views(current) if view not in seen]
        seen.update(fresh)
        waiting += fresh


def _views(value: SSAValue) -> Iterator[OpResult]:
    """Yields the results that may share the buffer of a value."""
    for use in value.uses:
        op = use.operation
        if isinstance(op, CatalogueOp) and may_share(op, value):
            yield op.results[0]


def may_share(op: CatalogueOp, value: SSAValue) -> bool:
    """Returns whether the first result of an op may alias an operand, as for reshapes and
    no-ops."""
    definition = op.definition
    if isinstance(definition, TTNNDefinition):
        if not definition.may_alias and not definition.rearranges:
            return False
    elif not isinstance(definition, TTIRDefinition) or not definition.moves:
        return False
    if not op.results or prod(shape_of(value.type)) != prod(shape_of(op.results[0].type)):
        return False
    types = {normalized_data_type(element_of(v.type)) for v in (value, op.results[0])}
    if len(types) > 1:
        return False
    return op.name.partition(".")[2] not in _PERMUTATIONS or _keeps_order(op)


def _keeps_order(op: CatalogueOp) -> bool:
    """Returns whether a permutation keeps the order of the dimensions larger than 1."""
    shape = shape_of(op.operands[0].type)
    order = list(range(len(shape)))
    if op.name.endswith("permute"):
        order = list(op.parameter("permutation"))
    else:
        first, second = op.parameter("dim0"), op.parameter("dim1")
        order[first], order[second] = order[second], order[first]
    kept = [axis for axis in order if shape[axis] != 1]
    return kept == sorted(kept)


def _overwritten(op: Operation) -> SSAValue | None:
    if not isinstance(op, CatalogueOp) or op.definition.in_place is None:
        return None
    return op.operand(op.definition.in_place)


def _clone(block: Block, value: OpResult) -> None:
    """Replaces all uses of a value by a clone."""
    clone = ttir_op_classes()["clone"].create(operands=[value], result_types=[value.type])
    clone.location = value.op.location
    copy_source_offset(value.op, clone)
    clone.results[0].name_hint = value.name_hint
    block.insert_op_after(clone, value.op)
    value.replace_uses_with_if(clone.results[0], lambda use: use.operation is not clone)


def drop_clones(function: FuncOp) -> None:
    """Erases clones of call results whose buffer no other value shares."""
    for op in list(body_of(function).ops):
        if op.name == _TTNN_CLONE and _is_alone(op.operands[0]):
            op.results[0].replace_all_uses_with(op.operands[0])
            erase(op)


def _is_alone(value: SSAValue) -> bool:
    """Returns whether a value has a single use and no other value shares its buffer."""
    while value.has_one_use():
        if isinstance(value, BlockArgument):
            return False
        op = value.owner
        if not isinstance(op, CatalogueOp) or not isinstance(op.definition, TTNNDefinition):
            return False
        if not op.definition.may_alias and not op.definition.rearranges:
            return True
        if not op.operands:
            return True
        value = op.operands[0]
    return False
