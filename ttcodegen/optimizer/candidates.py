"""Candidates of calls: placements of operands and results, and program configs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import inf
from typing import Any

from ttcodegen.dialects.ttcore.shards import (
    CoreRange,
    Layout,
    Memory,
    MemoryLayout,
    Shards,
    filled_core_ranges,
)
from ttcodegen.dialects.ttcore.tile import TILE_SIDE, tiles_along
from ttcodegen.dialects.ttnn.placement import TensorPlacement
from ttcodegen.dialects.ttnn.program_configs import (
    SDPA,
    CoreGrid,
    MatmulProgramConfig,
    ProgramConfig,
)
from ttcodegen.ops.attention.primitives import fitting_grid, needed_program
from ttcodegen.ops.core.definition import call_has_trait
from ttcodegen.ops.core.traits import Trait
from ttcodegen.ops.reduction.norms import NORMS
from ttcodegen.optimizer.call import Candidate, LibraryCall, interleaved
from ttcodegen.optimizer.cost.calls import CostModel, is_view
from ttcodegen.optimizer.matmul_candidates import MatmulCandidates
from ttcodegen.optimizer.programs.attention_and_norms import (
    DecodeAttention,
    has_residual,
    norm_config,
    on_rectangle,
)
from ttcodegen.optimizer.programs.convolution import result_of, sharded_images
from ttcodegen.optimizer.programs.matmul import MatmulSizes, config_misfit, wide_sums
from ttcodegen.optimizer.rewrites import elementwise
from ttcodegen.transforms.ttnn.call_settings import DECODING

CHUNKS = (32, 64, 128, 256, 512)
"""Chunk sizes of attention, in rows of queries or keys; larger chunks of both exceed L1."""


def cheapest_program(call: LibraryCall, model: CostModel, room: int) -> SDPA | None:
    """Returns the fastest attention config whose circular buffers fit into `room` bytes of L1.

    Prefers smaller chunks among equally fast ones. None if the library's default is as fast and
    fits."""
    default = model.cost(call)
    best, least = None, default.seconds
    if call.name in DECODING and _needs_config(call, model.grid):
        least = inf
    if default.circular_buffers > model.speed.usable_l1:
        least = inf
    for config in _sdpa_configs(call, model.grid):
        attributes = {**call.attributes, "program_config": config}
        cost = model.cost(replace(call, attributes=attributes))
        if cost.circular_buffers <= room and cost.seconds < least:
            best, least = config, cost.seconds
    return best


def _needs_config(call: LibraryCall, grid: CoreGrid) -> bool:
    """Returns whether ttnn refuses a decode call on all cores of the device."""
    plan = DecodeAttention.of(call, grid.cores)
    return needed_program(plan.users, plan.key_heads, 0, grid) is not None


def _sdpa_configs(call: LibraryCall, grid: CoreGrid) -> Iterator[SDPA]:
    if call.name in DECODING:
        plan = DecodeAttention.of(call, grid.cores)
        fitting = fitting_grid(plan.users, plan.key_heads, grid)
        if fitting is not None:
            # ttnn requires power-of-two key chunks here, and no query chunks (0).
            yield from (SDPA(fitting, 0, size) for size in CHUNKS if plan.keys % size == 0)
        return
    for queries in _chunks(call.operands[0].shape[-2]):
        for keys in _chunks(call.operands[1].shape[-2]):
            yield SDPA(grid, queries, keys)


def _chunks(rows: int) -> Iterator[int]:
    whole = tiles_along(rows) * TILE_SIDE
    # Divisors only: the program computes a partial chunk like a full one.
    return (size for size in CHUNKS if whole % size == 0)


# tt-metal accepts all candidates below, as measured.

HEADS = frozenset({"split_query_key_value_and_split_heads", "concatenate_heads"})
"""Splits and concatenations of heads."""
MOVED = HEADS | {
    *("permute", "slice_static", "concat", "concat_row_major", "reshape", "composite_to_layout")
}
"""Data movement calls of interleaved tensors that take a memory config."""
ATTENTION = frozenset({"scaled_dot_product_attention"})
ATTENTION_L1_SHARE = 0.75
"""Fraction of usable L1 for the circular buffers of attention."""
NOT_COPIED = frozenset({"u16", "u8"})
"""Data types of interleaved tensors that ttnn cannot copy between DRAM and L1.

