"""Layouts that a source gives the tensors of TTIR."""

from __future__ import annotations

from typing import cast

from xdsl.dialects.builtin import FunctionType, ModuleOp, TensorType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, SSAValue
from xdsl.rewriter import Rewriter

from ttcodegen.diagnostics import Diagnostics
from ttcodegen.dialects.placement import TTNNLayoutAttr
from ttcodegen.dialects.ttcore_device import TensorMeshAttr
from ttcodegen.dialects.ttcore_layouts import BufferAttr, MetalLayoutAttr
from ttcodegen.ops.ttir import TTIROp

_LAYOUTS = (TTNNLayoutAttr, MetalLayoutAttr, BufferAttr, TensorMeshAttr)

ENCODINGS = (
    "ttnn_layout",
    "metal_layout",
    "tt.layout",
    "tt.buffer",
    "ttcore.buffer",
    "tensor_mesh",
)
"""Text that has none of these words has no layouts to drop."""


def drop_layouts(module: ModuleOp, diagnostics: Diagnostics) -> None:
    """Takes layouts off the tensors of functions of TTIR: where their tensors lie is what the
    compiler decides. Functions that were lowered to TTNN, or to `ttir.generic`, keep theirs."""
    for function in module.walk():
        if isinstance(function, FuncOp):
            ops = list(function.walk())
            is_tensor_level = any(isinstance(op, TTIROp) for op in ops)
            if is_tensor_level and not any(op.name == "ttir.generic" for op in ops):
                _drop(function, diagnostics)


def _drop(function: FuncOp, diagnostics: Diagnostics) -> None:
    plain = FunctionType.from_lists(
        [_plain(type_) for type_ in function.function_type.inputs.data],
        [_plain(type_) for type_ in function.function_type.outputs.data],
    )
    values: list[SSAValue] = [result for op in function.walk() for result in op.results]
    for block in function.body.blocks:
        values += block.args
    placed = [value for value in values if _plain(value.type) is not value.type]
    if not placed and plain == function.function_type:
        return
    diagnostics.warn(
        "tensor encodings such as #ttnn.ttnn_layout are ignored in TTIR: layouts are assigned by "
        "the compiler",
        function,
    )
    function.function_type = plain
    for value in placed:
        Rewriter.replace_value_with_new_type(value, _plain(value.type))


def _plain(type_: Attribute) -> Attribute:
    if not isinstance(type_, TensorType):
        return type_
    tensor = cast("TensorType[Attribute]", type_)
    if not isinstance(tensor.encoding, _LAYOUTS):
        return tensor
    return TensorType(tensor.element_type, tensor.get_shape())
