"""Command line of `ttcodegen-opt`: passes in order, driver options, IR printing."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TextIO

from ttcodegen.compat.refusals import SPELLINGS
from ttcodegen.foundation.messages import Level, closest, did_you_mean
from ttcodegen.systems.description import ARCHITECTURES
from ttcodegen.transforms.registry import (
    Group,
    OptionError,
    PipelineEntry,
    Step,
    entries,
    is_known,
    parse_pipeline,
    parse_step,
)

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp
    from xdsl.passes import ModulePass

    from ttcodegen.systems.description import SystemDescription


# The command line of `ttcodegen-opt`: passes in order, and options of the driver.
#
# Options are written as MLIR's tools take them: with one or two dashes, values after `=` or as
# the next argument, flags alone or as `=true` and `=false`.

_ARGUMENT = re.compile(r"--?([A-Za-z][\w-]*)(?:=(.*))?", re.DOTALL)


@dataclass(frozen=True)
class DriverOption:
    """Driver option, whose value is stored in `field` of the request."""

    name: str
    kind: Literal["flag", "text", "texts", "integer"]
    description: str
    value_name: str = ""

    @property
    def field(self) -> str:
        return self.name.replace("-", "_")


OPTIONS = (
    DriverOption("o", "text", "Write the module to FILE; - is standard output.", "FILE"),
    DriverOption(
        "pass-pipeline",
        "text",
        "Run the passes of a textual pipeline, such as 'builtin.module(inline,ttir-fusing)'.",
        "TEXT",
    ),
    DriverOption("split-input-file", "flag", "Treat the parts between lines '// -----' as files."),
    DriverOption(
        "verify-diagnostics",
        "flag",
        "Compare errors and warnings with the comments expected-error, expected-warning and "
        "expected-note; exit with 0 if they agree.",
    ),
    DriverOption("verify-each", "flag", "Verify the module after each pass (true)."),
    DriverOption("allow-unregistered-dialect", "flag", "Keep operations of unknown dialects."),
    DriverOption("show-dialects", "flag", "List the dialects, and end."),
    DriverOption("list-passes", "flag", "List the names of passes and pipelines, and end."),
    DriverOption("dump-pass-pipeline", "flag", "Write the passes that run to standard error."),
    DriverOption("mlir-print-op-generic", "flag", "Print all operations in generic form."),
    DriverOption("mlir-print-debuginfo", "flag", "Print locations."),
    DriverOption(
        "print-spelling",
        "text",
        "Print as tt-mlir spelled modules in YEAR, 2024 or 2025; TTCODEGEN_PRINT_SPELLING without "
        "it.",
        "YEAR",
    ),
    DriverOption(
        "mlir-elide-elementsattrs-if-larger",
        "integer",
        "Print of constants of more elements only that they are there.",
        "N",
    ),
    DriverOption("mlir-print-ir-before-all", "flag", "Print the module before each pass."),
    DriverOption("mlir-print-ir-after-all", "flag", "Print the module after each pass."),
    DriverOption(
        "mlir-print-ir-after-change",
        "flag",
        "Of the prints after passes, only those of passes that changed the module.",
    ),
    DriverOption("mlir-print-ir-after-failure", "flag", "Print the module after a pass failed."),
    DriverOption("mlir-print-ir-before", "texts", "Print the module before PASS.", "PASS"),
    DriverOption("mlir-print-ir-after", "texts", "Print the module after PASS.", "PASS"),
    DriverOption("mlir-timing", "flag", "Show how long each pass took."),
    DriverOption(
        "mlir-disable-threading", "flag", "Accepted: passes run one after the other anyway."
    ),
    DriverOption(
        "mlir-pass-pipeline-crash-reproducer",
        "text",
        "Where what reproduces the failure of a pass is written; a new temporary file by default.",
        "FILE",
    ),
    DriverOption(
        "tt-lang",
        "texts",
        "Let the module call the operations of a Python program (ttir.tt_lang_op).",
        "PROGRAM",
    ),
    DriverOption("arch", "text", "The architecture (wormhole_b0).", "NAME"),
    DriverOption(
        "system-desc",
        "text",
        "The system that modules are for: a .ttsys file, or a machine by name (n150, p150...).",
        "F",
    ),
    DriverOption("machine", "text", "The same.", "NAME"),
    DriverOption("run-reproducer", "flag", "Run the pipeline that a reproducer names."),
    DriverOption("q", "flag", "Report warnings and errors only, as --log-level=WARNING does."),
    DriverOption("v", "flag", "Report everything, as --log-level=DEBUG does."),
    DriverOption(
        "log-level",
        "text",
        f"Which messages go to standard error, from this level on: {', '.join(Level.__members__)} "
        "(INFO).",
        "LEVEL",
    ),
    DriverOption("help", "flag", "Show this."),
    DriverOption("version", "flag", "Show the version."),
)

_REFUSED = {
    "emit-bytecode": "modules are printed as text only",
    "mlir-print-ir-module-scope": "modules are printed as a whole anyway",
    "load-pass-plugin": "there are no plugins",
    "load-dialect-plugin": "there are no plugins",
}


@dataclass
class Request:
    """Parsed command line."""

    file: str = "-"
    steps: list[Step] = field(default_factory=list[Step])
    o: str = "-"
    split_input_file: bool = False
    verify_diagnostics: bool = False
    verify_each: bool = True
    allow_unregistered_dialect: bool = False
    show_dialects: bool = False
    list_passes: bool = False
    dump_pass_pipeline: bool = False
    mlir_print_op_generic: bool = False
    mlir_print_debuginfo: bool = False
    print_spelling: str | None = None
    mlir_elide_elementsattrs_if_larger: int | None = None
    mlir_print_ir_before_all: bool = False
    mlir_print_ir_after_all: bool = False
    mlir_print_ir_after_change: bool = False
    mlir_print_ir_after_failure: bool = False
    mlir_print_ir_before: list[str] = field(default_factory=list[str])
    mlir_print_ir_after: list[str] = field(default_factory=list[str])
    mlir_timing: bool = False
    mlir_disable_threading: bool = False
    mlir_pass_pipeline_crash_reproducer: str | None = None
    tt_lang: list[str] = field(default_factory=list[str])
    arch: str | None = None
    system_desc: str | None = None
    machine: str | None = None
    run_reproducer: bool = False
    q: bool = False
    log_level: str = "INFO"
    v: bool = False
    help: bool = False
    version: bool = False

    @property
    def system(self) -> SystemDescription | None:
        """Target system, None if the command line selects none.

        Raises:
            CompileError: if it is unknown, or options contradict each other.
        """
        from ttcodegen.flatbuffer.system import chosen_system

        return chosen_system(self.arch, self.machine or self.system_desc)


def parse_command_line(arguments: Sequence[str]) -> Request:
    """Parses the arguments; passes keep their order.

    Raises:
        OptionError: if a pass or option is unknown, or a value is invalid.
    """
    request = Request()
    known = {option.name: option for option in OPTIONS} | {"h": OPTIONS[-2]}
    files: list[str] = []
    rest = iter(arguments)
    for argument in rest:
        match = _ARGUMENT.fullmatch(argument)
        if match is None or argument == "-":
            files.append(argument)
            continue
        name, value = match.groups()
        if name in known:
            _set(request, known[name], value, rest)
        elif is_known(name):
            request.steps.append(parse_step(name, value or ""))
        else:
            raise _unknown(name, known)
    if len(files) > 1:
        raise OptionError(f"one file is read, found {', '.join(files)}")
    if files:
        request.file = files[0]
    return request


def _set(request: Request, option: DriverOption, value: str | None, rest: Iterator[str]) -> None:
    if option.kind != "flag" and value is None:
        value = next(rest, None)
        if value is None:
            raise OptionError(f"--{option.name} needs a value: {option.value_name}")
    match option.kind:
        case "flag":
            known = {None: True, "": True, "true": True, "1": True, "false": False, "0": False}
            if value not in known:
                raise OptionError(f"--{option.name} is true or false, found '{value}'")
            setattr(request, option.field, known[value])
            if request.q:
                request.log_level = "WARNING"
            elif request.v:
                request.log_level = "DEBUG"
        case "integer":
            if value is None or not value.isdecimal():
                raise OptionError(f"--{option.name} is a number, found '{value}'")
            setattr(request, option.field, int(value))
        case "texts" if option.name == "tt-lang":
            request.tt_lang.append(value or "")
        case "texts":
            names = [_pass_name(name) for name in (value or "").split(",")]
            getattr(request, option.field).extend(names)
        case "text" if option.name == "pass-pipeline":
            request.steps += parse_pipeline(value or "")
        case "text" if option.name == "log-level":
            request.log_level = _level_name(value or "")
        case "text" if option.name == "arch":
            request.arch = _architecture(value or "")
        case "text" if option.name == "print-spelling":
            request.print_spelling = spelling(value or "", f"--{option.name}")
        case "text":
            setattr(request, option.field, value)


def _level_name(text: str) -> str:
    if text.upper() not in Level.__members__:
        known = ", ".join(Level.__members__)
        hint = did_you_mean(text, Level.__members__)
        raise OptionError(f"--log-level is one of {known}, found '{text}'{hint}")
    return text.upper()


def _architecture(text: str) -> str:
    if text not in ARCHITECTURES:
        known = ", ".join(ARCHITECTURES)
        raise OptionError(
            f"--arch is one of {known}, found '{text}'{did_you_mean(text, ARCHITECTURES)}"
        )
    return text


def spelling(year: str, where: str) -> str:
    """Validates a spelling's year; raises OptionError if it is unknown."""
    if year not in SPELLINGS:
        raise OptionError(f"{where} is one of {', '.join(SPELLINGS)}, found '{year}'")
    return year


