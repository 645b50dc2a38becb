"""Which op of the module before an op of EmitC was made for."""

from __future__ import annotations

from xdsl.ir import Operation

_ORIGIN = "_made_for"


def set_origin(op: Operation, origin: Operation) -> None:
    """Remembers what an op was made for, as long as it lives."""
    setattr(op, _ORIGIN, origin)


def origin_of(op: Operation) -> Operation | None:
    """What an op was made for; None for what belongs to no op."""
    found = getattr(op, _ORIGIN, None)
    return found if isinstance(found, Operation) else None
