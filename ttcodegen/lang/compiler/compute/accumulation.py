"""Accumulation of matmuls over the iterations of a loop.

Sums stay in the destination registers across iterations if nothing else in the loop needs them.
Otherwise the packer accumulates in L1: in the block that the sums are stored in, or in a scratch
buffer. No pass fills zeros first, and none copies the sums to the result.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass, field
from itertools import pairwise
from math import prod
from typing import Any, cast

from xdsl.ir import Operation

from ttcodegen.conversions.ttir_to_ttmetal.grouping.tile_operations import capacity
from ttcodegen.dialects.core.datatypes import DataType
from ttcodegen.lang.compiler.compute.compute import BlockWriter
from ttcodegen.lang.compiler.compute.expressions import (
    Apply,
    Broadcast,
    Expression,
    Fill,
    Matmul,
    Resident,
    matmul_block_sizes,
    parts_of,
)
from ttcodegen.lang.compiler.python.captured import stored_names
from ttcodegen.lang.compiler.python.numbers import Number
from ttcodegen.lang.simulator.occurrences import occurrences, variables_in

# Loops that accumulate matmuls


@dataclass(frozen=True)
class SummingLoop:
    """A loop body whose only use of a variable is to add a matmul to it."""

    is_direct: bool
    """True if each iteration adds exactly one matmul."""
    is_alone: bool
    """True if the body does nothing else but wait for blocks."""


def summing_loop(
    body: Sequence[ast.stmt], name: str, resident: Mapping[str, Any]
) -> SummingLoop | None:
    """Recognizes a loop body that accumulates matmuls in a variable, or returns None.

    Args:
        body: the statements of the loop.
        name: the variable.
        resident: the variables before the loop.
    """
    uses = occurrences(*body, name=name)
    found = [
        (enclosing, node)
        for enclosing, node in _statements(body, ())
        if _addend(node, name) is not None
    ]
    if len(found) != 1:
        return None
    enclosing, statement = found[0]
    if len(uses) != len(occurrences(statement, name=name)):
        return None
    if any(not isinstance(each, ast.With | ast.For | ast.If) for each in enclosing):
        return None
    waited = {
        item.optional_vars.id
        for each in enclosing
        if isinstance(each, ast.With)
        for item in each.items
        if isinstance(item.optional_vars, ast.Name)
    }
    operands = _addend(statement, name)
    assert operands is not None
    in_place = all(
        isinstance(part, ast.Name)
        and (part.id in waited or isinstance(resident.get(part.id), Resident))
        for part in (operands.left, operands.right)
    )
    stored = set(stored_names(body)) - {name}
    rebound = variables_in(operands) & stored
    return SummingLoop(
        is_direct=all(isinstance(each, ast.With) for each in enclosing),
        is_alone=in_place and rebound <= waited and _only_waits(body, statement),
    )


def _statements(
    body: Sequence[ast.stmt], enclosing: tuple[ast.stmt, ...]
) -> Iterator[tuple[tuple[ast.stmt, ...], ast.stmt]]:
    """Yields the leaf statements of a body, each with its enclosing statements."""
    for statement in body:
        parts = [getattr(statement, each, []) for each in ("body", "orelse")]
        if any(parts):
            for part in parts:
                yield from _statements(part, (*enclosing, statement))
        else:
            yield enclosing, statement


def _addend(statement: ast.stmt, name: str) -> ast.BinOp | None:
    """Returns the matmul that a statement adds to a variable, or None."""
    match statement:
        case ast.AugAssign(
            ast.Name(target), ast.Add(), ast.BinOp(_, ast.MatMult()) as product
        ) | ast.Assign(
            [ast.Name(target)],
            ast.BinOp(ast.Name(), ast.Add(), ast.BinOp(_, ast.MatMult()) as product),
        ) if target == name:
            if isinstance(statement, ast.Assign):
                assert isinstance(statement.value, ast.BinOp)
                left = statement.value.left
                return product if isinstance(left, ast.Name) and left.id == name else None
            return product
        case _:
            return None


def _only_waits(body: Sequence[ast.stmt], adding: ast.stmt) -> bool:
    """True if a body only waits for blocks, apart from the accumulating statement."""
    for statement in body:
        match statement:
            case ast.With(items, inner):
                waits = all(
                    isinstance(item.context_expr, ast.Call)
                    and isinstance(item.context_expr.func, ast.Attribute)
                    and item.context_expr.func.attr == "wait"
                    for item in items
                )
                if not waits or not _only_waits(inner, adding):
                    return False
            case ast.For(_, _, inner, []):
                if not _only_waits(inner, adding):
                    return False
            case _ if statement is not adding:
                return False
            case _:
                pass
    return True


def statement_after(syntax: ast.AST, statement: ast.stmt | None) -> ast.stmt | None:
    """Returns the next statement in the same block, or None."""
    for node in ast.walk(syntax):
        for name in ("body", "orelse"):
            found: object = getattr(node, name, None)
            block = cast(list[ast.stmt], found) if isinstance(found, list) else []
            for each, following in pairwise(block):
                if each is statement:
                    return following
    return None


# Sums in a kernel


@dataclass(frozen=True)
class Iterations:
    """First and last counter value of a loop that runs at least once."""

    first: int
    last: int


@dataclass(eq=False)
class Accumulation(Resident):
    """Accumulated matmuls, during a loop and after it."""

    name: str = field(kw_only=True)
    iterations: Iterations | None = field(default=None, kw_only=True)
    """Iterations of the loop, if the first one initializes the sums; None if they exist before."""
    target: str | None = field(default=None, kw_only=True)
    """Buffer of the block that the sums are stored in right after the loop, if any."""
    in_registers: bool = field(default=False, kw_only=True)
    is_released: bool = field(default=False, kw_only=True)
    """True once the sums have been released."""
    before: Operation | None = field(default=None, kw_only=True)
    """Op before the loop, to which the engine setup is hoisted; None if other work needs setups."""
    setups: list[tuple[tuple[object, ...], list[Operation]]] = field(
        default_factory=list[tuple[tuple[object, ...], list[Operation]]], kw_only=True
    )
    """Engine setup ops of each matmul, keyed by their operands."""

    @property
    def is_in_target(self) -> bool:
        """True if the sums end up in the block that they are stored in."""
        return self.target is not None


class AccumulatingWriter(BlockWriter):
    """Writer of block expressions that also accumulates matmuls."""

    pending: Accumulation | None = None
    """Sums that are currently in destination registers."""

    # Before, in and after the loop

    def begin_sums(self, sums: Accumulation, start: Expression, *, is_alone: bool) -> None:
        """Prepares sums before their loop, starting from the elements of an expression."""
        tiles = prod(sums.shape)
        matrices = prod(sums.shape[:-2])
        begins = isinstance(start, Fill) and start.number == 0 and sums.iterations is not None
        if is_alone and begins and matrices == 1 and tiles <= capacity(True):
            sums.in_registers, sums.target = True, None
            self.pending = sums
            sums.before = self.kernel.builder.op("tile_regs_acquire")
            return
        if sums.target is None or self.formats[sums.target] is not DataType.FLOAT32:
            resident = self.scratch(sums.name, sums, 1)
            sums.buffer = resident.buffer
            if (
                not begins
                or sums.iterations is None
                or sums.iterations.first == sums.iterations.last
            ):
                sums.target = None
            self.kernel.op("cb_reserve_back", sums.buffer, tiles)
        else:
            sums.buffer = sums.target
        if not begins:
            sums.iterations = None
            self.write(start, sums.buffer)
        if is_alone:
            sums.before = self.kernel.builder.last_op

    def add_matmul(self, sums: Accumulation, product: Matmul, counter: Number | None) -> None:
        """Emits the addition of a matmul to sums."""
        if sums.in_registers:
            self._add_in_registers(sums, product)
            return
        with self.preparing(sums.buffer):
            prepared = self._prepared(product)
            assert isinstance(prepared, Matmul)
            self._add_by_packer(sums, prepared, counter)

    def _set_up_engines(self, sums: Accumulation, product: Matmul, block: tuple[int, int]) -> None:
        """Emits the engine setup of a matmul, and records it so that it can be hoisted."""
        builder = self.kernel.builder
        self.set_up_matmul(product, block)
        if sums.before is None:
            return
        last = builder.last_op
        assert last is not None
        first = last.prev_op
        assert first is not None
        key = (*last.operands, *last.attributes.items())
        sums.setups.append((key, [first, last]))

    def end_sums(self, sums: Accumulation) -> None:
        """Finishes the loop: hoists its engine setup if all matmuls share one."""
        if len({key for key, _ in sums.setups}) == 1:
            assert sums.before is not None
            (_, kept), *others = sums.setups
            for op in (op for _, ops in others for op in ops):
                op.detach()
                op.erase()
            previous = sums.before
            for op in kept:
                op.detach()
                block = previous.parent_block()
                assert block is not None
                block.insert_op_after(op, previous)
                previous = op
        sums.setups.clear()
        tiles = prod(sums.shape)
        if not sums.in_registers and not sums.is_in_target:
            self.kernel.op("cb_push_back", sums.buffer, tiles)
            self.kernel.op("cb_wait_front", sums.buffer, tiles)
        self.kernel.forget_formats()

    # Sums in destination registers

    def _add_in_registers(self, sums: Accumulation, product: Matmul) -> None:
        *outer, rows, columns = sums.shape
        block = (rows, columns)
        self._set_up_engines(sums, product, block)
        self.multiply(product, [0] * (len(outer) + 2), block)

    def finish_sums(self, expression: Expression, target: str) -> bool:
        """Computes the last use of sums in registers and packs it to a target buffer.

        Returns False if the expression needs more registers, or anything but elementwise functions.
        """
        sums = self.pending
        assert sums is not None
        for part in parts_of(expression):
            is_read = isinstance(part, Broadcast) and _is_resident(part.of) and part.of is not sums
            if not (isinstance(part, Apply | Fill | Resident) or is_read):
                return False
        if expression.shape != sums.shape:
            return False
        positions = self.within([0] * len(sums.shape), (sums.shape[-2], sums.shape[-1]))
        with self.preparing(target):
            if self._allocate(expression, sums, positions, {}) is None:
                return False
            self.pending, sums.in_registers, sums.is_released = None, False, True
            self.kernel.forget_formats()
            self._finish_tiles(expression, sums, positions, False, target)
        self.kernel.op("tile_regs_release")
        return True

    def write(self, expression: Expression, target: str) -> None:
        self.settle_sums()
        super().write(expression, target)

    def settle_sums(self) -> None:
        """Packs sums from registers into a scratch buffer, to free the registers for other code."""
        sums = self.pending
        if sums is None:
            return
        self.pending, sums.in_registers = None, False
        resident = self.scratch(sums.name, sums, 1)
        sums.buffer = resident.buffer
        tiles = prod(sums.shape)
        positions = self.within([0] * len(sums.shape), (sums.shape[-2], sums.shape[-1]))
        self.kernel.op("cb_reserve_back", sums.buffer, tiles)
        self.kernel.builder.start_packing()
        self.pack_tiles(range(tiles), sums.buffer, sums.shape, positions)
        self.kernel.op("tile_regs_release")
        self.kernel.op("cb_push_back", sums.buffer, tiles)
        self.kernel.op("cb_wait_front", sums.buffer, tiles)

    def drop(self, resident: Resident) -> None:
        if isinstance(resident, Accumulation):
            if resident.is_released:
                return
            resident.is_released = True
            if resident.is_in_target:
                self._occupied.discard(resident.buffer)
                return
            if self.pending is resident:
                self.pending = None
                self.kernel.builder.start_packing()
                self.kernel.op("tile_regs_release")
                return
        super().drop(resident)

    # Sums that the packer accumulates

    def _add_by_packer(self, sums: Accumulation, product: Matmul, counter: Number | None) -> None:
        """Adds a matmul to sums in L1 by the accumulation of the packer.

        If the sums are stored right after the loop, its last iteration reloads them into registers,
        adds the last matmul there, and packs the total to the target block.
        """
        kernel, builder = self.kernel, self.kernel.builder
        block = matmul_block_sizes(product, capacity(True))[0]
        tiles = prod(sums.shape)
        iterations = sums.iterations
        assert iterations is None or counter is not None
        self._set_up_engines(sums, product, block)
        is_last = None
        if iterations is not None and sums.is_in_target and sums.target != sums.buffer:
            is_last = builder.compare("eq", counter or 0, iterations.last)
            is_last.name_hint = "is_last"
        builder.comment("The packer adds to what it packed before.")
        if is_last is not None:
            with builder.when(is_last):
                kernel.op("cb_push_back", sums.buffer, tiles)
                kernel.op("cb_wait_front", sums.buffer, tiles)
        with builder.otherwise() if is_last is not None else nullcontext():
            self._enable_accumulation(iterations, counter)
        registers = range(block[0] * block[1])
        with ExitStack() as loops:
            position = self.positions(loops, sums.shape, block)
            positions = self.within(position, block)
            with builder.destination_registers():
                if is_last is not None:
                    with builder.when(is_last):
                        self._reload(sums, product, block, positions)
                self.multiply(product, position, block)
                builder.start_packing()
                if is_last is not None and sums.target is not None:
                    with builder.when(is_last):
                        self.pack_tiles(registers, sums.target, sums.shape, positions)
                with builder.otherwise() if is_last is not None else nullcontext():
                    self.pack_tiles(registers, sums.buffer, sums.shape, positions)
        if is_last is not None:
            with builder.when(is_last):
                kernel.op("cb_pop_front", sums.buffer, tiles)
        with builder.otherwise() if is_last is not None else nullcontext():
            kernel.op("pack_reconfig_l1_acc", 0)
        kernel.forget_formats()

    def _enable_accumulation(self, iterations: Iterations | None, counter: Number | None) -> None:
        """Enables L1 accumulation of the packer unless the iteration initializes the sums."""
        builder = self.kernel.builder
        with ExitStack() as stack:
            if iterations is not None:
                is_later = builder.compare("ne", counter or 0, iterations.first)
                stack.enter_context(builder.when(is_later))
            self.kernel.op("pack_reconfig_l1_acc", 1)

    def _reload(
        self,
        sums: Accumulation,
        product: Matmul,
        block: tuple[int, int],
        positions: Sequence[Sequence[Number]],
    ) -> None:
        """Loads sums into the registers, to which the last matmul is added."""
        kernel = self.kernel
        kernel.forget_formats()
        for register, position in enumerate(positions):
            kernel.load(sums.buffer, register, self.arithmetic.index(position, sums.shape))
        self.set_up_matmul(product, block)


def _is_resident(expression: Expression) -> bool:
    return isinstance(expression, Resident)
