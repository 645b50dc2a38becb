"""The tokens of MLIR text, one regular expression match per token.

Gives the token kinds of xDSL's `MLIRLexer`, so that xDSL's parser runs on it unchanged; tokens keep
offsets and make their text and `Span` only when asked.
"""

from __future__ import annotations

import re

from xdsl.utils.exceptions import ParseError
from xdsl.utils.lexer import Input, Lexer, Span, Token
from xdsl.utils.mlir_lexer import (
    KIND_BY_PUNCTUATION_SPELLING,
    MLIRTokenKind,
    StringLiteral,
)

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
_END_GROUP = 11


class LexedToken(Token[MLIRTokenKind, str]):
    """A token by its offsets: `input.content[start:end]`."""

    def __init__(self, kind: MLIRTokenKind, start: int, end: int, input: Input[str]) -> None:
        self.kind = kind
        self.start = start
        self.end = end
        self.input = input

    @property
    def span(self) -> Span[str]:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The base class stores a span; making one per token costs more than the match."""
        return Span(self.start, self.end, self.input)

    @property
    def text(self) -> str:
        return self.input.content[self.start : self.end]


def skip_blanks(text: str, offset: int) -> int:
    """The offset of the next token at or after `offset`."""
    match = _SKIP.match(text, offset)
    assert match is not None  # the pattern matches the empty text
    return match.end()


class MLIRTextLexer(Lexer[MLIRTokenKind, str]):
    """Lexes MLIR text; raises ParseError at what is no token."""

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
        # A position beyond the end is how xDSL's lexers say that the end was consumed.
        self.pos = end + 1
        return LexedToken(MLIRTokenKind.EOF, start, end, text_input)

    def _string(self, start: int, end: int) -> LexedToken:
        """A string literal is text unless its escapes give bytes that are not UTF-8."""
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
