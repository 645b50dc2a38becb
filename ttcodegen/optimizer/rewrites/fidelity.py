"""Math fidelity by the precision of the operands."""

from __future__ import annotations

from xdsl.dialects.func import FuncOp

from ttcodegen.dialects.core.datatypes import DataType
from ttcodegen.dialects.operations.compute_config import (
    ComputeConfig,
    ComputeConfigAttr,
    MathFidelity,
)
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.dialects.ttnn.placement import declared_data_type
from ttcodegen.ops.core.calls import COMPUTE_CONFIG_ATTRIBUTE
from ttcodegen.ops.core.definition import call_kind
from ttcodegen.ops.core.traits import CallKind

_NARROW = (DataType.BFLOAT16, DataType.BFLOAT8_B, DataType.BFLOAT4_B)


def choose_fidelities(function: FuncOp) -> None:
    """Convolutions of numbers of 16 bits multiply as often as products of matrices do by default,
    twice, and not four times; their partial sums add up in L1."""
    name = COMPUTE_CONFIG_ATTRIBUTE.name
    config = ComputeConfigAttr(ComputeConfig(MathFidelity.HIFI2, packer_l1_acc=True))
    for op in function.walk():
        if (
            isinstance(op, CatalogueOp)
            and call_kind(op.definition.short_name) is CallKind.CONVOLUTION
            and op.parameter(name) is None
            and all(declared_data_type(value) in _NARROW for value in op.operands)
        ):
            op.properties[name] = config
