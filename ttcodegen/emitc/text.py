"""Pieces of C++ that come from us, not from a name of the input."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Text:
    """A piece of C++ that is written verbatim."""

    text: str
