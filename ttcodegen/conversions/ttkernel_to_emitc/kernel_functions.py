"""Functions of a kernel in C++: `kernel_main` with its arguments, and one per stage."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, cast

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, MemRefType, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, SSAValue

from ttcodegen.conversions.ttkernel_to_emitc.statements import COMPUTED
from ttcodegen.dialects.ttkernel.attributes import CBType, CircularBufferPlaceAttr, ThreadType
from ttcodegen.dialects.ttkernel.dataflow_table import (
    COMMON_HEADER,
    COMPILE_TIME_HEADER,
    DATAFLOW_HEADER,
)
from ttcodegen.dialects.ttkernel.operation import (
    STAGE,
    STAGE_PURPOSE,
    TTKernelOp,
    constant_integer,
    cpp_type,
    kernel_thread,
)
from ttcodegen.dialects.ttmetal.programs import (
    NAMED_ARGUMENT,
    RUN_TIME_ARGUMENT,
    CircularBuffer,
    Kernel,
    Program,
)
from ttcodegen.emitc.builder import EmitCBuilder
from ttcodegen.emitc.spelling import NameScope, identifier, string_literal, type_name
from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.naming.sources import constant_name, name_in_text
from ttcodegen.ops.core.calls import MOST_UNNAMED
from ttcodegen.transforms.rewriting import body_of

# Stages of a kernel, which become functions if the kernel is too long for one.
#
# The builder of a kernel declares which ops of a block are a stage (`KernelBuilder.stage`). What
# a stage uses of the kernel around it is declared at file scope if it is known when the kernel is
# compiled; the rest are the parameters of its function.

LONGEST_KERNEL = 90
"""Approximate maximum number of lines of a kernel that is one function."""

_STEPS = frozenset({"ttkernel.tile_regs_acquire", "ttkernel.tile_regs_release"})
"""Ops with an empty line before or after them."""
_LABELLED_LINES = 4
"""Lines of a call whose arguments have labels."""


@dataclass(frozen=True)
class Stage:
    """A stage of a kernel, to be written as a function."""

    name: str
    purpose: str
    ops: tuple[Operation, ...]
    """Consecutive ops of one block."""
    repeated: tuple[Operation, ...]
    """Unnamed constants and arithmetic, written at their uses in each function."""
    captured: tuple[SSAValue, ...]
    """Captured values, in the order of definition."""


def stages_of(function: FuncOp) -> dict[Operation, Stage]:
    """Returns the stages of a kernel that is too long for one function, by their first ops."""
    if _lines(function) <= LONGEST_KERNEL:
        return {}
    order = {op: number for number, op in enumerate(function.walk())}
    found: dict[Operation, Stage] = {}
    for block in _blocks(function):
        for name, group in groupby(block.ops, lambda op: op.attributes.get(STAGE)):
            if isinstance(name, StringAttr):
                stage = _stage(name.data, tuple(group), order)
                if stage is not None:
                    found[stage.ops[0]] = stage
    return found


def _blocks(function: FuncOp) -> Iterator[Block]:
    yield from function.body.blocks
    for op in function.body.walk():
        for region in op.regions:
            yield from region.blocks


def _stage(name: str, ops: tuple[Operation, ...], order: Mapping[Operation, int]) -> Stage | None:
    """Returns the stage, or None if a function could not contain it.

    It cannot if its results are used outside or it captures a mutable variable."""
    walked = [each for op in ops for each in op.walk()]
    inside = frozenset(walked)
    results = (result for op in ops for result in op.results)
    if any(use.operation not in inside for result in results for use in result.uses):
        return None
    repeated: dict[Operation, None] = {}
    captured: dict[SSAValue, None] = {}
    for op in walked:
        for operand in op.operands:
            _capture(operand, inside, repeated, captured)
    if any(isinstance(value.type, MemRefType) for value in captured):
        return None
    purpose = ops[0].attributes.get(STAGE_PURPOSE)
    text = purpose.data if isinstance(purpose, StringAttr) else ""
    captured_in_order = sorted(captured, key=lambda value: order[_definition(value)])
    return Stage(name, text, ops, tuple(repeated), tuple(captured_in_order))


def _definition(value: SSAValue) -> Operation:
    """Returns the op that computes a value, or the loop whose counter it is."""
    owner = value.owner.parent_op() if isinstance(value.owner, Block) else value.owner
    assert owner is not None
    return owner


def _capture(
    value: SSAValue,
    inside: Collection[Operation],
    repeated: dict[Operation, None],
    captured: dict[SSAValue, None],
) -> None:
    """Adds a value from outside of a stage to those it repeats or captures."""
    owner = value.owner
    if isinstance(owner, Block):
        if owner.parent_op() not in inside:
            captured[value] = None
    elif owner not in inside:
        if _is_written_at_use(owner):
            for operand in owner.operands:
                _capture(operand, inside, repeated, captured)
            repeated[owner] = None
        else:
            captured[value] = None


def _is_written_at_use(op: Operation) -> bool:
    return isinstance(op, (*COMPUTED, arith.ConstantOp, arith.BitcastOp)) and (
        op.results[0].name_hint is None
    )


def _lines(function: FuncOp) -> int:
    """Estimates the lines of the kernel as one function."""
    total = 0
    for op in function.body.walk():
        if isinstance(op, scf.ForOp | scf.IfOp | scf.WhileOp):
            total += 3
        elif op.name == NAMED_ARGUMENT or op.name in _STEPS:
            total += 2
        elif isinstance(op, TTKernelOp):
            total += _LABELLED_LINES if len(op.operands) > MOST_UNNAMED else 1
        elif op.results and op.results[0].name_hint is not None:
            total += 1
    return total


# The arguments of a kernel in C++: the start of `kernel_main`, before the ops.


CIRCULAR_BUFFER = "ttkernel.cb"
"""Type name of a circular buffer."""


class KernelArguments:
    """Writes the arguments of a kernel, and tracks the names and values of its body."""

    def __init__(
        self, body: EmitCBuilder, kernel: Kernel, program: Program, thread: ThreadType
    ) -> None:
        self.body = body
        self.declarations = body
        """Scope of constant declarations: the file, if the kernel has several functions."""
        self.constants: dict[SSAValue, tuple[str, str]] = {}
        """Declared constants: name and type of each."""
        self.thread = thread
        self.kernel = kernel
        self.program = program
        self.headers: set[str] = set()
        self.values: dict[SSAValue, SSAValue] = {}
        self.names = NameScope(["kernel_main"])
        self.registers: dict[int, str] = {}
        """Names of the destination registers that the kernel uses, by number."""

    def write_arguments(self, function: FuncOp) -> None:
        """Declares the arguments at the top, compile-time ones first."""
        known: dict[str, list[SSAValue]] = {}
        passed: dict[int, list[SSAValue]] = {}
        for op in function.walk():
            if op.name == NAMED_ARGUMENT:
                name = cast(StringAttr, op.properties["arg_name"]).data
                known.setdefault(name, []).append(op.results[0])
            elif (position := declared_position(op)) is not None:
                passed.setdefault(position, []).append(op.results[0])
        is_compute = self.thread is ThreadType.COMPUTE
        if not is_compute:
            self.headers.add(DATAFLOW_HEADER)
        if known and is_compute:
            self.headers.add(COMPILE_TIME_HEADER)
        self._check(set(known))
        buffers = self.program.buffers_of(self.kernel)
        for name, values in known.items():
            remark = describe_pages(buffers[name]) if name in buffers else ""
            call = f"get_named_compile_time_arg_val({string_literal(name)})"
            if remark:
                self.declarations.comment(remark)
            self.names.reserve(name)
            self.declarations.verbatim(f"constexpr uint32_t {name} = {call};")
            for value in values:
                self._declared(value, name, "uint32_t")
        if passed and is_compute:
            self.headers.add(COMMON_HEADER)
        if passed:
            self.body.comment("Runtime arguments.")
        for index, values in sorted(passed.items()):
            name = self.kernel.arguments[index].name
            self.names.reserve(name)
            self.body.verbatim(f"const uint32_t {name} = get_arg_val<uint32_t>({index});")
            literal = self.body.literal(name, "uint32_t")
            self.values.update((value, literal) for value in values)
        self._write_buffers(function)
        registers = _registers(function)
        if registers:
            self.declarations.comment("Destination registers.")
        for number in registers:
            self.registers[number] = self._constant(f"dst{number}", number)
        if known or registers:
            self.declarations.blank()
        if passed and (self.declarations is not self.body or not (known or registers)):
            self.body.blank()

    def _write_buffers(self, function: FuncOp) -> None:
        """Declares the circular buffers that are arguments of the kernel's function.

        Their numbers come from their types, otherwise from the positions of the arguments."""
        arguments = body_of(function).args
        for argument in arguments:
            if argument.type.name != CIRCULAR_BUFFER:
                raise CompileError(
                    f"a kernel cannot take an argument of type {argument.type}", argument
                )
        if arguments:
            self.declarations.comment("Circular buffers.")
        for position, argument in enumerate(arguments):
            place = cast(CBType, argument.type).place
            number, remark = position, ""
            if isinstance(place, CircularBufferPlaceAttr):
                found = place.data.number
                if found is None:
                    raise CompileError(f"there is no circular buffer '{place.data.port}'", argument)
                number = found
                remark = f"at {place.data.address:#x} in L1" if place.data.address else ""
            name = identifier(name_in_text(argument, f"cb_{number}"))
            self._declared(argument, self._constant(name, number, remark), "uint32_t")
        if arguments:
            self.declarations.blank()

    def _constant(self, name: str, number: int, remark: str = "") -> str:
        """Declares an integer constant; returns its C++ name."""
        unique = self.names.unique(name)
        comment = f"  // {remark}" if remark else ""
        self.declarations.verbatim(f"constexpr uint32_t {unique} = {spelled(number)};{comment}")
        return unique

    def _declared(self, value: SSAValue, name: str, type_: str) -> None:
        """Binds a value to a constant that is declared under a name."""
        self.constants[value] = name, type_
        self.values[value] = self.body.literal(name, type_)

    def table(self, op: arith.ConstantOp, value: DenseIntOrFPElementsAttr[Any]) -> None:
        """Declares a constant table that the kernel indexes."""
        name = self.names.unique(identifier(name_in_text(op.result, "table")))
        numbers = ", ".join(spelled(int(number)) for number in value.get_values())
        self.declarations.verbatim(f"constexpr uint32_t {name}[] = {{{numbers}}};")
        self._declared(op.result, name, "uint32_t*")

    def _check(self, names: set[str]) -> None:
        declared = {constant.name for constant in self.kernel.constants}
        declared |= {f"{semaphore}_semaphore" for semaphore in self.kernel.semaphores}
        if unknown := sorted(names - declared):
            raise ValueError(f"'{self.kernel.name}' has no constant '{unknown[0]}'")


def declared_position(op: Operation) -> int | None:
    """Returns the position of a run-time argument that is declared at the top.

    None for other ops, and for arguments whose position the kernel computes: these are read at
    their use."""
    return constant_integer(op.operands[0]) if op.name == RUN_TIME_ARGUMENT else None


def _registers(function: FuncOp) -> list[int]:
    """Returns the destination registers that a kernel addresses by unnamed numbers."""
    found = {
        number
        for op in function.walk()
        if isinstance(op, TTKernelOp)
        for value, number in op.numbered_registers()
        if constant_name(value, number) is None
    }
    return sorted(found)


def spelled(number: int) -> str:
    """Spells an unsigned 32-bit integer, in hexadecimal from 2^16 on (mostly masks)."""
    number %= 2**32
    return str(number) if number < 1 << 16 else f"0x{number:08x}"


def describe_pages(buffer: CircularBuffer) -> str:
    """Describes the pages of a circular buffer for a comment."""
    return f"Circular buffer: pages of {buffer.page_size} bytes, {buffer.data_type.mlir}."


# The functions of a kernel in C++: `kernel_main`, and one for each stage of a long kernel.

_INLINE = {ThreadType.COMPUTE: "ALWI", ThreadType.NOC: "FORCE_INLINE"}
"""Always-inline macro of tt-metal, from headers that any kernel includes."""
_SYMBOLS: Mapping[type[Operation], str] = {
    arith.AddiOp: "+",
    arith.SubiOp: "-",
    arith.MuliOp: "*",
    arith.DivUIOp: "/",
    arith.RemUIOp: "%",
}


class KernelFunctions(KernelArguments):
    """Writes a kernel as one function or several.

    Args:
        file: the file to write to.
        function: the kernel's function.
        kernel: the declaration of its arguments.
        program: the program of the kernel.
    """

    def __init__(
        self, file: EmitCBuilder, function: FuncOp, kernel: Kernel, program: Program
    ) -> None:
        super().__init__(file.function("kernel_main", []), kernel, program, kernel_thread(function))
        self._file = file
        self._stages = stages_of(function)
        self._functions = EmitCBuilder(Block())
        if self._stages:
            self.declarations = EmitCBuilder(Block())

    def stage_at(self, op: Operation) -> Stage | None:
        """Returns the stage that begins with an op, if any."""
        return self._stages.get(op)

    def call_stage(self, stage: Stage, write: Callable[[Iterable[Operation]], None]) -> None:
        """Calls and defines the function of a stage; `write` writes ops to the body."""
        captured = [value for value in stage.captured if value not in self.constants]
        name = self.names.unique(identifier(stage.name))
        self.body.call_void(name, *(self.values[value] for value in captured))
        outer = self.body, self.values
        definition = EmitCBuilder(Block())
        if stage.purpose:
            definition.comment(stage.purpose)
        types, parameters = self._parameters(captured)
        specifiers = [f"template <{', '.join(types)}>"] if types else []
        specifiers.append(_INLINE[self.thread])
        self.body = definition.function(name, parameters, specifiers=specifiers)
        self.values = dict(zip(captured, self.body.arguments, strict=True))
        write(stage.repeated)
        write(stage.ops)
        self.body.return_()
        self.body, self.values = outer
        _move(definition, self._functions)

    def _parameters(self, values: Sequence[SSAValue]) -> tuple[list[str], list[tuple[str, str]]]:
        """Returns template parameters and parameters of a function of these values."""
        types: list[str] = []
        parameters: list[tuple[str, str]] = []
        scope = NameScope()
        objects = sum(cpp_type(value.type) == "auto" for value in values)
        for value in values:
            name = scope.unique(identifier(name_in_text(value, "value")))
            type_ = cpp_type(value.type)
            if type_ == "auto":
                type_ = "Tensor" if objects == 1 else type_name(name)
                types.append(f"typename {type_}")
                type_ = f"const {type_}&"
            parameters.append((name, type_))
        return types, parameters

    def declared_size(self, result: SSAValue, name: str) -> bool:
        """Declares a compile-time size at file scope, for all functions of the kernel.

        Returns False if the value is not known at compile time or the kernel is one function."""
        if not self._stages:
            return False
        text = self._constant_text(result)
        if text is None:
            return False
        unique = self.names.unique(identifier(name))
        self.declarations.verbatim(f"constexpr uint32_t {unique} = {text};")
        self._declared(result, unique, "uint32_t")
        return True

    def _constant_text(self, value: SSAValue) -> str | None:
        """Returns the constant expression of a size; None if it depends on run-time values."""
        if value in self.constants:
            return self.constants[value][0]
        number = constant_integer(value)
        if number is not None and constant_name(value, number) is None:
            return spelled(number)
        op = value.owner
        symbol = _SYMBOLS.get(type(op)) if isinstance(op, Operation) else None
        if symbol is None or not isinstance(op, Operation):
            return None
        left, right = (self._constant_text(operand) for operand in op.operands)
        if left is None or right is None:
            return None
        if " " in left and not (symbol == "*" and isinstance(op.operands[0].owner, arith.MuliOp)):
            left = f"({left})"
        return f"{left} {symbol} {f'({right})' if ' ' in right else right}"

    def finish(self) -> None:
        """Completes the file: shared declarations first, `kernel_main` last."""
        self.body.return_()
        if not self._stages:
            return
        before = EmitCBuilder(Block())
        _move(self.declarations, before)
        before.blank()
        _move(self._functions, before)
        main = self.body.block.parent_op()
        assert main is not None
        ops = list(before.block.ops)
        for op in ops:
            op.detach()
        self._file.block.insert_ops_before(ops, main)


def _move(source: EmitCBuilder, target: EmitCBuilder) -> None:
    """Moves all ops of a builder to the end of another."""
    for op in list(source.block.ops):
        op.detach()
        target.block.add_op(op)
