"""Overrides: decisions of the optimizer by call name, as JSON or option strings of tt-mlir."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, cast, get_type_hints

from xdsl.dialects.builtin import ArrayAttr, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from ttcodegen.dialects.operations.compute_config import ComputeConfig, MathFidelity
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.dialects.ttir.annotations import Sharding
from ttcodegen.dialects.ttnn.placement import TensorPlacement
from ttcodegen.dialects.ttnn.program_configs import PROGRAM_CONFIGS, Conv2dConfig, ProgramConfig
from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.foundation.messages import closest
from ttcodegen.naming.sources import location_name, name_in_text
from ttcodegen.ops.core.definition import TTNNDefinition
from ttcodegen.ops.core.traits import CallKind
from ttcodegen.optimizer.beam_search import Decision
from ttcodegen.optimizer.overrides.reference_options import (
    BUFFERS,
    DATA_TYPES,
    PAGES,
    SHARDINGS,
    entries_of_options,
)
from ttcodegen.optimizer.overrides.refusals import EntryName, Refusals
from ttcodegen.transforms.rewriting import body_of
from ttcodegen.transforms.ttnn.pipelines import level_of

MERGED = "ttcodegen.merged"
"""Attribute of a call that applies an activation: names that entries use for both."""


def merged_names(op: Operation) -> list[str]:
    """Names of calls that became part of a call, for entries that decide on them."""
    merged = op.attributes.get(MERGED)
    names = cast("ArrayAttr[StringAttr]", merged).data if isinstance(merged, ArrayAttr) else ()
    return [each.data for each in names]


KEPT = "ttcodegen.call_name"
"""Attribute of a call: the name that it had before calls around it became part of others."""


def keep_names(function: FuncOp, overrides: FunctionOverrides) -> None:
    """Keeps the names of calls that overrides mention, by which they are found to the end."""
    for op in body_of(function).ops:
        if op in overrides.names and overrides.mentions(op):
            op.attributes[KEPT] = StringAttr(overrides.names[op])


def _kept_name(op: Operation) -> str | None:
    kept = op.attributes.get(KEPT)
    return kept.data if isinstance(kept, StringAttr) else None


_MOVEMENTS = frozenset((CallKind.RESHAPE, CallKind.PERMUTATION, CallKind.LAYOUT))
"""Kinds of calls that only bring a value into another shape or layout."""


def _only_moves(op: CatalogueOp) -> bool:
    definition = op.definition
    return isinstance(definition, TTNNDefinition) and definition.call_kind in _MOVEMENTS


class CallNames:
    """Calls of a function by the names of their results.

    These are names of values in the source, or else of locations (for the last call of each that
    computes), or else of ops. Repeated names are numbered.
    """

    def __init__(self, function: FuncOp) -> None:
        self.function = function.sym_name.data
        self._names: dict[Operation, str] = {}
        self._calls: dict[str, CatalogueOp] = {}
        self._by_location: dict[str, CatalogueOp] = {}
        self._merged: dict[str, CatalogueOp] = {}
        seen: dict[str, int] = {}
        calls = [op for op in body_of(function).ops if isinstance(op, CatalogueOp) and op.results]
        self._kept = {name: op for op in calls if (name := _kept_name(op)) is not None}
        for op in calls:
            if (location := location_name(op.location)) is not None:
                known = self._by_location.get(location)
                if known is None or _only_moves(known) or not _only_moves(op):
                    self._by_location[location] = op
        for op in calls:
            location = location_name(op.location)
            made = op.definition.short_name
            # A location names the last of its calls that computes: those before it prepare
            # operands, those after it bring its result into another shape.
            is_last = location is not None and self._by_location[location] is op
            name = name_in_text(op.results[0], location if location and is_last else made)
            seen[name] = seen.get(name, 0) + 1
            name = name if seen[name] == 1 else f"{name}#{seen[name]}"
            self._names[op] = name
            self._calls.setdefault(name, op)
            self._merged.update(dict.fromkeys(merged_names(op), op))

    def __getitem__(self, op: Operation) -> str:
        return self._names[op]

    def __contains__(self, op: Operation) -> bool:
        return op in self._names

    def __iter__(self) -> Iterator[str]:
        """Iterates over all names in the order of the calls."""
        return iter(self._calls)

    def named(self, name: str) -> CatalogueOp | None:
        """Returns the call of a name, or else the last call of a location with that name."""
        found = self._merged.get(name) or self._calls.get(name) or self._by_location.get(name)
        return found or self._kept.get(name)

    def located(self, name: str) -> CatalogueOp | None:
        """Returns the last call of a location, or else the call of a name, as tt-mlir's options."""
        return self._by_location.get(name) or self._calls.get(name)

    @property
    def known(self) -> list[str]:
        """All names of calls and locations."""
        return list(dict.fromkeys((*self._calls, *self._by_location, *self._merged, *self._kept)))


