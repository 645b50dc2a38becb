"""Calls as a release of tt-metal takes them, where its rules differ from the catalogue's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass

from ttcodegen.dialects.core.datatypes import DataType, element_of, shape_of, ui32
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.dialects.ttnn.placement import declared_data_type
from ttcodegen.ops.core.builder import OpBuilder
from ttcodegen.ops.dialects import ttnn_op_classes
from ttcodegen.systems.releases import DEFAULT_RELEASE, release_named
from ttcodegen.transforms.rewriting import keep, rebuild


@dataclass(frozen=True)
class FitRelease(ModulePass):
    """Rewrites calls that a release refuses as it is, and the catalogue's takes.

    A number in an operand's place becomes a tensor of one element, where the release takes numbers
    only beside tensors of one data type, none of 16-bit integers (`Release.numbers`). Indices that
    it gives with 32 bits are of the type that the catalogue says again (`Release.wide_indices`).
    """

    name = "ttnn-fit-release"

    release: str = DEFAULT_RELEASE

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        release = release_named(self.release)
        if not (release.numbers or release.wide_indices):
            return
        classes = ttnn_op_classes()

        def rewrite(builder: OpBuilder, call: CatalogueOp) -> SSAValue | tuple[SSAValue, ...]:
            operands = [builder[value] for value in call.operands]
            if (places := release.numbers.get(call.name)) is not None and _is_refused(call):
                return _with_tensors(builder, call, places)
            if call.name in release.wide_indices and _has_wide_indices(call):
                return _with_wide_indices(builder, call, operands)
            keep(builder, call, operands)
            return tuple(call.results)

        for function in op.walk():
            if isinstance(function, FuncOp) and function.body.blocks:
                rebuild(function, lambda insert, m: OpBuilder(classes, insert, m), rewrite)


def _is_refused(call: CatalogueOp) -> bool:
    """True if operands of a call have several data types, or one of 16-bit integers."""
    found = {declared_data_type(value) for value in call.operands}
    return len(found) > 1 or DataType.UINT16 in found


def _with_tensors(builder: OpBuilder, call: CatalogueOp, places: Mapping[str, str]) -> SSAValue:
    """The call with tensors of one element in the place of its numbers."""
    (result,) = call.results
    element, rank = element_of(result.type), len(shape_of(result.type))
    operands: list[SSAValue | None] = []
    for spec in call.definition.operands:
        value = call.optional_operand(spec.name)
        if value is not None:
            operands.append(builder[value])
        elif (name := places.get(spec.name)) is not None:
            number = call.parameter(name)
            exact = number if declared_data_type(result).is_float else int(number)
            operands.append(builder.full([1] * rank, exact, element))
        else:
            operands.append(None)
    return builder.emit(call.definition.short_name, operands, result.type)


def _has_wide_indices(call: CatalogueOp) -> bool:
    """True if the release gives indices of 32 bits, and the call has others."""
    is_wide = declared_data_type(call.operands[0]) is DataType.FLOAT32
    return is_wide and declared_data_type(call.results[1]) is DataType.UINT16


def _with_wide_indices(
    builder: OpBuilder, call: CatalogueOp, operands: Sequence[SSAValue]
) -> tuple[SSAValue, ...]:
    """The call with indices of 32 bits, which are cast where they are used as they are."""
    values, indices = call.results
    words = {spec.name: call.parameter(spec.name) for spec in call.definition.attributes}
    wide = TensorType(ui32, shape_of(indices.type))
    made = builder.emit_op(call.definition.short_name, operands, [values.type, wide], **words)
    found = made.results[1]
    if any(use.operation.name != "ttnn.typecast" for use in indices.uses):
        found = builder.typecast(found, element_of(indices.type))
    return (made.results[0], found)
