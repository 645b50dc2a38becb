"""The ways to make a call: where its operands may lie, where its result, and its configuration.

Each way is one that tt-metal 0.70.1 was measured to accept.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ttcodegen.dialects.compute_config import ComputeConfig
from ttcodegen.dialects.cores import CoreRange
from ttcodegen.dialects.math_fidelity import MathFidelity
from ttcodegen.dialects.memory import Layout, Memory
from ttcodegen.dialects.placement import TensorPlacement
from ttcodegen.dialects.program_configs import (
    CoreGrid,
    FusedActivation,
    LayerNormSharded,
    MatmulDRAMSharded,
    MatmulMultiCast,
    MatmulMultiCast1D,
    MatmulProgramConfig,
    ProgramConfig,
)
from ttcodegen.dialects.shards import MemoryLayout, Shards, filled_core_ranges
from ttcodegen.dialects.tile import TILE_SIDE
from ttcodegen.ops.definition import call_has_trait
from ttcodegen.ops.traits import Trait
from ttcodegen.optimizer.attention_programs import cheapest_program
from ttcodegen.optimizer.calls import LibraryCall
from ttcodegen.optimizer.convolutions import result_of, sharded_images
from ttcodegen.optimizer.cost import CostModel, is_view
from ttcodegen.optimizer.decode_attention import DECODING, DecodeAttention
from ttcodegen.optimizer.dense_rows import elementwise
from ttcodegen.optimizer.dram_products import dram_sharded
from ttcodegen.optimizer.products import (
    Product,
    config_misfit,
    config_takes_shards,
    divisors,
    subblock,
    wide_sums,
)

MOST_INNER = 8
"""Tiles along the summed dimension that a block has at most: more do not save time."""
MOVED = frozenset({"permute", "slice_static", "concat", "reshape", "composite_to_layout"})
"""Calls that move interleaved tensors and take the target."""
ATTENTION = frozenset({"scaled_dot_product_attention"})
ROOM_OF_ATTENTION = 0.75
"""The part of L1 that its circular buffers may take."""
NORMS = frozenset({"rms_norm", "layer_norm"})
MOST_NORM_SUBBLOCK = 4
"""Tiles of 32 bits that the registers hold, in which normalisations sum up by default."""
APPROXIMATE = {"gelu": (0.0,)}
"""Parameters of activations: the exact form of those that have an approximate one."""


@dataclass(frozen=True)
class Way:
    """One way to make a call."""

    operands: tuple[TensorPlacement, ...]
    results: tuple[TensorPlacement, ...]
    attributes: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """What changes of the call's attributes."""


_RULES = {
    "product": "the result of a product is interleaved, or has the blocks that its program "
    "computes, per_core_m by per_core_n tiles on each core, as shards",
    "elementwise": "what is computed element by element is interleaved, or has the shards of an "
    "operand of its shape",
    "rows": "what is computed along rows is interleaved, or has the shards of its operand, "
    "normalisations those by width or blocks that its tiles fill",
    "view": "the call makes nothing: its result lies where its operand does",
    "moved": "the library makes it of interleaved tensors, interleaved",
    "attention": "the library takes queries, keys and values that are interleaved",
    "decoding": "the library takes queries in DRAM, or those of each user on a core of its own, "
    "and caches in DRAM; its result lies in DRAM, or as the queries if keys have one head",
    "heads": "the library takes rows that are interleaved, or sharded by width on a rectangle of "
    "cores from the first one on; the heads of each user lie on a core of their own",
    "convolution": "the result of a convolution lies in DRAM, or has shards by height or blocks on "
    "the cores of those of its image, in tiles of the same data type",
    "plain": "the library decides where its result lies",
}
"""By kind of call, what its result may be."""


def interleaved(placement: TensorPlacement, buffer: str) -> TensorPlacement:
    """The same tensor, dealt out to all banks."""
    return placement.with_(buffer_type=buffer, memory_layout="interleaved", shards=None)


def sharded_as(
    placement: TensorPlacement,
    kind: MemoryLayout,
    cores: CoreGrid,
    grid: Sequence[int] | None = None,
    shape: Sequence[int] | None = None,
) -> TensorPlacement | None:
    """The same tensor in shards of L1, over as many cores as it fills or over a grid of columns and
    rows; None if it cannot be divided so."""
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


def _in_place_of(source: TensorPlacement, result: TensorPlacement) -> TensorPlacement:
    """A result that lies where an operand does."""
    return result.with_(
        buffer_type=source.buffer_type, memory_layout=source.memory_layout, shards=source.shards
    )


def is_interleaved(placement: TensorPlacement) -> bool:
    """Whether a tensor is on the device, dealt out to all banks."""
    return placement.memory is Memory.DEVICE and placement.shards is None


