"""Data movement kernels of a matmul.

The first core of a row reads the blocks of the left operand and multicasts them to the others, the
first core of a column those of the right operand; all cores write their blocks of the result."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import reduce

from xdsl.dialects.builtin import IntegerType
from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue

from ttcodegen.conversions.ttir_to_ttmetal.matmul.plan import MatmulPlan
from ttcodegen.conversions.ttir_to_ttmetal.parts.data_movement import MovementKernel, element_word
from ttcodegen.conversions.ttir_to_ttmetal.parts.loop_nests import broadcast_strides
from ttcodegen.dialects.ttcore.tile import TILE_SIDE
from ttcodegen.dialects.ttkernel.attributes import NocAddressType
from ttcodegen.dialects.ttkernel.builder import Value, number_of
from ttcodegen.dialects.ttmetal.programs import (
    CoreArea,
    Kernel,
    NocX,
    NocY,
    Place,
    Processor,
    RuntimeArgument,
)
from ttcodegen.dialects.ttnn.placement import declared_data_type
from ttcodegen.naming.programs import kernel_name


@dataclass(frozen=True)
class MatmulMovement:
    """Builds the readers and writers."""

    plan: MatmulPlan

    def left_kernels(self) -> list[tuple[Kernel, FuncOp]]:
        """Kernels that read or receive blocks of the left operand."""
        grid = self.plan.cores
        last = self.plan.blocking.grid_columns - 1
        sends = _rectangle(1, Place.ROW, Place.LAST_COLUMN, Place.ROW) if last else ()
        reader = self.plan.parts.data_movement(
            kernel_name("read_left", self.plan.name),
            Processor.READER,
            "Reads blocks of the left operand"
            + (" and multicasts them along the row of cores." if last else "."),
            CoreArea(0, grid.last_row),
            tensors=[self.plan.left],
            buffers=["left"],
            arguments=(*self._coordinate_argument("row"), *sends),
            semaphores=self.plan.semaphores("left"),
            constants=self.plan.constants(
                "batches rows inner block_rows block_inner grid_rows row_blocks column_blocks "
                "inner_blocks" + " grid_columns" * bool(last)
            ),
        )  # fmt: skip
        self._read_left(reader)
        if not last:
            return [reader.finish()]
        receiver = self.plan.parts.data_movement(
            kernel_name("receive_left", self.plan.name),
            Processor.READER,
            "Receives blocks of the left operand from the first core of the row.",
            CoreArea(grid.last_column, grid.last_row, first_column=1),
            tensors=[],
            buffers=["left"],
            arguments=_noc_coordinates("sender", 0, Place.ROW),
            semaphores=self.plan.semaphores("left"),
            constants=self.plan.constants(
                "batches block_rows block_inner row_blocks column_blocks inner_blocks"
            ),
        )  # fmt: skip
        self._receive_left(receiver)
        return [reader.finish(), receiver.finish()]

    def _read_left(self, kernel: MovementKernel) -> None:
        """Reads all blocks of the left operand that a row of cores needs."""
        builder = kernel.builder
        stream = _BlockStream(kernel, "left", self._block_tiles(kernel, "left"), "grid_columns")
        nest = self.plan.batch_loops(self.plan.left)
        with builder.loop(kernel["batches"], name_hint="batch") as batch:
            known = kernel.coordinates(nest.tile_coordinates, {"batch": batch})
            matrix = kernel.page(nest.pages[0], known)
            with builder.loop(_passes(kernel), name_hint="pass") as number:
                first_row = self._first(kernel, number, "row")
                with builder.loop(kernel["inner_blocks"], name_hint="inner_block") as inner_block:
                    inner_tiles = self._inner_tiles(kernel, inner_block)
                    stream.begin_reading()
                    with builder.loop(kernel["block_rows"], name_hint="i") as i:
                        if number_of(kernel["rows"]) is None:
                            builder.comment(
                                "Rows past the end repeat the last one; they are not kept."
                            )
                        row = _clamped_sum(kernel, first_row, i, "rows", "tile_row")
                        line = kernel.sum([matrix, builder.product(row, kernel["inner"])])
                        line = builder.sum(
                            line, builder.product(inner_block, kernel["block_inner"])
                        )
                        builder.named(line, "first_page")
                        with builder.loop(inner_tiles, name_hint="j") as j:
                            place = builder.sum(builder.product(i, inner_tiles), j)
                            stream.read(
                                builder.sum(line, j), self.plan.names[self.plan.left], place
                            )
                    stream.end_reading()
                    self._pad_left(kernel, stream, inner_block, inner_tiles)
                    stream.send(builder.product(kernel["block_rows"], inner_tiles))

    def _inner_tiles(self, kernel: MovementKernel, inner_block: SSAValue) -> SSAValue:
        """Number of inner tiles in a block."""
        builder = kernel.builder
        if self.plan.sizes["inner"] == 1:
            return kernel["block_inner"]
        before = builder.product(inner_block, kernel["block_inner"])
        left = builder.difference(kernel["inner"], before)
        return builder.named(builder.smaller(kernel["block_inner"], left), "inner_tiles")

    def _pad_left(
        self,
        kernel: MovementKernel,
        stream: _BlockStream,
        inner_block: SSAValue,
        inner_tiles: SSAValue,
    ) -> None:
        """Writes zeros after the last column of the left operand."""
        columns = self.plan.inner % TILE_SIDE
        if not columns:
            return
        builder = kernel.builder
        with _in_last_block(kernel, inner_block):
            with builder.loop(kernel["block_rows"], name_hint="i") as i:
                next_row = builder.product(builder.sum(i, 1), inner_tiles)
                stream.pad(builder.difference(next_row, 1), (TILE_SIDE, columns),
                           element_word(declared_data_type(self.plan.left)))  # fmt: skip

    def _receive_left(self, kernel: MovementKernel) -> None:
        builder = kernel.builder
        stream = _BlockStream(kernel, "left", self._block_tiles(kernel, "left"), "", "sender")
        total = builder.product(kernel["batches"], _passes(kernel))
        with builder.loop(builder.product(total, kernel["inner_blocks"]), name_hint="block"):
            stream.receive()
        builder.op("noc_async_atomic_barrier")

    def right_kernels(self) -> list[tuple[Kernel, FuncOp]]:
        """Kernels that read or receive blocks of the right operand, and write the result."""
        grid = self.plan.cores
        last = self.plan.blocking.grid_rows - 1
        others = [*self.plan.outer, *self.plan.parts.outputs]
        buffers = ["right", *self.plan.outer_names, *self.plan.output_names]
        place = (*self._coordinate_argument("row"), *self._coordinate_argument("column"))
        words = (
            "batches rows columns block_rows block_columns block_inner grid_rows grid_columns "
            "row_blocks column_blocks inner_blocks inner"
        )
        # NoC 1 routes in the other direction: its rectangles begin at their last core.
        sends = _rectangle(Place.COLUMN, Place.LAST_ROW, Place.COLUMN, 1) if last else ()
        reader = self.plan.parts.data_movement(
            kernel_name("read_right", self.plan.name),
            Processor.WRITER,
            "Reads blocks of the right operand"
            + (", multicasts them along the column of cores," if last else "")
            + " and writes the result.",
            CoreArea(grid.last_column, 0),
            tensors=[self.plan.right, *others],
            buffers=buffers,
            arguments=(*place, *sends),
            semaphores=self.plan.semaphores("right"),
            constants=self.plan.constants(words),
        )
        self._write_right(reader, _BlockStream(
            reader, "right", self._block_tiles(reader, "right"), "grid_rows"
        ))  # fmt: skip
        if not last:
            return [reader.finish()]
        receiver = self.plan.parts.data_movement(
            kernel_name("receive_right", self.plan.name),
            Processor.WRITER,
            "Receives blocks of the right operand from the first core of the column and writes "
            "the result.",
            CoreArea(grid.last_column, grid.last_row, first_row=1),
            tensors=others,
            buffers=buffers,
            arguments=(*place, *_noc_coordinates("sender", Place.COLUMN, 0)),
            semaphores=self.plan.semaphores("right"),
            constants=self.plan.constants(words),
        )
        self._write_right(receiver, _BlockStream(
            receiver, "right", self._block_tiles(receiver, "right"), "", "sender"
        ))  # fmt: skip
        return [reader.finish(), receiver.finish()]

    def _write_right(self, kernel: MovementKernel, stream: _BlockStream) -> None:
        """Reads or receives the right operand's blocks, and writes the results."""
        builder = kernel.builder
        nest = self.plan.batch_loops(self.plan.right, *self.plan.outer)
        with builder.loop(kernel["batches"], name_hint="batch") as batch:
            known = kernel.coordinates(nest.tile_coordinates, {"batch": batch})
            pages = [kernel.page(page, known) for page in nest.pages]
            with builder.loop(_passes(kernel), name_hint="pass") as number:
                first_row = self._first(kernel, number, "row")
                first_column = self._first(kernel, number, "column")
                with builder.loop(kernel["inner_blocks"], name_hint="inner_block") as inner_block:
                    if stream.sender:
                        stream.receive()
                    else:
                        self._read_right(kernel, stream, pages[0], first_column, inner_block)
                self._write_block(kernel, batch, pages[1:], first_row, first_column)
        if stream.sender:
            builder.op("noc_async_atomic_barrier")

    def _read_right(
        self,
        kernel: MovementKernel,
        stream: _BlockStream,
        matrix: Value,
        first_column: SSAValue,
        inner_block: SSAValue,
    ) -> None:
        builder = kernel.builder
        inner_tiles = self._inner_tiles(kernel, inner_block)
        stream.begin_reading()
        with (
            builder.stage("read_block", "Reads the tiles of a block of the right operand."),
            builder.loop(inner_tiles, name_hint="i") as i,
        ):
            line = builder.sum(builder.product(inner_block, kernel["block_inner"]), i)
            builder.named(line, "inner_row")
            with builder.loop(kernel["block_columns"], name_hint="j") as j:
                if number_of(kernel["columns"]) is None:
                    builder.comment("Columns past the end repeat the last one; they are not kept.")
                column = _clamped_sum(kernel, first_column, j, "columns", "tile_column")
                if self.plan.transposed:
                    terms = [matrix, builder.product(column, kernel["inner"]), line]
                else:
                    terms = [matrix, builder.product(line, kernel["columns"]), column]
                place = builder.sum(builder.product(i, kernel["block_columns"]), j)
                stream.read(kernel.sum(terms), self.plan.names[self.plan.right], place)
        stream.end_reading()
        self._pad_right(kernel, stream, inner_block, inner_tiles)
        stream.send(builder.product(inner_tiles, kernel["block_columns"]))

    def _pad_right(
        self,
        kernel: MovementKernel,
        stream: _BlockStream,
        inner_block: SSAValue,
        inner_tiles: SSAValue,
    ) -> None:
        """Writes zeros after the last row of the right operand."""
        rows = self.plan.inner % TILE_SIDE
        if not rows:
            return
        builder = kernel.builder
        element = element_word(declared_data_type(self.plan.right))
        kept = (TILE_SIDE, rows) if self.plan.transposed else (rows, TILE_SIDE)
        with _in_last_block(kernel, inner_block):
            with builder.loop(kernel["block_columns"], name_hint="j") as j:
                last_row = builder.difference(inner_tiles, 1)
                place = builder.sum(builder.product(last_row, kernel["block_columns"]), j)
                stream.pad(place, kept, element)

    def _write_block(
        self,
        kernel: MovementKernel,
        batch: SSAValue,
        pages: Sequence[Value],
        first_row: SSAValue,
        first_column: SSAValue,
    ) -> None:
        """Writes the tiles of a result block, after reading the operands of their epilogue."""
        builder = kernel.builder
        purpose = "Writes a block of the result"
        if self.plan.outer:
            purpose += ", and reads what else is needed for each of its tiles"
        with (
            builder.stage("write_block", f"{purpose}."),
            builder.loop(kernel["block_rows"], name_hint="i") as i,
            builder.loop(kernel["block_columns"], name_hint="j") as j,
        ):
            row = builder.named(builder.sum(first_row, i), "tile_row")
            column = builder.named(builder.sum(first_column, j), "tile_column")
            inside = self._is_inside(kernel, row, column)
            self._read_outer(kernel, pages, row, column)
            for name, value in zip(self.plan.output_names, self.plan.parts.outputs, strict=True):
                builder.op("cb_wait_front", kernel.buffer(name), 1)
                with builder.when(inside) if inside is not None else nullcontext():
                    matrix = builder.product(batch, kernel["rows"])
                    line = builder.product(builder.sum(matrix, row), kernel["columns"])
                    kernel.write_page(builder.sum(line, column), self.plan.names[value], name)
                    builder.op("noc_async_write_barrier")
                builder.op("cb_pop_front", kernel.buffer(name), 1)

    def _is_inside(
        self, kernel: MovementKernel, row: SSAValue, column: SSAValue
    ) -> SSAValue | None:
        """Condition that the result has a tile in that row and column; None if it has only one."""
        conditions = [
            kernel.builder.compare("ult", position, kernel[line])
            for position, line in ((row, "rows"), (column, "columns"))
            if number_of(position) is None
        ]
        if not conditions:
            return None
        return kernel.builder.named(reduce(kernel.builder.both, conditions), "is_inside")

    def _read_outer(
        self, kernel: MovementKernel, pages: Sequence[Value], row: SSAValue, column: SSAValue
    ) -> None:
        """Reads the tiles of the epilogue's operands for an output tile."""
        builder = kernel.builder
        if not self.plan.outer:
            return
        row = _clamped(kernel, row, "rows", "source_row")
        column = _clamped(kernel, column, "columns", "source_column")
        shapes = [self.plan.tiled(value) for value in self.plan.outer]
        found: list[Value] = []
        for shape, page in zip(shapes, pages, strict=True):
            rows, columns = broadcast_strides(shape, self.plan.result)[-2:]
            terms = [page]
            if rows:
                terms.append(builder.product(row, rows) if rows != 1 else row)
            if columns:
                terms.append(column)
            found.append(kernel.sum(terms))
        self.plan.epilogue.read_pages(
            kernel, self.plan.names, self.plan.outer_names, self.plan.result, shapes, found
        )

    def _block_tiles(self, kernel: MovementKernel, side: str) -> SSAValue:
        """Number of tiles in a block of an operand."""
        lines = "block_rows" if side == "left" else "block_columns"
        tiles = kernel.builder.product(kernel[lines], kernel["block_inner"])
        return kernel.builder.named(tiles, "block_tiles")

    def _coordinate_argument(self, side: str) -> tuple[RuntimeArgument, ...]:
        """Run-time argument with the core's row or column, if there are several."""
        if self.plan.sizes[f"grid_{side}s"] == 1:
            return ()
        return (RuntimeArgument(side, Place(side)),)

    def _first(self, kernel: MovementKernel, number: SSAValue, side: str) -> SSAValue:
        """First row or column of tiles that this core computes in a pass."""
        builder = kernel.builder
        if self.plan.sizes[f"{side}s"] == 1:
            return builder.value(0)
        blocks = kernel["column_blocks"]
        is_row = side == "row"
        if is_row:
            block = builder.quotient(number, blocks)
        else:
            # Passes iterate over the blocks of a row first.
            is_only_row = self.plan.sizes["row_blocks"] == 1
            block = number if is_only_row else builder.remainder(number, blocks)
        if self.plan.sizes[f"grid_{side}s"] != 1:
            before = builder.product(kernel[side], kernel[f"{side}_blocks"])
            block = builder.sum(before, block)
        first = builder.product(block, kernel[f"block_{side}s"])
        return builder.named(first, f"first_{side}")


