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
    """A sum of multiples of coordinates and a constant; the rest of a division, or the smaller or
    the larger of that and a bound, where there is one."""

    first: int
    factors: Point
    modulus: int | None = None
    most: int | None = None
    least: int | None = None

    def at(self, point: Point) -> int:
        """Evaluates the formula at a point."""
        value = self.first + sum(f * c for f, c in zip(self.factors, point, strict=True))
        if self.modulus is not None:
            value %= self.modulus
        if self.most is not None:
            value = min(value, self.most)
        return value if self.least is None else max(value, self.least)


def fitted(values: Mapping[Point, int], periods: Sequence[int] = ()) -> Formula | None:
    """The simplest formula that has these values; None if none is found.

    Args:
        values: by point.
        periods: numbers that rests of divisions by them are tried for, besides the number after the
            largest value.
    """
    for formula in _candidates(values, periods):
        if all(formula.at(point) == value for point, value in values.items()):
            return formula
    return None


def _candidates(values: Mapping[Point, int], periods: Sequence[int]) -> Iterator[Formula]:
    most, least = max(values.values()), min(values.values())
    start = min(values)
    plain = _affine(values, start, None)
    yield plain
    for modulus in dict.fromkeys((most + 1, *periods)):
        if modulus > most:
            rest = _affine(values, start, modulus)
            yield Formula(rest.first % modulus, rest.factors, modulus)
    yield Formula(plain.first, plain.factors, most=most)
    # The first coordinate may be cut off before it makes a step: it may be so many of the second's.
    if len(start) > 1:
        counts = 1 + max(point[1] for point in values)
        factors = (plain.factors[1] * counts, *plain.factors[1:])
        yield Formula(values[start] - _dot(factors, start), factors, most=most)
    end = max(values)
    last = _affine(values, end, None)
    yield Formula(last.first, last.factors, least=least)


def _dot(factors: Sequence[int], point: Sequence[int]) -> int:
    return sum(f * c for f, c in zip(factors, point, strict=True))


def _affine(values: Mapping[Point, int], at: Point, modulus: int | None) -> Formula:
    """The sum of multiples with the steps that the values make beside a point."""
    factors: list[int] = []
    for axis in range(len(at)):
        step = _step(values, at, axis)
        factors.append(step if modulus is None else step % modulus)
    return Formula(values[at] - _dot(factors, at), tuple(factors))


def _step(values: Mapping[Point, int], at: Point, axis: int) -> int:
    """Step of a value along a coordinate, measured at the point or else anywhere."""

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
class OfPlace:
    """A number that depends on the node: a formula of its column and its row."""

    formula: Formula


@dataclass(frozen=True)
class OfTable:
    """Numbers that follow no formula, in a table: of the column, of the row, or of the number of
    the node, with the last coordinate counted fastest."""

    numbers: tuple[int, ...]
    by_column: bool
    by_row: bool


@dataclass(frozen=True)
class FloatOfPlace:
    """A float that depends on the node, by its bits."""

    bits: OfPlace | OfTable


@dataclass(frozen=True)
class RangeOfPlace:
    """A range whose limits depend on the node."""

    start: Any
    stop: Any
    step: Any


@dataclass(frozen=True)
class ListOfPlace:
    """A list with another length on each node: the elements that all nodes would have if they had
    as many as the longest, each of all nodes."""

    length: Any
    rows: tuple[tuple[Any, ...], ...]
    """By the number of the node."""


@dataclass(frozen=True)
class RemoteOfPlace:
    """A semaphore on other nodes that depend on the node: the first and the last of them."""

    semaphore: Semaphore
    first: tuple[Any, Any]
    last: tuple[Any, Any]
    count: int
    is_multicast: bool


_OTHER_PACKAGES = frozenset({"builtins", "numpy", "torch", "ttcodegen"})
"""Packages whose objects are not inspected."""


@dataclass(frozen=True, eq=False)
class CapturedFunction:
    """A function of the program, as each node has it."""

    on_nodes: Mapping[Coordinates, FunctionType]

    @property
    def first(self) -> FunctionType:
        """That of the first node."""
        return next(iter(self.on_nodes.values()))

    @property
    def is_same(self) -> bool:
        """True if it is one function on all nodes, or refers to the same on all."""
        return all(is_same(function, self.first) for function in self.on_nodes.values())


def plain(value: Any) -> Any:
    """A number of numpy as one of Python."""
    return value.item() if isinstance(value, np.generic) else value  # pyright: ignore


def in_grid(place: Coordinates) -> tuple[int, int]:
    """The column and the row of a node."""
    return (place[0], place[1] if len(place) > 1 else 0)


def merged(name: str, values: Mapping[Coordinates, Any]) -> Any:
    """Merges a variable's values over all nodes.

    Objects that the body makes are made by each node.

    Raises:
        ValueError: if nothing that kernels know says what it holds.
    """
    values = {place: plain(value) for place, value in values.items()}
    first = next(iter(values.values()))
    if all(is_same(value, first) for value in values.values()):
        return first
    if all(isinstance(v, FunctionType) and v.__code__ is first.__code__ for v in values.values()):
        return CapturedFunction(values)
    if all(isinstance(value, int) for value in values.values()):
        return _of_place(values)
    if all(isinstance(value, int | float) for value in values.values()):
        bits = {place: _bits(float(value)) for place, value in values.items()}
        return FloatOfPlace(_of_place(bits))
    kinds = {(type(v).__module__, type(v).__qualname__) for v in values.values()}
    found = _together(name, values, first) if len(kinds) == 1 else None
    if found is None:
        raise ValueError(f"'{name}' is not the same on all nodes")
    return found


