"""Refuses ops that would make more than they declare, before they make it.

What an op computes is compared with the shape that its file declares when it is done. An op that
repeats, pads or fills makes as much as its attributes say, so these are compared before: a file can
say anything.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

_ROOM = 1 << 24
"""Elements that an op may make in between, whatever it declares."""


def oversize_reason(
    name: str,
    attributes: Mapping[str, Any],
    operands: Sequence[tuple[int, ...]],
    results: Sequence[tuple[int, ...]],
) -> str | None:
    """Why an op would make far more than it declares, None if it would not.

    Args:
        name: of the op, without dialect.
        attributes: their Python values.
        operands: the shapes of the operands.
        results: the declared shapes of the results.
    """
    declared = sum(map(prod, results))
    try:
        made = _elements(name, attributes, operands)
    except (ArithmeticError, LookupError, TypeError, ValueError):
        return "its attributes make no sense"
    taken = sum(map(prod, operands))
    if made is None or made <= declared or made <= 16 * (declared + taken) + _ROOM:
        return None
    return f"it makes {made} elements, and declares {declared}"


def _elements(
    name: str, attributes: Mapping[str, Any], operands: Sequence[tuple[int, ...]]
) -> int | None:
    """How many elements an op makes by its attributes; None if they have no say in it."""
    first = operands[0] if operands else ()
    match name:
        case "full":
            return _product(attributes["shape"])
        case "rand":
            return _product(attributes["size"])
        case "arange":
            step = abs(attributes["step"]) or 1
            return int(abs(attributes["end"] - attributes["start"]) // step)
        case "repeat":
            return prod(first) * _product(attributes["repeat_dimensions"])
        case "repeat_interleave":
            return prod(first) * abs(int(attributes["repeats"]))
        case "upsample" | "upsample_bilinear":
            return prod(first) * _product(attributes["scale_factor"])
        case "pad" | "pad_row_major":
            return _padded(first, attributes["padding"])
        case _ if "padding" in attributes:
            # The two dimensions of the picture grow; the others are not larger than the operand.
            widths: list[int] = [abs(int(width)) for width in attributes["padding"]]
            return prod(first) + sum(widths) ** 2
        case _:
            return None


def _product(numbers: Sequence[float]) -> int:
    return prod(max(1, abs(int(number))) for number in numbers)


def _padded(shape: tuple[int, ...], padding: Sequence[int]) -> int:
    """The elements of a tensor with so many more before and after each dimension."""
    before, after = padding[::2], padding[1::2]
    sizes = zip(shape, before, after, strict=False)
    return prod(size + abs(int(low)) + abs(int(high)) for size, low, high in sizes)
