"""Constants: `dense`, `array` and `dense_resource` attributes, and their element literals."""

from __future__ import annotations

import math
import re
import struct
import sys
from array import array
from collections.abc import Callable, Sequence
from itertools import islice
from math import prod
from typing import Any, cast

from xdsl.dialects.builtin import (
    AnyFloat,
    BFloat16Type,
    BytesAttr,
    ComplexType,
    DenseArrayBase,
    DenseIntOrFPElementsAttr,
    Float16Type,
    Float32Type,
    Float64Type,
    IndexType,
    IntegerType,
    MemRefType,
    RankedStructure,
    Signedness,
    TensorType,
    VectorType,
)
from xdsl.ir import Attribute
from xdsl.utils.mlir_lexer import MLIRTokenKind

from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.parsing.attributes import AttributeParser

# Encoding of element literals as bytes, little-endian.
#
# The widths are those of MLIR's raw buffers: floats and integers in whole bytes, booleans one
# byte each (their bit-packed form in hexadecimal strings is unpacked), `index` as 64 bits.


# A number literal: a sign, then a hexadecimal integer, a float or an integer.
_NUMBER = r"-?(?:0x[0-9a-fA-F]++|[0-9]++(?:\.[0-9]*+(?:[eE][+-]?[0-9]++)?+)?+)"
_LIST = re.compile(rf"\[(?:[\s,\[\]]++|{_NUMBER}(?=[\s,\]])|(?:true|false)(?=[\s,\]]))*+")
_PAIR = re.compile(rf"\(\s*{_NUMBER}\s*,\s*{_NUMBER}\s*\)")
_COMPLEX = re.compile(rf"(?:[\s,\[\]]++|{_PAIR.pattern})++(?<=[\])])")
_NUMBERS = re.compile(rf"{_NUMBER}|true|false")
_DIGIT_TO_BYTE = bytes.maketrans(b"01", b"\x00\x01")
_WITHOUT_SPACE = str.maketrans("", "", " \t\r\n\f\v")
_WITHOUT_NUMBERS = str.maketrans("", "", "0123456789+-.eExXabcdfABCDFtrulsn \t\r\n\f\v")


class LiteralError(ValueError):
    """A literal is no value of its element type; `index` is its position in the list."""

    def __init__(self, message: str, index: int = 0) -> None:
        super().__init__(message)
        self.index = index


