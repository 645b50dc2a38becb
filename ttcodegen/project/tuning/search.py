"""Search of faster alternatives of ops by the cost model, written as edits."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from ttcodegen.conversions.host_functions.tuning_constants import program_initializer
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.dialects.ttnn.placement import TensorPlacement, given_placement
from ttcodegen.dialects.ttnn.program_configs import (
    PROGRAM_CONFIGS,
    MatmulProgramConfig,
    ProgramConfig,
)
from ttcodegen.emission.manifest_entries import OpLines
from ttcodegen.flatbuffer.reader import read_ttnn
from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.foundation.messages import aligned, closest
from ttcodegen.optimizer.call import LibraryCall
from ttcodegen.project.manifest import Edits, Node
from ttcodegen.project.tuning.application import apply_decisions
from ttcodegen.project.tuning.decisions import (
    TUNING_FILE,
    compared,
)
from ttcodegen.project.tuning.edited_calls import EditedCalls
from ttcodegen.project.tuning.edited_files import (
    Change,
    EditedCall,
    EditedFile,
    OpIndex,
)
from ttcodegen.project.tuning.legality import Legality
from ttcodegen.project.tuning.setting_values import program_summary
from ttcodegen.project.tuning.statements import (
    Constant,
    Statement,
    constants_of,
    kind_of,
    same_parameter,
    statements,
    tokens,
)

MOST_SHOWN = 5
"""Limit on the alternatives that are listed and judged by the library."""
BUDGET = 10_000
"""Default limit on the alternatives that are tried."""
_LEAST_GAIN = 0.01
"""Minimum relative gain of an alternative."""


@dataclass(frozen=True)
class Alternative:
    """Form of a call, with its time and that of the users of its result."""

    call: LibraryCall
    own_seconds: float
    """Time of the call itself."""
    seconds: float
    l1_bytes: int
    is_measured: bool = False
    """True if the time of the call was measured on a card."""

    @property
    def placement(self) -> TensorPlacement:
        """Placement of the result."""
        return self.call.result

    @property
    def program(self) -> ProgramConfig | None:
        """Program config of the call."""
        return self.call.program_config

    def measured(self, seconds: float) -> Alternative:
        """Copy with a measured time of the call."""
        total = self.seconds - self.own_seconds + seconds
        return replace(self, own_seconds=seconds, seconds=total, is_measured=True)


@dataclass(frozen=True)
class Trial:
    """Form of a call that the library judges."""

    node: Node
    call: LibraryCall


@dataclass(frozen=True)
class Verdict:
    """Library's answer to a trial."""

    refused: str | None = None
    seconds: float | None = None
    """Measured time on a card, if there is one."""


Judge = Callable[[Sequence[Trial]], Sequence[Verdict]]


@dataclass(frozen=True)
class Tuning:
    """Alternatives of an op: the current form, and others by time."""

    op: str
    current: Alternative
    found: tuple[Alternative, ...]
    refused: tuple[tuple[Alternative, str], ...] = ()
    """Alternatives that the library refuses, with the reason."""

    @property
    def is_better(self) -> bool:
        """Returns whether the fastest alternative is worth an edit."""
        return bool(self.found) and self.found[0].seconds < self.current.seconds * (1 - _LEAST_GAIN)

    @property
    def best(self) -> Alternative:
        """The fastest alternative, or the current form if it is not worth an edit."""
        return self.found[0] if self.is_better else self.current


def program_text(config: ProgramConfig) -> str:
    """Program config as C++."""
    return f"{config.cpp}{program_initializer(config)}"


@dataclass
class TunedProject:
    """Generated and current files of a project.

    Args:
        before: the generated texts, by path.
        now: the current texts.
        lines: the generated lines of its ops.
        flatbuffer: its program.
        architecture: its card.
        measured: measured times of calls, by key.
    """

    before: Mapping[str, str]
    now: Mapping[str, str]
    lines: Sequence[OpLines]
    flatbuffer: bytes
    architecture: str
    measured: Mapping[str, float]


