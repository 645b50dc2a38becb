"""Settings of calls: compute kernel configs, prepared convolution weights, rules of a release."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass

from ttcodegen.dialects.core.datatypes import DataType, element_of, shape_of, ui32
from ttcodegen.dialects.operations.compute_config import (
    COMPUTE_DEFAULTS,
    ComputeConfig,
    ComputeConfigAttr,
)
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.dialects.ttcore.dialect import system_of
from ttcodegen.dialects.ttcore.shards import Layout, Memory
from ttcodegen.dialects.ttnn.placement import (
    TensorPlacement,
    declared_data_type,
    placed_type,
    placement_of,
)
from ttcodegen.dialects.ttnn.program_configs import Conv2dConfig, CoreGrid, Word, config_attribute
from ttcodegen.ops.attention.primitives import default_chunk, needed_program
from ttcodegen.ops.convolution.prepared_weights import image_attributes, prepared_shape
from ttcodegen.ops.core.builder import OpBuilder
from ttcodegen.ops.core.calls import (
    COMPUTE_CONFIG_ATTRIBUTE,
    CONV2D_CONFIG_ATTRIBUTE,
    SDPA_CONFIG_ATTRIBUTE,
)
from ttcodegen.ops.core.definition import TTNNDefinition, has_trait, traits_of
from ttcodegen.ops.core.traits import OpShapes, Trait
from ttcodegen.ops.dialects import TTNNOp, ttnn_op_classes
from ttcodegen.systems.cards import default_system
from ttcodegen.systems.description import DEFAULT_ARCHITECTURE, SystemDescription
from ttcodegen.systems.releases import DEFAULT_RELEASE, release_named
from ttcodegen.transforms.const_eval import constant_values, is_const_eval
from ttcodegen.transforms.rewriting import body_of, keep, rebuild
from ttcodegen.transforms.ttnn.layout import operand_specs

LONG_SUM = 8192
"""Number of products per element up to which 16-bit registers accumulate accurately enough.

Rounding errors of a convolution with 9,300 products are 2.1 % of its range, with 65,536 they are 5
%; attention to 131,072 keys correlates 0.95 with the exact result.
"""


DECODING = (
    "scaled_dot_product_attention_decode",
    "paged_scaled_dot_product_attention_decode",
)
_SUMMING = ("convolution", "matmul", "matmul_with_program")
"""Rows of COMPUTE_DEFAULTS of ops that accumulate products."""

_WIDE = (DataType.FLOAT32, DataType.INT32, DataType.UINT32)


@dataclass(frozen=True)
class SetComputeKernelConfig(ModulePass):
    """Sets exact compute configs where the library's default loses digits.

    These are calls on 32-bit numbers, and convolutions, matmuls and attention with very long sums.
    Softmax of 16 bits divides exactly. Calls that have a config keep it.
    """

    name = "ttnn-set-compute-kernel-config"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        system = system_of(op)
        architecture = DEFAULT_ARCHITECTURE if system is None else system.arch
        name = COMPUTE_CONFIG_ATTRIBUTE.name
        for call in op.walk():
            if (
                isinstance(call, TTNNOp)
                and COMPUTE_CONFIG_ATTRIBUTE in call.definition.attributes
                and call.parameter(name) is None
                and (config := _config(call, architecture)) is not None
            ):
                call.properties[name] = ComputeConfigAttr(config)
            if isinstance(call, TTNNOp) and call.definition.short_name in DECODING:
                _fit_cores(call, system or default_system(DEFAULT_ARCHITECTURE))


def _fit_cores(call: TTNNOp, system: SystemDescription) -> None:
    """Restricts decode attention to the cores that the library can address, if the device has
    more."""
    name = SDPA_CONFIG_ATTRIBUTE.name
    (_, users, _, _), (_, key_heads, keys, _) = call.shape("query"), call.shape("key")
    if call.parameter(name) is not None:
        return
    rows, columns = system.chip.grid
    is_paged = "page_table" in [spec.name for spec in operand_specs(call)]
    chunk = 0 if is_paged else default_chunk(keys)
    config = needed_program(users, key_heads, chunk, CoreGrid(columns, rows))
    if config is not None:
        call.properties[name] = SDPA_CONFIG_ATTRIBUTE.kind.encode(config)


def _config(call: TTNNOp, architecture: str) -> ComputeConfig | None:
    """Returns the config of a call for which the library's default loses digits, or None."""
    exact = ComputeConfig.exact(architecture)
    if _has_wide_numbers(call):
        is_narrow = Trait.NARROW_DESTINATION in traits_of(call.definition)
        return replace(exact, fp32_dest_acc_en=False) if is_narrow else exact
    definition = call.definition
    if not isinstance(definition, TTNNDefinition):
        return None
    row = definition.compute_row(call.parameter)
    if row in _SUMMING and _products(call, definition) > LONG_SUM:
        return exact
    if row == "attention" and _keys(call) > LONG_SUM:
        return exact
    if row == "softmax":
        if max(_shape(call.operands[0])) > LONG_SUM:
            return exact
        # The default reciprocal is up to 4 % off: rows sum up to 0.96.
        operands = [declared_data_type(value) for value in call.operands]
        (result,) = map(declared_data_type, call.results)
        default = COMPUTE_DEFAULTS[row].config(operands, result, architecture)
        return replace(default, math_approx_mode=False)
    return None


