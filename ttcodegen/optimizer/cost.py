"""What a call takes: L1, bytes from and to DRAM and over the NoC, cycles of the engines, time.

The time of a program is that of what takes longest, for data movement and computation overlap, and
what it takes to launch it. Figures of the chips: `ttcodegen.systems.performance`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import prod

from ttcodegen.dialects.memory import Layout, Memory
from ttcodegen.dialects.mesh import chips_of
from ttcodegen.dialects.placement import TensorPlacement
from ttcodegen.dialects.program_configs import SDPA, CoreGrid, MatmulDRAMSharded, MatmulReuse
from ttcodegen.dialects.tile import TILE_SIDE, tiles_along
from ttcodegen.layout import placements
from ttcodegen.layout.placements import element_bits, tile_bytes, tiles, whole_bytes
from ttcodegen.ops.definition import call_has_trait, call_kind, vector_cycles
from ttcodegen.ops.traits import CallKind, Trait
from ttcodegen.ops.ttnn import ttnn_op_classes
from ttcodegen.optimizer import convolutions, footprint, products
from ttcodegen.optimizer.automatic_products import automatic_config
from ttcodegen.optimizer.calls import LibraryCall
from ttcodegen.optimizer.circular_buffers import circular_buffers, elementwise
from ttcodegen.optimizer.decode_attention import DecodeAttention
from ttcodegen.optimizer.links import LinkWork, link_work
from ttcodegen.systems.description import ChipDescription
from ttcodegen.systems.machines import links_between
from ttcodegen.systems.performance import Performance, performance

BLOCK_SYNC = 400
"""Cycles in which senders and receivers of a multicast find each other (estimate)."""
HOST_READ = 8
"""The launches in whose time a number comes to the host, which waits for all that was launched
before (estimate)."""
ROW_OF_FACE = 32
"""Bytes that lie together of what crosses tiles, in a face of 16 bits an element."""


@dataclass(frozen=True)
class CallCost:
    """What one call takes."""

    cores: int = 0
    circular_buffers: int = 0
    """Bytes of each L1."""
    tensors: int = 0
    """Bytes of each L1 that operands and results take."""
    intermediates: int = 0
    """Bytes of each L1 that tensors between its programs take."""
    dram_bytes: int = 0
    noc_bytes: int = 0
    engine_cycles: int = 0
    """Of the matrix engine of each core, with what feeds it."""
    vector_cycles: int = 0
    """Of the vector engine of each core."""
    seconds: float = 0.0
    bound: str = ""
    """dram, noc, engine, vector, link or launch: what takes longest; empty if nothing runs."""
    link_bytes: int = 0
    """Between the two neighbours that exchange most, in one direction."""
    link_seconds: float = 0.0
    """How long the links between chips are busy."""
    chip_seconds: float = 0.0
    """What it would take if links took no time."""

    @property
    def l1_bytes(self) -> int:
        """Bytes of each L1 while it runs."""
        return self.working_bytes + self.tensors

    @property
    def working_bytes(self) -> int:
        """Those that it needs besides operands and results."""
        return self.circular_buffers + self.intermediates


@dataclass
class _Work:
    """What the programs of a call do; per core where it says so."""

    cores: int = 1
    circular_buffers: int = 0
    intermediates: int = 0
    dram_bytes: int = 0
    dram_share: float = 0.0
    """The part of the DRAM bandwidth that it gets."""
    noc_bytes: int = 0
    """Over all cores."""
    movement_cycles: int = 0
    """Of the data-movement processor of each core."""
    engine_cycles: int = 0
    vector_cycles: int = 0
    launches: int = 1
    links: LinkWork | None = None
    """What goes over the links of the mesh."""


class CostModel:
    """The model for one chip."""

    def __init__(self, chip: ChipDescription) -> None:
        self.chip = chip
        self.speed: Performance = performance(chip.arch)
        self.grid = CoreGrid(chip.grid[1], chip.grid[0])
        self._known: dict[object, CallCost] = {}
        # What kind of call each is stands in the catalogue, which loads with its classes.
        ttnn_op_classes()

    def cost(self, call: LibraryCall) -> CallCost:
        """What a call takes; nothing if it is a view, or all of it happens on the host."""
        if call.is_on_host or call.name in _FREE or is_view(call):
            return CallCost(tensors=self._tensors(call))
        work = _RULES[call_kind(call.name)](self, call)
        known = circular_buffers(call, self.chip)
        if known is not None:
            work.circular_buffers = known
        return self._finish(call, work)

    def bank_bytes(self, placement: TensorPlacement) -> int:
        """Bytes of each L1 that a tensor takes."""
        return footprint.bank_bytes(placement, self.chip.cores)

    def movement(self, source: TensorPlacement, target: TensorPlacement) -> CallCost:
        """What it takes to bring a tensor to another place."""
        return self.cost(LibraryCall("to_memory_config", (source,), (target,)))

    def _tensors(self, call: LibraryCall) -> int:
        return sum(self.bank_bytes(placement) for placement in (*call.operands, *call.results))

    def _finish(self, call: LibraryCall, work: _Work) -> CallCost:
        speed = self.speed
        share = work.dram_share or speed.dram_interleaved
        times = {
            "dram": work.dram_bytes / (speed.dram_bandwidth * share),
            "noc": max(work.noc_bytes / (work.cores * speed.noc_bytes), work.movement_cycles)
            / speed.clock,
            "engine": work.engine_cycles / speed.clock,
            "vector": work.vector_cycles / speed.clock,
        }
        # Both engines belong to one thread of a core: they take turns.
        computing = times["engine"] + times["vector"]
        on_chip = max(times["dram"], times["noc"], computing)
        if work.links is not None:
            times["link"] = self._link_seconds(call, work.links)
        longest = max(on_chip, times.get("link", 0.0))
        launching = work.launches * speed.launch
        bound = max(times, key=lambda name: times[name]) if longest > launching else "launch"
        return CallCost(
            work.cores,
            work.circular_buffers,
            self._tensors(call),
            work.intermediates,
            work.dram_bytes,
            work.noc_bytes,
            work.engine_cycles,
            work.vector_cycles,
            longest + launching,
            bound,
            0 if work.links is None else work.links.bytes,
            times.get("link", 0.0),
            on_chip + launching,
        )

    def _link_seconds(self, call: LibraryCall, work: LinkWork) -> float:
        links = links_between(self.chip.arch, chips_of(call.attributes))
        speed = self.speed
        return work.bytes / (links * speed.link_bandwidth) + work.hops * speed.link_latency

    def pass_cycles(self, placements: list[TensorPlacement]) -> int:
        """Cycles in which a core takes one tile of each of these through its registers."""
        size = max((page_bytes(placement) for placement in placements), default=0)
        return size // self.speed.unpacked_bytes + self.speed.tile_overhead


def page_bytes(placement: TensorPlacement) -> int:
    """Bytes of a tile, or of as many elements in rows."""
    if placement.layout is Layout.TILE:
        return tile_bytes(placement)
    return TILE_SIDE * TILE_SIDE * element_bits(placement) // 8


def _traffic(work: _Work, call: LibraryCall) -> None:
    """Counts every tensor once: from DRAM, or over the NoC unless it lies where it is used. No
    program touches the padding of shards."""
    home = call.result.shards
    for placement in (*call.operands, *call.results):
        size = whole_bytes(placement)
        if placement.buffer_type == "dram":
            work.dram_bytes += size
            work.noc_bytes += size
        elif placement.memory is Memory.DEVICE and (home is None or placement.shards != home):
            work.noc_bytes += size


def _cores_of(model: CostModel, call: LibraryCall, units: int) -> int:
    """The cores that a call runs on: those of its shards, else as many as it has units."""
    for placement in (*call.results, *call.operands):
        if placement.shards is not None and placement.buffer_type == "l1":
            return min(placement.shards.cores, model.chip.cores)
    return max(1, min(model.chip.cores, units))


_FREE = frozenset({"deallocate", "get_device"})


def is_view(call: LibraryCall) -> bool:
    """Whether the library gives the same buffer back (rules of 0.70.1)."""
    if not call.operands or not call.results:
        return False
    source, target = call.operands[0], call.results[0]
    if call_has_trait(call.name, Trait.PLACES):
        return source == target
    if call.name == "permute":
        order = list(call.attributes.get("permutation", ()))
        return order == sorted(order)
    return call_kind(call.name) is CallKind.RESHAPE and placements.is_view(source, target)


# Elementwise


def _elementwise(model: CostModel, call: LibraryCall) -> _Work:
    placements = [*call.operands, *call.results]
    units = max((tiles(placement) for placement in placements), default=1)
    cores = _cores_of(model, call, units)
    each = -(-units // cores)
    work = _Work(cores, elementwise(call))
    _traffic(work, call)
    work.engine_cycles = each * model.pass_cycles(placements)
    wide = any(placement.data_type.mlir == "f32" for placement in call.operands)
    if wide or not call_has_trait(call.name, Trait.ON_MATRIX_ENGINE):
        steps = TILE_SIDE * TILE_SIDE // model.speed.vector_lanes
        work.vector_cycles = each * steps * vector_cycles(call.name)
    return work


# Data movement


def _moving(model: CostModel, call: LibraryCall, whole_pages: bool) -> _Work:
    """Tensors that are moved page by page, or in rows of faces where they cross tiles."""
    units = max(tiles(placement) for placement in (*call.operands, *call.results))
    cores = _cores_of(model, call, units)
    work = _Work(cores, 4 * page_bytes(call.result))
    _traffic(work, call)
    each = -(-units // cores)
    pieces = 1 if whole_pages else page_bytes(call.result) // ROW_OF_FACE
    work.movement_cycles = each * 2 * pieces * model.speed.transaction
    return work


def _copied(model: CostModel, call: LibraryCall) -> _Work:
    return _moving(model, call, whole_pages=True)


def _changed_layout(model: CostModel, call: LibraryCall) -> _Work:
    """Tilizing and untilizing: whole rows move, the registers sort them."""
    work = _moving(model, call, whole_pages=True)
    rows = max(placement.collapsed_shape()[1] for placement in (*call.operands, *call.results))
    if call.operands[0].layout is not call.result.layout:
        units = max(tiles(placement) for placement in (*call.operands, *call.results))
        work.engine_cycles = -(-units // work.cores) * model.pass_cycles(
            [*call.operands, *call.results]
        )
        # Rows of tensors that are a single tile wide are small pieces.
        narrow = max(1, 512 // max(1, rows * 2))
        work.movement_cycles *= narrow
    return work


def _reshaped(model: CostModel, call: LibraryCall) -> _Work:
    return _moving(model, call, whole_pages=call.operands[0].layout is Layout.ROW_MAJOR)


def _permuted(model: CostModel, call: LibraryCall) -> _Work:
    order = list(call.attributes.get("permutation", ()))
    last = sorted(order)[-2:]
    work = _moving(model, call, whole_pages=sorted(order[-2:]) == last)
    if order[-2:] == last[::-1]:
        units = tiles(call.result)
        work.engine_cycles = -(-units // work.cores) * model.pass_cycles([call.result])
    return work


def _sliced(model: CostModel, call: LibraryCall) -> _Work:
    """Parts and compositions: page by page where their borders are those of tiles."""
    shapes = [(1, *placement.shape)[-2:] for placement in (*call.operands, *call.results)]
    full = call.result.shape[-2:]
    aligned = all(
        size % TILE_SIDE == 0 or size == whole
        for shape in shapes
        for size, whole in zip(shape[-len(full) :], full, strict=True)
    )
    work = _moving(model, call, whole_pages=aligned or call.result.layout is Layout.ROW_MAJOR)
    if call.name == "slice_static":
        # What is not taken is not read.
        work.dram_bytes = min(work.dram_bytes, 2 * whole_bytes(call.result))
    return work


def _gathered(model: CostModel, call: LibraryCall) -> _Work:
    """Rows that are looked up: of the table only those that are named."""
    size = whole_bytes(call.result)
    cores = min(model.chip.cores, tiles(call.result))
    rows = prod(call.result.shape[:-1])
    work = _Work(cores, 4 * 2048, 2 * size, noc_bytes=2 * size)
    work.movement_cycles = -(-rows // cores) * 2 * model.speed.transaction
    return work


def _written(model: CostModel, call: LibraryCall) -> _Work:
    """A cache of which only a part is overwritten."""
    taken = call.operands[1]
    cores = min(model.chip.cores, tiles(taken))
    size = whole_bytes(taken)
    work = _Work(cores, 6 * page_bytes(taken), 3 * size, noc_bytes=3 * size)
    work.movement_cycles = -(-tiles(taken) // cores) * 4 * model.speed.transaction
    if call.name == "update_cache":
        work.launches += HOST_READ  # The position is an argument.
    return work


def _between_chips(model: CostModel, call: LibraryCall) -> _Work:
    """Tensors that go through the memories of each chip, and over the links between them."""
    work = _copied(model, call)
    work.links = link_work(call)
    # A sum is one program that scatters and one that gathers.
    work.launches = 2 if call.name == "all_reduce" else 1
    return work


# Along rows


def _normalised(model: CostModel, call: LibraryCall) -> _Work:
    source = call.operands[0]
    height, width = source.with_(layout=Layout.TILE).collapsed_shape()
    cores = _cores_of(model, call, height)
    each = -(-height * width // cores)
    if source.shards is None:
        each = -(-height // cores) * width
    softmax = call.name == "softmax"
    work = _Work(cores)
    _traffic(work, call)
    passes = 4 if softmax else 5
    work.engine_cycles = each * passes * model.pass_cycles([source])
    work.vector_cycles = each * TILE_SIDE * (12 if softmax else 0)
    return work


def _reduced(model: CostModel, call: LibraryCall) -> _Work:
    source = call.operands[0]
    units = tiles(source)
    cores = _cores_of(model, call, max(1, tiles(call.result)))
    work = _Work(cores)
    _traffic(work, call)
    work.engine_cycles = -(-units // cores) * model.pass_cycles([source])
    return work


# Products


def _multiplied(model: CostModel, call: LibraryCall) -> _Work:
    product = products.Product(call)
    config = call.program_config or automatic_config(call, model.grid, model.speed.l1_bank)
    passes = products.fidelity_passes(call, model.chip.arch == "wormhole_b0")
    left, right, result = call.operands[0], call.operands[1], call.result
    cores = min(products.config_cores(config, product, model.grid), model.chip.cores)
    work = _Work(cores)
    if config is None:
        return _blockless(model, call, product, work, passes)
    k = min(getattr(config, "in0_block_w", 1), product.inner)
    height = getattr(config, "out_block_h", getattr(config, "per_core_m", 1))
    width = getattr(config, "out_block_w", getattr(config, "per_core_n", 1))
    rows = min(getattr(config, "per_core_m", 1), product.rows)
    columns = min(getattr(config, "per_core_n", 1), product.width)
    if isinstance(config, MatmulDRAMSharded):
        # The cores beside the banks compute, and send the others what these are to hold.
        cores = min(model.chip.num_dram_channels, product.width)
        columns = width = -(-product.width // cores)
        work.cores = cores
    repeats = 1 if getattr(config, "fuse_batch", True) else product.batch
    sub_h = getattr(config, "out_subblock_h", 1)
    sub_w = getattr(config, "out_subblock_w", min(8, columns))
    # A tile of one side is unpacked for each product, of the other once for a subblock.
    unpack = tile_bytes(right) // model.speed.unpacked_bytes
    feeding = unpack * (1 + 1 / max(sub_h, sub_w))
    each = max(model.speed.tile_product * passes, feeding)
    count = repeats * rows * columns * product.inner
    blocks = -(-product.inner // k)
    out = repeats * rows * columns
    compute = call.compute_config
    sums = 1 if compute is not None and compute.packer_l1_acc else 2
    respilled = (blocks - 1) * out * sums * (tile_bytes(result) // model.speed.unpacked_bytes)
    packed = out * model.pass_cycles([result])
    splits = -(-rows // height) * -(-columns // width) * repeats
    work.engine_cycles = int(count * each) + respilled + packed + blocks * splits * BLOCK_SYNC
    work.dram_share = model.speed.dram_interleaved
    if isinstance(config, MatmulDRAMSharded):
        work.dram_share = model.speed.dram_sharded
    _traffic(work, call)
    received = repeats * product.inner * (rows * tile_bytes(left) + columns * tile_bytes(right))
    work.noc_bytes = max(work.noc_bytes, received * cores // 2)
    if call.attributes.get("activation") or config.activation is not None:
        work.vector_cycles = out * TILE_SIDE * 8
    if isinstance(config, MatmulDRAMSharded) and right.shards is not None:
        work.circular_buffers = footprint.banked_product_buffers(
            k, left, right, result, products.wide_sums(call)
        )
        return work
    bias = call.operands[2] if len(call.operands) > 2 else None
    multicast = left.memory_layout != "height_sharded"
    steps = blocks * (repeats if not isinstance(config, MatmulReuse) else product.batch)
    adds_up = compute is None or compute.packer_l1_acc
    gathered = adds_up and blocks > (1 if bias is not None else 2)
    work.circular_buffers = footprint.product_buffers(
        footprint.Blocks(height, width, k, steps == 1),
        left,
        right,
        result,
        products.wide_sums(call),
        bias,
        multicast,
        gathered,
    )
    return work


def _blockless(
    model: CostModel, call: LibraryCall, product: products.Product, work: _Work, passes: int
) -> _Work:
    """Tiles of the result one by one, for each of which a row and a column are read."""
    left, right = call.operands[0], call.operands[1]
    out = product.rows * product.width
    count = out * product.inner
    each = max(
        model.speed.tile_product * passes, 2 * tile_bytes(right) // model.speed.unpacked_bytes
    )
    work.engine_cycles = -(-count // work.cores) * (each + model.speed.tile_overhead)
    work.noc_bytes = count * (tile_bytes(left) + tile_bytes(right))
    in_dram = [p for p in (left, right) if p.buffer_type == "dram"]
    work.dram_bytes = count * sum(tile_bytes(placement) for placement in in_dram)
    work.circular_buffers = 4 * (tile_bytes(left) + tile_bytes(right) + tile_bytes(call.result))
    return work


def _attended(model: CostModel, call: LibraryCall) -> _Work:
    """Attention: scores and their product with the values, chunk by chunk, with a softmax. Each
    chunk of queries reads all keys and values that it sees."""
    query, key, value = call.operands[:3]
    passes = products.fidelity_passes(call)
    heads, rows = prod(query.shape[:-2]), tiles_along(query.shape[-2])
    keys, depth = tiles_along(key.shape[-2]), tiles_along(query.shape[-1])
    config = call.program_config
    q = k = 1
    if isinstance(config, SDPA):
        q, k = (max(size // TILE_SIDE, 1) for size in (config.q_chunk_size, config.k_chunk_size))
    chunks = heads * -(-rows // q)
    seen = 1.0
    if call.attributes.get("is_causal", True):
        seen = (1 + q / max(rows, q)) / 2
    cores = min(model.chip.cores, max(1, chunks))
    each = -(-chunks // cores)
    work = _Work(cores)
    _traffic(work, call)
    read = chunks * seen * keys * depth
    for operand in (key, value):
        again = max(0, int(read * tile_bytes(operand)) - whole_bytes(operand))
        work.noc_bytes += again
        work.dram_bytes += again if operand.buffer_type == "dram" else 0
    scores, steps = each * seen * q * keys, each * seen * -(-keys // k)
    # What was summed up is scaled anew in each step.
    corrected = steps * q * (depth + 3) * model.pass_cycles([query])
    work.engine_cycles = int(
        scores * depth * 2 * max(model.speed.tile_product * passes, 40)
        + scores * 4 * model.pass_cycles([query])
        + corrected
        + steps * 2 * BLOCK_SYNC
    )
    work.vector_cycles = int(scores * TILE_SIDE * 12)
    return work


def _attended_by_one(model: CostModel, call: LibraryCall) -> _Work:
    """Attention of one query of each user, whose keys are distributed over cores. Where in the
    cache each user is, is not known before: all positions count."""
    plan = DecodeAttention.of(call, model.chip.cores)
    query, key, value, *others = call.operands
    work = _Work(min(plan.active_cores, model.chip.cores))
    _traffic(work, replace(call, operands=(query, *others)))
    pages = plan.users * plan.key_heads * tiles_along(plan.keys) * plan.depth
    read = pages * (tile_bytes(key) + tile_bytes(value))
    work.dram_bytes += read
    work.noc_bytes += read
    each = model.pass_cycles([query])
    product = max(model.speed.tile_product * products.fidelity_passes(call), 40)
    scores = plan.rows * plan.chunk_tiles
    summed = plan.rows * (plan.depth + 3) * each
    step = scores * (2 * plan.depth * product + 4 * each) + summed + 2 * BLOCK_SYNC
    work.engine_cycles = plan.steps * step + plan.rounds * (2 * summed + BLOCK_SYNC)
    work.vector_cycles = plan.steps * scores * TILE_SIDE * 12
    return work


def _convolved(model: CostModel, call: LibraryCall) -> _Work:
    """A product whose left factor is gathered from an image in L1: in DRAM it comes as slices
    through L1, by programs of their own."""
    image, weights = call.operands[0], call.operands[1]
    result = call.result
    groups = int(call.attributes.get("groups", 1))
    inner_elements = prod(weights.shape[1:]) if len(weights.shape) == 4 else weights.shape[-2]
    channels = result.shape[-1]
    inner = tiles_along(inner_elements * groups) or 1
    rows = tiles_along(prod(result.shape[:-1]))
    columns = tiles_along(channels)
    kernel = prod(weights.shape[2:]) if len(weights.shape) == 4 else 1
    in_place = image.shards is not None and result.shards is not None
    cores = result.shards.cores if result.shards is not None else min(model.chip.cores, rows)
    work = _Work(min(cores, model.chip.cores))
    count = -(-rows * columns // work.cores) * inner
    passes = products.fidelity_passes(call)
    # Rows of windows are copied in L1, and tilized, before they are multiplied.
    gathered = -(-rows // work.cores) * inner if kernel > 1 else 0
    work.movement_cycles = gathered * TILE_SIDE * model.speed.transaction // 4
    work.engine_cycles = int(
        count * max(model.speed.tile_product * passes, 40)
        + gathered * model.pass_cycles([image])
        + -(-rows * columns // work.cores) * model.pass_cycles([result])
    )
    _traffic(work, call)
    work.launches = 1 if in_place and kernel == 1 else 3 if in_place else 5 if kernel > 1 else 1
    if not in_place and kernel > 1:
        work.noc_bytes += 2 * (whole_bytes(image) + whole_bytes(result))
    known = convolutions.buffers(call, image, result) if call.name == "conv2d" else None
    if known is not None:
        work.circular_buffers = known
        work.intermediates = convolutions.halo_bytes(call, image, result)
        if work.intermediates:
            # The image becomes rows, beside those of its neighbours.
            work.noc_bytes += work.intermediates * work.cores
            work.engine_cycles += -(-tiles(image) // work.cores) * model.pass_cycles([image])
        return work
    work.circular_buffers = min(
        inner * 2 * tile_bytes(result) + 4 * inner_elements * 64, model.speed.usable_l1 // 2
    )
    return work


def _pooled(model: CostModel, call: LibraryCall) -> _Work:
    kernel = prod(call.attributes.get("kernel_size", (1,)))
    units = max(tiles(call.operands[0]), tiles(call.result))
    cores = _cores_of(model, call, units)
    work = _Work(cores, 16_640, launches=4)
    _traffic(work, call)
    work.movement_cycles = -(-tiles(call.result) // cores) * TILE_SIDE * kernel * 8
    work.engine_cycles = -(-tiles(call.result) // cores) * kernel * model.pass_cycles([call.result])
    return work


_Rule = Callable[[CostModel, LibraryCall], _Work]
_RULES: dict[CallKind, _Rule] = {
    CallKind.ELEMENTWISE: _elementwise,
    CallKind.PRODUCT: _multiplied,
    CallKind.NORMALIZATION: _normalised,
    CallKind.REDUCTION: _reduced,
    CallKind.COPY: _copied,
    CallKind.INTERPOLATION: _copied,
    CallKind.LAYOUT: _changed_layout,
    CallKind.RESHAPE: _reshaped,
    CallKind.PERMUTATION: _permuted,
    CallKind.SLICE: _sliced,
    CallKind.GATHER: _gathered,
    CallKind.CACHE_WRITE: _written,
    CallKind.CONVOLUTION: _convolved,
    CallKind.POOLING: _pooled,
    CallKind.ATTENTION: _attended,
    CallKind.ATTENTION_OF_ONE: _attended_by_one,
    CallKind.COLLECTIVE: _between_chips,
}
