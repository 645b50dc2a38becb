"""Reapplies moves and replacements of calls to the C++ of a changed model."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from ttcodegen.project.tuning.edited_files import MovedCall, ReplacedCalls, TextEdits
from ttcodegen.project.tuning.matching import Node
from ttcodegen.project.tuning.order import (
    blocks,
    borrowed,
    order_conflict,
    paths,
    substituted,
    without_borrowing,
)
from ttcodegen.project.tuning.statements import Call, Statement, joined, statements

Loss = tuple[str, str]
"""Reason for which a decision does not apply, and the nearest that does; empty if unknown."""
_LITERALS = frozenset(("true", "false"))


@dataclass
class RearrangedCalls:
    """Calls of a new program with the user's order and replacements.

    Args:
        now: the files of the program, by path.
        counterpart: maps a path and a generated statement to the call of the new program, None if
            there is none.
    """

    now: Mapping[str, str]
    counterpart: Callable[[str, Statement], Node | None]
    texts: dict[Node, str] = field(default_factory=dict[Node, str])
    """Replaced calls, with their text."""
    removed: dict[Node, None] = field(default_factory=dict[Node, None])
    """Calls that replacements absorbed."""
    comments: dict[Node, tuple[str, ...]] = field(default_factory=dict[Node, tuple[str, ...]])
    functions: dict[str, dict[str, None]] = field(default_factory=dict[str, dict[str, None]])
    """Functions in which last-use marks may move, by path."""
    _moved: dict[Node, None] = field(default_factory=dict[Node, None])
    _orders: dict[tuple[str, str], list[Statement]] = field(
        default_factory=dict[tuple[str, str], list[Statement]]
    )
    """Reordered statements, by path and function."""
    _blocks: dict[str, Mapping[int, int]] = field(default_factory=dict[str, Mapping[int, int]])

    @property
    def moved(self) -> Sequence[Node]:
        """Calls that move."""
        return [node for node in self._moved if node not in self.removed]

    def replace(self, group: ReplacedCalls) -> Loss | None:
        """Reapplies a replacement of calls; returns the reason if it cannot."""
        found = [self.counterpart(group.path, each) for each in group.before]
        nodes = [node for node in found if node is not None]
        if len(nodes) < len(found):
            return "there is no such call any more", ""
        names: dict[str, str] = {}
        for old, node in zip(group.before, nodes, strict=True):
            lost = _difference(old, node.statement)
            if lost is not None:
                return lost
            names |= dict(zip(old.variables, node.statement.variables, strict=True))
            names[old.target or ""] = node.statement.target or ""
        target = nodes[-1]
        lost = self._joining_conflict(group.before, nodes)
        if lost is not None:
            return lost
        inner = {each.target for each in group.after[:-1]}
        used = paths([w for each in self._order(target) for w in each.words])
        for each in group.after:
            unknown = paths(each.words) - names.keys() - inner - _LITERALS
            if unknown:
                return f"it reads '{min(unknown)}', which the calls there do not read", ""
        taken = sorted(name for name in inner if name in used and name not in names)
        if taken:
            return f"there is another variable '{taken[0]}' now", ""
        declared = any(
            n.statement.is_declaration and n.statement.target == target.statement.target
            for n in nodes
        )
        written = [substituted(without_borrowing(text), names) for text in group.texts]
        written[-1] = _with_declaration(written[-1], target.statement, declared)
        moved = {v for node in nodes for v in borrowed(node.statement.words)}
        self.texts[target] = self._indented(target, _with_last_use_marks(written, moved | inner))
        self.removed |= dict.fromkeys(nodes[:-1])
        self._touch(target, group.comments)
        return None

    def _indented(self, target: Node, written: Sequence[str]) -> str:
        text, start = self.now[target.path], target.statement.start
        return f"\n{text[text.rfind(chr(10), 0, start) + 1 : start]}".join(written)

    def _joining_conflict(self, before: Sequence[Statement], nodes: Sequence[Node]) -> Loss | None:
        """Reason for which calls cannot be joined at the last one's position."""
        target = nodes[-1]
        order = self._order(target)
        if any(node.path != target.path or node.statement not in order for node in nodes):
            return "its calls are in several functions now", ""
        group = [node.statement for node in nodes]
        for node in nodes[:-1]:
            other = next((user for user, _ in node.users if user not in nodes), None)
            if other is not None or not node.users:
                name = "nothing" if other is None else f"'{other.statement.target}'"
                return f"'{node.statement.target}' is read by {name} now", ""
            first, last = order.index(node.statement), order.index(target.statement)
            passed = [each for each in order[first + 1 : last] if each not in group]
            reason = order_conflict(node.statement, passed)
            if reason is not None:
                return reason, ""
        return None

    def move(self, moved: MovedCall) -> Loss | None:
        """Reapplies a move; returns the reason if it cannot."""
        node = self.counterpart(moved.path, moved.statement)
        if node is None:
            return "there is no such call any more", ""
        previous, following = (
            None if each is None else self.counterpart(moved.path, each)
            for each in (moved.previous, moved.following)
        )
        order = self._order(node)
        places = {each.start: index for index, each in enumerate(order)}
        here = places[node.statement.start]
        around = [self._beside(node, each) for each in (previous, following)]
        after, until = (None if each is None else places[each.statement.start] for each in around)
        if after is None and until is None:
            return "the calls around its place are gone, or in another function", ""
        if (after is None or after < here) and (until is None or here < until):
            return None
        if after is not None:
            low, high = (here + 1, after + 1) if here < after else (after + 1, here)
        else:
            assert until is not None
            low, high = (here + 1, until) if here < until else (until, here)
        reason = order_conflict(node.statement, order[low:high])
        if reason is not None:
            return reason, f"it stays after '{order[here - 1].target}'" if here else ""
        order.remove(node.statement)
        order.insert(high - 1 if here < low else low, node.statement)
        self._moved[node] = None
        self._touch(node, moved.comments)
        return None

    def _beside(self, node: Node, other: Node | None) -> Node | None:
        """Returns the other call if it is in the same block, else None."""
        if other is None or other.path != node.path:
            return None
        if node.path not in self._blocks:
            self._blocks[node.path] = blocks(self.now[node.path])
        known = self._blocks[node.path]
        return other if known[other.statement.start] == known[node.statement.start] else None

    def _order(self, node: Node) -> list[Statement]:
        key = node.path, node.statement.function
        if key not in self._orders:
            listed = statements(self.now[node.path])
            self._orders[key] = [each for each in listed if each.function == key[1]]
        return self._orders[key]

    def _touch(self, node: Node, comments: tuple[str, ...]) -> None:
        self.comments[node] = (*self.comments.get(node, ()), *comments)
        self.functions.setdefault(node.path, {})[node.statement.function] = None

    def edits(self, path: str, written: Mapping[Node, str]) -> TextEdits:
        """Edits of a file that move its calls.

        Args:
            path: the file.
            written: the text of calls that differ from the generated ones.
        """
        text = self.now[path]
        moved = {node.statement.start: node for node in self.moved if node.path == path}
        edits: TextEdits = []
        for (of, _), order in self._orders.items():
            if of != path:
                continue
            place: int | None = None
            waiting: list[str] = []
            for each in order:
                node = moved.get(each.start)
                if node is None:
                    start, place = _lines(text, each)
                    edits += [(start, start, line) for line in waiting]
                    waiting = []
                    continue
                start, end = _lines(text, each)
                edits.append((start, end, ""))
                indent = text[start : each.start]
                line = f"{indent}{written.get(node, text[each.start : end].rstrip())}\n"
                if place is None:
                    waiting.append(line)
                else:
                    edits.append((place, place, line))
        return edits


