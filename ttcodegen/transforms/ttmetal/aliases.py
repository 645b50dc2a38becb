"""Circular buffers aliased to the shards of tensors in L1.

Where each core has exactly the tiles of an operand that it works on, in processing order, the
circular buffer of the operand needs no memory, and nothing is copied: its pages are those of the
shard. The reader pushes all of them at once, the writer waits for all.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from xdsl.context import Context
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IndexType, IntegerAttr, ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass

from ttcodegen.dialects.operations.functions import body_of
from ttcodegen.dialects.ttcore.tile import TILE_SIDE
from ttcodegen.dialects.ttkernel.operation import COMMENT, constant_integer, create
from ttcodegen.dialects.ttmetal.device_module import (
    Launch,
    ProgramAttr,
    functions_of,
    is_host_function,
    launches,
)
from ttcodegen.dialects.ttmetal.programs import (
    RUN_TIME_ARGUMENT,
    BufferAddress,
    Kernel,
    Place,
    Processor,
    Program,
    UnitTiles,
)
from ttcodegen.dialects.ttmetal.tuning import Name, Rule, equal
from ttcodegen.dialects.ttnn.placement import placement_of
from ttcodegen.transforms.rewriting import erase
from ttcodegen.transforms.ttmetal.memory import CoreTiles, lies_in_order

_ACCESSOR = "ttkernel.TensorAccessor"


@dataclass(frozen=True)
class _Direction:
    """Direction of page movement between a tensor and a circular buffer, by op names."""

    processor: Processor
    pointer: str
    move: str
    """Op that moves one page."""
    begin: str
    end: str
    """Ops on the circular buffer before and after pages are moved."""
    remaining: tuple[str, ...]
    """Ops that remain, once for all pages, where pages are not moved."""
    remark: str

    @property
    def transfers(self) -> str:
        """Prefix of the names of this direction's transfer ops."""
        return self.move.removesuffix("_page")

    @property
    def barrier(self) -> str:
        """Barrier of these transfers."""
        return f"{self.transfers}_barrier"


_READING = _Direction(
    Processor.READER,
    "ttkernel.get_write_ptr",
    "ttkernel.noc_async_read_page",
    "ttkernel.cb_reserve_back",
    "ttkernel.cb_push_back",
    ("cb_reserve_back", "cb_push_back"),
    "These tiles are in the L1 of the core.",
)
_WRITING = _Direction(
    Processor.WRITER,
    "ttkernel.get_read_ptr",
    "ttkernel.noc_async_write_page",
    "ttkernel.cb_wait_front",
    "ttkernel.cb_pop_front",
    ("cb_wait_front",),
    "These tiles stay in the L1 of the core.",
)
_WITHOUT_EFFECT = frozenset({RUN_TIME_ARGUMENT, _ACCESSOR, _READING.pointer, _WRITING.pointer})
"""Ops without side effects, dead if their results are unused; so are those of arith."""


@dataclass(frozen=True)
class AliasBuffers(ModulePass):
    """Aliases circular buffers to the shards of operands where these hold all that the cores need.

    Streamed operands are excluded.
    """

    name = "ttmetal-alias-buffers"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        functions = {function.sym_name.data: function for function in functions_of(op)}
        hosts = [function for function in functions.values() if is_host_function(function)]
        for launch in launches(hosts):
            program = launch.program
            for operand in _resident_operands(launch):
                program = _aliased(program, operand, launch, functions)
            launch.op.properties["program"] = ProgramAttr(program)


def _resident_operands(launch: Launch) -> Iterator[int]:
    """Yields the operands of which each core holds the tiles that it needs."""
    program = launch.program
    values = launch.op.operands
    for operand, (value, traffic) in enumerate(zip(values, program.traffic, strict=False)):
        needs = CoreTiles.of(program, operand)
        if not traffic.streamed and lies_in_order(placement_of(value), needs):
            yield operand