def tune(
    project: TunedProject,
    names: Sequence[str] = (),
    budget: int = BUDGET,
    judge: Judge | None = None,
) -> tuple[list[Tuning], dict[str, str]]:
    """Searches alternatives of ops; returns them and the files that change, by path.

    Args:
        project: the project.
        names: the ops, or empty for all, slowest first.
        budget: limit on alternatives after which no other op is started.
        judge: asks the library about the fastest ones.

    Raises:
        CompileError: if there is no such op, or its call has no alternatives.
    """
    search = _Search(project)
    nodes = [search.named(name) for name in names] if names else search.longest()
    tried: list[tuple[Node, Tuning]] = []
    count = 0
    for node in nodes:
        if count >= budget:
            break
        tuning = search.alternatives(node)
        count += len(tuning.found)
        search.take(node, tuning.best)
        tried.append((node, tuning))
    if judge is not None:
        tried = search.judged(tried, judge)
    for node, tuning in tried:
        if tuning.is_better:
            search.decide(node, tuning, needed=bool(names))
    return [tuning for _, tuning in tried], search.written()


class _Search:
    """Search in one project."""

    def __init__(self, project: TunedProject) -> None:
        self._project = project
        self._legality = Legality(
            project.flatbuffer, project.architecture, measured=project.measured
        )
        self._model = self._legality.generator.model
        self._constants = constants_of(statements(project.now.get(TUNING_FILE, "")))
        changed = {p: text for p, text in project.now.items() if text != project.before[p]}
        files = compared(project.before, changed, project.lines)
        binary = read_ttnn(project.flatbuffer)
        self._edited = EditedCalls(binary, files, self._model.grid)
        self._calls = self._edited.now
        self._nodes = {op: node for node, op in self._edited.ops.items()}
        self._entries = {each.name for each in binary.programs if each.kind == "entry"}
        self._statements = dict(_statements(project))
        self._after = {(c.path, c.before.start): c.after for file in files for c in file.calls}
        self._decided: dict[str, EditedFile] = {}

    def named(self, name: str) -> Node:
        """Op of a name; raises CompileError if it is unknown or has no call."""
        known: list[str] = []
        for names in self._edited.names:
            known += names.known
            op = names.named(name)
            if op is not None and op.results and self._nodes[op] in self._calls:
                node = self._nodes[op]
                if node not in self._statements:
                    raise CompileError(f"the C++ has no call of its own for '{name}'")
                if node in self._edited.inner:
                    raise CompileError(f"'{name}' is made by other calls than the generated one")
                return node
        close = closest(name, known)
        raise CompileError(
            f"no op is called '{name}'",
            remedy=f"did you mean '{close}'?" if close else "--write-overrides lists all names",
        )

    def longest(self) -> list[Node]:
        """Ops with alternatives, slowest first; one op per statement."""
        found: dict[tuple[str, int], Node] = {}
        for node in self._calls:
            if node[0] not in self._entries or node not in self._statements:
                continue
            if node in self._edited.inner:
                continue
            path, statement = self._statements[node]
            if any(True for _ in _tunable_arguments(self._now(path, statement), self._constants)):
                found.setdefault((path, statement.start), node)
        times = {node: self._model.seconds(self._calls[node]) for node in found.values()}
        return sorted((node for node in times if times[node] > 0), key=lambda node: -times[node])

    def alternatives(self, node: Node) -> Tuning:
        """Alternatives of a call, fastest first, with unchanged operands and users."""
        call = self._calls[node]
        readers = [(self._calls[reader], index) for reader, index in self._readers(node)]
        current = self._timed(call, readers)
        found: list[Alternative] = []
        seen = {_form_key(call)}
        for candidate in self._legality.generator.of(call, [True] * len(call.operands)):
            if (
                candidate.operands != call.operands
                or not candidate.results
                or candidate.results[0].shards is not None
            ):
                continue
            attributes = {**call.attributes, **candidate.attributes}
            if call.program_config is not None and call.program_config.activation is not None:
                attributes = _with_activation(attributes, call.program_config)
            if attributes is None:
                continue
            timed = self._timed(
                replace(call, results=candidate.results, attributes=attributes), readers
            )
            form = _form_key(timed.call)
            if timed.l1_bytes <= self._model.speed.usable_l1 and form not in seen:
                seen.add(form)
                found.append(timed)
        found.sort(
            key=lambda each: (
                each.seconds,
                each.l1_bytes,
                str(each.placement),
                *_form_key(each.call),
            )
        )
        return Tuning(node[1], current, tuple(found))

    def _timed(self, call: LibraryCall, readers: Sequence[tuple[LibraryCall, int]]) -> Alternative:
        cost = self._model.cost(call)
        seconds = cost.seconds
        for reader, index in readers:
            operands = list(reader.operands)
            operands[index] = call.result
            seconds += self._model.seconds(replace(reader, operands=tuple(operands)))
        return Alternative(call, cost.seconds, seconds, cost.l1_bytes)

    def _readers(self, node: Node) -> Iterator[tuple[Node, int]]:
        """Calls that read an op's result, with the operand index."""
        for use in self._edited.ops[node].results[0].uses:
            op = use.operation
            reader = self._nodes.get(op) if isinstance(op, CatalogueOp) else None
            if reader is not None and reader in self._calls:
                before = op.operands[: use.index]
                index = sum(given_placement(value) is not None for value in before)
                if index < len(self._calls[reader].operands):
                    yield reader, index

    def take(self, node: Node, best: Alternative) -> None:
        """Fixes a form of a call for the search of others."""
        self._calls[node] = best.call
        for reader, index in self._readers(node):
            operands = list(self._calls[reader].operands)
            if operands[index].shape == best.placement.shape:
                operands[index] = best.placement
                self._calls[reader] = replace(self._calls[reader], operands=tuple(operands))

    def judged(
        self, tried: Sequence[tuple[Node, Tuning]], judge: Judge
    ) -> list[tuple[Node, Tuning]]:
        """Alternatives that the library accepts, with measured times if available."""
        judged = [(node, (t.current, *t.found[:MOST_SHOWN])) for node, t in tried]
        trials = [Trial(node, each.call) for node, forms in judged for each in forms]
        answers = iter(judge(trials))
        found: list[tuple[Node, Tuning]] = []
        for (node, tuning), (_, forms) in zip(tried, judged, strict=True):
            accepted: list[Alternative] = []
            refused: list[tuple[Alternative, str]] = []
            for form, verdict in zip(forms, answers, strict=False):
                timed = form if verdict.seconds is None else form.measured(verdict.seconds)
                if verdict.refused is not None and form is not tuning.current:
                    refused.append((form, verdict.refused))
                else:
                    accepted.append(timed)
            current, *others = accepted
            others.sort(key=lambda each: each.seconds)
            found.append((node, Tuning(tuning.op, current, tuple(others), tuple(refused))))
        return found

    def _now(self, path: str, statement: Statement) -> Statement:
        """Statement as edited by the user."""
        return self._after.get((path, statement.start), statement)

    def decide(self, node: Node, tuning: Tuning, *, needed: bool) -> None:
        """Records the fastest alternative as an edit."""
        path, statement = self._statements[node]
        edited, best = self._now(path, statement), tuning.found[0]
        changes = tuple(_changes(edited, best, tuning.current, self._constants))
        if not changes:
            if not needed:
                return
            raise CompileError(
                f"the call of '{tuning.op}' in {path} takes no memory or program configuration in "
                "its C++",
                remedy="an override of the op does the same (--write-overrides lists them)",
            )
        how = "measured" if best.is_measured else "estimated"
        gain = (
            f"--tune: {how} {best.seconds * 1e6:.1f} us "
            f"with the calls that read it, not {tuning.current.seconds * 1e6:.1f} us"
        )
        before = self._project.before[path]
        ops = OpIndex(before, self._project.lines, path).at(statement)
        decided = EditedCall(path, ops, statement, statement, changes, comments=(gain,))
        file = self._decided.setdefault(path, EditedFile(path, before, before, []))
        file.calls.append(decided)

    def written(self) -> dict[str, str]:
        """Files with the edits, by path."""
        if not self._decided:
            return {}
        project = self._project
        applied = apply_decisions(
            list(self._decided.values()),
            project.before,
            project.lines,
            project.now,
            list(_current_lines(project)),
            self._legality,
        )
        if applied.lost:
            raise CompileError(f"the fastest alternative cannot be written: {applied.lost[0]}")
        return {p: text for p, text in applied.texts.items() if text != project.now.get(p)}


