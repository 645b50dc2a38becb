"""Rectangles of cores."""

from __future__ import annotations

from dataclasses import dataclass


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
