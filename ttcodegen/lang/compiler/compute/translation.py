"""Translation of compute kernels: blocks, block expressions, kept values."""

from __future__ import annotations

import ast
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import count
from math import prod
from typing import Any, ClassVar

from ttcodegen.dialects.core.datatypes import DataType
from ttcodegen.dialects.ttkernel.definition import PRINTED
from ttcodegen.lang.compiler.compute.compute import BlockWriter
from ttcodegen.lang.compiler.compute.expressions import (
    INTEGERS,
    Expression,
    Fill,
    Resident,
    depends_on,
    depends_within,
    is_costly,
)
from ttcodegen.lang.compiler.compute.operators import ExpressionTranslator
from ttcodegen.lang.compiler.python.block_lifetimes import (
    BlockLifetime,
    BlockLifetimes,
    Regions,
    is_assigned_once,
    reads_as_value,
    shares_line,
    stores_into,
    uses_after,
)
from ttcodegen.lang.compiler.python.captured import Captured, stored_names
from ttcodegen.lang.compiler.python.pipe_nets import NetUses
from ttcodegen.lang.compiler.python.variables import (
    Frame,
    Limits,
    LocalFunction,
    Returned,
    assigned_values,
    last_line,
)
from ttcodegen.lang.simulator.buffers import (
    Acquisition,
    Block,
    BlockState,
    DataflowBuffer,
    Event,
    no_expression,
)
from ttcodegen.lang.simulator.context import Kernel, KernelKind
from ttcodegen.lang.simulator.expressions import no_operand
from ttcodegen.lang.simulator.occurrences import occurrences
from ttcodegen.lang.simulator.shapes import Shape, check_layout, is_tuple, shape_text


@dataclass(eq=False)
class ComputeBlock(Resident):
    """A block that a compute kernel has acquired."""

    language_class: ClassVar[type] = Block
    source: DataflowBuffer
    life: BlockLifetime
    home: Resident | None = None
    """Scratch buffer with the stored value, for blocks that the kernel also reads."""

    @property
    def is_reserved(self) -> bool:
        """True if the block was reserved, to be written."""
        return self.life.acquisition is Acquisition.RESERVE


