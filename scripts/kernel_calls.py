"""The calls of a kernel in the order in which they run, as far as its text says so."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

_TOKEN = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"\(.*?\)"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\''
    r"|[A-Za-z_]\w*(?:::[A-Za-z_]\w*)*|\d[\w.']*|\n|\S",
    re.DOTALL,
)
_KEYWORDS = frozenset({"if", "for", "while", "switch", "return", "sizeof", "static_assert"})


@dataclass(frozen=True)
class Call:
    """A call by name.

    Attributes:
        template: its template arguments as they are written.
        line: in the file that it is written in.
    """

    name: str
    template: str
    file: Path
    line: int


@dataclass(frozen=True)
class Choice:
    """Statements of which one list runs."""

    branches: tuple[Statements, ...]


@dataclass(frozen=True)
class Loop:
    """Statements that run any number of times."""

    body: Statements


@dataclass(frozen=True)
class End:
    """The end of the function, by return."""


Statement: TypeAlias = "Call | Choice | Loop | End"
Statements: TypeAlias = "tuple[Statement, ...]"


@dataclass(frozen=True)
class _Token:
    text: str
    line: int


def _tokens(text: str) -> list[_Token]:
    found: list[_Token] = []
    line = 1
    continued = False
    directive = False
    for match in _TOKEN.finditer(text):
        word = match[0]
        if word == "\n":
            line += 1
            directive = directive and continued
            continued = False
            continue
        if word == "#":
            directive = True
        continued = word == "\\"
        if not directive and not word.startswith(("//", "/*")):
            found.append(_Token(word, line))
        line += word.count("\n")
    return found


@dataclass
class KernelText:
    """The functions of a kernel and of its own headers.

    Attributes:
        defines: the macros that the kernel is compiled with.
        functions: by name, what each does.
    """

    defines: Mapping[str, str]
    functions: dict[str, Statements] = field(default_factory=dict[str, Statements])

    def add(self, path: Path) -> None:
        """Reads the functions of a file."""
        text = self._chosen(path.read_text("utf-8", "replace"))
        words = {name: value for name, value in self.defines.items() if value.strip()}
        if words:
            names = re.compile(rf"\b({'|'.join(map(re.escape, words))})\b")
            text = names.sub(lambda match: words[match[0]].replace("\n", " "), text)
        _Reader(path, _tokens(text), self.functions).file()

    def _chosen(self, text: str) -> str:
        """The text with empty lines in place of what conditions on macros leave out."""
        kept: list[str] = []
        levels: list[bool] = []
        for line in text.splitlines():
            directive = re.match(r"\s*#\s*(ifdef|ifndef|if|elif|else|endif)\b(.*)", line)
            if directive is None:
                kept.append("" if False in levels else line)
                continue
            kept.append("")
            word, condition = directive.groups()
            if word.startswith("if"):
                holds = self._holds(condition if word == "if" else f"defined({condition.strip()})")
                levels.append(holds != (word == "ifndef"))
            elif word == "endif" and levels:
                levels.pop()
            elif levels:
                levels[-1] = not levels[-1] and (word == "else" or self._holds(condition))
        return "\n".join(kept)

    def _holds(self, condition: str) -> bool:
        """True if a condition holds; one that cannot be evaluated does."""
        known = re.sub(
            r"(!?)\s*defined\s*\(?\s*(\w+)\s*\)?",
            lambda found: str(int((found[2] in self.defines) != bool(found[1]))),
            condition,
        )
        known = re.sub(r"[A-Za-z_]\w*", lambda found: self.defines.get(found[0], "0"), known)
        if not re.fullmatch(r"[\d\s()<>=!&|+*-]+", known) or re.search(r"\d\s*\(", known):
            return True
        known = known.replace("&&", " and ").replace("||", " or ")
        try:
            return bool(eval(re.sub(r"!(?!=)", " not ", known), {"__builtins__": {}}))
        except (SyntaxError, TypeError, NameError):
            return True


@dataclass
class _Reader:
    """Reads statements off the tokens of a file."""

    path: Path
    tokens: Sequence[_Token]
    functions: dict[str, Statements]
    at: int = 0

    @property
    def word(self) -> str:
        return self.tokens[self.at].text if self.at < len(self.tokens) else ""

    def file(self) -> None:
        """All functions that are defined in the file, also in namespaces and classes."""
        while self.at < len(self.tokens):
            if self.word == "{" and (name := self._function_before()):
                # An overload adds to what the name may stand for.
                known = self.functions.get(name)
                read = self._block()
                self.functions[name] = read if known is None else (Choice((known, read)),)
            else:
                self.at += 1

    def _function_before(self) -> str:
        """The name of the function whose body starts here; nothing if it is no function's."""
        at = self.at - 1
        while at > 0 and self.tokens[at].text in ("const", "noexcept", "override"):
            at -= 1
        if at < 1 or self.tokens[at].text != ")":
            return ""
        depth = 0
        while at >= 0:
            depth += (self.tokens[at].text == ")") - (self.tokens[at].text == "(")
            if depth == 0:
                break
            at -= 1
        name = self.tokens[at - 1].text if at > 0 else ""
        return name if re.fullmatch(r"[A-Za-z_]\w*", name) and name not in _KEYWORDS else ""

    def _block(self) -> Statements:
        """The statements between braces; the first of them is next."""
        self.at += 1
        found: list[Statement] = []
        while self.at < len(self.tokens) and self.word != "}":
            found += self._statement()
        self.at += 1
        return tuple(found)

    def _statement(self) -> Statements:
        match self.word:
            case "{":
                return self._block()
            case "if":
                return self._if()
            case "for" | "while":
                self.at += 1
                head = self._group()
                return (*head, Loop((*self._statement(), *head)))
            case "do":
                self.at += 1
                body = self._statement()
                return (*body, Loop(body), *self._expression())
            case "switch":
                self.at += 1
                head = self._group()
                return (*head, Choice((self._statement(), ())))
            case "return":
                return (*self._expression(), End())
            case _:
                return self._expression()

    def _if(self) -> Statements:
        self.at += 1
        if self.word == "constexpr":
            self.at += 1
        head = self._group()
        then = self._statement()
        other: Statements = ()
        if self.word == "else":
            self.at += 1
            other = self._statement()
        return (*head, Choice((then, other)))

    def _group(self) -> Statements:
        """The calls between parentheses, the first of which is next."""
        start, depth = self.at, 0
        while self.at < len(self.tokens):
            depth += (self.word == "(") - (self.word == ")")
            self.at += 1
            if depth == 0:
                break
        return tuple(self._calls(start + 1, self.at - 1))

    def _expression(self) -> Statements:
        """A statement that ends with a semicolon; a lambda in it is a function."""
        start, depth = self.at, 0
        found: list[Statement] = []
        while self.at < len(self.tokens):
            word = self.word
            if word == "{":
                found += self._calls(start, self.at)
                name = self._lambda_name(start)
                body = self._block()
                if name:
                    self.functions[name] = body
                else:
                    found += body
                start = self.at
                continue
            if word == "}":
                break
            depth += (word in "([") - (word in ")]") if len(word) == 1 else 0
            self.at += 1
            if word == ";" and depth <= 0:
                break
            if word == ":" and depth == 0 and self.tokens[start].text in ("case", "default"):
                break
        found += self._calls(start, self.at)
        return tuple(found)

    def _lambda_name(self, start: int) -> str:
        words = [token.text for token in self.tokens[start : self.at]]
        if "=" in words and "[" in words[words.index("=") :]:
            return words[words.index("=") - 1]
        return ""

    def _calls(self, start: int, end: int) -> Iterator[Call]:
        """The calls in an expression; those in arguments come before the call."""
        found: list[tuple[int, Call]] = []
        for at in range(start, end):
            token = self.tokens[at]
            if not re.match(r"[A-Za-z_]", token.text) or token.text in _KEYWORDS:
                continue
            opening, template = self._template(at + 1, end)
            if opening < end and self.tokens[opening].text == "(":
                name = token.text.rpartition("::")[2]
                found.append(
                    (self._close(opening, end), Call(name, template, self.path, token.line))
                )
        yield from (call for _, call in sorted(found, key=lambda each: each[0]))

    def _close(self, opening: int, end: int) -> int:
        depth = 0
        for at in range(opening, end):
            depth += (self.tokens[at].text == "(") - (self.tokens[at].text == ")")
            if depth == 0:
                return at
        return end

    def _template(self, at: int, end: int) -> tuple[int, str]:
        """The start of the arguments of a call, and its template arguments."""
        if at >= end or self.tokens[at].text != "<":
            return at, ""
        depth = 0
        for close in range(at, min(end, at + 80)):
            word = self.tokens[close].text
            depth += (word == "<") - (word == ">")
            if word in (";", "{", "&", "|"):
                break
            if depth == 0:
                words = [token.text for token in self.tokens[at + 1 : close]]
                return close + 1, "".join(words).replace(",", ", ")
        return at, ""


def flattened(
    statements: Statements, functions: Mapping[str, Statements], within: tuple[str, ...] = ()
) -> Statements:
    """Statements with the kernel's own functions in place of the calls to them."""
    found: list[Statement] = []
    for statement in statements:
        match statement:
            case Call(name) if name in functions and name not in within:
                body = flattened(functions[name], functions, (*within, name))
                # A return leaves that function only.
                found.append(Choice((body,)))
            case Choice(branches):
                inner = tuple(flattened(branch, functions, within) for branch in branches)
                found.append(Choice(inner))
            case Loop(body):
                found.append(Loop(flattened(body, functions, within)))
            case _:
                found.append(statement)
    return tuple(found)
