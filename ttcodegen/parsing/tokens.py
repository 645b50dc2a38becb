"""Tokens of MLIR text, older spellings of TTIR, and the resolution order of attribute aliases.

Token kinds are those of xDSL's `MLIRLexer`, so that xDSL's parser can use this lexer; tokens only
store offsets and create their text and `Span` on demand.
"""

from __future__ import annotations

import re
from collections.abc import Container, Mapping, Sequence

from xdsl.dialects.builtin import (
    CallSiteLoc,
    DenseArrayBase,
    FileLineColLoc,
    IntAttr,
    IntegerAttr,
    LocationAttr,
    ModuleOp,
    NameLoc,
    NoneAttr,
    StringAttr,
    TensorType,
    i32,
    i64,
)
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.utils.exceptions import ParseError
from xdsl.utils.lexer import Input, Lexer, Span, Token
from xdsl.utils.mlir_lexer import (
    KIND_BY_PUNCTUATION_SPELLING,
    MLIRTokenKind,
    StringLiteral,
)

from ttcodegen.compat.ttnn_modules import DESTINATION
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.dialects.ttir.generic import GenericOp
from ttcodegen.ops.core.definition import Definition

# Upgrade of older spellings of TTIR.
#
# Until the end of 2025 every operation had its destination as last operand (`tensor.empty` or
# `ttir.empty`); in 2024 it had `operandSegmentSizes` and `operand_constraints`; the shared dialect
# was called `tt`; some operations and attributes had other names. Names are replaced during
# parsing; `upgrade` does the rest on the module, by the current definitions of the catalogue.

_OPERATION_NAMES = {
    "tensor.empty": "ttir.empty",
    "ttir.clamp": "ttir.clamp_scalar",
    "ttir.fill": "ttir.constant",
    "ttir.power": "ttir.pow",
    "ttir.select": "ttir.index_select",
    "ttir.slice": "ttir.slice_static",
    # As tt-mlir prints it, in quotes.
    "ttkernel.reinterpret_cast<volatile tt_l1_ptr uint32_t*>": "ttkernel.reinterpret_cast",
}

_ATTRIBUTE_NAMES = {"ttcore.layout": "ttcore.metal_layout"}

_WINDOW = {
    "stride": ("stride_height", "stride_width"),
    "dilation": ("dilation_height", "dilation_width"),
    "padding": ("padding_top", "padding_left", "padding_bottom", "padding_right"),
}
_MERGED_ATTRIBUTES: dict[str, Mapping[str, tuple[str, ...]]] = {
    "ttir.conv2d": _WINDOW,
    "ttir.conv_transpose2d": _WINDOW,
    "ttir.max_pool2d": {"kernel": ("kernel_height", "kernel_width"), **_WINDOW},
    "ttir.avg_pool2d": {"kernel": ("kernel_height", "kernel_width"), **_WINDOW},
}
"""Current attributes by operation, with the older attributes whose values they list."""

_SEGMENTS = "operandSegmentSizes"
_EMPTY = "ttir.empty"
CONSTRAINTS = "operand_constraints"
"""Attribute of 2024 with the allowed layouts of each operand; meaningless now."""


def current_operation_name(name: str) -> str:
    """Returns the current name of an operation."""
    return _OPERATION_NAMES.get(name, name)


def current_attribute_name(name: str) -> str:
    """Returns the current name of a dialect's attribute or type, without `#` or `!`."""
    current = "ttcore." + name[3:] if name.startswith("tt.") else name
    return _ATTRIBUTE_NAMES.get(current, current)


def drop_constraints(operations: Sequence[Operation]) -> None:
    """Drops the allowed layouts of operands, which are no property of an operation now."""
    for outer in operations:
        for op in outer.walk():
            if isinstance(op, CatalogueOp | GenericOp):
                for dictionary in (op.properties, op.attributes):
                    dictionary.pop(CONSTRAINTS, None)


def upgrade(module: ModuleOp) -> None:
    """Upgrades older spellings in `module`, in place."""
    emptied: dict[Operation, None] = {}
    for op in list(module.walk()):
        if not isinstance(op, CatalogueOp):
            continue
        _upgrade_attributes(op)
        for destination in _drop_destinations(op):
            emptied[destination] = None
        _update_in_place(op)
    for op in emptied:
        if all(not result.uses for result in op.results):
            op.detach()
            op.erase()


