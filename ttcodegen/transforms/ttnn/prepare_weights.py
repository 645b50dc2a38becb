"""Preparation of convolution weights: once, on the device."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass

from ttcodegen.dialects.core.datatypes import DataType
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.dialects.ttcore.shards import Layout, Memory
from ttcodegen.dialects.ttnn.placement import TensorPlacement, placed_type, placement_of
from ttcodegen.dialects.ttnn.program_configs import Conv2dConfig, Word, config_attribute
from ttcodegen.ops.convolution.prepared_weights import image_attributes, prepared_shape
from ttcodegen.ops.core.builder import OpBuilder
from ttcodegen.ops.core.calls import COMPUTE_CONFIG_ATTRIBUTE, CONV2D_CONFIG_ATTRIBUTE
from ttcodegen.ops.core.definition import has_trait
from ttcodegen.ops.core.traits import Trait
from ttcodegen.ops.dialects import ttnn_op_classes
from ttcodegen.transforms.const_eval import constant_values, is_const_eval
from ttcodegen.transforms.rewriting import body_of


@dataclass(frozen=True)
class PrepareConvolutionWeights(ModulePass):
    """Gives `ttnn.conv2d` weights that are prepared, where they are the same in every call.

    Plain weights are of the host, and the library prepares them each time that it is called. Runs
    after placements are decided: the order of prepared weights follows from those of the image.
    """

    name = "ttnn-prepare-conv2d-weights-and-bias"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        found = [
            each
            for function in op.walk()
            if isinstance(function, FuncOp) and not is_const_eval(function)
            for each in _with_constant_weights(function)
        ]
        # Convolutions without a configuration share one, which says the type of their weights:
        # of transposed ones, too, and of those whose weights are not prepared.
        types = {
            placement_of(each.operand("weight")).data_type
            for each in op.walk()
            if isinstance(each, CatalogueOp) and each.name in _SHARING and _config(each) is None
        }
        for each in found:
            _prepare(each, is_shared=_config(each) is None and len(types) == 1)
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


def _config(op: CatalogueOp) -> Conv2dConfig | None:
    """The configuration of a convolution; transposed ones have none of their own."""
    has_config = CONV2D_CONFIG_ATTRIBUTE in op.definition.attributes
    return op.parameter(CONV2D_CONFIG_ATTRIBUTE.name) if has_config else None


def _weight_type(op: CatalogueOp) -> DataType:
    """Data type of the prepared weights; of the plain ones, unless the configuration says it."""
    config = _config(op)
    if config is None or config.weights_dtype is None:
        return placement_of(op.operand("weight")).data_type
    return DataType.from_mlir(config.weights_dtype.text)


def _attributes(op: CatalogueOp) -> dict[str, Any]:
    """Attributes of the preparations for a convolution, which are its own."""
    names = [spec.name for spec in image_attributes()]
    names += ["dtype", CONV2D_CONFIG_ATTRIBUTE.name, COMPUTE_CONFIG_ATTRIBUTE.name]
    return {
        **{name: op.parameter(name) for name in names},
        "image": placement_of(op.operand("input")),
    }


def _update_preparations(op: CatalogueOp) -> None:
    """Gives preparations that the module came with what was decided about their convolution."""
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
        # Without it the library cannot prepare a bias (prepare_conv2d_weights.cpp of tt-metal).
        config = replace(_config(op) or Conv2dConfig(), weights_dtype=Word(data_type.mlir))
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