def _with_activation(attributes: Mapping[str, Any], known: ProgramConfig) -> dict[str, Any] | None:
    """Transfers a fused activation to the attributes' program config; None if it has none."""
    found = dict(attributes)
    for name in PROGRAM_CONFIGS:
        config = found.get(name)
        if isinstance(config, MatmulProgramConfig) and isinstance(known, MatmulProgramConfig):
            given = {each.name for each in fields(config)} & {each.name for each in fields(known)}
            if "fused_activation" not in given:
                return None
            applied = getattr(known, "fused_activation")  # noqa: B009
            found[name] = replace(config, **{"fused_activation": applied})
    return found


def _form_key(call: LibraryCall) -> tuple[str, str]:
    """Key of a form of a call among its alternatives."""
    config = call.program_config
    return str(call.result), "" if config is None else config.text


def _statements(project: TunedProject) -> Iterator[tuple[Node, tuple[str, Statement]]]:
    """Generated statement that produces each op's result."""
    made: dict[str, tuple[list[int], list[Statement]]] = {}
    seen: set[Node] = set()
    for each in project.lines:
        node = each.op.function, each.op.name
        if node in seen or each.path not in project.before:
            continue
        if each.path not in made:
            text = project.before[each.path]
            calls = [s for s in statements(text) if s.call and s.function]
            index = OpIndex(text, (), each.path)
            made[each.path] = [index.line(s.start) for s in calls], calls
        firsts, calls = made[each.path]
        place = bisect_left(firsts, each.first)
        if place < len(firsts) and firsts[place] <= each.last:
            seen.add(node)
            yield node, (each.path, calls[place])


