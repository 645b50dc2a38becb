"""Decisions of the user as entries of the overrides file, and in words."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from ttcodegen.emission.manifest_entries import LoweredOp
from ttcodegen.naming.modules import PRODUCT_WEIGHTS
from ttcodegen.project.tuning.decisions import (
    SHARED_CONSTANTS,
    EditedConstant,
    EditedFile,
)
from ttcodegen.project.tuning.statements import (
    APPLIED_AFTER,
    KINDS,
    TUNING,
    braced_fields,
    joined,
    kind_of,
    override_fields,
    program_config,
    program_summary,
)


def entries(files: Iterable[EditedFile]) -> dict[str, dict[str, dict[str, Any]]]:
    """Decisions as the functions of an overrides file; what it cannot say is left out."""
    found: dict[str, dict[str, dict[str, Any]]] = {}
    known = list(files)
    # A call that applies an activation is called after it where the optimizer names it.
    called: dict[LoweredOp, LoweredOp] = {}
    for call in (call for file in known for call in file.calls):
        if any(change.parameter in APPLIED_AFTER for change in call.changes):
            called.update(zip(call.ops, call.fused_ops, strict=False))
    for file in known:
        for constant in file.constants:
            for parameter in parameters_of(constant):
                named = (f"{TUNING}{constant.constant.name}",)
                said = override_fields(parameter, named, file.constants_known)
                for op in constant.ops:
                    _add(found, called.get(op, op), said, constant.comments)
    for file in known:
        for call in file.calls:
            for change in call.changes:
                said = override_fields(change.parameter, change.words, file.constants_known)
                for op in call.ops:
                    _add(found, called.get(op, op), said, call.comments)
    return found


def parameters_of(edited: EditedConstant) -> list[str]:
    """The parameter that a constant is for; none if it is for no decision."""
    kind = SHARED_CONSTANTS.get(edited.constant.name)
    if kind is None and edited.constant.name != PRODUCT_WEIGHTS:
        words = (f"{TUNING}{edited.constant.name}",)
        kind = kind_of(words, {edited.constant.name: edited.constant})
    return [] if kind is None else [kind]


def _add(
    found: dict[str, dict[str, dict[str, Any]]],
    op: LoweredOp,
    said: Mapping[str, Any],
    comments: Sequence[str],
) -> None:
    if not said:
        return
    entry = found.setdefault(op.function, {}).setdefault(op.name, {})
    entry.update(said)
    if comments:
        entry["comment"] = " ".join(comments)


def overrides_text(files: Iterable[EditedFile]) -> str:
    """The decisions as a file for `--overrides`."""
    return json.dumps({"version": 1, "functions": entries(files)}, indent=2) + "\n"


def report_lines(files: Iterable[EditedFile]) -> Iterator[str]:
    """A line for each edit: the decisions by op, then what stays text."""
    known = list(files)
    for file in known:
        for call in file.calls:
            comment = f'  "{" ".join(call.comments)}"' if call.comments else ""
            for change in call.changes:
                yield (
                    f"{names_text(call.ops)}: {described(change.parameter, change.words)}"
                    f"  ({file.path}:{call.line}){comment}"
                )
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


def constant_text(edited: EditedConstant) -> str:
    """A constant with its new value; of a structure only the fields that a person changed."""
    name, value = edited.constant.name, edited.constant.value
    before = braced_fields(edited.before.value) if edited.before is not None else {}
    now = braced_fields(value)
    changed = [f"{n} = {joined(v)}" for n, v in now.items() if before.get(n) != v]
    if before and now and changed:
        return f"{name}: {', '.join(changed)}"
    return f"{name} = {joined(value)}"


def described(parameter: str, words: Sequence[str]) -> str:
    """A decision in words."""
    config = program_config(words) if parameter == "program_config" else None
    value = joined(words) if config is None else program_summary(config)
    return f"{KINDS[parameter]} {value or 'left to the default'}"


def names_text(ops: Sequence[LoweredOp]) -> str:
    names = list(dict.fromkeys(op.name for op in ops))
    shown = ", ".join(names[:4])
    return f"{shown}, ..." if len(names) > 4 else shown or "?"
