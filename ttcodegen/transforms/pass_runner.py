"""Runner of pass pipelines, with timing and precondition checks."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Protocol, TextIO

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass

from ttcodegen.dialects.operations.operation import operation_name
from ttcodegen.dialects.operations.verification import verify_module, verify_order
from ttcodegen.dialects.ttnn.placement import has_placement
from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.transforms.module_text import ELIDED_ELEMENTS, module_text
from ttcodegen.transforms.registry import Group, PassEntry, find, is_known

# Preconditions of passes, for the message of a pass that failed.

_LATER = {
    Group.TTIR: ("ttnn", "ttmetal", "ttkernel", "emitc"),
    Group.TTNN: ("ttmetal", "ttkernel", "emitc"),
    Group.TTMETAL: ("ttnn", "emitc"),
    Group.EMITC: ("emitc",),
}
"""Dialects that a module has been lowered to once it is past the passes of a group."""
_NAMES = {"ttnn": "TTNN", "ttmetal": "TTMetal", "ttkernel": "TTKernel", "emitc": "EmitC"}


def unmet_need(name: str, module: ModuleOp) -> CompileError | None:
    """Returns the unmet precondition of a pass on a module, or None if its preconditions hold."""
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
    """Yields the ops with a tensor without layout, in order."""
    for op in module.walk():
        values: list[SSAValue] = [*op.operands, *op.results]
        if isinstance(op, FuncOp) and op.body.blocks:
            values += op.body.blocks[0].args
        if any(isinstance(value.type, TensorType) and not has_placement(value) for value in values):
            yield op


# Runner of pipelines, with dumps and times of passes.

_STATE_ERRORS = (AssertionError, AttributeError, LookupError, TypeError, ValueError)
"""Exceptions that a pass raises on a module in an unexpected state.

Others, such as NameError or NotImplementedError, are compiler errors on any module.
"""


@dataclass(frozen=True)
class PassTime:
    """Duration of a pass or stage in seconds, and the op count after it if counted."""

    name: str
    seconds: float
    ops: int | None


class Instrument(Protocol):
    """Observer of the module between passes."""

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

    `dump` is a folder for the module after each pass that changed it. `verify` verifies the module
    after each pass: a failure is a compiler error. `times` has an entry per pass; `count_ops` adds
    the number of ops.
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
        """Applies the passes to `module`, in place.

        Raises CompileError for what a pass refuses, if the module after a pass does not verify, or
        if the dump folder cannot be created; OSError if a dump cannot be written.
        """
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
                if isinstance(error, _STATE_ERRORS):
                    # Passes rely on the state that earlier passes establish.
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
        """Times a stage that is no pass, such as reading or printing."""
        start = perf_counter()
        yield
        self.times.append(PassTime(name, perf_counter() - start, None))

    def _write(self, module: ModuleOp, name: str) -> None:
        text = module_text(module, elide_above=ELIDED_ELEMENTS)
        if self.dump is not None and text != self._last:
            (self.dump / f"{self._number:02}-{name}.mlir").write_text(text, encoding="utf-8")
        self._last = text

    def write_times(self, stream: TextIO) -> None:
        """Writes a table of passes: milliseconds, share of the total, ops after the pass."""
        total = sum(time.seconds for time in self.times)
        width = max((len(time.name) for time in self.times), default=0)
        for time in self.times:
            share = 100.0 * time.seconds / total if total else 0.0
            ops = "" if time.ops is None else f"  {time.ops:7} ops"
            stream.write(
                f"{time.name:<{width}}  {time.seconds * 1e3:9.1f} ms  {share:5.1f} %{ops}\n"
            )
        stream.write(f"{'total':<{width}}  {total * 1e3:9.1f} ms\n")
