"""Calls as a release of tt-metal takes them, where its rules differ from the catalogue's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass

from ttcodegen.dialects.core.datatypes import DataType, element_of, shape_of
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
    only beside tensors of one data type, none of 16-bit integers (`Release.numbers`).
    """

    name = "ttnn-fit-release"

    release: str = DEFAULT_RELEASE

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        numbers = release_named(self.release).numbers
        if not numbers:
            return
        classes = ttnn_op_classes()

        def rewrite(builder: OpBuilder, call: CatalogueOp) -> SSAValue | tuple[SSAValue, ...]:
            operands = [builder[value] for value in call.operands]
            if (places := numbers.get(call.name)) is not None and _is_refused(call):
                return _with_tensors(builder, call, places)
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
