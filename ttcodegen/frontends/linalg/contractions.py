"""Sums of products over loops, as products of matrices in any order of dimensions."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Attribute, SSAValue

from ttcodegen.dialects.core.datatypes import shape_of, tensor_type
from ttcodegen.frontends.linalg.loops import Loops


def contraction(
    loops: Loops, left: SSAValue, right: SSAValue, element: Attribute
) -> SSAValue | None:
    """The sum of the products of two tensors over the loops that are reduced, with dimensions of
    one element for these; None if it is no product of matrices: if a reduced loop moves one of them
    only, or if all loops that are kept move both, or one moves neither.

    Each tensor has a dimension for each loop, of one element where it does not move with it.
    """
    shapes = [shape_of(value.type) for value in (left, right)]
    moving = [[axis for axis, size in enumerate(shape) if size != 1] for shape in shapes]
    summed = [axis for axis in loops.reduced if loops.sizes[axis] != 1]
    if not summed or not all(axis in side for axis in summed for side in moving):
        return None
    batch = [axis for axis in moving[0] if axis in moving[1] and axis not in summed]
    free = [[axis for axis in side if axis not in (*batch, *summed)] for side in moving]
    if not free[0] and not free[1]:
        return None
    order = [*batch, *free[0], *free[1]]
    if any(size != 1 and axis not in (*order, *summed) for axis, size in enumerate(loops.sizes)):
        return None
    build = loops.build
    operands = [
        build.typecast(build.reshape(value, [loops.sizes[axis] for axis in side]), element)
        for value, side in zip((left, right), moving, strict=True)
    ]
    product = build.emit(
        "dot_general",
        operands,
        tensor_type(element, [loops.sizes[axis] for axis in order]),
        batch_dims_lhs=_places(batch, moving[0]),
        batch_dims_rhs=_places(batch, moving[1]),
        contract_dims_lhs=_places(summed, moving[0]),
        contract_dims_rhs=_places(summed, moving[1]),
    )
    product = build.permute(product, _places(sorted(order), order))
    kept = [size if axis in order else 1 for axis, size in enumerate(loops.sizes)]
    return build.reshape(product, kept)


def _places(axes: Sequence[int], among: Sequence[int]) -> list[int]:
    return [among.index(axis) for axis in axes]
