"""Data types of activations: block floats between the calls of a function."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Operation, SSAValue, Use
from xdsl.passes import ModulePass

from ttcodegen.dialects.core.datatypes import DataType
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.dialects.ttcore.dialect import LoadCachedOp
from ttcodegen.dialects.ttcore.shards import Layout, Memory
from ttcodegen.dialects.ttnn.placement import given_placement, placed_type, placement_of
from ttcodegen.foundation.messages import Level, report
from ttcodegen.ops.core.definition import TTNNDefinition, has_trait
from ttcodegen.ops.core.traits import CallKind, Trait, no_flops
from ttcodegen.optimizer.overrides.overrides import FunctionOverrides, overrides_of
from ttcodegen.transforms.const_eval import constant_calls, is_const_eval
from ttcodegen.transforms.rewriting import body_of, erase, functions, set_type
from ttcodegen.transforms.ttir.source_types import note_unused_weight_type
from ttcodegen.transforms.ttnn.layout import operand_specs

TYPES = {"bfp_bf8": DataType.BFLOAT8_B}
"""Data types that activations may have; 4 bits are too few for sums and norms."""
_WIDER = (DataType.BFLOAT16, DataType.FLOAT32)
_CAST = "composite_to_layout"
_ORIGINS = frozenset({CallKind.PRODUCT, CallKind.CONVOLUTION})
"""Calls whose results are activations whatever their operands are; the others pass these on."""

_TOLERANT = _ORIGINS | {
    *(CallKind.NORMALIZATION, CallKind.ATTENTION, CallKind.ATTENTION_OF_ONE),
    *(CallKind.POOLING, CallKind.INTERPOLATION, CallKind.CACHE_WRITE),
}
"""Calls whose operands may lose digits even where their results must not."""


@dataclass(frozen=True)
class ActivationTypes(ModulePass):
    """Makes block floats of activations between calls that take them.

    Inputs and results of functions, carried tensors of loops, masks, and what is compared, indexed
    with, converted or reduced keep their data type (`TTNNDefinition.block_floats`).
    """

    name = "ttnn-activation-dtype-conversion"

    target: str = "none"
    overrides: str = ""
    """The text of a file of overrides, whose data types take precedence."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        data_type = TYPES.get(self.target)
        if data_type is None:
            return
        for function in op.walk():
            if isinstance(function, FuncOp) and not is_const_eval(function):
                given = overrides_of(self.overrides, function)
                _Activations(function, data_type, given).convert()


def note_kept_types(module: ModuleOp, activations: str, weights: str) -> None:
    """Notes that a lowered module has no activations, or no weights, that are block floats."""
    made, once = _block_floats(module)
    if not made:
        report(
            Level.INFO,
            f"ttcodegen: note: no activation can be {activations}: there are none between products,"
            " norms and sums alone",
        )
    if weights and not once:
        note_unused_weight_type(weights)


def _block_floats(module: ModuleOp) -> tuple[bool, bool]:
    """True if calls of each run return block floats; true if what is computed once does."""
    found = {True: False, False: False}
    for function in functions(module):
        for op in body_of(function).ops:
            once = is_const_eval(function) or isinstance(op, LoadCachedOp)
            found[once] |= any("bfp_bf" in str(result.type) for result in op.results)
    return found[False], found[True]


class _Activations:
    """The activations of a function that become block floats."""

    def __init__(self, function: FuncOp, data_type: DataType, overrides: FunctionOverrides) -> None:
        self._function = function
        self._data_type = data_type
        self._overrides = overrides
        self._constant = constant_calls(function)
        self._activations = _activations(function)
        self._exact = _exact(function)
        self._found: dict[SSAValue, None] = {}
        """The values that become block floats, in the order of the function."""

    def convert(self) -> None:
        """Changes the types of all values that may be block floats, and the calls' data types."""
        self._find()
        for value in self._found:
            set_type(value, placed_type(placement_of(value).with_(data_type=self._data_type)))
        for op in list(body_of(self._function).ops):
            if not isinstance(op, CatalogueOp) or self._found.keys().isdisjoint(
                (*op.operands, *op.results)
            ):
                continue
            if _is_cast(op) and op.results[0] in self._found:
                op.results[0].replace_all_uses_with(op.operands[0])
                erase(op)
            elif _takes_data_type(op):
                result = placement_of(op.results[0]).data_type
                op.properties["dtype"] = op.definition.attribute("dtype").kind.encode(result)

    def _find(self) -> None:
        """Starts with all that could be, and drops what a producer or a user needs otherwise."""
        for op in body_of(self._function).ops:
            if op not in self._constant and self._may_give(op):
                self._found.update(dict.fromkeys(op.results))
        pending = list(self._found)
        while pending:
            value = pending.pop()
            if value not in self._found or self._agrees(value):
                continue
            del self._found[value]
            pending += (each for each in _neighbours(value) if each in self._found)

    def _may_give(self, op: Operation) -> bool:
        """True if a call can return block floats instead of wider floats in tiles."""
        if not isinstance(op, CatalogueOp) or not (_is_cast(op) or _takes_block_floats(op)):
            return False
        placements = [given_placement(result) for result in op.results]
        entry = self._overrides[op]
        wanted = None if entry is None else entry.get("data_type")
        if not self._exact.isdisjoint(op.results):
            return False
        return wanted in (None, self._data_type.mlir) and all(
            placement is not None
            and placement.data_type in _WIDER
            and placement.layout is Layout.TILE
            and placement.memory is Memory.DEVICE
            for placement in placements
        )

    def _agrees(self, value: SSAValue) -> bool:
        op = value.owner
        assert isinstance(op, CatalogueOp)
        return self._is_made(op) and all(self._is_taken(use) for use in value.uses)

    def _is_made(self, op: CatalogueOp) -> bool:
        """True if a call with these operands returns block floats, and all of its results may."""
        if any(result not in self._found for result in op.results):
            return False
        if not _takes_data_type(op):
            return self._is_narrow(op.operands[0])
        # A sum of other tensors may be a mask, or positions.
        return _kind(op) in _ORIGINS or any(each in self._activations for each in op.operands)

    def _is_narrow(self, value: SSAValue) -> bool:
        placement = given_placement(value)
        return value in self._found or (
            placement is not None and placement.data_type is self._data_type
        )

    def _is_taken(self, use: Use) -> bool:
        """True if a user of a value takes it as block floats."""
        op = use.operation
        if not isinstance(op, CatalogueOp) or op in self._constant:
            return False
        if not (_is_cast(op) or use.index in _operands(op)):
            return False
        # A call that takes the data type of its result may have operands of another one.
        return _takes_data_type(op) or all(result in self._found for result in op.results)