def _upgrade_attributes(op: CatalogueOp) -> None:
    for merged, names in _MERGED_ATTRIBUTES.get(op.name, {}).items():
        values: list[int] = []
        for name in names:
            value = op.properties.get(name, op.attributes.get(name))
            if isinstance(value, IntegerAttr):
                values.append(value.value.data)
        if len(values) == len(names):
            for name in names:
                op.properties.pop(name, None)
                op.attributes.pop(name, None)
            op.properties[merged] = DenseArrayBase.from_list(i32, values)
    if op.name == "ttir.broadcast" and op.properties.pop("dimension", None) is not None:
        _upgrade_broadcast(op)


def _upgrade_broadcast(op: CatalogueOp) -> None:
    """Replaces the list of broadcast dimensions of 2024 by a factor per dimension."""
    source, result = op.operands[0].type, op.results[0].type
    if isinstance(source, TensorType) and isinstance(result, TensorType):
        sizes, results = source.get_shape(), result.get_shape()
        if len(sizes) == len(results):
            factors = [b // a if a else 1 for a, b in zip(sizes, results, strict=True)]
            op.properties["broadcast_dimensions"] = DenseArrayBase.from_list(i64, factors)


def _drop_destinations(op: CatalogueOp) -> Sequence[Operation]:
    """Removes destination operands, and returns the operations that define them."""
    operands = op.operands
    count = _destination_count(op, operands)
    if count == 0:
        return ()
    kept, dropped = operands[: len(operands) - count], operands[len(operands) - count :]
    segments = _explicit_segments(op)
    for dictionary in (op.properties, op.attributes):
        dictionary.pop(_SEGMENTS, None)
    specs = op.definition.operands
    flexible = any(spec.count != "one" for spec in specs)
    if segments is not None and flexible and len(segments) == len(specs) + 1:
        op.properties[_SEGMENTS] = DenseArrayBase.from_list(i32, segments[:-1])
    op.operands = kept
    owners = [value.owner for value in dropped if _is_empty(value)]
    return [owner for owner in owners if isinstance(owner, Operation)]


def _destination_count(op: CatalogueOp, operands: Sequence[SSAValue]) -> int:
    """Returns the number of trailing destination operands: one per result, or none."""
    definition = op.definition
    results = len(op.results)
    if results == 0 or len(operands) < results or _takes_destination(definition):
        return 0
    if op.name == _EMPTY:
        return 0  # Defines destinations, and has none.
    if op.name.startswith("ttir.") and not definition.operands:
        # An initialized tensor is no destination of an op without operands.
        return results if all(map(_is_empty, operands)) else 0
    last = operands[len(operands) - results :]
    if any(a.type != b.type for a, b in zip(last, op.results, strict=True)):
        return 0
    if not set(last).isdisjoint(operands[: len(operands) - results]):
        return 0  # An operand that the op reads is no destination.
    segments = _explicit_segments(op)
    if segments is not None:
        return 0 if _fits(definition, segments) or segments[-1] != results else results
    least, most = _arity(definition)
    if most is not None and len(operands) > most:
        # A ttnn call has a tensor that was created as its destination.
        is_made = all(isinstance(value.owner, Operation) for value in last)
        return results if is_made or not op.name.startswith("ttnn.") else 0
    # With optional operands the count is ambiguous; but an uninitialized tensor of the result's
    # type is no bias or mask.
    flexible = most is None or least < most
    if flexible and len(operands) - results >= least and all(map(_is_empty, last)):
        return results
    return 0


def _takes_destination(definition: Definition) -> bool:
    """Returns whether the current definition has a destination among its operands."""
    return any(spec.name in ("output", "outputs") for spec in definition.operands)


def _arity(definition: Definition) -> tuple[int, int | None]:
    """Returns minimum and maximum number of operands; None for no maximum."""
    counts = [spec.count for spec in definition.operands]
    return counts.count("one"), None if "variadic" in counts else len(counts)


def _fits(definition: Definition, segments: Sequence[int]) -> bool:
    """Returns whether the segment sizes fit the current definition."""
    return len(segments) == len(definition.operands) and all(
        spec.count == "variadic" or size == 1 or (spec.count == "optional" and size == 0)
        for spec, size in zip(definition.operands, segments, strict=True)
    )


def _explicit_segments(op: CatalogueOp) -> list[int] | None:
    sizes: Attribute | None = op.properties.get(_SEGMENTS, op.attributes.get(_SEGMENTS))
    if not isinstance(sizes, DenseArrayBase):
        return None
    return [int(size) for size in sizes.iter_values()] or None


def _is_empty(value: SSAValue) -> bool:
    owner = value.owner
    return isinstance(owner, CatalogueOp) and (
        owner.name == _EMPTY or DESTINATION in owner.attributes
    )


def _update_in_place(op: CatalogueOp) -> None:
    """Removes the result of cache updates, which returned the cache until July 2026."""
    definition = op.definition
    if definition.in_place is None or definition.results != 0 or len(op.results) != 1:
        return
    position = [spec.name for spec in definition.operands].index(definition.in_place)
    if position >= len(op.operands):
        return
    cache = op.operands[position]
    if cache.type != op.results[0].type:
        return
    op.results[0].replace_all_uses_with(cache)
    block = op.parent
    if block is None:
        return
    updated = type(op).create(
        operands=op.operands,
        properties=op.properties,
        attributes=op.attributes,
        location=op.location,
    )
    updated.source_offset = op.source_offset
    block.insert_op_before(updated, op)
    op.detach()
    op.erase()


# Resolution order of nested aliases, and fast parsing of location aliases.

ALIAS = re.compile(r"[#!][A-Za-z_][\w$.-]*+")
_TEXT = r'"([^"\\\n\v\f]*+)"'
_PART = r"(#[A-Za-z_][\w$.-]*+)"
_LOCATION_DEFINITION = re.compile(
    r"[ \t]*+=[ \t]*+loc\((?:"
    rf"{_TEXT}(?:\({_PART}\))?"
    rf"|callsite\({_PART} at {_PART}\)"
    rf"|{_TEXT}:([0-9]{{1,9}}):([0-9]{{1,9}})(?: to (?:[0-9]{{1,9}})?:[0-9]{{1,9}})?"
    r")\)[ \t]*+$",
    re.MULTILINE | re.ASCII,
)
"""Definitions of locations as frameworks print them, one per line."""


def location_definition(
    text: str, offset: int, known: Mapping[str, Attribute]
) -> tuple[LocationAttr, int] | None:
    """Parses the location defined in the rest of a line; returns it with the offset after it.

    None for another form, or for parts that are no known locations. Modules of JAX have twice as
    many such lines as ops.

    Args:
        text: the module.
        offset: after the name of the alias.
        known: the definitions of aliases.
    """
    match = _LOCATION_DEFINITION.match(text, offset)
    if match is None:
        return None
    name, inner, callee, caller, file, line, column = match.groups()
    parts = [known.get(alias) for alias in (inner, callee, caller) if alias is not None]
    locations = [part for part in parts if isinstance(part, LocationAttr)]
    if len(locations) < len(parts):
        return None
    if name is not None:
        location = NameLoc(StringAttr(name), locations[0] if locations else NoneAttr())
    elif file is not None:
        location = FileLineColLoc(StringAttr(file), IntAttr(int(line)), IntAttr(int(column)))
    else:
        location = CallSiteLoc(*locations)
    return location, match.end()


def inner_aliases(
    name: str, text: str, offsets: Mapping[str, int], known: Container[str]
) -> list[str]:
    """Returns the aliases that one depends on, in post-order; empty if they are cyclic.

    Locations are chains as long as a traced call stack, which may exceed Python's recursion limit.

    Args:
        name: the alias.
        text: the text of the definitions.
        offsets: the offset of each alias.
        known: aliases that were parsed before.
    """
    order: dict[str, None] = {}
    begun = set[str]()
    waiting = [(name, False)]
    while waiting:
        each, has_parts = waiting.pop()
        if has_parts:
            order[each] = None
        elif each in begun:
            if each not in order:
                return []
        elif each in offsets and each not in known:
            begun.add(each)
            waiting.append((each, True))
            start = offsets[each] + len(each)
            end = text.find("\n", start)
            parts = ALIAS.finditer(text, start, end if end >= 0 else len(text))
            waiting.extend((match.group(), False) for match in parts)
    return [each for each in order if each != name]


SUFFIX_ID = r"(?:[0-9]++|[a-zA-Z$._-][a-zA-Z0-9$._-]*+)"
STRING = r'"(?:[^"\\\n\v\f]++|\\(?:["nt\\]|[0-9A-Fa-f]{2}))*+"'

_SKIP = re.compile(r"(?:[ \t\r\n\f\v]++|//[^\n]*+)*+")

# The order of the groups follows `_KINDS`; punctuation and the end of the file come last.
_TOKEN = re.compile(
    r"(?:[ \t\r\n\f\v]++|//[^\n]*+)*+(?:"
    r"([a-zA-Z_][a-zA-Z0-9_$.]*+)"
    rf"|(%{SUFFIX_ID})"
    r"|([0-9]++\.[0-9]*+(?:[eE][+-]?[0-9]++)?+)"
    r"|(0x[0-9a-fA-F]++|[0-9]++)"
    rf"|({STRING})"
    rf"|(@(?:[a-zA-Z_][a-zA-Z0-9_$.]*+|{STRING}))"
    rf"|(#(?!-\}}){SUFFIX_ID})"
    rf"|(!{SUFFIX_ID})"
    rf"|(\^{SUFFIX_ID})"
    r"|(\{-#|#-\}|\.\.\.|->|[:,=<>(){}\[\]?/*|+-])"
    r"|(\Z)"
    r")"
)

_KINDS = (
    MLIRTokenKind.EOF,  # groups count from 1
    MLIRTokenKind.BARE_IDENT,
    MLIRTokenKind.PERCENT_IDENT,
    MLIRTokenKind.FLOAT_LIT,
    MLIRTokenKind.INTEGER_LIT,
    MLIRTokenKind.STRING_LIT,
    MLIRTokenKind.AT_IDENT,
    MLIRTokenKind.HASH_IDENT,
    MLIRTokenKind.EXCLAMATION_IDENT,
    MLIRTokenKind.CARET_IDENT,
)
_STRING_GROUP = 5
_PUNCTUATION_GROUP = 10


class LexedToken(Token[MLIRTokenKind, str]):
    """A token by its offsets: `input.content[start:end]`."""

    def __init__(self, kind: MLIRTokenKind, start: int, end: int, input: Input[str]) -> None:
        self.kind = kind
        self.start = start
        self.end = end
        self.input = input

    @property
    def span(self) -> Span[str]:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Created on demand: a span per token would cost more than matching."""
        return Span(self.start, self.end, self.input)

    @property
    def text(self) -> str:
        return self.input.content[self.start : self.end]


def skip_blanks(text: str, offset: int) -> int:
    """Returns the offset of the next token at or after `offset`."""
    match = _SKIP.match(text, offset)
    assert match is not None  # the pattern matches the empty text
    return match.end()


class MLIRTextLexer(Lexer[MLIRTokenKind, str]):
    """Lexer of MLIR text; raises ParseError for invalid tokens."""

    def lex(self) -> LexedToken:
        text_input = self.input
        match = _TOKEN.match(text_input.content, self.pos)
        if match is None:
            raise self._no_token()
        group = match.lastindex
        assert group is not None  # exactly one group matches
        start, end = match.span(group)
        self.pos = end
        if group < _PUNCTUATION_GROUP:
            if group == _STRING_GROUP:
                return self._string(start, end)
            return LexedToken(_KINDS[group], start, end, text_input)
        if group == _PUNCTUATION_GROUP:
            kind = KIND_BY_PUNCTUATION_SPELLING[match.group(group)]
            return LexedToken(kind, start, end, text_input)
        # In xDSL's lexers, a position beyond the end means that the end was consumed.
        self.pos = end + 1
        return LexedToken(MLIRTokenKind.EOF, start, end, text_input)

    def _string(self, start: int, end: int) -> LexedToken:
        """Returns a string token, or a bytes token if its escapes are not UTF-8."""
        kind = MLIRTokenKind.STRING_LIT
        if self.input.content.find("\\", start, end) >= 0:
            try:
                StringLiteral(start, end, self.input).bytes_contents.decode()
            except UnicodeDecodeError:
                kind = MLIRTokenKind.BYTES_LIT
        return LexedToken(kind, start, end, self.input)

    def _no_token(self) -> ParseError:
        content = self.input.content
        start = skip_blanks(content, self.pos)
        character = content[start : start + 1]
        span = Span(start, start + 1, self.input)
        if character == '"' or content[start : start + 2] == '@"':
            return ParseError(span, "string literal is not closed, or has an invalid escape")
        if character in ("%", "#", "!", "^", "@"):
            return ParseError(span, f"expected a name after '{character}'")
        return ParseError(span, f"unexpected character {character!r}")
