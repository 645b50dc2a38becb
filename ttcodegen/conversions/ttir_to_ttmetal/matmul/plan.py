"""A product of matrices and what is computed after it: how it is divided over the cores, the
circular buffers of its kernels, and what it costs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

from xdsl.ir import SSAValue

from ttcodegen.conversions.ttir_to_ttmetal.grouping.grouping import Group
from ttcodegen.conversions.ttir_to_ttmetal.grouping.registers import capacity
from ttcodegen.conversions.ttir_to_ttmetal.matmul.blocking import Blocking
from ttcodegen.conversions.ttir_to_ttmetal.matmul.settings import declare_settings
from ttcodegen.conversions.ttir_to_ttmetal.parts.epilogue import Epilogue
from ttcodegen.conversions.ttir_to_ttmetal.parts.loop_nests import LoopNest
from ttcodegen.conversions.ttir_to_ttmetal.parts.program_parts import (
    ProgramParts,
    tensor_bytes,
)
from ttcodegen.dialects.core.datatypes import DataType, shape_of
from ttcodegen.dialects.ttcore.cores import CoreRange
from ttcodegen.dialects.ttcore.tile import TILE_SIDE, tiles_along
from ttcodegen.dialects.ttmetal.programs import BlockTiles, CoreArea, Costs
from ttcodegen.dialects.ttmetal.tuning import Name, Size, at_least, select
from ttcodegen.dialects.ttnn.placement import declared_data_type
from ttcodegen.layout.tiled_shape import TiledShape, row_major_strides, tile_bytes_of


@dataclass
class MatmulPlan:
    """What the kernels of a product have in common.

    Args:
        group: the product, and elementwise ops after it.
        names: what values are called: identifiers, all different.
        name: what the program is called.
        device: the cores that there are.
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
        """True if the rows of all matrices of the left operand can be taken for those of one: each
        is multiplied with the same matrix, and tiles of rows follow each other in DRAM."""
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
        """A tensor in tiles, with as many dimensions as the product has."""
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
        """True if the inner dimension may come in several blocks, whose sums wait in L1."""
        return isinstance(self.sizes["inner_blocks"], Name)

    def constants(self, names: str) -> dict[str, Size]:
        """The sizes that a kernel knows, by name."""
        return {name: self.sizes[name] for name in names.split()}

    def full_width(self) -> tuple[int, ...]:
        """Circular buffers whose tiles are copied to the registers and are wider than 16 bits."""
        return self.parts.buffers.wide(["partial", *self.outer_names])

    def semaphores(self, side: str) -> tuple[str, ...]:
        """Those that blocks of the left or the right operand go on with, if they are multicast."""
        shared = self.blocking.grid_columns if side == "left" else self.blocking.grid_rows
        return (f"{side}_ready", f"{side}_sent") if shared > 1 else ()

    def batch_loops(self, *values: SSAValue) -> LoopNest:
        """The first page of each operand's matrix, by the number of the result's matrix."""
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
        """The first core of each row and column reads and sends; the minimum is each operand read
        once, and sent once if there is another core to send it to."""
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
