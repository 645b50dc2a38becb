"""Detection of loop-invariant constants of host functions.

Values computed from weights and constants alone are the same in each call, so that the C++ computes
them once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import Block, Operation, SSAValue

from ttcodegen.dialects.operations.functions import argument_type, body_of, callee_of
from ttcodegen.dialects.operations.operation import CatalogueOp, operation_name
from ttcodegen.dialects.ttcore.device import ONE_CHIP, declared_mesh
from ttcodegen.dialects.ttcore.dialect import ArgumentType
from ttcodegen.dialects.ttmetal.device_module import functions_of, launch_of
from ttcodegen.dialects.ttmetal.programs import (
    CONSTANT,
    CREATE_BUFFER,
    DEALLOCATE_BUFFER,
    ENQUEUE_READ_BUFFER,
    ENQUEUE_WRITE_BUFFER,
    RUN_PROGRAM,
    VIEW,
)
from ttcodegen.dialects.ttnn.placement import has_placement, placement_of
from ttcodegen.ops.core.definition import TTNNDefinition, library_definition
from ttcodegen.ops.tt_lang import CALLED_OPERATION

_WEIGHTS = (ArgumentType.PARAMETER, ArgumentType.CONSTANT)
_COMPUTING = frozenset({CONSTANT, ENQUEUE_READ_BUFFER, ENQUEUE_WRITE_BUFFER, RUN_PROGRAM, VIEW})


@dataclass(frozen=True)
class DeviceConstants:
    """Loop-invariant part of a host function: ops that run once, not in each call."""

    ops: tuple[Operation, ...]
    """Hoisted ops in program order, including module constants and the deallocations of buffers
    that only hoisted ops use.
    """
    values: tuple[SSAValue, ...]
    """Results of hoisted ops that the remaining ops read, in device DRAM."""


def device_constants(function: FuncOp) -> DeviceConstants:
    """Collects the loop-invariant ops and values of a host function.

    Excludes returned tensors, which the caller may overwrite, tensors that are overwritten in
    place, and L1 tensors that the remaining ops read, whose memory would never be freed.
    """
    host = _HostFunction(function)
    block, roots = host.block, host.roots
    excluded: set[Operation] = set()
    prepared = host.fixed_ops(excluded)
    while found := _unsuitable(block, roots, prepared):
        # Ops that read an excluded result cannot be hoisted either.
        excluded |= found
        prepared = host.fixed_ops(excluded)
    kept = set(_live_results(block, prepared))
    kept_roots = {roots[value] for value in kept}
    ops = tuple(op for op in block.ops if _is_hoisted(op, prepared, roots, kept_roots))
    return DeviceConstants(ops, tuple(v for op in ops for v in op.results if v in kept))


def written_by(op: Operation) -> tuple[SSAValue, ...]:
    """Returns the tensors that an op of a host function writes."""
    name = operation_name(op)
    if name == RUN_PROGRAM:
        return launch_of(op).outputs
    return (op.operands[-1],) if name == ENQUEUE_WRITE_BUFFER else ()


class _HostFunction:
    """Reads and writes of the ops of a host function."""

    def __init__(self, function: FuncOp) -> None:
        self.block = block = body_of(function)
        self.roots = _roots(block)
        """Maps each value to the tensor whose buffer it views."""
        self._writers = Counter(self.roots[v] for op in block.ops for v in written_by(op))
        terminator = block.last_op
        assert terminator is not None
        self._returned = {self.roots[value] for value in terminator.operands}
        self._weights = {
            argument
            for argument in block.args
            if argument_type(function, argument.index) in _WEIGHTS and argument not in self._writers
        }
        module = function.parent_op()
        known = functions_of(module) if isinstance(module, ModuleOp) else ()
        self._symbols = {each.sym_name.data: each for each in known}
        self._candidates = [op for op in block.ops if self._may_be_fixed(op)]

    def fixed_ops(self, excluded: Collection[Operation]) -> set[Operation]:
        """Returns the ops that depend on weights and constants only, without the excluded ones."""
        fixed: set[SSAValue] = set(self._weights)
        found: set[Operation] = set()
        for op in self._candidates:
            written = [self.roots[value] for value in written_by(op)]
            read = op.operands[: len(op.operands) - len(written)]
            if op not in excluded and all(self._is_fixed(value, fixed, found) for value in read):
                found.add(op)
                fixed.update(written, map(self.roots.__getitem__, op.results))
                found.update(root.owner for root in written if isinstance(root.owner, Operation))
        return found

    def _is_fixed(
        self, value: SSAValue, fixed: Collection[SSAValue], found: Collection[Operation]
    ) -> bool:
        """True if a value views a fixed tensor and is not a view created in each call."""
        owner = value.owner
        is_view = isinstance(owner, Operation) and operation_name(owner) == VIEW
        return self.roots[value] in fixed and (not is_view or owner in found)

    def _may_be_fixed(self, op: Operation) -> bool:
        """True if an op is pure and solely writes new tensors that are not returned."""
        name = operation_name(op)
        if name not in _COMPUTING and not isinstance(op, CallOp):
            return False
        written = [self.roots[value] for value in written_by(op)]
        made = (*written, *(self.roots[value] for value in op.results))
        if not self._returned.isdisjoint(made):
            return False
        if name == CONSTANT and op.results[0] in self._writers:
            return False
        return all(map(self._is_written_once, written)) and self._is_pure(op)

    def _is_written_once(self, root: SSAValue) -> bool:
        maker = root.owner
        is_new = isinstance(maker, Operation) and operation_name(maker) == CREATE_BUFFER
        return is_new and self._writers[root] == 1

    def _is_pure(self, op: Operation) -> bool:
        """True if the function that an op runs is known and has no side effects."""
        if operation_name(op) == RUN_PROGRAM:
            meaning = self._symbols.get(launch_of(op).meaning)
        elif isinstance(op, CallOp):
            if declared_mesh(op) != ONE_CHIP:
                # Devices may exchange the arguments of the function.
                return False
            meaning = self._symbols.get(callee_of(op) or "")
        else:
            return True
        if meaning is None or meaning.is_declaration:
            return False
        return all(map(_has_no_side_effects, body_of(meaning).ops))


def _roots(block: Block) -> dict[SSAValue, SSAValue]:
    roots: dict[SSAValue, SSAValue] = {argument: argument for argument in block.args}
    for op in block.ops:
        is_view = operation_name(op) == VIEW
        for result in op.results:
            roots[result] = roots[op.operands[0]] if is_view else result
    return roots


def _has_no_side_effects(op: Operation) -> bool:
    if not isinstance(op, CatalogueOp):
        return True
    definition = library_definition(op)
    is_pure = not isinstance(definition, TTNNDefinition) or definition.pure
    return is_pure and op.definition.in_place is None and op.name != CALLED_OPERATION


def _unsuitable(
    block: Block, roots: Mapping[SSAValue, SSAValue], prepared: Collection[Operation]
) -> set[Operation]:
    """Returns hoisted ops whose results the remaining ops read but that cannot be held.

    These are on the host, in L1, or views of a weight.
    """
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
    """True if an op that is not hoisted reads a value."""
    return any(
        use.operation not in prepared and operation_name(use.operation) != DEALLOCATE_BUFFER
        for use in value.uses
    )


def _live_results(block: Block, prepared: Collection[Operation]) -> Iterable[SSAValue]:
    for op in block.ops:
        if op in prepared:
            yield from (result for result in op.results if _is_used_later(result, prepared))


def _is_hoisted(
    op: Operation,
    prepared: Collection[Operation],
    roots: Mapping[SSAValue, SSAValue],
    kept: Collection[SSAValue],
) -> bool:
    if operation_name(op) != DEALLOCATE_BUFFER:
        return op in prepared
    root = roots[op.operands[0]]
    return root.owner in prepared and root not in kept