# Overrides and recorded decisions as JSON.
#
#     {"version": 1, "level": 2, "functions": {"main": {"scores": {"op": "matmul", "memory": "l1",
#      "sharding": "block_sharded", "shard": [64, 128], "grid": [8, 4],
#      "program_config": "#ttnn....<...>", "math_fidelity": "hifi2", "data_type": "bfp_bf8",
#      "fuse": false, "operands": {"0": {"memory": "l1", "sharding": "height_sharded"}}}}}}
#
# Calls are named by their results. All fields of an entry are optional. Options of tt-mlir
# (`entries_of_options`) may be given instead. `level` is the optimization level; without it,
# decisions are applied at level 1 unless another level is requested.

VERSION = 1
ANY = "*"
"""Function name of entries for all functions."""
Entry = Mapping[str, Any]
Overrides = Mapping[str, Mapping[str, Entry]]
PLACES = ("memory", "sharding", "shard", "grid", "layout")
"""Fields of the placement of a tensor."""


_Rule = tuple[Callable[[Any], bool], str]
"""Predicate of valid values, and their description."""


def _one_of(words: Sequence[str]) -> _Rule:
    return (lambda value: value in words), f"one of {', '.join(words)}"


def _is_positive_pair(value: Any) -> bool:
    return (
        isinstance(value, list)
        and len(cast("list[Any]", value)) == 2
        and all(type(size) is int and size > 0 for size in cast("list[Any]", value))
    )


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and re.fullmatch(r"[A-Za-z_]\w*", value) is not None


def _is_table(value: Any) -> bool:
    return isinstance(value, dict)


def _is_list(value: Any) -> bool:
    return isinstance(value, list) and bool(cast("list[Any]", value))


def _is_names(value: Any) -> bool:
    return (
        _is_list(value)
        and value[0] is not None
        and all(each is None or isinstance(each, str) for each in value)
    )


def _is_size(value: Any) -> bool:
    return type(value) is int and 0 <= value < 2**32


_BOOLEAN: _Rule = ((lambda value: isinstance(value, bool)), "true or false")
_CORES: _Rule = (_is_positive_pair, "columns and rows of cores")
_FIELDS: Mapping[str, _Rule] = {
    "op": (_is_text, "the name of an op"),
    "memory": _one_of(BUFFERS),
    "sharding": _one_of(SHARDINGS),
    "shard": (_is_positive_pair, "height and width of each shard in elements"),
    "grid": _CORES,
    "layout": _one_of(PAGES),
    "data_type": _one_of(DATA_TYPES),
    "weights": _one_of(("bfp_bf8", "bfp_bf4")),
    "program_config": (_is_text, "an attribute, as #ttnn.matmul_...<...>"),
    "conv2d_config": (_is_table, "fields of a convolution's configuration"),
    "math_fidelity": _one_of([fidelity.value for fidelity in MathFidelity]),
    "fuse": _BOOLEAN,
    "operands": (_is_table, "operands by index, with the placement of each"),
    "calls": (_is_list, "a list of calls, each with its op and operands"),
    "after": (_is_text, "the name of a call"),
    "before": (_is_text, "the name of a call"),
    "comment": (_is_text, "a text, which decides nothing"),
}
_CALL_RULES: Mapping[str, _Rule] = {
    "op": (_is_text, "the name of an op"),
    "operands": (
        _is_names,
        "names of calls and arguments, NAME:0 for operand 0 of a call, or null for an absent one",
    ),
    "attributes": (_is_table, "attributes of the op by name"),
    "name": (
        _is_name,
        "the name of its result, for calls after it: letters, digits and underscores",
    ),
}
_OPERAND_RULES = {field: _FIELDS[field] for field in PLACES}


