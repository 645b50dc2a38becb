"""Hand-written device programs: completion, and semantics as functions of TTIR."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import cast

from xdsl.dialects.builtin import ModuleOp, NoneAttr, SymbolRefAttr, TensorType, UnitAttr
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import Attribute, Operation, SSAValue

from ttcodegen.dialects.core.datatypes import (
    element_of,
    normalized_data_type,
    shape_of,
    without_encoding,
)
from ttcodegen.dialects.operations.functions import KERNEL_THREAD, body_of, change_types
from ttcodegen.dialects.operations.operation import operation_name
from ttcodegen.dialects.ttmetal.device_module import (
    MEANING,
    functions_of,
    holds_programs,
    is_host_function,
    is_meaning,
    launch_of,
)
from ttcodegen.dialects.ttmetal.program_verification import verify_programs
from ttcodegen.dialects.ttmetal.programs import (
    CREATE_BUFFER,
    DEALLOCATE_BUFFER,
    ENQUEUE_READ_BUFFER,
    ENQUEUE_WRITE_BUFFER,
    RUN_PROGRAM,
    VIEW,
)
from ttcodegen.dialects.ttnn.placement import TensorPlacement, has_placement, placed_type
from ttcodegen.foundation.diagnostics import CompileError, copy_source_offset
from ttcodegen.ops.core.builder import OpBuilder
from ttcodegen.ops.dialects import ttir_op_classes

# Semantics of modules with device programs as functions of TTIR.


def call_meanings(module: ModuleOp) -> None:
    """Replaces each launch of a program by a call of the function that says what the program
    computes; kernels are removed, and tensors have no placement.

    Raises:
        CompileError: at a launch of a program whose meaning is a declaration only, or missing.
    """
    verify_programs(module)
    meanings = {each.sym_name.data: each for each in functions_of(module) if is_meaning(each)}
    for function in list(functions_of(module)):
        if KERNEL_THREAD in function.attributes:
            function.detach()
        elif is_host_function(function):
            _call_meanings(function, meanings)
    for function in functions_of(module):
        function.attributes.pop(MEANING, None)
        change_types(function, without_encoding)


def _call_meanings(function: FuncOp, meanings: Mapping[str, FuncOp]) -> None:
    """Goes through the ops in order, with what each buffer holds at its position."""
    held: dict[SSAValue, SSAValue] = {}
    replaced: list[Operation] = []
    block = body_of(function)
    for op in list(block.ops):
        operands = [held.get(operand, operand) for operand in op.operands]
        builder = OpBuilder(ttir_op_classes(), partial(block.insert_op_before, existing_op=op))
        builder.origin = op
        name = operation_name(op)
        if name == RUN_PROGRAM:
            launch = launch_of(op)
            results = _call(op, operands[: len(launch.inputs)], meanings[launch.meaning], builder)
            written = dict(zip(launch.outputs, results, strict=True))
        elif name == ENQUEUE_WRITE_BUFFER and len(operands) > 1:
            written = {op.operands[1]: operands[0]}
        elif name in (VIEW, ENQUEUE_READ_BUFFER) and len(operands) == 1:
            written = {op.results[0]: operands[0]}
        elif name in (CREATE_BUFFER, DEALLOCATE_BUFFER):
            written = {}
        else:
            op.operands = operands
            continue
        held |= {buffer: _as(builder, value, buffer.type) for buffer, value in written.items()}
        replaced.append(op)
    for op in reversed(replaced):
        op.detach()
        op.erase()


def _call(
    op: Operation, inputs: Sequence[SSAValue], meaning: FuncOp, builder: OpBuilder
) -> Sequence[SSAValue]:
    """Applies the TTIR meaning of a program to tensors."""
    if meaning.is_declaration:
        raise CompileError(
            f"this program has no meaning: @{meaning.sym_name.data} has no body",
            op,
            remedy="give it a body of TTIR ops",
        )
    types = meaning.function_type
    given = [
        _as(builder, value, type_) for value, type_ in zip(inputs, types.inputs.data, strict=True)
    ]
    call = CallOp(meaning.sym_name.data, given, list(types.outputs.data))
    copy_source_offset(op, call)
    builder.insert(call)
    return call.results


def _as(builder: OpBuilder, value: SSAValue, type_: Attribute) -> SSAValue:
    """A tensor with the shape and the element type of another."""
    return builder.typecast(builder.reshape(value, shape_of(type_)), element_of(type_))


# Completion of hand-written device programs with omitted attributes.


def complete_programs(module: ModuleOp) -> None:
    """Marks the functions that programs name as their meanings, and places tensors without a layout
    in DRAM, in tiles, as the lowering does; leaves modules without programs alone.

    Raises:
        CompileError: at an operand of a program that has another kind of layout.
    """
    named = {
        meaning.string_value()
        for op in module.walk()
        if operation_name(op) == RUN_PROGRAM
        and isinstance(meaning := op.properties.get("meaning"), SymbolRefAttr)
    }
    for function in functions_of(module):
        if function.sym_name.data in named:
            function.attributes[MEANING] = UnitAttr()
    if not holds_programs(module):
        return
    for function in functions_of(module):
        if is_host_function(function):
            change_types(function, _placed)
            for op in function.walk():
                if operation_name(op) == RUN_PROGRAM:
                    _require_placements(op)


def _placed(type_: Attribute) -> Attribute:
    """The type of a tensor with a placement; types that have a layout, or can have none, as they
    are."""
    if not isinstance(type_, TensorType):
        return type_
    tensor = cast("TensorType[Attribute]", type_)
    data_type = normalized_data_type(tensor.element_type)
    if not isinstance(tensor.encoding, NoneAttr) or data_type is None:
        return tensor
    return placed_type(TensorPlacement(shape_of(tensor), data_type))


def _require_placements(launch: Operation) -> None:
    """Raises CompileError at a launch of a program on tensors that have no placement."""
    for position, operand in enumerate(launch.operands):
        if not has_placement(operand):
            raise CompileError(
                f"operand {position} of this program is {operand.type}, which is no tensor in a "
                "memory of the device",
                launch,
                remedy="give it a #ttnn.ttnn_layout, or leave the layout out: then it is in DRAM, "
                "in tiles",
            )