def _pass_name(text: str) -> str:
    """Registered name of a pass."""
    return parse_step(text.strip(), "").name


def _unknown(name: str, known: dict[str, DriverOption]) -> OptionError:
    from ttcodegen.compat.refusals import reason

    if name in _REFUSED:
        return OptionError(f"there is no option --{name}: {_REFUSED[name]}")
    if (why := reason(name)) is not None:
        return OptionError(f"there is no pass --{name}: {why}")
    names = [*known, *(n for entry in entries() for n in (entry.name, *entry.aliases))]
    close = closest(name, names, 0.6)
    remedy = f"did you mean --{close}?" if close else "--help lists passes and options"
    return OptionError(f"there is no pass or option --{name}", remedy=remedy)


def help_text(program: str) -> str:
    """Text of --help: driver options, then passes by dialect, then pipelines."""
    lines = [
        f"usage: {program} [options and passes] [FILE]",
        "",
        "Runs passes on a module, in the order of the command line, and prints what they made.",
        "FILE is MLIR in text form; without it, or if it is -, standard input is read.",
        "",
        "Options:",
    ]
    for option in OPTIONS:
        dashes, sign = ("-", " ") if len(option.name) == 1 else ("--", "=")
        value = f"{sign}{option.value_name}" if option.value_name else ""
        lines += _row(f"  {dashes}{option.name}{value}", option.description)
    for group in Group:
        members = [entry for entry in entries() if entry.group is group]
        for kind, title in ((False, "Passes"), (True, "Pipelines")):
            found = [e for e in members if isinstance(e, PipelineEntry) is kind]
            if not found:
                continue
            lines += ["", f"{title} on {group.value}:"]
            for entry in found:
                lines += _row(f"  --{entry.name}", entry.description)
                if entry.aliases:
                    lines += _row("", f"also {', '.join(f'--{name}' for name in entry.aliases)}")
                for choice in entry.options:
                    if choice.refusal is None:
                        lines += _row(f"      {choice.encode(choice.default)}", choice.description)
    lines += [
        "",
        "examples:",
        f"  {program} --ttir-to-ttnn-backend-pipeline model.mlir",
        f"  {program} --ttir-fusing --mlir-print-ir-after-change model.mlir -o fused.mlir",
        f"  {program} --pass-pipeline='builtin.module(inline,ttir-fusing)' model.mlir",
        "",
        "exit status: 0 done; 1 the input is wrong, or a pass refuses it; 2 wrong usage; 70 a bug",
    ]
    return "\n".join(lines) + "\n"


