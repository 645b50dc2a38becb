"""Means over all pixels of images as average pooling.

A mean over the pixels of an image reduces the second-last dimension of (images, 1, pixels,
channels), for which the rows of a convolution, all images below each other, are divided at
positions within tiles. Pooling with a window of the whole image takes those rows as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isqrt, prod

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, bf16
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass

from ttcodegen.dialects.core.datatypes import element_of, shape_of, tensor_type
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.ops.core.builder import OpBuilder
from ttcodegen.optimizer.cost.calls import apply_if_faster
from ttcodegen.optimizer.rewrites import rewrite_calls


@dataclass(frozen=True)
class PooledMeans(ModulePass):
    """Computes means over whole images by `avg_pool2d` where the cost model predicts a gain."""

    name = "ttnn-pooled-means"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        apply_if_faster(ctx, op, ("mean",), lambda function: rewrite_calls(function, _pooled))


def _pooled(
    builder: OpBuilder, op: CatalogueOp, operands: Sequence[SSAValue]
) -> Sequence[SSAValue] | None:
    """Replaces a mean over dimensions next to the last one, if reshapes made them of rows."""
    if op.name == "ttnn.reshape":
        return _reshaped(builder, op, operands[0])
    if op.name != "ttnn.mean" or element_of(op.results[0].type) != bf16:
        return None
    shape, dims = op.shape("input"), op.parameter("dim_arg")
    if not dims or element_of(operands[0].type) != bf16:
        return None
    reduced = sorted(dim % len(shape) for dim in dims)
    first = reduced[0]
    if reduced != [*range(first, len(shape) - 1)]:
        return None
    rows = _rows(operands[0])
    if rows is None:
        return None
    images, pixels, channels = prod(shape[:first]), prod(shape[first:-1]), shape[-1]
    height, width = _sides(pixels)
    if min(height, width) == 1:
        return None
    pooled = builder.emit(
        "avg_pool2d",
        [builder.reshape(rows, [1, 1, images * pixels, channels])],
        tensor_type(bf16, (1, 1, images, channels)),
        batch_size=images,
        input_height=height,
        input_width=width,
        channels=channels,
        kernel_size=[height, width],
        stride=[1, 1],
        padding=[0, 0],
    )
    return [builder.reshape(pooled, op.result_shape)]


def _reshaped(builder: OpBuilder, op: CatalogueOp, value: SSAValue) -> Sequence[SSAValue] | None:
    """Reshapes the rows of a pooled mean at once."""
    made_by = value.owner
    if not isinstance(made_by, CatalogueOp) or made_by.name != "ttnn.reshape":
        return None
    pooled = made_by.operands[0]
    if not isinstance(pooled.owner, CatalogueOp) or pooled.owner.name != "ttnn.avg_pool2d":
        return None
    return [builder.reshape(pooled, op.result_shape)]


def _rows(value: SSAValue) -> SSAValue | None:
    """Returns what a value is a reshape of, in rows of its channels; None if it is none."""
    channels = shape_of(value.type)[-1]
    found = None
    while isinstance(value.owner, CatalogueOp) and value.owner.name == "ttnn.reshape":
        value = value.owner.operands[0]
        if shape_of(value.type)[-1:] == (channels,):
            found = value
    return found


def _sides(pixels: int) -> tuple[int, int]:
    """Returns sides of an image with so many pixels, of whose mean the sides do not matter."""
    height = next(side for side in range(isqrt(pixels), 0, -1) if pixels % side == 0)
    return height, pixels // height
