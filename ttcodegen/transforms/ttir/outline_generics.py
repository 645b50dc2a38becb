"""Outlines regions of `ttir.generic` to functions, so that function passes see their ops.

A generic is outlined if its region computes on whole tensors: its arguments have the types of the
operands, its ops are TTIR ops. `ttir-to-ttir-generic` turns the functions back into generics, and
`inline` leaves only the ops.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from xdsl.context import Context
from xdsl.dialects.builtin import (
    DenseArrayBase,
    DictionaryAttr,
    FunctionType,
    ModuleOp,
    StringAttr,
    TensorType,
    UnitAttr,
    i64,
)
from xdsl.dialects.func import CallOp, FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter
from xdsl.utils.exceptions import VerifyException

from ttcodegen.dialects.core.datatypes import without_encoding
from ttcodegen.dialects.operations.functions import GENERIC, change_types
from ttcodegen.dialects.operations.operation import CatalogueOp, operation_name
from ttcodegen.dialects.ttir.generic import (
    GenericOp,
    StreamLayoutOp,
    ViewLayoutOp,
    YieldOp,
    elements_of,
)
from ttcodegen.emitc.spelling import NameScope
from ttcodegen.foundation.diagnostics import (
    CompileError,
    Diagnostic,
    copy_source_offset,
    source_offset,
)
from ttcodegen.transforms.rewriting import erase, functions

_REMEDY = (
    "let the region hold ops of TTIR on its arguments, tensors of the types of the operands, and "
    "ttir.yield what they give"
)
_KEPT = ("grid", "indexing_maps", "iterator_types")
"""Attributes of a generic that describe its program."""
STREAMED = "streamed"
"""Attribute with the indices of streamed inputs and outputs."""


@dataclass(frozen=True)
class OutlineGenerics(ModulePass):
    """Outlines generics that compute on whole tensors; raises CompileError as `outline_generics`
    does."""

    name = "ttir-outline-generics"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        outline_generics(op)


def outline_generics(module: ModuleOp) -> None:
    """Outlines each `ttir.generic` on tensors to a private function.

    Raises:
        CompileError: with one diagnostic for each generic whose region cannot be outlined.
    """
    found: list[Diagnostic] = []
    symbols = NameScope(function.sym_name.data for function in functions(module))
    for function in functions(module):
        generics = [op for op in function.walk() if _computes_tensors(op)]
        if not generics:
            continue
        change_types(function, without_encoding)
        streamed = {op: streamed_operands(op) for op in generics if isinstance(op, GenericOp)}
        _drop_layouts(function)
        for op in generics:
            assert isinstance(op, GenericOp)
            fault = region_fault(op)
            if fault is None and _overwrites(op):
                fault = Diagnostic(
                    "ttir.generic: its region overwrites an operand, as those do that the lowering "
                    "made",
                    source_offset(op),
                    "run --inline=generics=true first",
                )
            if fault is not None:
                found.append(fault)
                continue
            symbol = symbols.unique(f"{function.sym_name.data}_generic")
            module.body.block.add_op(_outline(op, symbol, streamed[op]))
    if found:
        raise CompileError.from_diagnostics(found)


def _computes_tensors(op: Operation) -> bool:
    """Returns whether an op is a generic that returns or overwrites tensors of numbers."""
    if not isinstance(op, GenericOp) or not isinstance(op.parent_op(), FuncOp):
        return False
    written = op.outputs or (op.destinations if _overwrites(op) else ())
    return bool(written) and all(elements_of(value) is not None for value in written)


def _overwrites(op: GenericOp) -> bool:
    """Returns whether an op of the region writes an operand in place."""
    return any(
        isinstance(inner, CatalogueOp) and inner.definition.in_place is not None
        for body in op.bodies
        for inner in body.walk()
    )


def streamed_operands(op: GenericOp) -> list[int]:
    """Returns the indices of inputs and outputs that go through a circular buffer in any memory.

    These have one in `operand_cb_mapping`, or are results of `ttir.stream_layout`.
    """
    mapping = op.operand_cb_mapping
    numbers = () if mapping is None else cast("Any", mapping).iter_values()
    buffers = [int(number) for number in numbers]
    return [
        place
        for place, value in enumerate((*op.inputs, *op.destinations))
        if isinstance(value.owner, StreamLayoutOp) or (place < len(buffers) and buffers[place] >= 0)
    ]


def _drop_layouts(function: FuncOp) -> None:
    """Erases view and stream layouts that do not change the type."""
    for op in list(function.walk()):
        if isinstance(op, ViewLayoutOp | StreamLayoutOp) and op.input.type == op.result.type:
            Rewriter.replace_op(op, [], [op.input])


def region_fault(op: GenericOp) -> Diagnostic | None:
    """Returns the reason why a region cannot be outlined, or None."""
    fault = _fault_text(op)
    if fault is None:
        return None
    return Diagnostic(f"ttir.generic: {fault}", source_offset(op), _REMEDY)


def _fault_text(op: GenericOp) -> str | None:
    """Returns the reason as text, or None."""
    try:
        op.verify_()
    except VerifyException as error:
        return str(error).removeprefix(op.name).lstrip(": ")
    if len(op.bodies) != 1 or len(op.bodies[0].blocks) != 1:
        return f"its work is in {len(op.bodies)} regions, not in one that the kernels are made from"
    block = op.bodies[0].block
    arguments = _arguments(op, block)
    operands = [*op.inputs, *op.destinations]
    if len(arguments) != len(operands):
        return f"its region has {len(block.args)} arguments for {len(op.operands_)} operands"
    for argument, operand in zip(arguments, operands, strict=True):
        if _tensor_of(argument.type) != _tensor_of(operand.type):
            return f"its region takes {argument.type} of an operand that is {operand.type}"
    written = set[SSAValue]() if _overwrites(op) else set(arguments[len(op.inputs) :])
    for inner in block.ops:
        if not isinstance(inner, CatalogueOp | YieldOp):
            return f"its region holds '{operation_name(inner)}'"
        if written.intersection(inner.operands):
            return "its region reads what it is to write"
        if (name := _outside(inner, block)) is not None:
            return f"its region uses {name} of the function instead of an argument of its own"
    end = block.last_op
    given = [value.type for value in end.operands] if isinstance(end, YieldOp) else []
    if given != [result.type for result in op.outputs]:
        return "its region does not yield its results"
    return None


def _outside(op: Operation, block: Block) -> str | None:
    """Returns the name of an operand that the block does not define, or None."""
    for value in op.operands:
        owner = value.owner
        if (owner if isinstance(owner, Block) else owner.parent) is not block:
            return f"%{value.name_hint}" if value.name_hint else "a value"
    return None


def _tensor_of(type_: Attribute) -> Attribute:
    is_tensor = isinstance(type_, TensorType)
    return without_encoding(cast("Attribute", type_)) if is_tensor else type_


def _arguments(op: GenericOp, block: Block) -> Sequence[SSAValue]:
    """Returns the block arguments of inputs and outputs, without the circular buffers between
    them."""
    buffers = len(block.args) - len(op.inputs) - len(op.destinations)
    if buffers <= 0:
        return block.args
    return [*block.args[: len(op.inputs)], *block.args[len(op.inputs) + buffers :]]


def _outline(op: GenericOp, symbol: str, streamed: Sequence[int]) -> FuncOp:
    """Moves the region into a function and calls that."""
    block = op.bodies[0].block
    read = [*op.inputs, *(op.destinations if _overwrites(op) else ())]
    body = Block(arg_types=[value.type for value in read])
    for old, new in zip(_arguments(op, block), body.args, strict=False):
        new.name_hint = old.name_hint
        old.replace_all_uses_with(new)
    for inner in list(block.ops):
        inner.detach()
        if isinstance(inner, YieldOp):
            body.add_op(ReturnOp(*inner.values))
            inner.drop_all_references()
        else:
            body.add_op(inner)
    inputs, outputs = ([v.type for v in values] for values in (read, op.outputs))
    function = FuncOp(symbol, FunctionType.from_lists(inputs, outputs), Region(body))
    function.sym_visibility = StringAttr("private")
    copy_source_offset(op, function)
    said = {name: op.properties[name] for name in _KEPT}
    said[STREAMED] = DenseArrayBase.from_list(i64, streamed)
    function.attributes[GENERIC] = DictionaryAttr(said)
    call = CallOp(symbol, read, outputs)
    call.attributes[GENERIC] = UnitAttr()
    copy_source_offset(op, call)
    replace_generic(op, [call], call.results)
    return function


def replace_generic(op: GenericOp, made: Sequence[Operation], results: Sequence[SSAValue]) -> None:
    """Replaces a generic by ops, and erases empty tensors that only it wrote to."""
    destinations = list(op.destinations)
    Rewriter.replace_op(op, made, results)
    for value in destinations:
        owner = value.owner
        if isinstance(owner, CatalogueOp) and owner.name == "ttir.empty" and not value.uses:
            erase(owner)
