"""Conversions between data types, as the device kernel of `ttnn::typecast` computes them.

`CONVERSIONS` is the single definition: the numpy run uses it, the table of docs/numbers.md is
generated from it, and tests compare the CPU backend with both. Sources: the vendor's
`ckernel_sfpu_typecast.h` and simulator.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ttcodegen.foundation.lazy_numpy import Array, np


@dataclass(frozen=True)
class Conversion:
    """Conversion from one data type to another."""

    rounding: str
    """Rounding of digits that the target type cannot hold."""
    beyond: str
    """Result for values outside the range of the target type."""
    nan: str
    """Integer that NaN becomes."""
    apply: Callable[[Array], Array]


_LOWEST = -(2**31)


def _whole(array: Array) -> Array:
    """Truncates floats to integers, in float64; NaN stays."""
    return np.trunc(np.asarray(array, dtype=np.float64))


def _float_to_si32(array: Array) -> Array:
    whole = _whole(array)
    held = np.abs(whole) < 2.0**31
    return np.where(held, np.where(held, whole, 0), _LOWEST).astype(np.int32)


def _float_to_u32(array: Array) -> Array:
    whole = _whole(array)
    found = np.clip(np.where(np.isnan(whole), 2.0**32 - 1, whole), 0, 2.0**32 - 1)
    return np.where(np.signbit(array), 0, found).astype(np.uint32)


def _float_to_u16(array: Array) -> Array:
    nearest = np.floor(np.asarray(array, dtype=np.float64) + 0.5)
    found = np.clip(np.where(np.isnan(nearest), 65535, nearest), 0, 65535)
    return np.where(np.signbit(array), 0, found).astype(np.uint16)


def _float_to_u8(array: Array) -> Array:
    whole = _whole(array)
    held = np.isfinite(whole)
    # Values of 2^31 and more have zeros in the lowest bits.
    return np.mod(np.where(held, whole, 0), 256).astype(np.uint8)


def _nearest_away(array: Array) -> Array:
    """Rounds float32 to bfloat16 precision, ties away from zero."""
    bits = np.asarray(array, dtype=np.float32).view(np.uint32)
    return ((bits + np.uint32(0x8000)) & np.uint32(0xFFFF0000)).view(np.float32)


def _to_f32(array: Array) -> Array:
    return array.astype(np.float32)


def _u32_to_f32(array: Array) -> Array:
    """Rounds the lower 31 bits first, then the sum with the highest bit."""
    low = (array & np.uint32(0x7FFFFFFF)).astype(np.float32)
    return low + np.where(array >> np.uint32(31), np.float32(2.0**31), np.float32(0))


def _integer_to_u16(array: Array) -> Array:
    return np.clip(array, 0, 65535).astype(np.uint16)


def _cut_bits(dtype: str) -> Callable[[Array], Array]:
    return lambda array: array.astype(dtype)


_CUT = "cut off"
_AWAY = "to nearest, ties away from zero"
_EVEN = "to nearest, ties to even"
_NONE, _LOW_BITS, _SATURATES = "", "the lowest bits", "the nearest end"


def _exact(dtype: str) -> Conversion:
    return Conversion("exact", _NONE, _NONE, _cut_bits(dtype))


def _low_bits(dtype: str) -> Conversion:
    return Conversion("exact", _LOW_BITS, _NONE, _cut_bits(dtype))


_SATURATED = Conversion("exact", _SATURATES, _NONE, _integer_to_u16)
_FROM_FLOAT = {
    "int32": Conversion(_CUT, "-2^31", "-2^31", _float_to_si32),
    "uint32": Conversion(_CUT, _SATURATES, "2^32 - 1, with a sign 0", _float_to_u32),
    "uint16": Conversion(_AWAY, _SATURATES, "65535, with a sign 0", _float_to_u16),
    "uint8": Conversion(_CUT, _LOW_BITS, "0", _float_to_u8),
}

CONVERSIONS: Mapping[tuple[str, str], Conversion] = {
    **{("float32", to): found for to, found in _FROM_FLOAT.items()},
    **{("bfloat16", to): found for to, found in _FROM_FLOAT.items()},
    ("int32", "float32"): Conversion(_EVEN, _NONE, _NONE, _to_f32),
    ("int32", "bfloat16"): Conversion(
        f"as float32, then {_AWAY}", _NONE, _NONE, lambda array: _nearest_away(_to_f32(array))
    ),
    ("int32", "uint32"): _low_bits("uint32"),
    ("int32", "uint16"): _SATURATED,
    ("int32", "uint8"): _low_bits("uint8"),
    ("uint32", "float32"): Conversion(
        "the lower 31 bits, then the sum with the highest, to nearest, ties to even",
        _NONE, _NONE, _u32_to_f32,
    ),
    ("uint32", "bfloat16"): Conversion(
        f"as float32, then {_AWAY}", _NONE, _NONE, lambda array: _nearest_away(_u32_to_f32(array))
    ),
    ("uint32", "int32"): _low_bits("int32"),
    ("uint32", "uint16"): _SATURATED,
    ("uint32", "uint8"): _low_bits("uint8"),
    ("uint16", "float32"): _exact("float32"),
    ("uint16", "bfloat16"): Conversion(
        _AWAY, _NONE, _NONE, lambda array: _nearest_away(_to_f32(array))
    ),
    ("uint16", "uint32"): _exact("uint32"),
    ("uint16", "int32"): _exact("int32"),
    ("uint16", "uint8"): _low_bits("uint8"),
    ("uint8", "float32"): _exact("float32"),
    ("uint8", "bfloat16"): _exact("float32"),
    ("uint8", "uint32"): _exact("uint32"),
    ("uint8", "uint16"): _exact("uint16"),
    ("uint8", "int32"): _exact("int32"),
}  # fmt: skip
"""Conversions by (source, target) numpy dtype names.

Conversions between floats round to nearest even when the result is stored.
"""


def typecast_on_card(array: Array, dtype: str) -> Array:
    """Converts elements as the device kernel of `typecast` does.

    Args:
        array: Elements in the dtype that their tensor is computed with.
        dtype: Numpy name of the data type of the result.
    """
    source = array.dtype.name if array.dtype.kind in "iu" else "float32"
    conversion = CONVERSIONS.get((source, dtype))
    return array if conversion is None else conversion.apply(array)


NAMES = {
    "float32": "f32", "bfloat16": "bf16", "int32": "si32", "uint32": "ui32", "uint16": "ui16",
    "uint8": "ui8",
}  # fmt: skip


def markdown_rows() -> list[str]:
    """Returns the table rows of docs/numbers.md; equal conversions share a row."""
    alike: dict[tuple[str, str, str], dict[str, list[str]]] = {}
    for (source, target), found in CONVERSIONS.items():
        kind = (found.rounding, found.beyond, found.nan)
        alike.setdefault(kind, {}).setdefault(NAMES[target], []).append(NAMES[source])
    rows: list[str] = []
    for (rounding, beyond, nan), by_target in alike.items():
        by_sources: dict[str, list[str]] = {}
        for target, sources in by_target.items():
            by_sources.setdefault(", ".join(sources), []).append(target)
        pairs = "; ".join(
            f"{sources} to {', '.join(targets)}" for sources, targets in by_sources.items()
        )
        rows.append(f"| {pairs} | {rounding} | {beyond or '-'} | {nan or '-'} |")
    return rows
