"""Reads the subset of C++ that projects consist of: statements, calls and their arguments."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

# Own, and no package: tree-sitter-cpp 0.23 with tree-sitter 0.26 (MIT, 5.7 MB unpacked) and
# libclang 18 (Apache, 64 MB) give trees of all of C++, of which statements, calls and labelled
# arguments would have to be made here as well.

_TOKEN = re.compile(
    r"""(?P<space>\s+)
    | (?P<directive>\#[^\n]*(?:\\\n[^\n]*)*)
    | (?P<comment>//[^\n]*|/\*.*?\*/)
    | (?P<string>R"(?P<mark>[^()\\\s]{0,16})\(.*?\)(?P=mark)"
        |"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')
    | (?P<number>\.?\d(?:[eEpP][+-]|[\w.'])*)
    | (?P<name>[A-Za-z_]\w*(?:::[A-Za-z_]\w*)*)
    | (?P<punctuation>::|->|[^\s\w])""",
    re.VERBOSE | re.DOTALL,
)
_OPENING = {"(": ")", "[": "]", "{": "}"}
_CLOSING = frozenset(_OPENING.values())
_LABEL = re.compile(r"/\*\s*(\w+)\s*=?\s*\*/")
_IN_TEMPLATE = re.compile(r"[A-Za-z_][\w:]*|\d+|[,*&<>]")
_BLOCKS = frozenset(
    ("namespace", "extern", "struct", "class", "union", "enum", "do", "else", "try")
)
_TRAILING = frozenset((")", "const", "noexcept", "override"))
"""Tokens between a parameter list and the body of a function."""
_BORROWING = frozenset(("last_use", "std::move"))
"""Functions that only say that a variable is not used any more."""


class Token(NamedTuple):
    """A token of C++ and its place in the text."""

    kind: str
    text: str
    start: int
    end: int


def tokens(text: str) -> list[Token]:
    """The tokens of a text, comments and directives of the preprocessor among them."""
    found: list[Token] = []
    position = 0
    while position < len(text):
        matched = _TOKEN.match(text, position)
        if matched is None:
            # A quote without its end.
            found.append(Token("punctuation", text[position], position, position + 1))
            position += 1
            continue
        kind = matched.lastgroup or "punctuation"
        if matched["string"] is not None:
            kind = "string"
        if kind != "space":
            found.append(Token(kind, matched.group(), *matched.span()))
        position = matched.end()
    return found


@dataclass(frozen=True)
class Argument:
    """An argument of a call."""

    label: str | None
    """The name of the parameter where the text has it: in a comment, or as a designator."""
    words: tuple[str, ...]
    """The tokens without comments."""
    start: int
    end: int

    @property
    def text(self) -> str:
        """The tokens with spaces only where they are needed."""
        return joined(self.words)

    @property
    def variable(self) -> str | None:
        """The variable that is passed, moved or not; None for other expressions."""
        words = self.words
        if len(words) == 4 and words[0] in _BORROWING and words[1] == "(":
            words = words[2:3]
        is_name = len(words) == 1 and re.fullmatch(r"[A-Za-z_]\w*", words[0]) is not None
        if len(words) == 3 and words[1] == ".":
            return "".join(words)
        return words[0] if is_name else None


@dataclass(frozen=True)
class Call:
    """A call with its positional arguments, and the fields of the options that follow them."""

    callee: str
    positional: tuple[Argument, ...]
    options: tuple[Argument, ...]
    options_span: tuple[int, int] | None
    """The braces of the options; None without any."""
    end: int
    """The place of the closing parenthesis."""


@dataclass(frozen=True)
class Statement:
    """A statement of a function, or a declaration outside of all functions."""

    function: str
    """The function; empty outside of all of them."""
    words: tuple[str, ...]
    """The tokens without comments."""
    start: int
    end: int
    """The place after its semicolon."""
    target: str | None
    """The variable that is assigned or declared."""
    call: Call | None
    comments: tuple[Token, ...]
    """Comments above it and inside of it, and the one after it on its last line."""

    @property
    def variables(self) -> tuple[str, ...]:
        """The variables that the call reads, in the order of its arguments."""
        if self.call is None:
            return ()
        return tuple(v for each in self.call.positional if (v := each.variable) is not None)

    @property
    def is_declaration(self) -> bool:
        """True if the statement declares the variable that it assigns."""
        return self.target is not None and self.words[0] != self.target


def joined(words: Sequence[str]) -> str:
    """Tokens as text."""
    text = ""
    for word in words:
        needs_space = text and (text[-1].isalnum() or text[-1] == "_") and re.match(r"\w", word)
        if needs_space or text.endswith((",", "=")) or (word == "=" and text):
            text += " "
        text += word
    return text


def braced_fields(words: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """The designated fields of a structure, by name: `T{.a = 1}` or `{.a = 1}`."""
    found = tokens(joined(words))
    opening = next((i for i, token in enumerate(found) if token.text == "{"), None)
    if opening is None:
        return {}
    inner = found[opening + 1 : _closing(found, opening)]
    fields = [_designated(each) for each in _arguments(inner, ())]
    return {each.label: each.words for each in fields if each.label is not None}


@lru_cache(maxsize=64)
def statements(text: str) -> tuple[Statement, ...]:
    """The statements of a file in their order, those of nested blocks included."""
    return tuple(_Reader(text).statements())


class _Reader:
    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = tokens(text)

    def statements(self) -> Iterator[Statement]:
        current: list[Token] = []
        comments: list[Token] = []
        blocks: list[str] = []
        """The function of each block that is open."""
        depth = 0
        last: Statement | None = None
        for token in self._tokens:
            if token.kind == "directive" and not current:
                comments.clear()
                last = None
                continue
            if token.kind == "comment":
                if last is not None and not current and self._same_line(last.end, token.start):
                    last = _with_comment(last, token)
                else:
                    comments.append(token)
                continue
            if last is not None:
                yield last
                last = None
            function = blocks[-1] if blocks else ""
            if depth == 0 and token.text == "{" and _opens_block(current):
                blocks.append(function or _function_name(current))
                current, comments = [], []
                continue
            if depth == 0 and token.text == "}":
                if blocks:
                    blocks.pop()
                current, comments = [], []
                continue
            if depth == 0 and token.text == ";":
                if current:
                    last = _statement(function, current, token, comments)
                current, comments = [], []
                continue
            if token.text in _OPENING:
                depth += 1
            elif token.text in _CLOSING:
                depth = max(0, depth - 1)
            current.append(token)
        if last is not None:
            yield last

    def _same_line(self, start: int, end: int) -> bool:
        return "\n" not in self._text[start:end]


def _with_comment(statement: Statement, comment: Token) -> Statement:
    return replace(statement, comments=(*statement.comments, comment))


def _opens_block(current: Sequence[Token]) -> bool:
    if not current:
        return True
    return current[0].text in _BLOCKS or current[-1].text in _TRAILING


def _function_name(current: Sequence[Token]) -> str:
    """The name before the first parenthesis; empty for a namespace or a structure."""
    if current and current[0].text in _BLOCKS:
        return ""
    for before, token in pairwise(current):
        if token.text == "(":
            return before.text if before.kind == "name" else ""
    return ""


def _statement(
    function: str, current: Sequence[Token], end: Token, comments: Sequence[Token]
) -> Statement:
    words = tuple(token.text for token in current)
    target, value = _assignment(current)
    call = _call(value, comments)
    return Statement(function, words, current[0].start, end.end, target, call, tuple(comments))


def _assignment(current: Sequence[Token]) -> tuple[str | None, Sequence[Token]]:
    """The variable that is assigned, and what it becomes."""
    depth = 0
    for index, token in enumerate(current):
        if token.text == "=" and depth == 0 and index:
            before = current[index - 1]
            if before.text == "]":
                names = [each.text for each in current[:index] if each.kind == "name"]
                return ",".join(names[1:]), current[index + 1 :]
            return (before.text if before.kind == "name" else None), current[index + 1 :]
        if token.text == "{" and depth == 0 and index and current[0].text in ("const", "inline"):
            # A constant with its value in braces.
            before = current[index - 1]
            return (before.text if before.kind == "name" else None), current[index:]
        if token.text in _OPENING:
            depth += 1
        elif token.text in _CLOSING:
            depth -= 1
    value = current[1:] if current and current[0].text == "return" else current
    return None, value


def _call(value: Sequence[Token], comments: Sequence[Token]) -> Call | None:
    """The call that an expression is, or that it takes one of several results of; None if it is
    something else."""
    value = _without_choice(value)
    if len(value) < 3 or value[0].kind != "name" or value[1].text != "(":
        return None
    if value[-1].text != ")" or _closing(value, 1) != len(value) - 1:
        return None
    parts = _arguments(value[2:-1], comments)
    options: tuple[Argument, ...] = ()
    span: tuple[int, int] | None = None
    if parts and parts[-1].words[:1] == ("{",) and parts[-1].words[1:2] == (".",):
        last = parts.pop()
        inner = [t for t in value if last.start < t.start and t.end < last.end]
        options = tuple(_designated(each) for each in _arguments(inner, comments))
        span = last.start, last.end
    return Call(value[0].text, tuple(parts), options, span, value[-1].start)


def _without_choice(value: Sequence[Token]) -> Sequence[Token]:
    """A call without what takes one of its results: `std::get<0>(call)`, `call[0]`."""
    if [token.text for token in value[:2]] == ["std::get", "<"] and len(value) > 6:
        if value[4].text == "(" and _closing(value, 4) == len(value) - 1:
            return value[5:-1]
    elif len(value) > 4 and [value[-3].text, value[-1].text] == ["[", "]"]:
        return value[:-3]
    return value


def _designated(argument: Argument) -> Argument:
    """An argument `.name = value` as one with a label."""
    words = argument.words
    if len(words) > 3 and words[0] == "." and words[2] == "=":
        return Argument(words[1], words[3:], argument.start, argument.end)
    return argument


def _closing(value: Sequence[Token], opening: int) -> int:
    depth = 0
    for index in range(opening, len(value)):
        if value[index].text in _OPENING:
            depth += 1
        elif value[index].text in _CLOSING:
            depth -= 1
            if depth == 0:
                return index
    return -1


def _arguments(value: Sequence[Token], comments: Sequence[Token]) -> list[Argument]:
    parts: list[list[Token]] = [[]]
    depth, template_end = 0, -1
    for index, token in enumerate(value):
        if token.text in _OPENING:
            depth += 1
        elif token.text in _CLOSING:
            depth -= 1
        elif token.text == "<" and index > template_end:
            template_end = _template_end(value, index)
        elif token.text == "," and depth == 0 and index > template_end:
            parts.append([])
            continue
        parts[-1].append(token)
    found: list[Argument] = []
    previous = value[0].start - 1 if value else 0
    for part in parts:
        if not part:
            continue
        start, end = part[0].start, part[-1].end
        label = next(
            (
                m[1]
                for c in comments
                if previous <= c.start < start and (m := _LABEL.fullmatch(c.text))
            ),
            None,
        )
        found.append(Argument(label, tuple(token.text for token in part), start, end))
        previous = end
    return found


def _template_end(value: Sequence[Token], opening: int) -> int:
    """The place of the `>` of template arguments; -1 if it is a comparison."""
    depth = 0
    for index in range(opening, len(value)):
        text = value[index].text
        if _IN_TEMPLATE.fullmatch(text) is None and text not in ("::",):
            return -1
        depth += {"<": 1, ">": -1}.get(text, 0)
        if depth == 0:
            return index
    return -1
