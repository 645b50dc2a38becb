"""Text as it may be shown on a terminal."""

from __future__ import annotations

import re

_UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def printable(text: str) -> str:
    """The text with escapes, `\\x1b` or `\\u202e`, in place of control characters and marks of
    direction: a name in a model must not move the cursor of who reads a message, nor reorder it.

    Line feeds and tabs stay.
    """
    return _UNSEEN.sub(lambda found: _escape(ord(found[0])), text)


def _escape(code: int) -> str:
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
