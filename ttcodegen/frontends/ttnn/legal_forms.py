"""Calls in forms that the library does not take, as the ops of TTIR that they mean.

The lowering of an op of TTIR knows the ways around what the library refuses: batches that are
repeated, a bias that is added by itself, tensors of other ranks. A call that the lowering would
make just so stays as it is given; any other one becomes the op of TTIR, and is lowered with the
module. Its result is placed like the result of the call.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import Rewriter
from xdsl.utils.exceptions import VerifyException

from ttcodegen.dialects.core.datatypes import element_of, tensor_type, without_encoding
from ttcodegen.dialects.operations.operation import CatalogueOp, Definition
from ttcodegen.dialects.ttnn.placement import TTNNLayoutAttr, placed_type
from ttcodegen.foundation.diagnostics import CompileError, Diagnostics
from ttcodegen.ops.core.builder import OpBuilder, builder_before
from ttcodegen.ops.core.definition import TTIRDefinition, TTNNDefinition, has_trait
from ttcodegen.ops.core.traits import Trait
from ttcodegen.ops.dialects import TTNNOp, ttir_op_classes, ttnn_op_classes
from ttcodegen.ops.elementwise.unary import ACTIVATIONS
from ttcodegen.ops.matmul.matmul import shape_of_product

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
    """
    for op in list(function.walk()):
        if not isinstance(op, TTNNOp) or op.definition.short_name in _AS_GIVEN:
            continue
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
        if is_product:
            # A call may leave dimensions of size 1 away.
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