class Ways:
    """Enumerates the ways for one chip."""

    def __init__(
        self,
        model: CostModel,
        shards: bool,
        placed: frozenset[str],
        grid: CoreGrid | None = None,
    ) -> None:
        self.model = model
        self.grid = grid or model.grid
        """The cores that products are distributed over."""
        self.shards = shards
        """Whether tensors may be sharded."""
        self.placed = placed
        """The calls that take the memory configuration of their result."""

    def of(self, call: LibraryCall, fixed: Sequence[bool]) -> Iterator[Way]:
        """The ways to make a call whose operands lie where `call` says; fixed ones stay there."""
        match self._kind(call):
            case "product":
                yield from self._products(call)
            case "elementwise":
                yield from self._elementwise(call)
            case "rows":
                yield from self._rows(call)
            case "view":
                yield from self._views(call)
            case "moved":
                yield from self._moved(call)
            case "attention":
                yield from self._attended(call)
            case "decoding":
                yield from self._decoded(call, fixed)
            case "heads":
                yield from self._split(call, fixed)
            case "convolution":
                yield from self._convolved(call, fixed)
            case _:
                yield from self._plain(call, fixed)

    def on(self, grid: CoreGrid) -> Ways:
        """The ways of products that are distributed over these cores."""
        return Ways(self.model, self.shards, self.placed, grid)

    def rule(self, call: LibraryCall) -> str:
        """Why there are no other ways to make a call."""
        return _RULES[self._kind(call)]

    def configured(self, call: LibraryCall, config: MatmulProgramConfig) -> Iterator[Way]:
        """The ways to make a product with this configuration; none if it cannot have it."""
        if self._kind(call) != "product" or self.misfit(call, config) is not None:
            return
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
        if not self.shards or self._kind(call) != "product":
            return
        yield from self._banked(call, None)

    def _banked(self, call: LibraryCall, given: MatmulDRAMSharded | None) -> Iterator[Way]:
        found = dram_sharded(call, self.model.chip, given)
        if found is not None:
            left, right, result, config = found
            yield self._given_way(call, (left, right), result, config)

    def misfit(self, call: LibraryCall, config: ProgramConfig) -> str | None:
        """Why a product cannot have a configuration; None if it can, or is no product."""
        if self._kind(call) != "product" or not isinstance(config, MatmulProgramConfig):
            return None
        return config_misfit(config, Product(call), self.model.grid, wide_sums(call))

    def _kind(self, call: LibraryCall) -> str:
        name = call.name
        if not call.results or call.result.memory is Memory.HOST or call.is_on_host:
            return "plain"
        if call_has_trait(name, Trait.MATRIX_PRODUCT) and Product(call).batch_b == 1:
            return "product"
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

    def _plain(self, call: LibraryCall, fixed: Sequence[bool]) -> Iterator[Way]:
        """Everything in DRAM, as without an optimizer, but for what has to be sharded."""
        demanded = call.demanded or (None,) * len(call.operands)
        yield Way(
            tuple(
                demand or (p if stays or p.memory is Memory.HOST else interleaved(p, "dram"))
                for p, stays, demand in zip(call.operands, fixed, demanded, strict=True)
            ),
            call.results,
        )

    def _convolved(self, call: LibraryCall, fixed: Sequence[bool]) -> Iterator[Way]:
        """In DRAM, or in shards that stay on their cores."""
        yield from self._plain(call, fixed)
        if not self.shards or fixed[0]:
            return
        for image in sharded_images(call, self.grid):
            result = result_of(call, image, self.grid)
            if result is not None:
                yield Way((image, *call.operands[1:]), (result,))

    def _buffers(self, call: LibraryCall) -> tuple[str, ...]:
        return ("dram", "l1") if call.name in self.placed else ("dram",)

    def _unsharded(self, call: LibraryCall) -> tuple[TensorPlacement, ...]:
        """The operands as they are, sharded ones in L1 without shards."""
        return tuple(
            p if p.memory is Memory.HOST or p.shards is None else interleaved(p, "l1")
            for p in call.operands
        )

    def _moved(self, call: LibraryCall) -> Iterator[Way]:
        # What crosses tiles is made of rows of the whole operand, where the result is to lie.
        buffers = self._buffers(call) if _along_tiles(call) else ("dram",)
        for buffer in buffers:
            yield Way(self._unsharded(call), (interleaved(call.result, buffer),))
        if call.name == "composite_to_layout" and call.result.shards is not None:
            # A call that follows demands these shards.
            yield Way(self._unsharded(call), (call.result,))
        if call.name == "reshape" and call.operands[0].shards is not None:
            kept = _in_place_of(call.operands[0], call.result)
            if is_view(replace(call, results=(kept,))):
                yield Way(call.operands, (kept,))

    def _attended(self, call: LibraryCall) -> Iterator[Way]:
        """Interleaved, with the chunks that take the least time."""
        operands = self._unsharded(call)
        attributes = self._chunked(replace(call, operands=operands))
        for buffer in self._buffers(call):
            yield Way(operands, (interleaved(call.result, buffer),), attributes)
        if attributes:
            # Smaller chunks leave room for what else lies in L1.
            yield Way(operands, (interleaved(call.result, "dram"),))

    def _chunked(self, call: LibraryCall) -> dict[str, Any]:
        """What says how attention is divided, if something is better than the library's choice."""
        if call.program_config is not None:
            return {}
        room = int(self.model.speed.usable_l1 * ROOM_OF_ATTENTION)
        program = cheapest_program(call, self.model, room)
        return {} if program is None else {"program_config": program}

    def _split(self, call: LibraryCall, fixed: Sequence[bool]) -> Iterator[Way]:
        """Heads out of rows in DRAM, in L1, or in the shards of a product."""
        yield from self._plain(call, fixed)
        (source,) = call.operands
        if source.buffer_type == "l1" and source.shards is None:
            yield Way(call.operands, call.results)
        if source.memory_layout == "width_sharded" and source.shards is not None:
            (first, *more) = source.shards.core_ranges
            if not more and (first.first_column, first.first_row) == (0, 0):
                yield Way(call.operands, call.results)

    def _decoded(self, call: LibraryCall, fixed: Sequence[bool]) -> Iterator[Way]:
        """With the queries of each user on a core of its own, if they lie so, or in DRAM."""
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
            attributes = self._chunked(replace(call, operands=operands))
            for result in results:
                yield Way(operands, (result,), attributes)

    def _views(self, call: LibraryCall) -> Iterator[Way]:
        """The result lies where its operand does."""
        source = call.operands[0]
        if source.shards is not None and source.collapsed_shape() != call.result.collapsed_shape():
            source = interleaved(source, "l1")
        yield Way((source,), (_in_place_of(source, call.result),))

    def _elementwise(self, call: LibraryCall) -> Iterator[Way]:
        if call.name not in self.placed:
            first = call.operands[0] if is_interleaved(call.operands[0]) else None
            buffer = "dram" if first is None or len(call.operands) > 1 else first.buffer_type
            taken = tuple(
                p if p.memory is Memory.HOST else interleaved(p, buffer) for p in call.operands
            )
            yield Way(taken, (interleaved(call.result, buffer),))
            return
        typecast = call.name == "typecast"
        operands = self._unsharded(call) if typecast else call.operands
        for buffer in self._buffers(call):
            yield Way(operands, (interleaved(call.result, buffer),))
        seen: set[object] = set()
        for operand in call.operands:
            key = (operand.memory_layout, operand.shards)
            if operand.shards is None or key in seen or operand.shape != call.result.shape:
                continue
            seen.add(key)
            kept = call.result.sharded(operand.memory_layout or "", operand.shards)
            yield Way(call.operands, (kept,))

    def _rows(self, call: LibraryCall) -> Iterator[Way]:
        source = call.operands[0]
        vectors = call.operands[1:]
        for buffer in self._buffers(call):
            yield Way(self._unsharded(call), (interleaved(call.result, buffer),))
        if source.shards is None:
            return
        if call.name == "softmax":
            # Its program reads and writes pages wherever they lie.
            yield Way(
                call.operands, (call.result.sharded(source.memory_layout or "", source.shards),)
            )
            return
        config = _norm_config(source)
        if config is not None:
            kept = call.result.sharded(source.memory_layout or "", source.shards)
            yield Way((source, *vectors), (kept,), {"program_config": config})

    # Products

    def _products(self, call: LibraryCall) -> Iterator[Way]:
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
            # A program without blocks gets the transposed operand, and tt-metal 0.70.1 then checks
            # the bias against the shape of the other one (matmul.cpp, bound_matmul); in DRAM the
            # program that it chooses has blocks.
            yield Way(in_dram, (result,))
        else:
            yield Way((in_dram[0] if takes_no_config else plain, *rest), (result,))
        if takes_no_config:
            return
        for config in self._configs(call, product, plain):
            for result in self._product_results(call.result, config, product):
                yield self._given_way(call, (plain, *rest), result, config)
        if left.shards is not None:
            for config in self._configs(call, product, left):
                for result in self._product_results(call.result, config, product):
                    yield self._given_way(call, (left, *rest), result, config)

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
        self, call: LibraryCall, product: Product, left: TensorPlacement
    ) -> Iterator[MatmulProgramConfig]:
        grid = self.grid
        rows, width = product.rows, product.width
        shards = left.shards
        kind = left.memory_layout
        # Two-dimensional: rows of cores share rows, columns of cores columns.
        if kind in ("interleaved", "block_sharded"):
            per_m, per_n = -(-rows // grid.rows), -(-width // grid.columns)
            inner = product.inner
            if shards is not None:
                per_m, inner = (size // TILE_SIDE for size in shards.shape)
            if -(-rows // per_m) <= grid.rows and min(rows, width) > 1:
                config = self._blocks(call, product, left, per_m, per_n, inner, None)
                if config is not None:
                    yield config
        if kind in ("interleaved", "width_sharded") and rows <= 32:
            inner = product.inner if shards is None else shards.shape[1] // TILE_SIDE
            config = self._blocks(call, product, left, rows, -(-width // grid.cores), inner, True)
            if config is not None:
                yield config
        if kind in ("interleaved", "height_sharded") and width <= 64:
            per_m = -(-rows // grid.cores) if shards is None else shards.shape[0] // TILE_SIDE
            config = self._blocks(call, product, left, per_m, width, product.inner, False)
            if config is not None:
                yield config

    def _blocks(
        self,
        call: LibraryCall,
        product: Product,
        left: TensorPlacement,
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
                sub_h, sub_w = subblock(high, per_n, most, self.shards)
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
        per_m, per_n = getattr(config, "per_core_m", 1), getattr(config, "per_core_n", 1)
        shape = (per_m * TILE_SIDE, per_n * TILE_SIDE)
        down, across = -(-product.rows // per_m), -(-product.width // per_n)
        if isinstance(config, MatmulMultiCast):
            cores = (CoreRange(0, 0, across - 1, down - 1),)
            yield result.sharded("block_sharded", Shards(shape, cores))
        elif getattr(config, "mcast_in0", False):
            ranges = filled_core_ranges(across, self.grid.columns)
            yield result.sharded("width_sharded", Shards(shape, ranges))
        else:
            ranges = filled_core_ranges(down, self.grid.columns)
            yield result.sharded("height_sharded", Shards(shape, ranges))


def product_compute(call: LibraryCall) -> ComputeConfig:
    """How a product with a program configuration computes: as the library lets it otherwise, with
    partial sums added up in L1."""
    narrow = all(p.data_type.mlir in ("bfp_bf8", "bfp_bf4") for p in call.operands[:2])
    fidelity = MathFidelity.LOFI if narrow else MathFidelity.HIFI2
    return ComputeConfig(fidelity, math_approx_mode=False, packer_l1_acc=True)


def _in_tiles(call: LibraryCall) -> bool:
    return all(
        p.layout is Layout.TILE and p.memory is Memory.DEVICE
        for p in (*call.operands, *call.results)
    )


def _along_tiles(call: LibraryCall) -> bool:
    """Whether a slice takes whole tiles; true of other calls."""
    if call.name != "slice_static":
        return True
    begins, ends, steps = (call.attributes[name] for name in ("begins", "ends", "step"))
    shape = call.operands[0].shape
    return all(step == 1 for step in steps) and all(
        begin % TILE_SIDE == 0 and (end % TILE_SIDE == 0 or end == size)
        for begin, end, size in zip(begins[-2:], ends[-2:], shape[-2:], strict=True)
    )


def norm_misfit(source: TensorPlacement, config: LayerNormSharded) -> str | None:
    """Why a normalisation of rows that lie so cannot have a configuration; None if it can
    (measured, tt-metal 0.70.1)."""
    fitting = _norm_config(source)
    if fitting is None or source.shards is None:
        return "its operand has no shards by width or blocks that its tiles fill"
    if (config.block_h, config.block_w) != (fitting.block_h, fitting.block_w):
        blocks = f"{fitting.block_h}x{fitting.block_w}"
        return f"blocks of {config.block_h}x{config.block_w} tiles are not its shards of {blocks}"
    box, grid = source.shards.bounding_box(), config.compute_with_storage_grid_size
    if grid.columns < box.columns or grid.rows < box.rows:
        return f"its shards lie on {box.columns}x{box.rows} cores"
    if config.subblock_w > MOST_NORM_SUBBLOCK:
        return f"a subblock has {MOST_NORM_SUBBLOCK} tiles at most"
    return None


def _norm_config(source: TensorPlacement) -> LayerNormSharded | None:
    """The configuration of a normalisation whose rows lie in parts on several cores; None if the
    library takes no such shards."""
    shards = source.shards
    if shards is None or source.memory_layout == "height_sharded":
        return None
    height, width = source.collapsed_shape()
    block_h, block_w = (size // TILE_SIDE for size in shards.shape)
    box = shards.bounding_box()
    across = shards.cores if source.memory_layout == "width_sharded" else box.columns
    down = 1 if source.memory_layout == "width_sharded" else box.rows
    if block_w * across != width or block_h * down != height:
        return None
    sub_w = max(d for d in divisors(block_w) if d <= MOST_NORM_SUBBLOCK)
    return LayerNormSharded(CoreGrid(box.columns, box.rows), sub_w, block_h, block_w)
