"""Positional forms of values: masks are recognized by the comparisons that define them.

`form_of` describes a value by its indices, whatever its size: an affine function (`Linear`), a
conjunction of inequalities (`Region`), or an additive mask of scores (`Hiding`). Only vectors of
positions and constants of the module are evaluated elementwise.
"""

from __future__ import annotations

from collections.abc import Callable

from xdsl.ir import SSAValue

from ttcodegen.dialects.core.datatypes import (
    DataType,
    element_of,
    normalized_data_type,
    shape_of,
)
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.ops.core.builder import splat_of
from ttcodegen.transforms.rewriting import is_repeatable
from ttcodegen.transforms.ttir.position_forms import (
    Distance,
    Form,
    Hiding,
    Linear,
    Region,
    both,
    compared,
    computed_line,
    constant_form,
    either,
    elements_of,
    inverted,
    is_line,
    truth_of,
)

_EXACT = {
    DataType.FLOAT32: (-(2**24), 2**24),
    DataType.INT32: (-(2**31), 2**31 - 1),
    DataType.UINT32: (0, 2**32 - 1),
    DataType.UINT16: (0, 2**16 - 1),
    DataType.UINT8: (0, 2**8 - 1),
    DataType.BFLOAT16: (-256, 256),
}
"""Ranges in which a type represents every integer."""


def form_of(value: SSAValue) -> Form | None:
    """Derives the positional form of a value, or returns None; visits each op once."""
    known: dict[SSAValue, Form | None] = {}
    pending = [value]
    while pending:
        current = pending[-1]
        if current in known:
            pending.pop()
            continue
        op = current.owner
        if not isinstance(op, CatalogueOp) or not _may_follow(op):
            known[current] = None
            continue
        missing = [operand for operand in op.operands if operand not in known]
        if missing:
            # One operand without form suffices to give up.
            failed = any(known.get(operand, op) is None for operand in op.operands)
            if not failed:
                pending.append(missing[0])
                continue
        forms = [known.get(operand) for operand in op.operands]
        found = [form for form in forms if form is not None]
        known[current] = _followed(op, found) if len(found) == len(op.operands) else None
    return known[value]


def _may_follow(op: CatalogueOp) -> bool:
    """Returns whether an op may have a form if its operands do."""
    if len(op.results) != 1:
        return False
    return op.name in _RULES or (is_line(op.result_shape) and is_repeatable(op))


def _followed(op: CatalogueOp, forms: list[Form]) -> Form | None:
    """Derives the result form of an op from its operand forms.

    Where no rule applies, forms along one dimension are evaluated: they are no larger than a
    sequence.
    """
    rule = _RULES.get(op.name)
    found = None if rule is None else rule(op, forms)
    if found is not None or not is_line(op.result_shape) or not is_repeatable(op):
        return found
    shapes = [shape_of(operand.type) for operand in op.operands]
    if not all(is_line(shape) for shape in shapes):
        return None
    return computed_line(op, [elements_of(f, s) for f, s in zip(forms, shapes, strict=True)])


def _aligned(op: CatalogueOp, forms: list[Form]) -> list[Form]:
    """Returns the operand forms with the rank of the result."""
    rank = len(op.result_shape)
    return [form.with_rank(rank) for form in forms]


def _fill(op: CatalogueOp, forms: list[Form]) -> Form | None:
    splat = splat_of(op.results[0])
    return None if splat is None else Linear((0,) * len(op.result_shape), splat)


def _constant(op: CatalogueOp, forms: list[Form]) -> Form | None:
    return _fill(op, forms) or constant_form(op)


def _arange(op: CatalogueOp, forms: list[Form]) -> Form | None:
    rank = len(op.result_shape)
    dim = op.parameter("arange_dimension") % rank
    step = op.parameter("step") if op.result_shape[dim] != 1 else 0
    return Linear(tuple(step if axis == dim else 0 for axis in range(rank)), op.parameter("start"))


