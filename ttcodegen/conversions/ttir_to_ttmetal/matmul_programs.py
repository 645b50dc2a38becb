"""Products of matrices over a grid of cores, perhaps with elementwise ops after them.

Each core computes a block of the result. The blocks of the operands that it needs are read once by
the first core of a row (left operand) and of a column (right operand) and sent to the others, one
part of the inner dimension after the other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import prod

from xdsl.dialects.builtin import IntegerType
from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue

from ttcodegen.conversions.ttir_to_ttmetal.blocking import Blocking
from ttcodegen.conversions.ttir_to_ttmetal.compute import ComputeKernel
from ttcodegen.conversions.ttir_to_ttmetal.data_movement import MovementKernel, element_word
from ttcodegen.conversions.ttir_to_ttmetal.geometry import broadcast_of, broadcast_strides
from ttcodegen.conversions.ttir_to_ttmetal.groups import Group, lower_chain
from ttcodegen.conversions.ttir_to_ttmetal.loop_nests import LoopNest
from ttcodegen.conversions.ttir_to_ttmetal.program_parts import (
    DOUBLE,
    Lowered,
    ProgramParts,
    has_32_bits,
    purpose_of,
    tensor_bytes,
    tile_bytes,
)
from ttcodegen.conversions.ttir_to_ttmetal.registers import allocate, capacity
from ttcodegen.dialects.cores import CoreRange
from ttcodegen.dialects.datatypes import DataType, shape_of
from ttcodegen.dialects.placement import declared_data_type
from ttcodegen.dialects.programs import (
    ComputeSettings,
    Costs,
    Kernel,
    NocX,
    NocY,
    Place,
    Processor,
    RuntimeArgument,
)
from ttcodegen.dialects.tile import TILE_SIDE
from ttcodegen.dialects.ttkernel.attributes import NocAddressType
from ttcodegen.dialects.ttkernel.builder import Value
from ttcodegen.layout.tiled_shape import TiledShape, row_major_strides
from ttcodegen.ops.tile_lowering import Tile, TileBuilder


def lower_matmul(
    group: Group, names: Mapping[SSAValue, str], name: str, cores: CoreRange
) -> Lowered:
    """The program of a group that is built around a product of matrices."""
    return _MatmulProgram(group, names, name, cores).lower()


@dataclass
class _MatmulProgram:
    group: Group
    names: Mapping[SSAValue, str]
    name: str
    device: CoreRange
    _builder: TileBuilder = field(default_factory=TileBuilder)

    def lower(self) -> Lowered:
        self._divide()
        self._collect()
        self._declare()
        return self.parts.program(
            self.name,
            purpose_of(self.group),
            self.cores,
            (*self._left_kernels(), self._compute(), *self._right_kernels()),
            self._costs(),
            ComputeSettings(fp32_destination=True, unpack_to_fp32=tuple(self._full_width())),
            semaphores=self._semaphores("left") + self._semaphores("right"),
        )

    def _divide(self) -> None:
        root = self.group.root
        assert root is not None
        self.left, self.right = root.operands
        self.transposed = bool(root.parameter("transpose_b"))
        self.result = TiledShape(root.result_shape)
        self.inner = TiledShape(shape_of(self.left.type)).width
        self.blocking = Blocking.of(
            prod(self.result.batch),
            self.result.rows,
            self.result.columns,
            -(-self.inner // TILE_SIDE),
            self.device,
            (
                tile_bytes(declared_data_type(self.left)),
                tile_bytes(declared_data_type(self.right)),
            ),
        )
        blocking = self.blocking
        self.cores = CoreRange(0, 0, blocking.grid_columns - 1, blocking.grid_rows - 1)

    # What is computed after the product

    def _collect(self) -> None:
        root = self.group.root
        assert root is not None
        self.product = self._builder.new_tile(DataType.FLOAT32)
        known: dict[SSAValue, Tile] = {root.results[0]: self.product}
        self.outer: dict[SSAValue, Tile] = {}
        lower_chain(self._builder, self.group.epilogue, known, self.outer)
        outputs = self.group.outputs()
        self.results = [known[value] for value in outputs]
        self.parts = ProgramParts(self.names, [self.left, self.right, *self.outer], outputs)

    @property
    def _is_plain(self) -> bool:
        """Whether the product is the result, as it is."""
        return not self.outer and self.results == [self.product]

    @property
    def _width(self) -> int:
        """Tiles of a row that are computed at a time."""
        if not self._is_plain:
            return 1
        columns = self.blocking.block_columns
        return max(n for n in range(1, capacity(True) + 1) if columns % n == 0)

    def _declare(self) -> None:
        b = self.blocking
        parts = self.parts
        left, right = declared_data_type(self.left), declared_data_type(self.right)
        parts.add_buffer("left", left, DOUBLE * b.block_rows * b.block_inner)
        parts.add_buffer("right", right, DOUBLE * b.block_inner * b.block_columns)
        self.outer_names = [parts.add_tensor_buffer(value) for value in self.outer]
        self.output_names = [
            parts.add_tensor_buffer(value, DOUBLE * self._width) for value in parts.outputs
        ]
        if b.inner_blocks > 1:
            parts.add_buffer("partial", DataType.FLOAT32, b.block_rows * b.block_columns)

    def _full_width(self) -> list[int]:
        """Circular buffers whose tiles are copied to the registers and are wider than 16 bits."""
        copied = {"partial", *self.outer_names}
        found = (b for b in self.parts.buffers if b.name in copied)
        return [b.index for b in found if has_32_bits(b.data_type)]

    # The compute kernel

    def _compute(self) -> tuple[Kernel, FuncOp]:
        symbol = f"compute_{self.name}"
        kernel = ComputeKernel(symbol, True)
        buffers = self.parts.buffers
        kernel.declare(buffers)
        outputs = self.output_names
        kernel.unpacks([b.name for b in buffers if b.name not in outputs])
        kernel.packs([*outputs, *(["partial"] if self.blocking.inner_blocks > 1 else [])])
        kernel.op("mm_block_init", "left", "right", outputs[0], *self._block_shape)
        with kernel.builder.loop(self.blocking.passes, name_hint="block"):
            if self.blocking.inner_blocks > 1:
                with kernel.builder.loop(
                    self.blocking.inner_blocks - 1, name_hint="inner_block"
                ) as inner_block:
                    self._add_block(kernel, inner_block)
            self._add_block(kernel, None)
        described = Kernel(
            symbol,
            Processor.COMPUTE,
            "Computes a block of the product at a time.",
            self.cores,
            symbol,
            constants=self.parts.constants(b.name for b in buffers),
        )
        return described, kernel.builder.finish()

    @property
    def _block_shape(self) -> tuple[int, int, int, int]:
        """Whether the right operand is transposed; columns, rows and inner dimension of a call."""
        return int(self.transposed), self._width, 1, self.blocking.block_inner

    def _add_block(self, kernel: ComputeKernel, inner_block: SSAValue | None) -> None:
        """Adds the products of one block of each operand to the sums; `inner_block` is None for the
        last, after which the sums are the result."""
        b = self.blocking
        kernel.op("cb_wait_front", "left", b.block_rows * b.block_inner)
        kernel.op("cb_wait_front", "right", b.block_inner * b.block_columns)
        with kernel.builder.loop(b.block_rows, name_hint="row") as row:
            first_left = kernel.builder.product(row, b.block_inner)
            with kernel.builder.loop(
                b.block_columns, step=self._width, name_hint="column"
            ) as column:
                with kernel.builder.destination_registers():
                    self._load_sums(kernel, inner_block)
                    with kernel.builder.loop(b.block_inner, name_hint="inner") as inner:
                        left = kernel.builder.sum(first_left, inner)
                        right = kernel.builder.product(inner, b.block_columns)
                        right = kernel.builder.sum(right, column)
                        kernel.op(
                            "matmul_block", "left", "right", left, right, 0, *self._block_shape
                        )
                    if inner_block is not None:
                        self._keep_sums(kernel)
                    else:
                        self._finish(kernel)
                self._push(kernel, inner_block is None)
        kernel.op("cb_pop_front", "left", b.block_rows * b.block_inner)
        kernel.op("cb_pop_front", "right", b.block_inner * b.block_columns)

    def _load_sums(self, kernel: ComputeKernel, inner_block: SSAValue | None) -> None:
        """What the blocks before came to, unless there are none."""
        if self.blocking.inner_blocks == 1:
            if not self._is_plain:
                self._return_to_products(kernel)
            return
        if inner_block is None:
            self._copy_sums(kernel)
        else:
            condition = kernel.builder.compare("ne", inner_block, 0)
            with kernel.builder.when(condition):
                self._copy_sums(kernel)
        self._return_to_products(kernel)

    def _copy_sums(self, kernel: ComputeKernel) -> None:
        kernel.op("cb_wait_front", "partial", self._width)
        kernel.op("copy_tile_to_dst_init_short_with_dt", "right", "partial")
        for register in range(self._width):
            kernel.op("copy_tile", "partial", register, register)
        kernel.op("cb_pop_front", "partial", self._width)

    def _return_to_products(self, kernel: ComputeKernel) -> None:
        """After copies the engines are set up for products again."""
        last = self.outer_names[-1] if self.outer_names else "right"
        old = "partial" if self.blocking.inner_blocks > 1 else last
        kernel.op("mm_block_init_short_with_dt", "left", "right", old, *self._block_shape)

    def _keep_sums(self, kernel: ComputeKernel) -> None:
        kernel.op("cb_reserve_back", "partial", self._width)
        kernel.builder.start_packing()
        kernel.pack([(register, "partial") for register in range(self._width)])

    def _finish(self, kernel: ComputeKernel) -> None:
        """What is computed after the product; packs the results."""
        outputs = self.output_names
        if self._is_plain:
            kernel.op("cb_reserve_back", outputs[0], self._width)
            kernel.builder.start_packing()
            kernel.pack([(register, outputs[0]) for register in range(self._width)])
            return
        kernel.forget_formats()
        outer = self.outer_names
        sources = dict(zip(self.outer.values(), outer, strict=True))
        allocation = allocate(self._builder.calls, self.results, capacity(True), {self.product: 0})
        assert allocation is not None, "groups are formed so that they fit"
        kernel.wait(outer)
        kernel.run(allocation, sources)
        for name in outputs:
            kernel.op("cb_reserve_back", name, 1)
        kernel.builder.start_packing()
        places = [allocation.results[tile] for tile in self.results]
        kernel.pack(list(zip(places, outputs, strict=True)))
        kernel.pop(outer)

    def _push(self, kernel: ComputeKernel, is_last: bool) -> None:
        names = self.output_names if is_last else ["partial"]
        count: Value = self._width
        for name in names:
            kernel.op("cb_push_back", name, count)

    # Data movement

    def _semaphores(self, side: str) -> tuple[str, ...]:
        shared = self.blocking.grid_columns if side == "left" else self.blocking.grid_rows
        return (f"{side}_ready", f"{side}_sent") if shared > 1 else ()

    def _left_kernels(self) -> list[tuple[Kernel, FuncOp]]:
        b = self.blocking
        last = b.grid_columns - 1
        operand = self.names[self.left]
        sends = _rectangle(1, Place.ROW, Place.LAST_COLUMN, Place.ROW) if last else ()
        reader = self.parts.data_movement(
            f"read_left_{self.name}",
            Processor.READER,
            f"Reads blocks of {operand}"
            + (" and multicasts them along the row of cores." if last else "."),
            CoreRange(0, 0, 0, b.grid_rows - 1),
            tensors=[self.left],
            buffers=["left"],
            arguments=(RuntimeArgument("row", Place.ROW), *sends),
            semaphores=self._semaphores("left"),
            constants=b.constants("batches rows inner block_rows block_inner grid_rows row_blocks "
                                  "column_blocks inner_blocks" + " grid_columns" * bool(last)),
        )  # fmt: skip
        self._read_left(reader)
        if not last:
            return [reader.finish()]
        receiver = self.parts.data_movement(
            f"receive_left_{self.name}",
            Processor.READER,
            f"Receives blocks of {operand} from the first core of the row.",
            CoreRange(1, 0, last, b.grid_rows - 1),
            tensors=[],
            buffers=["left"],
            arguments=_place("sender", 0, Place.ROW),
            semaphores=self._semaphores("left"),
            constants=b.constants("batches block_rows block_inner row_blocks column_blocks "
                                  "inner_blocks"),
        )  # fmt: skip
        self._receive_left(receiver)
        return [reader.finish(), receiver.finish()]

    def _read_left(self, kernel: MovementKernel) -> None:
        """All blocks of the left operand that a row of cores needs."""
        builder = kernel.builder
        stream = _Stream(kernel, "left", self._block_tiles(kernel, "left"), "grid_columns")
        stream.prepare()
        nest = self._batch_loops(self.left)
        with builder.loop(kernel["batches"], name_hint="batch") as batch:
            known = kernel.coordinates(nest.tile_coordinates, {"batch": batch})
            matrix = kernel.page(nest.pages[0], known)
            with builder.loop(_passes(kernel), name_hint="pass") as number:
                first_row = self._first(kernel, number, "row")
                with builder.loop(kernel["inner_blocks"], name_hint="inner_block") as inner_block:
                    stream.begin_reading()
                    with builder.loop(kernel["block_rows"], name_hint="i") as i:
                        builder.comment("Rows beyond the last are computed from it, not kept.")
                        row = _limited(kernel, first_row, i, "rows", "tile_row")
                        line = kernel.sum([matrix, builder.product(row, kernel["inner"])])
                        line = builder.sum(
                            line, builder.product(inner_block, kernel["block_inner"])
                        )
                        with builder.loop(kernel["block_inner"], name_hint="j") as j:
                            place = builder.sum(builder.product(i, kernel["block_inner"]), j)
                            stream.read(builder.sum(line, j), self.names[self.left], place)
                    stream.end_reading()
                    self._pad_left(kernel, stream, inner_block)
                    stream.send()

    def _pad_left(self, kernel: MovementKernel, stream: _Stream, inner_block: SSAValue) -> None:
        """Zeros after the last column of the left operand."""
        columns = self.inner % TILE_SIDE
        if not columns:
            return
        builder = kernel.builder
        with builder.when(_is_last(kernel, inner_block)):
            with builder.loop(kernel["block_rows"], name_hint="i") as i:
                next_row = builder.product(builder.sum(i, 1), kernel["block_inner"])
                stream.pad(builder.difference(next_row, 1), (TILE_SIDE, columns),
                           element_word(declared_data_type(self.left)))  # fmt: skip

    def _receive_left(self, kernel: MovementKernel) -> None:
        builder = kernel.builder
        stream = _Stream(kernel, "left", self._block_tiles(kernel, "left"), "", "sender")
        stream.prepare()
        total = builder.product(kernel["batches"], _passes(kernel))
        with builder.loop(builder.product(total, kernel["inner_blocks"]), name_hint="block"):
            stream.receive()
        builder.op("noc_async_atomic_barrier")

    def _right_kernels(self) -> list[tuple[Kernel, FuncOp]]:
        b = self.blocking
        last = b.grid_rows - 1
        operand = self.names[self.right]
        others = [*self.outer, *self.parts.outputs]
        buffers = ["right", *self.outer_names, *self.output_names]
        place = (RuntimeArgument("row", Place.ROW), RuntimeArgument("column", Place.COLUMN))
        words = (
            "batches rows columns block_rows block_columns block_inner grid_rows grid_columns "
            "row_blocks column_blocks inner_blocks"
        )
        # NoC 1 goes the other way: its rectangles begin at their last core.
        sends = _rectangle(Place.COLUMN, Place.LAST_ROW, Place.COLUMN, 1) if last else ()
        reader = self.parts.data_movement(
            f"read_right_{self.name}",
            Processor.WRITER,
            f"Reads blocks of {operand}"
            + (", multicasts them along the column of cores," if last else "")
            + " and writes the result.",
            CoreRange(0, 0, b.grid_columns - 1, 0),
            tensors=[self.right, *others],
            buffers=buffers,
            arguments=(*place, *sends),
            semaphores=self._semaphores("right"),
            constants=b.constants(words + " inner" * self.transposed),
        )
        self._write_right(reader, _Stream(
            reader, "right", self._block_tiles(reader, "right"), "grid_rows"
        ))  # fmt: skip
        if not last:
            return [reader.finish()]
        receiver = self.parts.data_movement(
            f"receive_right_{self.name}",
            Processor.WRITER,
            f"Receives blocks of {operand} from the first core of the column and writes the "
            "result.",
            CoreRange(0, 1, b.grid_columns - 1, last),
            tensors=others,
            buffers=buffers,
            arguments=(*place, *_place("sender", Place.COLUMN, 0)),
            semaphores=self._semaphores("right"),
            constants=b.constants(words),
        )
        self._write_right(receiver, _Stream(
            receiver, "right", self._block_tiles(receiver, "right"), "", "sender"
        ))  # fmt: skip
        return [reader.finish(), receiver.finish()]

    def _write_right(self, kernel: MovementKernel, stream: _Stream) -> None:
        """Brings all blocks of the right operand that a column of cores needs, and writes what they
        compute."""
        builder = kernel.builder
        stream.prepare()
        nest = self._batch_loops(self.right, *self.outer)
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
        stream: _Stream,
        matrix: Value,
        first_column: SSAValue,
        inner_block: SSAValue,
    ) -> None:
        builder = kernel.builder
        stream.begin_reading()
        with builder.loop(kernel["block_inner"], name_hint="i") as i:
            line = builder.sum(builder.product(inner_block, kernel["block_inner"]), i)
            with builder.loop(kernel["block_columns"], name_hint="j") as j:
                builder.comment("Columns beyond the last are computed from it, not kept.")
                column = _limited(kernel, first_column, j, "columns", "tile_column")
                if self.transposed:
                    terms = [matrix, builder.product(column, kernel["inner"]), line]
                else:
                    terms = [matrix, builder.product(line, kernel["columns"]), column]
                place = builder.sum(builder.product(i, kernel["block_columns"]), j)
                stream.read(kernel.sum(terms), self.names[self.right], place)
        stream.end_reading()
        self._pad_right(kernel, stream, inner_block)
        stream.send()

    def _pad_right(self, kernel: MovementKernel, stream: _Stream, inner_block: SSAValue) -> None:
        """Zeros after the last row of the right operand."""
        rows = self.inner % TILE_SIDE
        if not rows:
            return
        builder = kernel.builder
        element = element_word(declared_data_type(self.right))
        kept = (TILE_SIDE, rows) if self.transposed else (rows, TILE_SIDE)
        with builder.when(_is_last(kernel, inner_block)):
            with builder.loop(kernel["block_columns"], name_hint="j") as j:
                last_row = builder.difference(kernel["block_inner"], 1)
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
        """Writes the tiles of a block of the result, after reading what their epilogue needs."""
        builder = kernel.builder
        with (
            builder.loop(kernel["block_rows"], name_hint="i") as i,
            builder.loop(kernel["block_columns"], name_hint="j") as j,
        ):
            row = builder.named(builder.sum(first_row, i), "tile_row")
            column = builder.named(builder.sum(first_column, j), "tile_column")
            inside = builder.both(
                builder.compare("ult", row, kernel["rows"]),
                builder.compare("ult", column, kernel["columns"]),
            )
            builder.named(inside, "is_inside")
            self._read_outer(kernel, pages, row, column)
            for name, value in zip(self.output_names, self.parts.outputs, strict=True):
                builder.op("cb_wait_front", kernel.buffer(name), 1)
                with builder.when(inside):
                    matrix = builder.product(batch, kernel["rows"])
                    line = builder.product(builder.sum(matrix, row), kernel["columns"])
                    kernel.write_page(builder.sum(line, column), self.names[value], name)
                    builder.op("noc_async_write_barrier")
                builder.op("cb_pop_front", kernel.buffer(name), 1)

    def _read_outer(
        self, kernel: MovementKernel, pages: Sequence[Value], row: SSAValue, column: SSAValue
    ) -> None:
        """Reads the tiles of the operands of the epilogue that belong to a tile of the result."""
        builder = kernel.builder
        if not self.outer:
            return
        row = builder.smaller(row, builder.difference(kernel["rows"], 1))
        column = builder.smaller(column, builder.difference(kernel["columns"], 1))
        builder.named(row, "source_row")
        builder.named(column, "source_column")
        for value, name, page in zip(self.outer, self.outer_names, pages, strict=True):
            rows, columns = broadcast_strides(TiledShape(shape_of(value.type)), self.result)[-2:]
            terms = [page]
            if rows:
                terms.append(builder.product(row, rows) if rows != 1 else row)
            if columns:
                terms.append(column)
            builder.op("cb_reserve_back", kernel.buffer(name), 1)
            address = kernel.write_pointer(name)
            kernel.read_page(kernel.sum(terms), self.names[value], address)
        builder.op("noc_async_read_barrier")
        for value, name in zip(self.outer, self.outer_names, strict=True):
            broadcast = broadcast_of(TiledShape(shape_of(value.type)), self.result).word
            kernel.repeat_first(name, broadcast, element_word(declared_data_type(value)))
            builder.op("cb_push_back", kernel.buffer(name), 1)

    def _block_tiles(self, kernel: MovementKernel, side: str) -> SSAValue:
        """The tiles of a block of an operand."""
        lines = "block_rows" if side == "left" else "block_columns"
        tiles = kernel.builder.product(kernel[lines], kernel["block_inner"])
        return kernel.builder.named(tiles, "block_tiles")

    def _first(self, kernel: MovementKernel, number: SSAValue, side: str) -> SSAValue:
        """The first row or column of tiles that this core computes in a pass."""
        builder = kernel.builder
        blocks = kernel["column_blocks"]
        is_row = side == "row"
        block = builder.quotient(number, blocks) if is_row else builder.remainder(number, blocks)
        core = builder.sum(builder.product(block, kernel[f"grid_{side}s"]), kernel[side])
        first = builder.product(core, kernel[f"block_{side}s"])
        return builder.named(first, f"first_{side}")

    def _batch_loops(self, *values: SSAValue) -> LoopNest:
        """The first page of each operand's matrix, by the number of the result's matrix."""
        batch = self.result.batch or (1,)
        moves = [
            (self._batch_strides(value, len(batch)), (0,) * (len(batch) + 2)) for value in values
        ]
        grid = (*batch, 1, 1)
        return LoopNest.of(grid, (1,) * len(grid), moves, "batch")

    def _batch_strides(self, value: SSAValue, rank: int) -> list[int]:
        shape = TiledShape(shape_of(value.type))
        strides = row_major_strides(shape.grid)[:-2]
        found = [0 if n == 1 else s for n, s in zip(shape.batch, strides, strict=True)]
        return [0] * (rank - len(found)) + found + [0, 0]

    def _costs(self) -> Costs:
        """The first core of each row and column reads and sends; the least is each operand read
        once, and sent once if there is another core to send it to."""
        b = self.blocking
        held = {value: tensor_bytes(value) for value in self.parts.inputs}
        read = sent = 0
        least = least_noc = sum(held.values())
        for value, lines, block, others in (
            (self.left, b.grid_rows, b.block_rows, b.grid_columns - 1),
            (self.right, b.grid_columns, b.block_columns, b.grid_rows - 1),
        ):
            brought = b.passes * lines * block * b.inner * tile_bytes(declared_data_type(value))
            read += brought
            if others:
                sent += brought
                least_noc += held[value]
        for value in self.outer:
            read += self.result.tiles * tile_bytes(declared_data_type(value))
        written = sum(tensor_bytes(value) for value in self.parts.outputs)
        products = b.batches * b.rows * b.columns * b.inner
        epilogue = len(self.group.epilogue) * self.result.tiles
        return Costs(
            tiles_computed=products + epilogue,
            noc_bytes=read + sent + written,
            dram_read_bytes=read,
            dram_write_bytes=written,
            least_dram_read_bytes=least,
            least_dram_write_bytes=written,
            least_noc_bytes=least_noc + written,
        )


@dataclass
class _Stream:
    """The blocks of an operand, `left` or `right`, on their way to all cores of a row or a column:
    the first of them reads each and multicasts it."""

    kernel: MovementKernel
    side: str
    tiles: SSAValue
    """Of a block."""
    cores: str
    """The constant with the number of cores of the row or column; of the core that reads."""
    sender: str = ""
    """Where blocks come from, of the cores that receive: a prefix of arguments."""

    def prepare(self) -> None:
        """What stands before the loop over the blocks."""
        kernel, builder = self.kernel, self.kernel.builder
        self.sends = not self.sender and bool(kernel.semaphores)
        if not self.sender:
            size = builder.get("get_tile_size", kernel.buffer(self.side), name_hint="tile_bytes")
            self.tile_bytes = size
        if self.sends:
            receivers = builder.difference(kernel[self.cores], 1)
            self.receivers = builder.named(receivers, "receivers")
            self.ready = kernel.semaphore_pointer(f"{self.side}_ready")
            self.sent = kernel.semaphore_pointer(f"{self.side}_sent")
            builder.comment("The others' semaphores are set to the value of this core's.")
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
        """Begins to read a tile of the block."""
        self.kernel.read_page(page, tensor, self._address(place))

    def end_reading(self) -> None:
        """Waits until all tiles of the block are there."""
        self.kernel.builder.op("noc_async_read_barrier")

    def pad(self, place: Value, kept: tuple[int, int], element: IntegerType) -> None:
        """Zeros in a tile of the block from row and column `kept` on; reading has ended."""
        address = self._address(place)
        self.kernel.builder.op("blocks.fill_padding", address, *kept, 0, element=element)

    def _address(self, place: Value) -> SSAValue:
        builder = self.kernel.builder
        return builder.sum(self.block, builder.product(place, self.tile_bytes))

    def send(self) -> None:
        """Hands the block that was read to this core and the others."""
        kernel, builder = self.kernel, self.kernel.builder
        if self.sends:
            builder.comment("The others have room for the block once each has incremented this.")
            builder.op("noc_semaphore_wait", self.ready, self.receivers)
            builder.op("noc_semaphore_set", self.ready, 0)
            size = builder.product(self.tiles, self.tile_bytes)
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
        """Takes a block that another core has read."""
        builder = self.kernel.builder
        buffer = self.kernel.buffer(self.side)
        builder.op("cb_reserve_back", buffer, self.tiles)
        builder.op("noc_semaphore_set", self.sent, 0)
        builder.op("noc_semaphore_inc", self.ready, 1)
        builder.op("noc_semaphore_wait", self.sent, 1)
        builder.op("cb_push_back", buffer, self.tiles)


def _passes(kernel: MovementKernel) -> SSAValue:
    """The blocks of the result that each core computes."""
    return kernel.builder.product(kernel["row_blocks"], kernel["column_blocks"])


def _limited(
    kernel: MovementKernel, first: SSAValue, step: SSAValue, count: str, name: str
) -> SSAValue:
    """A row or column of tiles; the last one instead of those beyond it."""
    builder = kernel.builder
    last = builder.difference(kernel[count], 1)
    return builder.named(builder.smaller(builder.sum(first, step), last), name)


def _is_last(kernel: MovementKernel, inner_block: SSAValue) -> SSAValue:
    builder = kernel.builder
    return builder.compare("eq", builder.sum(inner_block, 1), kernel["inner_blocks"])


def _rectangle(
    first_column: int | Place,
    first_row: int | Place,
    last_column: int | Place,
    last_row: int | Place,
) -> tuple[RuntimeArgument, ...]:
    """The cores that a block is sent to."""
    return (*_place("first", first_column, first_row), *_place("last", last_column, last_row))


def _place(name: str, column: int | Place, row: int | Place) -> tuple[RuntimeArgument, ...]:
    """Where a core is on the NoC."""
    return (
        RuntimeArgument(f"{name}_x", NocX(column, row)),
        RuntimeArgument(f"{name}_y", NocY(column, row)),
    )
