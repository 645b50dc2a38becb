"""What ops of all families ask of dimensions and shapes."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.utils.exceptions import VerifyException

from ttcodegen.dialects.datatypes import shape_of
from ttcodegen.dialects.operation import CatalogueOp


def normalized_dim(op: CatalogueOp, dim: int, rank: int) -> int:
    """`dim` counted from the front; raises VerifyException if the tensor has no such dimension."""
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
    """Raises VerifyException that says what was expected and what was found."""
    if not condition:
        raise VerifyException(f"{op.name}: expected {expected}, found {found}")


def expect_rank(op: CatalogueOp, rank: int, *names: str) -> None:
    """Raises VerifyException unless the operands of those names have that rank."""
    for name in names:
        shape = op.shape(name)
        require(op, len(shape) == rank, f"{name} of rank {rank}", shape)
