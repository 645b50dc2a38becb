"""Host code of meshes: shards of arguments and results, and exchange between devices."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod

from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseArrayBase,
    DictionaryAttr,
    FunctionType,
    ModuleOp,
    i64,
)
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import BlockArgument, Operation, SSAValue

from ttcodegen.conversions.ttir_to_ttnn import cpu_functions
from ttcodegen.dialects.core.datatypes import shape_of
from ttcodegen.dialects.operations.functions import attributes_at, body_of, callee_of
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.dialects.ttcore.device import ONE_CHIP, MeshShape, declared_mesh, groups_along
from ttcodegen.dialects.ttir.annotations import DIVIDED
from ttcodegen.dialects.ttmetal.device_module import functions_of, is_host_function
from ttcodegen.dialects.ttmetal.programs import (
    CREATE_BUFFER,
    DEALLOCATE_BUFFER,
    ENQUEUE_READ_BUFFER,
    ENQUEUE_WRITE_BUFFER,
    VIEW,
)
from ttcodegen.dialects.ttnn.placement import TensorPlacement, declared_data_type, placement_of
from ttcodegen.layout.placements import TiledShape, page_bytes
from ttcodegen.ops.collectives.mesh_sharding import divided_dims
from ttcodegen.ops.collectives.schedule import has_whole_tiles
from ttcodegen.ops.core.definition import TTIRDefinition
from ttcodegen.ops.core.traits import ChipMovement
from ttcodegen.ops.device_constants import written_by
from ttcodegen.parsing.structure import operation_name
from ttcodegen.transforms.rewriting import body_of as rebuilding_body_of
from ttcodegen.transforms.rewriting import set_type

# Moves the sharding of arguments and the composition of results from host functions to their
# interface.
#
# In the module an argument is the whole tensor, of which a copy on the host is sharded. In C++ the
# argument is already sharded: the host uploads only its shard to each device. The type of the
# argument becomes that of a shard, and `ttcodegen.divided` gives the dimension that is divided
# along each mesh axis. Results are treated likewise.

Dims = tuple[int, ...]
"""For each mesh axis the dimension that is divided along it, -1 for none."""


def share_on_host(module: ModuleOp) -> None:
    """Makes arguments and results of host functions shards where they are sharded or composed.

    CPU functions that nothing calls afterwards are removed."""
    if declared_mesh(module) == ONE_CHIP:
        return
    known = {function.sym_name.data: function for function in cpu_functions(module)}
    replaced: set[str] = set()
    for function in functions_of(module):
        if is_host_function(function):
            replaced |= _HostFunction(function, known).share()
    called = {callee_of(op) for function in functions_of(module) for op in function.walk()}
    for symbol in replaced - called:
        known[symbol].detach()


def composed_by_host(module: ModuleOp) -> set[Operation]:
    """Returns the CPU calls that compose results, which the host does after the run."""
    if declared_mesh(module) == ONE_CHIP:
        return set()
    known = {function.sym_name.data: function for function in cpu_functions(module)}
    return {
        call
        for function in functions_of(module)
        if is_host_function(function)
        for call in _HostFunction(function, known).composing_calls()
    }


@dataclass(frozen=True)
class _Transfer:
    """Copy of a tensor to the host, call of a CPU function there, and copy back."""

    source: SSAValue
    target: SSAValue
    symbol: str
    dims: Dims
    ops: tuple[Operation, ...]
    """The two copies and the call, without the creation of the target."""


class _HostFunction:
    """Host function of which some transfers move to its interface."""

    def __init__(self, function: FuncOp, cpu: Mapping[str, FuncOp]) -> None:
        self._function = function
        self._cpu = cpu
        self._block = body_of(function)
        self._roots: dict[SSAValue, SSAValue] = {each: each for each in self._block.args}
        self._writers: dict[SSAValue, list[Operation]] = defaultdict(list)
        self._order: dict[Operation, int] = {}
        for place, op in enumerate(self._block.ops):
            self._order[op] = place
            for result in op.results:
                is_view = operation_name(op) == VIEW
                self._roots[result] = self._roots[op.operands[0]] if is_view else result
            for value in written_by(op):
                self._writers[self._roots[value]].append(op)

    def share(self) -> set[str]:
        """Changes the function; returns the CPU functions whose calls were removed."""
        replaced: set[str] = set()
        for argument in self._block.args:
            replaced |= self._share_argument(argument)
        replaced |= self._share_results()
        terminator = self._block.last_op
        assert terminator is not None
        self._function.function_type = FunctionType.from_lists(
            [argument.type for argument in self._block.args],
            [value.type for value in terminator.operands],
        )
        return replaced

    def composing_calls(self) -> list[Operation]:
        """Returns the calls that compose results; `share` removes them."""
        return [transfer.ops[1] for transfer in self._compositions().values()]

    def _compositions(self) -> dict[SSAValue, _Transfer]:
        terminator = self._block.last_op
        assert terminator is not None
        return {
            value: transfer
            for value in dict.fromkeys(terminator.operands)
            if (transfer := self._composition(value, terminator)) is not None
        }

    def _share_argument(self, argument: BlockArgument) -> set[str]:
        transfers = self._transfers(argument)
        if not transfers or len({transfer.dims for transfer in transfers}) != 1:
            return set()
        if not all(map(self._is_uploadable, transfers)):
            return set()
        set_type(argument, transfers[0].target.type)
        self._function.arg_attrs = _annotated(
            self._function.arg_attrs, len(self._block.args), {argument.index: transfers[0].dims}
        )
        for transfer in transfers:
            created = transfer.target.owner
            assert isinstance(created, Operation)
            for op in reversed(transfer.ops):
                self._erase(op)
            self._erase_deallocations(transfer.target)
            transfer.target.replace_all_uses_with(argument)
            self._erase(created)
        return {transfer.symbol for transfer in transfers}

    def _share_results(self) -> set[str]:
        terminator = self._block.last_op
        assert terminator is not None
        divided: dict[int, Dims] = {}
        replaced: set[str] = set()
        results, composed = list(terminator.operands), self._compositions()
        for place, value in enumerate(results):
            if value in composed:
                divided[place] = composed[value].dims
                terminator.operands[place] = composed[value].source
        for value, transfer in composed.items():
            replaced.add(transfer.symbol)
            self._erase_deallocations(transfer.source)
            assert isinstance(value.owner, Operation)
            for op in (*reversed(transfer.ops), value.owner):
                self._erase(op)
        if divided:
            self._function.res_attrs = _annotated(self._function.res_attrs, len(results), divided)
        return replaced

    def _transfers(self, argument: BlockArgument) -> list[_Transfer]:
        """Returns the transfers that are all uses of an argument; none if it has another use."""
        found: list[_Transfer] = []
        for use in argument.uses:
            transfer = self._transfer(use.operation, to_parts=True)
            if transfer is None:
                return []
            found.append(transfer)
        return found

    def _transfer(self, read: Operation, *, to_parts: bool) -> _Transfer | None:
        if operation_name(read) != ENQUEUE_READ_BUFFER:
            return None
        call = _only_user(read.results[0])
        write = None if not isinstance(call, CallOp) else _only_user(call.results[0])
        if call is None or write is None or operation_name(write) != ENQUEUE_WRITE_BUFFER:
            return None
        target, symbol = write.operands[1], callee_of(call) or ""
        created = target.owner
        if not isinstance(created, Operation) or operation_name(created) != CREATE_BUFFER:
            return None
        function = self._cpu.get(symbol)
        ops = [] if function is None else list(body_of(function).ops)
        # A single op, and the return of its result.
        dims = divided_dims(ops[0], to_parts=to_parts) if len(ops) == 2 else None
        source = read.operands[0]
        part, whole = (target, source) if to_parts else (source, target)
        if dims is None or not _can_be_shard(part, whole):
            return None
        return _Transfer(source, target, symbol, tuple(dims), (read, call, write))

    def _is_uploadable(self, transfer: _Transfer) -> bool:
        """Returns whether only the transfer writes the shards, and they are not a result."""
        root = transfer.target
        terminator = self._block.last_op
        assert terminator is not None
        is_result = any(self._roots[value] is root for value in terminator.operands)
        return not is_result and self._writers[root] == [transfer.ops[-1]]

    def _composition(self, value: SSAValue, terminator: Operation) -> _Transfer | None:
        """Returns the composition of a result from shards.

        None if the function uses the result or writes the shards otherwise."""
        writers = self._writers[value]
        if len(writers) != 1 or operation_name(writers[0]) != ENQUEUE_WRITE_BUFFER:
            return None
        if any(use.operation not in (writers[0], terminator) for use in value.uses):
            return None
        call = writers[0].operands[0].owner
        read = call.operands[0].owner if isinstance(call, CallOp) and call.operands else None
        transfer = None if not isinstance(read, Operation) else self._transfer(read, to_parts=False)
        if transfer is None or transfer.target is not value:
            return None
        root = self._roots[transfer.source]
        is_last = all(self._order[op] < self._order[transfer.ops[0]] for op in self._writers[root])
        return None if isinstance(root, BlockArgument) or not is_last else transfer

    def _erase_deallocations(self, tensor: SSAValue) -> None:
        root = self._roots[tensor]
        for op in list(self._block.ops):
            if operation_name(op) == DEALLOCATE_BUFFER and self._roots[op.operands[0]] is root:
                self._erase(op)

    def _erase(self, op: Operation) -> None:
        self._block.erase_op(op, safe_erase=False)


def _only_user(value: SSAValue) -> Operation | None:
    uses = list(value.uses)
    return uses[0].operation if len(uses) == 1 else None


def _can_be_shard(value: SSAValue, whole: SSAValue) -> bool:
    """Returns whether the host may upload or read shards in place of the whole tensor.

    Requires the same data type, and interleaved DRAM, so that L1 stays free."""
    placement = placement_of(value)
    is_in_dram = placement.buffer_type == "dram" and placement.shards is None
    return is_in_dram and placement.data_type is placement_of(whole).data_type


def _annotated(
    attributes: ArrayAttr[DictionaryAttr] | None, count: int, divided: Mapping[int, Sequence[int]]
) -> ArrayAttr[DictionaryAttr]:
    """Adds the divided dimensions to the attributes of arguments or results."""
    return ArrayAttr(
        [
            DictionaryAttr(
                {
                    **attributes_at(attributes, place),
                    **(
                        {DIVIDED: DenseArrayBase.from_list(i64, list(divided[place]))}
                        if place in divided
                        else {}
                    ),
                }
            )
            for place in range(count)
        ]
    )


# Exchange between the devices of a mesh over their ethernet links, between device programs.
#
# Host functions read a tensor, call a CPU function, and write its result back. Where that function
# only moves whole tiles along a mesh axis, the devices exchange the pages of the tensor through
# the fabric instead.

MOST_PAGE_BYTES = 4352
"""Maximum payload of a fabric packet.

