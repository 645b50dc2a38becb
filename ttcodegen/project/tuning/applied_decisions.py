"""Files of a project with the user's decisions, and the decisions that do not apply."""

from __future__ import annotations

from dataclasses import dataclass, field

from ttcodegen.emission.manifest_entries import LoweredOp
from ttcodegen.project.tuning.report import names_text


@dataclass(frozen=True)
class LostDecision:
    """Decision that could not be reapplied."""

    path: str
    ops: tuple[LoweredOp, ...]
    decision: str
    reason: str
    nearest: str = ""
    """Nearest legal decision, or another call that it may belong to."""

    def __str__(self) -> str:
        hint = f"; {self.nearest}" if self.nearest else ""
        return f"'{names_text(self.ops)}': {self.decision}: {self.reason}{hint}"


@dataclass
class AppliedDecisions:
    """Files of a project with the user's decisions."""

    texts: dict[str, str] = field(default_factory=dict[str, str])
    """The new files with decisions, by path."""
    rest: dict[str, str] = field(default_factory=dict[str, str])
    """The edited files without their decisions, by path."""
    lost: list[LostDecision] = field(default_factory=list[LostDecision])
