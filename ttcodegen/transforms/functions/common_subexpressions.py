"""Merges ops that compute the same from the same."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Block, Operation
from xdsl.passes import ModulePass

from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.transforms.rewriting import (
    InPlaceWrites,
    erase,
    function_blocks,
    functions,
    is_repeatable,
)


class _Identities:
    """Numbers attributes such that equal ones have one number; most are the same object."""

    def __init__(self) -> None:
        self._by_value: dict[Attribute, int] = {}
        self._by_identity: dict[int, tuple[int, Attribute]] = {}

    def __getitem__(self, attribute: Attribute) -> int:
        found = self._by_identity.get(id(attribute))
        if found is None:
            number = self._by_value.setdefault(attribute, len(self._by_value))
            # Holding the attribute keeps its identity from being given to another one.
            found = self._by_identity[id(attribute)] = (number, attribute)
        return found[0]


def merge_common_subexpressions(function: FuncOp) -> list[Operation]:
    """Replaces equal ops by the first of them; returns the users of what was merged.

    Ops on both sides of a write to what they read are not equal.
    """
    identities = _Identities()
    users: dict[Operation, None] = {}
    for block in function_blocks(function):
        _merge(block, identities, users)
    return list(users)


def _merge(block: Block, identities: _Identities, users: dict[Operation, None]) -> None:
    writes = InPlaceWrites(block)
    first: dict[tuple[object, ...], CatalogueOp] = {}
    op = block.first_op
    while op is not None:
        following = op.next_op
        if isinstance(op, CatalogueOp) and is_repeatable(op):
            known = first.setdefault(_key(op, identities, writes), op)
            if known is not op:
                for old, new in zip(op.results, known.results, strict=True):
                    users.update((use.operation, None) for use in old.uses)
                    old.replace_all_uses_with(new)
                erase(op)
                users.pop(op, None)
        op = following


def _key(op: CatalogueOp, identities: _Identities, writes: InPlaceWrites) -> tuple[object, ...]:
    attributes = [(name, identities[value]) for name, value in op.properties.items()]
    attributes += [(name, identities[value]) for name, value in op.attributes.items()]
    attributes.sort()
    return (
        op.name,
        *(id(operand) for operand in op.operands),
        *attributes,
        *(identities[result.type] for result in op.results),
        writes.versions(op),
    )


@dataclass(frozen=True)
class CommonSubexpressionElimination(ModulePass):
    """Merges equal ops in every function.

    Raises CompileError if tensors are deallocated already: the one that would replace the others
    may be gone where another one is used.
    """

    name = "cse"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in functions(op):
            for inner in function.walk():
                if inner.name == "ttnn.deallocate":
                    raise CompileError(
                        "equal ops cannot be merged where tensors are deallocated",
                        inner,
                        remedy="run cse before ttnn-deallocate",
                    )
            merge_common_subexpressions(function)
