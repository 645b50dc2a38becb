"""Parser of the projects' subset of C++: statements, calls, arguments, values."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
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
_PATH = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*|\[\w+\])*")
"""Variable or member path: `weights.layers[0].up.weight`."""
_BORROWING = frozenset(("last_use", "std::move"))
"""Functions that mark the last use of a variable."""


class Token(NamedTuple):
    """C++ token and its position in the text."""

    kind: str
    text: str
    start: int
    end: int


def tokens(text: str) -> list[Token]:
    """Tokens of a text, including comments and preprocessor directives."""
    found: list[Token] = []
    position = 0
    while position < len(text):
        matched = _TOKEN.match(text, position)
        if matched is None:
            # An unterminated quote.
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
    """Argument of a call."""

    label: str | None
    """Parameter name from a comment or a designator, if there is one."""
    words: tuple[str, ...]
    """Tokens without comments."""
    start: int
    end: int

    @property
    def text(self) -> str:
        """Text of the tokens with minimal spacing."""
        return joined(self.words)

    @property
    def variable(self) -> str | None:
        """Variable that is passed, possibly moved; None for other expressions."""
        words = self.words
        if len(words) == 4 and words[0] in _BORROWING and words[1] == "(":
            words = words[2:3]
        path = "".join(words)
        return path if _PATH.fullmatch(path) else None


@dataclass(frozen=True)
class Call:
    """Call with positional arguments, followed by fields of an options structure."""

    callee: str
    positional: tuple[Argument, ...]
    options: tuple[Argument, ...]
    options_span: tuple[int, int] | None
    """Range of the options' braces; None without options."""
    end: int
    """Position of the closing parenthesis."""


@dataclass(frozen=True)
class Statement:
    """Statement of a function, or declaration at namespace scope."""

    function: str
    """Enclosing function; empty at namespace scope."""
    words: tuple[str, ...]
    """Tokens without comments."""
    start: int
    end: int
    """Position after the semicolon."""
    target: str | None
    """Variable that is assigned or declared."""
    call: Call | None
    comments: tuple[Token, ...]
    """Comments above and inside, and a trailing one on the last line."""

    @property
    def variables(self) -> tuple[str, ...]:
        """Variables that the call reads, in argument order."""
        if self.call is None:
            return ()
        return tuple(v for each in self.call.positional if (v := each.variable) is not None)

    @property
    def is_declaration(self) -> bool:
        """Returns whether the statement declares the variable that it assigns."""
        return self.target is not None and self.words[0] != self.target


def joined(words: Sequence[str]) -> str:
    """Text of tokens."""
    text = ""
    for word in words:
        needs_space = text and (text[-1].isalnum() or text[-1] == "_") and re.match(r"\w", word)
        if needs_space or text.endswith((",", "=")) or (word == "=" and text):
            text += " "
        text += word
    return text


