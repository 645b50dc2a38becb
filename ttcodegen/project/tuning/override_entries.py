"""User's decisions as entries of the overrides file."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ttcodegen.compilation import WEIGHT_TYPES
from ttcodegen.dialects.operations.functions import CONST_EVAL_SUFFIX
from ttcodegen.emission.manifest_entries import LoweredOp
from ttcodegen.naming.modules import PRODUCT_WEIGHTS
from ttcodegen.optimizer.overrides.meanings import TRANSPOSED, KnownCall
from ttcodegen.project.tuning.edited_files import (
    EditedCall,
    EditedConstant,
    EditedFile,
    MovedCall,
    ReplacedCalls,
)
from ttcodegen.project.tuning.meanings import known_calls
from ttcodegen.project.tuning.report import (
    constant_text,
    described,
    names_text,
    parameters_of,
    place_text,
    replacement_text,
)
from ttcodegen.project.tuning.setting_values import override_fields
from ttcodegen.project.tuning.statements import (
    APPLIED_AFTER,
    CONFIGURATIONS,
    KINDS,
    TUNING,
    Constant,
    Statement,
    kind_of,
)

_CONVOLUTION = "conv2d_config"
Entries = dict[str, dict[str, dict[str, Any]]]
"""Entries by function and op."""


def entries(files: Iterable[EditedFile]) -> Entries:
    """Decisions as entries of an overrides file, by function; those that it cannot express are
    skipped."""
    return _Writer(list(files)).run().found


def overrides_text(files: Iterable[EditedFile]) -> str:
    """Decisions as text of a `--overrides` file."""
    return json.dumps({"version": 1, "functions": entries(files)}, indent=2) + "\n"


def unexpressed(files: Iterable[EditedFile]) -> list[str]:
    """Decisions that an overrides file cannot express, with their ops."""
    return _Writer(list(files)).run().skipped


@dataclass
class _Writer:
    files: Sequence[EditedFile]
    found: Entries = field(default_factory=Entries)
    skipped: list[str] = field(default_factory=list[str])
    called: dict[LoweredOp, LoweredOp] = field(default_factory=dict[LoweredOp, LoweredOp])
    """Ops of calls that apply an activation, with the activation that the optimizer names them
    after."""

    def run(self) -> _Writer:
        """Collects the entries."""
        for call in (call for file in self.files for call in file.calls):
            applied = (*APPLIED_AFTER, *CONFIGURATIONS)
            if any(change.parameter in applied for change in call.changes):
                self.called.update(zip(call.ops, call.fused_ops, strict=False))
        for file in self.files:
            for constant in file.constants:
                if constant.constant.name == PRODUCT_WEIGHTS:
                    words = constant.constant.value
                    self._weights(constant, override_fields("dtype", words, {}).get("data_type"))
                for parameter in parameters_of(constant):
                    named = (f"{TUNING}{constant.constant.name}",)
                    said = override_fields(parameter, named, file.constants_known)
                    if constant.before is not None:
                        said = _changed(said, parameter, constant.before.value)
                    for op in constant.ops:
                        self._add(op, said, constant.comments)
                    if not said and constant.ops and constant.before is not None:
                        self._skip(constant.ops, described(parameter, constant.constant.value))
        for file in self.files:
            for call in file.calls:
                self._call(file, call)
            for group in file.replaced:
                self._replacement(file, group)
            for moved in file.moved:
                self._move(moved)
        return self

    def _weights(self, constant: EditedConstant, data_type: str | None) -> None:
        """Data type of the weights of all matrix products."""
        if data_type in WEIGHT_TYPES.values():
            for op in constant.ops:
                self._add(op, {"weights": data_type}, constant.comments)
        else:
            self._skip(constant.ops, constant_text(constant))

    def _call(self, file: EditedFile, call: EditedCall) -> None:
        for change in call.changes:
            said = override_fields(change.parameter, change.words, file.constants_known)
            said = _changed(said, change.parameter, change.before)
            for op in call.ops:
                self._add(op, said, call.comments)
            if said or not call.ops:
                continue
            if change.parameter in ("lhs_activations", "rhs_activations") and call.fused:
                before, after = (call.fused, call.before), (call.after,)
                ops = (call.fused_ops, call.ops)
                if self._replaced(file, before, after, ops, call.comments):
                    continue
            self._skip(call.ops, described(change.parameter, change.words))

    def _add(self, op: LoweredOp, said: Mapping[str, Any], comments: Sequence[str]) -> None:
        # What is computed once follows from the calls that read it.
        if said and not op.function.endswith(CONST_EVAL_SUFFIX):
            op = self.called.get(op, op)
            self._update(op.function, op.name, said, comments)

    def _update(
        self, function: str, name: str, said: Mapping[str, Any], comments: Sequence[str]
    ) -> None:
        entry = self.found.setdefault(function, {}).setdefault(name, {})
        entry.update(said)
        if comments:
            entry["comment"] = " ".join(comments)

    def _skip(self, ops: Sequence[LoweredOp], decision: str) -> None:
        self.skipped.append(f"{names_text(ops)}: {decision}")

    # Order

    def _move(self, moved: MovedCall) -> None:
        places = [
            self._beside(moved.ops, ops, last=field == "after")
            for field, ops in zip(("after", "before"), moved.ops_around, strict=True)
        ]
        call = moved.statement.call
        named = len({op.name for op in moved.ops}) == len(moved.ops) > 0
        # The call of a function of the file makes several ops.
        is_one = call is not None and call.callee.startswith(("ttnn::", "call::"))
        if not named or not is_one or not any(places):
            self._skip(moved.ops, place_text(moved))
            return
        for number, op in enumerate(moved.ops):
            said = {
                field: beside[number]
                for field, beside in zip(("after", "before"), places, strict=True)
                if beside
            }
            self._add(op, said, moved.comments)

    def _beside(
        self, ops: Sequence[LoweredOp], others: Sequence[LoweredOp], *, last: bool
    ) -> list[str]:
        """Names of the calls beside each op of a call; empty if they do not correspond."""
        if len(others) != len(ops):
            if len(ops) != 1 or not others:
                return []
            # The call of a function of several ops.
            others = others[-1:] if last else others[:1]
        if any(op.function != other.function for op, other in zip(ops, others, strict=True)):
            return []
        return [self.called.get(other, other).name for other in others]

    # Replaced calls

    def _replacement(self, file: EditedFile, group: ReplacedCalls) -> None:
        if group.apart:
            for op in group.ops:
                self._add(op, {"fuse": False}, group.comments)
            return
        made = self._replaced(file, group.before, group.after, group.ops_before, group.comments)
        if not made:
            self._skip(group.ops, replacement_text(group))

    def _replaced(
        self,
        file: EditedFile,
        before: Sequence[Statement],
        after: Sequence[Statement],
        ops: Sequence[Sequence[LoweredOp]],
        comments: Sequence[str],
    ) -> bool:
        """Adds entries of replaced calls; returns whether they express them."""
        constants = file.constants_known
        old, new = known_calls(before, constants), known_calls(after, constants)
        layers = len(ops[-1])
        if old is None or new is None or not layers or any(len(each) != layers for each in ops):
            return False
        if any(TRANSPOSED in call.attributes for call in new):
            # The catalogue knows it as a permutation alone.
            return False
        made: list[tuple[LoweredOp, list[dict[str, Any]], dict[str, Mapping[str, Any]]]] = []
        for layer in range(layers):
            names = [each[layer].name for each in ops]
            calls = _Calls(old, new, names, layers > 1).run()
            if calls is None:
                return False
            given = {str(each.target): settings_of(each, constants) for each in after[:-1]}
            inner = {
                str(call["name"]): given[known.result]
                for known, call in zip(new, calls, strict=True)
                if "name" in call and given.get(known.result)
            }
            op = ops[-1][layer]
            made.append((op, calls, {**inner, op.name: settings_of(after[-1], constants)}))
        for op, calls, given in made:
            self._update(op.function, op.name, {"calls": calls}, comments)
            for name, fields in given.items():
                if fields:
                    self._update(op.function, name, fields, ())
        return True


@dataclass
class _Calls:
    """Calls in place of others, as a field of the overrides file."""

    before: Sequence[KnownCall]
    after: Sequence[KnownCall]
    names: Sequence[str]
    """Ops of the calls before."""
    is_shared: bool
    """True for a function that several layers call."""

    def run(self) -> list[dict[str, Any]] | None:
        """Returns the calls; None if they read something that those before do not."""
        read = self._read()
        target = self.after[-1].result
        made: dict[str, str] = {}
        calls: list[dict[str, Any]] = []
        for call in self.after:
            entry: dict[str, Any] = {"op": call.definition.short_name, "operands": []}
            for name in _without_absent(call.operands):
                value = None if name is None else made.get(name) or read.get(name)
                if value is None and name is not None:
                    return None
                entry["operands"].append(value)
            if call.attributes:
                entry["attributes"] = dict(call.attributes)
            if len(calls) < len(self.after) - 1:
                name = call.result
                if name == target or name in made or self.is_shared:
                    end = call.definition.short_name if name == target or name in made else name
                    name = re.sub(r"^(?=\d)|\W", "_", f"{self.names[-1]}_{end}")
                if name in made.values():
                    return None
                made[call.result] = name
                entry = {"name": name, **entry}
            calls.append(entry)
        return calls

    def _read(self) -> dict[str, str]:
        """Values that the calls before read, as operands of ops."""
        found: dict[str, str] = {}
        assigned: set[str] = set()
        for call, op in zip(self.before, self.names, strict=True):
            given = [name for name in call.operands if name is not None]
            for index, name in enumerate(given):
                if name not in assigned:
                    found.setdefault(name, f"{op}:{index}")
            assigned.add(call.result)
        return found


def _without_absent(operands: Sequence[str | None]) -> Sequence[str | None]:
    """Operands without absent ones at the end."""
    last = max(i for i, name in enumerate(operands) if name is not None)
    return operands[: last + 1]


def _changed(said: Mapping[str, Any], parameter: str, before: Sequence[str]) -> dict[str, Any]:
    """Fields of a convolution's configuration without those that were generated so."""
    found = dict(said)
    was = override_fields(parameter, before, {}).get(_CONVOLUTION, {})
    if _CONVOLUTION in found:
        fields = {n: v for n, v in found.pop(_CONVOLUTION).items() if was.get(n) != v}
        found |= {_CONVOLUTION: fields} if fields else {}
    return found


def settings_of(statement: Statement, constants: Mapping[str, Constant]) -> dict[str, Any]:
    """Fields of the overrides file for the settings in a call."""
    call = statement.call
    assert call is not None
    found: dict[str, Any] = {}
    for each in (*call.positional, *call.options):
        parameter = each.label if each.label in KINDS else kind_of(each.words, constants)
        if parameter is not None and parameter not in APPLIED_AFTER:
            found.update(override_fields(parameter, each.words, constants))
    return found
