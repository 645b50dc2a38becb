"""Hints at what an unknown name was meant to be."""

from __future__ import annotations

from collections.abc import Iterable


def closest(name: str, known: Iterable[str]) -> str | None:
    """The known name that is most like `name`, or that begins with it; None if none is close."""
    from difflib import get_close_matches

    spellings = {spelling.lower(): spelling for spelling in sorted(known)}
    lowered = name.lower()
    close = get_close_matches(lowered, spellings, 1, cutoff=0.7)
    if not close and len(lowered) > 2:
        close = [spelling for spelling in spellings if spelling.startswith(lowered)]
    return spellings[close[0]] if close else None


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A question after a message, that names what is closest; nothing if nothing is."""
    found = closest(name, known)
    return f"; did you mean {found}?" if found is not None else ""
