"""Candidates of matmuls, including those with DRAM-sharded weights."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from math import inf
from typing import Any

from ttcodegen.dialects.operations.compute_config import ComputeConfig, MathFidelity
from ttcodegen.dialects.ttcore.shards import CoreRange, Layout, Memory, Shards, filled_core_ranges
from ttcodegen.dialects.ttcore.tile import TILE_SIDE
from ttcodegen.dialects.ttnn.placement import TensorPlacement
from ttcodegen.dialects.ttnn.program_configs import (
    CoreGrid,
    FusedActivation,
    MatmulDRAMSharded,
    MatmulMultiCast,
    MatmulMultiCast1D,
    MatmulProgramConfig,
)
from ttcodegen.layout.placements import tile_bytes
from ttcodegen.ops.elementwise.activations import ACTIVATION_PARAMETERS
from ttcodegen.optimizer.call import Candidate, LibraryCall, interleaved
from ttcodegen.optimizer.cost.calls import CostModel
from ttcodegen.optimizer.programs.matmul import (
    MatmulSizes,
    config_takes_shards,
    divisors,
    fills_rectangle,
    largest_divisor,
    rectangle,
    subblock,
    wide_sums,
)
from ttcodegen.systems.cards import performance_of
from ttcodegen.systems.description import ChipDescription

# Matmuls of one tile row with DRAM-sharded weights: each bank is read by its nearest core, at a
# higher fraction of its bandwidth than with interleaved weights.

MAX_DRAM_DEPTH = 8
"""Maximum depth of a block in tiles (in0_block_w)."""
WEIGHTS_SHARE = 0.4
"""Fraction of usable L1 for triple-buffered blocks of weights."""
MIN_WEIGHT_TILES = 64
"""Tiles of weights below which the launch takes longer than reading them."""

Placed = tuple[TensorPlacement, TensorPlacement, TensorPlacement, MatmulDRAMSharded]
"""Placements of both operands and the result, and the program config."""


def dram_sharded(
    call: LibraryCall,
    chip: ChipDescription,
    given: MatmulDRAMSharded | None = None,
    on_rectangle: bool = False,
) -> Placed | None:
    """Returns the DRAM-sharded candidate of a matmul, or None if ttnn has none.

    The rules are measured with tt-metal.

    Args:
        call: the matmul.
        chip: the chip.
        given: program config of the candidate; by default one that fits.
        on_rectangle: whether the shards of the result fill a rectangle of cores without padding.
    """
    sizes = MatmulSizes(call)
    left, right = call.operands[:2]
    is_transposed = call.attributes.get("transpose_a") or call.attributes.get("transpose_b")
    if sizes.rows != 1 or sizes.batch_b != 1 or len(call.operands) > 2 or is_transposed:
        return None
    if left.layout is not Layout.TILE or right.layout is not Layout.TILE:
        return None
    if right.buffer_type != "dram":
        return None
    if given is None and sizes.inner * sizes.width < MIN_WEIGHT_TILES:
        return None
    banks = chip.num_dram_channels
    columns = chip.grid[1]
    each = -(-sizes.width // banks)
    weights = right.sharded(
        "width_sharded",
        Shards((sizes.inner * TILE_SIDE, each * TILE_SIDE), (CoreRange(0, 0, banks - 1, 0),)),
        "dram",
    )
    # The deepest block that fits: blocks of weights are triple buffered.
    room = performance_of(chip).usable_l1 * WEIGHTS_SHARE // (3 * each * tile_bytes(right))
    inner = largest_divisor(sizes.inner, int(min(MAX_DRAM_DEPTH, max(1, room))))
    per_core = -(-sizes.width // chip.cores)
    if on_rectangle:
        grid = CoreGrid(columns, chip.grid[0])
        per_core = next(
            each
            for each in range(per_core, sizes.width + 1)
            if sizes.width % each == 0 and fills_rectangle(sizes.width // each, grid)
        )
    if given is not None:
        if sizes.inner % given.in0_block_w or given.per_core_n < per_core:
            return None
        workers = given.num_workers_per_dram_bank or 1
        if each % workers or (workers > 1 and chip.arch != "blackhole"):
            return None
        inner, per_core = given.in0_block_w, given.per_core_n
    cores = largest_divisor(sizes.inner // inner, chip.cores)
    part = sizes.inner // cores
    taken = left.sharded(
        "width_sharded",
        Shards((TILE_SIDE, part * TILE_SIDE), filled_core_ranges(cores, columns)),
    )
    made = call.result.sharded(
        "width_sharded",
        Shards(
            (TILE_SIDE, per_core * TILE_SIDE),
            filled_core_ranges(-(-sizes.width // per_core), columns),
        ),
    )
    config = given or MatmulDRAMSharded(inner, 1, per_core)
    return taken, weights, made, config


# Program configs with the placements that tt-metal accepts, as measured.

MAX_DEPTH = 8
"""Maximum depth of a block in tiles (in0_block_w): deeper blocks save no time."""

BlockedConfig = MatmulMultiCast | MatmulMultiCast1D
"""Program configs whose cores compute their part of the result in blocks."""


@dataclass(frozen=True)
class _CorePart:
    """Part of a result that each core computes, in tiles, and the form of its blocks."""

    height: int
    """Rows (per_core_M)."""
    width: int
    """Columns (per_core_N)."""
    inner: int
    """Tiles along the contracted dimension that the depth of a block divides."""
    mcast_left: bool | None
    """True if the left operand is multicast to all cores, False if the right one is.

    None for 2D multicast, of the left operand along rows of cores and the right along columns."""
    whole_rows: bool
    """True if subblocks are whole rows of the part, as sharded results require."""

    def config(
        self, grid: CoreGrid, depth: int, height: int, width: int, most: int
    ) -> BlockedConfig:
        """Program config with blocks of these sizes and subblocks of at most `most` tiles."""
        subblocks = subblock(height, width, most, self.whole_rows)
        sizes = (grid, depth, *subblocks, height, width, self.height, self.width)
        if self.mcast_left is None:
            return MatmulMultiCast(*sizes)
        return MatmulMultiCast1D(*sizes, mcast_in0=self.mcast_left)


class MatmulCandidates:
    """Generator of candidates of matmuls on a grid of cores."""

    def __init__(self, model: CostModel, shards: bool, grid: CoreGrid) -> None:
        self.model = model
        self.shards = shards
        """True if tensors may be sharded."""
        self.grid = grid

    def of(self, call: LibraryCall) -> Iterator[Candidate]:
        """Yields the candidates of a matmul, except DRAM-sharded ones."""
        sizes = MatmulSizes(call)
        left, right, *bias = call.operands
        rest = (interleaved(right, right.buffer_type), *bias)
        if left.layout is not Layout.TILE or left.memory is Memory.HOST:
            yield Candidate(call.operands, call.results)
            return
        plain = left if left.shards is None else interleaved(left, "l1")
        in_dram = interleaved(left, "dram"), interleaved(right, "dram"), *bias
        result = interleaved(call.result, "dram")
        takes_no_config = call.attributes.get("transpose_a") or sizes.inner == 0
        if bias and call.attributes.get("transpose_b"):
            # If tt-metal chooses a config without blocks, it transposes the operand first, but
            # checks the bias against the shape before that (matmul.cpp, bound_matmul). For operands
            # in DRAM it chooses a config with blocks.
            yield Candidate(in_dram, (result,))
        else:
            yield Candidate((in_dram[0] if takes_no_config else plain, *rest), (result,))
        if takes_no_config:
            return
        for source in (plain,) if left.shards is None else (plain, left):
            for config, result in self._configured_results(call, sizes, source):
                yield self._with_config(call, (source, *rest), result, config)

    def fastest_seconds(self, call: LibraryCall, candidates: Iterable[Candidate]) -> float:
        """Seconds of the fastest candidate that fits into L1; infinity if none does."""
        least = inf
        for each in candidates:
            cost = self.model.cost(each.applied_to(call))
            if cost.l1_bytes <= self.model.speed.usable_l1:
                least = min(least, cost.seconds)
        return least

    def _configured_results(
        self, call: LibraryCall, sizes: MatmulSizes, left: TensorPlacement
    ) -> Iterator[tuple[MatmulProgramConfig, TensorPlacement]]:
        """Yields program configs, each with its possible results.

        Sharded results restrict the subblocks."""
        for whole_rows in (False, True) if self.shards else (False,):
            for config in self._configs(call, sizes, left, whole_rows):
                for result in self._result_placements(call.result, config, sizes):
                    if (result.shards is not None) == whole_rows:
                        yield config, result

    def _with_config(
        self,
        call: LibraryCall,
        operands: tuple[TensorPlacement, ...],
        result: TensorPlacement,
        config: MatmulProgramConfig,
    ) -> Candidate:
        """Returns the candidate with a program config, into which the activation is fused.

        Sets the compute config explicitly: ttnn's default depends on the program config."""
        attributes: dict[str, Any] = {"matmul_program_config": config}
        activation = call.attributes.get("activation")
        if activation is not None:
            fused = FusedActivation(activation, ACTIVATION_PARAMETERS.get(activation, ()))
            attributes["matmul_program_config"] = replace(config, fused_activation=fused)  # pyright: ignore[reportCallIssue]
            attributes["activation"] = None
        if call.compute_config is None:
            attributes["compute_config"] = matmul_compute(call)
        return Candidate(operands, (result,), attributes)

    def _configs(
        self, call: LibraryCall, sizes: MatmulSizes, left: TensorPlacement, whole_rows: bool
    ) -> Iterator[MatmulProgramConfig]:
        """Yields the fastest program config of each kind; `whole_rows`: for sharded results."""
        grid = self.grid
        rows, width = sizes.rows, sizes.width
        shards = left.shards
        kind = left.memory_layout
        # 2D multicast: each row of cores computes rows of the result, each column columns.
        if kind in ("interleaved", "block_sharded"):
            per_m, per_n = -(-rows // grid.rows), -(-width // grid.columns)
            inner = sizes.inner
            if shards is not None:
                per_m, inner = (size // TILE_SIDE for size in shards.shape)
            if -(-rows // per_m) <= grid.rows and min(rows, width) > 1:
                part = _CorePart(per_m, per_n, inner, None, whole_rows)
                config = self._fastest_blocks(call, sizes, left, part)
                if config is not None:
                    yield config
        if kind in ("interleaved", "width_sharded") and rows <= 32:
            inner = sizes.inner if shards is None else shards.shape[1] // TILE_SIDE
            part = _CorePart(rows, -(-width // grid.cores), inner, True, whole_rows)
            config = self._fastest_blocks(call, sizes, left, part)
            if config is not None:
                yield config
                if whole_rows:
                    yield from self._on_rectangle(config, width, left)
        if kind in ("interleaved", "height_sharded") and width <= 64:
            per_m = -(-rows // grid.cores) if shards is None else shards.shape[0] // TILE_SIDE
            part = _CorePart(per_m, width, sizes.inner, False, whole_rows)
            config = self._fastest_blocks(call, sizes, left, part)
            if config is not None:
                yield config

    def _on_rectangle(
        self, config: MatmulProgramConfig, width: int, left: TensorPlacement
    ) -> Iterator[MatmulProgramConfig]:
        """Yields a config whose cores fill a rectangle, unless those of `config` already do.

        Normalizations only support shards on a rectangle."""
        assert isinstance(config, MatmulMultiCast1D)
        grid = self.grid
        if fills_rectangle(-(-width // config.per_core_n), grid):
            return
        taken = CoreRange(0, 0, 0, 0) if left.shards is None else left.shards.bounding_box()
        for per_n in range(config.per_core_n, width + 1):
            blocks = -(-width // per_n)
            box = rectangle(blocks, grid) if width % per_n == 0 else None
            if box is None:
                continue
            # The grid of the program has to include the cores of the left operand's shards.
            if taken.last_column >= box.columns or taken.last_row >= box.rows:
                continue
            sub_h, sub_w = subblock(
                config.out_block_h,
                per_n,
                config.out_subblock_h * config.out_subblock_w,
                whole_rows=True,
            )
            yield replace(
                config,
                compute_with_storage_grid_size=box,
                out_subblock_h=sub_h,
                out_subblock_w=sub_w,
                out_block_w=per_n,
                per_core_n=per_n,
            )
            return

    def _fastest_blocks(
        self, call: LibraryCall, sizes: MatmulSizes, left: TensorPlacement, part: _CorePart
    ) -> BlockedConfig | None:
        """Returns the fastest program config whose circular buffers fit into L1.

        A block is the whole part if that fits. Otherwise, blocks of fewer rows reread the right
        operand, blocks of fewer columns the left one."""
        found: list[tuple[float, BlockedConfig]] = []
        whole = part.whole_rows or left.shards is not None
        for count in (1,) if whole else divisors(part.width):
            fitting = self._highest_blocks(call, sizes, left, part, part.width // count)
            if fitting is not None:
                found.append(fitting)
            if count == 1:
                if fitting is not None and fitting[1].out_block_h == part.height:
                    break
            elif found and (fitting is None or fitting[0] > found[0][0]):
                break
        return min(found, key=lambda each: each[0])[1] if found else None

    def _highest_blocks(
        self,
        call: LibraryCall,
        sizes: MatmulSizes,
        left: TensorPlacement,
        part: _CorePart,
        width: int,
    ) -> tuple[float, BlockedConfig] | None:
        """Returns seconds and config of the highest blocks of this width that fit into L1."""
        room = self.model.speed.usable_l1 * 6 // 10
        most = 4 if wide_sums(call) else 8
        for count in divisors(part.height):
            for depth in reversed(divisors(part.inner)):
                if sizes.inner % depth or depth > 4 * MAX_DEPTH:
                    continue
                if depth > MAX_DEPTH and depth != part.inner:
                    continue
                config = part.config(self.grid, depth, part.height // count, width, most)
                cost = self.model.cost(
                    LibraryCall(
                        call.name,
                        (left, *call.operands[1:]),
                        (interleaved(call.result, "dram"),),
                        {**call.attributes, "matmul_program_config": config},
                    )
                )
                if cost.circular_buffers <= room:
                    return cost.seconds, config
            if left.shards is not None:
                return None
        return None

    def _result_placements(
        self, result: TensorPlacement, config: MatmulProgramConfig, sizes: MatmulSizes
    ) -> Iterator[TensorPlacement]:
        """Yields the placements that a result can have with a program config."""
        yield interleaved(result, "dram")
        yield interleaved(result, "l1")
        if not self.shards or not isinstance(config, BlockedConfig):
            return
        if config.out_block_h != config.per_core_m:
            return
        if result.layout is Layout.TILE and result.collapsed_shape() != (
            sizes.rows,
            sizes.width,
        ):
            return  # ttnn squeezes the result of a matrix-vector matmul, but not a sharded one.
        per_m, per_n = config.per_core_m, config.per_core_n
        shape = (per_m * TILE_SIDE, per_n * TILE_SIDE)
        down, across = -(-sizes.rows // per_m), -(-sizes.width // per_n)
        if isinstance(config, MatmulMultiCast):
            cores = (CoreRange(0, 0, across - 1, down - 1),)
            yield result.sharded("block_sharded", Shards(shape, cores))
            return
        columns = config.compute_with_storage_grid_size.columns
        if config.mcast_in0:
            ranges = filled_core_ranges(across, columns)
            yield result.sharded("width_sharded", Shards(shape, ranges))
        else:
            ranges = filled_core_ranges(down, columns)
            yield result.sharded("height_sharded", Shards(shape, ranges))

    def configured(self, call: LibraryCall, config: MatmulProgramConfig) -> Iterator[Candidate]:
        """Yields the candidates of a matmul with a given program config, which fits it."""
        if isinstance(config, MatmulDRAMSharded):
            yield from self._dram_sharded(call, config)
            return
        sizes = MatmulSizes(call)
        left, right, *bias = call.operands
        rest = (interleaved(right, right.buffer_type), *bias)
        sources = [left if left.shards is None else interleaved(left, "l1")]
        if left.shards is not None and config_takes_shards(config, left):
            sources.append(left)
        for source in sources:
            for result in self._result_placements(call.result, config, sizes):
                yield self._with_config(call, (source, *rest), result, config)

    def from_banks(self, call: LibraryCall) -> Iterator[Candidate]:
        """Yields the DRAM-sharded candidates; constant weights are resharded only once."""
        if self.shards:
            yield from self._dram_sharded(call, None)

    def _dram_sharded(
        self, call: LibraryCall, given: MatmulDRAMSharded | None
    ) -> Iterator[Candidate]:
        found = dram_sharded(call, self.model.chip, given)
        if found is None:
            return
        candidates = [found]
        result = found[2]
        if given is None and result.shards is not None and not result.shards.is_rectangle:
            # Normalizations only support shards on a rectangle.
            other = dram_sharded(call, self.model.chip, on_rectangle=True)
            candidates += [other] if other is not None else []
        for left, right, result, config in candidates:
            yield self._with_config(call, (left, right), result, config)


def matmul_compute(call: LibraryCall) -> ComputeConfig:
    """Returns the compute config of a matmul with a program config.

    It is the library's default, with partial sums accumulated in L1.
    """
    narrow = all(p.data_type.mlir in ("bfp_bf8", "bfp_bf4") for p in call.operands[:2])
    fidelity = MathFidelity.LOFI if narrow else MathFidelity.HIFI2
    return ComputeConfig(fidelity, math_approx_mode=False, packer_l1_acc=True)
