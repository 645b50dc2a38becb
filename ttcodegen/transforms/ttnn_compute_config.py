"""Says how the kernels of each call compute, where the library's own choice loses digits."""

from __future__ import annotations

from dataclasses import dataclass, replace

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from ttcodegen.dialects.compute_config import ComputeConfig, ComputeConfigAttr
from ttcodegen.dialects.datatypes import DataType
from ttcodegen.dialects.placement import declared_data_type
from ttcodegen.dialects.system import system_of
from ttcodegen.ops.cpp_calls import COMPUTE_CONFIG_ATTRIBUTE
from ttcodegen.ops.definition import traits_of
from ttcodegen.ops.traits import Trait
from ttcodegen.ops.ttnn import TTNNOp
from ttcodegen.transforms.ttnn_layout import operand_specs

_ARCHITECTURE = "wormhole_b0"
"""What is compiled for if the module does not say."""


_WIDE = (DataType.FLOAT32, DataType.INT32, DataType.UINT32)


@dataclass(frozen=True)
class SetComputeKernelConfig(ModulePass):
    """Calls that touch numbers of 32 bits, floats or integers that travel as such, compute with
    them as exactly as the device can. Calls that have a configuration keep it."""

    name = "ttnn-set-compute-kernel-config"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        system = system_of(op)
        exact = ComputeConfig.exact(_ARCHITECTURE if system is None else system.arch)
        attribute = ComputeConfigAttr(exact)
        narrow = ComputeConfigAttr(replace(exact, fp32_dest_acc_en=False))
        name = COMPUTE_CONFIG_ATTRIBUTE.name
        for call in op.walk():
            if (
                isinstance(call, TTNNOp)
                and COMPUTE_CONFIG_ATTRIBUTE in call.definition.attributes
                and call.parameter(name) is None
                and _has_wide_numbers(call)
            ):
                is_narrow = Trait.NARROW_DESTINATION in traits_of(call.definition)
                call.properties[name] = narrow if is_narrow else attribute


def _has_wide_numbers(op: TTNNOp) -> bool:
    """Whether an operand that is computed with, or a result, has 32 bits an element."""
    computed = [
        value
        for spec, value in zip(operand_specs(op), op.operands, strict=True)
        if spec.data_types is None or any(data_type.is_float for data_type in spec.data_types)
    ]
    return any(declared_data_type(value) in _WIDE for value in (*computed, *op.results))
