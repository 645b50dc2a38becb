"""Reapplies tuning edits to the C++ of a changed model by rewriting its calls."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from ttcodegen.emission.manifest_entries import LoweredOp, OpLines
from ttcodegen.emission.templates import clang_format_style
from ttcodegen.emitc.formatting import format_files
from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.foundation.messages import closest
from ttcodegen.ops.core.definition import call_has_trait
from ttcodegen.ops.core.traits import Trait
from ttcodegen.project.tuning.decisions import (
    SHARED_CONSTANTS,
    TUNING_FILE,
    activation_named,
    uses_constant,
)
from ttcodegen.project.tuning.edited_files import (
    Change,
    EditedCall,
    EditedConstant,
    EditedFile,
    with_edits,
)
from ttcodegen.project.tuning.legality import Legality
from ttcodegen.project.tuning.matching import Node, matched, program
from ttcodegen.project.tuning.order import with_last_uses
from ttcodegen.project.tuning.rearranged_calls import RearrangedCalls
from ttcodegen.project.tuning.report import (
    constant_text,
    described,
    names_text,
    place_text,
    replacement_text,
)
from ttcodegen.project.tuning.rewritten_calls import EditedNode, option_names, source_of
from ttcodegen.project.tuning.statements import (
    ACTIVATIONS,
    NOTHING,
    TUNING,
    Argument,
    Constant,
    Statement,
    braced_fields,
    constants_of,
    joined,
    kind_of,
    override_fields,
    same_parameter,
    statements,
)


@dataclass(frozen=True)
class LostDecision:
    """Decision that could not be reapplied."""

    path: str
    ops: tuple[LoweredOp, ...]
    decision: str
    reason: str
    nearest: str = ""
    """Nearest legal decision, or another call that it may belong to."""

    def __str__(self) -> str:
        hint = f"; {self.nearest}" if self.nearest else ""
        return f"'{names_text(self.ops)}': {self.decision}: {self.reason}{hint}"


@dataclass
class AppliedDecisions:
    """Files of a project with the user's decisions."""

    texts: dict[str, str] = field(default_factory=dict[str, str])
    """The new files with decisions, by path."""
    rest: dict[str, str] = field(default_factory=dict[str, str])
    """The edited files without their decisions, by path."""
    lost: list[LostDecision] = field(default_factory=list[LostDecision])


def apply_decisions(
    files: Sequence[EditedFile],
    before: Mapping[str, str],
    ops_before: Iterable[OpLines],
    now: Mapping[str, str],
    ops_now: Iterable[OpLines],
    legality: Legality,
) -> AppliedDecisions:
    """Applies the decisions of edited files to newly generated ones.

    Args:
        files: the edited files.
        before: the generated texts that were edited, by path.
        ops_before: the lines of their ops.
        now: the texts as generated now.
        ops_now: the lines of their ops.
        legality: the rules for the calls of the new program.
    """
    if not any(file.has_decisions for file in files):
        return AppliedDecisions()
    old = program(before, ops_before)
    new = program(now, ops_now)
    return _Application(files, before, now, old, new, legality).run()


