"""Plan of a matmul program: blocking over the cores, tuning knobs, buffers and epilogue."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

from xdsl.ir import SSAValue

from ttcodegen.conversions.ttir_to_ttmetal.grouping.grouping import Group
from ttcodegen.conversions.ttir_to_ttmetal.grouping.tile_operations import (
    HALF_OF_REGISTERS,
    capacity,
)
from ttcodegen.conversions.ttir_to_ttmetal.parts.data_movement import Epilogue
from ttcodegen.conversions.ttir_to_ttmetal.parts.loop_nests import LoopNest
from ttcodegen.conversions.ttir_to_ttmetal.parts.program_parts import (
    DOUBLE,
    ProgramParts,
    tensor_bytes,
)
from ttcodegen.dialects.core.datatypes import DataType, shape_of
from ttcodegen.dialects.ttcore.shards import CoreRange
from ttcodegen.dialects.ttcore.tile import TILE_SIDE, tiles_along
from ttcodegen.dialects.ttmetal.programs import FP32_DESTINATION, BlockTiles, CoreArea, Costs
from ttcodegen.dialects.ttmetal.tuning import (
    Name,
    Operation,
    Size,
    at_least,
    at_most,
    ceil_quotient,
    equal,
    remainder,
    select,
)
from ttcodegen.dialects.ttnn.placement import declared_data_type
from ttcodegen.layout.placements import TiledShape, row_major_strides, tile_bytes_of

# Blocking of a matmul over the cores of a device.

MOST_BLOCK_SIDE = 16
"""Maximum number of tile rows or columns of a result block."""
MOST_BLOCK_TILES = 64
"""Maximum number of tiles of a result block, whose sums are kept in L1 as float32."""
MOST_INNER = 8
"""Maximum number of inner tiles that are read at a time."""
MOST_OPERAND_BYTES = 768 * 1024
"""Maximum L1 for the operand blocks.

