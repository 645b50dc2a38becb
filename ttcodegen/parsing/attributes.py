"""Types, attributes and locations: xDSL's attribute parser with memoization and fixes.

Speed: types, function types, attribute dictionaries and locations are memoized by their text. An
entry is made only if the text matched by the pattern is exactly what the parser consumed, so that
an inexact pattern costs time but never changes the result.

Fixes: aliases may be used before their definition, locations may have all forms, and types and
attributes of unknown dialects are kept as text instead of refused.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from typing import NamedTuple, NoReturn, TypeVar

from xdsl.context import Context
from xdsl.dialects.builtin import (
    FileLineColLoc,
    FloatAttr,
    FunctionType,
    FusedLoc,
    IntAttr,
    IntegerAttr,
    LocationAttr,
    MemRefLayoutAttr,
    MemRefType,
    NameLoc,
    NoneAttr,
    StringAttr,
    TensorType,
    UnknownLoc,
    UnrankedMemRefType,
    UnrankedTensorType,
    UnregisteredAttr,
)
from xdsl.ir import Attribute, TypeAttribute
from xdsl.parser import Parser
from xdsl.parser.attribute_parser import AttrParser
from xdsl.parser.generic_parser import ParserState
from xdsl.utils.exceptions import ParseError, VerifyException
from xdsl.utils.lexer import Input, Position, Span
from xdsl.utils.mlir_lexer import MLIRTokenKind

from ttcodegen.dialects.ttcore.tile import TileType
from ttcodegen.dialects.ttnn.placement import (
    LayoutTextError,
    TensorPlacement,
    TTNNLayoutAttr,
    placed,
)
from ttcodegen.foundation.diagnostics import CompileError, Diagnostics, Note, Source
from ttcodegen.parsing.tokens import (
    ALIAS,
    LexedToken,
    MLIRTextLexer,
    current_attribute_name,
    inner_aliases,
    location_definition,
    skip_blanks,
)

T = TypeVar("T")

_EVOLVING = frozenset(
    f"ttcore.{name}"
    for name in ("buffer", "device", "host_layout", "metal_layout", "stream", "system_desc", "view")
)
"""Attributes whose syntax varies between versions; no program depends on them."""

_MOST_BITS = 2**24 - 1
"""Maximum width of an integer type, as in MLIR."""
_INTEGER = re.compile(r"[su]?i(\d+)")
_NARROW = len(str(_MOST_BITS))
"""Length of integer types below which none is too wide."""

# Longer texts, such as constants, rarely repeat, and finding their end is expensive.
_MEMO_LENGTH = 4096
_SHORT_STRING = r'"[^"\\\n]{0,200}+"'


def _angles(depth: int) -> str:
    """Returns a pattern for `<...>` with balanced brackets down to `depth`; `->` is no bracket."""
    nested = "|" + _angles(depth - 1) if depth else ""
    return rf"<(?:[^<>\"\n-]++|->|-{nested})*+>"


# A name has to be matched with its parameters, not alone.
_NAME_END = rf"(?:{_angles(3)})?+(?!\s*<)"
_TYPE_TEXT = rf"(?:tensor{_angles(3)}|![a-zA-Z_$][\w$.-]*+{_NAME_END})"
_TYPE = re.compile(_TYPE_TEXT)
_DIALECT_ATTRIBUTE = re.compile(rf"#[a-zA-Z_$][\w$-]*+\.[\w$.-]++{_NAME_END}")
_FUNCTION_TYPE = re.compile(
    rf"\([^()\"{{}}]*+\)\s*->\s*(?:\([^()\"{{}}]*+\)|{_TYPE_TEXT}|[a-zA-Z]\w*+)"
)
_DICTIONARY_TEXT = rf"\{{(?:[^{{}}\"]++|{_SHORT_STRING})*+\}}"
_DICTIONARY = re.compile(_DICTIONARY_TEXT)
_PROPERTIES = re.compile(rf"<\s*{_DICTIONARY_TEXT}\s*>")
_SIGNATURE = re.compile(
    rf"\s*(<\s*{_DICTIONARY_TEXT}\s*>)?+\s*({_DICTIONARY_TEXT})?+\s*:\s*({_FUNCTION_TYPE.pattern})"
)
"""Signature after the operands of a generic operation without regions and successors."""
_NAME_LOCATION = re.compile(r'loc\("([^"\\\n\v\f]*+)"\)')
_LOCATION = re.compile(
    rf"loc\((?:[^()\"]++|{_SHORT_STRING}|\((?:[^()\"]++|{_SHORT_STRING})*+\))*+\)"
)
_ALIAS_PARTS = 100_000
_ALIAS_DEPTH = 100
_ALIAS_DEFINITION = re.compile(
    r"^[ \t]*([#!](?:[0-9]++|[a-zA-Z$_-][a-zA-Z0-9$_-]*+))[ \t\r\n]*=", re.MULTILINE
)


class Signature(NamedTuple):
    """Attributes and type of an operation, and the end of their text."""

    properties: dict[str, Attribute]
    attributes: dict[str, Attribute]
    type: FunctionType
    type_offset: int
    end: int


class AttributeParser(Parser):
    """Parser of the types, attributes and locations of a `Source`."""

    def __init__(self, context: Context, source: Source, diagnostics: Diagnostics) -> None:
        lexer = MLIRTextLexer(Input(source.text, source.name))
        AttrParser.__init__(self, ParserState(lexer), context)
        self.ssa_values = {}
        self.blocks = {}
        self.forward_block_references = {}
        self.forward_ssa_references = {}
        self.source = source
        self.diagnostics = diagnostics
        self._types: dict[str, TypeAttribute | None] = {}
        self._attributes: dict[str, Attribute | None] = {}
        self._function_types: dict[str, FunctionType | None] = {}
        self._dictionaries: dict[str, dict[str, Attribute]] = {}
        self._locations: dict[str, LocationAttr | None] = {}
        self._alias_definitions: dict[str, int] | None = None
        self._alias_sizes: dict[str, tuple[int, int]] = {}
        """Number of aliases that each alias expands to, and their nesting depth."""
        self._alias_ends: dict[int, int] = {}
        """Start and end of definitions that were parsed ahead of their position."""
        self._open_aliases: list[str] = []
        self._entry_offsets: dict[str, int] = {}
        self._warned_of_encodings = False

    # Errors and tokens

    @property
    def _current_token(self) -> LexedToken:
        # Too hot for a call of cast().
        return self._parser_state.current_token  # pyright: ignore[reportReturnType]

    def raise_error(  # pyright: ignore[reportIncompatibleMethodOverride]
        self,
        msg: str,
        at_position: Span[str] | Position | None = None,
        end_position: Position | None = None,
    ) -> NoReturn:
        """Raises CompileError at a position, by default the current token."""
        if at_position is None:
            at_position = self._current_token.start
        offset = at_position.start if isinstance(at_position, Span) else at_position
        if offset >= len(self.source.text.rstrip()) and "end of file" not in msg:
            msg += "; the file ends here"
        raise CompileError(plain_message(msg), offset)

    def parse_optional_characters(self, text: str) -> str | None:
        token = self._current_token
        # Compared in place: a token can be a string of megabytes.
        if token.end - token.start == len(text) and self.source.text.startswith(text, token.start):
            self._consume_token()
            return text
        return None

    def _memoized(
        self,
        pattern: re.Pattern[str],
        memo: dict[str, T],
        parse: Callable[[], T],
    ) -> T:
        """Returns the value of the text at the current token, parsed only on first occurrence."""
        content = self.source.text
        match = pattern.match(content, self._current_token.start)
        if match is None:
            return parse()
        end = match.end()
        if end - match.start() > _MEMO_LENGTH:
            return parse()
        text = match.group()
        if (known := memo.get(text)) is not None:
            self._resume_from(end)
            return known
        value = parse()
        if value is not None and self._current_token.start == skip_blanks(content, end):
            memo[text] = value
        return value

    def known_signature(self, offset: int) -> Signature | None:
        """Returns the signature at an offset if all its parts were parsed before, else None."""
        match = _SIGNATURE.match(self.source.text, offset)
        if match is None:
            return None
        properties, attributes, type_ = match.groups()
        known = self._function_types.get(type_)
        given = {} if properties is None else self._dictionaries.get(properties)
        discardable = {} if attributes is None else self._dictionaries.get(attributes)
        if known is None or given is None or discardable is None:
            return None
        return Signature(dict(given), dict(discardable), known, match.start(3), match.end())

    # Aliases

    def _alias_offsets(self) -> dict[str, int]:
        """Returns the offset of each alias definition."""
        if self._alias_definitions is None:
            definitions: dict[str, int] = {}
            for match in _ALIAS_DEFINITION.finditer(self.source.text):
                definitions.setdefault(match.group(1), match.start(1))
            self._alias_definitions = definitions
        return self._alias_definitions

    def _alias(self, name: str, offset: int) -> Attribute:
        """Returns the attribute or type of an alias, whose definition may follow."""
        if (known := self.attribute_aliases.get(name)) is not None:
            return known
        if name not in self._alias_offsets():
            self.raise_error(f"undefined alias '{name}'", offset)
        if name in self._open_aliases:
            self.raise_error(f"alias '{name}' is defined by itself", offset)
        if not self._open_aliases:
            known, offsets = self.attribute_aliases, self._alias_offsets()
            for inner in inner_aliases(name, self.source.text, offsets, known):
                self._read_alias(inner)
        self._read_alias(name)
        return self.attribute_aliases[name]

    def _read_alias(self, name: str) -> None:
        self._open_aliases.append(name)
        self._read_at(self._alias_offsets()[name], self._parse_alias_def)
        self._open_aliases.pop()

    def _read_at(self, offset: int, parse: Callable[[], None]) -> None:
        """Parses at another offset and returns to the current position."""
        position, token = self.lexer.pos, self._current_token
        self._resume_from(offset)
        parse()
        self.lexer.pos = position
        self._parser_state.current_token = token

    def _parse_alias_def(self) -> None:
        """Parses `#name = attribute` or `!name = type`."""
        token = self._current_token
        if (end := self._alias_ends.get(token.start)) is not None:
            self._resume_from(end)
            return
        name = token.text
        # Definitions that do not start a line are not in the index.
        first = self._alias_offsets().setdefault(name, token.start)
        if first != token.start:
            notes = [Note("first defined here", first)]
            raise CompileError(f"alias '{name}' is defined twice", token.start, notes=notes)
        located = location_definition(self.source.text, token.end, self.attribute_aliases)
        if located is not None:
            value, end = located
            self._resume_from(end)
        else:
            self._consume_token()
            self.parse_punctuation("=", " after alias name")
            value = self.parse_type() if name[0] == "!" else self.parse_attribute()
            end = self._current_token.start
        self._limit_alias(name, token.start, self.source.text[token.end : end])
        self.attribute_aliases[name] = value
        self._alias_ends[token.start] = end

    def _limit_alias(self, name: str, offset: int, definition: str) -> None:
        """Refuses an alias with an excessive expansion.

        Aliases of aliases can grow exponentially, and their values are compared, hashed and printed
        as a whole.
        """
        size, depth = 1, 0
        for match in ALIAS.finditer(definition):
            known = self._alias_sizes.get(match.group())
            if known is not None:
                size += known[0]
                depth = max(depth, known[1])
        if size > _ALIAS_PARTS:
            self.raise_error(f"alias '{name}' expands to more than {_ALIAS_PARTS} parts", offset)
        if depth >= _ALIAS_DEPTH:
            self.raise_error(f"alias '{name}' is nested more than {_ALIAS_DEPTH} deep", offset)
        self._alias_sizes[name] = size, depth + 1

    # Types

    def parse_optional_type(self) -> TypeAttribute | None:
        token = self._current_token
        match token.kind:
            case MLIRTokenKind.BARE_IDENT | MLIRTokenKind.EXCLAMATION_IDENT:
                return self._memoized(_TYPE, self._types, self._parse_optional_type)
            case MLIRTokenKind.L_PAREN:
                return self.parse_optional_function_type()
            case _:
                return None

    def _parse_optional_type(self) -> TypeAttribute | None:
        token = self._current_token
        if token.kind is MLIRTokenKind.EXCLAMATION_IDENT:
            value = self._parse_extended(token, is_type=True)
            if not isinstance(value, TypeAttribute):
                self.raise_error(f"'{token.text}' is no type", token.start)
            return value
        return self._parse_optional_builtin_type()

    def _parse_optional_integer_or_float_type(self) -> TypeAttribute | None:
        token = self._current_token
        match = _INTEGER.fullmatch(token.text) if len(token.text) > _NARROW else None
        if match is not None and (len(match[1]) > _NARROW or int(match[1]) > _MOST_BITS):
            self.raise_error(f"integers have at most {_MOST_BITS} bits", token.start)
        return super()._parse_optional_integer_or_float_type()

    def parse_optional_function_type(self) -> FunctionType | None:
        if self._current_token.kind is not MLIRTokenKind.L_PAREN:
            return None
        return self._memoized(
            _FUNCTION_TYPE, self._function_types, super().parse_optional_function_type
        )

    def _parse_tensor_attrs(self) -> TensorType[Attribute] | UnrankedTensorType[Attribute]:
        """Parses a tensor type.

        Encodings of unknown dialects are dropped: the compiler decides on placement, and values do
        not depend on it.
        """
        start = self._current_token.start
        shape, element_type = self.parse_shape()
        if self.parse_optional_punctuation(",") is None:
            if shape is None:
                return UnrankedTensorType(element_type)
            return TensorType(element_type, shape)
        if shape is None:
            self.raise_error("an unranked tensor has no encoding")
        encoding = self.parse_attribute()
        if isinstance(encoding, TTNNLayoutAttr):
            try:
                placement = placed(encoding.data, tuple(shape))
            except LayoutTextError as error:
                self.raise_error(str(error), start)
            if placement.shards != encoding.data.shards:
                self.diagnostics.warn(
                    "the shards of the layout do not hold a tensor of this shape: it is divided "
                    "evenly among their cores",
                    start,
                )
            if isinstance(element_type, TileType):
                element_type = self._element_of_tiles(element_type, placement, start)
            return TensorType(element_type, shape, TTNNLayoutAttr(placement))
        if not isinstance(encoding, UnregisteredAttr):
            return TensorType(element_type, shape, encoding)
        if not self._warned_of_encodings:
            self._warned_of_encodings = True
            self.diagnostics.warn(
                f"tensor encodings such as #{encoding.attr_name.data} are ignored: "
                "layouts are assigned by the compiler",
                start,
            )
        return TensorType(element_type, shape)

    def _element_of_tiles(
        self, tile: TileType, placement: TensorPlacement, start: int
    ) -> Attribute:
        """Returns the element type of a tensor of tiles, which has to agree with the layout.

        Tools print types without element type this way, above all block floats.
        """
        if tile.format_name.data != placement.data_type.mlir:
            self.raise_error(
                f"the elements are {tile.format_name.data}, those of the layout "
                f"{placement.data_type.mlir}",
                start,
            )
        return placement.data_type.element_type

    def _parse_memref_attrs(self) -> MemRefType | UnrankedMemRefType:
        """Parses a memref type; layouts of unknown dialects are dropped."""
        shape, element_type = self.parse_shape()
        rest: list[Attribute] = []
        while self.parse_optional_punctuation(",") is not None:
            rest.append(self.parse_attribute())
        if shape is None:
            return UnrankedMemRefType.from_type(element_type, rest[0] if rest else NoneAttr())
        layout = rest[0] if rest and isinstance(rest[0], MemRefLayoutAttr) else NoneAttr()
        space = rest[-1] if rest and not isinstance(rest[-1], MemRefLayoutAttr) else NoneAttr()
        return MemRefType(element_type, shape, layout, space)

    # Attributes

    def parse_optional_attribute(self) -> Attribute | None:
        token = self._current_token
        if token.kind is not MLIRTokenKind.HASH_IDENT:
            return self._parse_optional_builtin_attr()
        return self._memoized(
            _DIALECT_ATTRIBUTE,
            self._attributes,
            lambda: self._parse_extended(token, is_type=False),
        )

    def _parse_attribute_entry(self) -> tuple[str, Attribute]:
        start = self._current_token.start
        name, value = super()._parse_attribute_entry()
        name = current_attribute_name(name)
        self._entry_offsets[name] = start
        return name, value

    def _find_duplicated_key(self, attrs: list[tuple[str, Attribute]]) -> str | None:
        if (key := super()._find_duplicated_key(attrs)) is not None:
            self.raise_error(f"attribute '{key}' is given twice", self._entry_offsets[key])
        return key

    def _parse_extended(self, token: LexedToken, *, is_type: bool) -> Attribute:
        """Parses a dialect's type or attribute, or an alias, whose name is `token`."""
        self._consume_token()
        name = token.text[1:]
        if "." not in name and self._current_token.kind is not MLIRTokenKind.LESS:
            return self._alias(token.text, token.start)
        current = current_attribute_name(name)
        if current == name and name not in _EVOLVING:
            return self._parse_extended_type_or_attribute(name, is_type)
        # Attributes with the syntax of another version are kept as text.
        position, body_token = self.lexer.pos, self._current_token
        try:
            return self._parse_extended_type_or_attribute(current, is_type)
        except (CompileError, ParseError, VerifyException) as error:
            if current in _EVOLVING:
                if isinstance(error, VerifyException):
                    # The syntax is known, but the attribute is invalid.
                    self.raise_error(str(error), token.start)
                self.diagnostics.warn(f"#{current} is ignored: {error}", token.start)
            self.lexer.pos = position
            self._parser_state.current_token = body_token
            # Renamed although its syntax differs: keep it under the former name.
            name = name if current != name else "tt" + name.removeprefix("ttcore")
            return self._parse_extended_type_or_attribute(name, is_type)

    def parse_optional_dictionary_attr_dict(self) -> dict[str, Attribute]:
        if self._current_token.kind is not MLIRTokenKind.L_BRACE:
            return {}
        parse = super().parse_optional_dictionary_attr_dict
        return dict(self._memoized(_DICTIONARY, self._dictionaries, parse))

    def parse_optional_properties_dict(self) -> dict[str, Attribute]:
        if self._current_token.kind is not MLIRTokenKind.LESS:
            return {}
        parse = super().parse_optional_properties_dict
        return dict(self._memoized(_PROPERTIES, self._dictionaries, parse))

    def parse_optional_builtin_int_or_float_attr(self) -> IntegerAttr | FloatAttr | None:
        start = self._current_token.start
        try:
            return super().parse_optional_builtin_int_or_float_attr()
        except VerifyException as error:
            self.raise_error(str(error), start)
        except (OverflowError, ValueError, struct.error):
            self.raise_error("the number is out of range for its type", start)

    # Locations

    def parse_optional_location(self) -> LocationAttr | None:
        token = self._current_token
        if token.kind is not MLIRTokenKind.BARE_IDENT or token.text != "loc":
            return None
        match = _NAME_LOCATION.match(self.source.text, token.start)
        if match is None:
            return self._memoized(_LOCATION, self._locations, super().parse_optional_location)
        text = match.group()
        location = self._locations.get(text)
        if location is None:
            location = self._locations[text] = NameLoc(StringAttr(match.group(1)), NoneAttr())
        self._resume_from(match.end())
        return location

    def _parse_location(self) -> LocationAttr:
        token = self._current_token
        match token.kind:
            case MLIRTokenKind.STRING_LIT:
                return self._parse_file_or_name_location()
            case MLIRTokenKind.HASH_IDENT:
                value = self.parse_attribute()
                # Locations of unknown dialects are dropped.
                return value if isinstance(value, LocationAttr) else UnknownLoc()
            case MLIRTokenKind.BARE_IDENT if token.text == "fused":
                return self._parse_fused_location()
            case _:
                return super()._parse_location()

    def _parse_file_or_name_location(self) -> LocationAttr:
        name = StringAttr(self.parse_str_literal())
        if self.parse_optional_punctuation(":") is None:
            nested: LocationAttr | NoneAttr = NoneAttr()
            if self._current_token.kind is MLIRTokenKind.L_PAREN:
                with self.in_parens():
                    nested = self._parse_location()
            return NameLoc(name, nested)
        line = self.parse_integer(False, False)
        column = 0
        if self.parse_optional_punctuation(":") is not None:
            column = self.parse_integer(False, False)
        if self.parse_optional_keyword("to") is not None:
            # The end of a range is dropped: diagnostics point to the start.
            self.parse_optional_integer(False, False)
            self.parse_punctuation(":", " in location range")
            self.parse_integer(False, False)
        return FileLineColLoc(name, IntAttr(line), IntAttr(column))

    def _parse_fused_location(self) -> LocationAttr:
        self._consume_token()
        metadata: Attribute = NoneAttr()
        if self.parse_optional_punctuation("<") is not None:
            metadata = self.parse_attribute()
            self.parse_punctuation(">", " after the metadata of a fused location")
        parts = self.parse_comma_separated_list(self.Delimiter.SQUARE, self._parse_location)
        return FusedLoc(tuple(parts), metadata)


def plain_message(message: str) -> str:
    """Converts a message of xDSL to our style: lower case, no full stop."""
    message = message.strip().rstrip(".!")
    if len(message) > 1 and message[0].isupper() and message[1].islower():
        message = message[0].lower() + message[1:]
    return message.replace("`", "'")
