"""Literals of element types as bytes: little-endian, one element after the other.

The widths are those of MLIR's raw buffers: floats and integers in whole bytes, booleans one byte
each (their bit-packed form in hexadecimal strings is unpacked), `index` as 64 bits.
"""

from __future__ import annotations

import math
import re
import struct
import sys
from array import array
from collections.abc import Sequence
from itertools import islice
from math import prod
from typing import cast

from xdsl.dialects.builtin import (
    AnyFloat,
    BFloat16Type,
    ComplexType,
    Float16Type,
    Float32Type,
    Float64Type,
    IndexType,
    IntegerType,
    Signedness,
)
from xdsl.ir import Attribute

# One number of a tensor literal: a sign, then a hexadecimal integer, a float or an integer.
_NUMBER = r"-?(?:0x[0-9a-fA-F]++|[0-9]++(?:\.[0-9]*+(?:[eE][+-]?[0-9]++)?+)?+)"
_LIST = re.compile(rf"\[(?:[\s,\[\]]++|{_NUMBER}(?=[\s,\]])|(?:true|false)(?=[\s,\]]))*+")
_PAIR = re.compile(rf"\(\s*{_NUMBER}\s*,\s*{_NUMBER}\s*\)")
_COMPLEX = re.compile(rf"(?:[\s,\[\]]++|{_PAIR.pattern})++(?<=[\])])")
_NUMBERS = re.compile(rf"{_NUMBER}|true|false")
_DIGIT_TO_BYTE = bytes.maketrans(b"01", b"\x00\x01")
_WITHOUT_SPACE = str.maketrans("", "", " \t\r\n\f\v")
_WITHOUT_NUMBERS = str.maketrans("", "", "0123456789+-.eExXabcdfABCDFtrulsn \t\r\n\f\v")


class LiteralError(ValueError):
    """A literal does not denote an element of its type; `index` is its position in the list."""

    def __init__(self, message: str, index: int = 0) -> None:
        super().__init__(message)
        self.index = index


def element_size(element_type: Attribute) -> int | None:
    """The size of an element in bytes; None for types whose constants we cannot read."""
    match element_type:
        case IndexType():
            return 8
        case IntegerType():
            width = element_type.width.data
            return next((size for size in (1, 2, 4, 8) if 0 < width <= size * 8), None)
        case ComplexType():
            part = element_size(element_type.element_type)
            return None if part is None else 2 * part
        case _ if isinstance(element_type, AnyFloat):
            bits = element_type.bitwidth
            return bits // 8 if bits in (8, 16, 32, 64) else None
        case _:
            return None


def encode_elements(literals: Sequence[str], element_type: Attribute) -> bytes:
    """The bytes of number literals.

    Hexadecimal literals of float types are bit patterns; others are values, rounded to the nearest
    value of the type, ties to even.

    Raises:
        LiteralError: if a literal is no value of the type.
    """
    if isinstance(element_type, IntegerType | IndexType):
        return _encode_integers(literals, cast("IntegerType | IndexType", element_type))
    if isinstance(element_type, AnyFloat):
        return _encode_floats(literals, element_type)
    raise LiteralError(f"constants of type {element_type} are not supported")


def _encode_integers(literals: Sequence[str], element_type: IntegerType | IndexType) -> bytes:
    size = element_size(element_type)
    if size is None:
        raise LiteralError(f"constants of type {element_type} are not supported")
    width = 64 if isinstance(element_type, IndexType) else element_type.width.data
    signedness = (
        Signedness.SIGNLESS if isinstance(element_type, IndexType) else element_type.signedness.data
    )
    low = 0 if signedness is Signedness.UNSIGNED else -(1 << (width - 1))
    # Signless integers may be written as signed or as unsigned ones.
    high = (1 << (width - 1 if signedness is Signedness.SIGNED else width)) - 1
    mask = (1 << (8 * size)) - 1
    values: list[int] = []
    for index, literal in enumerate(literals):
        value = _integer(literal, width, index)
        if not low <= value <= high:
            raise LiteralError(f"{literal} is out of range for {element_type}", index)
        values.append(value & mask if width > 1 else value & 1)
    unsigned = {1: "B", 2: "H", 4: "I", 8: "Q"}[size]
    return _little_endian(array(unsigned, values))


def _integer(literal: str, width: int, index: int) -> int:
    if literal in ("true", "false"):
        if width != 1:
            raise LiteralError("true and false are values of i1 only", index)
        return int(literal == "true")
    if "." in literal:
        raise LiteralError(f"expected an integer, found {literal}", index)
    if len(literal) > 32:
        raise LiteralError("integer literal is out of range", index)
    return int(literal, 0 if "x" in literal else 10)


def _encode_floats(literals: Sequence[str], element_type: AnyFloat) -> bytes:
    size = element_size(element_type)
    if size is None:
        raise LiteralError(f"constants of type {element_type} are not supported")
    values: list[float] = []
    patterns: dict[int, bytes] = {}
    for index, literal in enumerate(literals):
        if "x" in literal:
            patterns[index] = _bit_pattern(literal, size, element_type, index)
            values.append(0.0)
        elif literal in ("true", "false"):
            raise LiteralError(f"expected a number, found {literal}", index)
        else:
            values.append(float(literal))
    data = _round(values, element_type)
    if not patterns:
        return data
    mutable = bytearray(data)
    for index, pattern in patterns.items():
        mutable[index * size : (index + 1) * size] = pattern
    return bytes(mutable)


