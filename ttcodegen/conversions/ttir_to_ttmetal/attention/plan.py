"""Plan of an attention program: work split and circular buffers.

A unit of work is a number of rows of query tiles that share a head of keys and values. These stay
in L1 meanwhile, or are streamed in chunks if they do not fit. Scores never leave L1."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from math import ceil

from xdsl.ir import SSAValue

from ttcodegen.conversions.ttir_to_ttmetal.parts.compute import (
    PARTIAL,
    REDUCED,
    SCALER,
    SCALER_TILES,
)
from ttcodegen.conversions.ttir_to_ttmetal.parts.data_movement import brought_bytes
from ttcodegen.conversions.ttir_to_ttmetal.parts.loop_nests import broadcast_of
from ttcodegen.conversions.ttir_to_ttmetal.parts.program_parts import BUFFER_DEPTH, ProgramParts
from ttcodegen.dialects.core.datatypes import DataType, shape_of
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.dialects.ttcore.shards import CoreRange
from ttcodegen.dialects.ttcore.tile import TILE_SIDE
from ttcodegen.dialects.ttkernel.builder import KernelBuilder, Value
from ttcodegen.dialects.ttmetal.programs import ComputeSettings, Costs, UnitTiles
from ttcodegen.dialects.ttnn.placement import declared_data_type
from ttcodegen.layout.placements import TiledShape, tile_bytes_of
from ttcodegen.ops.attention.reference import default_scale
from ttcodegen.ops.attention.sdpa import keys_at_a_time

_OF_ROW = ("greatest", "inverse")
"""Circular buffers for the reductions of a row of scores."""
_MOST_ROWS = 4
"""Maximum number of rows of query tiles that are computed with each chunk of keys."""


@dataclass
class AttentionPlan:
    """Plan of an attention program, shared by its kernels."""

    op: CatalogueOp
    names: Mapping[SSAValue, str]
    cores: CoreRange
    parts: ProgramParts = field(init=False)
    buffers: dict[str, str] = field(default_factory=dict[str, str])
    """Circular buffers of the operands and the result, by their role in the op."""

    def __post_init__(self) -> None:
        op = self.op
        self.query, self.key, self.value = (op.operand(n) for n in ("query", "key", "value"))
        self.mask = op.optional_operand("attention_mask")
        self.sink = op.optional_operand("attention_sink")
        self.queries = TiledShape(op.shape("query"))
        self.keys = TiledShape(op.shape("key"))
        self.values = TiledShape(op.shape("value"))
        self.parts = ProgramParts(self.names, list(op.operands), op.results)
        self._add_buffers()
        self._divide()

    def _add_buffers(self) -> None:
        parts, data_type = self.parts, declared_data_type(self.query)
        rows = self.unit_rows if self.in_parts else 1
        parts_held = 2 if self.in_parts else 1
        for name, value, pages in (
            ("query", self.query, BUFFER_DEPTH * (self.inner * rows)),
            ("key", self.key, parts_held * self.part * self.inner),
            ("value", self.value, parts_held * self.part * self.width),
        ):
            # One tensor may be several operands.
            self.buffers[name] = parts.buffers.add_tensor(value, pages)
        for name, value in (("mask", self.mask), ("sink", self.sink)):
            if value is not None:
                self.buffers[name] = parts.buffers.add_tensor(value)
        self.buffers["result"] = parts.buffers.add_tensor(self.op.results[0])
        parts.buffers.add("scores", DataType.FLOAT32, self.part)
        parts.buffers.add("weights", data_type, self.part)
        single = [PARTIAL, REDUCED, *(("latest", "factor") if self.in_parts else _OF_ROW)]
        for name in single:
            parts.buffers.add(name, DataType.FLOAT32, 1)
        if self.in_parts:
            for name, pages in (("greatest", 1), ("sum", 1), ("products", self.width)):
                parts.buffers.add(name, DataType.FLOAT32, (rows + 1) * pages)
        parts.buffers.add(SCALER, DataType.BFLOAT16, SCALER_TILES)
        if self.hiding:
            parts.buffers.add(self.hiding, DataType.BFLOAT16, 1)

    def _divide(self) -> None:
        """Records which operands each core reads exactly once, in order.

        These are the queries of its units, and heads of keys and values that no other unit shares.
        Operands that are streamed in chunks are excluded."""
        if self.in_parts or len({self.query, self.key, self.value}) < 3:
            return
        divisions = self.parts.divisions
        divisions[self.query] = UnitTiles(self.unit_rows * self.inner)
        if self.units_of_group == 1:
            divisions[self.key] = UnitTiles(self.columns * self.inner)
            divisions[self.value] = UnitTiles(self.columns * self.width)

    @cached_property
    def settings(self) -> ComputeSettings:
        """Compute settings of the kernel: copied tiles keep their full width."""
        copied = ["scores", REDUCED, "greatest"]
        copied += [self.buffers[name] for name in ("mask", "sink") if name in self.buffers]
        copied += ["latest", "factor", "sum", "products"] if self.in_parts else ["inverse"]
        return ComputeSettings(
            fp32_destination=True, unpack_to_fp32=self.parts.buffers.wide(copied)
        )

    # Sizes in tiles

    @property
    def inner(self) -> int:
        """Tile columns of the queries and keys."""
        return self.queries.columns

    @property
    def columns(self) -> int:
        """Tile columns of the scores: tile rows of the keys."""
        return self.keys.rows

    @property
    def width(self) -> int:
        """Tile columns of the values."""
        return self.values.columns

    @cached_property
    def part(self) -> int:
        """Rows of key tiles that are in L1 at a time."""
        return keys_at_a_time(self.op)

    @property
    def in_parts(self) -> bool:
        """Returns whether keys are streamed in chunks."""
        return self.part < self.columns

    def visible(self, builder: KernelBuilder, row: SSAValue) -> Value:
        """Number of rows of key tiles that are visible to a row of query tiles."""
        if not self.is_causal or self.columns == 1:
            return self.columns
        place = builder.remainder(row, self.queries.rows)
        return builder.named(builder.sum(place, 1), "visible")

    @property
    def rows_of_group(self) -> int:
        """Rows of query tiles that share a head of keys."""
        return self.queries.shape[1] // self.keys.shape[1] * self.queries.rows

    @property
    def rows(self) -> int:
        """All rows of query tiles."""
        return self.rows_of_group * self.keys.shape[0] * self.keys.shape[1]

    @cached_property
    def unit_rows(self) -> int:
        """Rows of query tiles in a unit of work.

        If heads have one row each, those of a group stay together: reading keys and values takes
        longer than computing with them."""
        least = ceil(self.rows / self.cores.cores)
        if self.queries.rows == 1:
            least = self.rows_of_group
        divisors = [n for n in range(1, self.rows_of_group + 1) if self.rows_of_group % n == 0]
        found = next((n for n in divisors if n >= least), self.rows_of_group)
        if not self.in_parts:
            return found
        # With a causal mask rows see different numbers of chunks.
        most = 1 if self.is_causal else min(found, _MOST_ROWS)
        return max(n for n in divisors if n <= most)

    @property
    def units(self) -> int:
        """Number of units of work."""
        return self.rows // self.unit_rows

    @property
    def units_of_group(self) -> int:
        """Units of work that share a head of keys."""
        return self.rows_of_group // self.unit_rows

    # Masks

    @property
    def is_causal(self) -> bool:
        """Returns whether a query sees only the keys up to its own position."""
        return bool(self.op.parameter("is_causal"))

    @property
    def hiding(self) -> str:
        """Circular buffer of the tile that hides keys in the last visible tile of a row.

        `later` hides keys after the query, `elements` hides padding; empty for none."""
        if self.is_causal:
            return "later"
        return "elements" if self.keys.height % TILE_SIDE else ""

    @property
    def scale(self) -> float:
        """Scale of the scores."""
        scale = self.op.parameter("scale")
        return float(default_scale(self.queries.width) if scale is None else scale)

    # Figures

    def costs(self) -> Costs:
        """Costs of the program."""
        tile = tile_bytes_of(declared_data_type(self.query))
        seen = self.units * self.columns
        if self.in_parts and self.is_causal:
            seen = self._visible_tiles
        reads = Counter({self.query: self.rows * self.inner * tile})
        reads[self.key] += seen * self.inner * tile
        reads[self.value] += seen * self.width * tile
        if self.mask is not None:
            broadcast = broadcast_of(self.shape_of_mask(), self.scores).word
            brought = brought_bytes(declared_data_type(self.mask), broadcast)
            reads[self.mask] += self._mask_tiles * brought
        if self.sink is not None:
            reads[self.sink] += self.rows * brought_bytes(declared_data_type(self.sink), "element")
        products = self.rows * self.columns * (self.inner + self.width)
        return self.parts.costs(reads, tiles_computed=products)

    @property
    def _mask_tiles(self) -> int:
        """Mask tiles that are read: only up to the diagonal if the attention is causal."""
        return self._visible_tiles if self.is_causal else self.rows * self.columns

    @property
    def _visible_tiles(self) -> int:
        """Number of score tiles up to the diagonal."""
        heads = self.rows // self.queries.rows
        return heads * self.queries.rows * (self.queries.rows + 1) // 2

    @property
    def scores(self) -> TiledShape:
        """Shape of the scores of all queries."""
        return TiledShape((*self.queries.shape[:3], self.keys.height))

    def shape_of_mask(self) -> TiledShape:
        """Shape of the mask operand."""
        assert self.mask is not None
        return TiledShape(shape_of(self.mask.type))