def _bits(number: float) -> int:
    return int.from_bytes(struct.pack("<f", number), "little")


def _together(name: str, values: Mapping[Coordinates, Any], first: Any) -> Any:
    """Values of one type that are made of others; None if there is nothing that says what they
    are."""

    def of(part: Callable[[Any], Any]) -> Any:
        return merged(name, {place: part(value) for place, value in values.items()})

    if is_sequence(first):
        return _sequence(name, values, first)
    if isinstance(first, range):
        return RangeOfPlace(of(lambda v: v.start), of(lambda v: v.stop), of(lambda v: v.step))
    if is_range(first):
        return slice(of(lambda v: v.start), of(lambda v: v.stop), of(lambda v: v.step))
    if isinstance(first, RemoteSemaphore):
        return _remote(name, values)
    fields = _fields_of(first)
    if fields is None:
        return None
    found = {place: _fields_of(value) or {} for place, value in values.items()}
    if any(list(each) != list(fields) for each in found.values()):
        return None
    parts = {
        key: merged(name, {place: each[key] for place, each in found.items()}) for key in fields
    }
    return parts if isinstance(first, dict) else SimpleNamespace(**parts)


def _fields_of(value: Any) -> dict[Any, Any] | None:
    """The parts of a dictionary, or the attributes of an object of the program; None of others."""
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
    lengths = {place: len(value) for place, value in values.items()}
    if len(set(lengths.values())) == 1:
        parts = [
            merged(name, {place: value[n] for place, value in values.items()})
            for n in range(len(first))
        ]
        # A named tuple takes its parts one by one.
        return type(first)(*parts) if hasattr(first, "_fields") else tuple(parts)
    counted = _as_ranges(values)
    if counted is not None:
        return merged(name, counted)
    longest = max(values.values(), key=len)
    rows = tuple((*value, *longest[len(value) :]) for value in values.values())
    return ListOfPlace(merged(name, lengths), rows)


def _as_ranges(values: Mapping[Coordinates, Any]) -> dict[Coordinates, range] | None:
    """Lists of numbers that are the same steps apart, as ranges of one step."""
    found = [[plain(each) for each in value] for value in values.values()]
    if not all(isinstance(each, int) for value in found for each in value):
        return None
    steps = {b - a for value in found for a, b in pairwise(value)}
    if len(steps) > 1 or min(steps, default=1) < 1:
        return None
    step = next(iter(steps), 1)
    return {
        place: range(value[0], value[-1] + 1, step) if value else range(0, 0, step)
        for place, value in zip(values, found, strict=True)
    }


def _remote(name: str, values: Mapping[Coordinates, RemoteSemaphore]) -> RemoteOfPlace | None:
    """Semaphores on nodes that are a rectangle of the same size for each node."""
    (number, *others) = {value.semaphore.number for value in values.values()}
    corners = {place: _corners([*map(in_grid, value.nodes)]) for place, value in values.items()}
    counts = {len(value.nodes) for value in values.values()}
    if others or len(counts) > 1 or None in corners.values():
        return None

    def end(which: int) -> tuple[Any, Any]:
        column, row = (
            merged(name, {place: found[which][axis] for place, found in corners.items() if found})
            for axis in range(2)
        )
        return column, row

    semaphore = next(iter(values.values())).semaphore
    assert semaphore.number == number
    is_multicast = isinstance(next(iter(values.values())), MulticastRemoteSemaphore)
    return RemoteOfPlace(semaphore, end(0), end(1), counts.pop(), is_multicast)


def _corners(nodes: list[tuple[int, int]]) -> tuple[tuple[int, int], tuple[int, int]] | None:
    """The first and the last of nodes that are a rectangle; None of others."""
    columns, rows = zip(*nodes, strict=True)
    first, last = (min(columns), min(rows)), (max(columns), max(rows))
    size = (1 + last[0] - first[0]) * (1 + last[1] - first[1])
    return (first, last) if size == len(set(nodes)) else None


def _of_place(values: Mapping[Coordinates, Any]) -> OfPlace | OfTable:
    known = {in_grid(place): int(value) for place, value in values.items()}
    periods = [1 + max(place[axis] for place in known) for axis in range(2)]
    formula = fitted(known, periods) if min(known.values()) >= 0 else None
    if formula is not None:
        return OfPlace(formula)
    columns, rows = map(range, periods)
    by_column = all(known[c, r] == known[c, 0] for c in columns for r in rows)
    by_row = all(known[c, r] == known[0, r] for c in columns for r in rows)
    if by_column:
        return OfTable(tuple(known[c, 0] for c in columns), by_column=True, by_row=False)
    if by_row:
        return OfTable(tuple(known[0, r] for r in rows), by_column=False, by_row=True)
    numbers = tuple(known[c, r] for c in columns for r in rows)
    return OfTable(numbers, by_column=True, by_row=True)


def is_same(value: Any, first: Any) -> bool:
    """True if a node has in a variable what the first one has."""
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
            mine, others = variables_of(value), variables_of(first)
            return mine.keys() == others.keys() and all(
                # A function may call itself.
                mine[name] is value or is_same(mine[name], others[name])
                for name in mine
            )
        case _ if is_sequence(first):
            return len(value) == len(first) and all(map(is_same, value, first))
        case _:
            return bool(np.all(value == first))
