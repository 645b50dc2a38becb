"""The calls of a kernel: API functions, methods, prints and zones in C++."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from xdsl.dialects.builtin import (
    IntegerAttr,
    StringAttr,
)
from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue

from ttcodegen.conversions.ttkernel_to_emitc.kernel_functions import (
    KernelFunctions,
    declared_position,
)
from ttcodegen.conversions.ttkernel_to_emitc.statements import (
    BEGIN_ZONE,
    END_ZONE,
    ZONE_HEADER,
    is_written_at_use,
)
from ttcodegen.dialects.ttkernel.attributes import (
    KeptTilesType,
    L1PointerType,
    RowOrderType,
    ThreadType,
    TileCacheType,
)
from ttcodegen.dialects.ttkernel.dataflow_table import DATAFLOW_HEADER
from ttcodegen.dialects.ttkernel.definition import CallForm, KernelFunction
from ttcodegen.dialects.ttkernel.operation import (
    KernelCall,
    TTKernelOp,
    constant_integer,
    cpp_type,
    functions_in,
    kernel_calls,
)
from ttcodegen.dialects.ttmetal.programs import (
    ACCESSOR_ARGUMENTS,
    NAMED_ARGUMENT,
    RUN_TIME_ARGUMENT,
    Kernel,
    Program,
)
from ttcodegen.emitc.builder import Argument, EmitCBuilder
from ttcodegen.emitc.expressions import LiteralOp
from ttcodegen.emitc.spelling import Text, identifier, string_literal
from ttcodegen.naming.sources import constant_name, name_in_text
from ttcodegen.ops.core.calls import MOST_UNNAMED
from ttcodegen.systems.releases.release import Release

PRINT = "ttkernel.dprint"
PRINT_HEADER = "api/debug/dprint.h"

_REGISTER = "dst"


class CallWriter(KernelFunctions):
    """Writes the ops of a kernel that call the API."""

    def __init__(
        self,
        file: EmitCBuilder,
        function: FuncOp,
        kernel: Kernel,
        program: Program,
        release: Release,
    ) -> None:
        super().__init__(file, function, kernel, program)
        self._release = release
        self._around_zones: list[EmitCBuilder] = []
        """Builders that enclose the open zones."""

    def __getitem__(self, value: SSAValue) -> SSAValue:
        found = self.values.get(value)
        return self.body.literal(*self.constants[value]) if found is None else found

    def _variable(self, name: str) -> str:
        """Returns the name of a variable, which must differ from those of arguments.

        The printer keeps variables apart, but arguments are only text to it."""
        name = identifier(name)
        return self.names.unique(name) if self.names.is_taken(name) else name

    def _call(self, op: TTKernelOp) -> None:
        if (
            op.name == NAMED_ARGUMENT
            or declared_position(op) is not None
            or op.definition.is_terminator
        ):
            return
        form = _FORMS.get(op.name)
        if form is not None:
            form(self, op)
            return
        functions = functions_in(op.definition, self._release)
        calls = kernel_calls(op, self.thread, self._release)
        for function, call in zip(functions, calls, strict=True):
            self._write_call(op, function, call)

    def _write_call(self, op: TTKernelOp, function: KernelFunction, call: KernelCall) -> None:
        is_argument = op.name == RUN_TIME_ARGUMENT and self.thread is not ThreadType.COMPUTE
        self.headers.add(DATAFLOW_HEADER if is_argument else call.header)
        self.body.origins = (op,)
        if call.form is CallForm.CONSTANT:
            self.values[op.results[0]] = self.body.literal(call.callee, "uint32_t")
            return
        if call.form in (CallForm.ELEMENT, CallForm.NAMED_ELEMENT):
            self._element(op, call)
            return
        kinds = _argument_kinds(op, function)
        arguments: list[Argument] = [
            Text(argument)
            if isinstance(argument, str)
            else self._operand(argument, is_register=kind == _REGISTER)
            for argument, kind in zip(call.arguments, kinds, strict=False)
        ]
        if conversion := call.conversion:
            type_ = conversion.rpartition("::")[0]
            arguments = [
                self.body.call(conversion, argument, type=type_, pure=True)
                for argument in arguments
            ]
        labels: Sequence[str] = ()
        if len(arguments) > MOST_UNNAMED:
            labels = _parameter_names(op, function)
        if call.form is CallForm.METHOD:
            self._method(op, call, arguments)
        else:
            self._function_call(op, call.callee, arguments, call.template_arguments, labels)

    def print(self, op: TTKernelOp) -> None:
        """Prints a line of debug output: the op's format, with `{}` for each operand.

        A compute kernel runs on three processors; only the math processor prints."""
        self.headers.add(PRINT_HEADER)
        pieces = cast(StringAttr, op.properties["fmt"]).data.split("{}")
        if self._release.formats_prints:
            self._print_formatted(op, pieces)
            return
        parts: list[str] = []
        for number, piece in enumerate(pieces):
            if piece:
                parts.append(string_literal(piece).replace("{", "{{") if op.operands else
                             string_literal(piece))  # fmt: skip
            if number < len(pieces) - 1:
                parts.append("{}")
        line = " << ".join(["DPRINT", *parts, "ENDL()"])
        line = f"DPRINT_MATH({line});" if self.thread is ThreadType.COMPUTE else f"{line};"
        self.body.verbatim(line, *(self[operand] for operand in op.operands))

    def _print_formatted(self, op: TTKernelOp, pieces: Sequence[str]) -> None:
        """Prints where debug output takes a format, in which braces are doubled."""
        text = "{}".join(piece.replace("{", "{{").replace("}", "}}") for piece in pieces)
        literal = string_literal(f"{text}\n")
        if op.operands:
            literal = literal.replace("{", "{{")
        line = f"DPRINT({', '.join([literal, *['{}'] * len(op.operands)])})"
        line = f"MATH({line});" if self.thread is ThreadType.COMPUTE else f"{line};"
        self.body.verbatim(line, *(self[operand] for operand in op.operands))

    def begin_zone(self, op: TTKernelOp) -> None:
        """Opens a scope: a profiler zone lasts until its end."""
        self.headers.add(ZONE_HEADER)
        self._around_zones.append(self.body)
        self.body = self.body.scope()
        name = string_literal(cast(StringAttr, op.properties["zone"]).data)
        self.body.verbatim(f"DeviceZoneScopedN({name});")

    def end_zone(self, op: TTKernelOp) -> None:
        """Closes the scope of the zone."""
        self.body.end_block()
        self.body = self._around_zones.pop()

    def _function_call(
        self,
        op: TTKernelOp,
        callee: str,
        arguments: Sequence[Argument],
        template: Sequence[str],
        labels: Sequence[str],
    ) -> None:
        if not op.results:
            self.body.call_void(callee, *arguments, template_args=template, labels=labels)
            return
        result = op.results[0]
        name = None if result.name_hint is None else self._variable(result.name_hint)
        self.values[result] = self.body.call(
            callee,
            *arguments,
            type=_declared_type(result),
            template_args=template,
            name=name,
            pure=op.definition.pure or (name is None and is_written_at_use(op)),
            labels=labels,
        )

    def _method(self, op: TTKernelOp, call: KernelCall, arguments: Sequence[Argument]) -> None:
        receiver, *others = arguments
        assert isinstance(receiver, SSAValue)
        type_ = _declared_type(op.results[0]) if op.results else None
        value = self.body.call_method(
            receiver,
            call.callee,
            *others,
            type=type_,
            template_args=call.template_arguments,
            name=self._variable(name_in_text(op.results[0], call.callee)) if op.results else None,
        )
        if value is not None:
            self.values[op.results[0]] = value

    def accessor_arguments(self, op: TTKernelOp) -> None:
        """Declares a tensor's accessor arguments, whose offset follows the previous tensor's."""
        before = op.operand_named("prev_args")
        base = op.properties.get("cta_base")
        begin = str(cast("IntegerAttr[Any]", base).value.data) if base is not None else "0"
        if before is not None:
            owner = self.values[before].owner
            assert isinstance(owner, LiteralOp)
            begin = f"{owner.value.data}.next_compile_time_args_offset()"
        name = self.names.unique(identifier(name_in_text(op.results[0], "layout")))
        self.body.verbatim(f"constexpr auto {name} = TensorAccessorArgs<{begin}>();")
        self.values[op.results[0]] = self.body.literal(name, "auto")

    def _operand(self, value: SSAValue, *, is_register: bool) -> SSAValue:
        number = constant_integer(value)
        if is_register and number is not None and constant_name(value, number) is None:
            return self.body.literal(self.registers[number], "uint32_t")
        return self[value]

    def _element(self, op: TTKernelOp, call: KernelCall) -> None:
        """Writes an op that reads or stores an element of an array."""
        if call.form is CallForm.NAMED_ELEMENT:
            [index] = call.arguments
            array = self.body.literal(call.callee, "uint8_t*")
        else:
            pointer, index, *stored = call.arguments
            assert isinstance(pointer, SSAValue)
            array = self[pointer]
            for value in stored:
                assert isinstance(value, SSAValue)
                self.body.store(array, self._index(index), self[value], cpp_type(value.type))
            if stored:
                return
        result = op.results[0]
        if isinstance(index, str):
            # A variable of the firmware, at a fixed index.
            literal = self.body.literal(f"{call.callee}[{index}]", "uint32_t")
            self.values[result] = literal
            return
        name = self._variable(name_in_text(result, op.definition.name))
        type_ = cpp_type(result.type)
        self.values[result] = self.body.subscript(array, self[index], type_, name=name)

    def _index(self, index: SSAValue | str) -> SSAValue:
        return self.body.literal(index, "uint32_t") if isinstance(index, str) else self[index]


def _parameter_names(op: TTKernelOp, function: KernelFunction) -> list[str]:
    """Returns the parameter names of the C++ function."""
    if function.arguments is None:
        return [operand.name for operand in op.signature]
    return [word.partition("=")[0] for word in function.arguments]


def _argument_kinds(op: TTKernelOp, function: KernelFunction) -> list[str]:
    """Returns the operand kinds in the order of the C++ call."""
    kinds = {operand.name: operand.kind for operand in op.signature}
    return [kinds.get(name, "") for name in _parameter_names(op, function)]


def _declared_type(value: SSAValue) -> str:
    """Returns the declared type of a call's result: not const if it is mutated."""
    if isinstance(value.type, L1PointerType):
        return "const auto"
    type_ = cpp_type(value.type)
    if (
        isinstance(value.type, KeptTilesType | RowOrderType | TileCacheType)
        or value.name_hint is None
    ):
        return type_
    return f"const {type_}"


_FORMS: Mapping[str, Callable[[CallWriter, TTKernelOp], None]] = {
    ACCESSOR_ARGUMENTS: CallWriter.accessor_arguments,
    PRINT: CallWriter.print,
    BEGIN_ZONE: CallWriter.begin_zone,
    END_ZONE: CallWriter.end_zone,
}
"""C++ forms of dialect ops that are not calls."""
