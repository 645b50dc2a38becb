"""Origins of ops across the stages of a compile, and the fate of removed ones.

An op of the source is known by its position in the text, which the passes of the compiler copy to
what they make of it. Of an op that no pass made anything of alone, the values show where it went:
what reads its result afterwards, or makes it now, has it inside.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ttcodegen.dialects.operations.operation import operation_name
from ttcodegen.emitc.inlining import origins_of
from ttcodegen.foundation.diagnostics import Source, set_source_offset, source_offset

if TYPE_CHECKING:
    from xdsl.ir import Attribute, Operation

Node = tuple[str, str]
"""A graph and a node of it."""
_Form = tuple[str, int, tuple["Attribute", ...]]
"""An op by its name, how many operands it has, and its properties."""
Places = frozenset[int]
"""Ops of the source, by their offsets in the text (or their numbers, where it has no text)."""
NOWHERE: Places = frozenset()


def number_without_text(operations: Iterable[Operation], source: Source) -> None:
    """Gives the ops of a module in MLIR's binary form, which has no text, numbers for places."""
    if source.text:
        return
    number = 0
    for top in operations:
        for op in top.walk():
            number += 1
            if source_offset(op) is None:
                set_source_offset(op, number)


@dataclass
class _Flow:
    """Def-use relation of the ops of a module, by position."""

    readers: dict[int, dict[int, None]] = field(default_factory=dict[int, dict[int, None]])
    """Of each position, what reads what it makes."""
    read: dict[int, dict[int, None]] = field(default_factory=dict[int, dict[int, None]])
    """Of each position, what makes what it reads."""
    forms: dict[int, list[_Form]] = field(default_factory=dict[int, list[_Form]])
    """Of each position, its ops."""

    @staticmethod
    def of(module: Operation) -> _Flow:
        """The flow of a module as it is now. Linear in the ops."""
        flow = _Flow()
        for op in module.walk():
            place = source_offset(op)
            if place is None or operation_name(op) == "func.return":
                continue
            form = operation_name(op), len(op.operands), tuple(op.properties.values())
            flow.forms.setdefault(place, []).append(form)
            flow.readers.setdefault(place, {})
            read = flow.read.setdefault(place, {})
            for operand in op.operands:
                made = source_offset(operand)
                if made is not None and made != place and getattr(operand, "op", None) is not None:
                    read[made] = None
                    flow.readers.setdefault(made, {})[place] = None
        return flow

    @property
    def places(self) -> Iterable[int]:
        """The ops that there are."""
        return self.readers.keys()


def _reached(start: int, edges: Mapping[int, Mapping[int, None]], ends: _Flow) -> dict[int, None]:
    """Nearest remaining ops, reached through removed ones."""
    found: dict[int, None] = {}
    seen = {start}
    waiting = [start]
    while waiting:
        for place in edges.get(waiting.pop(), ()):
            if place in seen:
                continue
            seen.add(place)
            if place in ends.readers:
                found[place] = None
            else:
                waiting.append(place)
    return found


class Origins:
    """Follows the ops of a source through the passes of a compile."""

    def __init__(self) -> None:
        self._flow: _Flow | None = None
        self._became: dict[int, tuple[int, ...]] = {}
        self._known: dict[Operation, Places] = {}

    def begin(self, module: Operation, source: Source) -> None:
        """Looks at the module before the first pass."""
        if self._flow is None:
            number_without_text([module], source)
            self._flow = _Flow.of(module)

    def follow(self, module: Operation) -> None:
        """Looks at the module after a pass: what is gone, and what it is part of now."""
        before, self._flow = self._flow, _Flow.of(module)
        if before is None:
            return
        for place in before.places:
            if place not in self._flow.readers:
                self._became[place] = tuple(self._part_of(place, before, self._flow))

    @staticmethod
    def _part_of(place: int, before: _Flow, after: _Flow) -> Iterable[int]:
        sources = _reached(place, before.read, after)
        found: dict[int, None] = {}
        for reader in _reached(place, before.readers, after):
            now = after.read[reader].keys()
            new = now - before.read.get(reader, {}).keys()
            if before.forms[reader] != after.forms[reader]:
                # The reader does now what this op did, if it reads what that read.
                new -= sources.keys()
            # Else another op makes now what this one made: a new one, or one that does the same.
            new = new or {each for each in now if after.forms[each] == before.forms[place]}
            found |= dict.fromkeys(sorted(new)) or {reader: None}
        # What only a return read is gone with what it reads.
        return found or sources

    def remember(self, op: Operation, places: Places) -> None:
        """Takes note of what an op was made of, for those that are made of it in turn."""
        self._known[op] = places

    def of(self, op: Operation) -> Places:
        """Origins of an op; none for one that the compiler added without a source."""
        known = self._known.get(op)
        if known is not None:
            return known
        if origins := origins_of(op):
            return NOWHERE.union(*map(self.of, origins))
        place = source_offset(op)
        return NOWHERE if place is None else frozenset((place,))

    def among(self, place: int, there: Callable[[int], bool]) -> Iterable[int]:
        """Descendants of a source op in a later stage: itself, or the ops that contain it.

        Args:
            place: the op.
            there: whether the stage has what was made of an op.
        """
        seen: set[int] = set()
        waiting = [place]
        while waiting:
            each = waiting.pop()
            if each in seen:
                continue
            seen.add(each)
            if there(each):
                yield each
            else:
                waiting.extend(reversed(self._became.get(each, ())))
