"""Which ops of the module before an op of EmitC was made for."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Operation

_ORIGINS = "_made_for"


def set_origins(op: Operation, origins: Sequence[Operation]) -> None:
    """Remembers what an op was made for, as long as it lives."""
    setattr(op, _ORIGINS, origins)


def origins_of(op: Operation) -> Sequence[Operation]:
    """What an op was made for; nothing of what belongs to no op."""
    return getattr(op, _ORIGINS, ())
