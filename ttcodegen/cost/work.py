"""Device-independent work of an op: data moved and operations computed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import ttcodegen.ops as catalogue
from ttcodegen.dialects.ttnn.placement import TensorPlacement
from ttcodegen.flatbuffer import program as file
from ttcodegen.layout.placements import stored_bytes
from ttcodegen.ops.core.definition import TTNN
from ttcodegen.ops.core.traits import OpShapes, one_per_element

_QUICK = 200_000_000
"""Operations and bytes."""


@dataclass(frozen=True)
class Cost:
    """The work of an op."""

    moved: int
    """Bytes of operands and results, each once, as stored in memory."""
    flops: int
    """Multiplications and additions, and the like on integers."""

    def __add__(self, other: Cost) -> Cost:
        return Cost(self.moved + other.moved, self.flops + other.flops)


def cost_of(program: file.Program, operation: file.Operation) -> Cost:
    """The work of an op of a program; nothing for calls, whose ops are counted themselves."""
    name = operation.name.partition(".")[2]
    if operation.callee is not None or name == "deallocate":
        return Cost(0, 0)
    operands = [program.tensors[tensor].type.placement for tensor in operation.operands]
    results = [program.tensors[tensor].type.placement for tensor in operation.results]
    return call_work(name, operands, results, _attributes(operation))


def runs_quickly(binary: object) -> bool:
    """True if numpy and the C++ run a lowered program in less than a fifth of the time of the
    shortest build; never of the emulated device, which takes longer."""
    if not isinstance(binary, file.Binary):
        return False
    costs = (cost_of(each, op) for each in binary.programs for op in each.operations)
    return sum(cost.flops + cost.moved for cost in costs) <= _QUICK


def call_work(
    name: str,
    operands: Sequence[TensorPlacement],
    results: Sequence[TensorPlacement],
    attributes: Mapping[str, Any],
) -> Cost:
    """The work of a call of the library; `attributes`: at least those that are numbers, booleans
    and lists of integers."""
    moved = sum(stored_bytes(placement) for placement in (*operands, *results))
    if not operands or not results:
        return Cost(moved, 0)
    catalogue.load()
    definition = TTNN.get(name)
    rule = one_per_element if definition is None else definition.flops
    shapes = OpShapes(attributes, [o.shape for o in operands], [r.shape for r in results])
    return Cost(moved, rule(shapes))


def _attributes(operation: file.Operation) -> Mapping[str, Any]:
    found: dict[str, Any] = {}
    for attribute in operation.attributes:
        value = attribute.value
        if isinstance(value, file.Integers):
            found[attribute.name] = value.values
        elif isinstance(value, file.Integer | file.Boolean):
            found[attribute.name] = value.value
    return found
