"""Merging of a variable's values over nodes, and affine fitting of numbers by node."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from types import FunctionType, SimpleNamespace
from typing import Any, cast

import numpy as np

from ttcodegen.lang.simulator.buffers import DataflowBuffer
from ttcodegen.lang.simulator.context import Coordinates
from ttcodegen.lang.simulator.locations import variables_of
from ttcodegen.lang.simulator.pipes import (
    MulticastRemoteSemaphore,
    Pipe,
    PipeNet,
    RemoteSemaphore,
    Semaphore,
    UnicastRemoteSemaphore,
)
from ttcodegen.lang.simulator.shapes import is_range, is_sequence

Point = tuple[int, ...]


@dataclass(frozen=True)
class Formula:
    """An affine function of coordinates, optionally reduced by a modulus or clamped.

    The modulus applies first, then the upper bound, then the lower bound.
    """

    first: int
    factors: Point
    modulus: int | None = None
    upper_bound: int | None = None
    lower_bound: int | None = None

    def at(self, point: Point) -> int:
        """Evaluates the formula at a point."""
        value = self.first + sum(f * c for f, c in zip(self.factors, point, strict=True))
        if self.modulus is not None:
            value %= self.modulus
        if self.upper_bound is not None:
            value = min(value, self.upper_bound)
        return value if self.lower_bound is None else max(value, self.lower_bound)


def fitted(values: Mapping[Point, int], periods: Sequence[int] = ()) -> Formula | None:
    """Finds the simplest formula with the given values; None if there is none.

    Args:
        values: the values by point.
        periods: further moduli to try; the default one exceeds the largest value by 1.
    """
    for formula in _candidates(values, periods):
        if all(formula.at(point) == value for point, value in values.items()):
            return formula
    return None


def _candidates(values: Mapping[Point, int], periods: Sequence[int]) -> Iterator[Formula]:
    """Yields formulas to try, simplest first."""
    upper_bound, lower_bound = max(values.values()), min(values.values())
    start = min(values)
    plain = _affine(values, start, None)
    yield plain
    for modulus in dict.fromkeys((upper_bound + 1, *periods)):
        if modulus > upper_bound:
            rest = _affine(values, start, modulus)
            yield Formula(rest.first % modulus, rest.factors, modulus)
    yield Formula(plain.first, plain.factors, upper_bound=upper_bound)
    # Clamping may hide the step of the first coordinate: try it as a multiple of the second's.
    if len(start) > 1:
        counts = 1 + max(point[1] for point in values)
        factors = (plain.factors[1] * counts, *plain.factors[1:])
        yield Formula(values[start] - _dot(factors, start), factors, upper_bound=upper_bound)
    end = max(values)
    last = _affine(values, end, None)
    yield Formula(last.first, last.factors, lower_bound=lower_bound)


def _dot(factors: Sequence[int], point: Sequence[int]) -> int:
    return sum(f * c for f, c in zip(factors, point, strict=True))


def _affine(values: Mapping[Point, int], at: Point, modulus: int | None) -> Formula:
    """Affine function with the steps that the values have next to a point."""
    factors: list[int] = []
    for axis in range(len(at)):
        step = _step(values, at, axis)
        factors.append(step if modulus is None else step % modulus)
    return Formula(values[at] - _dot(factors, at), tuple(factors))


def _step(values: Mapping[Point, int], at: Point, axis: int) -> int:
    """Step of the values along a coordinate, measured at the point or else anywhere."""

    def beside(point: Point, distance: int) -> Point:
        return (*point[:axis], point[axis] + distance, *point[axis + 1 :])

    for distance in (1, -1):
        if (near := beside(at, distance)) in values:
            return (values[near] - values[at]) * distance
    for point, value in values.items():
        if (near := beside(point, 1)) in values:
            return values[near] - value
    return 0


@dataclass(frozen=True)
class NodeFormula:
    """A node-dependent number: a formula of column and row."""

    formula: Formula


@dataclass(frozen=True)
class NodeTable:
    """A node-dependent number that no formula fits, as a lookup table.

    The index is the column, the row, or the linear index of the node, row fastest.
    """

    numbers: tuple[int, ...]
    by_column: bool
    by_row: bool


@dataclass(frozen=True)
class NodeFloat:
    """A node-dependent float, as its bits."""

    bits: NodeFormula | NodeTable


@dataclass(frozen=True)
class NodeRange:
    """A range with node-dependent limits."""

    start: Any
    stop: Any
    step: Any


@dataclass(frozen=True)
class NodeList:
    """A list with a node-dependent length.

    The lists of all nodes are extended to the length of the longest one, with its elements.
    """

    length: Any
    rows: tuple[tuple[Any, ...], ...]
    """Extended lists by the linear index of the node."""


@dataclass(frozen=True)
class NodeRemote:
    """A remote semaphore on node-dependent nodes: the first and the last one."""

    semaphore: Semaphore
    first: tuple[Any, Any]
    last: tuple[Any, Any]
    count: int
    is_multicast: bool


_OTHER_PACKAGES = frozenset({"builtins", "numpy", "torch", "ttcodegen"})
"""Packages whose objects are not inspected."""


@dataclass(frozen=True, eq=False)
class CapturedFunction:
    """A user function as captured by each node."""

    on_nodes: Mapping[Coordinates, FunctionType]

    @property
    def first(self) -> FunctionType:
        """Function of the first node."""
        return next(iter(self.on_nodes.values()))

    @property
    def is_same(self) -> bool:
        """True if all nodes have the same function with the same captured values."""
        return all(is_same(function, self.first) for function in self.on_nodes.values())


def plain(value: Any) -> Any:
    """Converts a numpy scalar to a Python number."""
    return value.item() if isinstance(value, np.generic) else value  # pyright: ignore


def in_grid(node: Coordinates) -> tuple[int, int]:
    """Column and row of a node."""
    return (node[0], node[1] if len(node) > 1 else 0)


def merged(name: str, values: Mapping[Coordinates, Any]) -> Any:
    """Merges a variable's values over all nodes.

    Each node makes the objects of the operation's body anew; equal ones are merged.

    Raises:
        ValueError: if the values differ in a way that kernels cannot represent.
    """
    values = {node: plain(value) for node, value in values.items()}
    first = next(iter(values.values()))
    if all(is_same(value, first) for value in values.values()):
        return first
    if all(isinstance(v, FunctionType) and v.__code__ is first.__code__ for v in values.values()):
        return CapturedFunction(values)
    if all(isinstance(value, int) for value in values.values()):
        return _node_number(values)
    if all(isinstance(value, int | float) for value in values.values()):
        bits = {node: _bits(float(value)) for node, value in values.items()}
        return NodeFloat(_node_number(bits))
    kinds = {(type(v).__module__, type(v).__qualname__) for v in values.values()}
    found = _merge_composite(name, values, first) if len(kinds) == 1 else None
    if found is None:
        raise ValueError(f"'{name}' is not the same on all nodes")
    return found


def _bits(number: float) -> int:
    return int.from_bytes(struct.pack("<f", number), "little")


def _merge_composite(name: str, values: Mapping[Coordinates, Any], first: Any) -> Any:
    """Merges values of one composite type part by part; None if that is not supported."""

    def of(part: Callable[[Any], Any]) -> Any:
        return merged(name, {node: part(value) for node, value in values.items()})

    if is_sequence(first):
        return _sequence(name, values, first)
    if isinstance(first, range):
        return NodeRange(of(lambda v: v.start), of(lambda v: v.stop), of(lambda v: v.step))
    if is_range(first):
        return slice(of(lambda v: v.start), of(lambda v: v.stop), of(lambda v: v.step))
    if isinstance(first, RemoteSemaphore):
        return _remote(name, values)
    fields = _fields_of(first)
    if fields is None:
        return None
    found = {node: _fields_of(value) or {} for node, value in values.items()}
    if any(list(each) != list(fields) for each in found.values()):
        return None
    parts = {key: merged(name, {node: each[key] for node, each in found.items()}) for key in fields}
    return parts if isinstance(first, dict) else SimpleNamespace(**parts)


def _fields_of(value: Any) -> dict[Any, Any] | None:
    """Entries of a dictionary, or attributes of a user object; None for other values."""
    if isinstance(value, dict):
        return dict(cast(dict[Any, Any], value))
    kind: Any = value.__class__
    module: str = kind.__module__
    attributes: dict[Any, Any] | None = getattr(value, "__dict__", None)
    is_object = attributes is not None and not isinstance(value, type)
    if not is_object or module.partition(".")[0] in _OTHER_PACKAGES:
        return None
    return dict(attributes or {})


def _sequence(name: str, values: Mapping[Coordinates, Any], first: Any) -> Any:
    lengths = {node: len(value) for node, value in values.items()}
    if len(set(lengths.values())) == 1:
        parts = [
            merged(name, {node: value[n] for node, value in values.items()})
            for n in range(len(first))
        ]
        # The constructor of a named tuple takes its fields as separate arguments.
        return type(first)(*parts) if hasattr(first, "_fields") else tuple(parts)
    counted = _as_ranges(values)
    if counted is not None:
        return merged(name, counted)
    longest = max(values.values(), key=len)
    rows = tuple((*value, *longest[len(value) :]) for value in values.values())
    return NodeList(merged(name, lengths), rows)


def _as_ranges(values: Mapping[Coordinates, Any]) -> dict[Coordinates, range] | None:
    """Converts lists of equidistant numbers to ranges with a common step; None for others."""
    found = [[plain(each) for each in value] for value in values.values()]
    if not all(isinstance(each, int) for value in found for each in value):
        return None
    steps = {b - a for value in found for a, b in pairwise(value)}
    if len(steps) > 1 or min(steps, default=1) < 1:
        return None
    step = next(iter(steps), 1)
    return {
        node: range(value[0], value[-1] + 1, step) if value else range(0, 0, step)
        for node, value in zip(values, found, strict=True)
    }


def _remote(name: str, values: Mapping[Coordinates, RemoteSemaphore]) -> NodeRemote | None:
    """Merges remote semaphores whose nodes are rectangles of equal size; None for others."""
    (number, *others) = {value.semaphore.number for value in values.values()}
    corners = {node: _corners([*map(in_grid, value.nodes)]) for node, value in values.items()}
    counts = {len(value.nodes) for value in values.values()}
    if others or len(counts) > 1 or None in corners.values():
        return None

    def end(which: int) -> tuple[Any, Any]:
        column, row = (
            merged(name, {node: found[which][axis] for node, found in corners.items() if found})
            for axis in range(2)
        )
        return column, row

    semaphore = next(iter(values.values())).semaphore
    assert semaphore.number == number
    is_multicast = isinstance(next(iter(values.values())), MulticastRemoteSemaphore)
    return NodeRemote(semaphore, end(0), end(1), counts.pop(), is_multicast)


def _corners(nodes: list[tuple[int, int]]) -> tuple[tuple[int, int], tuple[int, int]] | None:
    """First and last node of a rectangle; None if the nodes do not form one."""
    columns, rows = zip(*nodes, strict=True)
    first, last = (min(columns), min(rows)), (max(columns), max(rows))
    size = (1 + last[0] - first[0]) * (1 + last[1] - first[1])
    return (first, last) if size == len(set(nodes)) else None


def _node_number(values: Mapping[Coordinates, Any]) -> NodeFormula | NodeTable:
    known = {in_grid(node): int(value) for node, value in values.items()}
    periods = [1 + max(node[axis] for node in known) for axis in range(2)]
    formula = fitted(known, periods) if min(known.values()) >= 0 else None
    if formula is not None:
        return NodeFormula(formula)
    columns, rows = map(range, periods)
    by_column = all(known[c, r] == known[c, 0] for c in columns for r in rows)
    by_row = all(known[c, r] == known[0, r] for c in columns for r in rows)
    if by_column:
        return NodeTable(tuple(known[c, 0] for c in columns), by_column=True, by_row=False)
    if by_row:
        return NodeTable(tuple(known[0, r] for r in rows), by_column=False, by_row=True)
    numbers = tuple(known[c, r] for c in columns for r in rows)
    return NodeTable(numbers, by_column=True, by_row=True)


def is_same(value: Any, first: Any) -> bool:
    """True if a value equals that of the first node."""
    if value is first:
        return True
    if type(value) is not type(first):
        return False
    match first:
        case DataflowBuffer() | Semaphore():
            return value.number == first.number
        case UnicastRemoteSemaphore() | MulticastRemoteSemaphore():
            return (value.semaphore.number, value.nodes) == (first.semaphore.number, first.nodes)
        case PipeNet():
            return value.key == first.key
        case Pipe():
            return (value.src, value.dst) == (first.src, first.dst)
        case FunctionType():
            if value.__code__ is not first.__code__:
                return False
            captured, others = variables_of(value), variables_of(first)
            return captured.keys() == others.keys() and all(
                # A recursive function captures itself.
                captured[name] is value or is_same(captured[name], others[name])
                for name in captured
            )
        case _ if is_sequence(first):
            return len(value) == len(first) and all(map(is_same, value, first))
        case _:
            return bool(np.all(value == first))
