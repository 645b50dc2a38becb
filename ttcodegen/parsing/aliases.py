"""In which order aliases can be read that are made of others, and locations read at once."""

from __future__ import annotations

import re
from collections.abc import Container, Mapping

from xdsl.dialects.builtin import (
    CallSiteLoc,
    FileLineColLoc,
    IntAttr,
    LocationAttr,
    NameLoc,
    NoneAttr,
    StringAttr,
)
from xdsl.ir import Attribute

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
"""The forms in which frameworks print where each op is from, a line for each."""


def location_definition(
    text: str, offset: int, known: Mapping[str, Attribute]
) -> tuple[LocationAttr, int] | None:
    """The location that the rest of a line defines, and the offset after it; None if it has another
    form, or other parts than locations that are known.

    Modules of jax have twice as many of these lines as they have ops.

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
    """The aliases that one is made of, each after those that it is made of itself.

    Locations are chains as long as the stack of calls that a framework traced; the stack of Python
    is not long enough to read them from their ends. None if they go round in circles.

    Args:
        name: the alias.
        text: where it is defined.
        offsets: where each alias is.
        known: those that need not be read.
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
