"""Compile-time states of blocks, and uses of variables between assignments."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from ttcodegen.foundation.diagnostics import CompileError, Note, SourceLocation
from ttcodegen.lang.simulator.buffers import (
    INITIAL_STATES,
    NEVER_RELEASED_REMEDY,
    TRANSITIONS,
    Acquisition,
    BlockState,
    Event,
    acquired_twice,
    never_released,
    next_state,
    refusal,
    remedy,
)
from ttcodegen.lang.simulator.context import KernelKind
from ttcodegen.lang.simulator.occurrences import occurrences

Regions = tuple[int, ...]
"""Open device loops and conditions, by their numbers in the kernel, outermost first."""


@dataclass(eq=False)
class BlockLifetime:
    """Lifetime of a block since its acquisition."""

    buffer: str
    kind: KernelKind
    acquisition: Acquisition
    acquired: SourceLocation
    regions: Regions
    state: BlockState | None = field(init=False)
    """Current state; None if it depends on the control flow of the running kernel."""
    readers: int = 0
    _last_copy: SourceLocation | None = None

    def __post_init__(self) -> None:
        self.state = INITIAL_STATES[self.acquisition]

    @property
    def is_released(self) -> bool:
        """True if the block has been pushed or popped."""
        return self.state is BlockState.OS

    def record(self, event: Event, where: SourceLocation, regions: Regions) -> None:
        """Records an event and moves to the next state.

        Raises:
            CompileError: if the event is not allowed in the current state.
        """
        if self.state is None:
            if event in (Event.PUSH, Event.POP):
                self.state = BlockState.OS
            return
        found = next_state(
            TRANSITIONS[self.kind, self.acquisition], self.state, self.readers, event
        )
        if found is None:
            raise self._refusal(event, where)
        after, self.readers = found
        if event in (Event.BEGIN_COPY_FROM, Event.BEGIN_COPY_TO):
            self._last_copy = where
        if regions != self.regions and after is not self.state and after is not BlockState.OS:
            # A loop may run never or repeatedly, and a condition may not hold.
            self.state = None
            return
        self.state = after

    def _refusal(self, event: Event, where: SourceLocation) -> CompileError:
        assert self.state is not None
        notes = [Note(f"it was acquired by {self.acquisition.value} here", self.acquired)]
        if self.state in (BlockState.ROR, BlockState.NAW):
            notes.append(Note("the copy began here", self._last_copy))
        return CompileError(
            refusal(self.buffer, event, self.state, self.readers),
            where,
            notes=notes,
            remedy=remedy(event, self.state, self.acquisition),
        )


@dataclass
class BlockLifetimes:
    """Lifetimes of all blocks that a kernel acquires."""

    kind: KernelKind
    _current: dict[tuple[str, Acquisition], BlockLifetime] = field(
        default_factory=dict[tuple[str, Acquisition], BlockLifetime]
    )
    _all: list[BlockLifetime] = field(default_factory=list[BlockLifetime])

    def acquire(
        self, buffer: str, acquisition: Acquisition, where: SourceLocation, regions: Regions
    ) -> BlockLifetime:
        """Starts the lifetime of a block.

        Raises:
            CompileError: if the kernel still holds another block of the buffer.
        """
        key = (buffer, acquisition)
        before = self._current.get(key)
        if before is not None and not before.is_released and before.regions == regions:
            notes = [Note("it was acquired here", before.acquired)]
            raise CompileError(acquired_twice(buffer, acquisition), where, notes=notes)
        self._current[key] = BlockLifetime(buffer, self.kind, acquisition, where, regions)
        self._all.append(self._current[key])
        return self._current[key]

    def check_released(self) -> None:
        """Raises CompileError if the kernel never releases one of its blocks."""
        for life in self._all:
            if not life.is_released:
                raise CompileError(
                    never_released(life.buffer, life.acquisition),
                    life.acquired,
                    remedy=NEVER_RELEASED_REMEDY,
                )


def reads_as_value(syntax: ast.AST, name: str, acquired: int) -> bool:
    """True if a function reads the elements of a block, besides storing into it and releasing it.

    Args:
        syntax: the function.
        name: the variable that holds the block.
        acquired: line of the acquisition.
    """
    used = occurrences(syntax, name=name)
    bound = sorted(node.lineno for node in used if isinstance(node.ctx, ast.Store))
    end = next((line for line in bound if line > acquired), None) if acquired in bound else None
    unread = {id(node) for node in _unread_expressions(syntax)}
    augmented = {
        id(node.target) for node in ast.walk(syntax) if isinstance(node, ast.AugAssign)
    }  # fmt: skip
    return any(
        id(node) in augmented or (isinstance(node.ctx, ast.Load) and id(node) not in unread)
        for node in used
        if end is None or acquired <= node.lineno < end or (id(node) in augmented)
    )


def _unread_expressions(syntax: ast.AST) -> Iterator[ast.expr]:
    """Yields expressions whose elements are not read, such as receivers of methods and targets."""
    for node in ast.walk(syntax):
        match node:
            case ast.Attribute(of, "store" | "push" | "pop"):
                yield of
            case ast.Call(ast.Attribute(_, "broadcast"), [_, target, *_]):
                yield target
            case ast.Call(ast.Attribute(_, "fill"), [target, *_]):
                yield target
            case ast.Call(ast.Name("print"), values):
                yield from values
            case _:
                pass


def stores_into(body: list[ast.stmt], name: str) -> bool:
    """True if statements store into the block that a variable holds."""
    for node in (each for statement in body for each in ast.walk(statement)):
        match node:
            case ast.AugAssign(ast.Name(target), ast.Add()) if target == name:
                return True
            case ast.Attribute(ast.Name(target), "store") if target == name:
                return True
            case _:
                pass
    return False


def reserved_names(syntax: ast.AST) -> set[str]:
    """Names of the variables on which a kernel calls `reserve`."""
    return {
        node.value.id
        for node in ast.walk(syntax)
        if isinstance(node, ast.Attribute) and node.attr == "reserve"
        if isinstance(node.value, ast.Name)
    }


_Position = tuple[int, int]


def _begin(node: ast.AST) -> _Position:
    return getattr(node, "lineno", 0), getattr(node, "col_offset", 0)


def _end(node: ast.AST) -> _Position:
    return getattr(node, "end_lineno", 0), getattr(node, "end_col_offset", 0)


def uses_after(syntax: ast.AST, statement: ast.AST | None, name: str) -> int:
    """Counts the reads of a value until the next assignment to its variable.

    The value is assigned by a statement, or is an argument of the function if that is None. Reads
    in loops that do not contain the statement count twice.
    """
    after = (0, 0) if statement is None else _end(statement)
    stored = [_begin(n) for n in occurrences(syntax, name=name, context=ast.Store)]
    before = min((begin for begin in stored if begin >= after), default=(1 << 60, 0))
    found = 0
    for node, loops in _loads(syntax, name, ()):
        # The right-hand side of an assignment is read before its target is stored.
        if not after <= _begin(node) or (_begin(node)[0], 0) > (before[0], 0):
            continue
        outside = any(statement is None or not _contains(loop, statement) for loop in loops)
        found += 2 if outside else 1
    return found


def is_assigned_once(syntax: ast.AST, name: str) -> bool:
    """True if a function assigns a variable exactly once."""
    return len(occurrences(syntax, name=name, context=ast.Store)) == 1


def shares_line(syntax: ast.AST, line: int) -> bool:
    """True if several statements begin on the same line."""
    begun = (n for n in ast.walk(syntax) if isinstance(n, ast.stmt) and n.lineno == line)
    return sum(1 for _ in begun) > 1


def _loads(
    node: ast.AST, name: str, loops: Sequence[ast.AST]
) -> Iterator[tuple[ast.Name, Sequence[ast.AST]]]:
    """Yields the reads of a variable with their enclosing loops."""
    if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load):
        yield node, loops
    if isinstance(node, ast.For | ast.While | ast.ListComp | ast.GeneratorExp):
        loops = (*loops, node)
    for child in ast.iter_child_nodes(node):
        yield from _loads(child, name, loops)


def _contains(loop: ast.AST, statement: ast.AST) -> bool:
    return _begin(loop) <= _begin(statement) and _end(statement) <= _end(loop)
