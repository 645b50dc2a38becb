"""Legalization of TTNN calls: in-place updates, fused and distributed norms, tensor files."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

from xdsl.dialects.builtin import StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.rewriter import Rewriter
from xdsl.utils.exceptions import VerifyException

from ttcodegen.compat.ttnn_modules import is_device, name_of
from ttcodegen.dialects.core.datatypes import (
    element_of,
    f32,
    shape_of,
    tensor_type,
    without_encoding,
)
from ttcodegen.dialects.operations.attribute_kinds import NUMBER
from ttcodegen.dialects.operations.operation import CatalogueOp, Definition
from ttcodegen.dialects.ttcore.tile import TILE_SIDE
from ttcodegen.dialects.ttnn.placement import TTNNLayoutAttr, placed_type
from ttcodegen.foundation.diagnostics import CompileError, Diagnostics
from ttcodegen.frontends.ttnn.arguments import Properties, divided_operands, given
from ttcodegen.ops.core.builder import OpBuilder, builder_before
from ttcodegen.ops.core.definition import (
    TTNN,
    TTIRDefinition,
    TTNNDefinition,
    has_trait,
    overwrites,
)
from ttcodegen.ops.core.traits import Trait
from ttcodegen.ops.dialects import TTNNOp, ttir_op_classes, ttnn_op_classes
from ttcodegen.ops.elementwise.activations import ACTIVATIONS
from ttcodegen.ops.matmul.matmul import shape_of_product
from ttcodegen.ops.training.steps import MOMENTS

# Calls in forms that the library does not take, as the ops of TTIR that they mean.
#
# The lowering of an op of TTIR knows the ways around what the library refuses: batches that are
# repeated, a bias that is added by itself, tensors of other ranks. A call that the lowering would
# make just so stays as it is given; any other one becomes the op of TTIR, and is lowered with the
# module. Its result is placed like the result of the call.

_ALWAYS_LEGAL = frozenset({"composite_to_layout", "constant", "embedding", "reshape", "sort"})
"""Calls whose lowering chooses among forms that the library all accepts."""

_NAMES = {"divide": "div", "upsample": "upsample2d", "upsample_bilinear": "upsample2d"}
"""TTIR names of ops that differ."""

_SAID_BY_NAME = {"upsample_bilinear": {"mode": "bilinear"}}
"""Parameters that a call's name implies and the TTIR op has as attributes."""

_PROGRAM_CONFIGS = ("matmul_program_config", "program_config")
"""Attributes that configure one form of a call."""

_COMPUTE_ATTRIBUTES = frozenset({"compute_config", "dtype", *_PROGRAM_CONFIGS})
"""Attributes that configure how a call computes."""


def legalize(function: FuncOp, diagnostics: Diagnostics) -> None:
    """Replaces calls that the library would refuse by TTIR ops.

    Their program config is dropped, which `diagnostics` reports, as it holds for the given form
    only.

    Raises:
        CompileError: at a call whose operands do not match its definition.
    """
    for op in list(function.walk()):
        if not isinstance(op, TTNNOp) or op.definition.short_name in _ALWAYS_LEGAL:
            continue
        try:
            op.segments()
        except VerifyException as error:
            raise CompileError(str(error), op) from None
        _interleave_right_factor(op)
        meaning = _ttir_equivalent(op)
        if not meaning:
            continue
        if _is_reproduced(op, meaning):
            for made in reversed(meaning):
                made.drop_all_references()
        else:
            _replace(op, meaning, diagnostics)


def _interleave_right_factor(op: TTNNOp) -> None:
    """Moves a sharded right operand of a matmul without program config to DRAM.

    The library chooses program configs for interleaved right operands only.
    """
    if not has_trait(op, Trait.MATRIX_PRODUCT) or _PROGRAM_CONFIGS[0] in op.properties:
        return
    encoding = getattr(op.operands[1].type, "encoding", None)
    if not isinstance(encoding, TTNNLayoutAttr) or encoding.data.shards is None:
        return
    place = encoding.data.with_(buffer_type="dram", memory_layout="interleaved", shards=None)
    builder = builder_before(op, ttnn_op_classes())
    op.operands[1] = builder.emit("composite_to_layout", [op.operands[1]], placed_type(place))


def _replace(op: TTNNOp, meaning: Sequence[CatalogueOp], diagnostics: Diagnostics) -> None:
    if any(name in op.properties for name in _PROGRAM_CONFIGS):
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


def _is_reproduced(op: TTNNOp, meaning: Sequence[CatalogueOp]) -> bool:
    """Returns whether lowering the TTIR meaning reproduces the call, or there is no lowering."""
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