def _conv2d_rules() -> dict[str, _Rule]:
    """Returns the rules for the fields of a conv2d config, which are named as in C++."""
    rules: dict[str, _Rule] = {
        **{field: _one_of(words) for field, words in Conv2dConfig.words.items()},
        "activation": ((lambda value: value is None or isinstance(value, str)), "its name or null"),
        "core_grid": _CORES,
    }
    for field, hint in get_type_hints(Conv2dConfig).items():
        if hint == bool | None:
            rules[field] = _BOOLEAN
        elif hint == int | None:
            rules[field] = (_is_size, "a number that is not negative")
    return rules


_CONV2D_RULES = _conv2d_rules()


def read_overrides(text: str) -> Overrides:
    """Reads the overrides of calls from a text.

    Raises:
        CompileError: if it is not an overrides file, or an entry has an unknown field or an invalid
            value.
    """
    if text.lstrip().startswith(("override-", "insert-", "--")):
        entries = entries_of_options(text)
        for name, entry in entries.items():
            _check(f"the override of '{name}'", entry, _FIELDS)
        return {ANY: entries}
    try:
        data: Any = json.loads(text, object_pairs_hook=_unique_fields)
    except ValueError as error:
        raise CompileError(f"the overrides are no JSON: {error}") from error
    known = cast("dict[str, Any]", data) if isinstance(data, dict) else {}
    functions: Any = known.get("functions")
    if not isinstance(functions, dict) or known.get("version") != VERSION:
        raise CompileError(f'overrides have "version": {VERSION}, and "functions" by their names')
    if unknown := known.keys() - {"version", "level", "functions", "shardings"}:
        raise CompileError(f"the overrides have a field '{min(unknown)}'")
    _check_shardings(known.get("shardings", {}))
    level_of(text)
    found = cast("dict[str, Any]", functions)
    for function, entries in found.items():
        if not isinstance(entries, dict):
            raise CompileError(f"the overrides of '{function}' are no table of calls")
        for name, entry in cast("dict[str, Any]", entries).items():
            _check(f"the override of '{name}' in '{function}'", entry, _FIELDS)
    return found


def read_shardings(text: str) -> dict[str, dict[str, Sharding]]:
    """Reads the shardings of arguments from a text, by function and argument name.

    Raises:
        CompileError: as `read_overrides`.
    """
    read_overrides(text)
    data: Any = {} if text.lstrip().startswith(("override-", "insert-", "--")) else json.loads(text)
    return {
        function: {name: tuple([tuple(axes) for axes in dims]) for name, dims in table.items()}
        for function, table in data.get("shardings", {}).items()
    }


def _check_shardings(tables: Any) -> None:
    """Raises CompileError unless shardings are lists of axes by dimension."""
    if not isinstance(tables, dict):
        raise CompileError("the shardings of overrides are no table of functions")
    for function, table in cast("dict[str, Any]", tables).items():
        if not isinstance(table, dict):
            raise CompileError(f"the shardings of '{function}' are no table of arguments")
        for name, dims in cast("dict[str, Any]", table).items():
            axes = [
                axis
                for each in (cast("list[Any]", dims) if isinstance(dims, list) else [None])
                for axis in (cast("list[Any]", each) if isinstance(each, list) else [None])
            ]
            if any(type(axis) is not int or axis not in (0, 1) for axis in axes):
                expected = "for each dimension the axes of the mesh, 0 or 1, as in [[0], [], [1]]"
                raise CompileError(
                    f"the sharding of '{name}' in '{function}' is {json.dumps(dims)}",
                    remedy=expected,
                )
            if len(set(axes)) < len(axes):
                raise CompileError(
                    f"the sharding of '{name}' in '{function}' divides along an axis twice"
                )


def with_shardings(decisions: str, shardings: str) -> str:
    """Adds the table of shardings of arguments to the text of decisions, which may be empty."""
    nothing: dict[str, Any] = {"version": VERSION, "level": 0, "functions": {}}
    head = decisions or json.dumps(nothing, indent=2)
    table = json.dumps(json.loads(shardings), indent=2).replace("\n", "\n  ")
    # The axes of an argument are on one line.
    table = re.sub(r"\[[\s\d,\[\]]*\]", lambda axes: re.sub(r"\s+", "", axes[0]), table)
    table = table.replace(",", ", ").replace(", \n", ",\n")
    return head.rstrip().removesuffix("}").rstrip() + f',\n  "shardings": {table}\n}}\n'


