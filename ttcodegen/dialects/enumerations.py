"""Attributes that are one word of a list: `#ttkernel.reduce_type<reduce_sum>`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from xdsl.ir import Data
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.str_enum import StrEnum


class WordAttribute(Data[StrEnum]):
    """An enumeration written as `<word>`; each subclass has a `name` and its `words`."""

    words: ClassVar[type[StrEnum]]
    older_words: ClassVar[Mapping[str, str]] = {}
    """Former spellings, which are read but not written, and today's."""

    def print_parameter(self, printer: Printer) -> None:
        printer.print_string(f"<{self.data.value}>")

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> StrEnum:
        with parser.in_angle_brackets():
            return cls.parse_word(parser)

    @classmethod
    def parse_word(cls, parser: AttrParser) -> StrEnum:
        """The word alone, as enclosing attributes write it."""
        position = parser.pos
        word = parser.parse_identifier()
        try:
            return cls.words(cls.older_words.get(word, word))
        except ValueError:
            known = ", ".join(member.value for member in cls.words)
            parser.raise_error(f"#{cls.name} is one of {known}, not {word}", position)
