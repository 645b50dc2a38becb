"""What a host function of device programs computes from weights and constants alone: that is the
same in each call, so C++ computes it once."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import Block, Operation, SSAValue

from ttcodegen.dialects.device_module import functions_of, launch_of
from ttcodegen.dialects.device_op_names import (
    CONSTANT,
    CREATE_BUFFER,
    DEALLOCATE_BUFFER,
    ENQUEUE_READ_BUFFER,
    ENQUEUE_WRITE_BUFFER,
    RUN_PROGRAM,
    VIEW,
)
from ttcodegen.dialects.functions import argument_type, body_of, callee_of
from ttcodegen.dialects.mesh import ONE_CHIP, declared_mesh
from ttcodegen.dialects.operation import CatalogueOp, operation_name
from ttcodegen.dialects.placement import has_placement, placement_of
from ttcodegen.dialects.ttcore import ArgumentType
from ttcodegen.ops.definition import TTNNDefinition, library_definition
from ttcodegen.ops.tt_lang import CALLED_OPERATION

_WEIGHTS = (ArgumentType.PARAMETER, ArgumentType.CONSTANT)


@dataclass(frozen=True)
class DeviceConstants:
    """The part of a host function that runs once."""

    ops: tuple[Operation, ...]
    """In order, with the constants of the module, and with the ops that give memory back which
    nothing else uses."""
    values: tuple[SSAValue, ...]
    """The tensors that the rest of the function uses, in DRAM of the device."""


def device_constants(function: FuncOp) -> DeviceConstants:
    """What of a host function is the same in each call.

    Not what it returns, which its caller may overwrite, nor what is overwritten itself, and no
    tensor in L1 that the rest of the function uses: the memory would never be free again.
    """
    block = body_of(function)
    roots = _roots(block)
    excluded: set[Operation] = set()
    prepared = _fixed_ops(function, block, roots, excluded)
    while found := _unsuitable(block, roots, prepared):
        # What is made of their results has to wait for them.
        excluded |= found
        prepared = _fixed_ops(function, block, roots, excluded)
    kept = set(_kept(block, prepared))
    kept_roots = {roots[value] for value in kept}
    ops = tuple(op for op in block.ops if _is_done_once(op, prepared, roots, kept_roots))
    return DeviceConstants(ops, tuple(v for op in ops for v in op.results if v in kept))


def _roots(block: Block) -> dict[SSAValue, SSAValue]:
    """The tensor whose memory each value has."""
    roots: dict[SSAValue, SSAValue] = {argument: argument for argument in block.args}
    for op in block.ops:
        is_view = operation_name(op) == VIEW
        for result in op.results:
            roots[result] = roots[op.operands[0]] if is_view else result
    return roots


def written_by(op: Operation) -> tuple[SSAValue, ...]:
    """The tensors that an op of a host function writes."""
    match operation_name(op):
        case name if name == RUN_PROGRAM:
            return launch_of(op).outputs
        case name if name == ENQUEUE_WRITE_BUFFER:
            return (op.operands[-1],)
        case _:
            return ()


def _fixed_ops(
    function: FuncOp,
    block: Block,
    roots: Mapping[SSAValue, SSAValue],
    excluded: Collection[Operation],
) -> set[Operation]:
    """The ops whose results depend on weights and constants alone, and not on those excluded."""
    writers: dict[SSAValue, int] = {}
    for op in block.ops:
        for value in written_by(op):
            writers[roots[value]] = writers.get(roots[value], 0) + 1
    terminator = block.last_op
    assert terminator is not None
    returned = {roots[value] for value in terminator.operands}
    fixed: set[SSAValue] = {
        argument
        for argument in block.args
        if argument_type(function, argument.index) in _WEIGHTS and argument not in writers
    }
    module = function.parent_op()
    symbols = (
        {f.sym_name.data: f for f in functions_of(module)} if isinstance(module, ModuleOp) else {}
    )
    found: set[Operation] = set()
    for op in block.ops:
        if op in excluded:
            continue
        name = operation_name(op)
        written = [roots[value] for value in written_by(op)]
        if name in (RUN_PROGRAM, ENQUEUE_WRITE_BUFFER):
            read = op.operands[: len(op.operands) - len(written)]
            is_new = all(
                writers[root] == 1
                and root not in returned
                and isinstance(root.owner, Operation)
                and operation_name(root.owner) == CREATE_BUFFER
                for root in written
            )
            if not is_new or not _is_pure(op, symbols):
                continue
        elif name in (VIEW, ENQUEUE_READ_BUFFER) or isinstance(op, CallOp):
            read = op.operands
            if returned.intersection(map(roots.__getitem__, op.results)):
                continue
            if isinstance(op, CallOp) and not _is_pure(op, symbols):
                continue
        elif name == CONSTANT and not returned.intersection(op.results):
            read = ()
            if writers.get(op.results[0]):
                continue
        else:
            continue
        if all(roots[value] in fixed for value in read):
            found.add(op)
            fixed.update(written)
            fixed.update(map(roots.__getitem__, op.results))
            found.update(root.owner for root in written if isinstance(root.owner, Operation))
    return found


def _is_pure(op: Operation, symbols: Mapping[str, FuncOp]) -> bool:
    """Whether an op computes the same from the same, and that is known."""
    if operation_name(op) == RUN_PROGRAM:
        meaning = symbols.get(launch_of(op).meaning)
    elif isinstance(op, CallOp):
        if declared_mesh(op) != ONE_CHIP:
            # Chips may exchange what the function is called with.
            return False
        meaning = symbols.get(callee_of(op) or "")
    else:
        return True
    if meaning is None or meaning.is_declaration:
        return False
    return all(map(_gives_the_same, body_of(meaning).ops))


def _gives_the_same(op: Operation) -> bool:
    if not isinstance(op, CatalogueOp):
        return True
    definition = library_definition(op)
    is_pure = not isinstance(definition, TTNNDefinition) or definition.pure
    return is_pure and op.definition.in_place is None and op.name != CALLED_OPERATION


def _unsuitable(
    block: Block, roots: Mapping[SSAValue, SSAValue], prepared: Collection[Operation]
) -> set[Operation]:
    """The ops whose results the rest of the function uses, but cannot be handed to it: those on the
    host, in L1, or that are only another shape of a weight."""
    rest = set(prepared)
    found: set[Operation] = set()
    for op in reversed(list(block.ops)):
        if op in rest and operation_name(op) != CREATE_BUFFER:
            made = (*written_by(op), *op.results)
            if any(_is_used_later(v, rest) and not _can_be_held(v, roots) for v in made):
                found.add(op)
                rest.discard(op)
    return found


def _can_be_held(value: SSAValue, roots: Mapping[SSAValue, SSAValue]) -> bool:
    if not has_placement(value) or placement_of(value).buffer_type != "dram":
        return False
    owner = value.owner
    if isinstance(owner, Operation) and operation_name(owner) == VIEW:
        root = roots[value].owner
        return isinstance(root, Operation) and operation_name(root) == CREATE_BUFFER
    return True


def _is_used_later(value: SSAValue, prepared: Collection[Operation]) -> bool:
    """Whether the rest of the function uses a value."""
    return any(
        use.operation not in prepared and operation_name(use.operation) != DEALLOCATE_BUFFER
        for use in value.uses
    )


def _kept(block: Block, prepared: Collection[Operation]) -> Iterable[SSAValue]:
    for op in block.ops:
        if op in prepared:
            yield from (result for result in op.results if _is_used_later(result, prepared))


def _is_done_once(
    op: Operation,
    prepared: Collection[Operation],
    roots: Mapping[SSAValue, SSAValue],
    kept: Collection[SSAValue],
) -> bool:
    if operation_name(op) != DEALLOCATE_BUFFER:
        return op in prepared
    root = roots[op.operands[0]]
    return root.owner in prepared and root not in kept
