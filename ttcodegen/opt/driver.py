"""Runs the passes of a request on each module of a file."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from xdsl.dialects.builtin import ModuleOp

from ttcodegen.dialects.operations.verification import verify_module
from ttcodegen.dialects.ttcore.module_system import set_system
from ttcodegen.foundation.diagnostics import (
    CompileError,
    Diagnostics,
    Severity,
    Source,
)
from ttcodegen.frontends import module_for_passes
from ttcodegen.ops.dialects import load_dialects
from ttcodegen.opt.chunks import SEPARATOR, split, unmet
from ttcodegen.opt.command_line import Request, spelling
from ttcodegen.opt.reproducer import reproduced_steps, write_reproducer
from ttcodegen.parsing.structure import refuse_unregistered
from ttcodegen.transforms.module_text import module_text
from ttcodegen.transforms.pass_runner import PassRunner
from ttcodegen.transforms.registry import OptionValue, Step, passes_of, pipeline_text, schedule

if TYPE_CHECKING:
    from xdsl.passes import ModulePass

    from ttcodegen.systems.description import SystemDescription


SPELLING_VARIABLE = "TTCODEGEN_PRINT_SPELLING"
"""The environment variable that chooses a spelling where no option does."""
_NAMES_FILES = (
    "convert-tt-lang-to-emitc",
    "convert-ttnn-to-emitc",
    "convert-ttkernel-to-emitc",
    "convert-ttmetal-to-emitc",
)
"""The passes that make files and say what from."""


def run_request(request: Request, source: Source) -> bool:
    """Does what the request asks for with a text; whether all went well.

    Raises:
        OptionError: if an option of a pass is not possible.
        CompileError: if the output cannot be written, or the text is no reproducer.
    """
    steps = request.steps
    if request.run_reproducer:
        steps = [*steps, *reproduced_steps(source)]
    scheduled = schedule(steps)
    if request.dump_pass_pipeline:
        print(f"Pass Manager: {pipeline_text(step for step, _ in scheduled)}", file=sys.stderr)
    system = request.system
    parts = split(source) if request.split_input_file else [source]
    outputs: list[str] = []
    succeeded = True
    for part in parts:
        run = _Run(request, scheduled, part, system)
        text = run.execute()
        succeeded &= run.report(failed=text is None)
        if text is not None:
            outputs.append(text)
    if outputs:
        _write(request.o, f"\n{SEPARATOR}\n".join(outputs))
    return succeeded


def _write(path: str, text: str) -> None:
    if path == "-":
        sys.stdout.write(text)
        return
    target = Path(path)
    try:
        if target.exists() and not target.is_file():
            # A device or a pipe.
            target.write_text(text, "utf-8")
            return
        # Beside it first: a file is there as a whole or not at all.
        with tempfile.NamedTemporaryFile(
            "w", dir=target.resolve().parent, delete=False, encoding="utf-8"
        ) as file:
            file.write(text)
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(file.name, 0o666 & ~mask)
        os.replace(file.name, target)
    except OSError as error:
        raise CompileError(f"cannot write '{path}': {error.strerror or error}") from None


@dataclass
class _Run:
    """The passes, run on one module."""

    request: Request
    scheduled: Sequence[tuple[Step, ModulePass]]
    source: Source
    system: SystemDescription | None
    """The system that the module is for; None for the one that it names."""
    diagnostics: Diagnostics = field(default_factory=Diagnostics)
    reproducer: str | None = None

    def execute(self) -> str | None:
        """The module as the passes leave it, None if there were errors."""
        try:
            module = self._parse(self.diagnostics)
            runner = self._runner()
            try:
                self._apply(runner, module)
            finally:
                if self.request.mlir_timing:
                    _write_timing(runner, sys.stderr)
            return self._text(module)
        except CompileError as error:
            self.diagnostics.diagnostics += error.diagnostics
            return None

    def report(self, *, failed: bool) -> bool:
        """Reports the diagnostics, or compares them with what is expected; whether all is well."""
        if self.request.verify_diagnostics:
            differences = unmet(self.source, self.diagnostics.diagnostics)
            for difference in differences:
                print(difference, file=sys.stderr)
            return not differences
        self.diagnostics.write(sys.stderr, self.source)
        self._report_reproducer()
        errors = [d for d in self.diagnostics.diagnostics if d.severity is Severity.ERROR]
        return not failed and not errors

    def _report_reproducer(self) -> None:
        if self.reproducer is not None:
            print(
                f"note: what reproduces this is in {self.reproducer}: run it with --run-reproducer",
                file=sys.stderr,
            )

    def _passes(self) -> list[ModulePass]:
        """The passes; code is named after the file and says what it was made from."""
        passes: list[ModulePass] = []
        for step, pass_ in self.scheduled:
            if step.name in _NAMES_FILES:
                stem = Path(self.source.name).name.partition(".")[0]
                known: dict[str, OptionValue] = {
                    "module-name": "model" if self.request.file == "-" else stem,
                    "input-hash": self.source.digest,
                }
                (pass_,) = passes_of(Step(step.name, known | dict(step.options)))
            passes.append(pass_)
        return passes

    def _parse(self, diagnostics: Diagnostics) -> ModuleOp:
        module = module_for_passes(self.source, diagnostics)
        if not self.request.allow_unregistered_dialect:
            refuse_unregistered(module, "--allow-unregistered-dialect keeps it as it is")
        verify_module(module)
        if self.system is not None:
            set_system(module, self.system)
        return module

    def _runner(self) -> PassRunner:
        from ttcodegen.opt.ir_printing import IRPrinting

        printing = IRPrinting.of(self.request, self._text, sys.stderr)
        return PassRunner(
            load_dialects(),
            verify=self.request.verify_each,
            count_ops=self.request.mlir_timing,
            instruments=() if printing is None else (printing,),
        )

    def _apply(self, runner: PassRunner, module: ModuleOp) -> None:
        passes = self._passes()
        for index, pass_ in enumerate(passes):
            try:
                runner.run(module, [pass_])
            except CompileError:
                self._reproduce(passes[:index])
                raise
            except Exception:
                # The caller writes the report of the bug.
                self._reproduce(passes[:index])
                self._report_reproducer()
                raise

    def _reproduce(self, done: Sequence[ModulePass]) -> None:
        """Writes the module as it was before the pass that failed. The passes before it run once
        more, which costs less than keeping the text of the module before each pass."""
        path = self.request.mlir_pass_pipeline_crash_reproducer
        if self.request.verify_diagnostics or path == "":
            return
        module = self._parse(Diagnostics())
        PassRunner(load_dialects()).run(module, done)
        self.reproducer = write_reproducer(
            path,
            module_text(module, locations=True),
            [step for step, _ in self.scheduled[len(done) :]],
            verify=self.request.verify_each,
        )

    def _text(self, module: ModuleOp) -> str:
        text = module_text(
            module,
            elide_above=self.request.mlir_elide_elementsattrs_if_larger,
            generic=self.request.mlir_print_op_generic,
            locations=self.request.mlir_print_debuginfo,
        )
        year = self.request.print_spelling
        if year is None and (wanted := os.environ.get(SPELLING_VARIABLE)):
            year = spelling(wanted, SPELLING_VARIABLE)
        if year is None:
            return text
        from ttcodegen.compat.printed_spellings import respelled

        return respelled(text, year)


def _write_timing(runner: PassRunner, stream: TextIO) -> None:
    stream.write("===-------------------- Execution time report --------------------===\n")
    runner.write_times(stream)
