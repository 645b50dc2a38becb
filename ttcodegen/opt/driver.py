"""Driver that runs passes on each module of a file; expected diagnostics and reproducers."""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from xdsl.dialects.builtin import ModuleOp

from ttcodegen.dialects.operations.verification import verify_module
from ttcodegen.dialects.ttcore.dialect import set_system
from ttcodegen.foundation.diagnostics import (
    CompileError,
    Diagnostic,
    Diagnostics,
    Note,
    Place,
    Severity,
    Source,
)
from ttcodegen.foundation.whole_files import write_whole
from ttcodegen.frontends import module_for_passes
from ttcodegen.ops.dialects import load_dialects
from ttcodegen.opt.command_line import Request, spelling
from ttcodegen.parsing.structure import refuse_unregistered
from ttcodegen.transforms.module_text import module_text
from ttcodegen.transforms.pass_runner import PassRunner
from ttcodegen.transforms.registry import (
    OptionValue,
    Step,
    parse_pipeline,
    passes_of,
    pipeline_text,
    schedule,
)

if TYPE_CHECKING:
    from xdsl.passes import ModulePass

    from ttcodegen.systems.description import SystemDescription


# Files of several modules, and the diagnostics that their comments expect.

SEPARATOR = "// -----"
_SEPARATOR = re.compile(rf"^{re.escape(SEPARATOR)}[ \t]*\n?", re.MULTILINE)

_EXPECTATION = re.compile(
    r"expected-(error|warning|note|remark)(-re)?[ \t]*"
    r"(?:@([+-]\d+|above|below|unknown))?[ \t]*\{\{(.*)\}\}[ \t]*$"
)


def split(source: Source) -> list[Source]:
    """Splits a text at lines `// -----`.

    Each part is padded with empty lines, so that line numbers are those of the file.
    """
    parts: list[Source] = []
    start = 0
    for match in [*_SEPARATOR.finditer(source.text), None]:
        end = len(source.text) if match is None else match.start()
        blank = "\n" * source.text.count("\n", 0, start)
        parts.append(Source(source.name, blank + source.text[start:end]))
        if match is not None:
            start = match.end()
    return parts


@dataclass(frozen=True)
class Expectation:
    """Expected diagnostic of a comment: line (None for no location) and message pattern."""

    severity: str
    line: int | None
    text: str
    pattern: re.Pattern[str]
    written: int
    """Line of the comment."""

    def matches(self, severity: str, line: int | None, message: str) -> bool:
        """Returns whether a diagnostic meets the expectation."""
        return (
            severity == self.severity
            and line == self.line
            and self.pattern.search(message) is not None
        )


def expectations(source: Source) -> list[Expectation]:
    """Expected diagnostics in the comments of a text, in order."""
    found: list[Expectation] = []
    for number, line in enumerate(source.text.splitlines(), start=1):
        match = _EXPECTATION.search(line)
        if match is None:
            continue
        severity, regular, offset, text = match.groups()
        # Double braces hold regular expressions, as in FileCheck.
        pieces = re.split(r"\{\{(.*?)\}\}", text) if regular else [text]
        pattern = "".join(p if i % 2 else re.escape(p) for i, p in enumerate(pieces))
        found.append(
            Expectation(severity, _expected_line(number, offset), text, re.compile(pattern), number)
        )
    return found


def _expected_line(number: int, offset: str | None) -> int | None:
    match offset:
        case None:
            return number
        case "above":
            return number - 1
        case "below":
            return number + 1
        case "unknown":
            return None
        case _:
            return number + int(offset)


def unmet(source: Source, diagnostics: Iterable[Diagnostic]) -> list[str]:
    """Differences between actual and expected diagnostics; unexpected notes are ignored."""
    open_ = expectations(source)
    differences: list[str] = []
    for diagnostic in diagnostics:
        severity = str(diagnostic.severity)
        line = _line(source, diagnostic.place)
        met = _take(open_, severity, line, diagnostic.message)
        if not met and diagnostic.severity is not Severity.NOTE:
            where = source.name if line is None else f"{source.name}:{line}"
            differences.append(f"{where}: error: unexpected {severity}: {diagnostic.message}")
        for note in _notes(diagnostic):
            _take(open_, "note", _line(source, note.place), note.message)
    differences += [
        f"{source.name}:{e.written}: error: expected {e.severity} was not produced: {e.text}"
        for e in open_
    ]
    return differences