def _lines(text: str, statement: Statement) -> tuple[int, int]:
    """Range of a statement's lines."""
    start = text.rfind("\n", 0, statement.start) + 1
    return start, text.find("\n", statement.end) + 1


def _difference(old: Statement, new: Statement) -> Loss | None:
    """Difference of a call from the generated one; None if only variables differ."""
    assert old.call is not None
    assert new.call is not None
    if old.call.callee != new.call.callee:
        return f"'{new.call.callee}' is called there now, not '{old.call.callee}'", ""
    given, now = _constant_arguments(old.call), _constant_arguments(new.call)
    if given != now or len(old.variables) != len(new.variables):
        changed = [joined(each) for each in now if each not in given] or ["fewer arguments"]
        return f"the call has other arguments now: {', '.join(changed)}", ""
    return None


def _constant_arguments(call: Call) -> list[tuple[str, ...]]:
    """Arguments of a call that are not variables."""
    positional = [
        each.words for each in call.positional if each.variable is None or each.text in _LITERALS
    ]
    return [*positional, *((each.label or "", *each.words) for each in call.options)]


def _with_last_use_marks(written: Sequence[str], variables: Iterable[str | None]) -> list[str]:
    """Adds a last-use mark to the last statement that reads each variable, if it reads it once."""
    found = list(written)
    for variable in sorted(filter(None, variables)):
        pattern = re.compile(rf"(?<![\w.:>]){re.escape(variable)}\b(?![\w.\[])")
        for index in range(len(found) - 1, -1, -1):
            head, separator, value = found[index].partition("=")
            reads = pattern.findall(value)
            if len(reads) == 1:
                value = pattern.sub(f"last_use({variable})", value)
                found[index] = f"{head}{separator}{value}"
            if reads:
                break
    return found


def _with_declaration(text: str, target: Statement, declared: bool) -> str:
    """Result statement with its type, if no other statement declares the variable."""
    name = target.target or ""
    head, separator, value = text.partition("=")
    if not separator or name not in head.split():
        return text
    return f"{'ttnn::Tensor ' if declared else ''}{name} ={value}"
