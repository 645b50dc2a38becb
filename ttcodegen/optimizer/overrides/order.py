"""Order of independent calls that overrides give."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation

from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.foundation.messages import closest
from ttcodegen.optimizer.overrides.overrides import (
    CallNames,
    Entry,
    FunctionOverrides,
    refused_entry,
)
from ttcodegen.optimizer.overrides.refusals import Refusals
from ttcodegen.transforms.rewriting import InPlaceWrites, body_of, is_pure

_BESIDE = ("after", "before")
_LAYOUTS = frozenset(("composite_to_layout", "to_layout"))
"""Calls that only bring an operand into another layout."""


def give_order(function: FuncOp, overrides: FunctionOverrides, refusals: Refusals) -> None:
    """Moves calls to where overrides have them: right after a call, or right before one.

    If both are given, a call that is between them already stays, and another one is moved right
    after the first. Refused are places that do not exist, and moves past calls that a call depends
    on.
    """
    given = [(op, entry) for op, entry in overrides.items() if not entry.keys().isdisjoint(_BESIDE)]
    if not given:
        return
    order = _Order(body_of(function))
    for op, entry in _in_order(given, overrides.names):
        with refused_entry(overrides, op, refusals):
            _Move(order, overrides.names, op, entry).run()


def _in_order(
    given: Sequence[tuple[CatalogueOp, Entry]], names: CallNames
) -> list[tuple[CatalogueOp, Entry]]:
    """Orders entries such that a call is moved after those that it is moved beside."""
    entries = dict(given)
    seen = set[CatalogueOp]()
    found: list[tuple[CatalogueOp, Entry]] = []
    for op in entries:
        path = [] if op in seen else [op]
        while path:
            seen.add(path[-1])
            entry = entries[path[-1]]
            beside = (names.named(entry[each]) for each in _BESIDE if each in entry)
            first = next((each for each in beside if each in entries and each not in seen), None)
            if first is None:
                found.append((path.pop(), entry))
            else:
                path.append(first)
    return found


class _Order:
    """Order of the ops of a block, kept while ops move.

    Numbers with gaps give the order of any two ops, so that a move costs what it passes.
    """

    _GAP = 1 << 20

    def __init__(self, block: Block) -> None:
        self.writes = InPlaceWrites(block)
        """In-place writes, which moves do not change."""
        self._block = block
        self._numbers: dict[Operation, int] = {}
        self._renumber()

    def _renumber(self) -> None:
        for number, op in enumerate(self._block.ops):
            self._numbers[op] = number * self._GAP

    def __getitem__(self, op: Operation) -> int:
        return self._numbers[op]

    def between(self, first: Operation, end: Operation) -> list[Operation]:
        """Ops from one on, before another one."""
        found: list[Operation] = []
        each: Operation | None = first
        while each is not None and each is not end:
            found.append(each)
            each = each.next_op
        return found

    def move(self, op: Operation, following: Operation) -> None:
        """Moves an op before another one."""
        op.detach()
        self._block.insert_op_before(op, following)
        previous = op.prev_op
        above = self._numbers[following]
        below = above - 2 * self._GAP if previous is None else self._numbers[previous]
        self._numbers[op] = (below + above) // 2
        if self._numbers[op] == below:
            self._renumber()


class _Move:
    """Move of one call within its block."""

    def __init__(self, order: _Order, names: CallNames, op: CatalogueOp, entry: Entry) -> None:
        self._order = order
        self._names = names
        self._op = op
        self._entry = entry

    def run(self) -> None:
        """Moves the call, unless it is in its place."""
        after, before = self._places()
        here = self._order[self._op]
        if after is not None and before is not None:
            is_there = self._order[after] < here < self._order[before]
        else:
            is_there = self._op in (
                None if after is None else after.next_op,
                None if before is None else before.prev_op,
            )
        if is_there:
            return
        following = before if after is None else after.next_op
        assert following is not None
        is_later = self._order[following] > here
        if is_later:
            assert self._op.next_op is not None
            nearest = self._order.between(self._op.next_op, following)
        else:
            passed = self._order.between(following, self._op)
            brought = self._bring_operands(passed)
            # From the call on, the nearest that it cannot pass.
            nearest = [each for each in reversed(passed) if each not in brought]
            following = nearest[-1] if nearest else self._op
        for number, each in enumerate(nearest):
            reason = self._conflict(each)
            if reason is not None:
                raise self._refused(reason, nearest[:number], is_later)
        if following is not self._op:
            self._order.move(self._op, following)

    def _bring_operands(self, passed: Sequence[Operation]) -> set[Operation]:
        """Moves layouts of operands along, before what is passed; returns them."""
        inside = set(passed)
        brought = [
            each
            for each in passed
            if isinstance(each, CatalogueOp)
            and each.definition.short_name in _LAYOUTS
            and each.results[0] in self._op.operands
            and not any(value.owner in inside for value in each.operands)
            and not any(self._order.writes.overwrites(value) for value in each.operands)
        ]
        moved = set[Operation](brought)
        first = next((each for each in passed if each not in moved), self._op)
        for each in brought:
            self._order.move(each, first)
        return moved

    def _places(self) -> list[CatalogueOp | None]:
        """Calls beside its place; raises CompileError if there is none."""
        found: list[CatalogueOp | None] = []
        unknown: list[str] = []
        for field in _BESIDE:
            name = self._entry.get(field)
            op = None if name is None else self._names.named(name)
            found.append(op)
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
        overwritten = [each for each in shared if self._order.writes.overwrites(each)]
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