@dataclass
class _BlockStream:
    """Blocks of an operand, `left` or `right`, multicast to all cores of a row or column.

    The first core reads each block; the others receive it."""

    kernel: MovementKernel
    side: str
    tiles: SSAValue
    """Number of tiles in a block."""
    cores: str
    """Constant with the number of cores in the row or column, for the core that reads."""
    sender: str = ""
    """Argument prefix of the sender of blocks, for cores that receive."""

    def __post_init__(self) -> None:
        """Writes the code before the loop over the blocks."""
        kernel, builder = self.kernel, self.kernel.builder
        self.sends = not self.sender and bool(kernel.semaphores)
        self.tile_bytes: Value = 0
        if not self.sender and (self.sends or number_of(self.tiles) != 1):
            size = builder.get("get_tile_size", kernel.buffer(self.side), name_hint="tile_bytes")
            self.tile_bytes = size
        if self.sends:
            receivers = builder.difference(kernel[self.cores], 1)
            self.receivers = builder.named(receivers, "receivers")
            self.ready = kernel.semaphore_pointer(f"{self.side}_ready")
            self.sent = kernel.semaphore_pointer(f"{self.side}_sent")
            builder.comment("Sets the semaphores of the other cores to the value of this one.")
            builder.op("noc_semaphore_set", self.sent, 1)
        elif self.sender:
            self.sent = kernel.semaphore_pointer(f"{self.side}_sent")
            ready = kernel.semaphore(f"{self.side}_ready")
            self.ready = kernel.noc_address(self.sender, ready, f"{self.side}_ready")

    def begin_reading(self) -> None:
        """Waits for room for a block."""
        builder = self.kernel.builder
        builder.op("cb_reserve_back", self.kernel.buffer(self.side), self.tiles)
        self.block = self.kernel.write_pointer(self.side, "block")

    def read(self, page: Value, tensor: str, place: Value) -> None:
        """Starts the read of a tile of the block."""
        self.kernel.read_page(page, tensor, self._address(place))

    def end_reading(self) -> None:
        """Waits until all tiles of the block are read."""
        self.kernel.builder.op("noc_async_read_barrier")

    def pad(self, place: Value, kept: tuple[int, int], element: IntegerType) -> None:
        """Writes zeros to a tile of the block from row and column `kept` on, after reading."""
        self.kernel.fill(self._address(place), *kept, 0, element)

    def _address(self, place: Value) -> SSAValue:
        builder = self.kernel.builder
        return builder.sum(self.block, builder.product(place, self.tile_bytes))

    def send(self, tiles: SSAValue) -> None:
        """Pushes the block, of which `tiles` were read, and multicasts it to other cores."""
        kernel, builder = self.kernel, self.kernel.builder
        if self.sends:
            builder.comment(
                "Each receiver increments this semaphore when it has room for the block."
            )
            builder.op("noc_semaphore_wait", self.ready, self.receivers)
            builder.op("noc_semaphore_set", self.ready, 0)
            size = builder.product(tiles, self.tile_bytes)
            target = self._multicast_address(self.block)
            builder.op("noc_async_write_multicast", self.block, target, size, self.receivers)
            builder.op("noc_async_write_barrier")
            sent = kernel.semaphore(f"{self.side}_sent", "sent_address")
            target = self._multicast_address(sent)
            builder.op("noc_semaphore_set_multicast", sent, target, self.receivers)
            builder.op("noc_async_write_barrier")
        builder.op("cb_push_back", kernel.buffer(self.side), self.tiles)

    def _multicast_address(self, address: SSAValue) -> SSAValue:
        corners = [self.kernel[name] for name in ("first_x", "first_y", "last_x", "last_y")]
        return self.kernel.builder.get(
            "get_noc_multicast_addr", *corners, address, result_type=NocAddressType()
        )

    def receive(self) -> None:
        """Receives a block that another core has read."""
        builder = self.kernel.builder
        buffer = self.kernel.buffer(self.side)
        builder.op("cb_reserve_back", buffer, self.tiles)
        builder.op("noc_semaphore_set", self.sent, 0)
        builder.op("noc_semaphore_inc", self.ready, 1)
        builder.op("noc_semaphore_wait", self.sent, 1)
        builder.op("cb_push_back", buffer, self.tiles)