def _typecast(op: CatalogueOp, forms: list[Form]) -> Form | None:
    """Form of a conversion, if the type represents all its values exactly."""
    (form,) = forms
    if isinstance(form, Distance):
        # The absolute value is exact if the signed value is.
        linear = _typecast(op, [form.signed])
        return form if linear == form.signed else None
    data_type = normalized_data_type(element_of(op.results[0].type))
    if not isinstance(form, Linear) or data_type is None or not any(form.coefficients):
        return form
    low, high = form.bounds(op.result_shape)
    least, most = _EXACT.get(data_type, (0, 0))
    return form if form.is_whole and least <= low and high <= most else None


def _reshape(op: CatalogueOp, forms: list[Form]) -> Form | None:
    """Form of a reshape that only adds or drops dimensions of size 1."""
    source = shape_of(op.operands[0].type)
    (form,) = forms
    if form.is_constant:
        return form.with_places([None] * len(op.result_shape))
    before = [axis for axis, size in enumerate(source) if size != 1]
    after = [axis for axis, size in enumerate(op.result_shape) if size != 1]
    if [source[axis] for axis in before] != [op.result_shape[axis] for axis in after]:
        return None
    places = dict(zip(after, before, strict=True))
    return form.with_places([places.get(axis) for axis in range(len(op.result_shape))])


def _permute(op: CatalogueOp, forms: list[Form]) -> Form | None:
    return forms[0].with_places(list(op.parameter("permutation")))


def _repeated(op: CatalogueOp, forms: list[Form]) -> Form | None:
    """Form of an expanded dimension: constant along it."""
    source = shape_of(op.operands[0].type)
    pairs = zip(source, op.result_shape, strict=True)
    changed = [axis for axis, (a, b) in enumerate(pairs) if a not in (1, b)]
    return None if any(forms[0].varies(axis) for axis in changed) else forms[0]


def _slice(op: CatalogueOp, forms: list[Form]) -> Form | None:
    sizes = shape_of(op.operands[0].type)
    begins = [b + n if b < 0 else b for b, n in zip(op.parameter("begins"), sizes, strict=True)]
    return forms[0].sliced(begins, op.parameter("step"), op.result_shape)


def _cumsum(op: CatalogueOp, forms: list[Form]) -> Form | None:
    """Cumulative sum of a splat: multiples of its number."""
    (form,) = forms
    if not isinstance(form, Linear) or any(form.coefficients):
        return None
    dim = op.parameter("dim") % len(op.result_shape)
    step = form.constant if op.result_shape[dim] != 1 else 0
    coefficients = tuple(step if axis == dim else 0 for axis in range(len(op.result_shape)))
    return Linear(coefficients, form.constant)


def _add(op: CatalogueOp, forms: list[Form]) -> Form | None:
    first, second = _aligned(op, forms)
    match first, second:
        case Linear(), Linear():
            return first.plus(second)
        case Hiding(), Hiding():
            visible = both(first.visible, second.visible)
            return Hiding(visible, max(first.number, second.number))
        case (Hiding(), Linear()) | (Linear(), Hiding()):
            mask, other = (first, second) if isinstance(first, Hiding) else (second, first)
            assert isinstance(other, Linear)
            return mask if other.number == 0 else None
        case _:
            return None


def _subtract(op: CatalogueOp, forms: list[Form]) -> Form | None:
    first, second = _aligned(op, forms)
    if isinstance(first, Linear) and isinstance(second, Linear):
        return first.plus(second.times(-1))
    if isinstance(first, Linear) and isinstance(second, Region) and first.number == 1:
        return inverted(second)
    if isinstance(second, Linear) and second.number == 0:
        return first
    return None


def _absolute(op: CatalogueOp, forms: list[Form]) -> Form | None:
    (form,) = forms
    if not isinstance(form, Linear):
        return form if isinstance(form, Distance | Region) else None
    low, high = form.bounds(op.result_shape)
    if low >= 0 or high <= 0:
        return form.times(-1 if low < 0 else 1)
    return Distance(form)


def _negated(op: CatalogueOp, forms: list[Form]) -> Form | None:
    return forms[0].times(-1) if isinstance(forms[0], Linear) else None


