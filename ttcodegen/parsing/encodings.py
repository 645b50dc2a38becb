"""Layouts that a source gives the tensors of TTIR."""

from __future__ import annotations

from typing import cast

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute

from ttcodegen.dialects.core.datatypes import without_encoding
from ttcodegen.dialects.operations.functions import change_types
from ttcodegen.dialects.ttcore.device import TensorMeshAttr
from ttcodegen.dialects.ttcore.layouts import BufferAttr, MetalLayoutAttr
from ttcodegen.dialects.ttnn.placement import TTNNLayoutAttr
from ttcodegen.foundation.diagnostics import Diagnostics
from ttcodegen.ops.dialects import TTIROp

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
    """Removes layouts from the tensors of functions of TTIR: where their tensors are is what the
    compiler decides. Functions that were lowered to TTNN, or to `ttir.generic`, keep theirs."""
    for function in module.walk():
        if isinstance(function, FuncOp):
            ops = list(function.walk())
            is_tensor_level = any(isinstance(op, TTIROp) for op in ops)
            if is_tensor_level and not any(op.name == "ttir.generic" for op in ops):
                _drop(function, diagnostics)


def _drop(function: FuncOp, diagnostics: Diagnostics) -> None:
    if change_types(function, _without_layout):
        diagnostics.warn(
            "tensor encodings such as #ttnn.ttnn_layout are ignored in TTIR: layouts are assigned "
            "by the compiler",
            function,
        )


def _without_layout(type_: Attribute) -> Attribute:
    encoding = cast("Attribute | None", getattr(type_, "encoding", None))
    return without_encoding(type_) if isinstance(encoding, _LAYOUTS) else type_
