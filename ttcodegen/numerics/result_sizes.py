"""Check of result sizes before an op runs.

Results are compared with their declared shapes after the op ran. The sizes of repeats, pads and
fills follow from attributes, which are untrusted and therefore checked first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

_ROOM = 1 << 24
"""Elements that an op may always allocate, whatever it declares."""


def oversize_reason(
    name: str,
    attributes: Mapping[str, Any],
    operands: Sequence[tuple[int, ...]],
    results: Sequence[tuple[int, ...]],
) -> str | None:
    """Returns why an op would allocate far more than it declares, or None.

    Args:
        name: name of the op, without dialect.
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
    """Returns the number of result elements by the attributes, or None if they do not determine
    it."""
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
            # The two spatial dimensions grow; the others do not exceed the operand.
            widths: list[int] = [abs(int(width)) for width in attributes["padding"]]
            return prod(first) + sum(widths) ** 2
        case _:
            return None


def _product(numbers: Sequence[float]) -> int:
    return prod(max(1, abs(int(number))) for number in numbers)


def _padded(shape: tuple[int, ...], padding: Sequence[int]) -> int:
    """Returns the number of elements of a padded tensor."""
    before, after = padding[::2], padding[1::2]
    sizes = zip(shape, before, after, strict=False)
    return prod(size + abs(int(low)) + abs(int(high)) for size, low, high in sizes)