def _unique_fields(fields: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """Returns a JSON object as a dict; raises CompileError for duplicate keys."""
    found = dict(fields)
    if len(found) < len(fields):
        names = [name for name, _ in fields]
        twice = next(name for name in names if names.count(name) > 1)
        raise CompileError(f"the overrides have '{twice}' twice in one table")
    return found


def _check(whose: str, entry: Any, fields: Mapping[str, _Rule]) -> None:
    if not isinstance(entry, dict):
        raise CompileError(f"{whose} is no table of fields")
    for field, value in cast("dict[str, Any]", entry).items():
        if field not in fields:
            close = closest(field, fields)
            hint = f"did you mean '{close}'? " if close else ""
            raise CompileError(
                f"{whose} has a field '{field}'", remedy=f"{hint}there are {', '.join(fields)}"
            )
        is_right, expected = fields[field]
        if not is_right(value):
            raise CompileError(f"{whose} has '{field}': {json.dumps(value)}", remedy=expected)
        if field == "conv2d_config":
            _check(f"the configuration in {whose}", value, _CONV2D_RULES)
        if field == "calls":
            for number, call in enumerate(cast("list[Any]", value), 1):
                _check(f"call {number} of {whose}", call, _CALL_RULES)
                if missing := [each for each in ("op", "operands") if each not in call]:
                    raise CompileError(f"call {number} of {whose} has no '{missing[0]}'")
        if field == "operands" and fields is _FIELDS:
            for place, wanted in cast("dict[str, Any]", value).items():
                if not re.fullmatch("0|[1-9][0-9]{0,8}", place):
                    raise CompileError(f"{whose} names an operand '{place}'", remedy="0, 1, ...")
                _check(f"operand {place} of {whose}", wanted, _OPERAND_RULES)


class FunctionOverrides:
    """Overrides of the calls of one function."""

    def __init__(self, overrides: Overrides, names: CallNames) -> None:
        self.names = names
        self._entries: dict[Operation, Entry] = {}
        self._given: dict[Operation, list[EntryName]] = {}
        self._made = made_names(overrides)
        """Names of what calls given in place of others make."""
        self._anchors = {
            entry[field]
            for entries in overrides.values()
            for entry in entries.values()
            for field in ("after", "before")
            if field in entry
        }
        for name, entry in overrides.get(ANY, {}).items():
            if (op := names.located(name)) is not None:
                self._entries[op] = entry
                self._given[op] = [(ANY, name)]
        for name, entry in overrides.get(names.function, {}).items():
            if (op := names.named(name)) is not None:
                self._entries[op] = {**self._entries.get(op, {}), **entry}
                self._given.setdefault(op, []).append((names.function, name))

    def entries_of(self, op: Operation) -> list[EntryName]:
        """Names of the entries of a call, as they are given."""
        return self._given.get(op, [])

    def drop(self, op: Operation) -> None:
        """Forgets the entry of a call."""
        self._entries.pop(op, None)

    def __getitem__(self, op: Operation) -> Entry | None:
        return self._entries.get(op)

    def items(self) -> Iterable[tuple[CatalogueOp, Entry]]:
        """Returns all calls with overrides."""
        return [(op, e) for op, e in self._entries.items() if isinstance(op, CatalogueOp)]

    def keeps_apart(self, *ops: Operation) -> bool:
        """Returns whether an override forbids fusing one of these ops."""
        return any(
            entry.get("fuse") is False or "calls" in entry or self.names[op] in self._made
            for op in ops
            if op in self.names
            for entry in [self._entries.get(op, {})]
        )

    def mentions(self, op: Operation) -> bool:
        """True if an op has an entry, or another entry names it as a place."""
        return op in self._entries or self.names[op] in self._anchors

    def decides(self, op: Operation) -> bool:
        """True if an entry decides something of a call that is to stay, under its own name.

        A name that follows from the kind of an op may be that of another call in the end.
        """
        entry = self._entries.get(op, {})
        if not isinstance(op, CatalogueOp) or entry.get("fuse") is True:
            return False
        made = op.definition.short_name
        own = self.names[op].partition("#")[0] != made and entry.get("op", made) == made
        return own and not entry.keys() <= {"op", "fuse", "comment"}


@contextmanager
def refused_entry(
    overrides: FunctionOverrides, op: Operation, refusals: Refusals
) -> Generator[None]:
    """Collects the refusal of a call's entry, which is forgotten."""
    try:
        yield
    except CompileError as error:
        refusals.add(error, overrides.entries_of(op))
        overrides.drop(op)


def made_names(overrides: Overrides) -> set[str]:
    """Names of the results of calls that are given in place of others, without the last ones."""
    return {
        call["name"]
        for entries in overrides.values()
        for entry in entries.values()
        for call in entry.get("calls", ())
        if "name" in call
    }


def overrides_of(text: str, function: FuncOp) -> FunctionOverrides:
    """Returns the overrides of a function from the text of a file, which may be empty."""
    return FunctionOverrides(read_overrides(text) if text else {}, CallNames(function))


def check_names(overrides: Overrides, functions: Sequence[CallNames]) -> None:
    """Checks that every override belongs to a call.

    Raises:
        RefusedOverrides: if a function or calls do not exist; suggests known names.
    """
    known = {names.function: names.known for names in functions}
    refused = Refusals()
    for function, entries in overrides.items():
        if function != ANY and function not in known:
            close = closest(function, known)
            error = CompileError(
                f"there is no function '{function}' to override calls of",
                remedy=f"did you mean '{close}'?" if close else f"there are {', '.join(known)}",
            )
            refused.add(error, [(function, name) for name in entries])
            continue
        there = known.get(function) or [name for names in known.values() for name in names]
        for name in entries:
            if name not in there:
                close = closest(name, there)
                error = CompileError(
                    f"'{function}' makes nothing called '{name}'"
                    if function != ANY
                    else f"nothing is called '{name}'",
                    remedy=f"did you mean '{close}'?"
                    if close
                    else "--write-overrides lists all names",
                )
                refused.add(error, [(function, name)])
    refused.raise_all()


def place(placement: TensorPlacement) -> dict[str, Any]:
    """Returns the placement of a tensor as fields of an entry."""
    fields: dict[str, Any] = {
        "memory": placement.buffer_type,
        "sharding": placement.memory_layout,
    }
    if placement.shards is not None:
        box = placement.shards.bounding_box()
        fields["shard"] = list(placement.shards.shape)
        fields["grid"] = [box.columns, box.rows]
    return fields


def choice(placement: TensorPlacement, attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a chosen placement and attributes as an entry."""
    entry = place(placement)
    for name in PROGRAM_CONFIGS:
        config = attributes.get(name)
        if isinstance(config, ProgramConfig):
            entry["program_config"] = config.text
    compute = attributes.get("compute_config")
    if isinstance(compute, ComputeConfig):
        entry["math_fidelity"] = compute.math_fidelity.value
    if attributes.get("dtype") is not None:
        entry["data_type"] = placement.data_type.mlir
    return entry


_KEPT = ("calls", "after", "before", "weights", "comment")
"""Fields that are written as they were given: no call says them."""


def written(decisions: Sequence[tuple[FunctionOverrides, Sequence[Decision]]], level: int) -> str:
    """Returns the text of a file with the decisions of the optimizer at a level."""
    functions: dict[str, Any] = {}
    for given, taken in decisions:
        names = given.names
        entries: dict[str, Any] = {}
        for decision in taken:
            op, results = decision.op, decision.candidate.results
            # There are no decisions for unchanged calls and for host tensors.
            is_left_alone = bool(op.operands) and not decision.candidate.operands
            if not results or is_left_alone or results[0].buffer_type == "system_memory":
                continue
            if op in names and isinstance(op, CatalogueOp):
                attributes = {**op.parameters(), **decision.candidate.attributes}
                fields = choice(results[0], attributes)
                entries[names[op]] = {"op": op.definition.short_name, **fields}
                if is_fused(op):
                    entries[names[op]]["fuse"] = True
        for op, entry in given.items():
            kept = {field: entry[field] for field in _KEPT if field in entry}
            if kept:
                entries.setdefault(names[op], {}).update(kept)
        functions[names.function] = entries
    content = {"version": VERSION, "level": level, "functions": functions}
    return json.dumps(content, indent=2) + "\n"


def is_fused(op: CatalogueOp) -> bool:
    """Returns whether a call applies a fused activation."""
    names = {spec.name for spec in op.definition.attributes}
    if "activation" in names and op.parameter("activation") is not None:
        return True
    configs = [op.parameter(name) for name in PROGRAM_CONFIGS if name in names]
    return any(config is not None and config.activation is not None for config in configs)
