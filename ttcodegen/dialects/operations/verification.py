"""Verification of modules: ops by their definitions, functions by their types and calls.

xDSL's checks are used for single ops. Functions are checked here, because xDSL resolves symbols
again for each call and stops at the first error.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from math import prod

from xdsl.dialects.builtin import ModuleOp, StringAttr, TupleType, UnregisteredOp
from xdsl.dialects.func import CallOp, FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.irdl import AttrSizedOperandSegments, IRDLOperation, OpDef, traits_def
from xdsl.parser.core import ForwardDeclaredValue
from xdsl.traits import IsTerminator
from xdsl.utils.exceptions import VerifyException

from ttcodegen.dialects.core.datatypes import shape_of
from ttcodegen.dialects.operations.functions import CONDITIONAL, COUNTED, LOOP_BODY, attributes_at
from ttcodegen.dialects.operations.operation import CatalogueOp, operation_name
from ttcodegen.dialects.ttcore.dialect import ArgumentTypeAttr, LoadCachedOp
from ttcodegen.dialects.ttcore.loops import WhileLoopOp
from ttcodegen.dialects.ttnn.placement import given_placement
from ttcodegen.dialects.ttnn.program_configs import Conv2dConfig, ProgramConfigAttr
from ttcodegen.foundation.diagnostics import CompileError, Diagnostics, plural

_WRAPPED = "Underlying verification failure: "
"""xDSL's prefix of messages from an attribute's own verifier."""
_OTHER_ATTRIBUTE = re.compile(r"(#[\w.]+)<.*> should be of base attribute (\S+)$", re.DOTALL)
"""xDSL's message about an attribute of another kind."""

_FUNCTION_OPS = (FuncOp, CallOp, ReturnOp)


def verify_definitions(operations: Iterable[Operation]) -> None:
    """Verifies modules, functions, calls and returns in `operations`, and that operands are
    defined.

    Raises:
        CompileError: with all errors.
    """
    diagnostics = Diagnostics()
    for outer in operations:
        for op in outer.walk():
            if any(isinstance(operand, ForwardDeclaredValue) for operand in op.operands):
                diagnostics.error(
                    f"{op.name}: an operand is defined in a region of the operation, which ends "
                    "before it is read",
                    op,
                )
            if isinstance(op, IRDLOperation) and (
                isinstance(op, (*_FUNCTION_OPS, ModuleOp)) or _has_segments(type(op))
            ):
                try:
                    _verify_definition(op)
                except VerifyException as error:
                    diagnostics.error(f"{op.name}: {_first_line(error)}", op)
    diagnostics.raise_errors()


@cache
def _has_segments(op_type: type[IRDLOperation]) -> bool:
    """Returns whether an op reads its operands by segment sizes."""
    definition = op_type.get_irdl_definition()
    return "operandSegmentSizes" in definition.properties or any(
        isinstance(option, AttrSizedOperandSegments) for option in definition.options
    )


def verify_module(module: ModuleOp, after: str | None = None) -> None:
    """Verifies every op on its own, for errors with its location, then functions and calls.

    `after` names the pass that produced the module, None for a parsed module.

    Raises:
        CompileError: with all ops that do not verify.
    """
    diagnostics = Diagnostics()
    said = "" if after is None else f"after the pass {after}: "
    for op, fault in faults_of_ops(module):
        diagnostics.error(said + fault, op)
    diagnostics.raise_errors()
    verify_functions(module, said)


def faults_of_ops(module: ModuleOp) -> Iterator[tuple[Operation, str]]:
    """Yields the ops that violate their definitions, with reasons."""
    for op in module.walk():
        try:
            _verify_op(op)
        except VerifyException as error:
            yield op, _first_line(error)


def verify_functions(module: ModuleOp, said: str = "") -> None:
    """Verifies functions, bodies, returns and calls against each other.

    `said` is a prefix of each message.

    Raises:
        CompileError: with all mismatches.
    """
    diagnostics = Diagnostics()
    functions = {op.sym_name.data: op for op in module.ops if isinstance(op, FuncOp)}
    for op in module.walk():
        for place, fault in _faults_among_ops(op, functions):
            diagnostics.error(said + fault, place)
    for function in functions.values():
        for block in function.body.blocks:
            for place, fault in _faults_of_lifetimes(block):
                diagnostics.error(said + fault, place)
    diagnostics.raise_errors()


