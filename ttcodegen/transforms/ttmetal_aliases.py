"""Circular buffers that lie in the shards of tensors in L1.

Where each core has exactly the tiles of an operand that it works on, in the order in which it does,
the circular buffer that they come through needs no memory of its own, and nothing is copied: its
pages are those of the shard, and the reader hands all of them on at once.
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

from ttcodegen.dialects.device_module import Launch, functions_of, is_host_function, launches
from ttcodegen.dialects.functions import body_of
from ttcodegen.dialects.placement import placement_of
from ttcodegen.dialects.programs import (
    BufferAddress,
    Kernel,
    Place,
    Processor,
    Program,
    ProgramAttr,
    UnitTiles,
)
from ttcodegen.dialects.tile import TILE_SIDE
from ttcodegen.dialects.ttkernel.operation import COMMENT, constant_integer, create
from ttcodegen.dialects.tuning import Name, Rule, equal
from ttcodegen.transforms.rewriting import erase
from ttcodegen.transforms.ttmetal_shards import CoreTiles, lies_in_order

_ARGUMENT, _ARGUMENTS = "ttkernel.get_arg_val", "ttkernel.TensorAccessorArgs"
_ACCESSOR, _POINTER = "ttkernel.TensorAccessor", "ttkernel.get_write_ptr"
_READ, _BARRIER = "ttkernel.noc_async_read_page", "ttkernel.noc_async_read_barrier"
_RESERVE, _PUSH = "ttkernel.cb_reserve_back", "ttkernel.cb_push_back"
_WITHOUT_EFFECT = frozenset({_ARGUMENT, _ACCESSOR, _POINTER})
"""Ops that nothing needs once their results are not used; so are those of arith."""


@dataclass(frozen=True)
class AliasBuffers(ModulePass):
    """Lets circular buffers of readers lie in the shards of what is read, where that is all that
    the cores need; not of operands that are to be streamed."""

    name = "ttmetal-alias-buffers"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        functions = {function.sym_name.data: function for function in functions_of(op)}
        hosts = [function for function in functions.values() if is_host_function(function)]
        for launch in launches(hosts):
            program = launch.program
            for operand in _resident(launch):
                program = _aliased(program, operand, launch, functions)
            launch.op.properties["program"] = ProgramAttr(program)


def _resident(launch: Launch) -> Iterator[int]:
    """The inputs of which each core has what it needs."""
    program = launch.program
    for operand, (value, traffic) in enumerate(zip(launch.inputs, program.traffic, strict=False)):
        needs = CoreTiles.of(program, operand)
        if not traffic.streamed and lies_in_order(placement_of(value), needs):
            yield operand


def _aliased(
    program: Program, operand: int, launch: Launch, functions: Mapping[str, FuncOp]
) -> Program:
    """The program with the circular buffer of an operand in its shards; as it is if its reader does
    something else with the tiles than to hand them on."""
    readers = [kernel for kernel in program.kernels if operand in kernel.accessors]
    if len(readers) != 1 or readers[0].processor is not Processor.READER:
        return program
    [kernel] = readers
    bringing = _Bringing.of(kernel, functions[kernel.function], operand)
    buffer = None if bringing is None else program.buffers_of(kernel).get(bringing.constant)
    if bringing is None or buffer is None:
        return program
    traffic = program.traffic[operand]
    shards = placement_of(launch.op.operands[operand]).shards
    assert shards is not None
    assert isinstance(traffic.division, UnitTiles)
    rows, columns = (size // TILE_SIDE for size in shards.shape)
    changed = bringing.replace(traffic.division.tiles)
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
        tuning=replace(program.tuning, rules=(*program.tuning.rules, *_rules(program))),
    )


def _rules(program: Program) -> Iterator[Rule]:
    """The cores that have the shards are those that the program runs on."""
    for setting in program.tuning.settings:
        if setting.name in ("grid_columns", "grid_rows"):
            message = (
                f"{setting.name} is {setting.value}: the L1 of these cores holds what they read"
            )
            rule = Rule(equal(Name(setting.name), setting.value), message)
            if rule not in program.tuning.rules:
                yield rule


@dataclass
class _Bringing:
    """The ops of a reader that bring a tensor page by page."""

    kernel: Kernel
    function: FuncOp
    operand: int
    count: SSAValue
    """How many units of work the core has."""
    accessor: Operation
    read: Operation
    buffer: SSAValue
    reserve: Operation
    push: Operation

    @property
    def constant(self) -> str:
        """What the kernel calls the circular buffer."""
        name = self._declaration.properties["arg_name"]
        assert isinstance(name, StringAttr)
        return name.data

    @property
    def _declaration(self) -> Operation:
        assert isinstance(self.buffer.owner, Operation)
        return self.buffer.owner

    @classmethod
    def of(cls, kernel: Kernel, function: FuncOp, operand: int) -> _Bringing | None:
        """What brings an operand; None if that is done in several places, or more is done."""
        arguments = _arguments(function)
        values = [argument.value for argument in kernel.arguments]
        if len(arguments) != len(values) or Place.COUNT not in values:
            return None
        address = arguments[values.index(BufferAddress(operand))]
        accessor = _only_user(address, _ACCESSOR)
        read = None if accessor is None else _only_user(accessor.results[0], _READ)
        if accessor is None or read is None:
            return None
        pointer = _pointer_of(read.operands[2])
        if pointer is None or not _leads_to(pointer.results[0], read):
            return None
        buffer = pointer.operands[0]
        users = [use.operation for use in buffer.uses]
        by_name = {user.name: user for user in users}
        if len(users) != len(by_name) or by_name.keys() != {_PUSH, _RESERVE, _POINTER}:
            return None
        reserve, push = by_name[_RESERVE], by_name[_PUSH]
        if reserve.parent is not push.parent or not isinstance(buffer.owner, Operation):
            return None
        count = arguments[values.index(Place.COUNT)]
        return cls(kernel, function, operand, count, accessor, read, buffer, reserve, push)

    def replace(self, tiles: int) -> Kernel:
        """Pushes all pages at once, so many for each unit; says what the kernel still needs."""
        entry = body_of(self.function)
        place = _ancestor(self.reserve, entry)
        pages = self.count
        if tiles != 1:
            product = arith.MuliOp(self.count, _number(entry, tiles))
            entry.insert_op_before(product, place)
            pages = product.result
            pages.name_hint = "tiles"
        for name in ("cb_reserve_back", "cb_push_back"):
            made = create(name, [self.buffer, pages], {}, [])
            if name == "cb_reserve_back":
                made.attributes[COMMENT] = StringAttr("These tiles are in the L1 of the core.")
            entry.insert_op_before(made, place)
        for op in (self.read, self.reserve, self.push):
            erase(op)
        layout = self.accessor.operands[0]
        erase(self.accessor)
        _unchain(layout)
        _clean(entry)
        return self._needed(entry)

    def _needed(self, entry: Block) -> Kernel:
        """The kernel with the arguments that its function still has, numbered again."""
        kept: list[int] = []
        for op in [op for op in entry.walk() if op.name == _ARGUMENT]:
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
    """The run-time arguments in the order of their positions; none if they are not declared in that
    order."""
    found = [op for op in function.walk() if op.name == _ARGUMENT]
    positions = [constant_integer(op.operands[0]) for op in found]
    return [op.results[0] for op in found] if positions == list(range(len(found))) else []


def _only_user(value: SSAValue, name: str) -> Operation | None:
    """The op of that name that alone uses a value."""
    users = [use.operation for use in value.uses]
    return users[0] if len(users) == 1 and users[0].name == name else None


def _pointer_of(address: SSAValue) -> Operation | None:
    """The op that says where a circular buffer is, of an address in it."""
    op = address.owner
    if isinstance(op, arith.AddiOp):
        return _pointer_of(op.lhs) or _pointer_of(op.rhs)
    return op if isinstance(op, Operation) and op.name == _POINTER else None


def _leads_to(value: SSAValue, end: Operation) -> bool:
    """Whether a value serves an op only, perhaps by sums."""
    return all(
        use.operation is end
        or (isinstance(use.operation, arith.AddiOp) and _leads_to(use.operation.result, end))
        for use in value.uses
    )


def _ancestor(op: Operation, block: Block) -> Operation:
    """The op of a block that holds an op, or is it."""
    while op.parent is not block:
        parent = op.parent_op()
        assert parent is not None
        op = parent
    return op


def _number(entry: Block, number: int) -> SSAValue:
    """A constant at the start of a kernel."""
    for op in entry.ops:
        if isinstance(op, arith.ConstantOp) and op.value == IntegerAttr(number, IndexType()):
            return op.result
    made = arith.ConstantOp(IntegerAttr(number, IndexType()))
    assert entry.first_op is not None
    entry.insert_op_before(made, entry.first_op)
    return made.result


def _unchain(layout: SSAValue) -> None:
    """Takes the layout of a tensor out of those that follow each other."""
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


def _clean(block: Block) -> None:
    """Takes out what has no purpose any more: numbers, barriers and loops."""
    is_pending = False
    for op in list(block.ops):
        for region in op.regions:
            for inner in region.blocks:
                _clean(inner)
        if op.name == _BARRIER and not is_pending:
            erase(op)
        elif isinstance(op, scf.ForOp) and not op.results and len(list(op.body.block.ops)) == 1:
            erase(op)
        else:
            is_pending = op.name != _BARRIER and (is_pending or _may_read(op))
    for op in reversed(list(block.ops)):
        if _is_pure(op) and not any(result.uses for result in op.results):
            erase(op)


def _may_read(op: Operation) -> bool:
    return any(
        inner.name.startswith(("ttkernel.noc_async_read", "ttkernel.blocks."))
        and inner.name != _BARRIER
        for inner in op.walk()
    )


def _is_pure(op: Operation) -> bool:
    return op.name.startswith("arith.") or op.name in _WITHOUT_EFFECT
