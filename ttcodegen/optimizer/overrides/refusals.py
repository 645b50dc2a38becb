"""Refused entries of overrides, which are listed all at once."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from ttcodegen.foundation.diagnostics import CompileError, Diagnostic

EntryName = tuple[str, str]
"""Function and name of an entry, as in its file."""


class RefusedOverrides(CompileError):
    """Refusal of entries of an overrides file."""

    entries: tuple[EntryName, ...] = ()


@dataclass
class Refusals:
    """Refusals of entries, which are raised together."""

    diagnostics: list[Diagnostic] = field(default_factory=list[Diagnostic])
    entries: list[EntryName] = field(default_factory=list[EntryName])

    @contextmanager
    def collected(self, entries: Sequence[EntryName]) -> Generator[None]:
        """Collects the refusal of what a block does for entries."""
        try:
            yield
        except CompileError as error:
            self.add(error, entries)

    def add(self, error: CompileError, entries: Iterable[EntryName]) -> None:
        """Adds the refusal of entries."""
        self.diagnostics += [each for each in error.diagnostics if each not in self.diagnostics]
        self.entries += entries

    def raise_all(self) -> None:
        """Raises RefusedOverrides with all refusals, if there are any."""
        if not self.diagnostics:
            return
        error = RefusedOverrides(self.diagnostics[0].message)
        error.diagnostics = tuple(self.diagnostics)
        error.entries = tuple(self.entries)
        raise error


@contextmanager
def listing_all_refusals(overrides: str, compile_with: Callable[[str], object]) -> Generator[None]:
    """Raises the refusals of all passes, if one pass of a block refuses entries.

    Args:
        overrides: the file's text.
        compile_with: compiles with another text, which later passes see, and lists its refusals.
    """
    try:
        yield
    except RefusedOverrides as error:
        found = Refusals(list(error.diagnostics), list(error.entries))
        text = without_entries(overrides, error.entries)
        if text is not None and error.entries:
            try:
                compile_with(text)
            except RefusedOverrides as later:
                found.add(later, later.entries)
            except CompileError:
                # It follows from the entries that are left out, or has nothing to do with them.
                pass
        found.raise_all()


def without_entries(overrides: str, names: Iterable[EntryName]) -> str | None:
    """Text of an overrides file without entries, and without what refers to the calls that they
    make; None if it is no JSON."""
    try:
        content: dict[str, Any] = json.loads(overrides)
    except ValueError:
        return None
    functions: dict[str, dict[str, dict[str, Any]]] = content["functions"]
    made: set[str] = set()
    for function, name in names:
        entry = functions.get(function, {}).pop(name, {})
        made |= {call["name"] for call in entry.get("calls", ()) if "name" in call}
        if not functions.get(function, {"": {}}):
            functions.pop(function, None)
    for entries in functions.values():
        for name in made:
            entries.pop(name, None)
        for entry in entries.values():
            for place in ("after", "before"):
                if entry.get(place) in made:
                    entry.pop(place)
    return json.dumps(content)