def _passes(kernel: MovementKernel) -> SSAValue:
    """Number of result blocks that each core computes, per batch."""
    return kernel.builder.product(kernel["row_blocks"], kernel["column_blocks"])


def _clamped_sum(
    kernel: MovementKernel, first: SSAValue, step: SSAValue, count: str, name: str
) -> SSAValue:
    """Row or column of tiles at an offset, clamped to the last one."""
    return _clamped(kernel, kernel.builder.sum(first, step), count, name)


def _clamped(kernel: MovementKernel, position: SSAValue, count: str, name: str) -> SSAValue:
    """Row or column of tiles, clamped to the last one."""
    builder = kernel.builder
    if number_of(position) is not None:
        return position
    return builder.named(builder.smaller(position, builder.difference(kernel[count], 1)), name)


def _in_last_block(kernel: MovementKernel, inner_block: SSAValue) -> AbstractContextManager[None]:
    """Scope of code that runs only in the last block of the inner dimension."""
    builder = kernel.builder
    if number_of(inner_block) is not None:
        return nullcontext()
    is_last = builder.compare("eq", builder.sum(inner_block, 1), kernel["inner_blocks"])
    return builder.when(is_last)


def _rectangle(
    first_column: int | Place,
    first_row: int | Place,
    last_column: int | Place,
    last_row: int | Place,
) -> tuple[RuntimeArgument, ...]:
    """Run-time arguments with the multicast rectangle of a block."""
    return (
        *_noc_coordinates("first", first_column, first_row),
        *_noc_coordinates("last", last_column, last_row),
    )


def _noc_coordinates(
    name: str, column: int | Place, row: int | Place
) -> tuple[RuntimeArgument, ...]:
    """NoC coordinates of a core."""
    return (
        RuntimeArgument(f"{name}_x", NocX(column, row)),
        RuntimeArgument(f"{name}_y", NocY(column, row)),
    )
