"""True if the calls of a function fit into L1 as the allocator lays their tensors out.

Tensors come and go and leave gaps: a call may find enough bytes free, but not in one piece.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.ir import Operation, SSAValue

from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.dialects.ttnn.placement import TensorPlacement
from ttcodegen.layout.device import Bank
from ttcodegen.optimizer.core.call import LibraryCall, call_of
from ttcodegen.optimizer.core.candidate import Way
from ttcodegen.optimizer.cost.calls import CostModel, is_view


class _Tensors:
    """The tensors that are in L1 at one time."""

    def __init__(self, model: CostModel) -> None:
        self.bank = Bank(model.speed.usable_l1)
        self._model = model
        self._blocks: dict[SSAValue, tuple[int, int]] = {}
        self._sharers: dict[tuple[int, int], int] = {}

    def put(self, value: SSAValue, placement: TensorPlacement) -> None:
        """Makes a tensor, in place of where it lay before."""
        size = self._model.bank_bytes(placement)
        block = self.bank.allocate(size) if size else None
        self.drop(value)
        if block is not None:
            self._blocks[value] = block
            self._sharers[block] = 1

    def share(self, value: SSAValue, source: SSAValue) -> None:
        """Makes a tensor that is another one under a new shape."""
        if (block := self._blocks.get(source)) is not None:
            self._blocks[value] = block
            self._sharers[block] += 1

    def drop(self, value: SSAValue) -> None:
        """Lets go of a tensor."""
        block = self._blocks.pop(value, None)
        if block is not None:
            self._sharers[block] -= 1
            if not self._sharers[block]:
                del self._sharers[block]
                self.bank.free(block)


def shortages(
    decisions: Sequence[tuple[Operation, Way, Sequence[tuple[SSAValue, TensorPlacement]]]],
    last_use: Mapping[SSAValue, int],
    model: CostModel,
) -> dict[Operation, int]:
    """By call that does not fit, how many bytes of L1 are missing.

    Args:
        decisions: the ops of a function, how each is made, and what is moved before it.
        last_use: by value the index of the last op that uses it.
        model: of cost.
    """
    tensors = _Tensors(model)
    missing: dict[Operation, int] = {}
    for index, (op, way, moves) in enumerate(decisions):
        for value, placement in moves:
            tensors.put(value, placement)
        if isinstance(op, CatalogueOp):
            short = _make(tensors, op, way, model)
            if short > 0:
                missing[op] = short
        for value in (*op.operands, *op.results):
            if last_use.get(value, -1) <= index and (value in last_use or value in op.operands):
                tensors.drop(value)
    return missing


def _make(tensors: _Tensors, op: CatalogueOp, way: Way, model: CostModel) -> int:
    """Puts the results of a call where they go; the bytes that are missing while it runs."""
    declared = call_of(op)
    chosen = len(way.operands) == len(declared.operands)
    call = LibraryCall(
        declared.name,
        way.operands if chosen else declared.operands,
        way.results,
        {**declared.attributes, **way.attributes},
    )
    if call.results and is_view(call):
        tensors.share(op.results[0], op.operands[0])
        return 0
    cost = model.cost(call)
    halo = tensors.bank.allocate(cost.intermediates) if cost.intermediates else None
    for result, placement in zip(op.results, way.results, strict=False):
        tensors.put(result, placement)
    uses_l1 = any(p.buffer_type == "l1" for p in (*call.operands, *call.results))
    short = cost.circular_buffers - tensors.bank.lowest if uses_l1 else 0
    if halo is not None:
        tensors.bank.free(halo)
    return max(short, -tensors.bank.lowest)
