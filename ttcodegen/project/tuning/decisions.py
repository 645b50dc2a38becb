"""Compares the C++ that a person edited with what was generated, call by call.

What only says how a call is made, and not what it computes, is a decision; everything else is an
edit of text.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from itertools import zip_longest

from ttcodegen.emission.manifest_entries import LoweredOp, OpLines
from ttcodegen.naming.modules import (
    PRODUCT_COMPUTE,
    PRODUCT_MEMORY,
    PRODUCT_PROGRAM,
)
from ttcodegen.project.manifest import CodeLines
from ttcodegen.project.tuning.statements import (
    ACTIVATIONS,
    BINARY_ACTIVATIONS,
    KINDS,
    NOTHING,
    TUNING,
    Argument,
    Constant,
    Statement,
    braced_fields,
    constants_of,
    joined,
    kind_of,
    statements,
)

TUNING_FILE = "src/tuning.hpp"


@dataclass(frozen=True)
class Change:
    """An argument that the user changed."""

    parameter: str
    """The parameter that it decides: a key of `KINDS`."""
    words: tuple[str, ...]
    """The new value; empty if the argument was taken out."""
    before: tuple[str, ...]
    """The value as it was generated; empty if there was none."""
    option: bool
    """True for a field of options, False for a positional argument."""
    position: int = -1
    fillers: tuple[tuple[str, ...], ...] = ()
    """All positional arguments as the person wrote them, from the first that was not there."""


@dataclass(frozen=True)
class EditedCall:
    """A call with decisions of the user."""

    path: str
    ops: tuple[LoweredOp, ...]
    """Its ops: several for a function that all layers call."""
    before: Statement
    after: Statement
    changes: tuple[Change, ...]
    fused: Statement | None = None
    """The activation, as it was generated, that the call applies now."""
    fused_ops: tuple[LoweredOp, ...] = ()
    comments: tuple[str, ...] = ()
    """The comments of the person at the call."""
    line: int = 0


@dataclass(frozen=True)
class EditedConstant:
    """A constant of tuning.hpp that a person changed or added."""

    constant: Constant
    before: Constant | None
    """The constant as it was generated; None if the person added it."""
    ops: tuple[LoweredOp, ...]
    """The ops whose calls use it."""
    text: str
    """The declaration."""
    comments: tuple[str, ...] = ()
    line: int = 0


@dataclass(frozen=True)
class TextEdit:
    """An edit that is no decision."""

    place: CodeLines
    ops: tuple[LoweredOp, ...]


@dataclass
class EditedFile:
    """A file of a project as it was generated and as it is."""

    path: str
    before: str
    after: str
    ops: Sequence[OpLines]
    """The lines of its ops as it was generated."""
    calls: list[EditedCall] = field(default_factory=list[EditedCall])
    constants: list[EditedConstant] = field(default_factory=list[EditedConstant])
    constants_known: Mapping[str, Constant] = field(default_factory=dict[str, Constant])
    """The constants of tuning.hpp as they are, by name."""
    rest: str = ""
    """The file with the edits that are no decisions alone."""

    @property
    def text_edits(self) -> list[TextEdit]:
        """The edits that are no decisions, by their lines in the file as it was generated."""
        if self.rest == self.before:
            return []
        old, new = self.before.split("\n"), self.rest.split("\n")
        found: list[TextEdit] = []
        for kind, low, high, _, _ in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
            if kind == "equal":
                continue
            first, last = min(low + 1, len(old)), max(high, low + 1)
            # Between two ops, what is inserted belongs to the one before.
            inside = [each for each in self.ops if each.first <= last and each.last >= first]
            if not inside:
                above = [each for each in self.ops if each.last <= first]
                inside = above[-1:]
            ops = tuple(dict.fromkeys(each.op for each in inside))
            found.append(TextEdit(CodeLines(self.path, first, last), ops))
        return found


def compared(
    before: Mapping[str, str], edited: Mapping[str, str], ops: Iterable[OpLines]
) -> list[EditedFile]:
    """The edited files, with the decisions that are read from them.

    Args:
        before: the texts as they were generated, by path.
        edited: the texts that differ, by path.
        ops: the lines of the ops as they were generated.
    """
    known = list(ops)
    constants = {
        **constants_of(statements(before.get(TUNING_FILE, ""))),
        **constants_of(statements(edited.get(TUNING_FILE, ""))),
    }
    files: list[EditedFile] = []
    for path, text in sorted(edited.items()):
        found = EditedFile(path, before[path], text, [each for each in known if each.path == path])
        if path == TUNING_FILE:
            _compare_constants(found, before, known)
        elif path.endswith(".cpp"):
            _Comparison(found, constants, OpIndex(before[path], known, path)).run()
        else:
            found.rest = text
        found.constants_known = constants
        files.append(found)
    return files


class OpIndex:
    """The ops of a file by its lines.

    Args:
        text: the file.
        ops: the lines of its ops; those of other files are left out.
        path: the path of the file.
    """

    def __init__(self, text: str, ops: Iterable[OpLines], path: str) -> None:
        self._starts = [0, *(match.end() for match in re.finditer("\n", text))]
        self._ops = [each for each in ops if each.path == path]
        self._by_line: dict[int, list[int]] = {}
        for index, each in enumerate(self._ops):
            for line in range(each.first, each.last + 1):
                self._by_line.setdefault(line, []).append(index)

    def line(self, place: int) -> int:
        """The line of a place in the text, counted from 1."""
        return bisect_right(self._starts, place)

    def at(self, statement: Statement) -> tuple[LoweredOp, ...]:
        """The ops that a statement belongs to."""
        lines = range(self.line(statement.start), self.line(statement.end) + 1)
        found = {index for line in lines for index in self._by_line.get(line, ())}
        return tuple(dict.fromkeys(self._ops[index].op for index in sorted(found)))


def new_comments(before: Statement | None, after: Statement) -> list[tuple[int, int, str]]:
    """Comments that the user wrote at a statement, with their positions."""
    old = [] if before is None else [each.text for each in before.comments]
    found: list[tuple[int, int, str]] = []
    for each in after.comments:
        if each.text in old:
            old.remove(each.text)
        elif not (each.start >= after.start and each.end <= after.end):
            text = each.text.removeprefix("//").removeprefix("/*").removesuffix("*/").strip()
            found.append((each.start, each.end, text))
    return found


_Edits = list[tuple[int, int, str]]
"""Parts of a text, and what takes their place."""


def with_edits(text: str, edits: _Edits) -> str:
    """A text with parts of it replaced, from the first to the last."""
    made: list[str] = []
    position = 0
    for start, end, new in sorted(edits, key=lambda each: each[:2]):
        made += [text[position:start], new]
        position = max(position, end)
    return "".join([*made, text[position:]])


def line_of_comment(text: str, start: int, end: int) -> tuple[int, int]:
    """A comment with the rest of its line if nothing else is in it, else with the spaces before."""
    left = start
    while left and text[left - 1] in " \t":
        left -= 1
    if left == 0 or text[left - 1] == "\n":
        right = text.find("\n", end)
        return left, len(text) if right < 0 else right + 1
    return left, end


@dataclass
class _Comparison:
    file: EditedFile
    constants: Mapping[str, Constant]
    index: OpIndex
    """The ops of the file as it was generated."""

    def run(self) -> None:
        """Finds the decisions, and the text without them."""
        file = self.file
        old, new = statements(file.before), statements(file.after)
        pairs, removed = _aligned(old, new)
        places = {id(o): n for o, n in pairs}
        edits: _Edits = []
        renamed: dict[str, str] = {}
        """Results of calls that others apply, and the variables that are read instead."""
        for o, n in pairs:
            if o.words == n.words:
                continue
            if _is_renamed(o, n, removed, renamed, self.constants):
                edits.append((n.start, n.end, file.before[o.start : o.end]))
                continue
            if o.call is None or n.call is None:
                continue
            found = self._edited_call(o, n, removed, renamed)
            if found is None:
                continue
            file.calls.append(found)
            edits.append((n.start, n.end, file.before[o.start : o.end]))
            edits += [
                (*line_of_comment(file.after, start, end), "")
                for start, end, _ in new_comments(o, n)
            ]
            if found.fused is not None:
                removed.remove(found.fused)
                edits += self._restored(old, found.fused, places)
                if found.fused.target and n.target and n.target != found.fused.target:
                    renamed[found.fused.target] = n.target
        file.rest = with_edits(file.after, edits)

    def _restored(
        self, old: Sequence[Statement], gone: Statement, places: Mapping[int, Statement]
    ) -> _Edits:
        """A removed statement, put back after the one before it."""
        index = next(i for i, each in enumerate(old) if each is gone)
        if not index or id(old[index - 1]) not in places:
            return []
        previous = old[index - 1]
        place = places[id(previous)].end
        return [(place, place, self.file.before[previous.end : gone.end])]

    def _edited_call(
        self,
        before: Statement,
        after: Statement,
        removed: Sequence[Statement],
        renamed: Mapping[str, str],
    ) -> EditedCall | None:
        changes = _changes(before, after, removed, renamed, self.constants)
        if not changes:
            return None
        activations = [each for each in changes if each.parameter in ACTIVATIONS]
        fused: Statement | None = None
        if activations:
            # An activation more is a decision if it is taken out elsewhere.
            fused = _fused(before, after, activations, removed)
            if fused is None:
                return None
        elif tuple(renamed.get(v, v) for v in before.variables) != after.variables:
            return None
        return EditedCall(
            self.file.path,
            self.index.at(before),
            before,
            after,
            tuple(changes),
            fused,
            () if fused is None else self.index.at(fused),
            tuple(comment for _, _, comment in new_comments(before, after)),
            self.file.after.count("\n", 0, after.start) + 1,
        )


def _aligned(
    old: Sequence[Statement], new: Sequence[Statement]
) -> tuple[list[tuple[Statement, Statement]], list[Statement]]:
    """Pairs of statements before and now, and the statements that are gone."""
    pairs: list[tuple[Statement, Statement]] = []
    gone: list[Statement] = []
    matcher = SequenceMatcher(
        None, [(s.function, s.words) for s in old], [(s.function, s.words) for s in new], False
    )
    for kind, low, high, first, last in matcher.get_opcodes():
        if kind == "equal":
            pairs += zip(old[low:high], new[first:last], strict=True)
            continue
        left = list(new[first:last])
        for each in old[low:high]:
            match = next((n for n in left if _same_call(each, n)), None)
            match = match or next((n for n in left if _applies_next(each, n, old[low:high])), None)
            if match is None:
                gone.append(each)
            else:
                pairs.append((each, match))
                del left[: left.index(match) + 1]
    return pairs, gone


def _applies_next(old: Statement, new: Statement, around: Sequence[Statement]) -> bool:
    """True if a call makes at once what a call on its result made before."""
    if old.call is None or new.call is None or old.call.callee != new.call.callee:
        return False
    return old.variables == new.variables and any(
        each.target == new.target and each.variables == (old.target,) for each in around
    )


def _is_renamed(
    old: Statement,
    new: Statement,
    removed: Sequence[Statement],
    renamed: Mapping[str, str],
    constants: Mapping[str, Constant],
) -> bool:
    """True if a statement only reads the result of another call than before, for that one applies
    an activation whose result it read."""
    if old.call is None or new.call is None:
        return tuple(renamed.get(each, each) for each in old.words) == new.words
    if not set(old.variables) & renamed.keys():
        return False
    read = tuple(renamed.get(each, each) for each in old.variables)
    return read == new.variables and _changes(old, new, removed, renamed, constants) == []


def _same_call(old: Statement, new: Statement) -> bool:
    if old.function != new.function:
        return False
    if old.call is None or new.call is None:
        return old.words[0] == new.words[0] == "return"
    return old.target == new.target and old.call.callee == new.call.callee


def _changes(
    before: Statement,
    after: Statement,
    removed: Sequence[Statement],
    renamed: Mapping[str, str],
    constants: Mapping[str, Constant],
) -> list[Change] | None:
    """The arguments that were changed; None if one of them is no decision."""
    assert before.call is not None
    assert after.call is not None
    if before.is_declaration != after.is_declaration:
        return None
    found: list[Change] = []
    old, new = before.call, after.call
    others = {r.target: r.variables[0] for r in removed if r.variables and r.target} | {**renamed}
    fillers = tuple(each.words for each in new.positional)
    for index, (was, given) in enumerate(zip_longest(old.positional, new.positional)):
        if _words(was) == _words(given) or (was is None and given.text in NOTHING):
            continue
        if was and given and was.variable and others.get(was.variable) == given.variable:
            continue
        parameter = _parameter(index, was, given, constants)
        if parameter is None:
            return None
        found.append(Change(parameter, _words(given), _words(was), False, index, fillers))
    before_options = {each.label: each for each in old.options}
    after_options = {each.label: each for each in new.options}
    for label in dict.fromkeys((*before_options, *after_options)):
        was, given = before_options.get(label), after_options.get(label)
        if _words(was) == _words(given):
            continue
        if label not in KINDS:
            return None
        found.append(Change(label, _words(given), _words(was), True))
    return found


def _words(argument: Argument | None) -> tuple[str, ...]:
    """The tokens of an argument; none of one that is not given."""
    return () if argument is None else argument.words


def _parameter(
    index: int, was: Argument | None, is_: Argument | None, constants: Mapping[str, Constant]
) -> str | None:
    """The parameter that a positional argument is for, if it is one of decisions."""
    for each in (is_, was):
        if each is not None and each.label in KINDS:
            return each.label
    for each in (is_, was):
        if each is not None and each.text not in NOTHING:
            kind = kind_of(each.words, constants)
            return BINARY_ACTIVATIONS.get(index, kind) if kind in ACTIVATIONS else kind
    return None


def activation_named(words: Sequence[str]) -> str | None:
    """The activation that a value names: `"silu"`, or a unary op."""
    text = joined(words)
    if text.startswith('"'):
        return text.strip('"')
    marked = [word for word in words if "UnaryOpType::" in word]
    return marked[0].rpartition("::")[2].lower() if len(marked) == 1 else None


def _fused(
    before: Statement,
    after: Statement,
    changes: Sequence[Change],
    removed: Sequence[Statement],
) -> Statement | None:
    """The activation, gone as a call, that a call applies instead."""
    if len(changes) != 1 or (changes[0].before and joined(changes[0].before) not in NOTHING):
        return None
    name = activation_named(changes[0].words)
    operand = {"lhs_activations": 0, "rhs_activations": 1}.get(changes[0].parameter)
    for each in removed:
        if each.call is None or each.call.callee != f"ttnn::{name}" or not each.variables:
            continue
        makes = operand is None and before.target in (each.variables[0], each.target)
        reads = operand is not None and (each.target,) == before.variables[operand : operand + 1]
        others = [v for v in before.variables if v != each.target]
        if (makes and before.variables == after.variables) or (
            reads and all(v in after.variables for v in others)
        ):
            return each
    return None


# Constants of tuning.hpp


def _compare_constants(file: EditedFile, before: Mapping[str, str], ops: Sequence[OpLines]) -> None:
    old = constants_of(statements(file.before))
    new = constants_of(statements(file.after))
    edits: _Edits = []
    for name, constant in new.items():
        was = old.get(name)
        if was is not None and was.statement.words == constant.statement.words:
            continue
        if _changes_activation(was, constant):
            continue
        statement = constant.statement
        comments = new_comments(None if was is None else was.statement, statement)
        start = statement.start if was is not None else comments[0][0] if comments else None
        start = statement.start if start is None else start
        file.constants.append(
            EditedConstant(
                constant,
                was,
                tuple(uses_of(name, before, ops)),
                file.after[start : statement.end],
                tuple(text for _, _, text in comments),
                file.after.count("\n", 0, statement.start) + 1,
            )
        )
        if was is None:
            low, high = line_of_comment(file.after, start, statement.end)
            # The empty line that set it apart goes as well.
            if file.after[:low].endswith("\n\n") and file.after[high : high + 1] == "\n":
                high += 1
            edits.append((low, high, ""))
        else:
            edits.append(
                (
                    statement.start,
                    statement.end,
                    file.before[was.statement.start : was.statement.end],
                )
            )
            edits += [(*line_of_comment(file.after, s, e), "") for s, e, _ in comments]
    file.rest = with_edits(file.after, edits)


def _changes_activation(before: Constant | None, now: Constant) -> bool:
    """True if a constant changes what the calls with it compute."""
    old = {} if before is None else braced_fields(before.value)
    new = braced_fields(now.value)
    return any(
        joined(old.get(name, ())) != joined(new.get(name, ()))
        for name in ("activation", "fused_activation")
        if joined(old.get(name, ())) not in NOTHING or joined(new.get(name, ())) not in NOTHING
    )


def uses_of(name: str, texts: Mapping[str, str], ops: Sequence[OpLines]) -> Iterator[LoweredOp]:
    """The ops whose calls a constant of tuning.hpp decides."""
    seen: set[LoweredOp] = set()
    for path in sorted({each.path for each in ops}):
        text = texts.get(path, "")
        index = OpIndex(text, ops, path)
        for each in statements(text):
            if each.function and uses_constant(each, name, text):
                for op in index.at(each):
                    if op not in seen:
                        seen.add(op)
                        yield op


SHARED_CONSTANTS = {
    PRODUCT_MEMORY: "memory_config",
    PRODUCT_PROGRAM: "program_config",
    PRODUCT_COMPUTE: "compute_kernel_config",
}
"""Constants that calls use where their options do not say otherwise."""


def uses_constant(statement: Statement, name: str, text: str) -> bool:
    """True if a call takes a constant, by its name or as the default of its options."""
    call = statement.call
    if f"{TUNING}{name}" in statement.words:
        return True
    field_name = SHARED_CONSTANTS.get(name)
    if field_name is None or call is None or not call.callee.startswith("call::"):
        return False
    return field_name not in [each.label for each in call.options] and f"{TUNING}{name}" in text
