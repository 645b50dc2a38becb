"""Loop-carried state of device loops, without values computed by Python."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ttcodegen.lang.compiler.python.block_lifetimes import Regions
from ttcodegen.lang.compiler.python.frames import Frame


@dataclass(eq=False)
class Loop:
    """A loop of the device that is being translated, once for all of its iterations."""

    frame: Frame
    """The function that it is in."""
    regions: Regions
    before: Mapping[str, Any]
    """Values of the assigned variables before the loop."""
    _assigned: dict[str, set[Regions]] = field(default_factory=dict[str, set[Regions]])
    _read: dict[str, ast.AST] = field(default_factory=dict[str, ast.AST])

    def reads(self, frame: Frame, name: str, node: ast.AST, regions: Regions) -> None:
        """A variable of a function is read: one that this iteration may not have assigned to."""
        if frame is not self.frame or name not in self.before:
            return
        assigned = self._assigned.get(name, ())
        if not any(regions[: len(each)] == each for each in assigned):
            self._read.setdefault(name, node)

    def assigns(self, frame: Frame, name: str, regions: Regions) -> None:
        """A variable of a function is given a value: by the iterations that come to `regions`."""
        if frame is self.frame and regions[: len(self.regions)] == self.regions:
            self._assigned.setdefault(name, set()).add(regions)

    def carried(self) -> Iterator[tuple[str, ast.AST]]:
        """Variables that hold another value at the end of an iteration than the one that it read,
        and where it read that."""
        for name, node in self._read.items():
            if self.frame.names.get(name) is not self.before[name]:
                yield name, node
