"""From an op to the C++ call of tt-metal 0.70.1 that it is emitted as."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.builtin import (
    BFloat16Type,
    Float16Type,
    Float32Type,
    IndexType,
    IntegerType,
    Signedness,
)
from xdsl.ir import Attribute, SSAValue

from ttcodegen.dialects.ttkernel.attribute_kinds import ATTRIBUTE_KINDS
from ttcodegen.dialects.ttkernel.attributes import (
    CBType,
    DataFormatType,
    KeptTilesType,
    L1AddressType,
    L1PointerType,
    LocalSemaphoreType,
    NocAddressType,
    RowOrderType,
    SemaphoreType,
    TensorAccessorArgsType,
    TensorAccessorType,
    ThreadType,
    TileCacheType,
)
from ttcodegen.dialects.ttkernel.dataflow_table import DATAFLOW_HEADER
from ttcodegen.dialects.ttkernel.definition import ANY_THREAD, CallForm, KernelFunction
from ttcodegen.dialects.ttkernel.operation import TTKernelOp
from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.systems.releases import DEFAULT_RELEASE

RESULT = "<result>"
"""In place of an attribute: the C++ type of the result."""


@dataclass(frozen=True, slots=True)
class KernelCall:
    """`callee<template arguments>(arguments)`, or a member function of the first argument."""

    header: str
    """What to include, for example `api/compute/matmul.h`."""
    callee: str
    template_arguments: tuple[str, ...]
    arguments: tuple[SSAValue | str, ...]
    """Values of the program, or C++ text."""
    form: CallForm
    """What the callee and the arguments are."""


def kernel_call(op: TTKernelOp, thread: ThreadType) -> KernelCall:
    """The C++ of an op in a kernel of that thread.

    Raises CompileError if tt-metal 0.70.1 has no function for it, or none for its attributes.
    """
    function = op.definition.cpp
    if function is None:
        raise CompileError(
            f"{op.name} has no counterpart in tt-metal {DEFAULT_RELEASE}",
            op,
            remedy="use an op that the kernel API of this release has",
        )
    return KernelCall(
        header_of(function, thread, op.definition.threads),
        function.function,
        _template_arguments(op, function),
        _arguments(op, function),
        function.form,
    )


def header_of(function: KernelFunction, thread: ThreadType, threads: frozenset[ThreadType]) -> str:
    """The header that declares a function; what all threads have is declared for each apart."""
    shared = threads == ANY_THREAD and function.header.startswith("api/compute/")
    return DATAFLOW_HEADER if shared and thread is not ThreadType.COMPUTE else function.header


def _template_arguments(op: TTKernelOp, function: KernelFunction) -> tuple[str, ...]:
    """As few as say it: what is default from some position on is left out."""
    arguments: list[str] = []
    needed = 0
    for parameter in function.template:
        text = _attribute_text(op, parameter.attribute)
        if parameter.attribute == RESULT:
            text = cpp_type(op.results[0].type)
        given = text is not None and text != parameter.default
        if text is None:
            text = parameter.default
        if text is None:
            raise CompileError(f"{op.name} needs the attribute '{parameter.attribute}'", op)
        arguments.append(text)
        if given or parameter.default is None or parameter.is_written:
            needed = len(arguments)
    return tuple(arguments[:needed])


def _arguments(op: TTKernelOp, function: KernelFunction) -> tuple[SSAValue | str, ...]:
    if function.arguments is None:
        return tuple(op.operands)
    arguments: list[SSAValue | str] = []
    needed = 0
    for word in function.arguments:
        if word == RESULT:
            arguments.append(cpp_type(op.results[0].type))
            needed = len(arguments)
            continue
        name, optional, default = word.partition("=")
        value = op.operand_named(name)
        argument = value if value is not None else _attribute_text(op, name)
        if argument is None and not optional:
            raise CompileError(f"{op.name}: the function of the kernel API needs '{name}'", op)
        given = argument is not None and argument != default
        # An element has no index by default.
        given |= function.form is CallForm.NAMED_ELEMENT
        arguments.append(argument if argument is not None else default)
        if given:
            needed = len(arguments)
    return tuple(arguments[:needed])


def _attribute_text(op: TTKernelOp, name: str) -> str | None:
    """The C++ of an attribute, None if it is absent."""
    spec = op.definition.attribute(name)
    attribute = op.properties.get(name)
    if spec is None or attribute is None:
        return None
    try:
        return ATTRIBUTE_KINDS[spec.kind].cpp(attribute)
    except KeyError:
        raise CompileError(
            f"{op.name}: {attribute} has no counterpart in tt-metal {DEFAULT_RELEASE}", op
        ) from None


def cpp_type(type_: Attribute) -> str:
    """How kernels declare a value of that type; raises CompileError if C++ has no name for it."""
    match type_:
        case NocAddressType():
            return "uint64_t"
        case L1PointerType():
            return f"volatile tt_l1_ptr uint{type_.width.data}_t*"
        case TensorAccessorArgsType() | TensorAccessorType():
            return "auto"
        case KeptTilesType() | RowOrderType() | TileCacheType():
            return "auto"
        case DataFormatType():
            return "DataFormat"
        case IndexType() | CBType() | L1AddressType() | LocalSemaphoreType() | SemaphoreType():
            return "uint32_t"
        case Float32Type():
            return "float"
        case BFloat16Type() | Float16Type():
            return "uint16_t"
        case IntegerType():
            if type_.width.data == 1:
                return "bool"
            signed = type_.signedness.data is Signedness.SIGNED
            return f"{'int' if signed else 'uint'}{type_.width.data}_t"
        case _:
            raise CompileError(f"kernels have no values of the type {type_}")
