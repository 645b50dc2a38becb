"""Choices of the optimizer that the library refused: their record and their exclusion."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, cast

from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.foundation.diagnostics import CompileError, source_offset
from ttcodegen.optimizer.beam_search import Decision
from ttcodegen.optimizer.call import call_of
from ttcodegen.optimizer.cost.measurements import call_key
from ttcodegen.optimizer.overrides.overrides import CallNames
from ttcodegen.transforms.rewriting import body_of

CHOICE = "ttcodegen.choice"
"""Attribute of a call with the choice of the search for it."""
NONE_REFUSED = "[]"
"""Text of a list of refused choices for a compilation that only records its choices."""


@dataclass(frozen=True)
class Choice:
    """Form of a call that the search chose."""

    function: str
    call: str
    """Name of the call, as in --explain."""
    form: str
    """Key of the call with its placements and program config."""
    text: str
    """Placement of the result and program config, for messages."""
    offset: int | None = None
    """Offset of the call in the source."""


def record_choices(names: CallNames, decisions: Sequence[Decision], texts: Sequence[str]) -> None:
    """Records the choices of a function in attributes of its calls, before they are written.

    Args:
        names: the calls of the function by their names.
        decisions: the decisions of the search.
        texts: what each decision is called in messages.
    """
    for decision, text in zip(decisions, texts, strict=True):
        op, candidate = decision.op, decision.candidate
        if not isinstance(op, CatalogueOp) or op not in names or not candidate.results:
            continue
        call = call_of(op)
        if len(candidate.operands) != len(call.operands):
            candidate = replace(candidate, operands=call.operands)
        choice = Choice(
            names.function,
            names[op],
            call_key(candidate.applied_to(call)),
            text,
            source_offset(op),
        )
        op.attributes[CHOICE] = StringAttr(json.dumps(asdict(choice)))


def take_choices(module: ModuleOp) -> dict[str, list[Choice | None]]:
    """Removes the recorded choices of a module; returns them by function, one per operation."""
    found: dict[str, list[Choice | None]] = {}
    for function in module.walk():
        if not isinstance(function, FuncOp) or not function.body.blocks:
            continue
        listed = found.setdefault(function.sym_name.data, [])
        for op in body_of(function).ops:
            taken = op.attributes.pop(CHOICE, None)
            known = isinstance(taken, StringAttr)
            listed.append(Choice(**json.loads(taken.data)) if known else None)
    return found


def refused_text(choices: Iterable[Choice]) -> str:
    """Text of a list of refused choices."""
    return json.dumps([[each.function, each.call, each.form] for each in choices])


def read_refused(text: str) -> dict[tuple[str, str], frozenset[str]]:
    """Refused forms by function and call.

    Raises:
        CompileError: if the text is no list of refused choices.
    """
    found: dict[tuple[str, str], frozenset[str]] = {}
    try:
        listed: Any = json.loads(text)
    except (ValueError, RecursionError):
        listed = None
    if not isinstance(listed, list):
        raise CompileError("the refused choices are no list in JSON", remedy=_EXAMPLE)
    for each in cast("list[Any]", listed):
        match each:
            case [str(function), str(call), str(form)]:
                known = found.get((function, call), frozenset())
                found[function, call] = known | {form}
            case _:
                raise CompileError(f"{json.dumps(each)} is no refused choice", remedy=_EXAMPLE)
    return found


_EXAMPLE = 'a choice is ["main", "scores", "matmul-0123456789abcdef"]: function, call and form'


def refused_forms(
    refused: Mapping[tuple[str, str], frozenset[str]], names: CallNames
) -> dict[Operation, frozenset[str]]:
    """Refused forms of the calls of a function."""
    return {
        op: forms
        for name in names
        if (op := names.named(name)) is not None
        and (forms := refused.get((names.function, name))) is not None
    }
