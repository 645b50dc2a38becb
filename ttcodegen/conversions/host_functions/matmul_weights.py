"""The weights of products of matrices, whose data type a person may choose."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.ir import Operation, OpResult, SSAValue

from ttcodegen.conversions.host_functions.interface import Entry
from ttcodegen.dialects.core.datatypes import DataType
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.dialects.ttcore.memory import Layout
from ttcodegen.dialects.ttnn.placement import placement_of
from ttcodegen.ops.core.definition import has_trait, traits_of
from ttcodegen.ops.core.traits import Trait
from ttcodegen.transforms.rebuilding import body_of


@dataclass(frozen=True)
class ProductWeights:
    """The weights of products of matrices whose data type is one constant."""

    data_type: DataType | None
    """What they are held as; None if there are none."""
    arguments: frozenset[SSAValue]
    """Those that functions are given."""
    makers: frozenset[Operation]
    """Ops of the preparation that give others their data type: constants and conversions."""


def product_weights(entries: Sequence[Entry]) -> ProductWeights:
    """The weights that nothing but products use, as their second operand.

    If they are of several data types, those of the type that most are of.
    """
    arguments: list[tuple[DataType, SSAValue]] = []
    makers: list[tuple[DataType, Operation]] = []
    for entry in entries:
        for tensor in entry.weights:
            placement = placement_of(tensor.value)
            if _is_product_weight(tensor.value) and placement.layout is Layout.TILE:
                arguments.append((placement.data_type, tensor.value))
        if entry.load is None or entry.const_eval is None:
            continue
        returned = body_of(entry.const_eval).last_op
        assert returned is not None
        for held, value in zip(entry.load.results, returned.operands, strict=True):
            maker = _maker(value)
            if maker is not None and _is_product_weight(held):
                makers.append((placement_of(held).data_type, maker))
    counts = Counter(data_type for data_type, _ in [*arguments, *makers])
    if not counts:
        return ProductWeights(None, frozenset(), frozenset())
    ((most, _),) = counts.most_common(1)
    return ProductWeights(
        most,
        frozenset(value for data_type, value in arguments if data_type is most),
        frozenset(op for data_type, op in makers if data_type is most),
    )


def _is_product_weight(value: SSAValue) -> bool:
    uses = list(value.uses)
    return bool(uses) and all(
        has_trait(use.operation, Trait.MATRIX_PRODUCT) and use.index == 1 for use in uses
    )


def _maker(value: SSAValue) -> Operation | None:
    """The op that gives a value its data type, if it is one that can give it another."""
    while isinstance(value, OpResult) and _is_used_once(value):
        if value.op.name in ("ttnn.constant", "ttnn.typecast"):
            return value.op
        maker = value.op
        if not isinstance(maker, CatalogueOp) or Trait.PLACES not in traits_of(maker.definition):
            return None
        value = maker.operands[0]
    return None


def _is_used_once(value: SSAValue) -> bool:
    return sum(use.operation.name != "ttnn.deallocate" for use in value.uses) == 1
