"""Write coverage of a tensor by an operation."""

from __future__ import annotations

import numpy as np

from ttcodegen.lang.simulator.shapes import Shape


class WrittenUnits:
    """Set of written tiles or elements, by index in each dimension."""

    def __init__(self, units: Shape) -> None:
        self._is_written = np.zeros(units, bool)

    def add(self, starts: Shape, sizes: Shape) -> None:
        """A part was written."""
        ends = zip(starts, sizes, strict=True)
        self._is_written[tuple(slice(start, start + size) for start, size in ends)] = True

    @property
    def is_all(self) -> bool:
        """True if all were."""
        return bool(self._is_written.all())
