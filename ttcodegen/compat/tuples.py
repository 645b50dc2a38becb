"""Tuples of tensors, which tt-mlir passes to functions that it exports: each element becomes an
argument or a result of its own."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import FunctionType, ModuleOp, TupleType
from xdsl.dialects.func import CallOp, FuncOp, ReturnOp
from xdsl.ir import Attribute, SSAValue
from xdsl.rewriter import Rewriter

from ttcodegen.dialects.ttcore.tuples import GetTupleElementOp, TupleOp
from ttcodegen.foundation.diagnostics import CompileError, copy_source_offset

TEXT = "tuple<"
"""Text without it has no tuples."""


def unpack(module: ModuleOp) -> None:
    """Takes all tuples of tensors out of functions of tensors.

    Raises:
        CompileError: if a function keeps its arguments' attributes and has tuples among them, or an
            element is requested that a tuple does not have.
    """
    for function in list(module.walk()):
        if isinstance(function, FuncOp):
            _unpack_arguments(function)
    for call in list(module.walk()):
        if isinstance(call, CallOp):
            _unpack_call(call)
    for op in list(module.walk()):
        if isinstance(op, GetTupleElementOp) and isinstance(op.operand.owner, TupleOp):
            Rewriter.replace_op(op, [], [op.operand.owner.operands[op.index.value.data]])
    for function in list(module.walk()):
        if isinstance(function, FuncOp):
            _unpack_results(function)
    for op in list(module.walk()):
        if isinstance(op, TupleOp) and not op.results[0].uses:
            op.detach()
            op.erase()


def _flat(types: Sequence[Attribute]) -> list[Attribute]:
    flat: list[Attribute] = []
    for type_ in types:
        flat += _flat(type_.types.data) if isinstance(type_, TupleType) else [type_]
    return flat


def _unpack_arguments(function: FuncOp) -> None:
    inputs = function.function_type.inputs.data
    if not any(isinstance(type_, TupleType) for type_ in inputs):
        return
    if function.arg_attrs is not None:
        raise CompileError("a function with tuple arguments that have attributes", function)
    function.function_type = FunctionType.from_lists(
        _flat(inputs), function.function_type.outputs.data
    )
    for block in function.body.blocks:
        for argument in list(block.args):
            if not isinstance(argument.type, TupleType):
                continue
            types = _flat(argument.type.types.data)
            made = [block.insert_arg(t, argument.index + i) for i, t in enumerate(types)]
            packed = TupleOp(made, argument.type)
            first = block.first_op
            if first is None:
                block.add_op(packed)
            else:
                block.insert_op_before(packed, first)
            argument.replace_all_uses_with(packed.results[0])
            block.erase_arg(argument)


def _unpack_call(call: CallOp) -> None:
    types = [*(o.type for o in call.operands), *(r.type for r in call.results)]
    if not any(isinstance(type_, TupleType) for type_ in types):
        return
    block = call.parent
    assert block is not None
    operands: list[SSAValue] = []
    for operand in call.operands:
        if not isinstance(operand.type, TupleType):
            operands.append(operand)
            continue
        for index, type_ in enumerate(operand.type.types):
            element = GetTupleElementOp(operand, index, type_)
            block.insert_op_before(element, call)
            operands.append(element.results[0])
    made = CallOp(call.callee, operands, _flat([result.type for result in call.results]))
    copy_source_offset(call, made)
    block.insert_op_before(made, call)
    rest = list(made.results)
    replaced: list[SSAValue] = []
    for result in call.results:
        if isinstance(result.type, TupleType):
            count = len(_flat([result.type]))
            packed = TupleOp(rest[:count], result.type)
            block.insert_op_before(packed, call)
            replaced.append(packed.results[0])
        else:
            count = 1
            replaced.append(rest[0])
        rest = rest[count:]
    Rewriter.replace_op(call, [], replaced)


def _unpack_results(function: FuncOp) -> None:
    outputs = function.function_type.outputs.data
    if not any(isinstance(type_, TupleType) for type_ in outputs):
        return
    function.function_type = FunctionType.from_lists(
        function.function_type.inputs.data, _flat(outputs)
    )
    for block in function.body.blocks:
        last = block.last_op
        if not isinstance(last, ReturnOp):
            continue
        values: list[SSAValue] = []
        for operand in last.operands:
            owner = operand.owner
            values += owner.operands if isinstance(owner, TupleOp) else [operand]
        last.operands = values
