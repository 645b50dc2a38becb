"""Legalization of TTNN calls, those that update operands included."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.rewriter import Rewriter
from xdsl.utils.exceptions import VerifyException

from ttcodegen.compat.ttnn_modules import is_device, name_of
from ttcodegen.dialects.core.datatypes import element_of, shape_of, tensor_type, without_encoding
from ttcodegen.dialects.operations.operation import CatalogueOp, Definition
from ttcodegen.dialects.ttnn.placement import TTNNLayoutAttr, placed_type
from ttcodegen.foundation.diagnostics import CompileError, Diagnostics
from ttcodegen.frontends.ttnn.arguments import divided_operands, given
from ttcodegen.ops.core.builder import OpBuilder, builder_before
from ttcodegen.ops.core.definition import TTIRDefinition, TTNNDefinition, has_trait
from ttcodegen.ops.core.traits import Trait
from ttcodegen.ops.dialects import TTNNOp, ttir_op_classes, ttnn_op_classes
from ttcodegen.ops.elementwise.activations import ACTIVATIONS
from ttcodegen.ops.matmul.matmul import shape_of_product

# Calls in forms that the library does not take, as the ops of TTIR that they mean.
#
# The lowering of an op of TTIR knows the ways around what the library refuses: batches that are
# repeated, a bias that is added by itself, tensors of other ranks. A call that the lowering would
# make just so stays as it is given; any other one becomes the op of TTIR, and is lowered with the
# module. Its result is placed like the result of the call.

_AS_GIVEN = frozenset({"composite_to_layout", "constant", "embedding", "reshape", "sort"})
"""Calls whose lowering chooses among forms all of which the library takes."""

_NAMES = {"divide": "div", "upsample": "upsample2d", "upsample_bilinear": "upsample2d"}
"""Ops that TTIR has by another name."""

_SAID_BY_NAME = {"upsample_bilinear": {"mode": "bilinear"}}
"""Parameters that a call's name implies and the TTIR op has as attributes."""

_FOR_A_FORM = ("matmul_program_config", "program_config")
"""Attributes that say how a call computes, not what, and that hold for its form only."""

_HOW = frozenset({"compute_config", "dtype", *_FOR_A_FORM})
"""All that say how a call computes."""


def legalize(function: FuncOp, diagnostics: Diagnostics) -> None:
    """Puts ops of TTIR in place of the calls of a function that the library would refuse.

    A program configuration is for the form that a call was given in: that of such a call is left
    out, which is reported in `diagnostics`.

    Raises:
        CompileError: at a call that has not the operands of its definition.
    """
    for op in list(function.walk()):
        if not isinstance(op, TTNNOp) or op.definition.short_name in _AS_GIVEN:
            continue
        try:
            op.segments()
        except VerifyException as error:
            raise CompileError(str(error), op) from None
        _interleave_right_factor(op)
        meaning = _meaning(op)
        if not meaning:
            continue
        if _is_made(op, meaning):
            for made in reversed(meaning):
                made.drop_all_references()
        else:
            _replace(op, meaning, diagnostics)


def _interleave_right_factor(op: TTNNOp) -> None:
    """Brings the right factor of a product to DRAM, if it is sharded and the call has no program
    configuration: the library chooses programs for interleaved ones only."""
    if not has_trait(op, Trait.MATRIX_PRODUCT) or _FOR_A_FORM[0] in op.properties:
        return
    encoding = getattr(op.operands[1].type, "encoding", None)
    if not isinstance(encoding, TTNNLayoutAttr) or encoding.data.shards is None:
        return
    place = encoding.data.with_(buffer_type="dram", memory_layout="interleaved", shards=None)
    builder = builder_before(op, ttnn_op_classes())
    op.operands[1] = builder.emit("composite_to_layout", [op.operands[1]], placed_type(place))


