"""CPU functions as C++ functions of host tensors: `src/cpu_functions.cpp`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Operation, SSAValue

from ttcodegen.conversions.host_functions.cpp_interface import returned_type
from ttcodegen.conversions.ttir_to_ttnn import overwritten_arguments
from ttcodegen.dialects.core.datatypes import shape_of
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.dialects.ttcore.device import ONE_CHIP, declared_mesh, shape_in
from ttcodegen.dialects.ttcore.loops import WhileLoopOp
from ttcodegen.dialects.ttnn.placement import declared_data_type
from ttcodegen.emitc.builder import Argument, EmitCBuilder, open_file
from ttcodegen.emitc.spelling import NameScope, Text, identifier
from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.naming.arguments import argument_names
from ttcodegen.naming.functions import cpu_function_title
from ttcodegen.naming.modules import given_names, names_of_function
from ttcodegen.ops.collectives.collectives import MESH_ON_CPU
from ttcodegen.ops.core.calls import MOST_UNNAMED
from ttcodegen.ops.core.definition import TTIRDefinition, works_between_chips
from ttcodegen.ops.core.lowering import CpuCall, CpuOperand, element_type
from ttcodegen.parsing.structure import operation_name
from ttcodegen.transforms.rewriting import body_of

HEADER = "src/cpu_functions.hpp"
SOURCE = "src/cpu_functions.cpp"
LOOPS = "loops"
"""Stem of the header of loops around functions."""
HOST_TENSOR = "support::cpu::Tensor"
HOST_PARTS = "support::cpu::Parts"
"""Shards of a tensor, one per device of a mesh."""


@dataclass(frozen=True)
class CppFunction:
    """CPU function in C++."""

    name: str
    overwritten: frozenset[int]
    """Positions of the parameters that it overwrites."""
    joins_chips: bool = False
    """True if it takes and returns the shards of all devices of a mesh, not of one."""

    @property
    def tensor(self) -> str:
        """Type of its parameters and results."""
        return HOST_PARTS if self.joins_chips else HOST_TENSOR

    @property
    def source_tensor(self) -> str:
        """Type of its parameters and results in the source file."""
        return self.tensor.removeprefix("support::")


@dataclass(frozen=True)
class CppFunctions:
    """All CPU functions of a module."""

    by_symbol: Mapping[str, CppFunction]
    headers: frozenset[str]
    """Stems of the headers of `support/cpu` that their source includes."""


def convert_cpu_functions(
    module: ModuleOp, namespace: str, functions: Sequence[FuncOp], title: str
) -> CppFunctions:
    """Writes header and source of CPU functions as EmitC; no files if there are none.

    Args:
        module: gets the files.
        namespace: namespace of the C++ module.
        functions: functions of TTIR ops.
        title: lines for the head of each file.

    Raises:
        CompileError: if an op has no implementation on the CPU.
    """
    scope = NameScope(["main"])
    named = {
        function.sym_name.data: CppFunction(
            cpu_function_title(function, scope),
            frozenset(overwritten_arguments(function)),
            _joins_chips(function),
        )
        for function in functions
    }
    if not functions:
        return CppFunctions(named, frozenset())
    _write_header(open_file(module, HEADER), namespace, functions, named, title)
    source = open_file(module, SOURCE)
    writers = [_BodyWriter(source, named, f) for f in functions]
    headers = frozenset(header for writer in writers for header in writer.calls())
    source.comment(title)
    source.include(HEADER, standard=False)
    source.blank()
    for header in sorted(headers):
        source.include(f"support/cpu/{header}.hpp", standard=False)
    source.blank()
    with source.namespace(namespace):
        source.verbatim("namespace cpu = support::cpu;")
        source.verbatim("using support::ElementType;")
        for writer in writers:
            source.blank()
            writer.write()
    return CppFunctions(named, headers)


def _write_header(
    header: EmitCBuilder,
    namespace: str,
    functions: Sequence[FuncOp],
    named: Mapping[str, CppFunction],
    title: str,
) -> None:
    header.comment(title)
    header.verbatim("#pragma once")
    header.blank()
    if any(len(function.function_type.outputs) > 1 for function in functions):
        header.include("array")
        header.blank()
    joining = any(cpp.joins_chips for cpp in named.values())
    header.include(f"support/cpu/{MESH_ON_CPU if joining else 'tensor'}.hpp", standard=False)
    header.blank()
    with header.namespace(namespace):
        header.comment("Ops that run on the CPU, since no device program supports them.")
        for function in functions:
            cpp = named[function.sym_name.data]
            header.blank()
            parameters = _parameters(function, cpp, cpp.tensor)
            header.declare(cpp.name, parameters, _result_type(function, cpp.tensor))


def _joins_chips(function: FuncOp) -> bool:
    """Returns whether a function handles all devices of a mesh.

    The compiler makes one for each collective. Raises CompileError for a function of the source
    that contains a collective among other ops."""
    *ops, _ = body_of(function).ops
    joining = [op for op in ops if works_between_chips(op) and declared_mesh(op) != ONE_CHIP]
    if joining and (len(ops) > 1 or not shape_in(joining[0])):
        raise CompileError(
            f"'{operation_name(joining[0])}' joins chips, in a function that the CPU runs for each",
            joining[0],
            remedy="leave it outside of the function",
        )
    return bool(joining)


def _result_type(function: FuncOp, tensor: str) -> str | None:
    return returned_type([tensor] * len(function.function_type.outputs))


def _parameters(function: FuncOp, cpp: CppFunction, tensor: str) -> list[tuple[str, str]]:
    return [
        (identifier(name), f"{tensor}&" if index in cpp.overwritten else f"const {tensor}&")
        for index, name in enumerate(argument_names(function))
    ]


class _BodyWriter:
    """Writes one CPU function."""

    def __init__(
        self, source: EmitCBuilder, named: Mapping[str, CppFunction], function: FuncOp
    ) -> None:
        self._source = source
        self._named = named
        self._cpp = cpp = named[function.sym_name.data]
        self._function = function
        self._names = names_of_function(function, given_names(function))
        self._values: dict[SSAValue, SSAValue] = {}
        self._tensor = cpp.source_tensor

    def calls(self) -> list[str]:
        """Headers of the functions that it calls."""
        ops = body_of(self._function).ops
        return [
            LOOPS if isinstance(op, WhileLoopOp) else _call_of(op).header
            for op in ops
            if not isinstance(op, ReturnOp)
        ]

    def write(self) -> None:
        """Defines the function."""
        body = self._source.function(
            self._cpp.name,
            _parameters(self._function, self._cpp, self._tensor),
            _result_type(self._function, self._tensor),
        )
        block = body_of(self._function)
        self._values.update(zip(block.args, body.arguments, strict=True))
        for op in block.ops:
            body.origins = (op,)
            if isinstance(op, ReturnOp):
                self._return(body, op)
            elif isinstance(op, WhileLoopOp):
                self._loop(body, op)
            else:
                self._call(body, op)

    def _return(self, body: EmitCBuilder, op: ReturnOp) -> None:
        values = [self._values[value] for value in op.operands]
        if not values:
            body.return_()
        elif len(values) == 1:
            body.return_(values[0])
        else:
            body.return_(body.braced(_result_type(self._function, self._tensor) or "", *values))

    def _loop(self, body: EmitCBuilder, op: WhileLoopOp) -> None:
        assert op.going is not None
        array = f"std::array<{self._tensor}, {len(op.outputs)}>"
        arguments: list[Argument] = [
            Text(self._named[op.callee.string_value()].name),
            self._values[op.going],
            body.braced(array, *(self._values[value] for value in op.carried)),
            *(self._values[value] for value in op.captured),
        ]
        callee, names = "cpu::repeated", [self._names[result] for result in op.outputs]
        if len(names) == 1:
            found = body.call(callee, *arguments, type=array, pure=True)
            values = [body.get(found, 0, self._tensor, name=names[0])]
        else:
            types = [self._tensor] * len(names)
            values = body.call_several(callee, *arguments, types=types, names=names)
        self._values.update(zip(op.outputs, values, strict=True))

    def _call(self, body: EmitCBuilder, op: Operation) -> None:
        call = _call_of(op)
        arguments: list[Argument] = [_type_text(result) for result in op.results]
        arguments += [self._argument(body, operand) for operand in call.operands]
        arguments += [Text(text) for text in call.attributes]
        callee = f"cpu::{call.function}"
        names = [self._names[result] for result in op.results]
        labels: Sequence[str] = ()
        if len(arguments) > MOST_UNNAMED:
            labels = [*[""] * len(op.results), *call.operand_names]
        if not op.results:
            body.call_void(callee, *arguments, labels=labels)
        elif len(op.results) == 1:
            self._values[op.results[0]] = self._single(body, op.results[0], call, arguments, labels)
        else:
            types = [self._tensor] * len(names)
            found = body.call_several(callee, *arguments, types=types, names=names, labels=labels)
            self._values.update(zip(op.results, found, strict=True))

    def _single(
        self,
        body: EmitCBuilder,
        result: SSAValue,
        call: CpuCall,
        arguments: Sequence[Argument],
        labels: Sequence[str],
    ) -> SSAValue:
        callee = f"cpu::{call.function}"
        if result.has_one_use() and isinstance(next(iter(result.uses)).operation, ReturnOp):
            return body.call(callee, *arguments, type=self._tensor, pure=True, labels=labels)
        type_, name = f"const {self._tensor}", self._names[result]
        return body.call(callee, *arguments, type=type_, name=name, labels=labels)

    def _argument(self, body: EmitCBuilder, operand: CpuOperand) -> Argument:
        if operand is None:
            return Text("std::nullopt")
        if isinstance(operand, SSAValue):
            return self._values[operand]
        tensors = [self._values[value] for value in operand]
        return body.braced(f"std::vector<{self._tensor}>", *tensors)


def _call_of(op: Operation) -> CpuCall:
    if not isinstance(op, CatalogueOp) or not isinstance(op.definition, TTIRDefinition):
        raise CompileError(f"'{operation_name(op)}' cannot run on the CPU", op)
    if op.definition.cpu is None:
        raise CompileError(f"'{op.name}' has no function on the CPU", op)
    return op.definition.cpu(op)


def _type_text(value: SSAValue) -> Text:
    sizes = ", ".join(str(size) for size in shape_of(value.type))
    return Text(f"{{{element_type(declared_data_type(value))}, {{{sizes}}}}}")
