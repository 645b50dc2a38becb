"""Constants: `dense`, `array` and `dense_resource` attributes, and the resources of a file.

Hexadecimal literals of float types are bit patterns, splats stay one element whatever their shape,
and resources belong to the text they are in.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from math import prod
from typing import Any, cast

from xdsl.dialects.builtin import (
    AnyFloat,
    BytesAttr,
    ComplexType,
    DenseArrayBase,
    DenseIntOrFPElementsAttr,
    IntegerType,
    MemRefType,
    RankedStructure,
    TensorType,
    VectorType,
)
from xdsl.ir import Attribute
from xdsl.utils.mlir_lexer import MLIRTokenKind

from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.parsing.attributes import AttributeParser
from ttcodegen.parsing.elements import (
    LiteralError,
    element_size,
    encode_elements,
    has_shape,
    list_literals,
    literal_offset,
    scan_complex,
    scan_list,
    unpack_booleans,
    without_pairs,
)

_METADATA_VALUES = (
    MLIRTokenKind.STRING_LIT,
    MLIRTokenKind.BYTES_LIT,
    MLIRTokenKind.INTEGER_LIT,
    MLIRTokenKind.FLOAT_LIT,
    MLIRTokenKind.BARE_IDENT,
)
_METADATA = re.compile(r"^\s*\{-#", re.MULTILINE)


class ConstantParser(AttributeParser):
    """The part of the parser that reads constants."""

    _resources: dict[str, tuple[int, int]] | None = None
    """The offset of the blob of each resource of the builtin dialect, once it was looked for."""

    def _parse_builtin_densearray_attr(self) -> DenseArrayBase[Any]:
        """`array<type: numbers>`."""
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
        """`dense<...> : type`. A splat keeps one element, whatever its shape."""
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
        """The type of a constant: a tensor, vector or memref of known size."""
        start = self._current_token.start
        type = self.parse_type()
        if not isinstance(type, TensorType | VectorType | MemRefType):
            self.raise_error("a constant is a tensor or a vector", start)
        ranked = cast(RankedStructure[Any], type)
        if any(size < 0 for size in ranked.get_shape()):
            self.raise_error("a constant has a known size", start)
        return ranked

    def _dense_literal(self) -> str | None:
        """The text between the brackets of a dense attribute: a string, a list or a number."""
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
        """The text of one number, with its sign; `true` and `false` count as numbers."""
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
        """The bytes of complex numbers: real and imaginary part of each in turn."""
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
        """The bytes that a string literal `"0x..."` spells."""
        if not literal.startswith('"0x'):
            self.raise_error('expected a hexadecimal string "0x..."', start)
        try:
            return bytes.fromhex(literal[3:-1])
        except ValueError:
            self.raise_error("the string is not hexadecimal or has an odd number of digits", start)

    def _buffer(self, data: bytes, element_type: Attribute, count: int, start: int) -> bytes:
        """Checks the size of a raw buffer; one element is a splat."""
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
        """`dense_resource<key> : type`, as the dense attribute that the blob of the file makes."""
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
        """The extents of the blobs; the dictionary usually follows the module."""
        if self._resources is None:
            self._resources = {}
            for match in _METADATA.finditer(self.source.text):
                self._read_at(match.end() - 3, self._parse_file_metadata_dictionary)
        return self._resources

    def _parse_file_metadata_dictionary(self) -> None:
        """`{-# section: {group: {key: value}} #-}`; only blobs of the builtin dialect matter."""
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
