"""Lowering of TTIR to TTNN, and the calls of functions that run on the CPU."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, UnregisteredOp
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import BlockArgument, SSAValue
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import VerifyException

from ttcodegen.dialects.operations.functions import is_cpu_function
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.dialects.ttcore.shards import LAYOUTS_WANTED
from ttcodegen.foundation.diagnostics import CompileError, Diagnostics
from ttcodegen.foundation.messages import Level, report
from ttcodegen.ops.core.builder import OpBuilder
from ttcodegen.ops.core.definition import TTIRDefinition
from ttcodegen.ops.dialects import TTNNOp, ttnn_op_classes
from ttcodegen.ops.indexing.embedding import is_gathered
from ttcodegen.ops.reduction.exact_extremes import needs_all_bits
from ttcodegen.transforms.rewriting import body_of, keep, rebuild
from ttcodegen.transforms.ttir.own_buffers import drop_clones
from ttcodegen.transforms.ttnn.layout import RemoveDeadValues, assign_wanted_layouts

# Each TTIR op is lowered by the `lower` rule of its definition.


def lower_op(builder: OpBuilder, op: CatalogueOp) -> SSAValue | Sequence[SSAValue]:
    """Lowers one TTIR op to TTNN ops; a TTNN op is kept.

    Raises:
        CompileError: if the op has no lowering, or none for these operands and attributes.
    """
    if isinstance(op, TTNNOp):
        keep(builder, op, [builder[value] for value in op.operands])
        return op.results
    definition = op.definition
    assert isinstance(definition, TTIRDefinition)
    if definition.lower is None:
        reason = definition.refusal
        raise CompileError(
            f"'{op.name}' is not supported by this target" + (f": {reason}" if reason else ""),
            op.source_offset,
            remedy="run --ttir-decompose first" if definition.decompose and not reason else None,
        )
    try:
        return definition.lower(builder, op)
    except VerifyException as error:
        raise CompileError(str(error), op.source_offset) from None


def _refuse_other_ops(module: ModuleOp) -> None:
    """Raises CompileError that lists all TTIR ops outside of the catalogue.

    These describe the work of single cores, which has no ttnn calls."""
    diagnostics = Diagnostics()
    for op in module.walk():
        if op.dialect_name() == "ttir" and not isinstance(op, CatalogueOp | UnregisteredOp):
            diagnostics.error(f"'{op.name}' has no lowering to TTNN", op)
    diagnostics.raise_errors()


def _note_all_bits(module: ModuleOp) -> None:
    """Reports f32 extremes and lookups that take several calls in order to be exact."""
    count = sum(isinstance(op, CatalogueOp) and needs_all_bits(op) for op in module.walk())
    if count:
        noun = "maxima or minima" if count > 1 else "maximum or minimum"
        report(
            Level.INFO,
            f"ttcodegen: note: {count} {noun} of f32 in several calls that keep all bits, "
            "for what follows compares, selects or subtracts",
        )
    found = (each for each in module.walk() if isinstance(each, CatalogueOp))
    tables = sum(each.name == "ttir.embedding" and is_gathered(each) for each in found)
    if tables:
        noun = "lookups" if tables > 1 else "lookup"
        report(
            Level.INFO,
            f"ttcodegen: note: {tables} {noun} in tables as a gather of elements, which keeps all "
            "bits: the library's embedding has bf16 only",
        )


@dataclass(frozen=True)
class ConvertTTIRToTTNN(ModulePass):
    """Lowers every TTIR op.

    The next pass assigns layouts; if `ttnn-layout` ran before this one, they are assigned here."""

    name = "convert-ttir-to-ttnn"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        _refuse_other_ops(op)
        _note_all_bits(op)
        classes = ttnn_op_classes()
        for function in op.walk():
            if isinstance(function, FuncOp):
                rebuild(function, lambda insert, m: OpBuilder(classes, insert, m), lower_op)
                drop_clones(function)
        if LAYOUTS_WANTED in op.attributes:
            RemoveDeadValues().apply(ctx, op)
            assign_wanted_layouts(ctx, op)


# Functions that run on the CPU, and their calls.


def cpu_functions(module: ModuleOp) -> list[FuncOp]:
    """Returns the functions of a module that run on the CPU, in order."""
    found = (op for op in module.body.block.ops if isinstance(op, FuncOp))
    return [function for function in found if is_cpu_function(function)]


def overwritten_arguments(function: FuncOp) -> list[int]:
    """Returns the positions of the arguments that a function overwrites."""
    found: set[int] = set()
    for op in body_of(function).ops:
        if isinstance(op, CatalogueOp) and op.definition.in_place is not None:
            value = op.operand(op.definition.in_place)
            if isinstance(value, BlockArgument):
                found.add(value.index)
    return sorted(found)


def overwritten_operands(call: CallOp) -> Sequence[SSAValue]:
    """Returns the operands that a call overwrites."""
    module = call.get_toplevel_object()
    assert isinstance(module, ModuleOp)
    symbol = call.callee.string_value()
    for function in cpu_functions(module):
        if function.sym_name.data == symbol:
            return [call.operands[index] for index in overwritten_arguments(function)]
    return ()
