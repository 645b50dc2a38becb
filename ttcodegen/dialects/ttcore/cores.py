"""Rectangles of cores."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

CORE_RANGE = re.compile(
    r"(?:#ttnn\.core_range)?\s*<\s*\(\s*(\d+)\s*,\s*(\d+)\s*\)\s*,"
    r"\s*\(\s*(\d+)\s*,\s*(\d+)\s*\)\s*>"
)
"""One range in the text of an attribute."""


@dataclass(frozen=True)
class CoreRange:
    """A rectangle of cores in logical coordinates, first and last included."""

    first_column: int
    first_row: int
    last_column: int
    last_row: int

    @property
    def columns(self) -> int:
        return self.last_column - self.first_column + 1

    @property
    def rows(self) -> int:
        return self.last_row - self.first_row + 1

    @property
    def cores(self) -> int:
        """How many cores there are."""
        return self.columns * self.rows

    def meets(self, other: CoreRange) -> bool:
        """True if there is a core in both."""
        return (
            self.first_column <= other.last_column
            and other.first_column <= self.last_column
            and self.first_row <= other.last_row
            and other.first_row <= self.last_row
        )


def core_ranges_text(core_ranges: Sequence[CoreRange]) -> str:
    """The text of an attribute that lists ranges of cores."""
    ranges = [
        f"#ttnn.core_range<({r.first_column}, {r.first_row}), ({r.last_column}, {r.last_row})>"
        for r in core_ranges
    ]
    return f"#ttnn.core_range_set<[{', '.join(ranges)}]>"
