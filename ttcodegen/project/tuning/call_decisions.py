"""Applies decisions of calls to their counterparts in a changed model."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from ttcodegen.emission.manifest_entries import LoweredOp
from ttcodegen.foundation.messages import closest
from ttcodegen.ops.core.definition import call_has_trait
from ttcodegen.ops.core.traits import Trait
from ttcodegen.project.tuning.applied_decisions import AppliedDecisions, LostDecision
from ttcodegen.project.tuning.call_settings import with_settings
from ttcodegen.project.tuning.decisions import TUNING_FILE
from ttcodegen.project.tuning.edited_files import (
    Change,
    EditedCall,
    EditedFile,
    ReplacedCalls,
)
from ttcodegen.project.tuning.legality import Legality
from ttcodegen.project.tuning.matching import Node, matched, split_calls
from ttcodegen.project.tuning.meanings import known_calls
from ttcodegen.project.tuning.rearranged_calls import RearrangedCalls
from ttcodegen.project.tuning.report import (
    described,
    names_text,
)
from ttcodegen.project.tuning.rewritten_calls import EditedNode, option_names, source_of
from ttcodegen.project.tuning.setting_values import override_fields
from ttcodegen.project.tuning.statements import (
    ACTIVATIONS,
    APPLIED_AFTER,
    KINDS,
    NOTHING,
    TUNING,
    Argument,
    Statement,
    activation_named,
    activation_of,
    constants_of,
    joined,
    kind_of,
    same_parameter,
    statements,
)
from ttcodegen.systems.releases import PARAMETERS


class CallDecisions:
    """Decisions of calls, and the calls that they change."""

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
        self._split = split_calls(old, new, self._match)
        self._found = {*self._match.values(), *(n for each in self._split.values() for n in each)}
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
        self._rearranged = RearrangedCalls(
            now, self._counterpart, self._variables, self._edited_constants, self._constants
        )
        self._result = AppliedDecisions()

    def _counterpart(self, path: str, statement: Statement) -> Node | None:
        """Counterpart in the new program of a previously generated statement."""
        node = self._old.get((path, statement.start))
        return None if node is None else self._match.get(node)

    def _variables(self, path: str, old: Statement, node: Node) -> dict[str, str]:
        """Variables that a generated statement reads, with those that its counterpart reads."""
        names = dict(zip(old.variables, node.statement.variables, strict=True))
        before = self._old[path, old.start]
        # Operands may be in another order: by an override, as the user put them already.
        for variable, source in zip(old.variables, before.operands, strict=True):
            now = self._match.get(source) if isinstance(source, Node) else None
            if now is not None and now in node.operands and now.statement.target is not None:
                names[variable] = now.statement.target
        return names

    def _source(self, group: ReplacedCalls) -> Node | None:
        """Call that makes what calls read, before any reshape; None if it is no single one."""
        node = self._old.get((group.path, group.before[0].start))
        while node is not None and node not in self._match:
            made = node.operands[0] if len(node.operands) == 1 else None
            node = made if isinstance(made, Node) else None
        return None if node is None else self._match[node]

    # Calls

    def _apply_call(self, call: EditedCall) -> None:
        node = self._old.get((call.path, call.before.start))
        targets = self._targets(node)
        if not targets and self._is_applied(call):
            return
        if not targets:
            self._apply_to_successor(call, node)
        for target in targets:
            self._apply_changes(call, target)

    def _targets(self, node: Node | None) -> Sequence[Node]:
        """Counterparts of a call: several if layers shared it, and do no longer."""
        if node is None:
            return ()
        return (self._match[node],) if node in self._match else self._split.get(node, ())

    def _apply_changes(self, call: EditedCall, target: Node) -> None:
        applied = False
        for change in call.changes:
            lost = self._refusal(call, target, change)
            if lost is None and not self._has(target, change):
                lost = self._set(target, change)
            if lost is None:
                applied = True
            else:
                said = described(change.parameter, change.words)
                self._lose(call.path, target.ops or call.ops, said, *lost)
        if applied and call.comments:
            self._node(target).comments += call.comments

    def _has(self, target: Node, change: Change) -> bool:
        """Returns whether a call has a setting already, if by its program config."""
        if joined(self._current(target, change)) == joined(change.words):
            return True
        name = activation_named(change.words)
        after = change.parameter in APPLIED_AFTER
        return after and name is not None and self._applies(target, name)

    def _apply_to_successor(self, call: EditedCall, node: Node | None) -> None:
        """Applies what a call's result is decided to be to another call that makes it now."""
        there = [] if node is None or not node.names else self._named_as(node)
        decisions: list[Change] = []
        for change in call.changes:
            lost = len(there) != 1 or change.parameter != "memory_config"
            if not lost:
                memory = self._sharded(there[0])
                lost = memory is not None or self._illegality(there[0], change) is not None
            if lost or not self._place_result(there[0], change):
                decisions.append(change)
        if len(decisions) < len(call.changes) and call.comments:
            self._node(there[0]).comments += call.comments
        if decisions:
            said = "; ".join(described(c.parameter, c.words) for c in decisions)
            nearest = self._nearest(node)
            merged = None if node is None else self.merged(node)
            entry = override_fields(
                decisions[0].parameter, decisions[0].words, self._edited_constants
            )
            names = frozenset[str]() if node is None else node.names
            is_shared = bool(names) and any(each.names > names for each in self._new)
            if (merged is not None or is_shared) and entry and call.ops:
                override = json.dumps({call.ops[0].name: entry})
                nearest = f"{nearest}; with --overrides, {override} keeps it a call of its own"
            self._lose(call.path, call.ops, said, "there is no such call any more", nearest)

    def _named_as(self, node: Node) -> list[Node]:
        """Calls of another function that make the results of the same ops."""
        names = {op.name for op in node.ops}
        return [
            each
            for each in self._new
            if each not in self._found and {op.name for op in each.ops} == names
        ]

    def _place_result(self, target: Node, change: Change) -> bool:
        """Sets the memory config of a call's result; returns whether the call takes one."""
        edited, value = self._node(target), self._value(change.words)
        if target.call.callee.startswith("call::"):
            return self._set(target, change) is None
        known = known_calls([target.statement], self._edited_constants)
        given = None
        if known is not None:
            given = with_settings(known[-1], edited.positional, {"memory_config": value})
        if given is not None:
            edited.positional = given
            edited.changed = True
        return given is not None

    def merged(self, node: Node) -> Node | None:
        """Call that several calls of one operand have become, one of them the given one."""
        if not node.operands or not isinstance(node.operands[0], Node):
            return None
        source = node.operands[0]
        now = self._match.get(source)
        alike = [user for user, index in source.users if index == 0 and user.callee == node.callee]
        gone = [each for each in alike if not self._targets(each)]
        if now is None or node not in gone or len(gone) < 2:
            return None
        new = [
            user
            for user, index in now.users
            if index == 0 and user.callee == node.callee and user not in self._found
        ]
        return new[0] if len(new) == 1 else None

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
        applied = "" if call.fused is None else self._applied(change)
        refused = self._illegality(target, change, fused=applied)
        return self._fuse(call, target, change) if applied and refused is None else refused

    def _applied(self, change: Change) -> str:
        """Activation that a setting of a call applies; empty if it applies none."""
        return activation_of(change.words, self._edited_constants)

    def _illegality(
        self, target: Node, change: Change, *, fused: str = ""
    ) -> tuple[str, str] | None:
        """Reason for which the library, or the semantics, do not allow a decision.

        Args:
            target: the call.
            change: the decision.
            fused: an activation that the call applies by the decision.
        """
        constants = self._edited_constants
        applied = activation_of(self._current(target, change), self._constants)
        if (applied or fused) != activation_of(change.words, constants):
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
                nearest = f"{description(applied)} applies {name} already"
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
            activation == activation_of(each.words, self._constants)
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
            if found.label is not None and not same_parameter(found.label, change.parameter):
                return f"its argument {index + 1} is {found.label} now", ""
        elif any(each.label for each in there):
            return _set_labelled(edited, [each.label for each in there], change.parameter, value)
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
        shared = [each for each in shared if each.callee == node.callee] or shared
        if shared:
            return f"{description(shared[0])} is there now"
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
        return f"{description(found[0])} is there now" if found else ""

    def _lose(
        self,
        path: str,
        ops: tuple[LoweredOp, ...],
        decision: str,
        reason: str,
        nearest: str = "",
    ) -> None:
        self._result.lost.append(LostDecision(path, ops, decision, reason, nearest))


def _set_labelled(
    edited: EditedNode, labels: Sequence[str | None], parameter: str, value: str
) -> tuple[str, str] | None:
    """Adds a labelled argument to a call; returns the reason if it cannot."""
    call = edited.statement.call
    assert call is not None
    names = PARAMETERS.get(call.callee.rpartition("::")[2], ())
    index = next((i for i, each in enumerate(names) if same_parameter(each, parameter)), None)
    if index is None or index < len(labels):
        return f"the call has no parameter '{parameter}' that is left", ""
    between = names[len(labels) : index]
    if any(each not in KINDS for each in between):
        return f"the call has {len(labels)} arguments now, and no default of the next", ""
    edited.positional += [f"/*{each}=*/std::nullopt" for each in between]
    edited.positional.append(f"/*{names[index]}=*/{value or 'std::nullopt'}")
    edited.changed = True
    return None


def description(node: Node) -> str:
    """Describes a call by its result variable and its op."""
    return f"'{node.statement.target}' ({names_text(node.ops)})"
