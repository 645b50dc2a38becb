"""Loops of kernels that go on although their ends were never certain: their turns are counted.

What a loop over a list or anything else with a length does has an end; a `while` loop, or one over
an iterator, may wait for what never comes about, and use blocks all the time. A range with more
numbers than such loops have turns is refused before the first one.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Sized
from itertools import islice, repeat
from typing import Any

from ttcodegen.lang.simulator.context import current
from ttcodegen.lang.simulator.locations import ProgramError, error

MOST_TURNS = 1_000_000
"""Of one loop: more than kernels need that go over the largest tensors a row of tiles at a time."""

_TURNS = "__ttl_turns__"
_COUNTED = "__ttl_counted__"
_NEXT = "__ttl_next__"


def turns() -> Iterator[None]:
    """Yields once per iteration of a `while` loop; unbounded outside of kernels."""
    return _turns() if current.kernel is not None else repeat(None)


def _turns() -> Iterator[None]:
    yield from repeat(None, MOST_TURNS)
    raise _no_end()


def counted(values: Iterable[Any]) -> Iterable[Any]:
    """Iterates a `for` loop; in kernels an iterator without a length is bounded.

    Raises:
        ProgramError: if it is a range with more numbers than a loop has turns.
    """
    if current.kernel is None:
        return values
    if isinstance(values, range) and values[MOST_TURNS : MOST_TURNS + 1]:
        raise error(
            f"this loop of {current.kernel} goes over {values}, more than the {MOST_TURNS:,} turns "
            "that a loop of a kernel has"
        )
    return values if isinstance(values, Sized) else _counted(iter(values))


def _counted(values: Iterator[Any]) -> Iterator[Any]:
    yield from islice(values, MOST_TURNS)
    for _ in values:
        raise _no_end()


def _no_end() -> ProgramError:
    return error(
        f"this loop of {current.kernel} has no end: it has gone on for {MOST_TURNS:,} turns",
        remedy="go over a range, which has an end, or leave the loop by break",
    )


def with_counted_loops(module: ast.Module) -> ast.Module:
    """The same program, whose functions count the turns of their loops. It finds `COUNTERS` among
    its global names."""
    return ast.fix_missing_locations(_Counting().visit(module))


COUNTERS: dict[str, Callable[..., object]] = {_TURNS: turns, _COUNTED: counted, _NEXT: next}
"""Functions called by instrumented loops, by name."""


class _Counting(ast.NodeTransformer):
    """Rewrites the loops of functions."""

    def __init__(self) -> None:
        self._functions = 0
        self._loops = 0

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        self._functions += 1
        self.generic_visit(node)
        self._functions -= 1
        return node

    def visit_While(self, node: ast.While) -> ast.AST | list[ast.stmt]:
        self.generic_visit(node)
        if not self._functions:
            return node
        self._loops += 1
        name = f"__ttl_turns_{self._loops}__"
        begin = ast.Assign([ast.Name(name, ast.Store())], _call(_TURNS))
        turn = ast.Expr(_call(_NEXT, ast.Name(name, ast.Load())))
        for made in (begin, turn):
            _place(made, node)
        node.body.insert(0, turn)
        return [begin, node]

    def visit_For(self, node: ast.For) -> ast.AST:
        self.generic_visit(node)
        if self._functions:
            node.iter = _place(_call(_COUNTED, node.iter), node)
        return node


def _call(name: str, *values: ast.expr) -> ast.Call:
    return ast.Call(ast.Name(name, ast.Load()), list(values), [])


def _place(made: Any, loop: ast.While | ast.For) -> Any:
    """New nodes are where the loop begins; those of the program stay where they are."""
    for node in ast.walk(made):
        if not hasattr(node, "lineno"):
            ast.copy_location(node, loop)
    return made
