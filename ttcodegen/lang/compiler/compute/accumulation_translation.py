"""Translation of compute kernels whose loops accumulate matmuls."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

from ttcodegen.lang.compiler.compute.accumulation import (
    AccumulatingWriter,
    Accumulation,
    Iterations,
    SummingLoop,
    statement_after,
    summing_loop,
)
from ttcodegen.lang.compiler.compute.expressions import (
    Apply,
    Expression,
    Matmul,
    Resident,
    expressions_in,
    parts_of,
)
from ttcodegen.lang.compiler.compute.translation import ComputeBlock, ComputeTranslator
from ttcodegen.lang.compiler.python.block_lifetimes import shares_line
from ttcodegen.lang.compiler.python.captured import Captured, stored_names
from ttcodegen.lang.compiler.python.pipe_nets import NetUses
from ttcodegen.lang.compiler.python.variables import Limits
from ttcodegen.lang.simulator.buffers import BlockState, Event
from ttcodegen.lang.simulator.context import Kernel
from ttcodegen.lang.simulator.occurrences import variables_in


class AccumulationTranslator(ComputeTranslator):
    """Translates compute kernels, accumulating matmuls in registers or by the packer."""

    writer: AccumulatingWriter

    def __init__(
        self, kernel: Kernel, captured: Captured, writer: AccumulatingWriter, nets: NetUses
    ) -> None:
        super().__init__(kernel, captured, writer, nets)
        self._open_sums: list[list[Accumulation]] = []
        """Sums that each open loop accumulates, outermost loop first."""

    # Loops

    def before_loop(self, body: Sequence[ast.stmt], limits: Limits | None = None) -> None:
        self._settle_sums(body)
        begun: list[Accumulation] = []
        if limits is not None:
            found = {
                name: (value, loop)
                for name in stored_names(body)
                if isinstance(value := self.names.get(name), Expression)
                and name not in self.homes
                and not isinstance(value, ComputeBlock)
                and (loop := summing_loop(body, name, self.names)) is not None
            }
            for name, (value, loop) in found.items():
                is_alone = loop.is_alone and len(found) == 1
                begun.append(self._begin_sums(name, value, loop, limits, body, is_alone))
            self._open_sums.append(begun)
        super().before_loop(body, limits)

    def _begin_sums(
        self,
        name: str,
        start: Expression,
        loop: SummingLoop,
        limits: Limits,
        body: Sequence[ast.stmt],
        is_alone: bool,
    ) -> Accumulation:
        iterations = _iterations(limits) if loop.is_direct or is_alone else None
        target = self._target_of(name, start, body)
        sums = Accumulation(start.shape, "", name=name, iterations=iterations, target=target)
        self._write(lambda: self.writer.begin_sums(sums, start, is_alone=is_alone))
        self.names[name] = self.homes[name] = sums
        return sums

    def _target_of(self, name: str, start: Expression, body: Sequence[ast.stmt]) -> str | None:
        """Returns the buffer of the block that sums are stored in directly after the loop.

        None if the store is not the last use of both the variable and the block.
        """
        after = statement_after(self.frame.syntax, self._statement)
        match after:
            case ast.Expr(
                ast.Call(ast.Attribute(ast.Name(stored), "store"), [ast.Name(value)], [])
            ) if value == name:
                block = self.names.get(stored)
            case _:
                return None
        line = after.end_lineno or 0
        is_last = not shares_line(self.frame.syntax, line)
        if stored in variables_in(*body) or not is_last or self.frame.reads_later(name, line):
            return None
        if not isinstance(block, ComputeBlock):
            return None
        is_fresh = (
            block.is_reserved
            and block.home is None
            and block.life.state is BlockState.MW
            and block.shape == start.shape
            and block.elements is None
            and start.elements is None
            and not self._is_read(block)
        )
        return block.buffer if is_fresh else None

    def after_loop(self) -> None:
        super().after_loop()
        for sums in self._open_sums.pop():
            self.writer.end_sums(sums)
            if self.homes.get(sums.name) is sums:
                self._shared[self.frame, sums.name] = self.regions

    def store_name(self, name: str, value: Any) -> None:
        home = self.homes.get(name)
        if isinstance(home, Accumulation):
            product = _addend_of(value, home)
            if product is not None and any(home in each for each in self._open_sums):
                if product.shape != home.shape:
                    self.refuse(f"'{name}' has another shape than before")
                loop = self.loops[self._loop_index(home)] if self.loops else None
                counter = None if loop is None else loop.counter
                self._write(lambda: self.writer.add_matmul(home, product, counter))
                self.names[name] = home
                return
            self.writer.settle_sums()
        super().store_name(name, value)

    def _loop_index(self, sums: Accumulation) -> int:
        """Negative index, into the open loops, of the loop that accumulates sums."""
        number = next(n for n, each in enumerate(reversed(self._open_sums)) if sums in each)
        return -1 - number

    # Uses of the sums

    def _store(self, block: ComputeBlock, expr: Any) -> None:
        pending = self.writer.pending
        if isinstance(expr, Accumulation) and expr.target == block.buffer and not expr.is_released:
            self._record(block, Event.STORE)
            self.writer.drop(expr)
        elif (
            pending is not None
            and block.is_reserved
            and block.home is None
            and not self._is_read(block)
            and _depends_on_sums(expr, pending)
            and not self._is_needed(pending)
        ):
            self._last_store(block, expr, pending)
        else:
            super()._store(block, expr)

    def _last_store(self, block: ComputeBlock, expr: Expression, pending: Accumulation) -> None:
        if block.shape == expr.shape and block.elements is None and expr.elements is None:
            if self.writer.finish_sums(expr, block.buffer):
                self._record(block, Event.STORE)
                return
        super()._store(block, expr)

    def _is_needed(self, sums: Accumulation) -> bool:
        """True if a later statement reads sums."""
        return any(
            _depends_on_sums(value, sums) and self._is_read_later(name, frame)
            for frame in self.frames
            for name, value in frame.names.items()
        )

    def _settle_sums(self, body: Sequence[ast.stmt]) -> None:
        """Moves sums that other loops or conditions may read or assign into buffers."""
        if not any(self.writer.pending in each for each in self._open_sums):
            self.writer.settle_sums()
        for name in stored_names(body):
            home = self.homes.get(name)
            if isinstance(home, Accumulation) and not any(home in s for s in self._open_sums):
                if home.is_released:
                    del self.homes[name]
                    continue
                del self.homes[name]
                self._shared.pop((self.frame, name), None)
                self._materialize(name, home)
                self.writer.drop(home)

    def before_condition(self, body: Sequence[ast.stmt]) -> None:
        if not any(self._open_sums):
            self._settle_sums(body)
        super().before_condition(body)

    def bind(self, target: ast.expr, value: Any) -> None:
        if isinstance(target, ast.Tuple):
            self.writer.settle_sums()
        super().bind(target, value)


def _iterations(limits: Limits) -> Iterations | None:
    """Iterations of a loop whose bounds are known, or None if it may not run."""
    start, end, step = limits
    if not (isinstance(start, int) and isinstance(end, int) and isinstance(step, int)):
        return None
    counted = range(start, end, step)
    return Iterations(counted[0], counted[-1]) if counted else None


def _addend_of(value: Any, sums: Accumulation) -> Matmul | None:
    """Returns the matmul that a value adds to sums, or None."""
    match value:
        case Apply(_, _, (first, Matmul() as product)) if first is sums:
            return product
        case _:
            return None


def _depends_on_sums(value: Any, sums: Resident) -> bool:
    """True if a value depends on sums."""
    return any(part is sums for each in expressions_in(value) for part in parts_of(each))
