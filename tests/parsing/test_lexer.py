"""The lexer gives the tokens of xDSL's lexer, and refuses what is no token."""

from __future__ import annotations

import pytest
from xdsl.utils.exceptions import ParseError
from xdsl.utils.lexer import Input, Lexer
from xdsl.utils.mlir_lexer import MLIRLexer, MLIRTokenKind

from ttcodegen.parsing.tokens import MLIRTextLexer

TEXT = r"""
#map = affine_map<(d0, d1) -> (d0 * 2, d1 floordiv 3)> // a comment, "not" a %token
!t = tensor<2x?x0x10xbf16, #enc<"a\"b">>
module @"quoted name" attributes {a.b = 0xFF : f32, c = -1.5e-3, d = 1., e} {
  %0:2, %$x.y-z = "ttir.op"(%arg0#1, %0) ({^bb0(%a: i1): }) : (i1) -> (f8E4M3FN)
} {-# dialect_resources: {} #-} ... |?*+/-
"""


def tokens(lexer: Lexer[MLIRTokenKind, str]) -> list[tuple[MLIRTokenKind, str]]:
    found: list[tuple[MLIRTokenKind, str]] = []
    while True:
        token = lexer.lex()
        found.append((token.kind, token.text))
        if token.kind is MLIRTokenKind.EOF:
            return found


def test_tokens_are_those_of_xdsl() -> None:
    source = Input(TEXT, "in.mlir")
    assert tokens(MLIRTextLexer(source)) == tokens(MLIRLexer(source))


def test_spans_cover_the_text_of_their_tokens() -> None:
    lexer = MLIRTextLexer(Input("  abc  ", "in.mlir"))
    span = lexer.lex().span
    assert (span.start, span.end, span.text) == (2, 5, "abc")


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (r'"plain"', MLIRTokenKind.STRING_LIT),
        (r'"caf\C3\A9"', MLIRTokenKind.STRING_LIT),
        (r'"\FF\00"', MLIRTokenKind.BYTES_LIT),
    ],
)
def test_escaped_utf8_is_text(text: str, kind: MLIRTokenKind) -> None:
    assert MLIRTextLexer(Input(text, "in.mlir")).lex().kind is kind


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('"open', "string literal is not closed"),
        (r'"\q"', "string literal is not closed"),
        ('@"open', "string literal is not closed"),
        ("% x", "expected a name after '%'"),
        ("#", "expected a name after '#'"),
        ("é", "unexpected character 'é'"),
        ("..", "unexpected character '.'"),
    ],
)
def test_what_is_no_token_is_refused(text: str, message: str) -> None:
    with pytest.raises(ParseError) as caught:
        MLIRTextLexer(Input("  " + text, "in.mlir")).lex()
    assert message in caught.value.msg
    assert caught.value.span.start == 2
