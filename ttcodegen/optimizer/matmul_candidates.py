"""Candidates of a matmul, DRAM-sharded weights included."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
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
from ttcodegen.optimizer.call import LibraryCall, Way, interleaved
from ttcodegen.optimizer.cost.calls import CostModel
from ttcodegen.optimizer.programs.matmul import (
    Product,
    config_takes_shards,
    divisors,
    fills_rectangle,
    largest_divisor,
    rectangle,
    subblock,
    wide_sums,
)
from ttcodegen.systems.description import ChipDescription
from ttcodegen.systems.performance import performance_of

# Products of one row of tiles with weights that are sharded over the banks of the DRAM.
#
# Each bank is read by the core beside it, at more of its bandwidth than interleaved weights are.

MOST_DRAM_INNER = 8
"""Tiles along the summed dimension that are taken at a time."""
ROOM = 0.4
"""The part of L1 that the blocks of weights may take."""
LEAST_WEIGHTS = 64
"""Tiles of weights below which a program is launching more than reading."""

Placed = tuple[TensorPlacement, TensorPlacement, TensorPlacement, MatmulDRAMSharded]
"""Both factors, the result and the configuration."""


def dram_sharded(
    call: LibraryCall,
    chip: ChipDescription,
    given: MatmulDRAMSharded | None = None,
    on_rectangle: bool = False,
) -> Placed | None:
    """Returns the DRAM-sharded candidate of a matmul, or None if the library has none.

    Weights are read from all banks at once, with the given config or one that fits (rules measured
    with tt-metal).

    `on_rectangle`: the result fills its cores, and these a rectangle.
    """
    product = Product(call)
    left, right = call.operands[:2]
    turned = call.attributes.get("transpose_a") or call.attributes.get("transpose_b")
    if product.rows != 1 or product.batch_b != 1 or len(call.operands) > 2 or turned:
        return None
    if left.layout is not Layout.TILE or right.layout is not Layout.TILE:
        return None
    if right.buffer_type != "dram":
        return None
    if given is None and product.inner * product.width < LEAST_WEIGHTS:
        return None
    banks = chip.num_dram_channels
    columns = chip.grid[1]
    each = -(-product.width // banks)
    weights = right.sharded(
        "width_sharded",
        Shards((product.inner * TILE_SIDE, each * TILE_SIDE), (CoreRange(0, 0, banks - 1, 0),)),
        "dram",
    )
    # Few large blocks: three of them are in L1 at a time.
    room = performance_of(chip).usable_l1 * ROOM // (3 * each * tile_bytes(right))
    inner = largest_divisor(product.inner, int(min(MOST_DRAM_INNER, max(1, room))))
    per_core = -(-product.width // chip.cores)
    if on_rectangle:
        grid = CoreGrid(columns, chip.grid[0])
        per_core = next(
            each
            for each in range(per_core, product.width + 1)
            if product.width % each == 0 and fills_rectangle(product.width // each, grid)
        )
    if given is not None:
        if product.inner % given.in0_block_w or given.per_core_n < per_core:
            return None
        inner, per_core = given.in0_block_w, given.per_core_n
    cores = largest_divisor(product.inner // inner, chip.cores)
    part = product.inner // cores
    taken = left.sharded(
        "width_sharded",
        Shards((TILE_SIDE, part * TILE_SIDE), filled_core_ranges(cores, columns)),
    )
    made = call.result.sharded(
        "width_sharded",
        Shards(
            (TILE_SIDE, per_core * TILE_SIDE),
            filled_core_ranges(-(-product.width // per_core), columns),
        ),
    )
    config = given or MatmulDRAMSharded(inner, 1, per_core)
    return taken, weights, made, config


# The ways to make a product of matrices: its program configurations, and where its operands and
# its result are placed with each.
#
# Each way is one that tt-metal was measured to accept.

MOST_INNER = 8
"""Tiles along the summed dimension that a block has at most: more do not save time."""
APPROXIMATE = {"gelu": (0.0,)}
"""Parameters of activations: the exact form of those that have an approximate one."""


class ProductWays:
    """Enumerates them for products that are distributed over some cores."""

    def __init__(self, model: CostModel, shards: bool, grid: CoreGrid) -> None:
        self.model = model
        self.shards = shards
        """True if tensors may be sharded."""
        self.grid = grid

    def of(self, call: LibraryCall) -> Iterator[Way]:
        product = Product(call)
        left, right, *bias = call.operands
        rest = (interleaved(right, right.buffer_type), *bias)
        if left.layout is not Layout.TILE or left.memory is Memory.HOST:
            yield Way(call.operands, call.results)
            return
        plain = left if left.shards is None else interleaved(left, "l1")
        in_dram = interleaved(left, "dram"), interleaved(right, "dram"), *bias
        result = interleaved(call.result, "dram")
        takes_no_config = call.attributes.get("transpose_a") or product.inner == 0
        if bias and call.attributes.get("transpose_b"):
            # A program without blocks gets the transposed operand, and tt-metal then checks
            # the bias against the shape of the other one (matmul.cpp, bound_matmul); in DRAM the
            # program that it chooses has blocks.
            yield Way(in_dram, (result,))
        else:
            yield Way((in_dram[0] if takes_no_config else plain, *rest), (result,))
        if takes_no_config:
            return
        for source in (plain,) if left.shards is None else (plain, left):
            for config, result in self._configured_results(call, product, source):
                yield self._given_way(call, (source, *rest), result, config)

    def _configured_results(
        self, call: LibraryCall, product: Product, left: TensorPlacement
    ) -> Iterator[tuple[MatmulProgramConfig, TensorPlacement]]:
        """Configurations with the results that they can have: one with shards wants narrower
        blocks of registers than others."""
        for whole_rows in (False, True) if self.shards else (False,):
            for config in self._configs(call, product, left, whole_rows):
                for result in self._product_results(call.result, config, product):
                    if (result.shards is not None) == whole_rows:
                        yield config, result

    def _given_way(
        self,
        call: LibraryCall,
        operands: tuple[TensorPlacement, ...],
        result: TensorPlacement,
        config: MatmulProgramConfig,
    ) -> Way:
        """A way with a program configuration, which the activation belongs into, and with the
        fidelity that the library would not choose by itself then."""
        attributes: dict[str, Any] = {"matmul_program_config": config}
        activation = call.attributes.get("activation")
        if activation is not None:
            fused = FusedActivation(activation, APPROXIMATE.get(activation, ()))
            attributes["matmul_program_config"] = replace(config, fused_activation=fused)  # pyright: ignore[reportCallIssue]
            attributes["activation"] = None
        if call.compute_config is None:
            attributes["compute_config"] = product_compute(call)
        return Way(operands, (result,), attributes)

    def _configs(
        self, call: LibraryCall, product: Product, left: TensorPlacement, whole_rows: bool
    ) -> Iterator[MatmulProgramConfig]:
        """The best configuration of each kind; `whole_rows`: for results in shards."""
        grid = self.grid
        rows, width = product.rows, product.width
        shards = left.shards
        kind = left.memory_layout
        blocks = partial(self._blocks, call, product, left, whole_rows)
        # Two-dimensional: rows of cores share rows, columns of cores columns.
        if kind in ("interleaved", "block_sharded"):
            per_m, per_n = -(-rows // grid.rows), -(-width // grid.columns)
            inner = product.inner
            if shards is not None:
                per_m, inner = (size // TILE_SIDE for size in shards.shape)
            if -(-rows // per_m) <= grid.rows and min(rows, width) > 1:
                config = blocks(per_m, per_n, inner, None)
                if config is not None:
                    yield config
        if kind in ("interleaved", "width_sharded") and rows <= 32:
            inner = product.inner if shards is None else shards.shape[1] // TILE_SIDE
            per_n = -(-width // grid.cores)
            config = blocks(rows, per_n, inner, True)
            if config is not None:
                yield config
            if whole_rows and config is not None:
                yield from self._on_rectangle(config, width, left)
        if kind in ("interleaved", "height_sharded") and width <= 64:
            per_m = -(-rows // grid.cores) if shards is None else shards.shape[0] // TILE_SIDE
            config = blocks(per_m, width, product.inner, False)
            if config is not None:
                yield config

    def _on_rectangle(
        self, config: MatmulProgramConfig, width: int, left: TensorPlacement
    ) -> Iterator[MatmulProgramConfig]:
        """The same on as many cores as a rectangle has, where it would leave a row of cores half
        used: normalisations take no other shards."""
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
            # The program's grid has the shards of the left factor too.
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

    def _blocks(
        self,
        call: LibraryCall,
        product: Product,
        left: TensorPlacement,
        whole_rows: bool,
        per_m: int,
        per_n: int,
        inner: int,
        shares_left: bool | None,
    ) -> MatmulProgramConfig | None:
        """A configuration with the largest blocks that fit into L1 beside the tensors."""
        room = self.model.speed.usable_l1 * 6 // 10
        most = 4 if wide_sums(call) else 8
        for split in divisors(per_m):
            high = per_m // split
            for k in reversed(divisors(inner)):
                if product.inner % k or (k > MOST_INNER and k != inner) or k > 4 * MOST_INNER:
                    continue
                sub_h, sub_w = subblock(high, per_n, most, whole_rows)
                config = self._config(product, k, sub_h, sub_w, high, per_m, per_n, shares_left)
                needed = self.model.cost(
                    LibraryCall(
                        call.name,
                        (left, *call.operands[1:]),
                        (interleaved(call.result, "dram"),),
                        {**call.attributes, "matmul_program_config": config},
                    )
                ).circular_buffers
                if needed <= room:
                    return config
            if left.shards is not None:
                return None
        return None

    def _config(
        self,
        product: Product,
        k: int,
        sub_h: int,
        sub_w: int,
        high: int,
        per_m: int,
        per_n: int,
        shares_left: bool | None,
    ) -> MatmulProgramConfig:
        grid = self.grid
        sizes = (grid, k, sub_h, sub_w, high, per_n, per_m, per_n)
        if shares_left is None:
            return MatmulMultiCast(*sizes)
        return MatmulMultiCast1D(*sizes, mcast_in0=shares_left)

    def _product_results(
        self, result: TensorPlacement, config: MatmulProgramConfig, product: Product
    ) -> Iterator[TensorPlacement]:
        yield interleaved(result, "dram")
        yield interleaved(result, "l1")
        if not self.shards or getattr(config, "out_block_h", 0) != getattr(config, "per_core_m", 0):
            return
        if result.layout is Layout.TILE and result.collapsed_shape() != (
            product.rows,
            product.width,
        ):
            return  # The library drops the column of a product with a vector, and cannot of shards.
        per_m, per_n = getattr(config, "per_core_m", 1), getattr(config, "per_core_n", 1)
        shape = (per_m * TILE_SIDE, per_n * TILE_SIDE)
        down, across = -(-product.rows // per_m), -(-product.width // per_n)
        if isinstance(config, MatmulMultiCast):
            cores = (CoreRange(0, 0, across - 1, down - 1),)
            yield result.sharded("block_sharded", Shards(shape, cores))
            return
        columns = getattr(config, "compute_with_storage_grid_size", self.grid).columns
        if getattr(config, "mcast_in0", False):
            ranges = filled_core_ranges(across, columns)
            yield result.sharded("width_sharded", Shards(shape, ranges))
        else:
            ranges = filled_core_ranges(down, columns)
            yield result.sharded("height_sharded", Shards(shape, ranges))

    def configured(self, call: LibraryCall, config: MatmulProgramConfig) -> Iterator[Way]:
        """The ways to make a product with a configuration that it can have."""
        if isinstance(config, MatmulDRAMSharded):
            yield from self._banked(call, config)
            return
        product = Product(call)
        left, right, *bias = call.operands
        rest = (interleaved(right, right.buffer_type), *bias)
        sources = [left if left.shards is None else interleaved(left, "l1")]
        if left.shards is not None and config_takes_shards(config, left):
            sources.append(left)
        for source in sources:
            for result in self._product_results(call.result, config, product):
                yield self._given_way(call, (source, *rest), result, config)

    def from_banks(self, call: LibraryCall) -> Iterator[Way]:
        """The ways to make a product whose weights are the same in each run, and are brought to the
        banks of the DRAM once."""
        if self.shards:
            yield from self._banked(call, None)

    def _banked(self, call: LibraryCall, given: MatmulDRAMSharded | None) -> Iterator[Way]:
        found = dram_sharded(call, self.model.chip, given)
        if found is None:
            return
        ways = [found]
        result = found[2]
        if given is None and result.shards is not None and not result.shards.is_rectangle:
            # Normalisations take the shards of a rectangle alone.
            other = dram_sharded(call, self.model.chip, on_rectangle=True)
            ways += [other] if other is not None else []
        for left, right, result, config in ways:
            yield self._given_way(call, (left, right), result, config)


def product_compute(call: LibraryCall) -> ComputeConfig:
    """Compute config of a matmul with a program config.

    It is the library's default, with partial sums accumulated in L1.
    """
    narrow = all(p.data_type.mlir in ("bfp_bf8", "bfp_bf4") for p in call.operands[:2])
    fidelity = MathFidelity.LOFI if narrow else MathFidelity.HIFI2
    return ComputeConfig(fidelity, math_approx_mode=False, packer_l1_acc=True)
