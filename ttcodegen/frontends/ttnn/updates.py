"""Calls that update operands, as the ops of TTIR that return the new tensors: what comes after a
call reads those."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass, field

from xdsl.ir import Block, Operation, SSAValue
from xdsl.rewriter import Rewriter

from ttcodegen.compat.ttnn_modules import is_device, name_of
from ttcodegen.dialects.core.datatypes import element_of, shape_of, tensor_type
from ttcodegen.foundation.diagnostics import CompileError, Diagnostics
from ttcodegen.frontends.ttnn.call_parts import divided_operands, given
from ttcodegen.ops.core.builder import OpBuilder, builder_before
from ttcodegen.ops.dialects import ttir_op_classes, ttnn_op_classes


@dataclass(frozen=True)
class Update:
    """A call that updates operands. The op of TTIR of its name has the same results, and then one
    for each operand that is updated."""

    operands: tuple[str, ...]
    """In the order of the call, by their names in TTIR."""
    updated: tuple[str, ...]
    along_channels: Mapping[str, float] = field(default_factory=dict[str, float])
    """Default values of optional operands.

    They are vectors along the first operand's second dimension.
    """
    attributes: Mapping[str, int | float] = field(default_factory=dict[str, int | float])
    """Those that the call does not have, and defaults of others."""


_MOMENTS = ("exp_avg", "exp_avg_sq", "max_exp_avg_sq")

UPDATES = {
    "adamw": Update(("param", "grad", *_MOMENTS), ("param", *_MOMENTS)),
    "batch_norm_training": Update(
        ("operand", "running_mean", "running_variance", "scale", "offset"),
        ("running_mean", "running_variance"),
        {"running_mean": 0.0, "running_variance": 1.0, "scale": 1.0, "offset": 0.0},
        {"dimension": 1, "epsilon": 1e-5, "momentum": 0.1},
    ),
}
"""By the name of the call."""


def replace_update(
    op: Operation, name: str, later: Container[Operation], diagnostics: Diagnostics
) -> None:
    """Puts the op of TTIR of that name in place of a call.

    Args:
        op: the call.
        name: its name without the dialect.
        later: the operations after it; they come to read the new tensors.
        diagnostics: takes a warning for an argument whose new tensor nobody reads.

    Raises:
        CompileError: if the operands or attributes are not those of the op.
    """
    update, definition = UPDATES[name], ttir_op_classes()[name].definition
    tensors = [value for value in op.operands if not is_device(value.type)]
    groups = divided_operands(op, tensors, op.properties, len(update.operands))
    values = dict(zip(update.operands, groups, strict=True))
    builder = builder_before(op, ttnn_op_classes())
    operands: list[SSAValue | None] = []
    for spec in definition.operands:
        value = values[spec.name]
        if value is not None:
            operands.append(_plain(builder, value))
        elif spec.name in update.along_channels and operands and operands[0] is not None:
            operands.append(_along_channels(builder, op, operands[0], update, spec.name))
        elif spec.count == "one":
            raise CompileError(f"'{name_of(op)}' needs the operand '{spec.name}'", op)
        else:
            operands.append(None)
    attributes = dict(update.attributes) | {
        spec.name: given(op, op.properties, spec.name, spec.kind)
        for spec in definition.attributes
        if spec.name in op.properties
    }
    by_name = dict(zip([spec.name for spec in definition.operands], operands, strict=True))
    new = [each for each in update.updated if by_name[each] is not None]
    described = [*op.results, *[value for each in new if (value := by_name[each]) is not None]]
    types = [tensor_type(element_of(each.type), shape_of(each.type)) for each in described]
    made = builder_before(op, ttir_op_classes()).emit_op(name, operands, types, **attributes)
    own = made.results[: len(op.results)]
    for each, result in zip(new, made.results[len(own) :], strict=True):
        value = values[each]
        if value is not None:
            _read_instead(op, value, result, later, diagnostics)
    results = [_placed(op, result, old) for result, old in zip(own, op.results, strict=True)]
    Rewriter.replace_op(op, [], results)


def _read_instead(
    op: Operation,
    value: SSAValue,
    updated: SSAValue,
    later: Container[Operation],
    diagnostics: Diagnostics,
) -> None:
    """Makes what comes after a call read the new tensor."""
    readers = [use for use in value.uses if use.operation in later]
    if readers:
        new = _placed(op, updated, value)
        for use in readers:
            use.operation.operands[use.index] = new
    elif isinstance(value.owner, Block):
        diagnostics.warn(
            f"'{name_of(op)}' updates an argument that is not returned: the caller's tensor stays "
            "as it was",
            op,
        )


def _placed(op: Operation, made: SSAValue, old: SSAValue) -> SSAValue:
    """A tensor where another one is, and under its name."""
    value = builder_before(op, ttnn_op_classes()).emit("composite_to_layout", [made], old.type)
    value.name_hint = old.name_hint
    return value


def _plain(builder: OpBuilder, value: SSAValue) -> SSAValue:
    """A tensor in the default placement, in which the calls that an op becomes compute."""
    plain = tensor_type(element_of(value.type), shape_of(value.type))
    return value if value.type == plain else builder.emit("composite_to_layout", [value], plain)


def _along_channels(
    builder: OpBuilder, op: Operation, input_: SSAValue, update: Update, name: str
) -> SSAValue:
    shape = shape_of(input_.type)
    if len(shape) < 2:
        raise CompileError(f"'{name_of(op)}' normalizes channels, and there are none", op)
    return builder.full((shape[1],), update.along_channels[name], element_of(input_.type))