def _multiply(op: CatalogueOp, forms: list[Form]) -> Form | None:
    for first, second in ((aligned := _aligned(op, forms)), aligned[::-1]):
        match first, second:
            case Region(), Region():
                return both(first, second)
            case Linear(), Linear() if second.number is not None:
                return first.times(second.number)
            case Region(), Linear() if second.number is not None:
                return _select(first, second.number, 0)
            case Hiding(), Region():
                hidden = inverted(first.visible)
                common = None if hidden is None else both(hidden, second)
                visible = None if common is None else inverted(common)
                return None if visible is None else Hiding(visible, first.number)
            case _:
                pass
    return None


def _comparison(op: CatalogueOp, forms: list[Form]) -> Form | None:
    first, second = _aligned(op, forms)
    return compared(op.definition.short_name, first, second)


def _not(op: CatalogueOp, forms: list[Form]) -> Form | None:
    truth = truth_of(forms[0])
    return None if truth is None else inverted(truth)


def _and(op: CatalogueOp, forms: list[Form]) -> Form | None:
    first, second = (truth_of(form) for form in _aligned(op, forms))
    return None if first is None or second is None else both(first, second)


def _or(op: CatalogueOp, forms: list[Form]) -> Form | None:
    first, second = (truth_of(form) for form in _aligned(op, forms))
    return None if first is None or second is None else either(first, second)


def _minimum(op: CatalogueOp, forms: list[Form]) -> Form | None:
    first, second = _aligned(op, forms)
    if isinstance(first, Hiding) and isinstance(second, Hiding):
        return Hiding(both(first.visible, second.visible), max(first.number, second.number))
    return None


def _maximum(op: CatalogueOp, forms: list[Form]) -> Form | None:
    """Form of a mask bounded from below."""
    for first, second in ((aligned := _aligned(op, forms)), aligned[::-1]):
        if isinstance(first, Hiding) and isinstance(second, Linear) and second.number is not None:
            number = max(first.number, second.number)
            return Hiding(first.visible, number) if number < 0 else None
    return None


def _where(op: CatalogueOp, forms: list[Form]) -> Form | None:
    chooser, first, second = _aligned(op, forms)
    condition = truth_of(chooser)
    if condition is None:
        return None
    if isinstance(first, Linear) and isinstance(second, Linear):
        if first.number is None or second.number is None:
            return None
        return _select(condition, first.number, second.number)
    for region, mask, other in (
        (condition, first, second),
        (inverted(condition), second, first),
    ):
        if region is None or not isinstance(mask, Hiding) or not isinstance(other, Linear):
            continue
        if other.number is not None and other.number < 0:
            return Hiding(both(region, mask.visible), max(mask.number, other.number))
    return None


def _select(region: Region, inside: float, outside: float) -> Form | None:
    """Returns the form of one number inside a region and another one outside, or None."""
    match inside, outside:
        case 1, 0:
            return region
        case 0, 1:
            return inverted(region)
        case 0, number if number < 0:
            return Hiding(region, number)
        case number, 0 if number < 0:
            visible = inverted(region)
            return None if visible is None else Hiding(visible, number)
        case _:
            return None


_Rule = Callable[[CatalogueOp, list[Form]], Form | None]
_RULES: dict[str, _Rule] = {
    **{f"ttir.{name}": _fill for name in ("full", "zeros", "ones")},
    "ttir.constant": _constant,
    "ttir.arange": _arange,
    "ttir.typecast": _typecast,
    "ttir.reshape": _reshape,
    "ttir.permute": _permute,
    **{f"ttir.{name}": _repeated for name in ("broadcast", "repeat", "repeat_interleave")},
    "ttir.slice_static": _slice,
    "ttir.cumsum": _cumsum,
    "ttir.add": _add,
    "ttir.subtract": _subtract,
    "ttir.abs": _absolute,
    "ttir.neg": _negated,
    "ttir.multiply": _multiply,
    **{f"ttir.{name}": _comparison for name in ("ge", "gt", "le", "lt", "eq", "ne")},
    "ttir.logical_not": _not,
    "ttir.logical_and": _and,
    "ttir.logical_or": _or,
    "ttir.minimum": _minimum,
    "ttir.maximum": _maximum,
    "ttir.where": _where,
}
