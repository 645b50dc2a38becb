"""Options of passes and pipelines: what they are, and how they are written.

The text is MLIR's: `name=value` separated by blanks, where a value may be in quotes or braces, a
name alone is a flag that is set, and the whole may be in braces:
`--convert-ttnn-to-emitc='{module-name=mlp release=X.Y.Z}'`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NoReturn

from ttcodegen.compat.refusals import Refused
from ttcodegen.foundation.diagnostics import CompileError

OptionValue = bool | int | str | tuple[str, ...]
"""Value of an option, by its kind: boolean, integer, string, or list of strings."""

Kind = Literal["flag", "integer", "text", "texts"]

_NAME = re.compile(r"[A-Za-z][\w-]*")
_CLOSING = {"{": "}", "[": "]", "(": ")"}


class OptionError(CompileError):
    """An option of a pass is not there, malformed or not possible: wrong usage."""


@dataclass(frozen=True)
class Option:
    """One option of a pass or pipeline.

    `name` with `_` for `-` is the field of the pass that takes the value. An option with `refusal`
    is one that other compilers of TTIR have and that cannot be had here: only its default is
    accepted, which is what is done anyway, and any other value is refused with that reason.
    """

    name: str
    description: str
    default: OptionValue = ""
    choices: tuple[str | int, ...] = ()
    """The values that a text or an integer may have; empty if any."""
    refusal: str | None = None

    @property
    def kind(self) -> Kind:
        match self.default:
            case bool():
                return "flag"
            case int():
                return "integer"
            case str():
                return "text"
            case _:
                return "texts"

    @property
    def field(self) -> str:
        """The field of the pass that takes the value."""
        return self.name.replace("-", "_")

    def decode(self, text: str) -> OptionValue:
        """The value that a text spells.

        Raises:
            OptionError: if the option cannot have that value.
        """
        value = self._decode(text)
        self.check(value)
        return value

    def check(self, value: OptionValue) -> None:
        """Makes sure that the option can have a value.

        Raises:
            OptionError: if it cannot.
        """
        if self.refusal is not None and value != self.default:
            raise OptionError(
                f"the option '{self.name}' cannot be {self._spelled(value)}: {self.refusal}"
            )
        if self.choices and value not in self.choices:
            known = ", ".join(map(str, self.choices))
            raise OptionError(f"the option '{self.name}' is one of {known}, found '{value}'")

    def _decode(self, text: str) -> OptionValue:
        match self.kind:
            case "flag":
                known = {"": True, "true": True, "1": True, "false": False, "0": False}
                if text.lower() not in known:
                    raise OptionError(f"the option '{self.name}' is true or false, found '{text}'")
                return known[text.lower()]
            case "integer":
                try:
                    return int(text)
                except ValueError:
                    raise OptionError(
                        f"the option '{self.name}' is an integer, found '{text}'"
                    ) from None
            case "text":
                return text
            case "texts":
                return tuple(part.strip() for part in text.split(",") if part.strip())

    def _spelled(self, value: OptionValue) -> str:
        return self.encode(value).partition("=")[2] or "empty"

    def encode(self, value: OptionValue) -> str:
        """`name=value` as it is written."""
        match value:
            case bool():
                text = "true" if value else "false"
            case tuple():
                text = ",".join(value)
            case _:
                text = str(value)
        if re.search(r"[\s{}\"']", text):
            quote = "'" if '"' in text else '"'
            text = f"{quote}{text}{quote}"
        return f"{self.name}={text}"


def chosen(values: Mapping[str, OptionValue], options: Sequence[Option]) -> dict[str, OptionValue]:
    """The values of some options that are not their defaults, so that steps read easily."""
    return {o.name: values[o.name] for o in options if values[o.name] != o.default}


def fixed(refused: Refused) -> Iterator[Option]:
    """Options that have one value, which says what is done anyway."""
    for reason, options in refused.items():
        for name, value in options.items():
            yield Option(name, "", value, refusal=reason)


def decode_options(owner: str, options: Sequence[Option], text: str) -> Mapping[str, OptionValue]:
    """The values of the options of the pass `owner` that a text gives; those only.

    Raises:
        OptionError: if the text is malformed, or names what is no option of the pass.
    """
    known = {option.name: option for option in options}
    values: dict[str, OptionValue] = {}
    for name, value in split_options(owner, text):
        option = known.get(name) or _refuse_unknown(owner, name, options)
        try:
            values[name] = option.decode(value)
        except OptionError as error:
            raise OptionError(f"--{owner}: {error}") from None
    return values


def check_options(owner: str, options: Sequence[Option], values: Mapping[str, OptionValue]) -> None:
    """Makes sure that the pass `owner` takes these values.

    Raises:
        OptionError: if one of them is no option of the pass, or cannot have that value.
    """
    known = {option.name: option for option in options}
    for name, value in values.items():
        option = known.get(name) or _refuse_unknown(owner, name, options)
        try:
            option.check(value)
        except OptionError as error:
            raise OptionError(f"--{owner}: {error}") from None


def _refuse_unknown(owner: str, name: str, options: Sequence[Option]) -> NoReturn:
    from difflib import get_close_matches

    close = get_close_matches(name, [option.name for option in options], 1)
    remedy = f"did you mean '{close[0]}'?" if close else _listed(owner, options)
    raise OptionError(f"--{owner} has no option '{name}'", remedy=remedy)


def _listed(owner: str, options: Sequence[Option]) -> str:
    names = [option.name for option in options if option.refusal is None]
    return f"its options: {', '.join(names)}" if names else "it has no options"


def split_options(owner: str, text: str) -> Iterator[tuple[str, str]]:
    """The names and values in a text of options; a name alone has an empty value.

    Raises:
        OptionError: if a quote or brace stays open, or something is no name.
    """
    text = unbraced(text)
    position = 0
    while True:
        while position < len(text) and text[position].isspace():
            position += 1
        if position == len(text):
            return
        match = _NAME.match(text, position)
        if match is None:
            raise OptionError(f"--{owner}: expected the name of an option at '{text[position:]}'")
        position = match.end()
        if position == len(text) or text[position] != "=":
            yield match.group(), ""
            continue
        end = _value_end(owner, text, position + 1)
        yield match.group(), unbraced(text[position + 1 : end])
        position = end


def unbraced(text: str) -> str:
    """The text without the quotes or braces around it."""
    text = text.strip()
    if len(text) > 1 and text[0] + text[-1] in ('""', "''", "{}"):
        return text[1:-1]
    return text


def _value_end(owner: str, text: str, start: int) -> int:
    """Finds the end of a value: the next blank outside quotes and brackets."""
    expected: list[str] = []
    for position in range(start, len(text)):
        character = text[position]
        if expected and character == expected[-1]:
            expected.pop()
        elif expected and expected[-1] in "\"'":
            continue
        elif character in _CLOSING:
            expected.append(_CLOSING[character])
        elif character in "\"'":
            expected.append(character)
        elif character.isspace() and not expected:
            return position
    if expected:
        raise OptionError(f"--{owner}: '{expected[-1]}' is missing in the options '{text}'")
    return len(text)
