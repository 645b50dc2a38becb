"""Runner of pass pipelines, with timing and preconditions, and modules as MLIR text."""

from __future__ import annotations

import io
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any, Protocol, TextIO, cast

from xdsl.context import Context
from xdsl.dialects.builtin import (
    AffineMapAttr,
    DenseIntOrFPElementsAttr,
    IntegerType,
    ModuleOp,
    StringAttr,
    TensorType,
)
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.printer import Printer

from ttcodegen.dialects.operations.functions import CPU_FUNCTION, FUNCTION_TYPE, is_cpu_function
from ttcodegen.dialects.operations.operation import operation_name
from ttcodegen.dialects.operations.verification import verify_module, verify_order
from ttcodegen.dialects.ttcore.dialect import CPUModuleOp, DeviceModuleOp, SystemDescAttr
from ttcodegen.dialects.ttcore.layouts import MetalLayoutAttr
from ttcodegen.dialects.ttcore.tile import IteratorTypeAttr, MemorySpaceAttr
from ttcodegen.dialects.ttnn.placement import (
    TTNNLayoutAttr,
    buffer_type_text,
    has_placement,
    layout_text,
)
from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.transforms.registry import Group, PassEntry, find, is_known

if TYPE_CHECKING:
    from collections.abc import Generator


_HEXADECIMAL_ABOVE = 100
"""Constants of more elements are printed as bytes, as MLIR does."""

ELIDED_ELEMENTS = 256
"""Constants of more elements say nothing to people."""

_ALIASES: dict[type[Attribute], Callable[[Any], str]] = {
    TTNNLayoutAttr: lambda layout: "ttnn_layout",
    MetalLayoutAttr: lambda layout: "layout",
    SystemDescAttr: lambda system: "system_desc",
    MemorySpaceAttr: lambda space: space.data.value,
    IteratorTypeAttr: lambda iterator: iterator.data.value,
    AffineMapAttr: lambda map_: "map",
}
"""Names of attribute aliases, as the tools of tt-mlir print them."""

_SHORT_TEXTS: frozenset[type[Attribute]] = frozenset({TensorType, *_ALIASES})
"""Attributes whose text is cached: it is needed many times."""


class ModulePrinter(Printer):
    """Prints MLIR that parses again, fast whatever the constants.

    With `elide_above` of constants of more elements only that they are there: people can look at
    such text, no program can read it.
    """

    def __init__(
        self,
        stream: TextIO,
        *,
        elide_above: int | None = None,
        generic: bool = False,
        locations: bool = False,
        aliases: bool = False,
    ) -> None:
        super().__init__(stream, print_generic_format=generic, print_debuginfo=locations)
        self._elide_above = elide_above
        self._with_aliases = aliases
        self._aliases: dict[str, str] = {}
        self._uses: dict[str, int] = {}
        self._texts: dict[int, tuple[Attribute, str]] = {}
        """By the identity of an attribute, the attribute (so that it lives on) and its text."""

    def alias_definitions(self) -> str:
        """The lines that define the aliases used so far; what one is made of comes before it."""
        return "".join(f"{alias} = {text}\n" for text, alias in self._aliases.items())

    def print_attribute(self, attribute: Attribute) -> None:
        if not self._with_aliases or type(attribute) not in _SHORT_TEXTS:
            self._print_attribute(attribute)
            return
        known = self._texts.get(id(attribute))
        if known is None:
            known = self._texts[id(attribute)] = attribute, self._text(attribute)
        self.print_string(known[1])

    def _text(self, attribute: Attribute) -> str:
        """A type as it is printed, or the alias of an attribute."""
        if isinstance(attribute, TTNNLayoutAttr):
            memory = self._alias(attribute.data.buffer_type, buffer_type_text(attribute.data))
            text = f"#{attribute.name}{layout_text(attribute.data, memory)}"
        else:
            with self._diverted() as stream:
                self._print_attribute(attribute)
            text = stream.getvalue()
        stem = _ALIASES.get(type(attribute))
        return text if stem is None else self._alias(stem(attribute), text)

    def _alias(self, stem: str, text: str) -> str:
        """The alias of an attribute by its text; the first of a stem has no number."""
        if (known := self._aliases.get(text)) is not None:
            return known
        # As MLIR does: a number follows an underscore where the stem ends with a digit.
        stem = f"{stem}_" if stem[-1].isdigit() else stem
        uses = self._uses[stem] = self._uses.get(stem, 0) + 1
        alias = self._aliases[text] = f"#{stem}{uses - 1 or ''}"
        return alias

    @contextmanager
    def _diverted(self) -> Generator[io.StringIO]:
        """Prints into a text of its own."""
        stream, self.stream = self.stream, io.StringIO()
        try:
            yield self.stream
        finally:
            self.stream = stream

    def _print_attribute(self, attribute: Attribute) -> None:
        constant = _constant(attribute)
        if constant is None:
            super().print_attribute(attribute)
            return
        count = len(constant.data.data) // constant.get_element_type().compile_time_size
        if self._elide_above is not None and count > self._elide_above:
            self.print_string("dense_resource<__elided__> : ")
            self.print_attribute(constant.type)
        elif count > _HEXADECIMAL_ABOVE:
            self.print_string(f'dense<"0x{_bytes(constant).hex().upper()}"> : ')
            self.print_attribute(constant.type)
        else:
            super().print_attribute(attribute)