def _ttir_equivalent(op: TTNNOp) -> list[CatalogueOp]:
    """TTIR ops that compute a call, its results last; empty if TTIR has no matching op."""
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
    """Attributes of the TTIR op; None if the call has a semantic attribute that the op lacks.

    Raises VerifyException if an attribute is invalid.
    """
    known = {spec.name for spec in definition.attributes}
    found: dict[str, Any] = dict(_SAID_BY_NAME.get(op.definition.short_name, {}))
    for spec in op.definition.attributes:
        given = spec.name in op.properties or spec.name in op.attributes
        if spec.name == "dim" and "dim_arg" in known:
            found["dim_arg"] = [op.parameter("dim")] if given else None
        elif spec.name in known:
            found[spec.name] = op.parameter(spec.name)
        elif (
            spec.name not in {*_COMPUTE_ATTRIBUTES, "activation"}
            and op.parameter(spec.name) != spec.default
        ):
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
    """In-place call: the TTIR op of its name returns the updated operands as trailing results."""

    operands: tuple[str, ...]
    """TTIR names of the operands, in the order of the call."""
    updated: tuple[str, ...]
    along_channels: Mapping[str, float] = field(default_factory=dict[str, float])
    """Default values of optional operands, vectors along the first operand's second dimension."""
    attributes: Mapping[str, int | float] = field(default_factory=dict[str, int | float])
    """Attributes of the TTIR op that the call lacks, and other defaults."""


UPDATES = {
    "adamw": Update(("param", "grad", *MOMENTS), ("param", *MOMENTS)),
    "batch_norm_training": Update(
        ("operand", "running_mean", "running_variance", "scale", "offset"),
        ("running_mean", "running_variance"),
        {"running_mean": 0.0, "running_variance": 1.0, "scale": 1.0, "offset": 0.0},
        {"dimension": 1, "epsilon": 1e-5, "momentum": 0.1},
    ),
}
"""In-place calls by name."""


