"""What the chips of a mesh exchange over their ethernet links, between programs of the device.

Host functions read a tensor, call a function for the CPU, and write what it gives. Where that
function only moves whole tiles between the chips of rows or of columns, the chips do it themselves:
each sends pages of the tensor to the others, through the fabric.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import product
from math import prod

from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import Operation, SSAValue

from ttcodegen.dialects.core.datatypes import shape_of
from ttcodegen.dialects.operations.functions import callee_of
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.dialects.ttcore.mesh import MeshShape, declared_mesh, groups_along
from ttcodegen.dialects.ttmetal.op_names import ENQUEUE_READ_BUFFER, ENQUEUE_WRITE_BUFFER
from ttcodegen.dialects.ttnn.placement import TensorPlacement, declared_data_type, placement_of
from ttcodegen.layout.placements import page_bytes
from ttcodegen.layout.tiled_shape import TiledShape
from ttcodegen.ops.collectives.schedule import has_whole_tiles
from ttcodegen.ops.core.definition import TTIRDefinition
from ttcodegen.ops.core.shard_movement import ChipMovement
from ttcodegen.parsing.structure import operation_name
from ttcodegen.transforms.rebuilding import body_of

MOST_PAGE_BYTES = 4352
"""The most that a packet carries (tt-metal 0.70.1, tt_metal/fabric/erisc_datamover_builder.hpp,
`default_packet_payload_size_bytes`)."""

EXCHANGE_KERNEL = "exchange_pages.cpp"
"""The kernel of all exchanges."""


@dataclass(frozen=True)
class Sharing:
    """What each chip along an axis gives each other one; `support::Sharing` of the projects."""

    axis: int
    chips: int
    pages: int
    source_run: int
    target_run: int
    divides: bool
    joins: bool
    pairs: tuple[tuple[int, int], ...] = ()
    """Chips that send, each with one that receives; without, each gives to all."""

    @property
    def connects(self) -> bool:
        """True if anything goes over links."""
        return self.joins or any(source != target for source, target in self.pairs)

    def pages_over_busiest_link(self, mesh: MeshShape) -> int:
        """The most pages that a link between two neighbours carries in one direction: pages go
        straight along their line, to each chip on their own."""
        carried = Counter[tuple[int, int]]()
        for line in groups_along(mesh, self.axis):
            all_pairs = product(line, line) if self.joins else self.pairs
            for source, target in all_pairs:
                if source not in line:
                    continue
                first, last = line.index(source), line.index(target)
                step = 1 if last > first else -1
                carried.update((line[at], line[at + step]) for at in range(first, last, step))
        return max(carried.values(), default=0) * self.pages


@dataclass(frozen=True)
class ChipExchange:
    """An exchange between two tensors of the device, in place of a call for the CPU."""

    call: CallOp
    source: SSAValue
    target: SSAValue
    sharing: Sharing

    @property
    def ops(self) -> tuple[Operation, ...]:
        """The call with the copies to the host and back, none of which the host makes."""
        read = self.call.operands[0].owner
        assert isinstance(read, Operation)
        return (read, self.call, *(use.operation for use in self.call.results[0].uses))


def chip_exchanges(hosts: Iterable[FuncOp], cpu_functions: Iterable[FuncOp]) -> list[ChipExchange]:
    """The calls of host functions that the chips do themselves, in order."""
    found = {function.sym_name.data: function for function in cpu_functions}
    return [
        exchange
        for host in hosts
        for op in body_of(host).ops
        if isinstance(op, CallOp) and (exchange := _exchange(op, found)) is not None
    ]


def called_on_cpu(
    hosts: Iterable[FuncOp], cpu_functions: Iterable[FuncOp], exchanges: Iterable[ChipExchange]
) -> list[FuncOp]:
    """The functions for the CPU that host functions call, where chips do not exchange tiles."""
    by_chips = {each.call for each in exchanges}
    called = {callee_of(op) for host in hosts for op in body_of(host).ops if op not in by_chips}
    return [function for function in cpu_functions if function.sym_name.data in called]


def stays_on_chips(call: CallOp, cpu_functions: Mapping[str, FuncOp]) -> bool:
    """True if a call for the CPU, of a value in tiles of the device, is one that the
    chips do themselves."""
    function = cpu_functions.get(callee_of(call) or "")
    placements = [
        TensorPlacement(shape_of(value.type), declared_data_type(value))
        for value in (*call.operands, *call.results)
    ]
    if function is None or len(placements) != 2:
        return False
    return _sharing(function, *placements) is not None


def _sharing(function: FuncOp, source: TensorPlacement, target: TensorPlacement) -> Sharing | None:
    """What the chips share where the only op of a function moves a tensor between them."""
    op, *rest = body_of(function).ops
    movement = _movement(op) if len(rest) == 1 else None
    return movement and sharing_of(source, target, movement, declared_mesh(op))


def _movement(op: Operation) -> ChipMovement | None:
    """What an op moves along one axis of the mesh, None if it does more than that."""
    definition = op.definition if isinstance(op, CatalogueOp) else None
    rule = definition.between_chips if isinstance(definition, TTIRDefinition) else None
    return rule(op) if rule is not None and isinstance(op, CatalogueOp) else None


def _exchange(call: CallOp, cpu_functions: Mapping[str, FuncOp]) -> ChipExchange | None:
    function = cpu_functions.get(callee_of(call) or "")
    if function is None or len(call.operands) != 1 or len(call.results) != 1:
        return None
    read, writes = call.operands[0].owner, list(call.results[0].uses)
    if not isinstance(read, Operation) or operation_name(read) != ENQUEUE_READ_BUFFER:
        return None
    if len(writes) != 1 or operation_name(writes[0].operation) != ENQUEUE_WRITE_BUFFER:
        return None
    source, target = read.operands[0], writes[0].operation.operands[1]
    sharing = _sharing(function, placement_of(source), placement_of(target))
    return None if sharing is None else ChipExchange(call, source, target, sharing)


def sharing_of(
    source: TensorPlacement, target: TensorPlacement, movement: ChipMovement, mesh: MeshShape
) -> Sharing | None:
    """The pages that chips share, None if these are no whole tiles of one format."""
    if any(each.layout.name != "TILE" for each in (source, target)):
        return None
    if source.data_type != target.data_type or page_bytes(source, 1) > MOST_PAGE_BYTES:
        return None
    chips, rank = mesh[movement.axis], len(source.shape)
    grid = list(TiledShape(tuple(source.shape)).grid)
    before, part = len(grid) - rank, list(source.shape)
    if movement.divided is not None:
        part[movement.divided] //= chips
        grid[before + movement.divided] //= chips
    for dim in (movement.divided, movement.joined):
        if dim is not None and not has_whole_tiles(part, dim):
            return None
    source_run, target_run = [
        prod(grid) if dim is None else prod(grid[before + dim :])
        for dim in (movement.divided, movement.joined)
    ]
    return Sharing(
        axis=movement.axis,
        chips=chips,
        pages=prod(grid),
        source_run=source_run,
        target_run=target_run,
        divides=movement.divided is not None,
        joins=movement.joined is not None,
        pairs=movement.pairs or (),
    )
