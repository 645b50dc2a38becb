"""Output of the vendor's simulator: faults, and functionality that it lacks."""

from __future__ import annotations

import re

_SIMULATOR_SAID = re.compile(r"^\[\d+\] ERROR: (.*)$", re.MULTILINE)
_SIMULATOR_LACKS = re.compile(
    r"(Unsupported|Unimplemented|Untested)Functionality:.*|MissingSpecification:?.*"
)
"""Messages of a simulator about functionality that it lacks."""


def last_words(output: str) -> str | None:
    """Fault that a simulator reported last, None if it reported none."""
    said = _SIMULATOR_SAID.findall(output)
    return said[-1] if said else None


def lacking(words: str) -> str | None:
    """Functionality that a simulator's message reports as lacking, None for other messages."""
    found = _SIMULATOR_LACKS.search(words)
    return None if found is None else found[0]