def _activations(function: FuncOp) -> set[SSAValue]:
    """Values that come from products, convolutions or embeddings, by calls that keep their kind."""
    found: set[SSAValue] = set()
    for op in body_of(function).ops:
        if not isinstance(op, CatalogueOp) or not isinstance(op.definition, TTNNDefinition):
            continue
        starts = _kind(op) in _ORIGINS or op.definition.short_name == "embedding"
        passes = _takes_block_floats(op) or op.definition.flops is no_flops
        if starts or (passes and any(value in found for value in op.operands)):
            found.update(op.results)
    return found


def _exact(function: FuncOp) -> set[SSAValue]:
    """Values that are compared, ordered, indexed with or reduced, and those they are sums of."""
    found: set[SSAValue] = set()
    for op in reversed(list(body_of(function).ops)):
        if not _is_tolerant(op, found):
            found.update(op.operands)
        elif isinstance(op, CatalogueOp) and _takes_block_floats(op):
            # Masks of attention.
            taken = _operands(op)
            found.update(each for n, each in enumerate(op.operands) if n not in taken)
    return found


def _is_tolerant(op: Operation, exact: set[SSAValue]) -> bool:
    """True if an op takes operands of fewer digits, with these values known to be exact."""
    if isinstance(op, ReturnOp):
        return True
    if not isinstance(op, CatalogueOp) or not isinstance(op.definition, TTNNDefinition):
        return False
    kind, definition = _kind(op), op.definition
    if definition.short_name == "softmax":
        return _is_product(op.operands[0])
    if kind in _TOLERANT:
        return True
    follows = _takes_block_floats(op) or definition.flops is no_flops
    return follows and exact.isdisjoint(op.results) and _gives_floats(op)


def _gives_floats(op: CatalogueOp) -> bool:
    return all(placement_of(result).data_type.is_float for result in op.results)


def _neighbours(value: SSAValue) -> Iterator[SSAValue]:
    """Values whose data type may follow from that of `value`."""
    op = value.owner
    if isinstance(op, Operation):
        yield from op.operands
        yield from op.results
    for use in value.uses:
        yield from use.operation.operands
        yield from use.operation.results


def _kind(op: CatalogueOp) -> CallKind:
    definition = op.definition
    assert isinstance(definition, TTNNDefinition)
    return definition.call_kind


def _takes_data_type(op: CatalogueOp) -> bool:
    """True if the call takes the data type of its result."""
    definition = op.definition
    return (
        isinstance(definition, TTNNDefinition)
        and len(op.results) > 0
        and definition.result_rule(0).data_type == "attribute"
    )


def _takes_block_floats(op: CatalogueOp) -> bool:
    return isinstance(op.definition, TTNNDefinition) and bool(op.definition.block_floats)


def _operands(op: CatalogueOp) -> set[int]:
    """Indices of the operands that may be block floats."""
    definition = op.definition
    assert isinstance(definition, TTNNDefinition)
    return {
        index
        for index, spec in enumerate(operand_specs(op))
        if spec.name in definition.block_floats
        and (spec.data_types is None or DataType.BFLOAT8_B in spec.data_types)
    }


def _is_cast(op: CatalogueOp) -> bool:
    """True if a change of layout changes the data type alone, from floats to floats."""
    if op.definition.short_name != _CAST:
        return False
    source, target = placement_of(op.operands[0]), placement_of(op.results[0])
    return source.data_type.is_float and source.with_(data_type=target.data_type) == target


def _is_product(value: SSAValue) -> bool:
    """True for a matmul, scaled or reshaped: scores that no mask was added to.

    In a block of 16 scores, a large negative one would leave no bits to the others.
    """
    op = value.owner
    if not isinstance(op, CatalogueOp):
        return False
    if has_trait(op, Trait.MATRIX_PRODUCT):
        return len(op.operands) == 2
    scales = op.definition.short_name == "multiply" and len(op.operands) == 1
    return (scales or op.definition.rearranges or _is_cast(op)) and _is_product(op.operands[0])