def element_size(element_type: Attribute) -> int | None:
    """Returns the size of an element in bytes, or None for unsupported types."""
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
    """Encodes number literals as bytes.

    Hexadecimal literals of float types are bit patterns; others are values, rounded to nearest,
    ties to even.

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
    # Signless integers may be written as signed or unsigned.
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
    """Rounds a double to bf16 directly: rounding through float32 would round ties twice."""
    if value == 0.0 or not math.isfinite(value):
        return struct.pack("<f", value)[2:]
    _, exponent = math.frexp(value)
    # 8 significant bits; subnormals have a fixed unit in the last place.
    ulp = max(exponent - 8, -133)
    # round() is exact here, with ties to even, but loses the sign of zeros.
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
    """Returns the name of a type in ml_dtypes: `f8E4M3FN` is `float8_e4m3fn`."""
    return re.sub(r"^f(\d+)E", r"float\1_e", spelling).lower()


def _little_endian(values: array[int] | array[float]) -> bytes:
    if sys.byteorder == "big":
        values.byteswap()
    return values.tobytes()


def scan_list(text: str, offset: int) -> int:
    """Returns the end of the tensor literal that starts with the `[` at `offset`.

    It ends at the first other text than numbers, brackets and commas; `has_shape` checks the
    brackets.
    """
    match = _LIST.match(text, offset)
    return offset if match is None else match.end()


def scan_complex(text: str, offset: int) -> int:
    """Returns the end of the complex literal, `(1.0, -2.0)` or a list of such, at `offset`."""
    match = _COMPLEX.match(text, offset)
    return offset if match is None else match.end()


def without_pairs(body: str) -> str:
    """Replaces each complex number of a literal by one number."""
    return _PAIR.sub("0", body)


def list_literals(body: str) -> list[str]:
    """Returns the number literals of a tensor literal, in order."""
    return _NUMBERS.findall(body)


def literal_offset(body: str, index: int) -> int:
    """Returns the offset of a number by its index in a tensor literal."""
    return next(islice(_NUMBERS.finditer(body), index, None)).start()


def has_shape(body: str, count: int, shape: Sequence[int]) -> bool:
    """Returns whether a tensor literal of `count` numbers is well-formed and has the given
    shape."""
    brackets = body.translate(_WITHOUT_NUMBERS)
    # A type may declare more elements than fit into memory, so the length is compared first.
    if len(brackets) != _brackets_length(shape) or brackets != _brackets(shape):
        return False
    if count != prod(shape):
        return False
    # The counts agree, so the literal is well-formed if no position is empty.
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
    """Returns one byte per boolean of a raw i1 buffer in any packing; None if no packing fits.

    MLIR long packed 8 booleans per byte (least significant bit first), with a single 0x00 or 0xff
    for a splat.
    """
    if data in (b"\x00", b"\xff"):
        return bytes([data[0] & 1])
    if len(data) == (count + 7) // 8:
        digits = format(int.from_bytes(data, "little"), f"0{8 * len(data)}b").encode()
        return digits[::-1].translate(_DIGIT_TO_BYTE)[:count]
    if len(data) == count or len(data) == 1:
        return bytes(byte & 1 for byte in data)
    return None


# Constants: `dense`, `array` and `dense_resource` attributes, and the resources of a file.

_METADATA_VALUES = (
    MLIRTokenKind.STRING_LIT,
    MLIRTokenKind.BYTES_LIT,
    MLIRTokenKind.INTEGER_LIT,
    MLIRTokenKind.FLOAT_LIT,
    MLIRTokenKind.BARE_IDENT,
)
_METADATA = re.compile(r"^\s*\{-#", re.MULTILINE)


class ConstantParser(AttributeParser):
    """Parser of constants."""

    _resources: dict[str, tuple[int, int]] | None = None
    """Offsets of the blobs of builtin resources; None before the first look-up."""

    def _parse_builtin_densearray_attr(self) -> DenseArrayBase[Any]:
        """Parses `array<type: numbers>`."""
        self.parse_punctuation("<", " in array attribute")
        start = self._current_token.start
        element_type = self.parse_type()
        if not isinstance(element_type, IntegerType | AnyFloat):
            self.raise_error("elements of an array must be integers or floats", start)
        literals: list[str] = []
        offsets: list[int] = []
        if self.parse_optional_punctuation(">") is None:
            self.parse_punctuation(":", " in array attribute")
            while True:
                offsets.append(self._current_token.start)
                literals.append(self._number_literal())
                if self.parse_optional_punctuation(",") is None:
                    break
            self.parse_punctuation(">", " in array attribute")
        array_type = cast(Any, element_type)
        data = self._encode(literals, array_type, lambda i: offsets[i] if offsets else start)
        return DenseArrayBase(array_type, BytesAttr(data))

    def parse_dense_int_or_fp_elements_attr(
        self, type: RankedStructure[Any] | None
    ) -> DenseIntOrFPElementsAttr[Any]:
        """Parses `dense<...> : type`; a splat remains one element."""
        self.parse_punctuation("<", " in dense attribute")
        start = self._current_token.start
        literal = self._dense_literal()
        self.parse_punctuation(">", " in dense attribute")
        if type is None:
            self.parse_punctuation(":", " in dense attribute")
            type = self._parse_dense_literal_type()
        shape = type.get_shape()
        element_type = cast(Attribute, type.element_type)
        if literal is None:
            if prod(shape) != 0:
                self.raise_error("expected elements", start)
            data = b""
        elif literal[0] == '"':
            data = self._buffer(self._decode(literal, start), element_type, prod(shape), start)
        elif "(" in literal:
            data = self._complex(literal, element_type, shape, start)
        elif literal[0] == "[":
            literals = list_literals(literal)
            if not has_shape(literal, len(literals), shape):
                self.raise_error(
                    f"the elements are not arranged in the shape {list(shape)} of the type", start
                )
            data = self._encode(
                literals, element_type, lambda i: start + literal_offset(literal, i)
            )
        else:
            data = self._encode([literal], element_type, lambda _: start)
        return DenseIntOrFPElementsAttr(type, BytesAttr(data))

    def _parse_dense_literal_type(self) -> RankedStructure[Any]:
        """Parses the type of a constant: a tensor, vector or memref of static shape."""
        start = self._current_token.start
        type = self.parse_type()
        if not isinstance(type, TensorType | VectorType | MemRefType):
            self.raise_error("a constant is a tensor or a vector", start)
        ranked = cast(RankedStructure[Any], type)
        if any(size < 0 for size in ranked.get_shape()):
            self.raise_error("a constant has a known size", start)
        return ranked

    def _dense_literal(self) -> str | None:
        """Returns the text in the brackets of a dense attribute: a string, a list or a number."""
        token = self._current_token
        match token.kind:
            case MLIRTokenKind.GREATER:
                return None
            case MLIRTokenKind.STRING_LIT:
                self._consume_token()
                return token.text
            case MLIRTokenKind.L_SQUARE:
                end = scan_list(self.source.text, token.start)
                if self.source.text[end : end + 1] == "(":
                    end = scan_complex(self.source.text, token.start)
                self._resume_from(end)
                return self.source.text[token.start : end]
            case MLIRTokenKind.L_PAREN:
                end = scan_complex(self.source.text, token.start)
                self._resume_from(end)
                return self.source.text[token.start : end]
            case _:
                return self._number_literal()

    def _number_literal(self) -> str:
        """Returns the text of a number with its sign; `true` and `false` count as numbers."""
        sign = "-" if self.parse_optional_punctuation("-") is not None else ""
        token = self._current_token
        is_number = token.kind in (MLIRTokenKind.INTEGER_LIT, MLIRTokenKind.FLOAT_LIT)
        if not is_number and (sign or token.text not in ("true", "false")):
            self.raise_error("expected a number")
        self._consume_token()
        return sign + token.text

    def _encode(
        self, literals: list[str], element_type: Attribute, offset_of: Callable[[int], int]
    ) -> bytes:
        try:
            return encode_elements(literals, element_type)
        except LiteralError as error:
            self.raise_error(str(error), offset_of(error.index))

    def _complex(
        self, literal: str, element_type: Attribute, shape: Sequence[int], start: int
    ) -> bytes:
        """Encodes complex numbers, alternating real and imaginary parts."""
        if not isinstance(element_type, ComplexType):
            self.raise_error(f"'(' does not start a number of type {element_type}", start)
        part: Attribute = cast(Any, element_type).element_type
        pairs = without_pairs(literal)
        if literal[0] == "[" and not has_shape(pairs, len(list_literals(pairs)), shape):
            self.raise_error(
                f"the elements are not arranged in the shape {list(shape)} of the type", start
            )
        return self._encode(
            list_literals(literal), part, lambda i: start + literal_offset(literal, i)
        )

    def _decode(self, literal: str, start: int) -> bytes:
        """Decodes a string literal `"0x..."`."""
        if not literal.startswith('"0x'):
            self.raise_error('expected a hexadecimal string "0x..."', start)
        try:
            return bytes.fromhex(literal[3:-1])
        except ValueError:
            self.raise_error("the string is not hexadecimal or has an odd number of digits", start)

    def _buffer(self, data: bytes, element_type: Attribute, count: int, start: int) -> bytes:
        """Verifies the size of a raw buffer; one element is a splat."""
        size = element_size(element_type)
        if size is None:
            self.raise_error(f"constants of type {element_type} are not supported", start)
        if element_type == IntegerType(1):
            if (unpacked := unpack_booleans(data, count)) is not None:
                return unpacked
        elif len(data) == size * count or (len(data) == size and count > 0):
            return data
        self.raise_error(
            f"expected {count} elements of {size} bytes, found {len(data)} bytes", start
        )

    # Resources

    def _parse_builtin_dense_resource_attr(  # pyright: ignore[reportIncompatibleMethodOverride]
        self,
    ) -> DenseIntOrFPElementsAttr[Any]:
        """Parses `dense_resource<key> : type` to a dense attribute with the file's blob."""
        self.parse_punctuation("<", " in dense_resource attribute")
        start = self._current_token.start
        key = self.parse_identifier_or_str_literal(" for the key of the resource")
        self.parse_punctuation(">", " in dense_resource attribute")
        self.parse_punctuation(":", " in dense_resource attribute")
        type = self._parse_dense_literal_type()
        extent = self._find_resources().get(key)
        if extent is None:
            raise CompileError(
                f"the data of the resource '{key}' are not in the file",
                start,
                remedy="write the module without eliding its resources",
            )
        blob = self._decode(self.source.text[extent[0] : extent[1]], extent[0])
        if len(blob) < 4:
            self.raise_error("expected a blob that starts with its alignment", extent[0])
        # The first four bytes are the alignment of the buffer.
        data = self._buffer(blob[4:], type.element_type, prod(type.get_shape()), start)
        return DenseIntOrFPElementsAttr(type, BytesAttr(data))

    def _find_resources(self) -> dict[str, tuple[int, int]]:
        """Returns the extents of the blobs; the dictionary usually follows the module."""
        if self._resources is None:
            self._resources = {}
            for match in _METADATA.finditer(self.source.text):
                self._read_at(match.end() - 3, self._parse_file_metadata_dictionary)
        return self._resources

    def _parse_file_metadata_dictionary(self) -> None:
        """Parses `{-# section: {group: {key: value}} #-}`; only builtin resources are kept."""
        if self._resources is None:
            self._resources = {}
        self.parse_comma_separated_list(
            self.Delimiter.METADATA_TOKEN, self._parse_metadata_section, " in file metadata"
        )

    def _parse_metadata_section(self) -> None:
        section = self._parse_metadata_key()
        self.parse_comma_separated_list(
            self.Delimiter.BRACES, lambda: self._parse_metadata_group(section), " in file metadata"
        )

    def _parse_metadata_group(self, section: str) -> None:
        group = self._parse_metadata_key()
        entries = self.parse_comma_separated_list(
            self.Delimiter.BRACES, self._parse_metadata_entry, " in file metadata"
        )
        if (section, group) == ("dialect_resources", "builtin"):
            self._find_resources().update(entries)

    def _parse_metadata_entry(self) -> tuple[str, tuple[int, int]]:
        key = self._parse_metadata_key()
        token = self._consume_token()
        extent = token.span.start, token.span.end
        if token.kind not in _METADATA_VALUES:
            self.raise_error("expected a string, a number or a boolean", extent[0])
        return key, extent

    def _parse_metadata_key(self) -> str:
        key = self.parse_identifier_or_str_literal(" for a key of the file metadata")
        self.parse_punctuation(":", " in file metadata")
        return key