def _keys(call: TTNNOp) -> int:
    """Returns the number of keys that a query may attend to, over all pages of a page table."""
    names = [spec.name for spec in operand_specs(call)]
    keys = call.shape("key")[-2]
    return keys * call.shape("page_table")[-1] if "page_table" in names else keys


def _products(call: TTNNOp, definition: TTNNDefinition) -> int:
    """Returns the number of products summed per result element."""
    attributes = {spec.name: call.parameter(spec.name) for spec in definition.attributes}
    shapes = OpShapes(attributes, [*map(_shape, call.operands)], [*map(_shape, call.results)])
    return definition.flops(shapes) // (2 * max(shapes.produced, 1))


def _shape(value: SSAValue) -> tuple[int, ...]:
    return tuple(shape_of(value.type))


def _has_wide_numbers(op: TTNNOp) -> bool:
    """Returns whether a computed operand or a result has 32-bit elements."""
    computed = [
        value
        for spec, value in zip(operand_specs(op), op.operands, strict=True)
        if spec.data_types is None or any(data_type.is_float for data_type in spec.data_types)
    ]
    return any(declared_data_type(value) in _WIDE for value in (*computed, *op.results))


@dataclass(frozen=True)
class PrepareConvolutionWeights(ModulePass):
    """Prepares constant weights of `ttnn.conv2d` by calls that const-eval hoists.

    The library prepares plain host weights in each call. Runs after placements are decided, since
    the layout of prepared weights depends on the placement of the image.
    """

    name = "ttnn-prepare-conv2d-weights-and-bias"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        found = [
            each
            for function in op.walk()
            if isinstance(function, FuncOp) and not is_const_eval(function)
            for each in _with_constant_weights(function)
        ]
        # Convolutions without a config share one in the C++, with the type of their weights: also
        # transposed ones, and those whose weights are not prepared.
        types = {
            placement_of(each.operand("weight")).data_type
            for each in op.walk()
            if isinstance(each, CatalogueOp)
            and each.name in _SHARING
            and _convolution_config(each) is None
        }
        for each in found:
            _prepare(each, is_shared=_convolution_config(each) is None and len(types) == 1)
        for each in op.walk():
            if isinstance(each, CatalogueOp) and each.name == "ttnn.conv2d":
                _update_preparations(each)


def _with_constant_weights(function: FuncOp) -> Iterator[CatalogueOp]:
    constants = constant_values(function)
    for op in body_of(function).ops:
        if isinstance(op, CatalogueOp) and op.name == "ttnn.conv2d":
            given = [op.operand("weight"), op.optional_operand("bias")]
            if all(
                value is None or (value in constants and placement_of(value).memory is Memory.HOST)
                for value in given
            ):
                yield op


_SHARING = ("ttnn.conv2d", "ttnn.conv_transpose2d")


def _convolution_config(op: CatalogueOp) -> Conv2dConfig | None:
    """Returns the config of a convolution; transposed ones have none."""
    has_config = CONV2D_CONFIG_ATTRIBUTE in op.definition.attributes
    return op.parameter(CONV2D_CONFIG_ATTRIBUTE.name) if has_config else None


def _weight_type(op: CatalogueOp) -> DataType:
    """Returns the data type of prepared weights: from the config, else that of the plain
    weights."""
    config = _convolution_config(op)
    if config is None or config.weights_dtype is None:
        return placement_of(op.operand("weight")).data_type
    return DataType.from_mlir(config.weights_dtype.text)


def _attributes(op: CatalogueOp) -> dict[str, Any]:
    """Returns the attributes of the preparation calls, copied from the convolution."""
    names = [spec.name for spec in image_attributes()]
    names += ["dtype", CONV2D_CONFIG_ATTRIBUTE.name, COMPUTE_CONFIG_ATTRIBUTE.name]
    return {
        **{name: op.parameter(name) for name in names},
        "image": placement_of(op.operand("input")),
    }


def _update_preparations(op: CatalogueOp) -> None:
    """Updates preparation calls in the source to what was decided on their convolution."""
    for value in op.operands[1:]:
        owner = value.owner
        if isinstance(owner, CatalogueOp) and has_trait(owner, Trait.PREPARES_WEIGHTS):
            for name, found in _attributes(op).items():
                if found is not None:
                    owner.properties[name] = owner.definition.attribute(name).kind.encode(found)