def _replace(op: TTNNOp, meaning: Sequence[CatalogueOp], diagnostics: Diagnostics) -> None:
    if any(name in op.properties for name in _FOR_A_FORM):
        diagnostics.warn(
            f"the library does not take this '{op.name}': its configuration is left out", op
        )
    builder = builder_before(op, ttnn_op_classes())
    for made in meaning:
        builder.insert(made)
    values: list[SSAValue] = []
    for value, result in zip(meaning[-1].results, op.results, strict=True):
        placed = value
        if result.type != value.type:
            placed = builder.emit("composite_to_layout", [value], result.type)
        value.name_hint = placed.name_hint = result.name_hint
        values.append(placed)
    Rewriter.replace_op(op, [], values)


def _is_made(op: TTNNOp, meaning: Sequence[CatalogueOp]) -> bool:
    """True if the lowering of what a call means makes just this call, or there is no lowering."""
    first, *after = meaning
    if after and (len(after) > 1 or after[0].definition.short_name not in ACTIVATIONS):
        return False
    definition = first.definition
    assert isinstance(definition, TTIRDefinition)
    if definition.lower is None:
        return True
    lowered: list[Operation] = []
    builder = OpBuilder(ttnn_op_classes(), lowered.append)
    builder.origin = op
    try:
        definition.lower(builder, first)
    except (CompileError, VerifyException):
        return True
    try:
        return (
            len(lowered) == 1
            and lowered[0].name == op.name
            and len(lowered[0].operands) == len(op.operands)
            and all(new is old for new, old in zip(lowered[0].operands, op.operands, strict=True))
        )
    finally:
        for made in reversed(lowered):
            made.drop_all_references()


def _meaning(op: TTNNOp) -> list[CatalogueOp]:
    """Ops of TTIR that compute what a call does, the last of them its results; none if TTIR has no
    op with its operands and attributes."""
    definition = op.definition
    assert isinstance(definition, TTNNDefinition)
    name = _NAMES.get(definition.short_name, definition.short_name)
    cls = ttir_op_classes().get(name)
    if cls is None or definition.chips is not None or definition.in_place is not None:
        return []
    names = [spec.name for spec in cls.definition.operands]
    made: list[CatalogueOp] = []
    builder = OpBuilder(ttir_op_classes(), lambda new: made.append(_catalogue_op(new)))
    builder.origin = op
    try:
        groups, attributes = op.operand_groups(), _attributes(op, cls.definition)
        if attributes is None or not set(groups) <= set(names):
            return []
        results = [without_encoding(result.type) for result in op.results]
        is_product = has_trait(op, Trait.MATRIX_PRODUCT)
        if is_product and groups.get("bias"):
            # A bias may have more dimensions of size 1 than the result.
            results = [tensor_type(element_of(results[0]), shape_of_product(op))]
        operands = [groups.get(each) or None for each in names]
        builder.emit_op(name, operands, results, **attributes).verify_()
        if is_product:
            value = builder.reshape(made[0].results[0], op.result_shape)
            if (activation := op.parameter("activation")) in ttir_op_classes():
                builder.like(activation, value)
                made[-1].verify_()
            elif activation is not None:
                raise VerifyException(f"there is no activation '{activation}'")
    except VerifyException:
        for each in reversed(made):
            each.drop_all_references()
        return []
    return made


def _attributes(op: TTNNOp, definition: Definition) -> dict[str, Any] | None:
    """Those of the op of TTIR; None if the call has one that says what it computes, and that the op
    of TTIR does not have. Raises VerifyException if an attribute is not what it should be."""
    known = {spec.name for spec in definition.attributes}
    found: dict[str, Any] = dict(_SAID_BY_NAME.get(op.definition.short_name, {}))
    for spec in op.definition.attributes:
        given = spec.name in op.properties or spec.name in op.attributes
        if spec.name == "dim" and "dim_arg" in known:
            found["dim_arg"] = [op.parameter("dim")] if given else None
        elif spec.name in known:
            found[spec.name] = op.parameter(spec.name)
        elif spec.name not in {*_HOW, "activation"} and op.parameter(spec.name) != spec.default:
            return None
    if "normalized_shape" in known:
        found["normalized_shape"] = list(op.shape("input")[-1:])
    return found


def _catalogue_op(op: Operation) -> CatalogueOp:
    assert isinstance(op, CatalogueOp)
    return op


# Calls that update operands, as the ops of TTIR that return the new tensors: what comes after a
# call reads those.


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
