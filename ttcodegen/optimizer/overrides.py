"""Decisions that are given from outside, and those that were taken, as JSON.

    {"version": 1, "functions": {"main": {"scores": {"op": "matmul", "memory": "l1",
     "sharding": "block_sharded", "shard": [64, 128], "grid": [8, 4],
     "program_config": "#ttnn....<...>", "math_fidelity": "hifi2"}}}}

Calls go by the names of what they make. A file may say as little as it likes of each of them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from ttcodegen.diagnostics import CompileError
from ttcodegen.dialects.compute_config import ComputeConfig
from ttcodegen.dialects.math_fidelity import MathFidelity
from ttcodegen.dialects.operation import CatalogueOp
from ttcodegen.dialects.placement import TensorPlacement
from ttcodegen.dialects.program_configs import PROGRAM_CONFIGS, ProgramConfig, config_of_text
from ttcodegen.optimizer.search import Decision
from ttcodegen.optimizer.ways import Way
from ttcodegen.suggestions import closest
from ttcodegen.transforms.rebuilding import body_of

VERSION = 1
FIELDS = (*("op", "memory", "sharding", "shard", "grid", "program_config", "math_fidelity"),)
Entry = Mapping[str, Any]
Overrides = Mapping[str, Mapping[str, Entry]]


def call_names(function: FuncOp) -> dict[Operation, str]:
    """The calls of a function by the names of what they make; a name that occurs again is
    numbered."""
    seen: dict[str, int] = {}
    names: dict[Operation, str] = {}
    for op in body_of(function).ops:
        if not isinstance(op, CatalogueOp) or not op.results:
            continue
        name = op.results[0].name_hint or op.definition.short_name
        seen[name] = seen.get(name, 0) + 1
        names[op] = name if seen[name] == 1 else f"{name}#{seen[name]}"
    return names


def read_overrides(text: str) -> Overrides:
    """The decisions in a file.

    Raises:
        CompileError: if it is no such file, or an entry has a field that there is not.
    """
    try:
        data: Any = json.loads(text)
    except ValueError as error:
        raise CompileError(f"the overrides are no JSON: {error}") from error
    known = cast("dict[str, Any]", data) if isinstance(data, dict) else {}
    functions: Any = known.get("functions")
    if not isinstance(functions, dict) or known.get("version") != VERSION:
        raise CompileError(f'overrides have "version": {VERSION}, and "functions" by their names')
    found = cast("dict[str, dict[str, dict[str, Any]]]", functions)
    for function, entries in found.items():
        for name, entry in entries.items():
            for field in entry:
                if field not in FIELDS:
                    raise CompileError(
                        f"the override of '{name}' in '{function}' has a field '{field}'",
                        remedy=f"there are {', '.join(FIELDS)}",
                    )
    return found


def check_names(overrides: Overrides, functions: Sequence[FuncOp]) -> None:
    """Every override belongs to a call.

    Raises:
        CompileError: that names what there is instead.
    """
    known = {f.sym_name.data: list(call_names(f).values()) for f in functions}
    for function, entries in overrides.items():
        if function not in known:
            raise CompileError(
                f"there is no function '{function}' to override calls of",
                remedy=f"there are {', '.join(known)}",
            )
        for name in entries:
            if name not in known[function]:
                close = closest(name, known[function])
                raise CompileError(
                    f"'{function}' makes nothing called '{name}'",
                    remedy=f"did you mean '{close}'?"
                    if close
                    else "--write-overrides lists all names",
                )


def choice(placement: TensorPlacement, attributes: Mapping[str, Any]) -> dict[str, Any]:
    """A way as an entry of the file."""
    entry: dict[str, Any] = {
        "memory": placement.buffer_type,
        "sharding": placement.memory_layout,
    }
    if placement.shards is not None:
        box = placement.shards.bounding_box()
        entry["shard"] = list(placement.shards.shape)
        entry["grid"] = [box.columns, box.rows]
    for name in PROGRAM_CONFIGS:
        config = attributes.get(name)
        if isinstance(config, ProgramConfig):
            entry["program_config"] = config.text
    compute = attributes.get("compute_config")
    if isinstance(compute, ComputeConfig):
        entry["math_fidelity"] = compute.math_fidelity.value
    return entry


def written(decisions: Mapping[str, tuple[Mapping[Operation, str], Sequence[Decision]]]) -> str:
    """The file with the decisions that were taken."""
    functions: dict[str, Any] = {}
    for function, (names, taken) in decisions.items():
        entries: dict[str, Any] = {}
        for decision in taken:
            op = decision.op
            if op in names and isinstance(op, CatalogueOp) and decision.way.results:
                attributes = {**op.parameters(), **decision.way.attributes}
                told = choice(decision.way.results[0], attributes)
                entries[names[op]] = {"op": op.definition.short_name, **told}
        functions[function] = entries
    return json.dumps({"version": VERSION, "functions": functions}, indent=2) + "\n"


def chosen(name: str, op: CatalogueOp, entry: Entry, ways: Sequence[Way]) -> list[Way]:
    """The ways that agree with an override.

    Raises:
        CompileError: if none does, with those that the library takes; or if the entry is of
            another op, or names a configuration that no program can have.
    """
    asked = entry.get("op", op.definition.short_name)
    if asked != op.definition.short_name:
        raise CompileError(f"'{name}' is made by '{op.definition.short_name}', not '{asked}'", op)
    config = _config(name, op, entry)
    found = [way for way in ways if _agrees(op, way, entry, config)]
    if not found:
        legal = [json.dumps(_result(op, way)) for way in ways]
        raise CompileError(
            f"'{name}' ({op.definition.short_name}) cannot be made as its override says",
            op,
            remedy="the library takes " + "; ".join(dict.fromkeys(legal)),
        )
    return [_with(op, way, entry, config) for way in found]


def _config(name: str, op: CatalogueOp, entry: Entry) -> ProgramConfig | None:
    text = entry.get("program_config")
    if text is None:
        return None
    try:
        return config_of_text(text)
    except ValueError as error:
        raise CompileError(f"the override of '{name}': {error}", op) from error


def _result(op: CatalogueOp, way: Way) -> dict[str, Any]:
    return choice(way.results[0], way.attributes)


def _agrees(op: CatalogueOp, way: Way, entry: Entry, config: ProgramConfig | None) -> bool:
    if not way.results:
        return True
    told = _result(op, way)
    for field in ("memory", "sharding", "shard", "grid"):
        if field in entry and entry[field] != told.get(field):
            return False
    given = next((c for c in way.attributes.values() if isinstance(c, ProgramConfig)), None)
    return config is None or given is None or type(given) is type(config)


def _with(op: CatalogueOp, way: Way, entry: Entry, config: ProgramConfig | None) -> Way:
    """A way with the configuration and the fidelity of an override."""
    attributes = dict(way.attributes)
    for name, value in way.attributes.items():
        if config is not None and isinstance(value, ProgramConfig):
            attributes[name] = config
    fidelity = entry.get("math_fidelity")
    if fidelity is not None and any(s.name == "compute_config" for s in op.definition.attributes):
        compute = attributes.get("compute_config") or op.parameter("compute_config")
        compute = compute or ComputeConfig(math_approx_mode=False)
        attributes["compute_config"] = replace(compute, math_fidelity=MathFidelity(fidelity))
    return replace(way, attributes=attributes)