copy.cpp supports only floats and 32-bit integers, so such a tensor in L1 could not be spilled."""
_RULES = {
    "matmul": "the result of a product is interleaved, or has the blocks that its program "
    "computes, per_core_m by per_core_n tiles on each core, as shards",
    "elementwise": "what is computed element by element is interleaved, or has the shards of an "
    "operand of its shape",
    "rows": "what is computed along rows is interleaved, or has the shards of its operand, "
    "normalisations those by width or blocks that its tiles fill",
    "view": "the call makes nothing: its result is where its operand is",
    "moved": "the library makes it of interleaved tensors, interleaved",
    "attention": "the library takes queries, keys and values that are interleaved, and masks and "
    "sinks in DRAM",
    "decoding": "the library takes queries in DRAM, or those of each user on a core of its own, "
    "and caches in DRAM; its result is in DRAM, or as the queries if keys have one head",
    "heads": "the library takes rows that are interleaved, or sharded by width on a rectangle of "
    "cores from the first one on; the heads of each user are on a separate core",
    "convolution": "the result of a convolution is in DRAM, or has shards by height or blocks on "
    "the cores of those of its image, in tiles of the same data type",
    "plain": "the library decides where its result is",
}
"""Messages with the rule for the placement of the result, by kind of call."""


def sharded_as(
    placement: TensorPlacement,
    kind: MemoryLayout,
    cores: CoreGrid,
    grid: Sequence[int] | None = None,
    shape: Sequence[int] | None = None,
) -> TensorPlacement | None:
    """Returns the placement of a tensor sharded in L1, or None if it cannot be sharded so.

    Args:
        placement: placement of the tensor.
        kind: memory layout of the shards.
        cores: cores of the chip.
        grid: columns and rows of cores; by default as many cores as the tensor fills.
        shape: height and width of a shard; by default the smallest one in whole tiles.
    """
    if placement.layout is not Layout.TILE or placement.memory is Memory.HOST:
        return None
    height, width = placement.collapsed_shape()
    columns, rows = grid if grid is not None else (cores.columns, cores.rows)
    if columns > cores.columns or rows > cores.rows or not height or not width:
        return None
    down = {"block_sharded": rows, "height_sharded": columns * rows, "width_sharded": 1}[kind]
    across = {"block_sharded": columns, "height_sharded": 1, "width_sharded": columns * rows}[kind]
    tall, wide = -(-height // down) * TILE_SIDE, -(-width // across) * TILE_SIDE
    tall, wide = shape if shape is not None else (tall, wide)
    used_down, used_across = -(-height * TILE_SIDE // tall), -(-width * TILE_SIDE // wide)
    if kind == "block_sharded" or grid is not None:
        box = (columns, rows) if grid is not None else (used_across, used_down)
        ranges: tuple[CoreRange, ...] = (CoreRange(0, 0, box[0] - 1, box[1] - 1),)
    else:
        ranges = filled_core_ranges(used_down * used_across, cores.columns)
    found = placement.sharded(kind, Shards((tall, wide), ranges))
    padded = (height * TILE_SIDE, width * TILE_SIDE)
    shards = found.shards
    assert shards is not None
    return found if shards.misfit(kind, *padded, in_tiles=True) is None else None


def _placed_as(source: TensorPlacement, result: TensorPlacement) -> TensorPlacement:
    """Returns the placement of a result with the memory and shards of an operand."""
    return result.with_(
        buffer_type=source.buffer_type, memory_layout=source.memory_layout, shards=source.shards
    )


def is_interleaved(placement: TensorPlacement) -> bool:
    """Returns whether a tensor is interleaved on the device."""
    return placement.memory is Memory.DEVICE and placement.shards is None


class CandidateGenerator:
    """Generator of candidates of calls on one chip."""

    def __init__(
        self,
        model: CostModel,
        shards: bool,
        placed: frozenset[str],
        grid: CoreGrid | None = None,
    ) -> None:
        self.model = model
        self.grid = grid or model.grid
        """Cores that calls are distributed over."""
        self.shards = shards
        """True if tensors may be sharded."""
        self.placed = placed
        """Calls with a memory config for their result."""
        self.matmuls = MatmulCandidates(model, shards, self.grid)

    def of(self, call: LibraryCall, fixed: Sequence[bool]) -> Iterator[Candidate]:
        """Yields the candidates of a call; operands where `fixed` is true keep their placements."""
        match self._kind(call):
            case "matmul":
                yield from self.matmuls.of(call)
            case "elementwise":
                yield from self._elementwise(call)
            case "rows":
                yield from self._rows(call)
            case "view":
                yield from self._views(call)
            case "moved":
                yield from self._movements(call)
            case "attention":
                yield from self._attention(call)
            case "decoding":
                yield from self._decode_attention(call, fixed)
            case "heads":
                yield from self._split_heads(call, fixed)
            case "convolution":
                yield from self._convolutions(call, fixed)
            case _:
                yield from self._plain(call, fixed)

    def on(self, grid: CoreGrid) -> CandidateGenerator:
        """Returns a generator that distributes calls over these cores."""
        return CandidateGenerator(self.model, self.shards, self.placed, grid)

    def rule(self, call: LibraryCall) -> str:
        """Returns the rule for the placement of a call's result, as a message."""
        return _RULES[self._kind(call)]

    def configured(self, call: LibraryCall, config: MatmulProgramConfig) -> Iterator[Candidate]:
        """Yields the candidates of a matmul with this program config; none if it does not fit."""
        if self._kind(call) == "matmul" and self.misfit(call, config) is None:
            yield from self.matmuls.configured(call, config)

    def from_banks(self, call: LibraryCall) -> Iterator[Candidate]:
        """Yields the DRAM-sharded candidates of a matmul with const-eval weights."""
        if self._kind(call) == "matmul":
            yield from self.matmuls.from_banks(call)

    def misfit(self, call: LibraryCall, config: ProgramConfig) -> str | None:
        """Returns why a matmul cannot have a program config, or None."""
        if self._kind(call) != "matmul" or not isinstance(config, MatmulProgramConfig):
            return None
        return config_misfit(config, MatmulSizes(call), self.model.grid, wide_sums(call))

    def keeps_configuration(self, call: LibraryCall) -> bool:
        """Returns whether all candidates of a call keep its program config from lowering."""
        return self._kind(call) == "plain"

    def _kind(self, call: LibraryCall) -> str:
        name = call.name
        if not call.results or call.result.memory is Memory.HOST or call.is_on_host:
            return "plain"
        if call_has_trait(name, Trait.MATRIX_PRODUCT) and MatmulSizes(call).batch_b == 1:
            return "matmul"
        if name in elementwise() and _in_tiles(call):
            return "elementwise"
        if name in NORMS or name == "softmax":
            return "rows"
        if is_view(call):
            return "view"
        if name in ATTENTION:
            return "attention"
        if name in DECODING:
            return "decoding"
        if name == "nlp_create_qkv_heads_decode":
            return "heads"
        if name == "conv2d":
            return "convolution"
        return "moved" if name in MOVED else "plain"

    def _plain(self, call: LibraryCall, fixed: Sequence[bool]) -> Iterator[Candidate]:
        """Yields the default candidate: all in DRAM, except operands with required shards."""
        demanded = call.demanded or (None,) * len(call.operands)
        yield Candidate(
            tuple(
                demand or (p if stays or p.memory is Memory.HOST else interleaved(p, "dram"))
                for p, stays, demand in zip(call.operands, fixed, demanded, strict=True)
            ),
            call.results,
        )

    def _convolutions(self, call: LibraryCall, fixed: Sequence[bool]) -> Iterator[Candidate]:
        """Yields candidates of a convolution: in DRAM, or sharded on the cores of its image."""
        yield from self._plain(call, fixed)
        if not self.shards or fixed[0]:
            return
        for image in sharded_images(call, self.grid):
            result = result_of(call, image, self.grid)
            if result is not None:
                yield Candidate((image, *call.operands[1:]), (result,))

    def _buffers(self, call: LibraryCall) -> tuple[str, ...]:
        stays = call.name not in self.placed or call.result.data_type.mlir in NOT_COPIED
        return ("dram",) if stays else ("dram", "l1")

    def _unsharded(self, call: LibraryCall) -> tuple[TensorPlacement, ...]:
        """Returns the placements of the operands with sharded ones interleaved in L1."""
        return tuple(
            p
            if p.memory is Memory.HOST or p.shards is None
            else interleaved(p, "dram" if p.data_type.mlir in NOT_COPIED else "l1")
            for p in call.operands
        )

    def _movements(self, call: LibraryCall) -> Iterator[Candidate]:
        # A slice that is not aligned to tiles untilizes the whole operand in the memory of the
        # result: the operand may exceed L1.
        buffers = self._buffers(call) if _is_tile_aligned(call) else ("dram",)
        for buffer in buffers:
            results = tuple(interleaved(each, buffer) for each in call.results)
            yield Candidate(self._unsharded(call), results)
        if call.name == "composite_to_layout" and call.result.shards is not None:
            # The consumer requires these shards.
            yield Candidate(self._unsharded(call), (call.result,))
        if call.name == "reshape" and call.operands[0].shards is not None:
            kept = _placed_as(call.operands[0], call.result)
            if is_view(replace(call, results=(kept,))):
                yield Candidate(call.operands, (kept,))

    def _attention(self, call: LibraryCall) -> Iterator[Candidate]:
        """Yields candidates of attention: interleaved tensors, with the fastest chunk sizes."""
        # sdpa_device_operation.cpp: a mask and a sink must be in DRAM.
        attended, others = self._unsharded(call)[:3], call.operands[3:]
        operands = (*attended, *(interleaved(other, "dram") for other in others))
        attributes = self._chunk_config(replace(call, operands=operands))
        for buffer in self._buffers(call):
            yield Candidate(operands, (interleaved(call.result, buffer),), attributes)
        if attributes:
            # The smaller default chunks leave L1 to other live tensors.
            yield Candidate(operands, (interleaved(call.result, "dram"),))

    def _chunk_config(self, call: LibraryCall) -> dict[str, Any]:
        """Returns the SDPA program config as an attribute, if one beats the library's default."""
        if call.program_config is not None:
            return {}
        room = int(self.model.speed.usable_l1 * ATTENTION_L1_SHARE)
        program = cheapest_program(call, self.model, room)
        return {} if program is None else {"program_config": program}

    def _split_heads(self, call: LibraryCall, fixed: Sequence[bool]) -> Iterator[Candidate]:
        """Yields candidates of the head split: rows in DRAM, in L1, or width sharded."""
        yield from self._plain(call, fixed)
        (source,) = call.operands
        if source.buffer_type == "l1" and source.shards is None:
            yield Candidate(call.operands, call.results)
        if source.memory_layout == "width_sharded" and source.shards is not None:
            (first, *more) = source.shards.core_ranges
            if not more and (first.first_column, first.first_row) == (0, 0):
                yield Candidate(call.operands, call.results)

    def _decode_attention(self, call: LibraryCall, fixed: Sequence[bool]) -> Iterator[Candidate]:
        """Yields candidates of decode attention: queries in DRAM, or in their shards by user.

        With a single key head, the result may also be sharded by user."""
        (plain,) = self._plain(call, fixed)
        query, *others = plain.operands
        plan = DecodeAttention.of(call, self.model.chip.cores)
        shape = (plan.rows * TILE_SIDE, plan.depth * TILE_SIDE)
        users = Shards.by_rows(plan.users, shape, self.grid.columns)
        sources, results = [query], [interleaved(call.result, "dram")]
        if call.operands[0] == query.height_sharded(users):
            sources.append(call.operands[0])
        if self.shards and plan.key_heads == 1:
            results.append(call.result.height_sharded(users))
        for source in sources:
            operands = (source, *others)
            attributes = self._chunk_config(replace(call, operands=operands))
            for result in results:
                yield Candidate(operands, (result,), attributes)

    def _views(self, call: LibraryCall) -> Iterator[Candidate]:
        """Yields the candidate of a view, whose result shares the memory of its operand."""
        source = call.operands[0]
        if source.shards is not None and source.collapsed_shape() != call.result.collapsed_shape():
            source = interleaved(source, "l1")
        yield Candidate((source,), (_placed_as(source, call.result),))

    def _elementwise(self, call: LibraryCall) -> Iterator[Candidate]:
        if call.name not in self.placed:
            first = call.operands[0] if is_interleaved(call.operands[0]) else None
            buffer = "dram" if first is None or len(call.operands) > 1 else first.buffer_type
            if call.result.data_type.mlir in NOT_COPIED:
                buffer = "dram"
            taken = tuple(
                p if p.memory is Memory.HOST else interleaved(p, buffer) for p in call.operands
            )
            yield Candidate(taken, (interleaved(call.result, buffer),))
            return
        typecast = call.name == "typecast"
        operands = self._unsharded(call) if typecast else call.operands
        for buffer in self._buffers(call):
            yield Candidate(operands, (interleaved(call.result, buffer),))
        seen: set[object] = set()
        for operand in call.operands:
            key = (operand.memory_layout, operand.shards)
            if operand.shards is None or key in seen or operand.shape != call.result.shape:
                continue
            seen.add(key)
            kept = call.result.sharded(operand.memory_layout or "", operand.shards)
            yield Candidate(call.operands, (kept,))

    def _rows(self, call: LibraryCall) -> Iterator[Candidate]:
        source = call.operands[0]
        others = call.operands[1:]
        for buffer in self._buffers(call):
            yield Candidate(self._unsharded(call), (interleaved(call.result, buffer),))
        if call.name == "softmax":
            # The softmax program addresses pages through accessors, so it supports any shards.
            if source.shards is not None:
                kept = call.result.sharded(source.memory_layout or "", source.shards)
                yield Candidate(call.operands, (kept,))
            return
        if source.shards is None:
            distributed = self._on_all_cores(source) if self.shards else None
            if distributed is None:
                return
            source = distributed
        config = norm_config(source)
        if config is None and (moved := on_rectangle(source, self.model.grid)) is not None:
            source, config = moved, norm_config(moved)
        if config is not None and source.shards is not None:
            kept = call.result.sharded(source.memory_layout or "", source.shards)
            if has_residual(call):
                # Both addends need the same shards.
                added = others[-1].sharded(source.memory_layout or "", source.shards)
                others = (*others[:-1], added)
            yield Candidate((source, *others), (kept,), {"program_config": config})

    def _on_all_cores(self, source: TensorPlacement) -> TensorPlacement | None:
        """Returns tiled rows block sharded over the largest grid that divides them evenly.

        A single row of tiles is width sharded on a rectangle instead. None if there are none."""
        if source.layout is not Layout.TILE or not is_interleaved(source):
            return None
        height, width = source.collapsed_shape()
        if height == 1:
            wide = sharded_as(source, "width_sharded", self.grid)
            return None if wide is None else on_rectangle(wide, self.grid)
        rows = max(n for n in range(1, self.grid.rows + 1) if height % n == 0)
        columns = max(n for n in range(1, self.grid.columns + 1) if width % n == 0)
        return sharded_as(source, "block_sharded", self.grid, (columns, rows))


def _in_tiles(call: LibraryCall) -> bool:
    return all(
        p.layout is Layout.TILE and p.memory is Memory.DEVICE
        for p in (*call.operands, *call.results)
    )


def _is_tile_aligned(call: LibraryCall) -> bool:
    """Returns False for slices that are not aligned to tiles."""
    if call.name != "slice_static":
        return True
    begins, ends, steps = (call.attributes[name] for name in ("begins", "ends", "step"))
    shape = call.operands[0].shape
    return all(step == 1 for step in steps) and all(
        begin % TILE_SIDE == 0 and (end % TILE_SIDE == 0 or end == size)
        for begin, end, size in zip(begins[-2:], ends[-2:], shape[-2:], strict=True)
    )
