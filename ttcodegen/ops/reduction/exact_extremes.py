"""Maxima and minima of float32 that are elements of what they are taken of, bit by bit.

The matrix engine, which the library reduces in, cuts float32 to TF32. What it cuts off is found by
reducing what is left of the elements less the extreme: rounding keeps the order of numbers, and of
the extreme itself the difference is exact. 24 bits are 11 of the first extreme, and 13 of the
difference, which take two more. Halves that are compared element by element would be exact too, but
need a slice of parts of tiles, twice, and a call for each bit of the number of elements.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import IntegerType
from xdsl.ir import SSAValue

from ttcodegen.dialects.core.datatypes import bf16, element_of, f32
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.ops.core.builder import OpBuilder
from ttcodegen.ops.core.definition import TTIRDefinition

EXTREMES = frozenset({"ttir.max", "ttir.min", "ttir.max_pool2d"})
"""Ops whose results are elements of the operand, of which the library loses bits."""
_PASSES = 3
_LARGEST = 3.4028234663852886e38
"""Of float32: infinities less infinities would be NaN."""
_DECIDING = frozenset(
    f"ttir.{name}"
    for name in (
        "eq ne lt le gt ge subtract where floor ceil round trunc sort topk argmax remainder"
    ).split()
)
"""Ops that make much of the last bits of an operand."""
_PASSING = frozenset(f"ttir.{name}" for name in "maximum minimum max min neg abs".split())
"""Ops whose results have the bits of their operands, beside those that move elements."""
_MOST_USERS = 256
"""Largest number of ops looked at; an extreme with more users is taken to be needed exactly."""


def needs_all_bits(op: CatalogueOp) -> bool:
    """True if `op`, of TTIR, is an extreme of float32 that is compared, selected or subtracted."""
    if op.name not in EXTREMES or op.result_type.element_type != f32:
        return False
    if element_of(op.operands[0].type) != f32 or has_few_bits(op.operands[0]):
        return False
    return bits_decide(op.results[0])


def bits_decide(value: SSAValue, but: frozenset[str] = frozenset()) -> bool:
    """True if a result, of ops other than those of `but`, hangs on the last bits of a value."""
    seen: set[SSAValue] = set()
    pending: list[tuple[SSAValue, bool]] = [(value, False)]
    visited = 0
    while pending:
        value, is_negated = pending.pop()
        if value in seen:
            continue
        seen.add(value)
        for use in value.uses:
            user = use.operation
            visited += 1
            if visited > _MOST_USERS or (_decides(user, is_negated) and user.name not in but):
                return True
            if _passes_on(user) or user.name in but:
                negated = is_negated or user.name == "ttir.neg"
                pending += [(result, negated) for result in user.results]
    return False


def _decides(user: object, is_negated: bool) -> bool:
    if not isinstance(user, CatalogueOp):
        return False
    if user.name == "ttir.typecast":
        return isinstance(user.result_type.element_type, IntegerType)
    return user.name in _DECIDING or (is_negated and user.name == "ttir.add")


def _passes_on(user: object) -> bool:
    if not isinstance(user, CatalogueOp):
        return False
    definition = user.definition
    moves = isinstance(definition, TTIRDefinition) and definition.moves
    return moves or user.name in _PASSING


def has_few_bits(value: SSAValue) -> bool:
    """True if the elements are known to be of bfloat16, all bits of which TF32 has."""
    op = value.owner
    while isinstance(op, CatalogueOp) and isinstance(op.definition, TTIRDefinition):
        if op.name == "ttir.typecast":
            return element_of(op.operands[0].type) == bf16
        if not op.definition.moves or len(op.operands) != 1:
            return False
        op = op.operands[0].owner
    return False


def exact_extreme(builder: OpBuilder, name: str, value: SSAValue, dims: Sequence[int]) -> SSAValue:
    """Emits a maximum or minimum of TTNN over `dims`, which are kept as dimensions of one element.

    Args:
        builder: makes the calls.
        name: "max" or "min".
        value: a tensor of float32.
        dims: the reduced dimensions, not negative.
    """
    parts: list[SSAValue] = []
    rest = value
    noun = f"{name}ima"
    for number in range(_PASSES):
        part = builder.reduce(name, rest, dims)
        if number < _PASSES - 1:
            part = builder.like("clamp_scalar", part, min=-_LARGEST, max=_LARGEST)
            rest = builder.broadcasting("subtract", rest, part)
        part.name_hint = f"{noun}_of_rest" if number else f"coarse_{noun}"
        parts.append(part)
    first, second, third = parts
    found = builder.like("add", first, builder.like("add", second, third))
    if builder.origin is None or builder.origin.results[0].name_hint is None:
        found.name_hint = noun
    return found