def replace_update(
    op: Operation, name: str, later: Container[Operation], diagnostics: Diagnostics
) -> None:
    """Replaces an in-place call by the TTIR op of its name.

    Args:
        op: the call.
        name: its name without the dialect.
        later: the operations after it, which will read the new tensors.
        diagnostics: receives a warning for an argument whose new tensor is not read.

    Raises:
        CompileError: if the operands or attributes do not fit the op.
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
            _redirect_uses(op, value, result, later, diagnostics)
    results = [_place_like(op, result, old) for result, old in zip(own, op.results, strict=True)]
    Rewriter.replace_op(op, [], results)


def _redirect_uses(
    op: Operation,
    value: SSAValue,
    updated: SSAValue,
    later: Container[Operation],
    diagnostics: Diagnostics,
) -> None:
    """Redirects later uses to the new tensor."""
    readers = [use for use in value.uses if use.operation in later]
    if readers:
        new = _place_like(op, updated, value)
        for use in readers:
            use.operation.operands[use.index] = new
    elif isinstance(value.owner, Block):
        diagnostics.warn(
            f"'{name_of(op)}' updates an argument that is not returned: the caller's tensor stays "
            "as it was",
            op,
        )


def _place_like(op: Operation, made: SSAValue, old: SSAValue) -> SSAValue:
    """Places a tensor like another one and takes over its name."""
    value = builder_before(op, ttnn_op_classes()).emit("composite_to_layout", [made], old.type)
    value.name_hint = old.name_hint
    return value


def _plain(builder: OpBuilder, value: SSAValue) -> SSAValue:
    """Moves a tensor to the default placement, in which lowered ops compute."""
    plain = tensor_type(element_of(value.type), shape_of(value.type))
    return value if value.type == plain else builder.emit("composite_to_layout", [value], plain)


def _along_channels(
    builder: OpBuilder, op: Operation, input_: SSAValue, update: Update, name: str
) -> SSAValue:
    shape = shape_of(input_.type)
    if len(shape) < 2:
        raise CompileError(f"'{name_of(op)}' normalizes channels, and there are none", op)
    return builder.full((shape[1],), update.along_channels[name], element_of(input_.type))


# The two halves of a norm of rows that chips have parts of: sums of a chip, and the norm by the
# sums of all.
#
# Sums are in the first column of a tile: those of squares, for layer norms followed by those of
# the elements. Gathered, there are as many such tiles as chips have parts (tt-metal,
# `ttnn/operations/normalization/layernorm_distributed`).

_EPSILON = 1e-12
"""Default epsilon that the library adds to a variance."""


def sums_of_squares(
    builder: OpBuilder, op: Operation, operands: Sequence[SSAValue], properties: Properties
) -> SSAValue:
    """`rms_norm_pre_all_gather`: (..., width) to (..., 32)."""
    return _column_of_tile(builder, _squared_sum(builder, _row(builder, op, operands, properties)))


def sums_of_rows(
    builder: OpBuilder, op: Operation, operands: Sequence[SSAValue], properties: Properties
) -> SSAValue:
    """`layer_norm_pre_all_gather`: (..., width) to (..., 64).

    Reciprocals, an optional operand, only affect speed.
    """
    row = _row(builder, op, operands, properties)
    total = builder.reduce("sum", row, [len(shape_of(row.type)) - 1])
    columns = [_column_of_tile(builder, each) for each in (_squared_sum(builder, row), total)]
    return builder.concat(columns, len(shape_of(row.type)) - 1)


def normalized_by_squares(
    builder: OpBuilder, op: Operation, operands: Sequence[SSAValue], properties: Properties
) -> SSAValue:
    """`rms_norm_post_all_gather`: rows divided by their root mean square."""
    return _normalized(builder, op, operands, properties, centered=False)


def normalized_by_rows(
    builder: OpBuilder, op: Operation, operands: Sequence[SSAValue], properties: Properties
) -> SSAValue:
    """`layer_norm_post_all_gather`: centred rows divided by their standard deviation."""
    return _normalized(builder, op, operands, properties, centered=True)


def _row(
    builder: OpBuilder, op: Operation, operands: Sequence[SSAValue], properties: Properties
) -> SSAValue:
    """Sum of the input and its addend, in 32 bits."""
    value, residual, _ = divided_operands(op, operands, properties, 3)
    if value is None:
        raise CompileError(f"'{name_of(op)}' needs an input", op)
    _expect_rows(op, value)
    row = in_32_bits(builder, op, value)
    if residual is None:
        return row
    if shape_of(residual.type) != shape_of(value.type):
        raise CompileError(f"'{name_of(op)}' adds a tensor of another shape than its input", op)
    return builder.like("add", row, in_32_bits(builder, op, residual))


def _expect_rows(op: Operation, *values: SSAValue) -> None:
    if any(not shape_of(value.type) for value in values):
        raise CompileError(f"'{name_of(op)}' takes tensors of rows, found a scalar", op)


def in_32_bits(builder: OpBuilder, op: Operation, value: SSAValue) -> SSAValue:
    """Converts a value to 32 bits in the default placement: a typecast would keep shards."""
    plain = tensor_type(element_of(value.type), shape_of(value.type))
    if value.type != plain:
        placed = builder_before(op, ttnn_op_classes())
        value = placed.emit("composite_to_layout", [value], plain)
    return builder.typecast(value, f32)


def _squared_sum(builder: OpBuilder, row: SSAValue) -> SSAValue:
    square = builder.like("multiply", row, row)
    return builder.reduce("sum", square, [len(shape_of(row.type)) - 1])


def _column_of_tile(builder: OpBuilder, column: SSAValue) -> SSAValue:
    """Pads a column with zeros to a tile."""
    return builder.pad(column, [(0, TILE_SIDE - 1)])


def _normalized(
    builder: OpBuilder,
    op: Operation,
    operands: Sequence[SSAValue],
    properties: Properties,
    *,
    centered: bool,
) -> SSAValue:
    value, statistics, weight, bias = divided_operands(op, operands, properties, 4)
    if value is None or statistics is None:
        raise CompileError(f"'{name_of(op)}' needs an input and the sums of its rows", op)
    _expect_rows(op, value, statistics)
    shape, kinds = shape_of(value.type), 2 if centered else 1
    *outer, columns = shape_of(statistics.type)
    if tuple(outer) != tuple(shape[:-1]) or columns % (kinds * TILE_SIDE) or not columns:
        raise CompileError(
            f"'{name_of(op)}': sums of rows of {shape} are {kinds * TILE_SIDE} columns "
            f"for each chip, found {shape_of(statistics.type)}",
            op,
        )
    rank, chips = len(shape), columns // (kinds * TILE_SIDE)
    apart = builder.reshape(in_32_bits(builder, op, statistics), [*outer, chips, kinds, TILE_SIDE])
    ones = [1] * rank

    def mean(kind: int) -> SSAValue:
        of_chips = builder.slice_dim(builder.slice_dim(apart, rank, kind, kind + 1), rank + 1, 0, 1)
        total = builder.reduce("sum", of_chips, [rank - 1])
        count = builder.full(ones, 1.0 / (shape[-1] * chips), f32)
        return builder.broadcasting("multiply", builder.reshape(total, [*outer, 1]), count)

    row, variance = in_32_bits(builder, op, value), mean(0)
    if centered:
        average = mean(1)
        row = builder.broadcasting("subtract", row, average)
        square = builder.like("multiply", average, average)
        variance = builder.like("subtract", variance, square)
    epsilon = given(op, properties, "epsilon", NUMBER)
    added = builder.full(ones, _EPSILON if epsilon is None else float(epsilon), f32)
    scale = builder.like("rsqrt", builder.broadcasting("add", variance, added))
    row = builder.broadcasting("multiply", row, scale)
    for vector, joined in ((weight, "multiply"), (bias, "add")):
        if vector is not None:
            wide = builder.reshape(in_32_bits(builder, op, vector), [*ones[1:], shape[-1]])
            row = builder.broadcasting(joined, row, wide)
    return builder.typecast(row, element_of(op.results[0].type))


# The norm of rows with what surrounds it in blocks of diffusion transformers, in one call.

_EPSILON_fused_norm = 1e-5
"""Default epsilon of the call (tt-mlir, `TTNNOps.td`)."""
_ACTIVATIONS = frozenset({"gelu", "relu", "sigmoid", "silu", "tanh"})


def activated_norm(
    builder: OpBuilder, op: Operation, operands: Sequence[SSAValue], properties: Properties
) -> SSAValue:
    """`dit_rms_norm_unary_fused`: activation(rms_norm(input + residual) * weight + bias).

    Computes in 32 bits up to the result.
    """
    value, weight, bias, residual = divided_operands(op, operands, properties, 4)
    if value is None or not shape_of(value.type):
        raise CompileError(f"'{name_of(op)}' needs an input with rows", op)
    row, width = in_32_bits(builder, op, value), shape_of(value.type)[-1]
    if residual is not None:
        if shape_of(residual.type) != shape_of(value.type):
            raise CompileError(f"'{name_of(op)}' adds a tensor of another shape than its input", op)
        row = builder.like("add", row, in_32_bits(builder, op, residual))
    vectors: list[SSAValue | None] = []
    for vector in (weight, bias):
        if vector is not None and prod(shape_of(vector.type)) != width:
            raise CompileError(
                f"'{name_of(op)}' takes a weight and a bias of {width} elements, found "
                f"{shape_of(vector.type)}",
                op,
            )
        vectors.append(
            None if vector is None else builder.reshape(in_32_bits(builder, op, vector), [width])
        )
    epsilon = given(op, properties, "epsilon", NUMBER)
    row = builder.emit(
        "rms_norm",
        [row, *vectors],
        row.type,
        normalized_shape=[width],
        epsilon=_EPSILON_fused_norm if epsilon is None else float(epsilon),
    )
    activation = properties.get("activation")
    if isinstance(activation, StringAttr) and activation.data:
        if activation.data not in _ACTIVATIONS:
            raise CompileError(
                f"'{name_of(op)}': the activation should be one of "
                f"{', '.join(sorted(_ACTIVATIONS))}, found {activation.data}",
                op,
            )
        row = builder.like(activation.data, row)
    return builder.typecast(row, element_of(op.results[0].type))


DUMP, LOAD = "ttnn.dump_tensor", "ttnn.load_tensor"


def link_files(function: FuncOp) -> None:
    """Links each load of a tensor file to the preceding dump, as an operand.

    Raises:
        CompileError: if the tensor was overwritten between the two.
    """
    for block in function.body.blocks:
        written: dict[str, SSAValue] = {}
        overwritten: set[SSAValue] = set()
        for op in block.ops:
            name = name_of(op)
            if name == DUMP and op.operands:
                written[_path(op)] = op.operands[0]
                overwritten.discard(op.operands[0])
            elif name == LOAD:
                _link(op, written.get(_path(op)), overwritten)
            elif name.startswith("ttnn.") and overwrites(name.removeprefix("ttnn.")):
                overwritten.add(_overwritten_operand(op))


def _path(op: Operation) -> str:
    path = op.properties.get("file_path")
    return path.data if isinstance(path, StringAttr) else ""


def _overwritten_operand(op: Operation) -> SSAValue:
    """Operand that a call overwrites."""
    definition = TTNN[name_of(op).removeprefix("ttnn.")]
    names = [spec.name for spec in definition.operands]
    return op.operands[names.index(definition.in_place or "")]


def _link(op: Operation, written: SSAValue | None, overwritten: set[SSAValue]) -> None:
    if written is None or not all(is_device(value.type) for value in op.operands):
        return
    if written in overwritten:
        raise CompileError(
            f"'{LOAD}' reads '{_path(op)}' after the tensor that was dumped to it was overwritten",
            op,
            remedy="read the file before the tensor is overwritten, or dump a copy of it",
        )
    op.operands = [*op.operands, written]