def _aliased(
    program: Program, operand: int, launch: Launch, functions: Mapping[str, FuncOp]
) -> Program:
    """Returns the program with an operand's circular buffer aliased to its shards.

    Unchanged if the reader or writer does more with the tiles than transfer them.
    """
    direction = _READING if operand < program.inputs else _WRITING
    movers = [kernel for kernel in program.kernels if operand in kernel.accessors]
    if len(movers) != 1 or movers[0].processor is not direction.processor:
        return program
    [kernel] = movers
    transfer = _Transfer.of(kernel, functions[kernel.function], operand, direction)
    buffer = None if transfer is None else program.buffers_of(kernel).get(transfer.constant)
    if transfer is None or buffer is None:
        return program
    traffic = program.traffic[operand]
    shards = placement_of(launch.op.operands[operand]).shards
    assert shards is not None
    assert isinstance(traffic.division, UnitTiles)
    rows, columns = (size // TILE_SIDE for size in shards.shape)
    changed = transfer.replace(traffic.division.tiles)
    alias = replace(buffer, pages=rows * columns, operand=operand)
    costs = program.costs
    return replace(
        program,
        kernels=tuple(changed if each is kernel else each for each in program.kernels),
        circular_buffers=tuple(alias if b is buffer else b for b in program.circular_buffers),
        costs=replace(
            costs,
            noc_bytes=costs.noc_bytes - traffic.bytes,
            least_noc_bytes=costs.least_noc_bytes - traffic.least,
            own_l1_bytes=costs.own_l1_bytes - traffic.bytes,
        ),
        tuning=replace(program.tuning, rules=(*program.tuning.rules, *_grid_rules(program))),
    )


def _grid_rules(program: Program) -> Iterator[Rule]:
    """Requires the program's grid to remain that of the shards."""
    for setting in program.tuning.settings:
        if setting.name in ("grid_columns", "grid_rows"):
            message = (
                f"{setting.name} is {setting.value}: the L1 of these cores holds what they read"
            )
            rule = Rule(equal(Name(setting.name), setting.value), message)
            if rule not in program.tuning.rules:
                yield rule


@dataclass
class _Transfer:
    """Ops of a kernel that transfer a tensor page by page."""

    kernel: Kernel
    function: FuncOp
    operand: int
    direction: _Direction
    count: SSAValue
    """Number of work units of the core."""
    accessor: Operation
    buffer: SSAValue
    moving: tuple[Operation, Operation, Operation]
    """Op that moves a page, and the ops before and after it on the circular buffer."""

    @property
    def constant(self) -> str:
        """Name of the circular buffer's constant in the kernel."""
        name = self._declaration.properties["arg_name"]
        assert isinstance(name, StringAttr)
        return name.data

    @property
    def _declaration(self) -> Operation:
        assert isinstance(self.buffer.owner, Operation)
        return self.buffer.owner

    @classmethod
    def of(
        cls, kernel: Kernel, function: FuncOp, operand: int, direction: _Direction
    ) -> _Transfer | None:
        """Matches the transfer of an operand; None if it is not plain."""
        arguments = _arguments(function)
        values = [argument.value for argument in kernel.arguments]
        if len(arguments) != len(values) or Place.COUNT not in values:
            return None
        address = arguments[values.index(BufferAddress(operand))]
        accessor = _only_user(address, _ACCESSOR)
        move = None if accessor is None else _only_user(accessor.results[0], direction.move)
        if accessor is None or move is None:
            return None
        pointer = _pointer_of(move.operands[2], direction.pointer)
        if pointer is None or not _leads_to(pointer.results[0], move):
            return None
        buffer = pointer.operands[0]
        users = [use.operation for use in buffer.uses]
        by_name = {user.name: user for user in users}
        known = {direction.begin, direction.end, direction.pointer}
        if len(users) != len(by_name) or by_name.keys() != known:
            return None
        begin, end = by_name[direction.begin], by_name[direction.end]
        if begin.parent is not end.parent or not isinstance(buffer.owner, Operation):
            return None
        count = arguments[values.index(Place.COUNT)]
        return cls(
            kernel, function, operand, direction, count, accessor, buffer, (move, begin, end)
        )

    def replace(self, tiles: int) -> Kernel:
        """Replaces the transfer by one push of, or wait for, `tiles` pages per unit.

        Returns the kernel without the arguments that became unused.
        """
        entry = body_of(self.function)
        place = self._insertion_point(entry)
        pages = self.count
        if tiles != 1:
            product = arith.MuliOp(self.count, _number(entry, tiles))
            entry.insert_op_before(product, place)
            pages = product.result
            pages.name_hint = "tiles"
        for number, name in enumerate(self.direction.remaining):
            made = create(name, [self.buffer, pages], {}, [])
            if number == 0:
                made.attributes[COMMENT] = StringAttr(self.direction.remark)
            entry.insert_op_before(made, place)
        for op in self.moving:
            erase(op)
        layout = self.accessor.operands[0]
        erase(self.accessor)
        _remove_layout(layout)
        _clean(entry, self.direction)
        return self._without_unused_arguments(entry)

    def _insertion_point(self, entry: Block) -> Operation:
        """Returns the op before which all pages are pushed or waited for.

        A writer waits last: before, it makes room for tiles of other results that the compute
        kernel packs in between.
        """
        if self.direction is _READING:
            return _ancestor(self.moving[1], entry)
        assert entry.last_op is not None
        return entry.last_op

    def _without_unused_arguments(self, entry: Block) -> Kernel:
        """Returns the kernel with only the arguments that its function reads, renumbered."""
        kept: list[int] = []
        for op in [op for op in entry.walk() if op.name == RUN_TIME_ARGUMENT]:
            position = constant_integer(op.operands[0])
            assert position is not None
            op.operands[0] = _number(entry, len(kept))
            kept.append(position)
        return replace(
            self.kernel,
            arguments=tuple(self.kernel.arguments[position] for position in kept),
            accessors=tuple(each for each in self.kernel.accessors if each != self.operand),
        )


def _arguments(function: FuncOp) -> list[SSAValue]:
    """Returns the run-time arguments in order; none if they are not declared in that order."""
    found = [op for op in function.walk() if op.name == RUN_TIME_ARGUMENT]
    positions = [constant_integer(op.operands[0]) for op in found]
    return [op.results[0] for op in found] if positions == list(range(len(found))) else []


def _only_user(value: SSAValue, name: str) -> Operation | None:
    """Returns the only user of a value, if it has that name."""
    users = [use.operation for use in value.uses]
    return users[0] if len(users) == 1 and users[0].name == name else None


def _pointer_of(address: SSAValue, name: str) -> Operation | None:
    """Returns the op of that name that an address is computed from, through sums."""
    op = address.owner
    if isinstance(op, arith.AddiOp):
        return _pointer_of(op.lhs, name) or _pointer_of(op.rhs, name)
    return op if isinstance(op, Operation) and op.name == name else None


def _leads_to(value: SSAValue, end: Operation) -> bool:
    """Returns whether only that op uses a value, maybe through sums."""
    return all(
        use.operation is end
        or (isinstance(use.operation, arith.AddiOp) and _leads_to(use.operation.result, end))
        for use in value.uses
    )


def _ancestor(op: Operation, block: Block) -> Operation:
    """Returns the op of the block that contains an op, or is it."""
    while op.parent is not block:
        parent = op.parent_op()
        assert parent is not None
        op = parent
    return op


def _number(entry: Block, number: int) -> SSAValue:
    """Returns a constant at the start of a kernel."""
    for op in entry.ops:
        if isinstance(op, arith.ConstantOp) and op.value == IntegerAttr(number, IndexType()):
            return op.result
    made = arith.ConstantOp(IntegerAttr(number, IndexType()))
    assert entry.first_op is not None
    entry.insert_op_before(made, entry.first_op)
    return made.result


def _remove_layout(layout: SSAValue) -> None:
    """Removes the layout of a tensor from the chain of accessor layouts."""
    op = layout.owner
    assert isinstance(op, Operation)
    for after in [use.operation for use in layout.uses]:
        if op.operands:
            after.operands[0] = op.operands[0]
            continue
        first = create("TensorAccessorArgs", [], {"cta_base": 0}, [after.results[0].type])
        first.results[0].name_hint = after.results[0].name_hint
        block = after.parent
        assert block is not None
        block.insert_op_before(first, after)
        after.results[0].replace_all_uses_with(first.results[0])
        erase(after)
    erase(op)


def _clean(block: Block, direction: _Direction) -> None:
    """Erases dead constants, barriers without transfers, and empty loops."""
    is_pending = False
    for op in list(block.ops):
        for region in op.regions:
            for inner in region.blocks:
                _clean(inner, direction)
        if op.name == direction.barrier and not is_pending:
            erase(op)
        elif isinstance(op, scf.ForOp) and not op.results and len(list(op.body.block.ops)) == 1:
            erase(op)
        else:
            is_pending = op.name != direction.barrier and (is_pending or _may_move(op, direction))
    for op in reversed(list(block.ops)):
        if _is_pure(op) and not any(result.uses for result in op.results):
            erase(op)


def _may_move(op: Operation, direction: _Direction) -> bool:
    return any(
        inner.name.startswith((direction.transfers, "ttkernel.blocks."))
        and inner.name != direction.barrier
        for inner in op.walk()
    )


def _is_pure(op: Operation) -> bool:
    return op.name.startswith("arith.") or op.name in _WITHOUT_EFFECT
