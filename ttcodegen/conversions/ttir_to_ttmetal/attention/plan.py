"""Plan of an attention program: work split and circular buffers.

A unit of work is some rows of tiles of queries that share a head of keys and values: these stay in
L1 meanwhile, or come part by part if there are too many. Scores never leave L1.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from math import ceil

from xdsl.ir import SSAValue

from ttcodegen.conversions.ttir_to_ttmetal.parts.compute import PARTIAL, REDUCED, SCALER
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
"""Circular buffers for what a row of scores comes to."""
_MOST_ROWS = 4
"""Rows of tiles of queries that are computed with each part of the keys."""


@dataclass
class AttentionPlan:
    """The program of an attention under construction."""

    op: CatalogueOp
    names: Mapping[SSAValue, str]
    cores: CoreRange
    parts: ProgramParts = field(init=False)
    buffers: dict[str, str] = field(default_factory=dict[str, str])
    """The circular buffers of the operands and of the result, by what they are for the op."""

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
            # One tensor may be several of them.
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
        parts.buffers.add(SCALER, DataType.BFLOAT16, 1)
        if self.hiding:
            parts.buffers.add(self.hiding, DataType.BFLOAT16, 1)

    def _divide(self) -> None:
        """Traffic division: tiles that each core needs once, in order, being the queries of its
        units and the heads of keys and values that no other units share. What comes in parts is not
        so."""
        if self.in_parts or len({self.query, self.key, self.value}) < 3:
            return
        divisions = self.parts.divisions
        divisions[self.query] = UnitTiles(self.unit_rows * self.inner)
        if self.units_of_group == 1:
            divisions[self.key] = UnitTiles(self.columns * self.inner)
            divisions[self.value] = UnitTiles(self.columns * self.width)

    @cached_property
    def settings(self) -> ComputeSettings:
        """Compute settings of the kernel: copies keep their full width."""
        copied = ["scores", REDUCED, "greatest"]
        copied += [self.buffers[name] for name in ("mask", "sink") if name in self.buffers]
        copied += ["latest", "factor", "sum", "products"] if self.in_parts else ["inverse"]
        return ComputeSettings(
            fp32_destination=True, unpack_to_fp32=self.parts.buffers.wide(copied)
        )

    # Sizes in tiles

    @property
    def inner(self) -> int:
        """Columns of the queries and keys."""
        return self.queries.columns

    @property
    def columns(self) -> int:
        """Columns of the scores: rows of tiles of the keys."""
        return self.keys.rows

    @property
    def width(self) -> int:
        """Columns of the values."""
        return self.values.columns

    @cached_property
    def part(self) -> int:
        """Rows of tiles of the keys that are there at a time."""
        return keys_at_a_time(self.op)

    @property
    def in_parts(self) -> bool:
        """True if that are not all."""
        return self.part < self.columns

    def visible(self, builder: KernelBuilder, row: SSAValue) -> Value:
        """Rows of tiles of the keys that a row of tiles of all queries sees."""
        if not self.is_causal or self.columns == 1:
            return self.columns
        place = builder.remainder(row, self.queries.rows)
        return builder.named(builder.sum(place, 1), "visible")

    @property
    def rows_of_group(self) -> int:
        """Rows of tiles of the queries that share a head of keys."""
        return self.queries.shape[1] // self.keys.shape[1] * self.queries.rows

    @property
    def rows(self) -> int:
        """All rows of tiles of the queries."""
        return self.rows_of_group * self.keys.shape[0] * self.keys.shape[1]

    @cached_property
    def unit_rows(self) -> int:
        """Rows of tiles of a unit of work. Where heads have one row each, those of a group stay
        together: to read keys and values takes longer than to compute with them."""
        least = ceil(self.rows / self.cores.cores)
        if self.queries.rows == 1:
            least = self.rows_of_group
        divisors = [n for n in range(1, self.rows_of_group + 1) if self.rows_of_group % n == 0]
        found = next((n for n in divisors if n >= least), self.rows_of_group)
        if not self.in_parts:
            return found
        # Each row sees as many parts as it is allowed to, if that differs.
        most = 1 if self.is_causal else min(found, _MOST_ROWS)
        return max(n for n in divisors if n <= most)

    @property
    def units(self) -> int:
        """The units of work."""
        return self.rows // self.unit_rows

    @property
    def units_of_group(self) -> int:
        """Those that share a head of keys."""
        return self.rows_of_group // self.unit_rows

    # What is hidden

    @property
    def is_causal(self) -> bool:
        """True if a query sees the keys up to its own position."""
        return bool(self.op.parameter("is_causal"))

    @property
    def hiding(self) -> str:
        """The circular buffer of the tile that hides keys in the last tile of a row: what comes
        after a query (`later`), or padding (`elements`); "" for none."""
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
        """Those that are read: up to the diagonal, if nothing is seen after it."""
        return self._visible_tiles if self.is_causal else self.rows * self.columns

    @property
    def _visible_tiles(self) -> int:
        """The tiles of scores up to the diagonal."""
        heads = self.rows // self.queries.rows
        return heads * self.queries.rows * (self.queries.rows + 1) // 2

    @property
    def scores(self) -> TiledShape:
        """The shape of the scores of all queries."""
        return TiledShape((*self.queries.shape[:3], self.keys.height))

    def shape_of_mask(self) -> TiledShape:
        """The shape of the mask that was given."""
        assert self.mask is not None
        return TiledShape(shape_of(self.mask.type))
