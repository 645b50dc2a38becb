"""Products of matrices over a grid of cores, perhaps with elementwise ops after them.

Each core computes a block of the result. The blocks of the operands that it needs are read once by
the first core of a row (left operand) and of a column (right operand) and sent to the others, one
part of the inner dimension after the other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod

from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue

from ttcodegen.conversions.ttir_to_ttmetal.blocking import Blocking
from ttcodegen.conversions.ttir_to_ttmetal.compute import ComputeKernel
from ttcodegen.conversions.ttir_to_ttmetal.geometry import broadcast_of, broadcast_strides
from ttcodegen.conversions.ttir_to_ttmetal.groups import Group, lower_chain
from ttcodegen.conversions.ttir_to_ttmetal.loop_nests import LoopNest
from ttcodegen.conversions.ttir_to_ttmetal.program_parts import (
    DOUBLE,
    Lowered,
    ProgramParts,
    element_word,
    has_32_bits,
    purpose_of,
    tensor_bytes,
    tile_bytes,
)
from ttcodegen.conversions.ttir_to_ttmetal.registers import allocate, capacity
from ttcodegen.dialects.cores import CoreRange
from ttcodegen.dialects.datatypes import DataType, shape_of
from ttcodegen.dialects.placement import declared_data_type
from ttcodegen.dialects.programs import ComputeSettings, Costs, Kernel, Processor, RuntimeArgument
from ttcodegen.dialects.tile import TILE_SIDE
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
        described, function = self._compute()
        return self.parts.program(
            self.name,
            purpose_of(self.group),
            self.cores,
            (*self._left_kernels(), described, *self._right_kernels()),
            self._costs(),
            ComputeSettings("HiFi4", True, tuple(self._full_width())),
            function=function,
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

    def _left_kernels(self) -> list[Kernel]:
        b = self.blocking
        nest = self._batch_loops(self.left)
        context: dict[str, object] = {
            "tensor": self.names[self.left],
            "page": nest.pages[0],
            "coordinates": nest.tile_coordinates,
            "sizes": b.template_arguments(),
            "element": element_word(declared_data_type(self.left)),
            "padding": self.inner % TILE_SIDE,
        }
        last = b.grid_columns - 1
        sends = _rectangle("1", "row", str(last), "row") if last else ()
        reader = self.parts.data_movement(
            f"read_left_{self.name}",
            Processor.READER,
            f"Reads blocks of {self.names[self.left]}"
            + (" and sends them along the row of cores." if last else "."),
            CoreRange(0, 0, 0, b.grid_rows - 1),
            "matmul_left",
            {**context, "receivers": last, "is_receiver": False},
            tensors=[self.left],
            buffers=["left"],
            arguments=(RuntimeArgument("row", "row"), *sends),
            semaphores=self._semaphores("left"),
        )
        if not last:
            return [reader]
        receiver = self.parts.data_movement(
            f"receive_left_{self.name}",
            Processor.READER,
            f"Receives blocks of {self.names[self.left]} from the first core of the row.",
            CoreRange(1, 0, last, b.grid_rows - 1),
            "matmul_left",
            {**context, "receivers": 0, "is_receiver": True},
            tensors=[],
            buffers=["left"],
            arguments=_place("sender", "0", "row"),
            semaphores=self._semaphores("left"),
        )
        return [reader, receiver]

    def _right_kernels(self) -> list[Kernel]:
        b = self.blocking
        nest = self._batch_loops(self.right, *self.outer)
        context: dict[str, object] = {
            "tensor": self.names[self.right],
            "page": nest.pages[0],
            "coordinates": nest.tile_coordinates,
            "sizes": b.template_arguments(),
            "element": element_word(declared_data_type(self.right)),
            "padding": self.inner % TILE_SIDE,
            "transposed": self.transposed,
            "outer": [
                self._described(value, name, page)
                for value, name, page in zip(
                    self.outer, self.outer_names, nest.pages[1:], strict=True
                )
            ],
            "outputs": [
                {"name": name, "tensor": self.names[value]}
                for value, name in zip(self.parts.outputs, self.output_names, strict=True)
            ],
        }
        others = [*self.outer, *self.parts.outputs]
        buffers = ["right", *self.outer_names, *self.output_names]
        place = (RuntimeArgument("row", "row"), RuntimeArgument("column", "column"))
        last = b.grid_rows - 1
        # NoC 1 goes the other way: its rectangles begin at their last core.
        sends = _rectangle("column", str(last), "column", "1") if last else ()
        reader = self.parts.data_movement(
            f"read_right_{self.name}",
            Processor.WRITER,
            f"Reads blocks of {self.names[self.right]}"
            + (", sends them along the column of cores," if last else "")
            + " and takes the result away.",
            CoreRange(0, 0, b.grid_columns - 1, 0),
            "matmul_right",
            {**context, "receivers": last, "is_receiver": False},
            tensors=[self.right, *others],
            buffers=buffers,
            arguments=(*place, *sends),
            semaphores=self._semaphores("right"),
        )
        if not last:
            return [reader]
        receiver = self.parts.data_movement(
            f"receive_right_{self.name}",
            Processor.WRITER,
            f"Receives blocks of {self.names[self.right]} from the first core of the column and "
            "takes the result away.",
            CoreRange(0, 1, b.grid_columns - 1, last),
            "matmul_right",
            {**context, "receivers": 0, "is_receiver": True},
            tensors=others,
            buffers=buffers,
            arguments=(*place, *_place("sender", "column", "0")),
            semaphores=self._semaphores("right"),
        )
        return [reader, receiver]

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

    def _described(self, value: SSAValue, name: str, page: str) -> dict[str, object]:
        """What the kernel has to know of an operand of the epilogue."""
        shape = TiledShape(shape_of(value.type))
        row, column = broadcast_strides(shape, self.result)[-2:]
        terms = [page] if page != "0" else []
        terms += [f"tile_row * {row}"] if row > 1 else ["tile_row"] if row else []
        terms += ["tile_column"] if column else []
        return {
            "name": name,
            "tensor": self.names[value],
            "page": " + ".join(terms) or "0",
            "element": element_word(declared_data_type(value)),
            "broadcast": broadcast_of(shape, self.result).word,
        }

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


def _rectangle(
    first_column: str, first_row: str, last_column: str, last_row: str
) -> tuple[RuntimeArgument, ...]:
    """The cores that a block is sent to."""
    return (*_place("first", first_column, first_row), *_place("last", last_column, last_row))


def _place(name: str, column: str, row: str) -> tuple[RuntimeArgument, ...]:
    """Where a core is on the NoC."""
    return (
        RuntimeArgument(f"{name}_x", f"noc_x({column}, {row})"),
        RuntimeArgument(f"{name}_y", f"noc_y({column}, {row})"),
    )