def _current_lines(project: TunedProject) -> Iterator[OpLines]:
    """Current lines of the ops."""
    edits = {
        path: Edits(text, project.now[path])
        for path, text in project.before.items()
        if path in project.now
    }
    for each in project.lines:
        now = edits[each.path].now(each) if each.path in edits else None
        if now is not None:
            yield each._replace(first=now.first, last=now.last)


def _changes(
    statement: Statement,
    best: Alternative,
    current: Alternative,
    constants: Mapping[str, Constant],
) -> Iterator[Change]:
    """Changed arguments for which the call has a parameter."""
    if best.placement != current.placement:
        value = f"ttnn::{best.placement.buffer_type.upper()}_MEMORY_CONFIG"
        yield from _change(statement, "memory_config", value, constants)
    if best.program != current.program:
        value = program_text(best.program) if best.program is not None else ""
        yield from _change(statement, "program_config", value, constants)


def _change(
    statement: Statement, parameter: str, value: str, constants: Mapping[str, Constant]
) -> Iterator[Change]:
    words = tuple(token.text for token in tokens(value))
    for place in _tunable_arguments(statement, constants):
        if place.option or same_parameter(place.parameter, parameter):
            yield replace(place, parameter=parameter, words=words)
            return


def _tunable_arguments(statement: Statement, constants: Mapping[str, Constant]) -> Iterator[Change]:
    """Arguments of a call that the search may change; one stands for all options."""
    call = statement.call
    assert call is not None
    if call.callee.startswith("call::"):
        yield Change("memory_config", (), (), option=True)
        return
    fillers = tuple(argument.words for argument in call.positional)
    for index, each in enumerate(call.positional):
        kind = kind_of(each.words, constants)
        for parameter in ("memory_config", "program_config"):
            if same_parameter(each.label, parameter) or kind == parameter:
                yield Change(
                    parameter, (), each.words, option=False, position=index, fillers=fillers
                )


def table(tuning: Tuning) -> str:
    """Table of alternatives, fastest first, with the current form among them."""
    rows = [("us", "L1 KiB", "result", "program", "")]
    shown = sorted([tuning.current, *tuning.found[:MOST_SHOWN]], key=lambda each: each.seconds)
    rows += [
        (*_cells(each), "now" if each is tuning.current else "measured" if each.is_measured else "")
        for each in shown
    ]
    rows += [(*_cells(each), f"refused: {reason}") for each, reason in tuning.refused]
    return "\n".join(aligned(rows)) + "\n"


def summary(tunings: Iterable[Tuning]) -> str:
    """Summary of ops: current time, and the fastest alternative."""
    known = list(tunings)
    rows = [("op", "us now", "us", "L1 KiB", "result", "program")]
    rows += [
        (each.op, f"{each.current.seconds * 1e6:.1f}", *_cells(each.best))
        for each in known
        if each.is_better
    ]
    tried = sum(len(each.found) for each in known)
    better = sum(each.is_better for each in known)
    lines = aligned(rows) if better else []
    refused = sum(len(each.refused) for each in known)
    said = f"{tried} alternatives of {len(known)} ops, {better} better"
    lines.append(f"{said}, {refused} refused by the library" if refused else said)
    return "\n".join(lines) + "\n"


def _cells(each: Alternative) -> tuple[str, str, str, str]:
    return (
        f"{each.seconds * 1e6:.1f}",
        f"{each.l1_bytes // 1024}",
        each.placement.buffer_type if each.placement.shards is None else "sharded",
        "" if each.program is None else program_summary(each.program),
    )
