"""Dimension labels of ops, and verification of shapes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from math import gcd, prod
from typing import Any

from xdsl.utils.exceptions import VerifyException

from ttcodegen.dialects.core.datatypes import element_of, normalized_data_type, shape_of
from ttcodegen.dialects.operations.operation import CatalogueOp

# Dimension labels that relate the operands and results of an op.
#
# An op that is sharded over the devices of a mesh needs the operand shards that match its shard of
# the result. Dimensions that are sharded together have one label. A dimension without a label
# must be replicated.

Shape = tuple[int, ...]
Labels = tuple[int | None, ...]


@dataclass(frozen=True)
class Dimensions:
    """Dimension labels of the operands and results of an op."""

    operands: Sequence[Labels]
    results: Sequence[Labels]
    reduced: Mapping[int, str] = field(default_factory=dict[int, str])
    """Labels that no result has, with the reduction of the partial results: "sum", "max", "min" or
    "mean".
    """
    attributes: Callable[[Sequence[Shape], Sequence[Shape]], Mapping[str, Any]] | None = None
    """Returns the attributes that change with the shard shapes of operands and results."""

    def largest(self, op: CatalogueOp) -> dict[int, int]:
        """Returns the largest shard count of each label: every valid count divides it."""
        found: dict[int, int] = {}
        labels = [*self.operands, *self.results]
        for dims, value in zip(labels, (*op.operands, *op.results), strict=True):
            for label, size in zip(dims, shape_of(value.type), strict=True):
                if label is not None:
                    found[label] = gcd(found.get(label, 0), size)
        return found


DimensionRule = Callable[[CatalogueOp], Dimensions | None]
"""Returns the dimension labels of an op; None if it needs whole tensors."""


def aligned(shape: Sequence[int], result: Sequence[int]) -> Labels:
    """Labels of an operand that broadcasts onto a result with the labels 0, 1, 2..."""
    start = len(result) - len(shape)
    return tuple(
        [
            start + dim if size == result[start + dim] and size != 1 else None
            for dim, size in enumerate(shape)
        ]
    )


def of_elements(op: CatalogueOp) -> Dimensions:
    """Labels of an elementwise op with broadcast."""
    result = op.result_shape
    return Dimensions(
        [aligned(shape_of(operand.type), result) for operand in op.operands],
        [tuple(range(len(result)))] * len(op.results),
    )


def all_but(op: CatalogueOp, whole: Collection[int]) -> Dimensions:
    """Labels of an op that preserves the dimensions of its first operand that are not `whole`.

    Other operands, mostly weights, are replicated.
    """
    shape = shape_of(op.operands[0].type)
    kept = tuple([None if dim in whole else dim for dim in range(len(shape))])
    others: list[Labels] = [(None,) * len(shape_of(each.type)) for each in op.operands[1:]]
    return Dimensions([kept, *others], [kept] * len(op.results))


def along(name: str) -> DimensionRule:
    """Labels of an op that works along the dimension in attribute `name`."""

    def rule(op: CatalogueOp) -> Dimensions | None:
        rank = len(shape_of(op.operands[0].type))
        return all_but(op, {op.parameter(name) % rank}) if rank else None

    return rule


def of_reduction(op: CatalogueOp, dims: Collection[int], how: str | None) -> Dimensions:
    """Labels of a reduction over `dims`.

    Shards of reduced dimensions give partial results that are combined by `how`, if given.
    """
    shape, result = shape_of(op.operands[0].type), op.result_shape
    kept: list[int | None] = [None if dim in dims else dim for dim in range(len(shape))]
    if len(result) != len(shape):
        kept = [dim for dim in range(len(shape)) if dim not in dims] or [None] * len(result)
    labels = [dim if how is not None or dim not in dims else None for dim in range(len(shape))]
    reduced = {} if how is None else dict.fromkeys(dims, how)
    return Dimensions([tuple(labels)], [tuple(kept)], reduced)


def of_permutation(permutation: Sequence[int]) -> Dimensions:
    """Labels of a permutation: dimension i of the result is dimension permutation[i]."""
    return Dimensions([tuple(range(len(permutation)))], [tuple(permutation)])


def of_reshape(op: CatalogueOp) -> Dimensions:
    """Labels of a reshape: each group of merged or split dimensions shares the label of its first
    one.
    """
    shape, result = shape_of(op.operands[0].type), op.result_shape
    before: list[int | None] = [None] * len(shape)
    after: list[int | None] = [None] * len(result)
    groups = [] if 0 in shape else dimension_groups(shape, result)
    for label, ((first, *_), (second, *_)) in enumerate(groups):
        before[first] = after[second] = label

    def attributes(_: Sequence[Shape], results: Sequence[Shape]) -> Mapping[str, Any]:
        return {"shape": list(results[0])} if op.name == "ttir.reshape" else {}

    return Dimensions([tuple(before)], [tuple(after)], attributes=attributes)


def dimension_groups(
    before: Sequence[int], after: Sequence[int]
) -> list[tuple[list[int], list[int]]]:
    """Returns the smallest groups of adjacent dimensions that a reshape maps to each other.

    Dimensions of size 1 belong to no group. Neither shape contains a zero.
    """
    old = [axis for axis, size in enumerate(before) if size != 1]
    new = [axis for axis, size in enumerate(after) if size != 1]
    groups: list[tuple[list[int], list[int]]] = []
    while old:
        first, second = [old.pop(0)], list[int]()
        left, right = before[first[0]], 1
        while left != right:
            if left < right:
                first.append(old.pop(0))
                left *= before[first[-1]]
            else:
                second.append(new.pop(0))
                right *= after[second[-1]]
        groups.append((first, second))
    return groups


def of_repetition(op: CatalogueOp) -> Dimensions:
    """Labels of a repeat: a repeated dimension is sharded in the result alone if its size is 1,
    else not at all.
    """
    shape, result = shape_of(op.operands[0].type), op.result_shape
    if len(shape) != len(result):
        return Dimensions([(None,) * len(shape)], [(None,) * len(result)])
    same = [size == wanted for size, wanted in zip(shape, result, strict=True)]
    before = tuple([dim if same[dim] else None for dim in range(len(shape))])
    after = tuple([dim if same[dim] or shape[dim] == 1 else None for dim in range(len(shape))])
    (name,) = [spec.name for spec in op.definition.attributes]

    def attributes(operands: Sequence[Shape], results: Sequence[Shape]) -> Mapping[str, Any]:
        pairs = zip(results[0], operands[0], strict=True)
        return {name: [wanted // size if size else 1 for wanted, size in pairs]}

    return Dimensions([before], [after], attributes=attributes)


def of_concatenation(op: CatalogueOp) -> Dimensions | None:
    """Labels of a concat: all dimensions but the concatenated one."""
    rank = len(op.result_shape)
    dim = op.parameter("dim") % rank
    labels: Labels = tuple([None if each == dim else each for each in range(rank)])
    return Dimensions([labels] * len(op.operands), [labels])


def of_part(
    op: CatalogueOp,
    taken: Sequence[tuple[int, int, int]],
    attributes: Callable[[Sequence[Shape]], Mapping[str, Any]],
) -> Dimensions:
    """Labels of a slice: dimensions that are taken as a whole.

    `taken` has (begin, end, step) for each dimension.
    """
    shape = shape_of(op.operands[0].type)
    labels: Labels = tuple(
        [
            dim if (begin, step) == (0, 1) and end == shape[dim] else None
            for dim, (begin, end, step) in enumerate(taken)
        ]
    )
    return Dimensions([labels], [labels], attributes=lambda operands, _: attributes(operands))


def of_filling(op: CatalogueOp) -> Dimensions:
    """Labels of a splat tensor, whose attribute `shape` is its shape."""
    return Dimensions(
        [],
        [tuple(range(len(op.result_shape)))],
        attributes=lambda _, results: {"shape": list(results[0])},
    )


def of_product(
    op: CatalogueOp,
    names: tuple[str, str],
    batch: tuple[Sequence[int], Sequence[int]],
    contracted: tuple[Sequence[int], Sequence[int]],
) -> Dimensions:
    """Labels of a dot general: batch dimensions, then free ones of the left and right side.

    Shards of contracted dimensions give partial sums.
    """
    left, right = op.shape(names[0]), op.shape(names[1])
    labels_l: list[int | None] = list(range(len(left)))
    labels_r: list[int | None] = [len(left) + dim for dim in range(len(right))]
    for pairs in (batch, contracted):
        for l_dim, r_dim in zip(*pairs, strict=True):
            labels_r[r_dim] = l_dim
    free_l = [labels_l[d] for d in range(len(left)) if d not in (*batch[0], *contracted[0])]
    free_r = [labels_r[d] for d in range(len(right)) if d not in (*batch[1], *contracted[1])]
    return Dimensions(
        [tuple(labels_l), tuple(labels_r)],
        [(*batch[0], *free_l, *free_r)],
        dict.fromkeys(contracted[0], "sum"),
    )


# Verification of dimensions and shapes shared by all op families.


def known_parameter(op: CatalogueOp, name: str, default: Any) -> Any:
    """Returns the attribute of that name, `default` for an op whose definition has none."""
    known = any(spec.name == name for spec in op.definition.attributes)
    return op.parameter(name) if known else default


def normalized_dim(op: CatalogueOp, dim: int, rank: int) -> int:
    """Counts `dim` from the front; raises VerifyException if it is out of range."""
    if not -rank <= dim < rank:
        raise VerifyException(
            f"{op.name}: dimension {dim} is out of range for a tensor of rank {rank}"
        )
    return dim % rank


def expect_shape(op: CatalogueOp, expected: Sequence[int], index: int = 0) -> None:
    """Raises VerifyException unless the result of that index has the expected shape."""
    found = shape_of(op.results[index].type)
    if tuple(expected) != found:
        raise VerifyException(
            f"{op.name}: expected a result of shape {tuple(expected)}, found {found}"
        )


def require(op: CatalogueOp, condition: bool, expected: str, found: object) -> None:
    """Raises VerifyException with expected and found value unless the condition holds."""
    if not condition:
        raise VerifyException(f"{op.name}: expected {expected}, found {found}")


def expect_volume(op: CatalogueOp, expected: Sequence[int], name: str) -> None:
    """Raises VerifyException unless the operand matches the shape in volume and last dimension.

    Images may also be given as rows (1, 1, N*H*W, C).
    """
    found = op.shape(name)
    fits = found[-1:] == tuple(expected[-1:]) and prod(found) == prod(expected)
    require(op, fits, f"an operand '{name}' of the elements of {tuple(expected)}", found)


def expect_result_volume(op: CatalogueOp, expected: Sequence[int]) -> None:
    """Raises VerifyException unless each result matches the shape in volume and last dimension."""
    for result in op.results:
        found = shape_of(result.type)
        fits = found[-1:] == tuple(expected[-1:]) and prod(found) == prod(expected)
        require(op, fits, f"a result of the elements of {tuple(expected)}", found)


def expect_element(op: CatalogueOp, name: str, index: int = 0) -> None:
    """Raises VerifyException unless the result has the element type of the operand."""
    expected, found = element_of(op.operand(name).type), element_of(op.results[index].type)
    require(op, expected == found, f"a result of {expected}, as the operand '{name}'", found)


def expect_integers(op: CatalogueOp, *names: str) -> None:
    """Raises VerifyException unless the named operands, where present, are integers."""
    _expect_elements(op, names, are_floats=False)


def expect_floats(op: CatalogueOp, *names: str) -> None:
    """Raises VerifyException unless the named operands, where present, are floats."""
    _expect_elements(op, names, are_floats=True)


def _expect_elements(op: CatalogueOp, names: Sequence[str], are_floats: bool) -> None:
    for name in names:
        value = op.optional_operand(name)
        if value is None:
            continue
        data_type = normalized_data_type(element_of(value.type))
        fits = data_type is not None and data_type.is_float == are_floats
        what = "floats" if are_floats else "integers"
        require(op, fits, f"an operand '{name}' of {what}", element_of(value.type))


def expect_rank(op: CatalogueOp, rank: int, *names: str) -> None:
    """Raises VerifyException unless the named operands have that rank."""
    for name in names:
        shape = op.shape(name)
        require(op, len(shape) == rank, f"{name} of rank {rank}", shape)
