"""Bit-exact maxima and minima of float32.

The library reduces in the matrix engine, which truncates float32 to TF32. The lost bits come from
reducing the differences to the first extreme: rounding preserves the order, and the difference to
the extreme itself is exact. Of 24 bits the first pass gives 11, two more passes the remaining 13. A
tree of elementwise comparisons would be exact too, but needs two slices of partial tiles and a call
for each level.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import IntegerType
from xdsl.ir import Operation, SSAValue

from ttcodegen.dialects.core.datatypes import bf16, element_of, f32
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.ops.core.builder import OpBuilder
from ttcodegen.ops.core.definition import TTIRDefinition

EXTREMES = frozenset({"ttir.max", "ttir.min", "ttir.max_pool2d"})
"""Ops whose results are elements of the operand, of which the library loses bits."""
_PASSES = 3
_LARGEST = 3.4028234663852886e38
"""Largest float32; clamping to it avoids infinity - infinity = NaN."""
_STEPS = frozenset(
    f"ttir.{name}" for name in "eq ne lt le gt ge floor ceil round trunc remainder sign".split()
)
"""Discontinuous ops, whose result may change with the last bits of a computed operand."""
_DECIDING = _STEPS | {f"ttir.{name}" for name in "subtract where sort topk argmax".split()}
"""Ops that amplify the last bits of an operand."""
_PASSING = frozenset(
    f"ttir.{name}"
    for name in "maximum minimum max min neg abs relu clamp_scalar clamp_tensor".split()
)
"""Ops besides data movement whose results have the bits of their operands."""
_MOST_USERS = 256
"""Number of visited users above which an extreme is assumed to be needed exactly."""


def needs_all_bits(op: CatalogueOp) -> bool:
    """True if a TTIR op is a float32 extreme that is compared, selected or subtracted."""
    if op.name not in EXTREMES or op.result_type.element_type != f32:
        return False
    if element_of(op.operands[0].type) != f32 or has_few_bits(op.operands[0]):
        return False
    return bits_decide(op.results[0])


def bits_decide(value: SSAValue, but: frozenset[str] = frozenset()) -> bool:
    """True if a result depends on the last bits of a value, ignoring users named in `but`."""
    seen: set[tuple[SSAValue, bool]] = set()
    pending: list[tuple[SSAValue, _Path]] = [(value, _Path())]
    visited = 0
    while pending:
        value, path = pending.pop()
        if (value, path.computed) in seen:
            continue
        seen.add((value, path.computed))
        for use in value.uses:
            user = use.operation
            visited += 1
            if visited > _MOST_USERS or (_decides(user, path) and user.name not in but):
                return True
            if (further := path if user.name in but else path.through(user)) is not None:
                pending += [(result, further) for result in user.results]
    return False


@dataclass(frozen=True)
class _Path:
    """Path of ops from a value to one of its users."""

    negated: bool = False
    computed: bool = False
    """True if an op on the path changed the bits: a scaling, a root."""

    def through(self, op: Operation) -> _Path | None:
        """Extends the path by an op; None if the op does not pass on the last bits."""
        if not isinstance(op, CatalogueOp) or not isinstance(op.definition, TTIRDefinition):
            return None
        if op.definition.moves or op.name in _PASSING:
            return _Path(self.negated or op.name == "ttir.neg", self.computed)
        return _Path(self.negated, computed=True) if op.definition.tile is not None else None


def _decides(user: Operation, path: _Path) -> bool:
    if not isinstance(user, CatalogueOp):
        return False
    if user.name == "ttir.typecast":
        return isinstance(user.result_type.element_type, IntegerType)
    if path.computed:
        return user.name in _STEPS
    return user.name in _DECIDING or (path.negated and user.name == "ttir.add")


def has_few_bits(value: SSAValue) -> bool:
    """True if the elements are known to be bfloat16, which TF32 represents exactly."""
    op = value.owner
    while isinstance(op, CatalogueOp) and isinstance(op.definition, TTIRDefinition):
        if op.name == "ttir.typecast":
            return element_of(op.operands[0].type) == bf16
        if not op.definition.moves or len(op.operands) != 1:
            return False
        op = op.operands[0].owner
    return False


def exact_extreme(builder: OpBuilder, name: str, value: SSAValue, dims: Sequence[int]) -> SSAValue:
    """Emits a bit-exact TTNN maximum or minimum over `dims`, which are kept with size 1.

    Args:
        builder: Builder of TTNN ops.
        name: "max" or "min".
        value: A float32 tensor.
        dims: Reduced dimensions, not negative.
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
