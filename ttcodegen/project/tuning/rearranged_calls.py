"""Reapplies moves and replacements of calls to the C++ of a changed model."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest

from ttcodegen.optimizer.overrides.meanings import is_elementwise
from ttcodegen.project.tuning.call_settings import with_settings
from ttcodegen.project.tuning.edited_files import MovedCall, ReplacedCalls, TextEdits
from ttcodegen.project.tuning.matching import Node
from ttcodegen.project.tuning.meanings import known_calls
from ttcodegen.project.tuning.order import (
    blocks,
    borrowed,
    order_conflict,
    paths,
    read,
    substituted,
    without_borrowing,
)
from ttcodegen.project.tuning.rewritten_calls import EditedNode, option_names, source_of
from ttcodegen.project.tuning.statements import (
    ACTIVATIONS,
    CONFIGURATIONS,
    KINDS,
    NOTHING,
    TUNING,
    Argument,
    Call,
    Constant,
    Statement,
    applied_after,
    joined,
    kind_of,
    statements,
)

Loss = tuple[str, str]
"""Reason for which a decision does not apply, and the nearest that does; empty if unknown."""
_ACTIVATION_FIELD = re.compile(r"(\.fused_activation = )[\w:]+(?:\([^)]*\)|\{[^}]*\})")
_LITERALS = frozenset(("true", "false"))


@dataclass
class RearrangedCalls:
    """Calls of a new program with the user's order and replacements.

    Args:
        now: the files of the program, by path.
        counterpart: maps a path and a generated statement to the call of the new program, None if
            there is none.
        renamed: maps the variables that a generated statement reads to those of its counterpart.
        constants: the constants of tuning.hpp as edited, by name.
        generated: those of the new program.
    """

    now: Mapping[str, str]
    counterpart: Callable[[str, Statement], Node | None]
    renamed: Callable[[str, Statement, Node], Mapping[str, str]]
    constants: Mapping[str, Constant] = field(default_factory=dict[str, Constant])
    generated: Mapping[str, Constant] = field(default_factory=dict[str, Constant])
    texts: dict[Node, str] = field(default_factory=dict[Node, str])
    """Replaced calls, with their text."""
    removed: dict[Node, None] = field(default_factory=dict[Node, None])
    """Calls that replacements absorbed."""
    comments: dict[Node, tuple[str, ...]] = field(default_factory=dict[Node, tuple[str, ...]])
    following: dict[Node, str] = field(default_factory=dict[Node, str])
    """Statements after a call that no longer applies an activation."""
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
        if group.apart and not applied_after(nodes[-1].statement, self.generated):
            if any(user.callee == group.apart for user, _ in nodes[-1].users):
                # It is called by itself already.
                return None
            return f"there is no {group.apart} any more", ""
        for applied, node in zip(group.applied, nodes, strict=False):
            now = applied_after(node.statement, self.generated)
            if now != applied:
                return f"'{node.statement.target}' applies {now or 'no activation'} now", ""
        if group.apart:
            self._take_out(group, nodes[-1])
            return None
        names: dict[str, str] = {}
        made: set[str] = set()
        for old, node in zip(group.before, nodes, strict=True):
            lost = self._difference(old, node.statement)
            if lost is not None:
                return lost
            for variable, now in self.renamed(group.path, old, node).items():
                if variable not in made and names.setdefault(variable, now) != now:
                    return f"'{variable}' is '{now}' and '{names[variable]}' now", ""
            made.add(old.target or "")
        target = nodes[-1]
        lost = self._joining_conflict(group.before, nodes)
        if lost is not None:
            return lost
        texts = self._with_settings(group, target.statement, target.path)
        if texts is None:
            changed = ", ".join(self._settings(target.statement).values())
            return f"the call has other arguments now: {changed}", ""
        declared = any(
            n.statement.is_declaration and n.statement.target == target.statement.target
            for n in nodes
        )
        moved = {v for node in nodes for v in borrowed(node.statement.words)}
        lost = self._write(group, texts, names, target, declared, moved)
        if isinstance(lost, str):
            self.texts[target] = lost
            self.removed |= dict.fromkeys(nodes[:-1])
            self._touch(target, group.comments)
            return None
        return lost

    def _write(
        self,
        group: ReplacedCalls,
        texts: Sequence[str],
        names: Mapping[str, str],
        target: Node,
        declared: bool,
        moved: set[str],
    ) -> str | Loss:
        """Statements of the user's calls in the new program, or the reason if they cannot be.

        Args:
            group: the calls.
            texts: their texts.
            names: variables that the calls read, with their names in the program.
            target: the call in whose place they are.
            declared: whether they declare the variable of the result.
            moved: variables of the program that are not read afterwards.
        """
        result, variable = group.after[-1].target or "", target.statement.target or ""
        used = paths([w for each in self._order(target) for w in each.words])
        known = dict(names)
        inner: set[str] = set()
        written: list[str] = []
        for each, text in zip_longest(group.after, texts):
            if each is None:
                # The result goes elsewhere at the end.
                written.append(substituted(text, known))
                continue
            unknown = read(each) - known.keys() - _LITERALS
            if unknown:
                return f"it reads '{min(unknown)}', which the calls there do not read", ""
            head, separator, value = without_borrowing(text).partition("=")
            value = substituted(value, known)
            name = each.target or ""
            if name == result:
                if each is not group.after[-1] and variable in names.values():
                    return f"'{variable}' is what the calls read, and their result, now", ""
                written.append(f"{'ttnn::Tensor ' if declared else ''}{variable} ={value}")
                known[name], declared = variable, False
                continue
            if name not in inner and (name in names or name in used):
                return f"there is another variable '{name}' now", ""
            inner.add(name)
            known[name] = name
            written.append(f"{head}{separator}{value}")
        return self._indented(target, _with_last_use_marks(written, moved | inner))

    def follow(self, group: ReplacedCalls, target: Node) -> Loss | None:
        """Makes the user's calls after a call that no longer applies an activation.

        Args:
            group: the calls that were made instead of that of the activation.
            target: the call.
        """
        (before,) = group.before
        names = dict.fromkeys(before.variables, target.statement.target or "")
        made = self._write(group, group.texts, names, target, declared=False, moved=set())
        if not isinstance(made, str):
            return made
        self.following[target] = made
        self._touch(target, group.comments)
        return None

    def _indented(self, target: Node, written: Sequence[str]) -> str:
        text, start = self.now[target.path], target.statement.start
        return f"\n{text[text.rfind(chr(10), 0, start) + 1 : start]}".join(written)

    def _difference(self, old: Statement, new: Statement) -> Loss | None:
        """Difference of a call from the generated one; None if only variables and settings
        differ."""
        assert old.call is not None
        assert new.call is not None
        if old.call.callee != new.call.callee:
            return f"'{new.call.callee}' is called there now, not '{old.call.callee}'", ""
        given, now = self._constant_arguments(old.call), self._constant_arguments(new.call)
        if given != now or len(old.variables) != len(new.variables):
            changed = [joined(each) for each in now if each not in given] or ["fewer arguments"]
            return f"the call has other arguments now: {', '.join(changed)}", ""
        return None

    def _constant_arguments(self, call: Call) -> list[tuple[str, ...]]:
        """Arguments of a call that are neither variables nor settings."""
        positional = [
            each.words
            for each in call.positional
            if each.variable is None or each.text in _LITERALS
            if self._setting(each) is None
        ]
        # Defaults at the end only keep the places of settings.
        while positional and joined(positional[-1]) in (*NOTHING, "false"):
            positional.pop()
        options = [each for each in call.options if self._setting(each) is None]
        return [*positional, *((each.label or "", *each.words) for each in options)]

    def _setting(self, argument: Argument) -> str | None:
        """Parameter of an argument that configures a call, without activations."""
        if argument.text in NOTHING:
            return None
        label = argument.label
        kind = label if label in KINDS else kind_of(argument.words, self.constants)
        return None if kind in ACTIVATIONS else kind

    def _settings(self, statement: Statement) -> dict[str, str]:
        """Memory config and data type of a call's result, by parameter."""
        assert statement.call is not None
        given = (*statement.call.positional, *statement.call.options)
        return {
            kind: each.text
            for each in given
            if (kind := self._setting(each)) in ("memory_config", "dtype")
        }

    def _is_sharded(self, settings: Mapping[str, str]) -> bool:
        constant = self.constants.get(settings.get("memory_config", "").removeprefix(TUNING))
        return constant is not None and "_SHARDED" in joined(constant.value)

    def _with_settings(self, group: ReplacedCalls, now: Statement, path: str) -> list[str] | None:
        """Texts of the user's calls, whose last one gives the result where, and of the type, that
        the generated call does.

        Settings that the user wrote stay. None if the last call does not take a setting.
        """
        texts = list(group.texts)
        wanted = self._settings(now)
        before, last = self._settings(group.before[-1]), group.after[-1]
        own = self._settings(last)
        wanted = {
            parameter: value
            for parameter, value in wanted.items()
            if before.get(parameter) != value
            and own.get(parameter) in (None, before.get(parameter))
        }
        assert last.call is not None
        if not wanted:
            return texts
        text, start = texts[-1], last.start
        if last.call.callee.startswith("call::"):
            given = {str(each.label): each.text for each in last.call.options} | wanted
            # Designated initializers have to be in the order of declaration.
            names = option_names(self.now[path], last.call.callee)
            fields = ", ".join(f".{name} = {given[name]}" for name in names if name in given)
            arguments = [source_of(text, each, start) for each in last.call.positional]
            texts[-1] = _with_arguments(text, last, [*arguments, f"{{{fields}}}"])
            return texts
        known = known_calls([last], self.constants)
        if known is None or (self._is_sharded(wanted) and not is_elementwise(known[-1])):
            return None
        given = [source_of(text, each, start) for each in last.call.positional]
        arguments = with_settings(known[-1], given, wanted)
        if arguments is not None:
            texts[-1] = _with_arguments(text, last, arguments)
            return texts
        if "dtype" in wanted:
            return None
        moved = f"ttnn::to_memory_config({last.target}, {wanted['memory_config']})"
        return [*texts, f"{last.target} = {moved};"]

    def _take_out(self, group: ReplacedCalls, target: Node) -> None:
        """Calls the activation of a call after it, as the user did."""
        made = EditedNode(self.now[target.path], target.statement)
        made.options.pop("activation", None)
        for name, value in made.options.items():
            constant = self.generated.get(value.removeprefix(TUNING))
            if name in CONFIGURATIONS and constant is not None:
                text = joined(constant.value)
                type_text = joined(constant.type_words).removeprefix("const ")
                text = f"{type_text}{text}" if text.startswith("{") else text
                made.options[name] = _ACTIVATION_FIELD.sub(r"\1{}", text)
        last, variable = group.after[-1], target.statement.target
        assert last.call is not None
        others = [source_of(group.texts[-1], each, last.start) for each in last.call.positional[1:]]
        call = f"{variable} = {last.call.callee}({', '.join([str(variable), *others])});"
        self.texts[target] = self._indented(target, [made.render(), call])
        self._touch(target, group.comments)

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
            for each in order[first + 1 :]:
                if node.statement.target in read(each) and each not in group:
                    # Not by a call: as a result of the function.
                    return f"'{node.statement.target}' is read by others now", ""
                if each.target == node.statement.target:
                    break
            passed = [each for each in order[first + 1 : last] if each not in group]
            reason = order_conflict(node.statement, passed, self.now[node.path])
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
        reason = order_conflict(node.statement, order[low:high], self.now[node.path])
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


def _with_arguments(text: str, statement: Statement, arguments: Sequence[str]) -> str:
    """Text of a statement with other arguments of its call."""
    assert statement.call is not None
    opening = statement.call.positional[0].start - statement.start
    return f"{text[:opening]}{', '.join(arguments)}{text[statement.call.end - statement.start :]}"


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
