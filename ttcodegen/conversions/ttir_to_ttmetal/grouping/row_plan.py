"""Computation of programs with several passes over rows of tiles, such as a softmax.

All values have the shape of the rows, or one element per row. A pass over the tiles of a row ends
in a reduction to one tile. Results of ops on it, with one element per row, are kept until the row
is done. The last pass computes the outputs. Other values that several passes need are recomputed,
which is cheaper than to store and reload them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from xdsl.ir import SSAValue

from ttcodegen.conversions.ttir_to_ttmetal.grouping.tile_operations import (
    GREATEST,
    LEAST,
    REDUCTIONS,
    Allocation,
    Load,
    Reduction,
    allocate,
    capacity,
    is_elementwise,
    lower_chain,
    reduced_elements,
    where_shown,
)
from ttcodegen.dialects.core.datatypes import DataType, shape_of
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.dialects.ttcore.tile import TILE_SIDE
from ttcodegen.dialects.ttnn.placement import declared_data_type
from ttcodegen.layout.placements import TiledShape, tile_bytes_of
from ttcodegen.ops.core.builder import splat_of
from ttcodegen.ops.core.lowering import Tile, TileBuilder

MOST_ROW_BYTES = 1_200_000
"""Maximum L1 for rows of tiles and kept tiles; the rest is for streamed tiles."""


def reduces_rows(op: CatalogueOp) -> bool:
    """Returns whether an op reduces rows of elements to one element each."""
    if op.name not in REDUCTIONS or op.name == "ttir.prod":
        return False
    shape = shape_of(op.operands[0].type)
    if len(shape) < 2 or shape[-1] == 1:
        return False
    is_float = declared_data_type(op.operands[0]).is_float
    return is_float and op.result_shape == row_values_shape(shape)


def row_values_shape(shape: Sequence[int]) -> tuple[int, ...]:
    """Shape of values with one element per row."""
    return (*shape[:-1], 1)


@dataclass(frozen=True)
class RowPass:
    """Pass over the tiles of a row that ends in a reduction, and the ops on its result."""

    op: CatalogueOp
    reduced: Tile
    """Reduced operand."""
    over: Allocation
    """Steps for each tile; the first register is the accumulator."""
    selected: Tile
    """Reduced operand in the last tile of a row, with padding replaced."""
    over_last: Allocation
    """Steps for the last tile."""
    after: Allocation
    """Steps after the last tile."""
    has_least: bool = False
    """True if the second register holds the minimum: a negative NaN is below all numbers."""

    @property
    def reduction(self) -> Reduction:
        """Reduction over the tiles of a row."""
        return REDUCTIONS[self.op.name]


@dataclass(frozen=True)
class RowPlan:
    """Passes of a program over rows."""

    shape: tuple[int, ...]
    builder: TileBuilder
    inputs: Mapping[SSAValue, Tile]
    """Tiles of values from outside."""
    passes: Sequence[RowPass]
    results: Sequence[Mapping[SSAValue, Tile]]
    """Per pass, the needed values with one element per row, and their tiles after its reduction."""
    kept: Mapping[SSAValue, Tile]
    """Tiles of those values that later steps read, broadcast over the row."""
    last: Allocation | None
    """Steps of the last pass for each tile; None if all outputs have one element per row."""
    outputs: Mapping[SSAValue, Tile]
    """Tiles of the outputs of the last pass."""

    padding: Tile | None
    """Tile that marks the elements of the last tile of a row; None without padding."""

    def reads(self, allocation: Allocation | None) -> list[SSAValue]:
        """Values from outside that steps load, in the order of the inputs."""
        steps = allocation.steps if allocation is not None else ()
        loaded = {step.tile for step in steps if isinstance(step, Load)}
        return [value for value, tile in self.inputs.items() if tile in loaded]

    @property
    def operands_of_passes(self) -> list[list[SSAValue]]:
        """Operands of each pass over a row, those of the last pass at the end."""
        found = [self.reads(each.over) for each in self.passes]
        return [*found, self.reads(self.last)] if self.last is not None else found

    @property
    def own_buffers(self) -> int:
        """Number of circular buffers besides those of tensors.

        These are for kept values, partial and reduced rows, the scaler, and the padding marks."""
        return len(self.kept) + 3 + (self.padding is not None)

    @property
    def row_bytes(self) -> int:
        """Bytes of a row of tiles of each operand."""
        return sum(
            TiledShape(shape_of(value.type)).columns * tile_bytes_of(declared_data_type(value))
            for value in self.inputs
        )

    @property
    def stays(self) -> bool:
        """Returns whether a row of tiles stays in L1; otherwise each pass reads it."""
        return self.row_bytes <= MOST_ROW_BYTES


def plan_rows(
    ops: Sequence[CatalogueOp], shape: tuple[int, ...], outputs: Iterable[SSAValue]
) -> RowPlan | None:
    """Plans the passes of ops over rows; None if they do not fit this form or the registers.

    Args:
        ops: elementwise ops and reductions of rows, in order.
        shape: shape of the rows.
        outputs: the values that are results of the program.
    """
    planning = _Planning(shape)
    if not all(planning.add(op) for op in ops):
        return None
    return planning.finish(list(outputs))


@dataclass
class _Planning:
    shape: tuple[int, ...]
    builder: TileBuilder = field(default_factory=TileBuilder)
    _inputs: dict[SSAValue, Tile] = field(default_factory=dict[SSAValue, Tile])
    _whole: dict[SSAValue, Tile] = field(default_factory=dict[SSAValue, Tile])
    """Tiles of values with the shape of the rows."""
    _pass_of: dict[SSAValue, int] = field(default_factory=dict[SSAValue, int])
    """Reduction after which a value with one element per row is computed."""
    _after: list[dict[SSAValue, Tile]] = field(default_factory=list[dict[SSAValue, Tile]])
    _kept: dict[SSAValue, Tile] = field(default_factory=dict[SSAValue, Tile])
    _reductions: list[tuple[CatalogueOp, Tile, Tile, Tile]] = field(
        default_factory=list[tuple[CatalogueOp, Tile, Tile, Tile]]
    )
    _padding: Tile | None = None

    def add(self, op: CatalogueOp) -> bool:
        """Adds an op; returns False if it cannot be in such a program."""
        if reduces_rows(op) and shape_of(op.operands[0].type) == self.shape:
            self._reduce(op)
        elif not (is_elementwise(op) or splat_of(op.results[0]) is not None):
            return False
        elif op.result_shape == self.shape:
            self._lower(op, len(self._after), self._whole)
        elif op.result_shape == row_values_shape(self.shape):
            passes = [self._pass_of[value] for value in op.operands if value in self._pass_of]
            if not passes or any(value in self._whole for value in op.operands):
                return False
            last = max(passes)
            self._pass_of[op.results[0]] = last
            self._lower(op, last, self._after[last])
        else:
            return False
        return True

    def finish(self, outputs: Sequence[SSAValue]) -> RowPlan | None:
        """Returns the plan; None if a pass needs too many registers."""
        passes: list[RowPass] = []
        needed: list[Mapping[SSAValue, Tile]] = []
        for (op, reduced, selected, total), values in zip(
            self._reductions, self._after, strict=True
        ):
            wanted = {v: t for v, t in values.items() if v in self._kept or v in outputs}
            over, over_last, has_least = self._allocate_pass(op, reduced, selected, total)
            after = self._allocate(list(dict.fromkeys(wanted.values())), {total: 0})
            if over is None or over_last is None or after is None:
                return None
            passes.append(RowPass(op, reduced, over, selected, over_last, after, has_least))
            needed.append(wanted)
        whole = {value: self._whole[value] for value in outputs if value in self._whole}
        last = self._allocate(list(dict.fromkeys(whole.values())), {}) if whole else None
        if not passes or (whole and last is None):
            return None
        return RowPlan(
            self.shape,
            self.builder,
            self._inputs,
            passes,
            needed,
            self._kept,
            last,
            whole,
            self._padding,
        )

    def _allocate_pass(
        self, op: CatalogueOp, reduced: Tile, selected: Tile, total: Tile
    ) -> tuple[Allocation | None, Allocation | None, bool]:
        """Allocates the steps for each tile of a pass and for the last one.

        Also returns whether a register is left for the minimum, for reductions that compare."""
        held = {total: GREATEST}
        if REDUCTIONS[op.name].is_extreme:
            both = {**held, self.builder.new_tile(DataType.FLOAT32): LEAST}
            over, over_last = (self._allocate([tile, total], both) for tile in (reduced, selected))
            if over is not None and over_last is not None:
                return over, over_last, True
        over, over_last = (self._allocate([tile, total], held) for tile in (reduced, selected))
        return over, over_last, False

    def _allocate(self, results: Sequence[Tile], held: Mapping[Tile, int]) -> Allocation | None:
        return allocate(self.builder.calls, results, capacity(True), held)

    def _reduce(self, op: CatalogueOp) -> None:
        source = op.operands[0]
        if source not in self._whole and source not in self._inputs:
            self._inputs[source] = self.builder.new_tile(declared_data_type(source))
        tile = self._whole[source] if source in self._whole else self._inputs[source]
        reduction = REDUCTIONS[op.name]
        reduced = reduction.prepared(self.builder, tile)
        accumulator = self.builder.new_tile(DataType.FLOAT32)
        total = reduction.finished(self.builder, accumulator, reduced_elements(op))
        # The running extreme as replacement changes nothing, and takes no extra register.
        hidden = accumulator if reduction.is_extreme else None
        selected = self._selected(reduced, reduction.neutral, hidden)
        self._reductions.append((op, reduced, selected, accumulator))
        self._pass_of[op.results[0]] = len(self._after)
        self._after.append({op.results[0]: total})

    def _selected(self, tile: Tile, neutral: float, hidden: Tile | None) -> Tile:
        """Returns the tile with padding replaced by neutral elements."""
        if self.shape[-1] % TILE_SIDE == 0:
            return tile
        if self._padding is None:
            self._padding = self.builder.new_tile(DataType.BFLOAT16)
        if hidden is None:
            hidden = self.builder.fill(neutral, DataType.FLOAT32)
        return where_shown(self.builder, self._padding, tile, hidden)

    def _lower(self, op: CatalogueOp, place: int, values: dict[SSAValue, Tile]) -> None:
        """Lowers an elementwise op after a reduction; values of earlier reductions are kept."""
        known = dict(values)
        for value in op.operands:
            if value in self._pass_of and self._pass_of[value] != place:
                if value not in self._kept:
                    self._kept[value] = self.builder.new_tile(DataType.FLOAT32)
                known[value] = self._kept[value]
        lower_chain(self.builder, [op], known, self._inputs)
        values[op.results[0]] = known[op.results[0]]


def begins_rows(ops: Sequence[CatalogueOp]) -> tuple[int, ...] | None:
    """Returns the shape of the rows that ops pass over several times; None otherwise.

    A single reduction of the ops before it takes one pass, unless there is padding to mask."""
    roots = [op for op in ops if op.name in REDUCTIONS]
    if not roots or not all(reduces_rows(op) for op in roots):
        return None
    shape = shape_of(roots[0].operands[0].type)
    if len(roots) > 1:
        return shape
    position = ops.index(roots[0])
    if position and shape[-1] % TILE_SIDE != 0:
        return shape
    if any(op.result_shape == shape for op in ops[position + 1 :]):
        return shape
    inside = set(ops[: position + 1])
    before = (use.operation for op in ops[:position] for r in op.results for use in r.uses)
    return None if all(user in inside for user in before) else shape
