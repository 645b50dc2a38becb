"""The states of a block between its acquisition and its release, and what leads from one to another
(TT-Lang specification 0.17, "Block states")."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from ttcodegen.lang.simulator.context import KernelKind


class BlockState(Enum):
    """A state, with the name and the words of the specification."""

    # Members are compared by identity; hashing their names would take longer than the rules do.
    __hash__ = object.__hash__

    MW = "Must be Written: the block was reserved and contains garbage data and therefore must be written to"  # noqa: E501
    MR = "Must be Read: the block was waited on or written to and never read and therefore must be read from or pushed"  # noqa: E501
    RW = "Read-Write: the block was waited on or written to (MR) and then read from and therefore can be either read from more times or overwritten"  # noqa: E501
    ROR = "Read Only while Reading: the block is being asynchronously read from by ttl.copy"
    NAW = "No Access while Writing: the block is being asynchronously written to"
    OS = "Out of Scope: the block was pushed or popped"


class Acquisition(Enum):
    """Acquisition of a block: reserve or wait."""

    __hash__ = object.__hash__

    RESERVE = "reserve"
    WAIT = "wait"


class Event(Enum):
    """Event in the life of a block, as messages word it."""

    __hash__ = object.__hash__

    READ = "read"
    """By a block expression, at once."""
    STORE = "store to"
    BEGIN_COPY_FROM = "copy from"
    END_COPY_FROM = "end the copy from"
    BEGIN_COPY_TO = "copy to"
    END_COPY_TO = "end the copy to"
    PUSH = "push"
    POP = "pop"


FIRST = {Acquisition.RESERVE: BlockState.MW, Acquisition.WAIT: BlockState.MR}

_S, _E = BlockState, Event
_EXPRESSIONS = {(_S.MR, _E.READ): _S.RW, (_S.RW, _E.READ): _S.RW, (_S.RW, _E.STORE): _S.MR}
_COPIES = {
    (_S.MR, _E.BEGIN_COPY_FROM): _S.ROR,
    (_S.RW, _E.BEGIN_COPY_FROM): _S.ROR,
    (_S.ROR, _E.BEGIN_COPY_FROM): _S.ROR,
    (_S.ROR, _E.END_COPY_FROM): _S.RW,
    (_S.RW, _E.BEGIN_COPY_TO): _S.NAW,
    (_S.NAW, _E.END_COPY_TO): _S.MR,
}
_PUSH = {(_S.MR, _E.PUSH): _S.OS, (_S.RW, _E.PUSH): _S.OS}
_POP = {(_S.RW, _E.POP): _S.OS}

TRANSITIONS = {
    (KernelKind.COMPUTE, Acquisition.RESERVE): {
        (_S.MW, _E.STORE): _S.MR, **_EXPRESSIONS, **_PUSH,
    },
    (KernelKind.COMPUTE, Acquisition.WAIT): {**_EXPRESSIONS, **_POP},
    (KernelKind.DATA_MOVEMENT, Acquisition.RESERVE): {
        (_S.MW, _E.BEGIN_COPY_TO): _S.NAW, **_COPIES, **_PUSH,
    },
    (KernelKind.DATA_MOVEMENT, Acquisition.WAIT): {**_COPIES, **_POP},
}  # fmt: skip
"""One table for each diagram of the specification. `ROR` is left with the last copy that reads."""


def following(
    transitions: Mapping[tuple[BlockState, Event], BlockState],
    state: BlockState,
    readers: int,
    event: Event,
) -> tuple[BlockState, int] | None:
    """The state after an event, and how many copies read the block then; None if the event is not
    allowed."""
    after = transitions.get((state, event))
    if after is None:
        return None
    if event is Event.BEGIN_COPY_FROM:
        return after, readers + 1
    if event is Event.END_COPY_FROM:
        return BlockState.ROR if readers > 1 else after, readers - 1
    return after, readers


def refusal(buffer: str, event: Event, state: BlockState, readers: int = 0) -> str:
    """The error of a program that breaks the rules of a block of a buffer."""
    named = f"ROR({readers})" if state is BlockState.ROR else state.name
    return f"cannot {event.value} a block of '{buffer}' in the state {named} ({state.value})"


def remedy(event: Event, state: BlockState, acquisition: Acquisition) -> str | None:
    """Remedy for an invalid event, or None."""
    wrong_release = {Event.PUSH: Acquisition.WAIT, Event.POP: Acquisition.RESERVE}
    if wrong_release.get(event) is acquisition:
        return "reserve is followed by push, wait by pop"
    if state in (BlockState.ROR, BlockState.NAW):
        return "wait for the transfer that ttl.copy returned"
    return None


def released_word(acquisition: Acquisition) -> str:
    """Verb for the release of a block, by its acquisition."""
    return "pushed" if acquisition is Acquisition.RESERVE else "popped"


def acquired_twice(buffer: str, acquisition: Acquisition) -> str:
    """The error of a program that acquires a second block before it releases the first."""
    return (
        f"{acquisition.value} of '{buffer}' while a block of it is acquired and not "
        f"{released_word(acquisition)} yet"
    )


NEVER_RELEASED_REMEDY = "acquire it in a with statement, which releases it at its end"


def never_released(buffer: str, acquisition: Acquisition) -> str:
    """The error of a program that keeps a block."""
    return f"a block of '{buffer}' is never {released_word(acquisition)}"
