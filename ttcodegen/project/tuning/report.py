"""User's decisions as entries of the overrides file and as text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from ttcodegen.emission.manifest_entries import LoweredOp
from ttcodegen.naming.modules import PRODUCT_WEIGHTS
from ttcodegen.project.tuning.decisions import SHARED_CONSTANTS
from ttcodegen.project.tuning.edited_files import (
    EditedConstant,
    EditedFile,
    MovedCall,
    ReplacedCalls,
)
from ttcodegen.project.tuning.order import plain
from ttcodegen.project.tuning.setting_values import program_config, program_summary
from ttcodegen.project.tuning.statements import (
    KINDS,
    TUNING,
    Statement,
    braced_fields,
    joined,
    kind_of,
)


def parameters_of(edited: EditedConstant) -> list[str]:
    """Decision parameter of a constant; empty if it has none."""
    kind = SHARED_CONSTANTS.get(edited.constant.name)
    if kind is None and edited.constant.name != PRODUCT_WEIGHTS:
        words = (f"{TUNING}{edited.constant.name}",)
        kind = kind_of(words, {edited.constant.name: edited.constant})
    return [] if kind is None else [kind]


def report_lines(files: Iterable[EditedFile]) -> Iterator[str]:
    """Lines that list decisions by op, then edits of text."""
    known = list(files)
    for file in known:
        for call in file.calls:
            comment = f'  "{" ".join(call.comments)}"' if call.comments else ""
            for change in call.changes:
                yield (
                    f"{names_text(call.ops)}: {described(change.parameter, change.words)}"
                    f"  ({file.path}:{call.line}){comment}"
                )
        for words, decided in rearranged(file):
            comment = f'  "{" ".join(decided.comments)}"' if decided.comments else ""
            yield f"{names_text(decided.ops)}: {words}  ({file.path}:{decided.line}){comment}"
        for constant in file.constants:
            comment = f'  "{" ".join(constant.comments)}"' if constant.comments else ""
            used = f", used by {names_text(constant.ops)}" if constant.ops else ""
            value = joined(constant.constant.value)
            yield (
                f"{constant.constant.name} = {value}{used}  ({file.path}:{constant.line}){comment}"
            )
    for file in known:
        for edit in file.text_edits:
            inside = f" in {names_text(edit.ops)}" if edit.ops else ""
            yield f"text{inside}: {edit.place}"


def rearranged(file: EditedFile) -> Iterator[tuple[str, ReplacedCalls | MovedCall]]:
    """Replaced and moved calls of a file, with their description."""
    for group in file.replaced:
        yield replacement_text(group), group
    for moved in file.moved:
        yield place_text(moved), moved


def constant_text(edited: EditedConstant) -> str:
    """Description of a changed constant; for a structure, only of its changed fields."""
    name, value = edited.constant.name, edited.constant.value
    before = braced_fields(edited.before.value) if edited.before is not None else {}
    now = braced_fields(value)
    changed = [f"{n} = {joined(v)}" for n, v in now.items() if before.get(n) != v]
    if before and now and changed:
        return f"{name}: {', '.join(changed)}"
    return f"{name} = {joined(value)}"


def described(parameter: str, words: Sequence[str]) -> str:
    """Description of a decision."""
    config = program_config(words) if parameter == "program_config" else None
    value = joined(words) if config is None else program_summary(config)
    return f"{KINDS[parameter]} {value or 'left to the default'}"


def names_text(ops: Sequence[LoweredOp]) -> str:
    names = list(dict.fromkeys(op.name for op in ops))
    shown = ", ".join(names[:4])
    return f"{shown}, ..." if len(names) > 4 else shown or "?"


def replacement_text(group: ReplacedCalls) -> str:
    """Description of a replacement."""
    if group.apart:
        return f"{group.apart} called by itself"
    before, after = _callees(group.before), _callees(group.after)
    if before == after:
        return "; ".join(joined(plain(each.words)) for each in group.after)
    return f"{after} instead of {before}"


def place_text(moved: MovedCall) -> str:
    """Description of a moved call's position."""
    if moved.previous is not None:
        return f"called after {_name(moved.previous)}"
    return "called first" if moved.following is None else f"called before {_name(moved.following)}"


def _name(statement: Statement) -> str:
    if statement.target:
        return f"'{statement.target}'"
    return f"'{statement.call.callee}'" if statement.call else "a statement"


def _callees(calls: Iterable[Statement]) -> str:
    return ", ".join(each.call.callee for each in calls if each.call is not None)
