"""Order of independent calls that overrides give."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation

from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.foundation.messages import closest
from ttcodegen.optimizer.overrides.overrides import CallNames, Entry, FunctionOverrides
from ttcodegen.transforms.rewriting import InPlaceWrites, body_of, is_pure

_BESIDE = ("after", "before")
_LAYOUTS = frozenset(("composite_to_layout", "to_layout"))
"""Calls that only bring an operand into another layout."""


def give_order(function: FuncOp, overrides: FunctionOverrides) -> None:
    """Moves calls to where overrides have them: right after a call, or right before one.

    If both are given, a call that is between them already stays, and another one is moved right
    after the first.

    Raises:
        CompileError: if there is no such place, or a call would pass one that it depends on.
    """
    given = [(op, entry) for op, entry in overrides.items() if not entry.keys().isdisjoint(_BESIDE)]
    for op, entry in _in_order(given, overrides.names):
        _Move(function, overrides.names, op, entry).run()


def _in_order(
    given: Sequence[tuple[CatalogueOp, Entry]], names: CallNames
) -> list[tuple[CatalogueOp, Entry]]:
    """Orders entries such that a call is moved after those that it is moved beside."""
    waiting = {op: entry for op, entry in given}
    found: list[tuple[CatalogueOp, Entry]] = []
    while waiting:
        beside = {
            op: {names.named(entry[each]) for each in _BESIDE if each in entry} - {op}
            for op, entry in waiting.items()
        }
        free = [op for op in waiting if not beside[op] & waiting.keys()] or [next(iter(waiting))]
        for op in free:
            found.append((op, waiting.pop(op)))
    return found


class _Move:
    """Move of one call within its block."""

    def __init__(self, function: FuncOp, names: CallNames, op: CatalogueOp, entry: Entry) -> None:
        self._block: Block = body_of(function)
        self._names = names
        self._op = op
        self._entry = entry
        self._order = list(self._block.ops)
        self._writes = InPlaceWrites(self._block)

    def run(self) -> None:
        """Moves the call, unless it is in its place."""
        after, before = self._places()
        here = self._order.index(self._op)
        if after is not None and before is not None:
            is_there = after < here < before
        else:
            is_there = here - 1 == after or here + 1 == before
        if is_there:
            return
        if after is not None:
            target = after + 1
        else:
            assert before is not None
            target = before
        if target < here:
            target += self._bring_operands(self._order[target:here])
        passed = self._order[here + 1 : target] if target > here else self._order[target:here]
        # From the call on, the nearest that it cannot pass.
        nearest = passed if target > here else list(reversed(passed))
        for number, each in enumerate(nearest):
            reason = self._conflict(each)
            if reason is not None:
                raise self._refused(reason, nearest[:number], target > here)
        self._op.detach()
        if target < len(self._order):
            self._block.insert_op_before(self._op, self._order[target])
        else:
            self._block.add_op(self._op)

    def _bring_operands(self, passed: Sequence[Operation]) -> int:
        """Moves layouts of operands along, before what is passed; returns how many."""
        brought = [
            each
            for each in passed
            if isinstance(each, CatalogueOp)
            and each.definition.short_name in _LAYOUTS
            and each.results[0] in self._op.operands
            and not any(value.owner in passed for value in each.operands)
            and not any(self._writes.overwrites(value) for value in each.operands)
        ]
        first = next((each for each in passed if each not in brought), self._op)
        for each in brought:
            each.detach()
            self._block.insert_op_before(each, first)
        self._order = list(self._block.ops)
        return len(brought)

    def _places(self) -> list[int | None]:
        """Positions of the calls beside its place; raises CompileError if there is none."""
        found: list[int | None] = []
        unknown: list[str] = []
        for field in _BESIDE:
            name = self._entry.get(field)
            op = None if name is None else self._names.named(name)
            found.append(None if op is None else self._order.index(op))
            if name is not None and op is None:
                unknown.append(name)
        if unknown and found == [None, None]:
            close = closest(unknown[0], self._names.known)
            raise CompileError(
                f"'{self._names[self._op]}' has no place: nothing is called '{unknown[0]}'",
                self._op,
                remedy=f"did you mean '{close}'?" if close else "--write-overrides lists all names",
            )
        return found

    def _conflict(self, passed: Operation) -> str | None:
        """Reason for which the call cannot pass another one; None if it can."""
        if any(value.owner is passed for value in self._op.operands):
            return f"it reads '{self._name(passed)}'"
        if any(value.owner is self._op for value in passed.operands):
            return f"'{self._name(passed)}' reads it"
        if isinstance(passed, CatalogueOp) and is_pure(passed) and is_pure(self._op):
            return None
        touched = {*self._op.operands, *self._op.results}
        if not isinstance(passed, CatalogueOp):
            return "the function ends there"
        shared = [each for each in passed.operands if each in touched]
        overwritten = [each for each in shared if self._writes.overwrites(each)]
        if overwritten or (not is_pure(passed) and not is_pure(self._op)):
            return f"'{self._name(passed)}' overwrites what it reads, or the reverse"
        return None

    def _name(self, op: Operation) -> str:
        return self._names[op] if op in self._names else op.name.rpartition(".")[2]

    def _refused(self, reason: str, free: Sequence[Operation], is_later: bool) -> CompileError:
        field = "after" if "after" in self._entry else "before"
        remedy = "it stays where it is"
        named = [each for each in free if each in self._names]
        if named:
            where = "after" if is_later else "before"
            remedy = f"the nearest legal place is {where} '{self._names[named[-1]]}'"
        return CompileError(
            f"'{self._names[self._op]}' cannot be called {field} '{self._entry[field]}': {reason}",
            self._op,
            remedy=remedy,
        )
