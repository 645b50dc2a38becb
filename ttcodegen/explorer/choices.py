"""Decisions of the optimizer for the ops of a model, and their alternatives.

The ways are those that overrides are checked against (`optimizer.ways`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from ttcodegen.compilation import CompileOptions, compile_module
from ttcodegen.dialects.operations.compute_config import MathFidelity
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.dialects.ttnn.placement import given_placement
from ttcodegen.foundation.diagnostics import CompileError, Source
from ttcodegen.foundation.messages import closest
from ttcodegen.ops.dialects import load_dialects
from ttcodegen.optimizer.call import call_of
from ttcodegen.optimizer.candidates import CandidateGenerator
from ttcodegen.optimizer.cost.calls import CostModel
from ttcodegen.optimizer.optimize import Optimize, placed_calls
from ttcodegen.optimizer.overrides.overrides import PLACES, CallNames, choice
from ttcodegen.transforms.const_eval import constant_values, is_const_eval
from ttcodegen.transforms.pass_runner import PassRunner

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp
    from xdsl.dialects.func import FuncOp
    from xdsl.passes import ModulePass

_MOST_WAYS = 200
"""Limit on the candidates listed for an op; matmuls have one per core grid."""


@dataclass
class Choices:
    """Alternatives of an op."""

    function: str
    node: str
    op: str
    chosen: Mapping[str, Any]
    """Decision as an entry of overrides."""
    ways: list[dict[str, Any]]
    """Possible placements of the result, as entries of overrides."""
    fields: dict[str, list[Any]] = field(default_factory=dict[str, list[Any]])
    """Values of each field in any candidate."""

    def to_json(self) -> dict[str, Any]:
        """Answer to the command `choices`."""
        return dict(vars(self))


@dataclass
class _Recorder:
    """Pass instrument that inspects the optimizer's input module."""

    node: str
    function: str
    found: list[Choices] = field(default_factory=list[Choices])
    known: list[str] = field(default_factory=list[str])

    def before(self, pass_: ModulePass, module: ModuleOp) -> None:
        """Called before a pass runs."""
        if not isinstance(pass_, Optimize):
            return
        from xdsl.dialects.func import FuncOp

        ways = CandidateGenerator(CostModel.of(module), True, placed_calls())
        for function in module.walk():
            if isinstance(function, FuncOp) and not is_const_eval(function):
                self._look(function, ways)

    def after(self, pass_: ModulePass, module: ModuleOp) -> None:
        """Called after a pass ran."""

    def failed(self, pass_: ModulePass, module: ModuleOp) -> None:
        """Called if a pass refuses the module."""

    def _look(self, function: FuncOp, ways: CandidateGenerator) -> None:
        names = CallNames(function)
        self.known += names
        op = names.named(self.node) if self.function in ("", names.function) else None
        if op is None:
            return
        choices = Choices(names.function, names[op], op.definition.short_name, {}, [])
        if not all(result in constant_values(function) for result in op.results):
            choices.ways = _ways(op, ways)
            choices.fields = _fields(op, choices.ways)
        self.found.append(choices)


@dataclass
class _Estimates:
    """Estimated time of each call that the optimizer placed, by function and node."""

    microseconds: dict[tuple[str, str], float] = field(default_factory=dict[tuple[str, str], float])

    def before(self, pass_: ModulePass, module: ModuleOp) -> None:
        """Called before a pass runs."""

    def after(self, pass_: ModulePass, module: ModuleOp) -> None:
        """Called after a pass ran."""
        if not isinstance(pass_, Optimize):
            return
        from xdsl.dialects.func import FuncOp

        model = CostModel.of(module)
        for function in module.walk():
            if not isinstance(function, FuncOp) or is_const_eval(function):
                continue
            names = CallNames(function)
            for name in names:
                op = names.named(name)
                if op is None or any(
                    given_placement(value) is None for value in (*op.operands, *op.results)
                ):
                    continue
                if seconds := model.seconds(call_of(op)):
                    self.microseconds[names.function, name] = round(seconds * 1e6, 3)

    def failed(self, pass_: ModulePass, module: ModuleOp) -> None:
        """Called if a pass refuses the module."""


def _ways(op: CatalogueOp, ways: CandidateGenerator) -> list[dict[str, Any]]:
    if any(given_placement(value) is None for value in (*op.operands, *op.results)):
        return []
    found: dict[str, dict[str, Any]] = {}
    call = call_of(op)
    for way in ways.of(call, [False] * len(call.operands)):
        if not way.results:
            continue
        fields = choice(way.results[0], {**op.parameters(), **way.attributes})
        entry = {name: fields[name] for name in PLACES if name in fields}
        found.setdefault(json.dumps(entry), entry)
        if len(found) == _MOST_WAYS:
            break
    return list(found.values())


def _fields(op: CatalogueOp, ways: list[dict[str, Any]]) -> dict[str, list[Any]]:
    fields: dict[str, list[Any]] = {}
    for way in ways:
        for name, value in way.items():
            values = fields.setdefault(name, [])
            if value not in values:
                values.append(value)
    names = {spec.name for spec in op.definition.attributes}
    if "compute_config" in names:
        fields["math_fidelity"] = [fidelity.value for fidelity in MathFidelity]
    return fields


def choices_of(source: Source, options: CompileOptions, node: str, function: str = "") -> Choices:
    """Alternatives of an op.

    Args:
        source: the module.
        options: compile options with the optimizer enabled.
        node: the op's name in overrides, that of its node.
        function: the op's function; empty for any.

    Raises:
        CompileError: if the module does not compile, or has no such op.
    """
    _check_optimizes(options)
    recorder = _Recorder(node, function)
    runner = PassRunner(load_dialects(), instruments=[recorder])
    compiled = compile_module(source, replace(options, golden_seed=None), runner)
    if not recorder.found:
        close = closest(node, recorder.known)
        raise CompileError(
            f"the optimizer makes no decision for '{node}'",
            remedy=f"did you mean '{close}'?" if close else None,
        )
    choices = recorder.found[0]
    decisions: Any = json.loads(compiled.decisions)
    choices.chosen = decisions["functions"].get(choices.function, {}).get(choices.node, {})
    return choices


def decisions_of(source: Source, options: CompileOptions) -> list[dict[str, Any]]:
    """Decision of the optimizer for each op.

    Entries have `function`, `node`, `op`, `chosen` (an entry of overrides) and `estimated_us` (by
    the cost model, or None).

    Args:
        source: the module.
        options: compile options with the optimizer enabled.

    Raises:
        CompileError: if the module does not compile.
    """
    _check_optimizes(options)
    estimates = _Estimates()
    runner = PassRunner(load_dialects(), instruments=[estimates])
    compiled = compile_module(source, replace(options, golden_seed=None), runner)
    decisions: Any = json.loads(compiled.decisions)
    return [
        {
            "function": function,
            "node": node,
            "op": entry.get("op", ""),
            "chosen": entry,
            "estimated_us": estimates.microseconds.get((function, node)),
        }
        for function, entries in decisions["functions"].items()
        for node, entry in entries.items()
    ]


def _check_optimizes(options: CompileOptions) -> None:
    if not options.optimize or options.target != "ttnn":
        raise CompileError(
            "there is nothing to choose from without the optimizer",
            remedy="the setting 'optimize' is 1 or 2, and 'target' ttnn",
        )