def _prepare(op: CatalogueOp, *, is_shared: bool) -> None:
    weight, bias = op.operand("weight"), op.optional_operand("bias")
    data_type = _weight_type(op)
    if not is_shared:
        # Without weights_dtype the library cannot prepare a bias (prepare_conv2d_weights.cpp of
        # tt-metal).
        config = replace(
            _convolution_config(op) or Conv2dConfig(), weights_dtype=Word(data_type.mlir)
        )
        op.properties[CONV2D_CONFIG_ATTRIBUTE.name] = config_attribute(config)
    block = op.parent_block()
    assert block is not None
    builder = OpBuilder(ttnn_op_classes(), lambda new: block.insert_op_before(new, op))
    builder.origin = op
    attributes = _attributes(op)

    def prepared(name: str, value: SSAValue, shape: tuple[int, ...], **more: bool) -> SSAValue:
        placement = TensorPlacement(shape, data_type, Layout.TILE)
        made = builder.emit(name, [value], placed_type(placement), **attributes, **more)
        made.name_hint = value.name_hint
        return made

    operands = list(op.operands)
    operands[1] = prepared(
        "prepare_conv2d_weights", weight, prepared_shape(op), has_bias=bias is not None
    )
    if bias is not None:
        shape = (1, 1, 1, op.parameter("out_channels"))
        operands[2] = prepared("prepare_conv2d_bias", bias, shape)
    op.operands = operands


@dataclass(frozen=True)
class FitRelease(ModulePass):
    """Rewrites calls of the catalogue that a release refuses.

    A scalar operand becomes a tensor of one element where the release takes scalars only beside
    tensors of one data type, not of 8- or 16-bit integers, and only values of that type
    (`Release.numbers`). Indices that the release returns with 32 bits are cast to the type of the
    catalogue (`Release.wide_indices`).
    """

    name = "ttnn-fit-release"

    release: str = DEFAULT_RELEASE

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        release = release_named(self.release)
        if not (release.numbers or release.wide_indices):
            return
        classes = ttnn_op_classes()

        def rewrite(builder: OpBuilder, call: CatalogueOp) -> SSAValue | tuple[SSAValue, ...]:
            operands = [builder[value] for value in call.operands]
            places = release.numbers.get(call.name)
            if places is not None and _is_refused(call, places):
                return _with_tensors(builder, call, places)
            if call.name in release.wide_indices and _has_wide_indices(call):
                return _with_wide_indices(builder, call, operands)
            keep(builder, call, operands)
            return tuple(call.results)

        for function in op.walk():
            if isinstance(function, FuncOp) and function.body.blocks:
                rebuild(function, lambda insert, m: OpBuilder(classes, insert, m), rewrite)


_NARROW = frozenset((DataType.UINT8, DataType.UINT16))


def _is_refused(call: CatalogueOp, places: Mapping[str, str]) -> bool:
    """Returns whether a release refuses the scalars of a call.

    It does for operands of several data types or narrow integers, and for scalars that the type of
    the result does not represent: scalars are passed as float32.
    """
    found = {declared_data_type(value) for value in call.operands}
    if len(found) > 1 or found & _NARROW:
        return True
    result = declared_data_type(call.results[0])
    if result.is_float:
        return False
    import numpy as np  # Not for calls without numbers: it takes longer to import than they do.

    limits = np.iinfo(result.numpy)
    absent = (name for operand, name in places.items() if call.optional_operand(operand) is None)
    return any(np.float32(number) != number
               or not limits.min <= np.float64(np.float32(number)) <= limits.max
               for number in map(call.parameter, absent))  # fmt: skip


def _with_tensors(builder: OpBuilder, call: CatalogueOp, places: Mapping[str, str]) -> SSAValue:
    """Returns the call with tensors of one element instead of scalars."""
    (result,) = call.results
    element, rank = element_of(result.type), len(shape_of(result.type))
    operands: list[SSAValue | None] = []
    for spec in call.definition.operands:
        value = call.optional_operand(spec.name)
        if value is not None:
            operands.append(builder[value])
        elif (name := places.get(spec.name)) is not None:
            number = call.parameter(name)
            exact = number if declared_data_type(result).is_float else int(number)
            operands.append(builder.full([1] * rank, exact, element))
        else:
            operands.append(None)
    return builder.emit(call.definition.short_name, operands, result.type)


def _has_wide_indices(call: CatalogueOp) -> bool:
    """Returns whether the release returns 32-bit indices where the call has 16-bit ones."""
    is_wide = declared_data_type(call.operands[0]) in (DataType.FLOAT32, DataType.UINT16)
    return is_wide and declared_data_type(call.results[1]) is DataType.UINT16


def _with_wide_indices(
    builder: OpBuilder, call: CatalogueOp, operands: Sequence[SSAValue]
) -> tuple[SSAValue, ...]:
    """Returns the call with 32-bit indices, cast back where users other than typecasts need it."""
    values, indices = call.results
    words = {spec.name: call.parameter(spec.name) for spec in call.definition.attributes}
    wide = TensorType(ui32, shape_of(indices.type))
    made = builder.emit_op(call.definition.short_name, operands, [values.type, wide], **words)
    found = made.results[1]
    if any(use.operation.name != "ttnn.typecast" for use in indices.uses):
        found = builder.typecast(found, element_of(indices.type))
    return (made.results[0], found)
