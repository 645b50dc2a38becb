"""What the chips of a mesh exchange over their ethernet links, between programs of the device.

Host functions read a tensor, call a function for the CPU, and write what it gives. Where that
function only moves whole tiles between the chips of rows or of columns, the chips do it themselves:
each sends pages of the tensor to the others, through the fabric.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import Operation, SSAValue
from xdsl.traits import SymbolTable

from ttcodegen.dialects.datatypes import shape_of
from ttcodegen.dialects.device_module import ENQUEUE_READ_BUFFER, ENQUEUE_WRITE_BUFFER
from ttcodegen.dialects.functions import callee_of, is_cpu_function
from ttcodegen.dialects.mesh import MeshShape, declared_mesh
from ttcodegen.dialects.operation import CatalogueOp
from ttcodegen.dialects.placement import TensorPlacement, declared_data_type, placement_of
from ttcodegen.dialects.tile import TILE_SIDE
from ttcodegen.layout.placements import page_bytes
from ttcodegen.layout.tiled_shape import TiledShape
from ttcodegen.ops.collectives import axis_of_groups, exchanged_dims, mesh_axis
from ttcodegen.ops.mesh import divided_dims
from ttcodegen.ops.mesh_values import axes_of
from ttcodegen.parsing.structure import operation_name
from ttcodegen.transforms.rebuilding import body_of

MOST_PAGE_BYTES = 4352
"""The most that a packet carries (tt-metal 0.70.1, tt_metal/fabric/erisc_datamover_builder.hpp,
`default_packet_payload_size_bytes`)."""

EXCHANGE_KERNEL = "exchange_pages.cpp"
"""The kernel of all exchanges."""


@dataclass(frozen=True)
class Movement:
    """A tensor that chips along an axis divide, put together, or both: the dimensions."""

    axis: int
    divided: int | None
    joined: int | None


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


@dataclass(frozen=True)
class ChipExchange:
    """An exchange between two tensors of the device, in place of a call for the CPU."""

    call: CallOp
    source: SSAValue
    target: SSAValue
    sharing: Sharing


def chip_exchanges(host: FuncOp, cpu_functions: Iterable[FuncOp]) -> list[ChipExchange]:
    """The calls of a host function that the chips do themselves, in order."""
    found = {function.sym_name.data: function for function in cpu_functions}
    return [
        exchange
        for op in body_of(host).ops
        if isinstance(op, CallOp) and (exchange := _exchange(op, found)) is not None
    ]


def called_on_cpu(hosts: Sequence[FuncOp], cpu_functions: Sequence[FuncOp]) -> list[FuncOp]:
    """The functions for the CPU that host functions still call."""
    by_chips = {id(each.call) for host in hosts for each in chip_exchanges(host, cpu_functions)}
    called = {callee_of(op) for host in hosts for op in body_of(host).ops if id(op) not in by_chips}
    return [function for function in cpu_functions if function.sym_name.data in called]


def stays_on_chips(call: CallOp) -> bool:
    """Whether a call for the CPU, of a value that lies in tiles of the device, is one that the
    chips do themselves."""
    module = call.get_toplevel_object()
    if not isinstance(module, ModuleOp):
        # It is in what became a function of the CPU.
        return False
    function = SymbolTable.lookup_symbol(module, call.callee)
    if not isinstance(function, FuncOp) or not is_cpu_function(function):
        return False
    placements = [
        TensorPlacement(shape_of(value.type), declared_data_type(value))
        for value in (*call.operands, *call.results)
    ]
    return len(placements) == 2 and _sharing(function, *placements) is not None


def _sharing(function: FuncOp, source: TensorPlacement, target: TensorPlacement) -> Sharing | None:
    """What the chips share where the only op of a function moves a tensor between them."""
    op, *rest = body_of(function).ops
    movement = movement_of(op) if len(rest) == 1 and isinstance(op, CatalogueOp) else None
    return movement and sharing_of(source, target, movement, declared_mesh(op))


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


# What ops move


def _one_axis(mesh: MeshShape, axes: Sequence[int]) -> int | None:
    """The only axis with several chips."""
    several = [axis for axis in axes if mesh[axis] > 1]
    return several[0] if len(several) == 1 else None


def _gathering(op: CatalogueOp) -> Movement | None:
    axis = _one_axis(declared_mesh(op), axes_of(declared_mesh(op), mesh_axis(op)))
    return None if axis is None else Movement(axis, None, exchanged_dims(op)[1])


def _partition(op: CatalogueOp) -> Movement | None:
    axis = _one_axis(declared_mesh(op), axes_of(declared_mesh(op), mesh_axis(op)))
    return None if axis is None else Movement(axis, exchanged_dims(op)[0], None)


def _all_to_all(op: CatalogueOp) -> Movement | None:
    axis = axis_of_groups(declared_mesh(op), op.parameter("replica_groups") or [])
    return None if axis is None else Movement(axis, *exchanged_dims(op))


def _mesh_shard(op: CatalogueOp) -> Movement | None:
    dims = divided_dims(op)
    divided = [axis for axis, dim in enumerate(dims) if dim >= 0]
    if len(divided) != 1:
        return None
    (axis,) = divided
    is_whole = op.parameter("shard_direction") == "shard_to_full"
    return Movement(axis, None if is_whole else dims[axis], dims[axis] if is_whole else None)


_MOVEMENTS: Mapping[str, Callable[[CatalogueOp], Movement | None]] = {
    "ttir.all_gather": _gathering,
    "ttir.mesh_partition": _partition,
    "ttir.all_to_all": _all_to_all,
    "ttir.mesh_shard": _mesh_shard,
}


def movement_of(op: CatalogueOp) -> Movement | None:
    """What an op moves along one axis of the mesh, None if it does more than that."""
    rule = _MOVEMENTS.get(op.name)
    return None if rule is None else rule(op)


def sharing_of(
    source: TensorPlacement, target: TensorPlacement, movement: Movement, mesh: MeshShape
) -> Sharing | None:
    """The pages that chips share, None if these are no whole tiles of one format."""
    if any(each.layout.name != "TILE" for each in (source, target)):
        return None
    if source.data_type != target.data_type or page_bytes(source, 1) > MOST_PAGE_BYTES:
        return None
    chips, rank = mesh[movement.axis], len(source.shape)
    grid = list(TiledShape(tuple(source.shape)).grid)
    before = len(grid) - rank
    for dim, shape in ((movement.divided, target.shape), (movement.joined, source.shape)):
        # The last two dimensions of a tensor have tiles, of which a part must have whole ones.
        if dim is not None and dim >= rank - 2 and shape[dim] % TILE_SIDE:
            return None
    if movement.divided is not None:
        grid[before + movement.divided] //= chips
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
    )


def exchanges_of(
    hosts: Iterable[FuncOp], cpu_functions: Sequence[FuncOp]
) -> Iterator[ChipExchange]:
    """The exchanges of all host functions, in order."""
    for host in hosts:
        yield from chip_exchanges(host, cpu_functions)