def _bit_pattern(literal: str, size: int, element_type: AnyFloat, index: int) -> bytes:
    if literal.startswith("-"):
        raise LiteralError("a bit pattern has no sign", index)
    digits = literal[2:].lstrip("0")
    if len(digits) > 2 * size:
        raise LiteralError(f"{literal} has more bits than {element_type}", index)
    return int(digits or "0", 16).to_bytes(size, "little")


def _round(values: Sequence[float], element_type: AnyFloat) -> bytes:
    match element_type:
        case Float64Type():
            return _little_endian(array("d", values))
        case Float32Type():
            return _little_endian(array("f", values))
        case Float16Type():
            return b"".join(map(_half, values))
        case BFloat16Type():
            return b"".join(map(_bfloat16, values))
        case _:
            return _round_with_numpy(values, element_type)


def _half(value: float) -> bytes:
    try:
        return struct.pack("<e", value)
    except OverflowError:
        return struct.pack("<e", math.copysign(math.inf, value))


def _bfloat16(value: float) -> bytes:
    """Rounds once, from the double: going through float32 would round ties twice."""
    if value == 0.0 or not math.isfinite(value):
        return struct.pack("<f", value)[2:]
    _, exponent = math.frexp(value)
    # 8 significant bits; below the smallest normal number the last bit stays where it is.
    ulp = max(exponent - 8, -133)
    # round() is exact here and takes ties to even; it drops the sign of what becomes zero.
    rounded = math.copysign(math.ldexp(float(round(math.ldexp(value, -ulp))), ulp), value)
    try:
        return struct.pack("<f", rounded)[2:]
    except OverflowError:
        return struct.pack("<f", math.copysign(math.inf, value))[2:]


def _round_with_numpy(values: Sequence[float], element_type: AnyFloat) -> bytes:
    import ml_dtypes
    import numpy as np

    dtype: object = getattr(ml_dtypes, _ml_dtypes_name(str(element_type)), None)
    if dtype is None:
        raise LiteralError(f"constants of type {element_type} are not supported")
    with np.errstate(all="ignore"):
        return np.asarray(values, dtype=np.float64).astype(np.dtype(dtype)).tobytes()  # pyright: ignore[reportArgumentType, reportCallIssue, reportUnknownMemberType]


def _ml_dtypes_name(spelling: str) -> str:
    """`f8E4M3FN` is `float8_e4m3fn` there."""
    return re.sub(r"^f(\d+)E", r"float\1_e", spelling).lower()


def _little_endian(values: array[int] | array[float]) -> bytes:
    if sys.byteorder == "big":
        values.byteswap()
    return values.tobytes()


def scan_list(text: str, offset: int) -> int:
    """The end of the tensor literal that starts with the `[` at `offset`.

    The literal ends where something else than numbers, brackets and commas comes; whether the
    brackets are balanced is for `has_shape` to say.
    """
    match = _LIST.match(text, offset)
    return offset if match is None else match.end()


def scan_complex(text: str, offset: int) -> int:
    """The end of the literal of complex numbers, `(1.0, -2.0)` or a list of them, at `offset`."""
    match = _COMPLEX.match(text, offset)
    return offset if match is None else match.end()


def without_pairs(body: str) -> str:
    """A literal of complex numbers with one number for each of them."""
    return _PAIR.sub("0", body)


def list_literals(body: str) -> list[str]:
    """The number literals of a tensor literal, in order."""
    return _NUMBERS.findall(body)


def literal_offset(body: str, index: int) -> int:
    """Where in a tensor literal the number of that index starts."""
    return next(islice(_NUMBERS.finditer(body), index, None)).start()


def has_shape(body: str, count: int, shape: Sequence[int]) -> bool:
    """True if the brackets and commas of a tensor literal of `count` numbers are those of `shape`,
    with a number between them wherever one has to be and nowhere else."""
    brackets = body.translate(_WITHOUT_NUMBERS)
    # A type may claim more elements than there is memory for; so the length is compared first.
    if len(brackets) != _brackets_length(shape) or brackets != _brackets(shape):
        return False
    if count != prod(shape):
        return False
    # As many numbers as places for them: each is in its place if no place is empty.
    compact = body.translate(_WITHOUT_SPACE)
    return count == 0 or not any(empty in compact for empty in ("[,", "[]", ",,", ",]"))


def _brackets_length(shape: Sequence[int]) -> int:
    length = 0
    for size in reversed(shape):
        length = 2 + size * length + max(size - 1, 0)
    return length


def _brackets(shape: Sequence[int]) -> str:
    pattern = ""
    for size in reversed(shape):
        pattern = "[" + ",".join([pattern] * size) + "]"
    return pattern


def unpack_booleans(data: bytes, count: int) -> bytes | None:
    """One byte per boolean of a raw buffer of i1, whichever way it is packed; None if it fits none.

    Buffers of 8 booleans a byte (least significant bit first) were MLIR's form for long; a single
    0x00 or 0xff is a splat there.
    """
    if data in (b"\x00", b"\xff"):
        return bytes([data[0] & 1])
    if len(data) == (count + 7) // 8:
        digits = format(int.from_bytes(data, "little"), f"0{8 * len(data)}b").encode()
        return digits[::-1].translate(_DIGIT_TO_BYTE)[:count]
    if len(data) == count or len(data) == 1:
        return bytes(byte & 1 for byte in data)
    return None