def _row(left: str, right: str) -> list[str]:
    """Row of a term and its description, wrapped to 100 columns."""
    import textwrap

    wrapped = textwrap.wrap(right, 100 - 44, break_on_hyphens=False) or [""]
    if len(left) > 42:
        return [left, *(f"{'':44}{line}" for line in wrapped)]
    return [f"{left:<44}{wrapped[0]}", *(f"{'':44}{line}" for line in wrapped[1:])]


# Prints the module between passes.


@dataclass
class IRPrinting:
    """Pass instrument that prints the module around passes, with MLIR's headings."""

    request: Request
    text_of: Callable[[ModuleOp], str]
    stream: TextIO
    _before: str | None = None

    @classmethod
    def of(
        cls, request: Request, text_of: Callable[[ModuleOp], str], stream: TextIO
    ) -> IRPrinting | None:
        """Creates the IR printing of a request, None if it requests none."""
        asked = (
            request.mlir_print_ir_before_all
            or request.mlir_print_ir_after_all
            or request.mlir_print_ir_after_change
            or request.mlir_print_ir_after_failure
            or request.mlir_print_ir_before
            or request.mlir_print_ir_after
        )
        return cls(request, text_of, stream) if asked else None

    def before(self, pass_: ModulePass, module: ModuleOp) -> None:
        """Called before a pass runs."""
        if self.request.mlir_print_ir_after_change:
            self._before = self.text_of(module)
        if self.request.mlir_print_ir_before_all or pass_.name in self.request.mlir_print_ir_before:
            self._write("Before", pass_, self.text_of(module))

    def after(self, pass_: ModulePass, module: ModuleOp) -> None:
        """Called after a pass ran."""
        named = pass_.name in self.request.mlir_print_ir_after
        every = self.request.mlir_print_ir_after_all or (
            self.request.mlir_print_ir_after_change and not self.request.mlir_print_ir_after
        )
        if not (named or every):
            return
        text = self.text_of(module)
        if text != self._before:
            self._write("After", pass_, text)

    def failed(self, pass_: ModulePass, module: ModuleOp) -> None:
        """Called when a pass failed."""
        request = self.request
        if request.mlir_print_ir_after_failure or request.mlir_print_ir_after_all:
            self._write("After", pass_, self.text_of(module), " Failed")

    def _write(self, when: str, pass_: ModulePass, text: str, how: str = "") -> None:
        title = f"IR Dump {when} {type(pass_).__name__} ({pass_.name}){how}"
        self.stream.write(f"// -----// {title} //----- //\n{text}\n")