The sums take at most 256 KiB more; of the 1.5 MiB of a core, tt-metal and tensors of the user take
some."""


@dataclass(frozen=True)
class Blocking:
    """Blocking of a matmul, in tiles or blocks.

    In a pass each core of the grid computes one block. Each matrix takes `row_blocks` times
    `column_blocks` passes, and each pass reads `inner_blocks` blocks of each operand. The blocks of
    a core are adjacent."""

    batches: int
    rows: int
    columns: int
    inner: int
    block_rows: int
    block_columns: int
    block_inner: int
    grid_rows: int
    grid_columns: int

    @classmethod
    def of(
        cls,
        batches: int,
        rows: int,
        columns: int,
        inner: int,
        cores: CoreRange,
        tile_bytes: tuple[int, int] = (2048, 2048),
    ) -> Blocking:
        """Chooses the blocking over the cores of a range that starts at 0, 0.

        `tile_bytes` are the tile sizes of the left and the right operand: the inner block size is
        limited so that two blocks of each fit into `MOST_OPERAND_BYTES`."""
        most_rows, most_columns = cores.last_row + 1, cores.last_column + 1
        block_rows, block_columns = _block(
            -(-rows // most_rows),
            -(-columns // most_columns),
            most_rows * inner * tile_bytes[0],
            most_columns * inner * tile_bytes[1],
        )
        grid_rows = min(most_rows, -(-rows // block_rows))
        grid_columns = min(most_columns, -(-columns // block_columns))
        slice_bytes = 2 * (block_rows * tile_bytes[0] + block_columns * tile_bytes[1])
        most = max(1, min(MOST_INNER, MOST_OPERAND_BYTES // slice_bytes))
        inner_blocks = -(-inner // most)
        return cls(
            batches,
            rows,
            columns,
            inner,
            block_rows,
            block_columns,
            -(-inner // inner_blocks),
            grid_rows,
            grid_columns,
        )

    @property
    def row_blocks(self) -> int:
        """Number of row blocks per core."""
        return -(-self.rows // (self.block_rows * self.grid_rows))

    @property
    def column_blocks(self) -> int:
        """Number of column blocks per core."""
        return -(-self.columns // (self.block_columns * self.grid_columns))

    @property
    def inner_blocks(self) -> int:
        """Number of blocks of the inner dimension; the last one may be smaller."""
        return -(-self.inner // self.block_inner)

    @property
    def passes(self) -> int:
        """Number of blocks that each core computes."""
        return self.batches * self.row_blocks * self.column_blocks


def _block(rows: int, columns: int, row_bytes: int, column_bytes: int) -> tuple[int, int]:
    """Chooses rows and columns of the blocks that cover each core's share.

    The left operand is read once per column block, the right one once per row block, including rows
    and columns beyond the result. Minimizes the bytes read; ties prefer fewer reads of the right
    operand, which is mostly a weight in DRAM.

    Args:
        rows: rows of the result that a core computes.
        columns: columns of the result that a core computes.
        row_bytes: bytes that all cores together read of the left operand per row.
        column_bytes: bytes that they read of the right operand per column.
    """
    found: list[tuple[int, int, int, int]] = []
    for block_rows, row_blocks in _divisions(rows):
        for block_columns, column_blocks in _divisions(columns):
            if block_rows * block_columns <= MOST_BLOCK_TILES:
                left = row_blocks * block_rows * row_bytes * column_blocks
                right = column_blocks * block_columns * column_bytes * row_blocks
                found.append((left + right, row_blocks, block_rows, block_columns))
    *_, block_rows, block_columns = min(found)
    return block_rows, block_columns


def _divisions(tiles: int) -> set[tuple[int, int]]:
    """Ways to divide tiles into equal blocks: pairs of block size and number of blocks."""
    counts = {-(-tiles // side) for side in range(1, min(tiles, MOST_BLOCK_SIDE) + 1)}
    return {(-(-tiles // count), count) for count in counts}


# Tuning knobs of a matmul: its grid, blocks and buffer depths.
#
# A dimension of one tile has one block on one core: its sizes are constants, not settings.


def declare_settings(parts: ProgramParts, blocking: Blocking, subblock: int) -> Mapping[str, Size]:
    """Adds the settings of a matmul to its program; returns all sizes that its kernels use.

    Args:
        parts: parts of the program.
        blocking: default values of the settings.
        subblock: default number of tiles of a row that are computed at a time; 0 if the epilogue
            takes them one by one.
    """
    sizes: dict[str, Size] = {}
    _grid(parts, blocking, sizes)
    _blocks(parts, blocking, sizes, subblock)
    parts.setting(
        "operand_depth",
        DOUBLE,
        "Blocks of each operand in L1: with 2, the next block is read while the current one is "
        "multiplied; with 1, reading and computing alternate.",
    )
    parts.setting("result_depth", DOUBLE, "Output steps buffered in L1 for the writer: 1 or more.")
    _tensors(parts, blocking, sizes)
    _counts(parts, sizes)
    return sizes


def _grid(parts: ProgramParts, blocking: Blocking, sizes: dict[str, Size]) -> None:
    for line, operand in (("rows", "right"), ("columns", "left")):
        name, number = f"grid_{line}", getattr(blocking, f"grid_{line}")
        sizes[name] = number
        if number > 1:
            sizes[name] = parts.setting(
                name,
                number,
                f"{line.capitalize()} of cores, 2 or more. Each computes its own blocks of {line} "
                "of the result.",
                least=2,
                reason=f"blocks of the {operand} operand are sent to other cores",
            )


def _blocks(parts: ProgramParts, blocking: Blocking, sizes: dict[str, Size], subblock: int) -> None:
    remarks = {
        "rows": "Rows of tiles in a block, the unit that a core computes. Larger blocks read the "
        "operands less often, but need more L1.",
        "columns": "Columns of tiles in a block.",
        "inner": "Tiles of the inner dimension in a block. Larger blocks need fewer but longer "
        "transfers, and more L1. The last block may be smaller.",
    }
    for line, remark in remarks.items():
        name = f"block_{line}"
        whole = getattr(blocking, line)
        sizes[name] = 1
        if whole > 1:
            sizes[name] = parts.setting(name, getattr(blocking, name), remark)
    sizes["subblock_columns"] = 1
    if subblock and blocking.columns > 1:
        columns = parts.setting(
            "subblock_columns",
            subblock,
            "Tiles of a block row that are computed together in the destination registers: up to "
            f"{HALF_OF_REGISTERS // 2}, or {HALF_OF_REGISTERS} without fp32_dest_acc_en. Must "
            "divide block_columns.",
        )
        sizes["subblock_columns"] = columns
        parts.rule(
            equal(remainder(sizes["block_columns"], columns), 0),
            "subblock_columns must divide block_columns",
        )
        registers = select(Name(FP32_DESTINATION), HALF_OF_REGISTERS // 2, HALF_OF_REGISTERS)
        parts.rule(
            at_most(columns, registers),
            "subblock_columns tiles must fit into the destination registers, which hold "
            f"{HALF_OF_REGISTERS // 2} tiles, {HALF_OF_REGISTERS} without fp32_dest_acc_en",
        )


def _tensors(parts: ProgramParts, blocking: Blocking, sizes: dict[str, Size]) -> None:
    """Numbers of tiles and matrices, which do not depend on settings."""
    for name in ("batches", "rows", "columns", "inner"):
        number = getattr(blocking, name)
        sizes[name] = number if number == 1 else parts.derive(name, number)


def _counts(parts: ProgramParts, sizes: dict[str, Size]) -> None:
    """Numbers of blocks; in a pass each core computes one.

    Row and column blocks are rounded up: tiles beyond the result are computed, but not written."""
    for line in ("row", "column"):
        at_a_time = sizes[f"block_{line}s"] * sizes[f"grid_{line}s"]
        if isinstance(at_a_time, Operation):
            at_a_time = parts.derive(f"pass_{line}s", at_a_time)
        count = ceil_quotient(sizes[f"{line}s"], at_a_time)
        name = f"{line}_blocks"
        sizes[name] = count if isinstance(count, int) else parts.derive(name, count)
    inner, block = sizes["inner"], sizes["block_inner"]
    sizes["inner_blocks"] = sizes["last_inner"] = 1
    if isinstance(inner, Name):
        blocks = parts.derive("inner_blocks", ceil_quotient(inner, block))
        sizes["inner_blocks"] = blocks
        sizes["last_inner"] = parts.derive("last_inner", inner - (blocks - 1) * block)


# Plan of a matmul and its epilogue: work split, circular buffers and costs.


@dataclass
class MatmulPlan:
    """Plan that the kernels of a matmul share.

    Args:
        group: the matmul, and elementwise ops after it.
        names: unique identifiers of the values.
        name: name of the program.
        device: the available cores.
    """

    group: Group
    names: Mapping[SSAValue, str]
    name: str
    device: CoreRange

    def __post_init__(self) -> None:
        self._divide()
        self._collect()
        self._declare()

    def _divide(self) -> None:
        root = self.group.root
        assert root is not None
        self.left, self.right = root.operands
        self.transposed = bool(root.parameter("transpose_b"))
        self._result_shape = TiledShape(root.result_shape)
        self._is_one_matrix = self._can_be_one_matrix()
        self.result = self.tiled(root.results[0])
        self.inner = TiledShape(shape_of(self.left.type)).width
        self.blocking = Blocking.of(
            prod(self.result.batch),
            self.result.rows,
            self.result.columns,
            tiles_along(self.inner),
            self.device,
            (
                tile_bytes_of(declared_data_type(self.left)),
                tile_bytes_of(declared_data_type(self.right)),
            ),
        )

    def _can_be_one_matrix(self) -> bool:
        """Returns whether the batch dimensions can be folded into the rows.

        That requires a right operand without batch, and operands of the epilogue that are folded
        alike or broadcast."""
        result = self._result_shape
        if prod(result.batch) == 1 or prod(TiledShape(shape_of(self.right.type)).batch) > 1:
            return False
        read = {value for op in self.group.epilogue for value in op.operands}
        others = [value for value in self.group.inputs() if value in read]
        return self._has_all_rows(self.left) and all(
            self._has_all_rows(value) or self._is_row(value) for value in others
        )

    def _has_all_rows(self, value: SSAValue) -> bool:
        shape, result = TiledShape(shape_of(value.type)), self._result_shape
        return prod(shape.batch) == prod(result.batch) and shape.height == result.height

    def _is_row(self, value: SSAValue) -> bool:
        shape = TiledShape(shape_of(value.type))
        return prod(shape.batch) * shape.height == 1

    def tiled(self, value: SSAValue) -> TiledShape:
        """Tiled shape of a tensor, with batch folded into rows if that is possible."""
        shape = TiledShape(shape_of(value.type))
        if not self._is_one_matrix:
            return shape
        if not self._has_all_rows(value):
            return TiledShape(shape.shape[-2:])
        return TiledShape((prod(shape.batch) * shape.rows * TILE_SIDE, shape.width))

    def _collect(self) -> None:
        self.epilogue = Epilogue(self.group)
        self.outer = self.epilogue.outer
        outputs = self.group.outputs()
        self.parts = ProgramParts(self.names, [self.left, self.right, *self.outer], outputs)

    def _declare(self) -> None:
        parts = self.parts
        columns = self.blocking.block_columns
        widest = max(n for n in range(1, capacity(True) + 1) if columns % n == 0)
        self.sizes = declare_settings(parts, self.blocking, widest if self.epilogue.is_plain else 0)
        self.cores = CoreArea(self.sizes["grid_columns"] - 1, self.sizes["grid_rows"] - 1)
        if prod(self.result.batch) == 1:
            block = BlockTiles(*(self.sizes[f"block_{line}s"] * self.sizes[f"{line}_blocks"]
                                 for line in ("row", "column")))  # fmt: skip
            parts.divisions.update(dict.fromkeys(parts.outputs, block))
        left, right = declared_data_type(self.left), declared_data_type(self.right)
        rows, columns, inner = (
            self.sizes[f"block_{name}"] for name in ("rows", "columns", "inner")
        )
        depth = Name("operand_depth")
        parts.buffers.add("left", left, depth * rows * inner)
        parts.buffers.add("right", right, depth * inner * columns)
        waiting = Name("result_depth") * self.sizes["subblock_columns"]
        self.outer_names = [parts.buffers.add_tensor(value, waiting) for value in self.outer]
        self.output_names = [parts.buffers.add_tensor(value, waiting) for value in parts.outputs]
        if self.has_sums:
            several = at_least(self.sizes["inner_blocks"], 2)
            parts.buffers.add("partial", DataType.FLOAT32, select(several, rows * columns, 0))

    @property
    def has_sums(self) -> bool:
        """Returns whether sums of several inner blocks may be kept in L1."""
        return isinstance(self.sizes["inner_blocks"], Name)

    def constants(self, names: str) -> dict[str, Size]:
        """Sizes that a kernel uses, by name."""
        return {name: self.sizes[name] for name in names.split()}

    def full_width(self) -> tuple[int, ...]:
        """Circular buffers of tiles that are copied to registers and wider than 16 bits."""
        return self.parts.buffers.wide(["partial", *self.outer_names])

    def semaphores(self, side: str) -> tuple[str, ...]:
        """Semaphores that synchronize the multicast of an operand's blocks, if it has receivers."""
        shared = self.blocking.grid_columns if side == "left" else self.blocking.grid_rows
        return (f"{side}_ready", f"{side}_sent") if shared > 1 else ()

    def batch_loops(self, *values: SSAValue) -> LoopNest:
        """Loop nest over result matrices, with the first page of each operand's matrix."""
        batch = self.result.batch or (1,)
        moves = [
            (self._batch_strides(value, len(batch)), (0,) * (len(batch) + 2)) for value in values
        ]
        grid = (*batch, 1, 1)
        return LoopNest.of(grid, (1,) * len(grid), moves, "batch")

    def _batch_strides(self, value: SSAValue, rank: int) -> list[int]:
        shape = self.tiled(value)
        strides = row_major_strides(shape.grid)[:-2]
        found = [0 if n == 1 else s for n, s in zip(shape.batch, strides, strict=True)]
        return [0] * (rank - len(found)) + found + [0, 0]

    def costs(self) -> Costs:
        """Costs of the program: the first core of each row and column reads and sends.

        The minimum is that each operand is read once, and sent once if there are other cores."""
        b = self.blocking
        held = {value: tensor_bytes(value) for value in self.parts.inputs}
        reads = Counter[SSAValue]()
        sent = least_sent = 0
        for value, lines, block, others in (
            (self.left, b.grid_rows, b.block_rows, b.grid_columns - 1),
            (self.right, b.grid_columns, b.block_columns, b.grid_rows - 1),
        ):
            brought = b.passes * lines * block * b.inner * tile_bytes_of(declared_data_type(value))
            reads[value] += brought
            if others:
                sent += brought
                least_sent += held[value]
        reads.update(self.epilogue.reads(self.result))
        products = b.batches * b.rows * b.columns * b.inner
        epilogue = len(self.group.epilogue) * self.result.tiles
        return self.parts.costs(
            reads, tiles_computed=products + epilogue, sent=sent, least_sent=least_sent
        )