def _constant(attribute: Attribute) -> DenseIntOrFPElementsAttr[Any] | None:
    if not isinstance(attribute, DenseIntOrFPElementsAttr):
        return None
    return cast("DenseIntOrFPElementsAttr[Any]", attribute)


def _bytes(constant: DenseIntOrFPElementsAttr[Any]) -> bytes:
    """The elements as the text has them: booleans are packed there, the first in the lowest bit."""
    data = constant.data.data
    if constant.get_element_type() != IntegerType(1):
        return data
    bits = "".join("1" if element else "0" for element in reversed(data))
    return int(bits, 2).to_bytes(-(-len(data) // 8), "little")


def module_text(
    module: ModuleOp,
    *,
    elide_above: int | None = None,
    generic: bool = False,
    locations: bool = False,
) -> str:
    """The module as MLIR; constants of more elements than `elide_above` are only named. Layouts,
    memories, affine maps and the system have aliases.

    Where there are functions for the CPU, they are in a module of their own, beside that of the
    device, which declares them.
    """
    if any(isinstance(op, FuncOp) and is_cpu_function(op) for op in module.body.block.ops):
        module = _divided(module)
    stream = io.StringIO()
    printer = ModulePrinter(
        stream, elide_above=elide_above, generic=generic, locations=locations, aliases=True
    )
    printer.print_op(module)
    return f"{printer.alias_definitions()}{stream.getvalue()}\n"


def _divided(module: ModuleOp) -> ModuleOp:
    """The module with its functions in one for the device and one for the CPU."""
    device: list[Operation] = []
    cpu: list[Operation] = []
    for op in module.body.block.ops:
        copy = op.clone()
        if not isinstance(copy, FuncOp) or not is_cpu_function(copy):
            device.append(copy)
            continue
        type_ = copy.function_type
        declaration = FuncOp(copy.sym_name.data, type_, Region(), "private")
        declaration.attributes[FUNCTION_TYPE] = StringAttr(f"{CPU_FUNCTION.data}_declaration")
        device.append(declaration)
        copy.sym_visibility = None
        cpu.append(copy)
    wrappers = [DeviceModuleOp(device), CPUModuleOp(cpu)]
    return ModuleOp(wrappers, dict(module.attributes), module.sym_name)


# Modules as MLIR text.


# The state of a module that passes need, for the message of one that could not run.

_LATER = {
    Group.TTIR: ("ttnn", "ttmetal", "ttkernel", "emitc"),
    Group.TTNN: ("ttmetal", "ttkernel", "emitc"),
    Group.TTMETAL: ("ttnn", "emitc"),
    Group.EMITC: ("emitc",),
}
"""Dialects that modules were lowered to which are past the passes of a group."""
_NAMES = {"ttnn": "TTNN", "ttmetal": "TTMetal", "ttkernel": "TTKernel", "emitc": "EmitC"}


def unmet_need(name: str, module: ModuleOp) -> CompileError | None:
    """Returns why a pass cannot run on a module, or None if its preconditions hold."""
    if not is_known(name):
        return None
    entry = find(name)
    if not isinstance(entry, PassEntry):
        return None
    found = {operation_name(op).partition(".")[0]: op for op in module.walk(reverse=True)}
    for dialect in _LATER.get(entry.group, ()):
        if dialect in found:
            return CompileError(
                f"--{name} is a pass on {entry.group.value}, and the module has ops of "
                f"{_NAMES[dialect]}",
                found[dialect],
                remedy="run it on the module as it was before its lowering",
            )
    on_programs = entry.group is Group.TTMETAL or "ttmetal" in name
    if "ttir" in found and (entry.group in (Group.TTNN, Group.EMITC)):
        what, remedy = "calls of TTNN", "run --convert-ttir-to-ttnn and --ttnn-layout first"
        if on_programs:
            what, remedy = "device programs", "run --ttir-to-ttmetal-pipeline first"
        return CompileError(
            f"--{name} needs {what}: '{operation_name(found['ttir'])}' is an op of TTIR",
            found["ttir"],
            remedy=remedy,
        )
    generic = next((op for op in module.walk() if op.name == "ttir.generic"), None)
    if generic is not None and entry.group in (Group.TTIR, Group.TTMETAL):
        return CompileError(
            f"--{name} needs ops on whole tensors, and the module has ttir.generic already",
            generic,
            remedy="run --inline=generics=true first",
        )
    if entry.group is Group.TTIR and not on_programs:
        return None
    for op in _without_layout(module):
        first = "--ttmetal-complete-programs" if on_programs else "--ttnn-layout"
        return CompileError(f"--{name} needs layouts", op, remedy=f"run {first} first")
    return None


def _without_layout(module: ModuleOp) -> Iterator[Operation]:
    """The ops with a tensor that has no layout, in order."""
    for op in module.walk():
        values: list[SSAValue] = [*op.operands, *op.results]
        if isinstance(op, FuncOp) and op.body.blocks:
            values += op.body.blocks[0].args
        if any(isinstance(value.type, TensorType) and not has_placement(value) for value in values):
            yield op


# Runs a pipeline, and shows what each pass did and how long it took.

_OF_STATE = (AssertionError, AttributeError, LookupError, TypeError, ValueError)
"""Exceptions of a pass on a module that is not in the state that it needs. Others, as NameError or
NotImplementedError, are errors of the compiler on any module."""


@dataclass(frozen=True)
class PassTime:
    """Duration of a pass or stage in seconds, and the op count after it if counted."""

    name: str
    seconds: float
    ops: int | None


class Instrument(Protocol):
    """Looks at the module between passes."""

    def before(self, pass_: ModulePass, module: ModuleOp) -> None:
        """Called before a pass runs."""
        ...

    def after(self, pass_: ModulePass, module: ModuleOp) -> None:
        """Called after a pass ran, before the module is verified."""
        ...

    def failed(self, pass_: ModulePass, module: ModuleOp) -> None:
        """Called instead when a pass raised an error."""
        ...


@dataclass
class PassRunner:
    """Applies passes in order.

    With `dump` the module is written after each pass that changed it, `verify` checks it after each
    pass: an error there is one of the compiler. `times` has an entry per pass; with `count_ops` it
    holds the number of ops.
    """

    context: Context
    dump: Path | None = None
    verify: bool = False
    count_ops: bool = False
    instruments: Sequence[Instrument] = ()
    times: list[PassTime] = field(default_factory=list[PassTime])
    _last: str | None = None
    _number: int = 0

    def run(self, module: ModuleOp, passes: Sequence[ModulePass]) -> None:
        """Changes `module`. Raises CompileError for what a pass refuses, and when the module that
        a pass leaves does not verify; OSError if the dump cannot be written."""
        if self.dump is not None and self._last is None:
            try:
                self.dump.mkdir(parents=True, exist_ok=True)
                self._write(module, "input")
            except OSError as error:
                raise CompileError(f"cannot write '{self.dump}': {error.strerror}") from error
        for pass_ in passes:
            for instrument in self.instruments:
                instrument.before(pass_, module)
            start = perf_counter()
            try:
                pass_.apply(self.context, module)
            except Exception as error:
                for instrument in self.instruments:
                    instrument.failed(pass_, module)
                if isinstance(error, _OF_STATE):
                    # Passes rely on the state that those before them leave.
                    unmet = unmet_need(pass_.name, module)
                    if unmet is not None:
                        raise unmet from error
                raise
            seconds = perf_counter() - start
            count = sum(1 for _ in module.walk()) if self.count_ops else None
            self.times.append(PassTime(pass_.name, seconds, count))
            self._number += 1
            if self.dump is not None:
                self._write(module, pass_.name)
            for instrument in self.instruments:
                instrument.after(pass_, module)
            if self.verify:
                verify_module(module, pass_.name)
                verify_order(module, pass_.name)

    @contextmanager
    def stage(self, name: str) -> Generator[None]:
        """Times what is no pass: reading, printing, ..."""
        start = perf_counter()
        yield
        self.times.append(PassTime(name, perf_counter() - start, None))

    def _write(self, module: ModuleOp, name: str) -> None:
        text = module_text(module, elide_above=ELIDED_ELEMENTS)
        if self.dump is not None and text != self._last:
            (self.dump / f"{self._number:02}-{name}.mlir").write_text(text, encoding="utf-8")
        self._last = text

    def write_times(self, stream: TextIO) -> None:
        """A table of the passes: milliseconds, share of the total, ops after the pass."""
        total = sum(time.seconds for time in self.times)
        width = max((len(time.name) for time in self.times), default=0)
        for time in self.times:
            share = 100.0 * time.seconds / total if total else 0.0
            ops = "" if time.ops is None else f"  {time.ops:7} ops"
            stream.write(
                f"{time.name:<{width}}  {time.seconds * 1e3:9.1f} ms  {share:5.1f} %{ops}\n"
            )
        stream.write(f"{'total':<{width}}  {total * 1e3:9.1f} ms\n")
