"""Calls of generated C++ with other arguments, rendered as statements."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from ttcodegen.project.tuning.statements import Argument, Statement


@dataclass
class EditedNode:
    """Generated call with edited arguments."""

    text: str
    statement: Statement
    positional: list[str] = field(default_factory=list[str])
    options: dict[str, str] = field(default_factory=dict[str, str])
    target: str | None = None
    comments: list[str] = field(default_factory=list[str])
    changed: bool = False

    def __post_init__(self) -> None:
        call = self.statement.call
        assert call is not None
        self.target = self.statement.target
        self.positional = [source_of(self.text, each) for each in call.positional]
        self.options = {
            each.label: self.text[each.start : each.end].partition("=")[2].strip()
            for each in call.options
            if each.label is not None
        }

    def render(self) -> str:
        """Renders the statement."""
        statement, call = self.statement, self.statement.call
        assert call is not None
        head = self.text[statement.start : statement.end]
        head = head[: re.search(re.escape(call.callee) + r"\s*\(", head).end()]  # pyright: ignore[reportOptionalMemberAccess]
        if self.target != statement.target and statement.target is not None:
            before, name, after = head.partition(statement.target)
            head = f"{before}{self.target}{after}" if name else head
        arguments = list(self.positional)
        if self.options:
            # Designated initializers have to be in the order of declaration.
            order = option_names(self.text, call.callee)
            names = [*(n for n in order if n in self.options), *(self.options.keys() - set(order))]
            fields = ", ".join(f".{name} = {self.options[name]}" for name in names)
            arguments.append(f"{{{fields}}}")
        return f"{head}{', '.join(arguments)}{self.text[call.end : statement.end]}"


def option_names(text: str, callee: str) -> list[str]:
    """Fields of a function's options, in the order of declaration."""
    name = callee.rpartition("::")[2]
    options = re.search(rf"\b{name}\([^;{{}}]*?const (\w+)& options", text)
    declared = options and re.search(rf"struct {options[1]} {{(.*?)\n}};", text, re.DOTALL)
    return re.findall(r"(\w+)\s*=", declared[1]) if declared else []


def source_of(text: str, argument: Argument, start: int = 0) -> str:
    """Text of an argument with its label, from a text that begins at a position of its file."""
    value = text[argument.start - start : argument.end - start]
    return f"/*{argument.label}=*/{value}" if argument.label else value
