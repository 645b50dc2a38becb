"""Reapplies tuning edits to the C++ of a changed model by rewriting its calls."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ttcodegen.emission.manifest_entries import LoweredOp, OpLines
from ttcodegen.emission.templates import clang_format_style
from ttcodegen.emitc.formatting import format_files
from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.project.tuning.applied_decisions import AppliedDecisions
from ttcodegen.project.tuning.call_decisions import CallDecisions, description
from ttcodegen.project.tuning.decisions import (
    SHARED_CONSTANTS,
    TUNING_FILE,
    uses_constant,
)
from ttcodegen.project.tuning.edited_files import (
    Change,
    EditedConstant,
    EditedFile,
    ReplacedCalls,
    with_edits,
)
from ttcodegen.project.tuning.legality import Legality
from ttcodegen.project.tuning.matching import Node, applying_call, makes, program
from ttcodegen.project.tuning.order import with_last_uses
from ttcodegen.project.tuning.report import (
    constant_text,
    names_text,
    place_text,
    replacement_text,
)
from ttcodegen.project.tuning.setting_values import in_declared_order
from ttcodegen.project.tuning.statements import (
    TUNING,
    Constant,
    braced_fields,
    constants_of,
    joined,
    kind_of,
    statements,
)


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


class _Application(CallDecisions):
    def run(self) -> AppliedDecisions:
        for file in self._files:
            for constant in file.constants:
                self._apply_constant(file.path, constant)
        for file in self._files:
            for call in file.calls:
                self._apply_call(call)
        for file in self._files:
            for group in file.replaced:
                self._apply_replacement(group)
            for moved in file.moved:
                lost = self._rearranged.move(moved)
                if lost is not None:
                    self._lose(moved.path, moved.ops, place_text(moved), *lost)
        self._write()
        return self._result

    # Replaced calls

    def _apply_replacement(self, group: ReplacedCalls) -> None:
        """Replaces calls, or an activation that the call before them applies now."""
        applying = None
        if self._counterpart(group.path, group.before[-1]) is None:
            applying = applying_call(self._new, group, self._source(group))
        if applying is None:
            lost = self._rearranged.replace(group)
        else:
            lost = self._rearranged.follow(group, applying)
            if lost is None:
                self._node(applying).options.pop("activation")
                self._node(applying).changed = True
        if lost is not None and not makes(self._new, group):
            nearest = lost[1] or self._nearest_of_group(group)
            self._lose(group.path, group.ops, replacement_text(group), lost[0], nearest)

    def _nearest_of_group(self, group: ReplacedCalls) -> str:
        """Describes what is there instead of calls that the user replaced."""
        last = group.before[-1]
        node = self._counterpart(group.path, last)
        if node is not None:
            there = f"{description(node)} is there now"
            if self._sharded(node) is None:
                return there
            return (
                f"{there}; with --overrides, the entry that --edits writes places the calls "
                "around it as well"
            )
        source = self._source(group)
        name = "" if last.call is None else last.call.callee.rpartition("::")[2]
        if source is not None and self._applies(source, name):
            return (
                f"{description(source)} applies {name} itself; with --overrides, the entry that "
                "--edits writes keeps it apart"
            )
        return self._nearest(self._old.get((group.path, last.start)))

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
                self._write_constant(there, value, edited.comments)
            else:
                self._lose(path, edited.ops, said, *lost)
                return
        self._give_constant(path, edited, said)

    def _write_constant(self, there: Constant, value: str, comments: Sequence[str]) -> None:
        text = self._now[TUNING_FILE]
        start = there.statement.start
        head = text[start : text.index(there.name, start) + len(there.name)]
        assigned = "=" if there.statement.words[len(there.type_words) + 1] == "=" else ""
        above = "".join(f"// {comment}\n" for comment in comments)
        self._tuning_edits.append((start, there.statement.end, f"{above}{head} {assigned}{value};"))

    def _merged_value(
        self, edited: EditedConstant, there: Constant
    ) -> tuple[str, tuple[str, str] | None]:
        """Merged value of a constant whose generated value changed; or the reason without one."""
        assert edited.before is not None
        was, wanted = edited.before, edited.constant
        words = wanted.value
        if there.type_words != was.type_words and there.name == was.name:
            kind = joined(there.type_words).removeprefix("const ")
            return "", (f"the constant is a {kind} now", "that one decides")
        if there.value != was.value:
            now = braced_fields(there.value)
            changed = _changed_fields(edited)
            if changed and now:
                merged = in_declared_order(there.type_words, {**now, **changed})
                given = ", ".join(f".{n} = {joined(v)}" for n, v in merged.items())
                head = there.value[: there.value.index("{")]
                probe = f"{' '.join(there.type_words)} {there.name} = {''.join(head)}{{{given}}};"
                words = constants_of(statements(probe))[there.name].value
        kind = kind_of((f"{TUNING}{there.name}",), {there.name: there})
        probe_constant = Constant(there.name, there.type_words, words, there.statement)
        for node in self._users(there.name):
            lost = self._legality.misfit(
                node.ops, kind or "", (f"{TUNING}{there.name}",), {there.name: probe_constant}
            )
            if lost is not None:
                reason, nearest = lost
                return "", (f"'{names_text(node.ops)}' cannot have it: {reason}", nearest)
        return joined(words), None

    def _users(self, name: str) -> list[Node]:
        """Calls of the new program that use a constant."""
        return [n for n in self._new if uses_constant(n.statement, name, self._now[n.path])]

    def _give_constant(self, path: str, edited: EditedConstant, said: str) -> None:
        """Makes calls use a constant that they used when it was edited."""
        name = edited.constant.name
        parameter = SHARED_CONSTANTS.get(name)
        parameter = parameter or kind_of((f"{TUNING}{name}",), self._edited_constants)
        if parameter is None:
            return
        gone: list[Node] = []
        lost: dict[tuple[str, str], list[LoweredOp]] = {}
        targets: dict[Node, Change] = {}
        for node in self._old.values():
            if not uses_constant(node.statement, name, self._before[node.path]):
                continue
            change = _use_of(name, parameter, node)
            found = self._targets(node)
            if not found:
                gone.append(node)
                merged = self.merged(node)
                found = () if merged is None else (merged,)
            targets.update((each, change) for each in found)
        # Calls that others of the same decision have become have it as well.
        gone = [node for node in gone if self.merged(node) not in targets]
        others: dict[str, list[Node]] = {}
        for target, change in targets.items():
            if uses_constant(target.statement, name, self._now[target.path]):
                continue
            refused = self._constant_refusal(target, change)
            constant = joined(self._current(target, change)).removeprefix(TUNING)
            if refused is not None and constant in self._constants and _changed_fields(edited):
                others.setdefault(constant, []).append(target)
                continue
            refused = refused or self._set(target, change)
            if refused is not None:
                lost.setdefault(refused, []).extend(target.ops)
        for constant, nodes in others.items():
            refused = self._merge_into(constant, edited, nodes)
            if refused is not None:
                lost.setdefault(refused, []).extend(op for node in nodes for op in node.ops)
        for (reason, nearest), ops in lost.items():
            self._lose(path, tuple(ops), said, reason, nearest)
        self._lose_unused(path, edited, said, gone)

    def _merge_into(
        self, name: str, edited: EditedConstant, nodes: Sequence[Node]
    ) -> tuple[str, str] | None:
        """Changes the same fields of another constant as the user did; returns the reason if it
        cannot."""
        there = self._constants[name]
        others = [node for node in self._users(name) if node not in nodes]
        reason = f"tuning::{name} decides there"
        if others:
            return reason, f"'{names_text(others[0].ops)}' uses it as well"
        if not braced_fields(there.value):
            return reason, "an override of the op changes the other fields alone"
        value, refused = self._merged_value(edited, there)
        if refused is None:
            self._write_constant(there, value, edited.comments)
        return refused

    def _lose_unused(
        self, path: str, edited: EditedConstant, said: str, gone: Sequence[Node]
    ) -> None:
        """Names a constant of calls that are gone, and whose successors decide for themselves."""
        name = edited.constant.name
        ops = tuple(op for node in gone for op in node.ops)
        others = [
            each
            for each in self._new
            if each not in self._found
            and each.callee in {n.callee for n in self._old.values() if set(n.ops) & set(ops)}
            and not uses_constant(each.statement, name, self._now[each.path])
        ]
        is_unused = not self._users(name) and not any(
            f"{TUNING}{name}" in "".join(e.options.values()) for e in self._edited.values()
        )
        if ops and (others or is_unused) and edited.ops:
            nearest = f"{', '.join(map(description, others))} is there now" if others else ""
            self._lose(path, ops, said, "there is no such call any more", nearest)

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
            following = rearranged.following.get(node)
            if made is not None or above or following:
                source = text[statement.start : statement.end]
                written[node] = above + (source if made is None else made)
                written[node] += f"\n{indent}{following}" if following else ""
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
            if file.has_decisions or file.rest != file.after:
                self._result.texts[file.path] = self._now[file.path]
                self._result.rest[file.path] = file.rest
        for path, found in edits.items():
            text = with_edits(self._now[path], found)
            text = with_last_uses(text, rearranged.functions.get(path, ()))
            self._result.texts[path] = _formatted_like(self._now[path], path, text)


def _changed_fields(edited: EditedConstant) -> dict[str, tuple[str, ...]]:
    """Fields of a structure that the user changed."""
    before = {} if edited.before is None else braced_fields(edited.before.value)
    after = braced_fields(edited.constant.value)
    return {name: value for name, value in after.items() if before.get(name) != value}


def _use_of(name: str, parameter: str, node: Node) -> Change:
    """Use of a constant by a call."""
    position = next(
        (i for i, each in enumerate(node.call.positional) if f"{TUNING}{name}" in each.words), -1
    )
    fillers = tuple(argument.words for argument in node.call.positional)
    words = (f"{TUNING}{name}",)
    return Change(parameter, words, words, position < 0, position, fillers)


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
