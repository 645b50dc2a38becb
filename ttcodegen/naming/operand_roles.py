"""What the kernels of several programs call the tensors that they read: by their roles, since each
program has names of its own for them."""

from __future__ import annotations

from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue

from ttcodegen.dialects.core.datatypes import shape_of
from ttcodegen.dialects.operations.functions import body_of
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.naming.values import operand_noun
from ttcodegen.ops.core.definition import library_definition, traits_of
from ttcodegen.ops.core.traits import Trait

INPUT = "input"
"""The role of the only tensor, and of those of an op that treats all of its operands alike."""
SIDES = ("left", "right")
"""The roles of two operands that are alike but for their order."""
_SIDE_NAMES = ("a", "b", "lhs", "rhs")
"""What the catalogue calls the operands of products of matrices and of elementwise ops."""
_REPEATED = {"factor": "scale", "offset": "bias"}
_WHOLE = {"factor": "factor", "offset": "residual"}
"""What an operand is called that changes another one, by the noun for what the op does with it: one
that is repeated over the result, or one of the same size."""


def operand_roles(meaning: FuncOp | None) -> list[str]:
    """The roles of the tensors that a program reads, in order; none if nothing says what it
    computes."""
    if meaning is None or meaning.is_declaration:
        return []
    return [_role(argument) for argument in body_of(meaning).args]


def _role(value: SSAValue) -> str:
    """The role of a tensor: the one that the first op has for it which takes others as well."""
    use = next(iter(value.uses), None)
    if use is None or not isinstance(use.operation, CatalogueOp):
        return INPUT
    op = use.operation
    if len(op.operands) == 1:
        return _role(op.results[0])
    operand = next((name for name, group in op.operand_groups().items() if value in group), INPUT)
    if operand not in _SIDE_NAMES:
        return operand.removesuffix("s") if operand == f"{INPUT}s" else operand
    if Trait.MATRIX_PRODUCT in traits_of(library_definition(op)):
        return SIDES[use.index]
    return _role_in_elementwise(op, use.index)


def _role_in_elementwise(op: CatalogueOp, index: int) -> str:
    """The role of an operand of an elementwise op of two."""
    noun = operand_noun(op) or ""
    other = op.operands[1 - index]
    if isinstance(other.owner, Operation) and not other.owner.operands:
        return INPUT  # The other one is a constant.
    if _is_repeated(op, index) and noun in _REPEATED:
        return _REPEATED[noun]
    if noun in _WHOLE and _is_computed(other):
        return _WHOLE[noun]
    return INPUT if _is_repeated(op, 1 - index) else SIDES[index]


def _is_repeated(op: CatalogueOp, index: int) -> bool:
    """True if an operand is repeated over the result."""
    return shape_of(op.operands[index].type) != op.result_shape


def _is_computed(value: SSAValue) -> bool:
    """True if a value is no tensor that the program reads, in whatever form."""
    owner = value.owner
    while isinstance(owner, CatalogueOp) and len(owner.operands) == 1:
        owner = owner.operands[0].owner
    return isinstance(owner, Operation)