class _Application:
    def __init__(
        self,
        files: Sequence[EditedFile],
        before: Mapping[str, str],
        now: Mapping[str, str],
        old: Sequence[Node],
        new: Sequence[Node],
        legality: Legality,
    ) -> None:
        self._legality = legality
        self._files = files
        self._before = before
        self._now = now
        self._old = {(node.path, node.statement.start): node for node in old}
        self._new = new
        self._match = matched(old, new)
        self._found = set(self._match.values())
        self._edited: dict[Node, EditedNode] = {}
        self._removed: dict[Node, None] = {}
        self._constants = constants_of(statements(now.get(TUNING_FILE, "")))
        edited = next((f.after for f in files if f.path == TUNING_FILE), None)
        text = before.get(TUNING_FILE, "") if edited is None else edited
        self._known = constants_of(statements(text))
        """Constants as edited by the user."""
        self._edited_constants = {**self._constants, **self._known}
        """All constants, with the user's values."""
        self._texts = {f.path: f.after for f in files}
        self._declared: dict[str, str] = {}
        """Constants to add, by name."""
        self._tuning_edits: list[tuple[int, int, str]] = []
        self._rearranged = RearrangedCalls(now, self._counterpart)
        self._result = AppliedDecisions()

    def run(self) -> AppliedDecisions:
        for file in self._files:
            for constant in file.constants:
                self._apply_constant(file.path, constant)
        for file in self._files:
            for call in file.calls:
                self._apply_call(call)
        for file in self._files:
            for group in file.replaced:
                lost = self._rearranged.replace(group)
                if lost is not None:
                    node = self._counterpart(group.path, group.before[-1])
                    nearest = f"{_description(node)} is there now" if node is not None else ""
                    before = self._old.get((group.path, group.before[-1].start))
                    nearest = lost[1] or nearest or self._nearest(before)
                    self._lose(group.path, group.ops, replacement_text(group), lost[0], nearest)
            for moved in file.moved:
                lost = self._rearranged.move(moved)
                if lost is not None:
                    self._lose(moved.path, moved.ops, place_text(moved), *lost)
        self._write()
        return self._result

    def _counterpart(self, path: str, statement: Statement) -> Node | None:
        """Counterpart in the new program of a previously generated statement."""
        node = self._old.get((path, statement.start))
        return None if node is None else self._match.get(node)

    # Calls

    def _apply_call(self, call: EditedCall) -> None:
        node = self._old.get((call.path, call.before.start))
        target = None if node is None else self._match.get(node)
        decisions = "; ".join(described(c.parameter, c.words) for c in call.changes)
        if target is None and self._is_applied(call):
            return
        if target is None:
            reason = "there is no such call any more"
            self._lose(call.path, call.ops, decisions, reason, self._nearest(node))
            return
        applied = False
        for change in call.changes:
            lost = self._refusal(call, target, change)
            if lost is None:
                lost = self._set(target, change)
            if lost is None:
                applied = True
            else:
                said = described(change.parameter, change.words)
                self._lose(call.path, target.ops or call.ops, said, *lost)
        if applied and call.comments:
            self._node(target).comments += call.comments

    def _is_applied(self, call: EditedCall) -> bool:
        """Returns whether the successors of a call already apply its activation."""
        if call.fused is None or call.fused.call is None:
            return False
        name, ops = call.fused.call.callee.rpartition("::")[2], {op.name for op in call.fused_ops}
        there = [node for node in self._new if node.names & ops]
        return bool(there) and all(self._applies(node, name) for node in there)

    def _refusal(self, call: EditedCall, target: Node, change: Change) -> tuple[str, str] | None:
        """Reason for which a decision does not apply to a call, and the nearest that does."""
        if change.parameter in ACTIVATIONS:
            return self._fuse(call, target, change)
        current = self._current(target, change)
        if joined(current) == joined(change.words):
            return None
        if change.parameter in ("memory_config", "program_config"):
            memory = self._sharded(target)
            if memory is not None and joined(current) != joined(change.before):
                return self._sharded_reason(target, memory, change)
        return self._illegality(target, change)

    def _illegality(self, target: Node, change: Change) -> tuple[str, str] | None:
        """Reason for which the library, or the semantics, do not allow a decision."""
        constants = self._edited_constants
        applied = _activation(self._current(target, change), self._constants)
        if applied != _activation(change.words, constants):
            said = f"the configuration there applies {applied or 'no activation'}"
            return said, "an override of the op changes the other fields alone"
        return self._legality.misfit(target.ops, change.parameter, change.words, constants)

    def _current(self, target: Node, change: Change) -> tuple[str, ...]:
        given = (*target.call.options, *target.call.positional)
        found = [each for each in given if same_parameter(each.label, change.parameter)]
        if not found and not change.option:
            found = list(target.call.positional[change.position : change.position + 1])
        return found[0].words if found else ()

    def _sharded(self, target: Node) -> str | None:
        """Memory config constant that shards the result of a call, None if it is not sharded."""
        for each in (*target.call.options, *target.call.positional):
            constant = self._constants.get(each.text.removeprefix(TUNING))
            if constant is not None and "_SHARDED" in joined(constant.value):
                return each.text
        return None

    def _sharded_reason(self, target: Node, memory: str, change: Change) -> tuple[str, str]:
        """Refusal of a placement that the optimizer also chose for neighbouring calls."""
        entry = override_fields(change.parameter, change.words, self._edited_constants)
        said = f"the optimizer shards its result as {memory}"
        if not entry or not target.ops:
            return said, "that is the nearest legal one"
        override = json.dumps({target.ops[0].name: entry})
        return said, f"with --overrides, {override} places the calls around it as well"

    def _fuse(self, call: EditedCall, target: Node, change: Change) -> tuple[str, str] | None:
        """Fuses the call of an activation into another call; returns the reason if it cannot."""
        gone = call.fused
        assert gone is not None
        assert gone.call is not None
        name = gone.call.callee.rpartition("::")[2]
        current = self._current(target, change)
        if joined(current) == joined(change.words) or self._applies(target, name):
            return None
        node = self._old.get((call.path, gone.start))
        unary = None if node is None else self._match.get(node)
        if unary is None:
            around = [user for user, _ in target.users]
            around += [each for each in target.operands if isinstance(each, Node)]
            other = next(
                (each for each in around if call_has_trait(each.callee, Trait.ACTIVATES)), None
            )
            applied = next((each for each in around if self._applies(each, name)), None)
            nearest = "" if other is None else f"'{other.callee}' is there now"
            if applied is not None:
                nearest = f"{_description(applied)} applies {name} already"
            return f"the op '{names_text(call.fused_ops)}' ({name}) is gone", nearest
        statement = unary.statement
        if unary.operands[:1] == [target] and target.users == [(unary, 0)]:
            self._node(target).target = statement.target
            self._node(target).changed = True
            self._removed[unary] = None
            return None
        place = next((i for i, each in enumerate(target.operands) if each is unary), None)
        if place is None or unary.users != [(target, place)]:
            return f"the result of '{name}' has another use", "it stays a call of its own"
        operand = unary.call.positional[0]
        edited = self._node(target)
        moved = [v for v in target.call.positional if v.variable == statement.target]
        if len(moved) == 1 and operand.variable != statement.target:
            index = target.call.positional.index(moved[0])
            edited.positional[index] = source_of(self._now[unary.path], operand)
        self._removed[unary] = None
        return None

    def _applies(self, node: Node, activation: str) -> bool:
        """Returns whether a call applies an activation to its result, by options or program
        config."""
        return any(
            activation in (activation_named(each.words), _activation(each.words, self._constants))
            for each in (*node.call.options, *node.call.positional)
        )

    def _set(self, target: Node, change: Change) -> tuple[str, str] | None:
        """Sets an argument of a call; returns the reason if it cannot."""
        edited, call = self._node(target), target.call
        value = self._value(change.words)
        labels = [each.label for each in call.positional]
        if call.callee.startswith("call::"):
            if change.parameter not in option_names(edited.text, call.callee):
                return f"'{call.callee}' has no option '{change.parameter}'", ""
            if value:
                edited.options[change.parameter] = value
            else:
                edited.options.pop(change.parameter, None)
        elif label := next(
            (each for each in labels if same_parameter(each, change.parameter)), None
        ):
            edited.positional[labels.index(label)] = f"/*{label}=*/{value or 'std::nullopt'}"
        elif change.option:
            return f"'{call.callee}' takes no options", ""
        else:
            return self._set_position(edited, call.positional, change, value)
        edited.changed = True
        return None

    def _set_position(
        self, edited: EditedNode, there: Sequence[Argument], change: Change, value: str
    ) -> tuple[str, str] | None:
        index = change.position
        constants = {**self._known, **self._constants}
        if index < len(there):
            found = there[index]
            other = kind_of(found.words, constants)
            if found.text not in NOTHING and other != change.parameter:
                return f"its argument {index + 1} is {found.text} now", ""
            if found.label is not None:
                return f"its argument {index + 1} is {found.label} now", ""
        elif any(each.label for each in there):
            return "its arguments are in another form now", ""
        for position in range(len(edited.positional), index):
            filler = joined(change.fillers[position]) if position < len(change.fillers) else ""
            if filler not in NOTHING:
                return f"the call has {len(there)} arguments now, and no default of the next", ""
            edited.positional.append(filler or "std::nullopt")
        if index < len(edited.positional):
            edited.positional[index] = value or "std::nullopt"
        elif value:
            edited.positional.append(value)
        if len(change.fillers) > len(edited.positional) == index + 1:
            for words in change.fillers[index + 1 :]:
                if joined(words) in NOTHING:
                    edited.positional.append(joined(words))
        edited.changed = True
        return None

    def _value(self, words: Sequence[str]) -> str:
        """Text of a value; declares the constants that it uses."""
        for word in words:
            name = word.removeprefix(TUNING)
            if word.startswith(TUNING) and name not in self._constants and name in self._known:
                self._declare(name)
        return joined(words)

    def _declare(self, name: str) -> None:
        statement = self._known[name].statement
        text = self._texts.get(TUNING_FILE, self._before.get(TUNING_FILE, ""))
        above = "".join(f"{each.text}\n" for each in statement.comments)
        self._declared.setdefault(name, f"{above}{text[statement.start : statement.end]}")

    def _node(self, target: Node) -> EditedNode:
        if target not in self._edited:
            self._edited[target] = EditedNode(self._now[target.path], target.statement)
        return self._edited[target]

    def _nearest(self, node: Node | None) -> str:
        """Describes the call that replaced a removed one."""
        if node is None:
            return ""
        shared = [each for each in self._new if each.names & node.names]
        if shared:
            return f"{_description(shared[0])} is there now"
        sources = [self._match.get(e) if isinstance(e, Node) else None for e in node.operands]
        others = [each for each in self._new if each not in self._found]
        found = [
            each
            for each in others
            if each.callee == node.callee
            and any(s is not None and s in each.operands for s in sources)
        ]
        if not found:
            named = {"/".join(sorted(each.names)): each for each in others if each.names}
            close = [closest(name, named) for name in node.names]
            found = [named[name] for name in close if name is not None]
        if not found:
            alike = [each for each in others if each.callee == node.callee]
            found = alike if len(alike) == 1 else []
        return f"{_description(found[0])} is there now" if found else ""

    def _lose(
        self,
        path: str,
        ops: tuple[LoweredOp, ...],
        decision: str,
        reason: str,
        nearest: str = "",
    ) -> None:
        self._result.lost.append(LostDecision(path, ops, decision, reason, nearest))

    # Constants of tuning.hpp

    def _apply_constant(self, path: str, edited: EditedConstant) -> None:
        constant, name = edited.constant, edited.constant.name
        said = constant_text(edited)
        there = self._constants.get(name)
        if edited.before is None:
            if there is None:
                self._declare(name)
            elif there.value != constant.value:
                self._lose(path, edited.ops, said, "a constant of that name is generated now")
            return
        if there is not None and there.value != constant.value:
            value, lost = self._merged_value(edited, there)
            if lost is None:
                text = self._now[TUNING_FILE]
                start = there.statement.start
                head = text[start : text.index(name, start) + len(name)]
                assigned = "=" if there.statement.words[len(there.type_words) + 1] == "=" else ""
                above = "".join(f"// {comment}\n" for comment in edited.comments)
                self._tuning_edits.append(
                    (start, there.statement.end, f"{above}{head} {assigned}{value};")
                )
            else:
                self._lose(path, edited.ops, said, *lost)
                return
        self._give_constant(path, edited, said)

    def _merged_value(
        self, edited: EditedConstant, there: Constant
    ) -> tuple[str, tuple[str, str] | None]:
        """Merged value of a constant whose generated value changed; or the reason without one."""
        assert edited.before is not None
        was, wanted = edited.before, edited.constant
        words = wanted.value
        if there.type_words != was.type_words:
            kind = joined(there.type_words).removeprefix("const ")
            return "", (f"the constant is a {kind} now", "that one decides")
        if there.value != was.value:
            before, after = braced_fields(was.value), braced_fields(wanted.value)
            now = braced_fields(there.value)
            if before and now:
                changed = {n: v for n, v in after.items() if before.get(n) != v}
                merged = {**now, **changed}
                fields = ", ".join(f".{n} = {joined(v)}" for n, v in merged.items())
                probe = constants_of(
                    statements(f"{' '.join(there.type_words)} {there.name}{{{fields}}};")
                )
                words = probe[there.name].value if there.name in probe else words
        kind = kind_of((f"{TUNING}{there.name}",), {there.name: there})
        users = [n for n in self._new if uses_constant(n.statement, there.name, self._now[n.path])]
        probe_constant = Constant(there.name, there.type_words, words, there.statement)
        for node in users:
            lost = self._legality.misfit(
                node.ops, kind or "", (f"{TUNING}{there.name}",), {there.name: probe_constant}
            )
            if lost is not None:
                reason, nearest = lost
                return "", (f"'{names_text(node.ops)}' cannot have it: {reason}", nearest)
        return joined(words), None

    def _give_constant(self, path: str, edited: EditedConstant, said: str) -> None:
        """Makes calls use a constant that they used when it was edited."""
        name = edited.constant.name
        parameter = SHARED_CONSTANTS.get(name)
        parameter = parameter or kind_of((f"{TUNING}{name}",), self._edited_constants)
        if parameter is None:
            return
        gone: list[LoweredOp] = []
        lost: dict[tuple[str, str], list[LoweredOp]] = {}
        for node in self._old.values():
            if not uses_constant(node.statement, name, self._before[node.path]):
                continue
            target = self._match.get(node)
            if target is None:
                gone += node.ops
                continue
            if uses_constant(target.statement, name, self._now[target.path]):
                continue
            position = next(
                (
                    index
                    for index, each in enumerate(node.call.positional)
                    if f"{TUNING}{name}" in each.words
                ),
                -1,
            )
            fillers = tuple(argument.words for argument in node.call.positional)
            words = (f"{TUNING}{name}",)
            change = Change(parameter, words, words, position < 0, position, fillers)
            refused = self._constant_refusal(target, change) or self._set(target, change)
            if refused is not None:
                lost.setdefault(refused, []).extend(target.ops)
        for (reason, nearest), ops in lost.items():
            self._lose(path, tuple(ops), said, reason, nearest)
        # Calls that took the place of others, and decide for themselves.
        others = [
            each
            for each in self._new
            if each not in self._found
            and each.callee in {n.callee for n in self._old.values() if set(n.ops) & set(gone)}
            and not uses_constant(each.statement, name, self._now[each.path])
        ]
        is_unused = not any(
            uses_constant(n.statement, name, self._now[n.path]) for n in self._new
        ) and not any(
            f"{TUNING}{name}" in "".join(e.options.values()) for e in self._edited.values()
        )
        if gone and (others or is_unused) and edited.ops:
            nearest = f"{', '.join(map(_description, others))} is there now" if others else ""
            self._lose(path, tuple(gone), said, "there is no such call any more", nearest)

    def _constant_refusal(self, target: Node, change: Change) -> tuple[str, str] | None:
        memory = self._sharded(target)
        if memory is not None and change.parameter in ("memory_config", "program_config"):
            return self._sharded_reason(target, memory, change)
        return self._illegality(target, change)

    # The files

    def _write(self) -> None:
        edits: dict[str, list[tuple[int, int, str]]] = {}
        rearranged = self._rearranged
        removed = {**self._removed, **rearranged.removed}
        written: dict[Node, str] = {}
        for node in dict.fromkeys((*self._edited, *rearranged.texts, *rearranged.comments)):
            if node in removed:
                continue
            statement, text = node.statement, self._now[node.path]
            indent = text[text.rfind("\n", 0, statement.start) + 1 : statement.start]
            edited = self._edited.get(node)
            comments = [*(edited.comments if edited else ()), *rearranged.comments.get(node, ())]
            above = "".join(f"// {comment}\n{indent}" for comment in dict.fromkeys(comments))
            made = rearranged.texts.get(node)
            if made is None and edited is not None and edited.changed:
                made = edited.render()
            if made is not None or above:
                source = text[statement.start : statement.end]
                written[node] = above + (source if made is None else made)
        for node, text in written.items():
            if node not in rearranged.moved:
                place = node.statement.start, node.statement.end, text
                edits.setdefault(node.path, []).append(place)
        for path in dict.fromkeys(node.path for node in rearranged.moved):
            edits.setdefault(path, []).extend(rearranged.edits(path, written))
        for node in removed:
            text, statement = self._now[node.path], node.statement
            start = text.rfind("\n", 0, statement.start) + 1
            end = text.find("\n", statement.end) + 1
            edits.setdefault(node.path, []).append((start, end, ""))
        tuning = self._now.get(TUNING_FILE)
        if tuning is not None and (self._declared or self._tuning_edits):
            place = tuning.rfind("\n}") + 1
            added = "".join(f"{text}\n\n" for text in self._declared.values())
            edits[TUNING_FILE] = [*self._tuning_edits, *([(place, place, added)] if added else [])]
        for file in self._files:
            if file.has_decisions:
                self._result.texts[file.path] = self._now[file.path]
                self._result.rest[file.path] = file.rest
        for path, found in edits.items():
            text = with_edits(self._now[path], found)
            text = with_last_uses(text, rearranged.functions.get(path, ()))
            self._result.texts[path] = _formatted_like(self._now[path], path, text)


def _formatted_like(before: str, path: str, text: str) -> str:
    """Formats a text in the project's style if its previous version was formatted."""
    style = clang_format_style()
    try:
        if format_files({path: before}, style)[path] == before:
            return format_files({path: text}, style)[path]
    except CompileError:
        # clang-format is optional.
        pass
    return text


def _activation(words: Sequence[str], constants: Mapping[str, Constant]) -> str:
    """Activation that a config applies; empty without one."""
    constant = constants.get(joined(words).removeprefix(TUNING))
    given = braced_fields(words if constant is None else constant.value)
    text = joined(given.get("activation", given.get("fused_activation", ())))
    return "" if text in NOTHING else text.rpartition("::")[2].rstrip(")}").lower()


def _description(node: Node) -> str:
    """Describes a call by its result variable and its op."""
    return f"'{node.statement.target}' ({names_text(node.ops)})"
