"""Verification of dimensions and shapes shared by all op families."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from xdsl.utils.exceptions import VerifyException

from ttcodegen.dialects.core.datatypes import element_of, normalized_data_type, shape_of
from ttcodegen.dialects.operations.operation import CatalogueOp


def known_parameter(op: CatalogueOp, name: str, default: Any) -> Any:
    """The attribute of that name; `default` for an op whose definition has none."""
    known = any(spec.name == name for spec in op.definition.attributes)
    return op.parameter(name) if known else default


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


def expect_volume(op: CatalogueOp, expected: Sequence[int], name: str) -> None:
    """Raises VerifyException unless the operand has as many elements as a tensor of that shape, and
    its last dimension: images are also given as rows (1, 1, N*H*W, C)."""
    found = op.shape(name)
    fits = found[-1:] == tuple(expected[-1:]) and prod(found) == prod(expected)
    require(op, fits, f"an operand '{name}' of the elements of {tuple(expected)}", found)


def expect_result_volume(op: CatalogueOp, expected: Sequence[int]) -> None:
    """Raises VerifyException unless each result has as many elements as a tensor of that shape, and
    its last dimension."""
    for result in op.results:
        found = shape_of(result.type)
        fits = found[-1:] == tuple(expected[-1:]) and prod(found) == prod(expected)
        require(op, fits, f"a result of the elements of {tuple(expected)}", found)


def expect_element(op: CatalogueOp, name: str, index: int = 0) -> None:
    """Raises VerifyException unless the result of that index has elements of the type of the
    operand."""
    expected, found = element_of(op.operand(name).type), element_of(op.results[index].type)
    require(op, expected == found, f"a result of {expected}, as the operand '{name}'", found)


def expect_integers(op: CatalogueOp, *names: str) -> None:
    """Raises VerifyException unless the operands of those names, where they are present, have
    integers."""
    for name in names:
        value = op.optional_operand(name)
        if value is None:
            continue
        data_type = normalized_data_type(element_of(value.type))
        fits = data_type is not None and not data_type.is_float
        require(op, fits, f"an operand '{name}' of integers", element_of(value.type))


def expect_rank(op: CatalogueOp, rank: int, *names: str) -> None:
    """Raises VerifyException unless the operands of those names have that rank."""
    for name in names:
        shape = op.shape(name)
        require(op, len(shape) == rank, f"{name} of rank {rank}", shape)