class ComputeTranslator(ExpressionTranslator):
    """Translates compute kernels."""

    def __init__(
        self, kernel: Kernel, captured: Captured, writer: BlockWriter, nets: NetUses
    ) -> None:
        super().__init__(kernel, captured, writer, nets)
        self.used: set[str] = set()
        """Names of the dataflow buffers that the kernel uses."""
        self._lifetimes = BlockLifetimes(KernelKind.COMPUTE)
        self._homes: dict[Frame, dict[str, Resident]] = {}
        self._copies: dict[tuple[Frame, str], tuple[ComputeBlock, Regions]] = {}
        """Variables whose scratch buffers hold copies of blocks, with the regions of assignment."""
        self._branch_results: dict[tuple[Frame, str], Resident | None] = {}
        """Scratch buffers that a branch leaves in variables; None for other values."""
        self._shared: dict[tuple[Frame, str], Regions] = {}
        """Variables materialized for several uses, with the regions of assignment."""
        self._joined_names: list[Sequence[str]] = []
        """Variables that the open branches pass to the code after them."""
        self._entered: set[Frame] = set()
        """Functions whose bodies have been entered."""
        self._statement: ast.stmt | None = None

    def kernel_body(self) -> None:
        super().kernel_body()
        self._lifetimes.check_released()

    @property
    def homes(self) -> dict[str, Resident]:
        """Variables of the current frame whose blocks are in scratch buffers, by name."""
        return self._homes.setdefault(self.frame, {})

    # Blocks

    def method(self, value: Any, name: str) -> Callable[..., Any] | None:
        match value, name:
            case DataflowBuffer(), "reserve" | "wait":
                return lambda: self._acquire(value, Acquisition(name))
            case ComputeBlock(), "store":
                return partial(self._store, value)
            case ComputeBlock(), "push" | "pop":
                return lambda: self._release(value, Event(name))
            case _:
                return super().method(value, name)

    def leave(self, held: Any, node: ast.stmt) -> None:
        if isinstance(held, ComputeBlock):
            self._release(held, Event.PUSH if held.is_reserved else Event.POP)
        else:
            super().leave(held, node)

    def _acquire(self, buffer: DataflowBuffer, acquisition: Acquisition) -> ComputeBlock:
        if not buffer.data_type.is_float and buffer.data_type not in INTEGERS:
            self.refuse("the compiler computes with floats, int32 and uint32 only")
        life = self._lifetimes.acquire(buffer.name, acquisition, self.where, self.regions)
        self.used.add(buffer.name)
        buffer.is_computed_with = True
        name = "cb_reserve_back" if acquisition is Acquisition.RESERVE else "cb_wait_front"
        self.writer.kernel.op(name, buffer.name, buffer.pages)
        held = DataType.FLOAT32 if buffer.data_type.is_float else buffer.data_type
        elements = None if buffer.is_tiled else buffer.shape
        return ComputeBlock(buffer.tiles, buffer.name, buffer, life, holds=held, elements=elements)

    def _record(self, block: ComputeBlock, event: Event) -> None:
        block.life.record(event, self.where, self.regions)

    def print_elements(self, value: Any, pages: int) -> bool:
        if not isinstance(value, ComputeBlock) or (value.is_reserved and value.home is None):
            return False
        resident = value.home or value
        kind = self.writer.formats[resident.buffer].mlir
        if kind not in PRINTED or value.elements is not None:
            return False
        kernel = self.writer.kernel
        self.print_tiles(
            prod(resident.shape),
            kind,
            lambda tile: self.builder.get("get_tile_address", kernel[resident.buffer], tile),
        )
        return True

    def _release(self, block: ComputeBlock, event: Event) -> None:
        self._record(block, event)
        home, block.home = block.home, None
        fronts = [] if block.is_reserved else [block.buffer]
        self._save_dependents([*fronts, *([home.buffer] if home is not None else [])], {})
        if home is not None and block.is_reserved:
            self._write(lambda: self.writer.write(home, block.buffer))
        name = "cb_push_back" if block.is_reserved else "cb_pop_front"
        self.writer.kernel.op(name, block.buffer, block.source.pages)
        if home is not None:
            self.writer.drop(home)

    def _store(self, block: ComputeBlock, expr: Any) -> None:
        if not isinstance(expr, Expression):
            raise no_expression(expr)
        given = self.expression(expr)
        check_layout(given.elements is None, block.source.name, block.source.is_tiled)
        if not _have_same_shape(given, block):
            self.refuse(
                f"an expression of the shape {shape_text(given.units)} does not fit into a block "
                f"of '{block.buffer}', which has the shape {shape_text(block.units)}"
            )
        if given.data_type is not block.data_type and not isinstance(given, Fill):
            self.refuse(
                f"an expression of {given.data_type.numpy} does not fit into a block of "
                f"'{block.buffer}', which holds {block.data_type.numpy}: kernels do not convert"
            )
        self._record(block, Event.STORE)
        if block.home is not None:
            home = block.home
            self._save_dependents([home.buffer], {})
            self._write(lambda: self.writer.replace(home, given))
        elif block.is_reserved and not self._is_read(block):
            self._write(lambda: self.writer.write(given, block.buffer))
        else:
            self._materialize_block(block, given)

    def _materialize_block(self, block: ComputeBlock, content: Expression) -> None:
        """Moves a block that is both stored into and read to a scratch buffer."""
        name = next(iter(self._names_of(block)), f"{block.buffer}_block")

        def fill() -> None:
            block.home = self.writer.fill_scratch(name, content, 2)

        self._write(fill)

    def _names_of(self, block: ComputeBlock) -> list[str]:
        return [
            name
            for frame in self.frames
            for name, value in frame.names.items()
            if value is block and name != self.result_name
        ]

    def _is_read(self, block: ComputeBlock) -> bool:
        """True if the kernel reads back what it stores into a block."""
        return any(
            reads_as_value(frame.syntax, name, block.life.acquired.line)
            for frame in self.frames
            for name, value in frame.names.items()
            if value is block
        )

    def _write(self, action: Callable[[], object]) -> None:
        self.writer.begin()
        try:
            action()
        except ValueError as error:
            self.refuse(str(error), remedy="store a part of it into a dataflow buffer first")

    # Variables

    def update(self, name: str, old: Any, symbol: str, value: Any) -> None:
        if (self.frame, name) in self._copies and symbol == "Add":
            block, _ = self._copies[self.frame, name]
            self.refuse(
                f"'{name}' is a block of '{block.buffer}' here, into which += stores, and another "
                "value elsewhere: the kernel has a copy of the block",
                remedy="store into the block by a name of its own",
            )
        if isinstance(old, ComputeBlock) and symbol == "Add":
            self._store(old, value)
        else:
            super().update(name, old, symbol, value)

    def bind(self, target: ast.expr, value: Any) -> None:
        if not isinstance(target, ast.Tuple) or not is_tuple(value):
            super().bind(target, value)
            return
        values, kept = self._save_overwritten(target, value)
        super().bind(target, values)
        for name, resident in kept.items():
            if self.names.get(name) is resident:
                self.homes[name] = resident
            else:
                self.writer.drop(resident)

    def _save_overwritten(
        self, target: ast.Tuple, values: tuple[Any, ...]
    ) -> tuple[tuple[Any, ...], dict[str, Resident]]:
        """Saves right-hand sides of a tuple assignment that depend on variables overwritten by it.

        Variables in scratch buffers are overwritten one after the other.
        """
        replaced: list[str] = []
        found = list(values)
        kept: dict[str, Resident] = {}
        for number, (each, value) in enumerate(zip(target.elts, values, strict=False)):
            name = each.id if isinstance(each, ast.Name) else ""
            if depends_on(value, replaced):
                given, scratch_name = self.expression(value), self._unused(f"{name}_before")

                def fill(
                    name: str = name, given: Expression = given, scratch_name: str = scratch_name
                ) -> None:
                    kept[name] = self.writer.fill_scratch(scratch_name, given, 2)

                self._write(fill)
                found[number] = kept[name]
            home = self.homes.get(name)
            if home is not None and home is not value:
                replaced.append(home.buffer)
        return tuple(found), kept

    def _unused(self, stem: str) -> str:
        """A name of a scratch buffer that no variable uses."""
        return _unused_name(
            stem, {home.buffer for homes in self._homes.values() for home in homes.values()}
        )

    def store_name(self, name: str, value: Any) -> None:
        if self._shared.get((self.frame, name)) == self.regions:
            self._keep_old_value(name)
        home = self.homes.get(name)
        key = (self.frame, name)
        if home is not None and isinstance(value, ComputeBlock):
            self._copies[key] = (value, self.regions)
        elif key in self._copies and self._copies[key][1][: len(self.regions)] == self.regions:
            del self._copies[key]
        if home is not None and isinstance(value, Expression) and value is not home:
            if not _have_same_shape(value, home):
                self.refuse(f"'{name}' has another shape than before")
            given = self.expression(value)
            self._save_dependents([home.buffer], {name: value})
            self._write(lambda: self.writer.replace(home, given))
            self.names[name] = home
            return
        super().store_name(name, value)
        if home is None and isinstance(value, Expression):
            self._materialize_shared(name, value, self._statement)

    # Values with several uses

    def _materialize_shared(self, name: str, value: Expression, statement: ast.AST | None) -> None:
        """Materializes a value in a scratch buffer if recomputing it for each use costs more."""
        frame = self.frame
        if not self.writer.needs.computes_once or frame not in self._entered:
            return
        if isinstance(value, Resident) or any(name in each for each in self._joined_names):
            return
        uses = uses_after(frame.syntax, statement, name)
        if uses < 2 or frame.names.get(name) is not value or not is_costly(value):
            return
        is_alone = is_assigned_once(frame.syntax, name) and not frame.repeated_bodies
        self.builder.comment(f"`{name}` is computed once, for all that use it.")
        self._materialize(name, value, copies=1 if is_alone else 2)
        self.writer.share(self.homes[name])
        self._shared[frame, name] = self.regions

    def _keep_old_value(self, name: str) -> None:
        """Keeps the old value of a variable for its dependents when it is reassigned."""
        frame, homes = self.frame, self.homes
        if frame.names.get(name) is not homes.get(name):
            return
        key = _unused_name(f"{name}_before", homes)
        homes[key] = frame.names[key] = homes.pop(name)
        self._shared[frame, key] = self._shared.pop((frame, name))

    def _enter_function(self) -> None:
        """Materializes costly arguments of an inlined call that the function uses repeatedly."""
        frame = self.frame
        if frame in self._entered:
            return
        self._entered.add(frame)
        for name, value in list(frame.names.items()) if len(self.frames) > 1 else ():
            if isinstance(value, Expression):
                self._materialize_shared(name, value, None)

    def statement(self, node: ast.stmt) -> None:
        outer, self._statement = self._statement, node
        try:
            super().statement(node)
        finally:
            self._statement = outer
        self._drop_unused(node)

    def _drop_unused(self, node: ast.stmt) -> None:
        """Releases scratch buffers of values that are not used any more."""
        frame = self.frame
        end: int = getattr(node, "end_lineno", 0)
        if self.homes and shares_line(frame.syntax, end):
            # Further statements on the same line may use them.
            end -= 1
        for name, home in list(self.homes.items()):
            if self._shared.get((frame, name)) != self.regions or frame.names.get(name) is not home:
                continue
            if self._is_read_again(name, end) or self._has_dependents(name, home, end):
                continue
            self.writer.drop(self.homes.pop(name))
            del self._shared[frame, name]
            # Dependents that were not read again are reassigned before any use.
            for other, value in list(frame.names.items()):
                if depends_within(value, [home.buffer]):
                    del frame.names[other]

    def _is_read_again(self, name: str, end: int) -> bool:
        """True if a variable may be read after a line."""
        names = self.frame.names
        return self.frame.reads_later(name, end) or any(
            isinstance(value, LocalFunction) for value in names.values()
        )

    def _has_dependents(self, name: str, home: Resident, end: int) -> bool:
        """True if another variable, which may be read later, depends on a scratch buffer."""
        return any(
            depends_within(value, [home.buffer])
            for frame in self.frames
            for other, value in frame.names.items()
            if frame is not self.frame or (other != name and self._is_read_again(other, end))
        )

    def survives(self, name: str, before: Any) -> bool:
        return name in self.homes or super().survives(name, before)

    def before_loop(self, body: Sequence[ast.stmt], limits: Limits | None = None) -> None:
        """Moves block expressions in variables that a loop assigns to scratch buffers."""
        super().before_loop(body, limits)
        self._save_before(body, body[0].lineno - 1)
        for name, value in list(self.names.items()):
            if isinstance(value, ComputeBlock) and self._is_updated(value, name, body):
                self._materialize_block_before(value)
        for name in stored_names(body):
            value = self.names.get(name)
            if isinstance(value, Expression) and name not in self.homes:
                if isinstance(value, ComputeBlock):
                    is_other = not self._reads_first(name, body)
                    if is_other or value.life.is_released or stores_into(list(body), name):
                        continue
                    self._record(value, Event.READ)
                self._materialize(name, value)

    def before_condition(self, body: Sequence[ast.stmt]) -> None:
        """Moves variables that a branch assigns and later code reads to scratch buffers."""
        super().before_condition(body)
        end = last_line(body)
        self._save_before(body, end)
        for name, value in list(self.names.items()):
            if isinstance(value, ComputeBlock):
                if not value.life.is_released and stores_into(list(body), name):
                    self._materialize_block_before(value)
                elif self._is_replaced(value, name, body) and self.frame.reads_later(name, end):
                    self._record(value, Event.READ)
                    self._materialize(name, value)
                    self._copies[self.frame, name] = (value, self.regions)
            elif (
                isinstance(value, Expression)
                and name not in self.homes
                and name in stored_names(body)
                and self.frame.reads_later(name, end)
            ):
                self._materialize(name, value)

    def _save_before(self, body: Sequence[ast.stmt], line: int) -> None:
        """Saves values that are read after a line before statements replace what they depend on."""
        for name in stored_names(body):
            home = self.homes.get(name)
            if home is not None:
                self._save_dependents([home.buffer], {name: home}, line)

    def _is_replaced(self, block: ComputeBlock, name: str, body: Sequence[ast.stmt]) -> bool:
        """True if statements assign block expressions to a variable with a readable block."""
        values = assigned_values(body, name)
        return (
            block.life.state in (BlockState.MR, BlockState.RW)
            and bool(values)
            and all(
                isinstance(value, ast.BinOp | ast.UnaryOp | ast.Call | ast.Name)
                and not (
                    isinstance(value, ast.Call)
                    and isinstance(value.func, ast.Attribute)
                    and value.func.attr in ("wait", "reserve")
                )
                for value in values
            )
        )

    def _is_updated(self, block: ComputeBlock, name: str, body: Sequence[ast.stmt]) -> bool:
        """True if a loop stores into a block that a variable holds before the loop."""
        return (
            not block.life.is_released
            and stores_into(list(body), name)
            and self._reads_first(name, body)
        )

    def _materialize_block_before(self, block: ComputeBlock) -> None:
        if block.home is not None or not self._is_read(block):
            return
        is_empty = block.is_reserved and block.life.state is BlockState.MW
        empty = Fill(block.shape, 0.0, elements=block.elements)
        self._materialize_block(block, empty if is_empty else block)

    def _reads_first(self, name: str, body: Sequence[ast.stmt]) -> bool:
        """True if statements read a variable before they assign it."""
        found = [(n.lineno, isinstance(n.ctx, ast.Store)) for n in occurrences(*body, name=name)]
        return not min(found)[1]

    def _materialize(
        self, name: str, value: Expression, frame: Frame | None = None, *, copies: int = 2
    ) -> None:
        frame = frame or self.frame
        homes = self._homes.setdefault(frame, {})

        def fill() -> None:
            homes[name] = self.writer.fill_scratch(name, value, copies)

        self._write(fill)
        frame.names[name] = homes[name]

    def _save_dependents(
        self, buffers: Sequence[str], besides: dict[str, Any], line: int | None = None
    ) -> None:
        """Saves values that later statements read and that depend on released buffers."""
        for frame in self.frames:
            homes = self._homes.setdefault(frame, {})
            for name, value in list(frame.names.items()):
                is_block = isinstance(value, ComputeBlock)
                if (frame is self.frame and name in besides) or is_block:
                    continue
                if not depends_on(value, buffers) or not self._is_read_later(name, frame, line):
                    continue
                home = homes.get(name)
                if home is value:
                    continue
                if home is not None:
                    self._write(lambda kept=value, home=home: self.writer.replace(home, kept))
                    frame.names[name] = home
                else:
                    self._materialize(name, value, frame)

    def _is_read_later(self, name: str, frame: Frame, line: int | None = None) -> bool:
        end: int = getattr(frame.here, "end_lineno", 0)
        if line is not None and frame is self.frame:
            end = line
        return name == self.result_name or frame.reads_later(name, end)

    def inside(self, body: Sequence[ast.stmt], joined: Sequence[str] = ()) -> None:
        """Translates a body, at whose end the scratch buffers of its variables are released."""
        before = set(self.homes)
        self._joined_names.append(joined)
        try:
            self._enter_function()
            self.body(body)
            for name in joined:
                self._materialize_for_join(name)
        except Returned as ending:
            self._pass_to_caller(ending.value, before)
            raise
        finally:
            self._joined_names.pop()
            self._release_homes(before)

    def _materialize_for_join(self, name: str) -> None:
        """Puts a variable's value into the scratch buffer that both branches fill."""
        value = self.names.get(name)
        home: Resident | None = None
        if isinstance(value, Expression):
            if name not in self.homes:
                self._materialize(name, self.expression(value))
            home = self.homes.pop(name)
            self.writer.vacate(home)
            # Translation of the other branch must not see it.
            del self.names[name]
        other = self._branch_results.setdefault((self.frame, name), home)
        if _buffer_and_shape(other) != _buffer_and_shape(home):
            self.refuse(
                f"'{name}' has another shape in each branch of the condition, or is a block "
                "expression in one of them only",
                remedy="store it into a dataflow buffer in each branch",
            )

    def join(self, name: str) -> None:
        home = self._branch_results.pop((self.frame, name), None)
        if home is not None:
            self.writer.occupy(home)
            self.names[name] = self.homes[name] = home

    def _pass_to_caller(self, value: Any, before: set[str]) -> None:
        """Passes scratch buffers that the result of a call depends on to the caller."""
        if len(self.frames) < 2:
            return
        caller = self._homes.setdefault(self.frames[-2], {})
        for name, home in list(self.homes.items()):
            if name not in before and depends_within(value, [home.buffer]):
                key = _unused_name(f"{self.frame.name}_{name}", caller)
                caller[key] = self.homes.pop(name)
                if self._shared.pop((self.frame, name), None) is not None:
                    self._shared[self.frames[-2], key] = self.regions
                    self.frames[-2].names[key] = caller[key]

    def _release_homes(self, before: set[str]) -> None:
        for name in [name for name in self.homes if name not in before]:
            self.writer.drop(self.homes.pop(name))
            self.names.pop(name, None)

    def expression(self, value: Any, what: str = "it") -> Expression:
        if isinstance(value, ComputeBlock):
            self._record(value, Event.READ)
            return value.home or value
        if not isinstance(value, Expression):
            raise no_operand(what, value)
        return value


def _buffer_and_shape(home: Resident | None) -> tuple[str, Shape] | None:
    return None if home is None else (home.buffer, home.units)


def _have_same_shape(left: Expression, right: Expression) -> bool:
    """True if two expressions have the same shape."""
    return (left.shape, left.elements) == (right.shape, right.elements)


def _unused_name(stem: str, taken: Container[str]) -> str:
    """A name that is not taken: the stem, with a numeric suffix if needed."""
    names = (stem if number == 1 else f"{stem}_{number}" for number in count(1))
    return next(name for name in names if name not in taken)