def verify_order(module: ModuleOp, after: str) -> None:
    """Verifies that every operand is defined before its use, which passes might violate.

    Raises:
        CompileError: at the first violation.
    """
    seen: set[Operation] = set()
    for op in module.walk():
        for operand in op.operands:
            if isinstance(operand.owner, Operation) and operand.owner not in seen:
                raise CompileError(
                    f"after the pass {after}: an operand is used before it is made", op
                )
        seen.add(op)


def verify_lifetimes(module: ModuleOp) -> None:
    """Verifies that no tensor is used after its deallocation, or deallocated twice.

    Raises:
        CompileError: with all violations.
    """
    diagnostics = Diagnostics()
    for function in module.ops:
        if isinstance(function, FuncOp):
            for block in function.body.blocks:
                for op, fault in _faults_of_lifetimes(block):
                    diagnostics.error(fault, op)
    diagnostics.raise_errors()


def _faults_of_lifetimes(block: Block) -> Iterator[tuple[Operation, str]]:
    freed: dict[SSAValue, None] = {}
    consumed: dict[SSAValue, None] = {}
    for op in block.ops:
        name = operation_name(op)
        deallocates = name.rpartition(".")[2] in _DEALLOCATIONS
        if freed and not freed.keys().isdisjoint(op.operands):
            what = "is deallocated twice" if deallocates else "was deallocated before"
            yield op, f"{name}: its operand {what}"
        elif consumed and not deallocates and not consumed.keys().isdisjoint(op.operands):
            yield op, f"{name}: its operand was deallocated before, by the 'ttnn.conv2d' it went to"
        if deallocates:
            freed.update(dict.fromkeys(op.operands))
        elif name == "ttnn.conv2d" and _frees_its_input(op):
            consumed[op.operands[0]] = None


def _frees_its_input(convolution: Operation) -> bool:
    """Returns whether `deallocate_activation` frees the input of a convolution.

    The library does so unless the input is in DRAM (conv2d.cpp).
    """
    config = convolution.properties.get("conv2d_config")
    given = config.data if isinstance(config, ProgramConfigAttr) else None
    if not isinstance(given, Conv2dConfig) or not given.deallocate_activation:
        return False
    placement = given_placement(convolution.operands[0])
    return placement is not None and placement.buffer_type == "l1"


_DEALLOCATIONS = frozenset({"dealloc", "deallocate", "deallocate_buffer"})


def _verify_op(op: Operation) -> None:
    """Raises VerifyException if an op violates its definition."""
    if isinstance(op, CatalogueOp):
        op.verify_()
    elif isinstance(op, _FUNCTION_OPS):
        _verify_definition(op)
    elif not isinstance(op, UnregisteredOp):
        op.verify(verify_nested_ops=False)


def _verify_definition(op: IRDLOperation) -> None:
    _definition_without_traits(type(op)).verify(op)


@cache
def _definition_without_traits(op_type: type[IRDLOperation]) -> OpDef:
    return replace(op_type.get_irdl_definition(), traits=traits_def())


def _faults_among_ops(
    op: Operation, functions: Mapping[str, FuncOp]
) -> Iterator[tuple[Operation, str]]:
    """Yields errors of functions, calls, loops and returns, each with its op."""
    match op:
        case FuncOp():
            if op.parent_op() is not None and not isinstance(op.parent_op(), ModuleOp):
                yield op, f"function @{op.sym_name.data} is defined inside another operation"
            yield from _faults_of_function(op)
        case CallOp() | LoadCachedOp():
            yield from ((op, f) for f in _faults_of_call(op, functions))
        case WhileLoopOp():
            yield from ((op, f) for f in _faults_of_loop(op, functions))
        case ReturnOp():
            if not isinstance(op.parent_op(), FuncOp):
                yield op, "'return' is outside a function"
        case ModuleOp():
            if op.parent_op() is not None:
                yield op, "a module is defined inside another operation"
            if op.body.block.args:
                yield op, "a module has no arguments"
        case CatalogueOp():
            if isinstance(op.parent_op(), ModuleOp):
                yield op, f"'{op.name}' is outside a function"
        case _:
            pass


