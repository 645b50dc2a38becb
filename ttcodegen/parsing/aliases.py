"""In which order aliases can be read that are made of others."""

from __future__ import annotations

import re
from collections.abc import Container, Mapping

ALIAS = re.compile(r"[#!][A-Za-z_][\w$.-]*+")


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
