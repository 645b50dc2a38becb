"""Attributes that are one word of a list: `#ttkernel.reduce_type<reduce_sum>`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Generic, TypeVar, cast, get_args

from xdsl.ir import Data
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.str_enum import StrEnum

Word = TypeVar("Word", bound=StrEnum)


class WordAttribute(Data[Word], Generic[Word]):
    """An enumeration written as `<word>`; each subclass has a `name` and says its enumeration."""

    words: ClassVar[type[StrEnum]]
    older_words: ClassVar[Mapping[str, str]] = {}
    """Former spellings, which are read but not written, and today's."""

    def __init_subclass__(cls, **arguments: Any) -> None:
        super().__init_subclass__(**arguments)
        (cls.words,) = get_args(cls.__dict__["__orig_bases__"][0])

    def print_parameter(self, printer: Printer) -> None:
        printer.print_string(f"<{self.data.value}>")

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Word:
        with parser.in_angle_brackets():
            return cls.parse_word(parser)

    @classmethod
    def parse_word(cls, parser: AttrParser) -> Word:
        """The word alone, as enclosing attributes write it."""
        position = parser.pos
        word = parser.parse_identifier()
        try:
            return cast("Word", cls.words(cls.older_words.get(word, word)))
        except ValueError:
            known = ", ".join(member.value for member in cls.words)
            parser.raise_error(f"#{cls.name} is one of {known}, not {word}", position)
