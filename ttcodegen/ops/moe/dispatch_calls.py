"""Calls of the library that bring tokens to the devices of their experts and back.

They move rows of bf16, of tokens that are counted over all devices along an axis. Signatures and
what they refuse: tt-metal 0.70.1, `ttnn/operations/ccl/all_to_all_dispatch` and
`all_to_all_combine`.
"""

from __future__ import annotations

from ttcodegen.dialects.core.datatypes import DataType
from ttcodegen.dialects.operations.operation import CatalogueOp, OperandSpec
from ttcodegen.ops.core.calls import (
    CppCalls,
    Text,
    attribute_,
    bind_elements,
    cpp_call,
    cpp_text,
    nullopt,
    operand_,
)
from ttcodegen.ops.core.definition import Layout, ResultRule, TTNNDefinition, register
from ttcodegen.ops.core.traits import CallKind, Trait
from ttcodegen.ops.moe.dispatch import (
    COMBINE,
    TRAVEL,
    combine,
    combine_on_chips,
    dispatch,
    dispatch_on_chips,
    verify_combine,
    verify_dispatch,
)

_CCL = "ttnn/operations/ccl"


def _rows(name: str, data_type: DataType) -> OperandSpec:
    return OperandSpec(name, layout=Layout.ROW_MAJOR, data_types=(data_type,))


_MAPPING = _rows("expert_mapping", DataType.UINT16)


def _cpp_dispatch(calls: CppCalls, op: CatalogueOp) -> None:
    calls.include(f"{_CCL}/all_to_all_dispatch/all_to_all_dispatch.hpp")
    call = calls.call(
        "ttnn::all_to_all_dispatch",
        *(calls[value] for value in op.operands),
        Text(cpp_text(op.parameter("cluster_axis"))),
        type="std::array<ttnn::Tensor, 2>",
    )
    bind_elements(calls, op, call)


register(
    TTNNDefinition(
        "ttnn.all_to_all_dispatch",
        (
            _rows("input_tensor", DataType.BFLOAT16),
            _rows("expert_indices", DataType.UINT16),
            _MAPPING,
        ),
        TRAVEL,
        results=2,
        verify=verify_dispatch,
        numpy=dispatch,
        chips=dispatch_on_chips,
        cpp=_cpp_dispatch,
        result_rules=(
            ResultRule(layout=Layout.ROW_MAJOR),
            ResultRule(DataType.UINT16, layout=Layout.ROW_MAJOR),
        ),
        traits=Trait.COLLECTIVE,
        call_kind=CallKind.COLLECTIVE,
        nouns=("dispatched", "experts_of_tokens"),
    )
)

register(
    TTNNDefinition(
        "ttnn.all_to_all_combine",
        (
            _rows("input_tensor", DataType.BFLOAT16),
            _rows("expert_metadata", DataType.UINT16),
            _MAPPING,
        ),
        COMBINE,
        verify=verify_combine,
        numpy=combine,
        chips=combine_on_chips,
        cpp=cpp_call(
            "ttnn::all_to_all_combine",
            f"{_CCL}/all_to_all_combine/all_to_all_combine.hpp",
            operand_("input_tensor"),
            operand_("expert_mapping"),
            operand_("expert_metadata"),
            lambda calls, op: Text("false"),
            *[nullopt] * 3,
            attribute_("cluster_axis"),
        ),
        result_rules=(ResultRule(layout=Layout.ROW_MAJOR),),
        traits=Trait.COLLECTIVE,
        call_kind=CallKind.COLLECTIVE,
        nouns=("combined",),
    )
)
