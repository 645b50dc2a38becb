"""Properties of collectives: dimensions, shapes and participating devices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

from xdsl.utils.exceptions import VerifyException

from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.dialects.ttcore.mesh import ONE_CHIP, declared_mesh
from ttcodegen.ops.collectives import reference as mesh_values
from ttcodegen.ops.collectives.groups import groups_of, mesh_axis, participants
from ttcodegen.ops.core.shape_checks import expect_shape, normalized_dim

# Attributes, whose names changed from year to year

GATHER_DIMS = ("all_gather_dim", "dim")
SCATTER_DIMS = ("scatter_dim", "scatter_split_dim")


def first_given(given: Callable[[str], Any], names: Sequence[str]) -> int | None:
    """The first of the attributes that is there; `given` has the value of each."""
    return next((given(name) for name in names if given(name) is not None), None)


def dim_of(op: CatalogueOp, *names: str) -> int:
    """The dimension that the first of the attributes names that is there; counted from the front.
    Their names changed from year to year."""
    dim = first_given(op.parameter, names)
    if dim is None:
        raise VerifyException(f"{op.name} needs the attribute '{names[0]}'")
    return normalized_dim(op, dim, len(op.shape("input")))


# Verifiers


def _expect_scaled(op: CatalogueOp, dim: int, grows: bool) -> None:
    """One dimension has as many parts more, or less, as chips participate; the others stay. A
    module that names no mesh does not say how many these are."""
    shape, result, chips = op.shape("input"), op.result_shape, participants(op)
    parts, whole = (shape, result) if grows else (result, shape)
    fits = len(shape) == len(result) and all(
        (parts[axis] and whole[axis] % parts[axis] == 0) if axis == dim else n == result[axis]
        for axis, n in enumerate(shape)
    )
    if not fits:
        raise VerifyException(
            f"{op.name}: {shape} and {result} differ in more than the number of parts in "
            f"dimension {dim}"
        )
    if declared_mesh(op) != ONE_CHIP and parts[dim] * chips != whole[dim]:
        raise VerifyException(
            f"{op.name}: {chips} chips participate, and {shape} and {result} differ by "
            f"{whole[dim] // parts[dim]} parts in dimension {dim}"
        )


def verify_all_gather(op: CatalogueOp) -> None:
    """The result has the parts of all chips along one dimension."""
    _expect_scaled(op, dim_of(op, *GATHER_DIMS), grows=True)


def verify_reduction(op: CatalogueOp) -> None:
    if op.parameter("reduce_type") not in mesh_values.REDUCTIONS:
        raise VerifyException(
            f"{op.name}: chips reduce by {', '.join(mesh_values.REDUCTIONS)}, found "
            f"'{op.parameter('reduce_type')}'"
        )


def verify_reduce_scatter(op: CatalogueOp) -> None:
    """The result is a part of the input along one dimension: of one chip, all of it."""
    verify_reduction(op)
    _expect_scaled(op, dim_of(op, *SCATTER_DIMS), grows=False)


def verify_partition(op: CatalogueOp) -> None:
    """The result is a part of the input along one dimension."""
    _expect_scaled(op, dim_of(op, "dim"), grows=False)


def verify_all_reduce(op: CatalogueOp) -> None:
    """The shape stays."""
    verify_reduction(op)
    mesh_axis(op)
    expect_shape(op, op.shape("input"))


def verify_permute(op: CatalogueOp) -> None:
    """The shape stays; a chip sends to one at most, and receives from one at most."""
    expect_shape(op, op.shape("input"))
    pairs: list[list[int]] = op.parameter("source_target_pairs") or []
    chips = prod(declared_mesh(op))
    if any(len(pair) != 2 for pair in pairs):
        raise VerifyException(f"{op.name}: source_target_pairs are pairs, found {pairs}")
    for place, name in enumerate(("source", "target")):
        side = [pair[place] for pair in pairs]
        if len(set(side)) != len(side):
            raise VerifyException(f"{op.name}: a chip is the {name} of two pairs: {side}")
    if chips > 1 and any(not 0 <= chip < chips for pair in pairs for chip in pair):
        raise VerifyException(f"{op.name}: the mesh has the chips 0 to {chips - 1}, found {pairs}")


def verify_broadcast(op: CatalogueOp) -> None:
    """The shape stays."""
    expect_shape(op, op.shape("input"))
    groups_of(op)


def expect_exchanged(op: CatalogueOp, split: int, concat: int, count: int) -> None:
    """Raises VerifyException unless one dimension is divided by a number and another multiplied."""
    shape = list(op.shape("input"))
    shape[split] //= count
    shape[concat] *= count
    expect_shape(op, shape)


def verify_all_to_all(op: CatalogueOp) -> None:
    """One dimension is divided among the chips of a group, another one put together of theirs."""
    shape = list(op.shape("input"))
    split = normalized_dim(op, op.parameter("split_dim"), len(shape))
    concat = normalized_dim(op, op.parameter("concat_dim"), len(shape))
    count = op.parameter("split_count")
    if any(len(group) != count for group in groups_of(op)) or shape[split] % max(count, 1):
        raise VerifyException(
            f"{op.name}: {tuple(shape)} should divide into {count} parts in dimension {split}, "
            f"one for each chip of a group"
        )
    expect_exchanged(op, split, concat, count)
