"""Work of the programs of a call, and its fabric traffic."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from math import prod

from ttcodegen.dialects.ttcore.shards import Layout, Memory
from ttcodegen.dialects.ttcore.tile import TILE_SIDE
from ttcodegen.dialects.ttnn.placement import TensorPlacement
from ttcodegen.dialects.ttnn.program_configs import CoreGrid
from ttcodegen.layout.placements import element_bits, tile_bytes, tiles, whole_bytes
from ttcodegen.optimizer.call import LibraryCall
from ttcodegen.optimizer.cost.measurements import FITTED, Fitted
from ttcodegen.systems.cards import Performance, performance_of
from ttcodegen.systems.description import ChipDescription


@dataclass(frozen=True)
class LinkWork:
    """Fabric traffic of a call over the links of the mesh.

    The devices of a row or column form a line, as projects configure the fabric (FABRIC_1D), and
    links are full duplex.
    """

    bytes: int
    """Bytes over the busiest link between neighbours, in one direction."""
    hops: int
    """Number of sequential hops between devices."""
    axes: tuple[tuple[int, int, int], ...] = ()
    """Mesh axes with their bytes and hops; empty for the axis of the call, or the whole mesh."""


def _all_gather(size: int, chips: int) -> LinkWork:
    """All-gather along a line: the last link carries the shards of all other devices."""
    return LinkWork((chips - 1) * size, chips - 1)


def _reduce_scatter(size: int, chips: int) -> LinkWork:
    """Reduce-scatter along a line: each link carries partial sums towards their device."""
    return LinkWork((chips - 1) * -(-size // chips), chips - 1)


def _all_reduce(size: int, chips: int) -> LinkWork:
    """All-reduce along a line: a reduce-scatter and then an all-gather."""
    part = _reduce_scatter(size, chips)
    return LinkWork(2 * part.bytes, 2 * part.hops)


_Rule = Callable[[LibraryCall], LinkWork]


def _along_axes(
    along: Callable[[int, int], LinkWork], first: int, after: Callable[[int, int], int]
) -> _Rule:
    """Returns the rule of a collective over one mesh axis, or over both in sequence.

    Args:
        along: traffic along an axis, by bytes of the tensor and number of devices.
        first: first axis of a collective over both.
        after: bytes of the tensor after an axis, by those before and number of devices.
    """

    def rule(call: LibraryCall) -> LinkWork:
        axis = call.attributes.get("cluster_axis")
        size = whole_bytes(call.operands[0])
        axes: list[tuple[int, int, int]] = []
        for each in [first, 1 - first] if axis is None else [axis]:
            chips = _mesh(call)[each]
            if chips > 1:
                work = along(size, chips)
                axes.append((each, work.bytes, work.hops))
                size = after(size, chips)
        sent, hops = (sum(each[place] for each in axes) for place in (1, 2))
        return LinkWork(sent, hops, tuple(axes))

    return rule


def _mesh(call: LibraryCall) -> Sequence[int]:
    """Returns rows and columns of the mesh of a call; 1x1 if it states none."""
    named: Sequence[int] = call.attributes.get("mesh_shape") or ()
    return (1, 1, *named)[-2:]


def _point_to_point(call: LibraryCall) -> LinkWork:
    """Point-to-point: each link from sender to receiver carries the whole tensor."""
    ends = [call.attributes[name] for name in ("send_coord", "receive_coord")]
    hops = sum(abs(sender - receiver) for sender, receiver in zip(*ends, strict=True))
    return LinkWork(whole_bytes(call.operands[0]), hops)


def _devices_along_axis(call: LibraryCall) -> int:
    """Returns the number of devices along the call's mesh axis."""
    axis: int | None = call.attributes.get("cluster_axis")
    return prod(_mesh(call)) if axis is None else _mesh(call)[axis]