def _notes(diagnostic: Diagnostic) -> Sequence[Note]:
    remedy = () if diagnostic.remedy is None else (Note(diagnostic.remedy),)
    return (*diagnostic.notes, *remedy)


def _line(source: Source, place: Place) -> int | None:
    if isinstance(place, int):
        return source.location(place).line
    return None if place is None else place.line


def _take(open_: list[Expectation], severity: str, line: int | None, message: str) -> bool:
    for expectation in open_:
        if expectation.matches(severity, line, message):
            open_.remove(expectation)
            return True
    return False


# What reproduces the failure of a pass: the module before it, and the passes from it on.

_PIPELINE = re.compile(
    r'\{-#.*?mlir_reproducer\s*:\s*\{[^{}]*?pipeline\s*:\s*"((?:[^"\\]|\\.)*)"', re.DOTALL
)
_FOOTER = """
{{-#
  external_resources: {{
    mlir_reproducer: {{
      pipeline: "{pipeline}",
      disable_threading: true,
      verify_each: {verify}
    }}
  }}
#-}}
"""


def write_reproducer(
    path: str | None, module_text: str, steps: Sequence[Step], *, verify: bool
) -> str:
    """Writes a reproducer in MLIR's format; returns the file's path.

    Raises:
        CompileError: if it cannot be written.
    """
    pipeline = pipeline_text(steps).replace("\\", "\\\\").replace('"', '\\"')
    text = module_text + _FOOTER.format(pipeline=pipeline, verify=str(verify).lower())
    try:
        if path is None:
            with tempfile.NamedTemporaryFile(
                "w", prefix="ttcodegen-opt-", suffix=".mlir", delete=False, encoding="utf-8"
            ) as file:
                file.write(text)
                return file.name
        Path(path).write_text(text, "utf-8")
    except OSError as error:
        raise CompileError(f"the reproducer cannot be written: {error}") from None
    return path


def reproduced_steps(source: Source) -> list[Step]:
    """Passes of a reproducer.

    Raises:
        CompileError: if the text is no reproducer.
    """
    match = _PIPELINE.search(source.text)
    if match is None:
        raise CompileError(
            "this is no reproducer: it names no pipeline",
            remedy="reproducers end with {-# external_resources: {mlir_reproducer: ...} #-}",
        )
    return parse_pipeline(re.sub(r"\\(.)", r"\1", match.group(1)))


# Runs the passes of a request on each module of a file.

SPELLING_VARIABLE = "TTCODEGEN_PRINT_SPELLING"
"""Environment variable with the default spelling."""
_NAMES_FILES = (
    "convert-tt-lang-to-emitc",
    "convert-ttnn-to-emitc",
    "convert-ttkernel-to-emitc",
    "convert-ttmetal-to-emitc",
)
"""Passes that generate files, which record their source."""


def run_request(request: Request, source: Source) -> bool:
    """Processes a text as requested; returns whether it succeeded.

    Raises:
        OptionError: if a pass option is invalid.
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
        write_whole(target, text)
    except OSError as error:
        raise CompileError(f"cannot write '{path}': {error.strerror or error}") from None


@dataclass
class _Run:
    """Run of the passes on one module."""

    request: Request
    scheduled: Sequence[tuple[Step, ModulePass]]
    source: Source
    system: SystemDescription | None
    """System of the module; None for the one that it declares."""
    diagnostics: Diagnostics = field(default_factory=Diagnostics)
    reproducer: str | None = None

    def execute(self) -> str | None:
        """Runs the passes; returns the module's text, None after errors."""
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
        """Reports the diagnostics, or compares them with the expected ones; returns success."""
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
        """Passes, with file name and hash set for those that generate code."""
        passes: list[ModulePass] = []
        for step, pass_ in self.scheduled:
            if step.name in _NAMES_FILES:
                from ttcodegen.emission.interface_description import name_of_file

                known: dict[str, OptionValue] = {
                    "module-name": name_of_file(self.request.file),
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
        from ttcodegen.opt.command_line import IRPrinting

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
        """Writes a reproducer with the module before the failed pass.

        Repeats the preceding passes, which costs less than keeping the module's text before each
        pass.
        """
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
        from ttcodegen.compat.ttnn_modules import respelled

        return respelled(text, year)


def _write_timing(runner: PassRunner, stream: TextIO) -> None:
    stream.write("===-------------------- Execution time report --------------------===\n")
    runner.write_times(stream)
