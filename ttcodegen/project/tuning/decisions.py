"""Compares edited C++ with the generated one, call by call.

An argument that configures a call without changing its result is a decision; everything else is an
edit of text.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from itertools import zip_longest

from ttcodegen.emission.manifest_entries import LoweredOp, OpLines
from ttcodegen.naming.modules import (
    PRODUCT_COMPUTE,
    PRODUCT_MEMORY,
    PRODUCT_PROGRAM,
    PRODUCT_WEIGHTS,
)
from ttcodegen.ops.core.definition import call_has_trait
from ttcodegen.ops.core.traits import Trait
from ttcodegen.project.tuning.edited_files import (
    Change,
    EditedCall,
    EditedConstant,
    EditedFile,
    OpIndex,
    ReplacedCalls,
    TextEdits,
    line_of_comment,
    new_comments,
    with_edits,
)
from ttcodegen.project.tuning.order import borrowed, plain
from ttcodegen.project.tuning.rearrangements import (
    Pair,
    Rearrangement,
    is_explained,
    restored_statements,
)
from ttcodegen.project.tuning.statements import (
    ACTIVATIONS,
    BINARY_ACTIVATIONS,
    KINDS,
    NOTHING,
    TUNING,
    Argument,
    Constant,
    Statement,
    activation_named,
    applied_after,
    braced_fields,
    constants_of,
    joined,
    kind_of,
    statements,
)

TUNING_FILE = "src/tuning.hpp"


def compared(
    before: Mapping[str, str], edited: Mapping[str, str], ops: Iterable[OpLines]
) -> list[EditedFile]:
    """Reads the decisions of edited files.

    Args:
        before: the generated texts, by path.
        edited: the texts that differ, by path.
        ops: the generated lines of the ops.
    """
    known = list(ops)
    generated = constants_of(statements(before.get(TUNING_FILE, "")))
    constants = {**generated, **constants_of(statements(edited.get(TUNING_FILE, "")))}
    files: list[EditedFile] = []
    apart: set[str] = set()
    # tuning.hpp comes last: what changed there may be explained by the calls.
    for path, text in sorted(edited.items(), key=lambda each: (each[0] == TUNING_FILE, each[0])):
        found = EditedFile(path, before[path], text, [each for each in known if each.path == path])
        if path == TUNING_FILE:
            _compare_constants(found, before, known, apart)
        elif path.endswith(".cpp"):
            compared_file = _Comparison(
                found, constants, generated, OpIndex(before[path], known, path)
            )
            apart |= compared_file.run()
        else:
            found.rest = text
        found.constants_known = constants
        files.append(found)
    return files


@dataclass
class _Comparison:
    file: EditedFile
    constants: Mapping[str, Constant]
    """Constants of tuning.hpp as edited."""
    generated: Mapping[str, Constant]
    index: OpIndex
    """Ops of the generated file."""
    loose: set[str] = field(default_factory=set[str])
    """Variables whose last use may be in another statement, as calls were moved."""

    def run(self) -> set[str]:
        """Finds the decisions, and the text without them.

        Returns the constants whose activation is called by itself now wherever they are used.
        """
        file = self.file
        old, new = statements(file.before), statements(file.after)
        pairs, removed, added = _align(old, new)
        edits: TextEdits = []
        renamed: dict[str, str] = {}
        """Results of fused calls, with the variables that are read instead."""
        changes = Rearrangement(file, self.index, pairs, removed, added)
        self.loose = changes.take_moved()
        unresolved: list[Pair] = []
        for o, n in pairs:
            if o.words == n.words:
                # A constant of tuning.hpp may have changed what a call applies.
                if applied_after(o, self.generated) != applied_after(n, self.constants):
                    unresolved.append((o, n))
                continue
            if plain(o.words) == plain(n.words) and self._uses_last_elsewhere(o, n):
                edits.append((n.start, n.end, file.before[o.start : o.end]))
                continue
            if _is_renamed(o, n, removed, renamed, self.constants):
                edits.append((n.start, n.end, file.before[o.start : o.end]))
                continue
            found = None
            if o.call is not None and n.call is not None:
                found = self._edited_call(o, n, removed, renamed)
            if found is None:
                unresolved.append((o, n))
                continue
            file.calls.append(found)
            edits.append((n.start, n.end, file.before[o.start : o.end]))
            edits += [
                (*line_of_comment(file.after, start, end), "")
                for start, end, _ in new_comments(o, n)
            ]
            if found.fused is not None:
                removed.remove(found.fused)
                edits += restored_statements(
                    file, [found.fused], {id(each): place for each, place in pairs}
                )
                if found.fused.target and n.target and n.target != found.fused.target:
                    renamed[found.fused.target] = n.target
        replaced = changes.take_replaced(unresolved, self.constants, self.generated)
        done = [old for old, _ in replaced]
        left = [pair for pair in unresolved if not any(pair[0] is old for old in done)]
        if file.moved or file.replaced:
            edits += changes.edits(replaced)
            if not left and is_explained(file, changes.gone, changes.added):
                file.rest = file.before
                return _constants_in(file.replaced)
        file.rest = with_edits(file.after, edits)
        known = _constants_in(file.replaced)
        return known - {word.removeprefix(TUNING) for old, _ in left for word in old.words}

    def _uses_last_elsewhere(self, before: Statement, after: Statement) -> bool:
        """Returns whether statements differ only by last-use marks, because another one moved."""
        return borrowed(before.words) ^ borrowed(after.words) <= self.loose

    def _edited_call(
        self,
        before: Statement,
        after: Statement,
        removed: Sequence[Statement],
        renamed: Mapping[str, str],
    ) -> EditedCall | None:
        changes = _changes(before, after, removed, renamed, self.constants, self.loose)
        if not changes:
            return None
        activations = [each for each in changes if each.parameter in ACTIVATIONS]
        was, applied = applied_after(before, self.generated), applied_after(after, self.constants)
        fused: Statement | None = None
        if activations or was != applied:
            # An activation more is a decision if it is taken out elsewhere.
            fused = _fused_activation(before, after, activations, was, applied, removed)
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


def _align(
    old: Sequence[Statement], new: Sequence[Statement]
) -> tuple[list[Pair], list[Statement], list[Statement]]:
    """Aligns statements: pairs of old and new ones, removed ones and added ones."""
    pairs: list[Pair] = []
    gone: list[Statement] = []
    matcher = SequenceMatcher(
        None,
        [(s.function, plain(s.words)) for s in old],
        [(s.function, plain(s.words)) for s in new],
        autojunk=False,
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
    paired = {id(n) for _, n in pairs}
    return pairs, gone, [each for each in new if id(each) not in paired]


def _applies_next(old: Statement, new: Statement, around: Sequence[Statement]) -> bool:
    """Returns whether a call fuses a call on its previous result."""
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
    """Returns whether a statement only reads another variable because an activation was fused."""
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
    loose: Container[str | None] = (),
) -> list[Change] | None:
    """Changed arguments of a call; None if one of them is no decision."""
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
        variable = was.variable if was is not None else None
        if variable in loose and given and given.variable == variable:
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
    """Tokens of an argument; empty for an absent one."""
    return () if argument is None else argument.words


def _parameter(
    index: int, was: Argument | None, is_: Argument | None, constants: Mapping[str, Constant]
) -> str | None:
    """Decision parameter of a positional argument, None if it has none."""
    for each in (is_, was):
        if each is not None and each.label in KINDS:
            return each.label
    for each in (is_, was):
        if each is not None and each.text not in NOTHING:
            kind = kind_of(each.words, constants)
            return BINARY_ACTIVATIONS.get(index, kind) if kind in ACTIVATIONS else kind
    return None


def _fused_activation(
    before: Statement,
    after: Statement,
    changes: Sequence[Change],
    was: str,
    applied: str,
    removed: Sequence[Statement],
) -> Statement | None:
    """Removed activation call that a call applies instead, None if there is none.

    Args:
        before: the call as generated.
        after: the call as edited.
        changes: its changed activations.
        was: the activation that it applied to its result.
        applied: the one that it applies now, by a setting or by its configuration.
        removed: the removed statements.
    """
    if len(changes) > 1 or was or any(joined(each.before) not in NOTHING for each in changes):
        return None
    name = applied or activation_named(changes[0].words)
    operand = None
    if not applied:
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


def _constants_in(groups: Iterable[ReplacedCalls]) -> set[str]:
    """Constants of calls whose activation is called by itself now."""
    words = (w for g in groups if g.apart for w in g.before[0].words)
    return {word.removeprefix(TUNING) for word in words if word.startswith(TUNING)}


def _compare_constants(
    file: EditedFile, before: Mapping[str, str], ops: Sequence[OpLines], apart: Container[str]
) -> None:
    old = constants_of(statements(file.before))
    new = constants_of(statements(file.after))
    edits: TextEdits = []
    for name, constant in new.items():
        was = old.get(name)
        if was is not None and was.statement.words == constant.statement.words:
            continue
        if _changes_activation(was, constant):
            if was is not None and name in apart and _changes_only_activation(was, constant):
                # It is a decision of the calls.
                place = constant.statement.start, constant.statement.end
                edits.append((*place, file.before[was.statement.start : was.statement.end]))
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


def _changes_only_activation(before: Constant, now: Constant) -> bool:
    old, new = braced_fields(before.value), braced_fields(now.value)
    return all(
        old.get(name) == new.get(name) for name in {*old, *new} - {"activation", "fused_activation"}
    )


def _changes_activation(before: Constant | None, now: Constant) -> bool:
    """Returns whether a constant changes the activation of the calls that use it."""
    old = {} if before is None else braced_fields(before.value)
    new = braced_fields(now.value)
    return any(
        joined(old.get(name, ())) != joined(new.get(name, ()))
        for name in ("activation", "fused_activation")
        if joined(old.get(name, ())) not in NOTHING or joined(new.get(name, ())) not in NOTHING
    )


def uses_of(name: str, texts: Mapping[str, str], ops: Sequence[OpLines]) -> Iterator[LoweredOp]:
    """Ops whose calls use a constant of tuning.hpp."""
    seen: set[LoweredOp] = set()
    for path in sorted({each.path for each in ops}):
        text = texts.get(path, "")
        index = OpIndex(text, ops, path)
        for each in statements(text):
            if not each.function:
                continue
            if uses_constant(each, name, text) or (
                name == PRODUCT_WEIGHTS and _is_product_of_weights(each)
            ):
                for op in index.at(each):
                    if op not in seen:
                        seen.add(op)
                        yield op


def _is_product_of_weights(statement: Statement) -> bool:
    """Returns whether a call is a matrix product whose second factor is a weight."""
    call = statement.call
    if call is None or not call_has_trait(call.callee.rpartition("::")[2], Trait.MATRIX_PRODUCT):
        return False
    return len(call.positional) > 1 and (call.positional[1].variable or "").startswith("weights.")


SHARED_CONSTANTS = {
    PRODUCT_MEMORY: "memory_config",
    PRODUCT_PROGRAM: "program_config",
    PRODUCT_COMPUTE: "compute_kernel_config",
}
"""Constants that are the default of calls' options."""


def uses_constant(statement: Statement, name: str, text: str) -> bool:
    """Returns whether a call uses a constant, by name or as the default of its options."""
    call = statement.call
    if f"{TUNING}{name}" in statement.words:
        return True
    field_name = SHARED_CONSTANTS.get(name)
    if field_name is None or call is None or not call.callee.startswith("call::"):
        return False
    return field_name not in [each.label for each in call.options] and f"{TUNING}{name}" in text
