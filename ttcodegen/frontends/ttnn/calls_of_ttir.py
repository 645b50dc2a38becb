"""Calls of several results as the ops of TTIR that they mean: there the compiler knows what they
are made of. Those that bring tokens to experts on several chips are made of collectives."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import Rewriter

from ttcodegen.dialects.core.datatypes import element_of, shape_of, tensor_type
from ttcodegen.dialects.operations.attribute_kinds import INTEGER
from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.frontends.ttnn.call_parts import Properties, divided_operands, given
from ttcodegen.ops.core.builder import builder_before
from ttcodegen.ops.dialects import ttir_op_classes, ttnn_op_classes

CALLS_OF_TTIR = frozenset({"sdpa_bw", "sdpa_fw", "topk_router_gpt"})
"""Calls with the operands and attributes of the op of TTIR of that name, and several results."""

EXPERT_CALLS = frozenset(
    {
        "all_to_all_dispatch",
        "all_to_all_dispatch_metadata",
        "all_to_all_combine",
        "moe_expert_token_remap",
        "moe_gpt",
        "selective_reduce_combine",
    }
)
"""Their names. What calls take after the operands of the ops are buffers and semaphores, which
collectives make."""


def replace_expert_call(
    op: Operation, name: str, operands: Sequence[SSAValue], properties: Properties
) -> None:
    """Puts the op of TTIR of that name in place of a call, with results where the call has them."""
    definition = ttir_op_classes()[name].definition
    count = len(definition.operands)
    if len(operands) < count:
        raise CompileError(f"'ttnn.{name}' takes {count} tensors, found {len(operands)}", op)
    builder = builder_before(op, ttir_op_classes())
    types = [tensor_type(element_of(each.type), shape_of(each.type)) for each in op.results]
    known = {spec.name for spec in definition.attributes}
    numbers = {each: given(op, properties, each, INTEGER) for each in known & properties.keys()}
    taken = list(operands[:count])
    for index, value in enumerate(taken):
        shape = shape_of(value.type)
        if len(shape) == 2 and index == count - 1 and name != "selective_reduce_combine":
            # The mapping of experts to devices, as the library takes it as well.
            taken[index] = builder.reshape(value, (1, 1, *shape))
    _replace(op, builder.emit_op(name, taken, types, **numbers))


def replace_call_of_ttir(
    op: Operation, name: str, operands: Sequence[SSAValue], properties: Properties
) -> None:
    """Puts the op of TTIR of that name in place of a call that says the same; raises CompileError
    if the operands are not those of the op."""
    cls = ttir_op_classes()[name]
    specs = cls.definition.operands
    groups = divided_operands(op, operands, properties, len(specs))
    for spec, value in zip(specs, groups, strict=True):
        if value is None and spec.count == "one":
            raise CompileError(f"'ttnn.{name}' needs the operand '{spec.name}'", op)
    builder = builder_before(op, ttir_op_classes())
    types = [tensor_type(element_of(each.type), shape_of(each.type)) for each in op.results]
    attributes = {
        spec.name: given(op, properties, spec.name, spec.kind)
        for spec in cls.definition.attributes
        if spec.name in properties
    }
    _replace(op, builder.emit_op(name, groups, types, **attributes))


def _replace(op: Operation, made: Operation) -> None:
    """Puts an op in place of a call, with results where the call has them."""
    placed = builder_before(op, ttnn_op_classes())
    values: list[SSAValue] = []
    for old, new in zip(op.results, made.results, strict=True):
        values.append(placed.emit("composite_to_layout", [new], old.type))
        values[-1].name_hint = old.name_hint
    Rewriter.replace_op(op, [], values)
