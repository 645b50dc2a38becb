"""Shapes and positions of dimensions, as programs give them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, SupportsIndex, TypeGuard

from ttcodegen.lang.simulator.locations import error

Shape = tuple[int, ...]


def shape_text(shape: Sequence[int]) -> str:
    """`(2, 1)`, as the program writes it."""
    return f"({', '.join(map(str, shape))}{',' if len(shape) == 1 else ''})"


def checked_shape(what: str, shape: object) -> Shape:
    """A shape given as a size or as a tuple of sizes; raises ProgramError if it is none."""
    values = sequence_of(shape)
    sizes = tuple(int(value) for value in values if is_integer(value) and int(value) > 0)
    if len(sizes) != len(values) or not sizes:
        raise error(f"the shape of {what} is a tuple of positive integers, not {shape!r}")
    return sizes


def is_sequence(value: object) -> TypeGuard[tuple[Any, ...] | list[Any]]:
    """True if a value is a tuple or a list."""
    return isinstance(value, tuple | list)


def sequence_of(value: object) -> tuple[Any, ...]:
    """The elements of a tuple or list; anything else is a single element."""
    return tuple(value) if is_sequence(value) else (value,)


def is_integer(value: object) -> TypeGuard[SupportsIndex]:
    """True if a value is an integer; numpy has its own."""
    return hasattr(value, "__index__") and not isinstance(value, bool)


def is_range(value: object) -> TypeGuard[slice[Any, Any, Any]]:
    """True if a value is a slice."""
    return isinstance(value, slice)


def is_tuple(value: object) -> TypeGuard[tuple[Any, ...]]:
    """True if a value is a tuple."""
    return isinstance(value, tuple)


def checked_dims(what: str, dims: object, rank: int) -> tuple[int, ...]:
    """Positions of dimensions, counted from the outermost, in order; negative ones are counted from
    the innermost. Raises ProgramError if one is out of range or given twice."""
    found: list[int] = []
    for value in sequence_of(dims):
        if not is_integer(value) or not -rank <= int(value) < rank:
            raise error(f"{what} has the dimension {value!r}, but there are {rank}")
        found.append(int(value) % rank)
    if len(set(found)) != len(found) or not found:
        raise error(f"the dims of {what} are a list of different dimensions, not {dims!r}")
    return tuple(sorted(found))
