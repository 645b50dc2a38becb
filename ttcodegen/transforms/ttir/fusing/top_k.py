"""The first elements of sorted ones: `topk`."""

from __future__ import annotations

from xdsl.ir import Operation, SSAValue

from ttcodegen.dialects.core.datatypes import element_of, tensor_type
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.transforms.rewriting import PatternSet, Rewriter
from ttcodegen.transforms.ttir.queries import is_float

SELECTIONS = PatternSet()


@SELECTIONS.on("ttir.reverse")
def sort_the_other_way(rewriter: Rewriter, op: CatalogueOp) -> SSAValue | None:
    """Sorted values backwards are sorted the other way, if their indices are not used: equal ones
    would change places."""
    source = op.operands[0]
    sort = rewriter.sole(source, "ttir.sort")
    if sort is None or source is not sort.results[0] or sort.results[1].first_use is not None:
        return None
    rank = len(op.result_shape)
    if [dim % rank for dim in op.parameter("dimensions")] != [sort.parameter("dim") % rank]:
        return None
    made = rewriter.emit_op(
        "sort",
        [sort.operands[0]],
        [result.type for result in sort.results],
        dim=sort.parameter("dim"),
        descending=not sort.parameter("descending"),
        stable=sort.parameter("stable"),
    )
    return made.results[0]


@SELECTIONS.on("ttir.slice_static")
def fuse_topk(rewriter: Rewriter, op: CatalogueOp) -> SSAValue | None:
    """The first k of sorted floats, or of their indices, if the others are not used. Each
    slice makes the op; equal ones are merged."""
    sort = rewriter.defining(op.operands[0], "ttir.sort")
    if sort is None or not is_float(sort.operands[0]) or not sort.result_shape:
        return None
    count = _first_elements(sort, op)
    if not count or count == sort.result_shape[sort.parameter("dim")]:
        return None
    users = [use.operation for result in sort.results for use in result.uses]
    if any(_first_elements(sort, user) != count for user in users):
        return None
    made = rewriter.emit_op(
        "topk",
        [sort.operands[0]],
        [tensor_type(element_of(result.type), op.result_shape) for result in sort.results],
        k=count,
        dim=sort.parameter("dim"),
        largest=sort.parameter("descending"),
        sorted=True,
    )
    return made.results[0 if op.operands[0] is sort.results[0] else 1]


def _first_elements(sort: CatalogueOp, user: Operation) -> int | None:
    """Counts the leading sorted elements that a user slices, or returns None."""
    if not isinstance(user, CatalogueOp) or user.name != "ttir.slice_static":
        return None
    if any(user.parameter("begins")) or any(step != 1 for step in user.parameter("step")):
        return None
    shape = list(sort.result_shape)
    dim: int = sort.parameter("dim")
    shape[dim] = user.result_shape[dim]
    return shape[dim] if user.result_shape == tuple(shape) else None