Source: tt-metal, tt_metal/fabric/erisc_datamover_builder.hpp,
`default_packet_payload_size_bytes`."""

EXCHANGE_KERNEL = "exchange_pages.cpp"
"""Kernel that all exchanges use."""


@dataclass(frozen=True)
class Sharing:
    """Exchange of shards along a mesh axis: `support::Sharing` of the projects."""

    axis: int
    chips: int
    pages: int
    source_run: int
    target_run: int
    divides: bool
    joins: bool
    pairs: tuple[tuple[int, int], ...] = ()
    """Senders with their receivers; without pairs, each device sends to all."""

    @property
    def connects(self) -> bool:
        """Returns whether any page goes over a link."""
        return self.joins or any(source != target for source, target in self.pairs)

    def pages_over_busiest_link(self, mesh: MeshShape) -> int:
        """Returns the maximum number of pages that a link carries in one direction.

        Pages go straight along their line, separately to each device."""
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
    """Exchange between two device tensors that replaces the call of a CPU function."""

    call: CallOp
    source: SSAValue
    target: SSAValue
    sharing: Sharing

    @property
    def ops(self) -> tuple[Operation, ...]:
        """The call with the copies to the host and back, which the exchange replaces."""
        read = self.call.operands[0].owner
        assert isinstance(read, Operation)
        return (read, self.call, *(use.operation for use in self.call.results[0].uses))


def chip_exchanges(hosts: Iterable[FuncOp], cpu_functions: Iterable[FuncOp]) -> list[ChipExchange]:
    """Returns the calls of host functions that become exchanges between devices, in order."""
    found = {function.sym_name.data: function for function in cpu_functions}
    return [
        exchange
        for host in hosts
        for op in rebuilding_body_of(host).ops
        if isinstance(op, CallOp) and (exchange := _exchange(op, found)) is not None
    ]


def called_on_cpu(
    hosts: Iterable[FuncOp], cpu_functions: Iterable[FuncOp], exchanges: Iterable[ChipExchange]
) -> list[FuncOp]:
    """Returns the CPU functions that are called other than by exchanges, and those that they run
    as bodies of loops."""
    replaced = {each.call for each in exchanges}
    known = {function.sym_name.data: function for function in cpu_functions}
    pending, called = list(hosts), set[str]()
    while pending:
        caller = pending.pop()
        names = {callee_of(op) for op in rebuilding_body_of(caller).ops if op not in replaced}
        found = [name for name in names if name in known and name not in called]
        called.update(found)
        pending += [known[name] for name in found]
    return [function for name, function in known.items() if name in called]


def stays_on_chips(call: CallOp, cpu_functions: Mapping[str, FuncOp]) -> bool:
    """Returns whether a call of a CPU function on tiled tensors can become an exchange."""
    function = cpu_functions.get(callee_of(call) or "")
    placements = [
        TensorPlacement(shape_of(value.type), declared_data_type(value))
        for value in (*call.operands, *call.results)
    ]
    if function is None or len(placements) != 2:
        return False
    return _sharing(function, *placements) is not None


def _sharing(function: FuncOp, source: TensorPlacement, target: TensorPlacement) -> Sharing | None:
    """Exchange of a function whose only op moves a tensor between devices; None otherwise."""
    op, *rest = rebuilding_body_of(function).ops
    movement = _movement(op) if len(rest) == 1 else None
    return movement and sharing_of(source, target, movement, declared_mesh(op))


def _movement(op: Operation) -> ChipMovement | None:
    """Movement of an op along one mesh axis; None for other ops."""
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
    """Returns the exchange of pages for a movement.

    None unless both tensors have whole tiles of one format that fit a packet."""
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