def braced_fields(words: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Designated initializers of a structure, by name: `T{.a = 1}` or `{.a = 1}`."""
    found = tokens(joined(words))
    opening = next((i for i, token in enumerate(found) if token.text == "{"), None)
    if opening is None:
        return {}
    inner = found[opening + 1 : _closing(found, opening)]
    fields = [_designated(each) for each in _arguments(inner, ())]
    return {each.label: each.words for each in fields if each.label is not None}


def call_in(words: Sequence[str]) -> Call | None:
    """Call that an expression consists of; None for another expression."""
    found = [token for token in tokens(joined(words)) if token.kind != "comment"]
    return _call(found, ())


@lru_cache(maxsize=64)
def statements(text: str) -> tuple[Statement, ...]:
    """Statements of a file in order, including nested blocks."""
    return tuple(_Reader(text).statements())


@lru_cache(maxsize=64)
def parameters_of_functions(text: str) -> Mapping[str, tuple[str, ...]]:
    """Parameter names of the functions that a file defines."""
    reader = _Reader(text)
    deque(reader.statements(), maxlen=0)
    return reader.parameters


class _Reader:
    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = tokens(text)
        self.parameters: dict[str, tuple[str, ...]] = {}
        """Parameter names of the functions that were read."""

    def statements(self) -> Iterator[Statement]:
        current: list[Token] = []
        comments: list[Token] = []
        blocks: list[str] = []
        """Function of each open block."""
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
                if not function and (name := _function_name(current)):
                    self.parameters[name] = _parameter_names(current)
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
    """Name before the first parenthesis; empty for a namespace or structure."""
    if current and current[0].text in _BLOCKS:
        return ""
    for before, token in pairwise(current):
        if token.text == "(":
            return before.text if before.kind == "name" else ""
    return ""


def _parameter_names(current: Sequence[Token]) -> tuple[str, ...]:
    """Names in the parameter list of a function; empty for one without a name."""
    opening = next(index for index, token in enumerate(current) if token.text == "(")
    parts = _arguments(current[opening + 1 : _closing(current, opening)], ())
    found: list[str] = []
    for each in parts:
        words = each.words[: each.words.index("=")] if "=" in each.words else each.words
        name = words[-1] if len(words) > 1 else ""
        found.append(name if _PATH.fullmatch(name) else "")
    return tuple(found)


def _statement(
    function: str, current: Sequence[Token], end: Token, comments: Sequence[Token]
) -> Statement:
    words = tuple(token.text for token in current)
    target, value = _assignment(current)
    call = _call(value, comments)
    return Statement(function, words, current[0].start, end.end, target, call, tuple(comments))


def _assignment(current: Sequence[Token]) -> tuple[str | None, Sequence[Token]]:
    """Assigned variable and the tokens of its value."""
    depth = 0
    for index, token in enumerate(current):
        if token.text == "=" and depth == 0 and index:
            before = current[index - 1]
            if before.text == "]":
                names = [each.text for each in current[:index] if each.kind == "name"]
                return ",".join(names[1:]), current[index + 1 :]
            member = "".join(each.text for each in current[:index])
            if current[index - 2].text == "." and _PATH.fullmatch(member):
                return member, current[index + 1 :]
            return (before.text if before.kind == "name" else None), current[index + 1 :]
        if token.text == "{" and depth == 0 and index and current[0].text in ("const", "inline"):
            # A brace-initialized constant.
            before = current[index - 1]
            return (before.text if before.kind == "name" else None), current[index:]
        if token.text in _OPENING:
            depth += 1
        elif token.text in _CLOSING:
            depth -= 1
    value = current[1:] if current and current[0].text == "return" else current
    return None, value


def _call(value: Sequence[Token], comments: Sequence[Token]) -> Call | None:
    """Parses an expression as a call, possibly with selection of a result; None for others."""
    value = _strip_selection(value)
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


def _strip_selection(value: Sequence[Token]) -> Sequence[Token]:
    """Strips the selection of a result: `std::get<0>(call)`, `call[0]`."""
    if [token.text for token in value[:2]] == ["std::get", "<"] and len(value) > 6:
        if value[4].text == "(" and _closing(value, 4) == len(value) - 1:
            return value[5:-1]
    elif len(value) > 4 and [value[-3].text, value[-1].text] == ["[", "]"]:
        return value[:-3]
    return value


def _designated(argument: Argument) -> Argument:
    """Converts an argument `.name = value` to a labelled one."""
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
    """Position of the `>` of template arguments; -1 for a comparison."""
    depth = 0
    for index in range(opening, len(value)):
        text = value[index].text
        if _IN_TEMPLATE.fullmatch(text) is None and text not in ("::",):
            return -1
        depth += {"<": 1, ">": -1}.get(text, 0)
        if depth == 0:
            return index
    return -1


TUNING = "tuning::"
"""Namespace of the constants of tuning.hpp."""
NOTHING = frozenset(("std::nullopt", "{}", ""))
"""Values that leave a choice to the library."""

KINDS = {
    "memory_config": "memory",
    "dtype": "data type",
    "program_config": "program configuration",
    "conv_config": "configuration of the convolution",
    "compute_kernel_config": "compute configuration",
    "compute_config": "compute configuration",
    "activation": "activation",
    "core_grid": "grid of cores",
    "lhs_activations": "activation of an operand",
    "rhs_activations": "activation of an operand",
    "post_activations": "activation",
}
"""Parameters that configure a call without changing its result, with their description."""
ACTIVATIONS = frozenset(("activation", "lhs_activations", "rhs_activations", "post_activations"))
CONFIGURATIONS = frozenset(("program_config", "conv_config"))
"""Configurations that may apply an activation as well."""
APPLIED_AFTER = frozenset(("activation", "post_activations"))
"""Activations of the result, which the optimizer fuses as well."""
BINARY_ACTIVATIONS = {5: "post_activations", 6: "lhs_activations", 7: "rhs_activations"}
"""Argument positions of activations of binary ops (binary.hpp of all releases)."""


def same_parameter(one: str | None, other: str) -> bool:
    """Returns whether two parameter names are spellings of one parameter."""
    return one is not None and one.replace("_kernel_", "_") == other.replace("_kernel_", "_")


@dataclass(frozen=True)
class Constant:
    """Constant of tuning.hpp."""

    name: str
    type_words: tuple[str, ...]
    value: tuple[str, ...]
    statement: Statement


def constants_of(declared: Sequence[Statement]) -> dict[str, Constant]:
    """Constants among the declarations of a file, by name."""
    found: dict[str, Constant] = {}
    for each in declared:
        if each.function or each.target is None or each.words[0] not in ("const", "inline"):
            continue
        place = each.words.index(each.target)
        value = each.words[place + 1 :]
        value = value[1:] if value[:1] == ("=",) else value
        found[each.target] = Constant(each.target, each.words[:place], tuple(value), each)
    return found


def kind_of(words: Sequence[str], constants: Mapping[str, Constant]) -> str | None:
    """Decision parameter of a value by its type, None if it has none."""
    text = joined(words)
    constant = constants.get(text.removeprefix(TUNING)) if text.startswith(TUNING) else None
    if constant is not None:
        text = " ".join(constant.type_words)
    if text.startswith('"'):
        return "activation"
    return next((kind for word, kind in _KINDS_OF_TYPES.items() if word in text), None)


def activation_named(words: Sequence[str]) -> str | None:
    """Activation that a value names: `"silu"`, or a unary op."""
    text = joined(words)
    if text.startswith('"'):
        return text.strip('"')
    marked = [word for word in words if "UnaryOpType::" in word]
    return marked[0].rpartition("::")[2].lower() if len(marked) == 1 else None


def activation_of(words: Sequence[str], constants: Mapping[str, Constant]) -> str:
    """Activation that a value names, or that a configuration applies; empty without one."""
    constant = constants.get(joined(words).removeprefix(TUNING))
    value = words if constant is None else constant.value
    given = braced_fields(value)
    if not given:
        return activation_named(value) or ""
    text = joined(given.get("activation", given.get("fused_activation", ())))
    named = re.search(r"UnaryOpType::(\w+)", text)
    if named is not None:
        return named[1].lower()
    return "" if text in NOTHING else text.rpartition("::")[2].rstrip(")}").lower()


def applied_after(statement: Statement, constants: Mapping[str, Constant]) -> str:
    """Activation that a call applies to its result, by a setting or by its configuration; empty
    without one."""
    call = statement.call
    if call is None:
        return ""
    for index, each in enumerate((*call.positional, *call.options)):
        kind = each.label if each.label in KINDS else kind_of(each.words, constants)
        if kind in ACTIVATIONS and each.label not in KINDS:
            kind = BINARY_ACTIVATIONS.get(index, kind)
        if kind in APPLIED_AFTER or kind in CONFIGURATIONS:
            found = activation_of(each.words, constants)
            if found:
                return found
    return ""


_KINDS_OF_TYPES = {
    "UnaryWithParam": "lhs_activations",
    "MemoryConfig": "memory_config",
    "MEMORY_CONFIG": "memory_config",
    "KernelConfig": "compute_kernel_config",
    "ProgramConfig": "program_config",
    "Conv2dConfig": "conv_config",
    "DataType": "dtype",
}
"""Decision parameter by a substring of the value's type."""
