"""Alternatives of one op under the model of cost, and the fastest of them as an edit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from xdsl.dialects.func import FuncOp

from ttcodegen.conversions.host_functions.tuning_constants import program_initializer
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.dialects.ttnn.placement import TensorPlacement
from ttcodegen.dialects.ttnn.program_configs import ProgramConfig
from ttcodegen.emission.op_lines import OpLines
from ttcodegen.flatbuffer.modules import module_of
from ttcodegen.flatbuffer.reader import read_ttnn
from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.foundation.messages import aligned, closest
from ttcodegen.optimizer.call import LibraryCall, call_of
from ttcodegen.optimizer.overrides.call_names import CallNames
from ttcodegen.project.code_lines import Edits
from ttcodegen.project.tuning.application import apply_decisions
from ttcodegen.project.tuning.decisions import (
    TUNING_FILE,
    Change,
    EditedCall,
    EditedFile,
    OpIndex,
    compared,
)
from ttcodegen.project.tuning.legality import Legality
from ttcodegen.project.tuning.statements import Statement, statements, tokens
from ttcodegen.project.tuning.values import (
    Constant,
    constants_of,
    kind_of,
    override_fields,
    program_config,
    program_summary,
    same_parameter,
)

MOST_SHOWN = 5
"""Alternatives that are listed."""
_LEAST_GAIN = 0.01
"""Of the time, below which an alternative is not worth an edit."""


@dataclass(frozen=True)
class Alternative:
    """A form of a call, with the time of it and of the calls that read its result."""

    placement: TensorPlacement
    program: ProgramConfig | None
    seconds: float
    l1_bytes: int

    def __str__(self) -> str:
        memory = f"ttnn::{self.placement.buffer_type.upper()}_MEMORY_CONFIG"
        return f"{memory}, {program_text(self.program)}" if self.program else memory


@dataclass(frozen=True)
class Tuning:
    """Alternatives of an op: as it is, and others from the fastest on."""

    op: str
    current: Alternative
    found: tuple[Alternative, ...]

    @property
    def is_better(self) -> bool:
        """True if the fastest alternative is worth an edit."""
        return bool(self.found) and self.found[0].seconds < self.current.seconds * (1 - _LEAST_GAIN)


def program_text(config: ProgramConfig) -> str:
    """A program configuration as C++."""
    return f"{config.cpp}{program_initializer(config)}"


@dataclass
class _Project:
    """The files of a project as they were generated, and as they are."""

    before: Mapping[str, str]
    now: Mapping[str, str]
    lines: Sequence[OpLines]
    flatbuffer: bytes
    architecture: str


def tune(
    before: Mapping[str, str],
    now: Mapping[str, str],
    lines: Sequence[OpLines],
    flatbuffer: bytes,
    architecture: str,
    name: str,
) -> tuple[Tuning, dict[str, str]]:
    """The alternatives of an op, and the files that change if the fastest is chosen, by path.

    Args:
        before: the texts of a project as they were generated, by path.
        now: the texts as they are.
        lines: the lines of its ops as they were generated.
        flatbuffer: its program.
        architecture: its card.
        name: the op.

    Raises:
        CompileError: if there is no such op, or its call cannot be given anything else.
    """
    project = _Project(before, now, lines, flatbuffer, architecture)
    legality = Legality(flatbuffer, architecture)
    function, op = _op_named(flatbuffer, name)
    path, statement = _statement_of(project, function, name)
    constants = constants_of(statements(now.get(TUNING_FILE, "")))
    edited = _edited_statement(project, path, statement)
    call = _as_edited(call_of(op), edited, constants)
    readers = [
        (call_of(use.operation), use.index)
        for use in op.results[0].uses
        if isinstance(use.operation, CatalogueOp)
    ]
    tuning = Tuning(name, *_alternatives(legality, call, readers))
    if not tuning.is_better:
        return tuning, {}
    best = tuning.found[0]
    changes = tuple(_changes(edited, best, tuning.current, constants))
    if not changes:
        raise CompileError(
            f"the call of '{name}' in {path} takes no memory or program configuration in its C++",
            remedy="an override of the op does the same (--write-overrides lists them)",
        )
    gain = (
        f"--tune: estimated {best.seconds * 1e6:.1f} us with the calls that read it, "
        f"not {tuning.current.seconds * 1e6:.1f} us"
    )
    ops = OpIndex(before[path], lines, path).at(statement)
    decided = EditedCall(path, ops, statement, statement, changes, comments=(gain,))
    file = EditedFile(path, before[path], before[path], [], calls=[decided])
    moved = list(_moved(project))
    applied = apply_decisions([file], before, lines, now, moved, legality)
    if applied.lost:
        raise CompileError(f"the fastest alternative cannot be written: {applied.lost[0]}")
    return tuning, {p: text for p, text in applied.texts.items() if text != now.get(p)}


def _op_named(flatbuffer: bytes, name: str) -> tuple[str, CatalogueOp]:
    known: list[str] = []
    for function in module_of(read_ttnn(flatbuffer)).walk():
        if isinstance(function, FuncOp) and function.body.blocks:
            names = CallNames(function)
            known += names.known
            op = names.named(name)
            if op is not None and op.results:
                return names.function, op
    close = closest(name, known)
    raise CompileError(
        f"no op is called '{name}'",
        remedy=f"did you mean '{close}'?" if close else "--write-overrides lists all names",
    )


def _statement_of(project: _Project, function: str, name: str) -> tuple[str, Statement]:
    """The statement that makes the result of an op, as it was generated."""
    for each in project.lines:
        if each.op.function != function or each.op.name != name:
            continue
        text = project.before.get(each.path, "")
        for statement in statements(text):
            first = text.count("\n", 0, statement.start) + 1
            if each.first <= first <= each.last and statement.call and statement.function:
                return each.path, statement
    raise CompileError(f"the C++ has no call of its own for '{name}'")


def _edited_statement(project: _Project, path: str, statement: Statement) -> Statement:
    """The statement as a person edited it."""
    text = project.now.get(path, "")
    if text == project.before[path]:
        return statement
    for file in compared(project.before, {path: text}, project.lines):
        for call in file.calls:
            if call.before.start == statement.start:
                return call.after
    return statement


def _moved(project: _Project) -> Iterator[OpLines]:
    """The lines of the ops as the files are now."""
    edits = {
        path: Edits(text, project.now[path])
        for path, text in project.before.items()
        if path in project.now
    }
    for each in project.lines:
        now = edits[each.path].now(each) if each.path in edits else None
        if now is not None:
            yield each._replace(first=now.first, last=now.last)


def _as_edited(
    call: LibraryCall, statement: Statement, constants: Mapping[str, Constant]
) -> LibraryCall:
    """A call with the memory and the program configuration that the C++ gives it now."""
    assert statement.call is not None
    for each in (*statement.call.options, *statement.call.positional):
        parameter = each.label or kind_of(each.words, constants) or ""
        said = override_fields(parameter, each.words, constants)
        if said.get("sharding") == "interleaved":
            placed = call.result.with_(
                buffer_type=said["memory"], memory_layout="interleaved", shards=None
            )
            call = replace(call, results=(placed, *call.results[1:]))
        if "program_config" in said:
            config = program_config(each.words)
            if config is not None:
                given = {**call.attributes, "matmul_program_config": config}
                call = replace(call, attributes=given)
    return call


def _alternatives(
    legality: Legality, call: LibraryCall, readers: Sequence[tuple[LibraryCall, int]]
) -> tuple[Alternative, tuple[Alternative, ...]]:
    """The call as it is, and its alternatives from the fastest on; operands stay as they are, and
    so do the calls that read the result."""
    model = legality.generator.model
    current = _judged(legality, call, readers)
    found: list[Alternative] = []
    for candidate in legality.generator.of(call, [True] * len(call.operands)):
        if (
            candidate.operands != call.operands
            or not candidate.results
            or candidate.results[0].shards is not None
        ):
            continue
        attributes = {**call.attributes, **candidate.attributes}
        judged = _judged(
            legality, replace(call, results=candidate.results, attributes=attributes), readers
        )
        if judged.l1_bytes <= model.speed.usable_l1 and judged not in found:
            found.append(judged)
    found.sort(key=lambda each: (each.seconds, each.l1_bytes, str(each)))
    return current, tuple(found)


def _judged(
    legality: Legality, call: LibraryCall, readers: Sequence[tuple[LibraryCall, int]]
) -> Alternative:
    model = legality.generator.model
    cost = model.cost(call)
    seconds = cost.seconds
    for reader, index in readers:
        operands = list(reader.operands)
        if index < len(operands) and operands[index].shape == call.result.shape:
            operands[index] = call.result
        seconds += model.cost(replace(reader, operands=tuple(operands))).seconds
    return Alternative(call.result, call.program_config, seconds, cost.l1_bytes)


def _changes(
    statement: Statement,
    best: Alternative,
    current: Alternative,
    constants: Mapping[str, Constant],
) -> Iterator[Change]:
    """The arguments that differ, where the call has a place for them."""
    if best.placement != current.placement:
        value = f"ttnn::{best.placement.buffer_type.upper()}_MEMORY_CONFIG"
        yield from _change(statement, "memory_config", value, constants)
    if best.program != current.program:
        value = program_text(best.program) if best.program is not None else ""
        yield from _change(statement, "program_config", value, constants)


def _change(
    statement: Statement, parameter: str, value: str, constants: Mapping[str, Constant]
) -> Iterator[Change]:
    call = statement.call
    assert call is not None
    words = tuple(token.text for token in tokens(value))
    if call.callee.startswith("call::"):
        yield Change(parameter, words, (), option=True)
        return
    for index, each in enumerate(call.positional):
        if same_parameter(each.label, parameter) or kind_of(each.words, constants) == parameter:
            fillers = tuple(argument.words for argument in call.positional)
            yield Change(
                parameter, words, each.words, option=False, position=index, fillers=fillers
            )
            return


def table(tuning: Tuning) -> str:
    """The alternatives as text, from the fastest on, with the call as it is among them."""
    rows = [("us", "L1 KiB", "result", "program", "")]
    others = [each for each in tuning.found if not _is_same(each, tuning.current)]
    shown = sorted([tuning.current, *others[:MOST_SHOWN]], key=lambda each: each.seconds)
    for each in shown:
        rows.append(
            (
                f"{each.seconds * 1e6:.1f}",
                f"{each.l1_bytes // 1024}",
                each.placement.buffer_type if each.placement.shards is None else "sharded",
                "" if each.program is None else program_summary(each.program),
                "now" if each is tuning.current else "",
            )
        )
    return "\n".join(aligned(rows)) + "\n"


def _is_same(one: Alternative, other: Alternative) -> bool:
    return one.placement == other.placement and one.program == other.program