def _all_to_all(call: LibraryCall) -> LinkWork:
    """All-to-all along a line: the middle link carries a shard for each pair of devices across."""
    chips = _devices_along_axis(call)
    share = -(-whole_bytes(call.operands[0]) // chips)
    return LinkWork((chips // 2) * -(-chips // 2) * share, chips - 1)


def _broadcast(call: LibraryCall) -> LinkWork:
    """Broadcast along a line: each link carries the whole tensor."""
    return LinkWork(whole_bytes(call.operands[0]), _devices_along_axis(call) - 1)


def _all_to_all_dispatch(call: LibraryCall) -> LinkWork:
    """All-to-all dispatch: every device receives all expert indices, and its experts' tokens.

    If each token goes to k of n devices, evenly distributed, that is k / n of the tokens."""
    chips = _devices_along_axis(call)
    tokens, experts = (whole_bytes(each) for each in call.operands[:2])
    reached = min(call.operands[1].shape[-1], chips)
    return _all_gather(-(-tokens * reached // chips) + experts, chips)


def _all_to_all_combine(call: LibraryCall) -> LinkWork:
    """All-to-all combine: each device has an equal share of every device's result rows."""
    chips = _devices_along_axis(call)
    share = -(-whole_bytes(call.result) // chips)
    return LinkWork((chips // 2) * -(-chips // 2) * share, chips - 1)


_RULES: dict[str, _Rule] = {
    "all_gather": _along_axes(_all_gather, 1, lambda size, chips: size * chips),
    "all_reduce": _along_axes(_all_reduce, 0, lambda size, chips: size),
    "reduce_scatter": _along_axes(_reduce_scatter, 0, lambda size, chips: -(-size // chips)),
    "point_to_point": _point_to_point,
    "all_to_all_async_generic": _all_to_all,
    "broadcast": _broadcast,
    "all_to_all_dispatch": _all_to_all_dispatch,
    "all_to_all_combine": _all_to_all_combine,
}


def link_work(call: LibraryCall) -> LinkWork | None:
    """Returns the fabric traffic of a call, or None if it has none."""
    rule = _RULES.get(call.name)
    return None if rule is None or prod(_mesh(call)) <= 1 else rule(call)


@dataclass
class Work:
    """Work of the programs of a call; per core where noted."""

    cores: int = 1
    circular_buffers: int = 0
    _: KW_ONLY
    intermediates: int = 0
    dram_bytes: int = 0
    dram_rate: float = 0.0
    """DRAM bandwidth in bytes per second; 0 for that of interleaved tensors."""
    dram_pages: int = 0
    """Pages of interleaved tensors; each costs time in addition to its bytes."""
    page_seconds: float | None = None
    """Seconds per page; None for tensors that are read page by page."""
    noc_bytes: int = 0
    """Bytes over the NoC of all cores."""
    movement_cycles: int = 0
    """Cycles of the data movement processor per core."""
    engine_cycles: int = 0
    vector_cycles: int = 0
    launches: int = 1
    host_wait: float = 0.0
    """Seconds during which the device waits for the host."""
    start: float = 0.0
    """Seconds from launch to first tile per program; 0 for the default of the operands' memory."""
    overlap: float = 2.0
    """Exponent of the norm that combines the times of movement and computation.

    Near one they alternate tile by tile; if it is large they overlap fully."""
    links: LinkWork | None = None
    """Fabric traffic."""


class Machine:
    """Description of a chip with its performance figures and its grid."""

    def __init__(self, description: ChipDescription) -> None:
        self.description = description
        self.speed: Performance = performance_of(description)
        self.fitted: Fitted = FITTED[description.arch]
        self.grid = CoreGrid(description.grid[1], description.grid[0])

    def pass_cycles(self, placements: list[TensorPlacement]) -> int:
        """Returns the cycles of unpacking and packing one tile of each tensor."""
        size = max((page_bytes(placement) for placement in placements), default=0)
        return size // self.speed.unpacked_bytes + self.speed.tile_overhead


def page_bytes(placement: TensorPlacement) -> int:
    """Returns the bytes of a tile, or of 1,024 row-major elements."""
    if placement.layout is Layout.TILE:
        return tile_bytes(placement)
    return TILE_SIDE * TILE_SIDE * element_bits(placement) // 8


def page_count(placement: TensorPlacement) -> int:
    """Returns the number of pages of a tensor: tiles, or rows of a row-major tensor."""
    if placement.layout is Layout.TILE:
        return tiles(placement)
    return prod(placement.shape[:-1])


def traffic(work: Work, call: LibraryCall) -> None:
    """Adds the traffic of reading or writing every tensor once.

    Tensors in DRAM use DRAM and NoC bandwidth, tensors in L1 only the NoC, or nothing if they have
    the shards of the result. Padding of shards is not moved."""
    home = call.result.shards
    for placement in (*call.operands, *call.results):
        size = whole_bytes(placement)
        if placement.buffer_type == "dram":
            work.dram_bytes += size
            work.noc_bytes += size
            work.dram_pages += page_count(placement)
        elif placement.memory is Memory.DEVICE and (home is None or placement.shards != home):
            work.noc_bytes += size


def cores_of(chip: Machine, call: LibraryCall, units: int) -> int:
    """Returns the number of cores of a call: those of its shards, or else one per unit of work."""
    for placement in (*call.results, *call.operands):
        if placement.shards is not None and placement.buffer_type == "l1":
            return min(placement.shards.cores, chip.description.cores)
    return max(1, min(chip.description.cores, units))


WorkRule = Callable[[Machine, LibraryCall], Work]
"""Returns the work of a call of one kind."""