def _faults_of_function(function: FuncOp) -> Iterator[tuple[Operation, str]]:
    """Yields errors of a function: its type against its arguments and results."""
    name = f"function @{function.sym_name.data}"
    inputs = function.function_type.inputs.data
    outputs = function.function_type.outputs.data
    for noun, attributes, types in (
        ("argument", function.arg_attrs, inputs),
        ("result", function.res_attrs, outputs),
    ):
        if attributes is not None and len(attributes.data) != len(types):
            fault = f"{name} has attributes of {plural(len(attributes.data), noun)}, but its type "
            yield function, f"{fault}lists {len(types)}"
        for index in range(len(types)):
            for key, found in attributes_at(attributes, index).items():
                kind, expected = _SAID.get(key, (Attribute, ""))
                if not isinstance(found, kind):
                    what = f"'{key}' of {noun} {index} should be {expected}, found {found}"
                    yield function, f"{name}: {what}"
    entry = function.body.blocks.first
    if entry is None:
        return
    for fault in _faults_of_types(f"{name} takes", "argument", inputs, entry.arg_types, "its body"):
        yield function, fault
    for block in function.body.blocks:
        for place, fault in _faults_of_end(block, name):
            yield place or function, fault
        for op in block.ops:
            if isinstance(op, ReturnOp):
                types = tuple(op.arguments.types)
                for fault in _faults_of_types(
                    f"{name} returns", "result", outputs, types, "'return'"
                ):
                    yield op, fault


_SAID: Mapping[str, tuple[type[Attribute], str]] = {
    "ttcore.argument_type": (ArgumentTypeAttr, "#ttcore.argument_type<...>"),
    "ttir.name": (StringAttr, "a string"),
}
"""Attributes of arguments and results that compilation depends on."""


def _faults_of_end(block: Block, name: str) -> Iterator[tuple[Operation | None, str]]:
    """Yields errors of terminators: missing, or followed by other ops."""
    for op in block.ops:
        if isinstance(op, ReturnOp) and (following := op.next_op) is not None:
            yield following, f"there is an operation after the 'return' of {name}"
            return
    last = block.last_op
    if last is None:
        yield None, f"{name} has an empty block: expected 'return' at its end"
    elif not last.has_trait(IsTerminator, value_if_unregistered=True):
        yield last, f"{name} does not end in 'return'"


def _faults_of_call(call: CallOp | LoadCachedOp, functions: Mapping[str, FuncOp]) -> Iterator[str]:
    name = call.callee.string_value()
    callee = functions.get(name)
    if callee is None:
        yield f"the called function '@{name}' is not in the module"
        return
    type_ = callee.function_type
    for verb, noun, declared, found in (
        ("takes", "argument", type_.inputs.data, tuple(call.operand_types)),
        ("returns", "result", type_.outputs.data, tuple(call.result_types)),
    ):
        # Cached functions may pass their tensors as a tuple.
        if isinstance(call, LoadCachedOp) and len(declared) == 1:
            (only,) = declared
            declared = tuple(only.types) if isinstance(only, TupleType) else declared
        yield from _faults_of_types(f"function @{name} {verb}", noun, declared, found, "the call")


def _faults_of_loop(loop: WhileLoopOp, functions: Mapping[str, FuncOp]) -> Iterator[str]:
    name = loop.callee.string_value()
    callee = functions.get(name)
    if callee is None:
        yield f"the body '@{name}' of the loop is not in the module"
        return
    kind = CONDITIONAL if loop.trip_count is None else COUNTED
    if callee.attributes.get(LOOP_BODY) != kind:
        yield f"function @{name} is the body of a loop: it should have {LOOP_BODY} = {kind}"
    type_ = callee.function_type
    flags = () if loop.going is None else (loop.going.type,)
    if flags and prod(shape_of(flags[0])) != 1:
        yield f"the condition of the loop should have one element, found {flags[0]}"
    for verb, noun, declared, found in (
        ("takes", "argument", type_.inputs.data, tuple(loop.inputs.types)),
        ("returns", "result", type_.outputs.data, (*flags, *loop.result_types)),
    ):
        yield from _faults_of_types(f"function @{name} {verb}", noun, declared, found, "the loop")


def _faults_of_types(
    subject: str,
    noun: str,
    declared: Sequence[Attribute],
    found: Sequence[Attribute],
    where: str,
) -> Iterator[str]:
    if len(declared) != len(found):
        yield f"{subject} {plural(len(declared), noun)}, but {where} has {len(found)}"
        return
    for index, (expected, actual) in enumerate(zip(declared, found, strict=True)):
        if expected != actual:
            yield f"{subject} {expected} as {noun} {index}, but {where} has {actual}"


def _first_line(error: VerifyException) -> str:
    """Returns the essential line of a message, without long attribute texts."""
    other = _OTHER_ATTRIBUTE.search(str(error))
    if other is not None:
        return f"{other[1]} is given where #{other[2]} is expected"
    lines = str(error).strip().splitlines()
    return lines[-1].removeprefix(_WRAPPED) if lines else "the op does not verify"
