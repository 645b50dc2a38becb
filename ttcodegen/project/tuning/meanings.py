"""Equivalence of library calls, tested by the catalogue's numpy semantics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ttcodegen.foundation.lazy_numpy import np
from ttcodegen.project.tuning.order import read
from ttcodegen.project.tuning.statements import (
    ACTIVATIONS,
    KINDS,
    NOTHING,
    Argument,
    Call,
    Constant,
    Statement,
    joined,
    kind_of,
)

if TYPE_CHECKING:
    from ttcodegen.dialects.operations.operation import AttributeSpec
    from ttcodegen.foundation.lazy_numpy import Array
    from ttcodegen.ops.core.definition import TTNNDefinition

_WITH_LISTS = frozenset(("permute",))
_SHAPES = ((4, 4), (2, 4, 4), (1, 2, 4, 4))
"""Shapes of samples: any two of one shape can be multiplied and permuted."""
_TOLERANCE = 1e-5
"""Tolerance for float32, in which most reference semantics compute."""


class _Unknown(Exception):
    """Raised for a call whose semantics do not follow from its C++ alone."""


def same_meaning(
    before: Sequence[Statement], after: Sequence[Statement], constants: Mapping[str, Constant]
) -> bool:
    """Returns whether two sequences of calls computed the same on samples.

    Samples are float64, normally distributed with magnitudes from 0.1 to 100, so that bounds such
    as the 6 of relu6 are exceeded. Calls other than elementwise ops, matmuls and permutations count
    as different.

    Args:
        before: the generated calls; the last one produces the result.
        after: the user's calls.
        constants: the constants of tuning.hpp by name.
    """
    compared = 0
    for shape in _SHAPES:
        try:
            was = _result(before, shape, constants)
        except _Unknown:
            continue
        try:
            now = _result(after, shape, constants)
        except _Unknown:
            return False
        if was.shape != now.shape or not np.allclose(
            was, now, _TOLERANCE, _TOLERANCE, equal_nan=True
        ):
            return False
        compared += 1
    return compared > 0


def _result(
    calls: Sequence[Statement], shape: tuple[int, ...], constants: Mapping[str, Constant]
) -> Array:
    values: dict[str, Array] = {}
    result: Array | None = None
    for each in calls:
        if each.call is None or each.target is None:
            raise _Unknown
        for path in sorted(read(each)):
            if path not in values:
                # The same variable has the same values on both sides.
                generator = np.random.default_rng(list(path.encode()))
                magnitudes = 10.0 ** generator.integers(-1, 3, shape)
                values[path] = magnitudes * generator.standard_normal(shape)
        result = values[each.target] = _computed(each.call, values, constants)
    if result is None:
        raise _Unknown
    return result


def _computed(call: Call, values: Mapping[str, Array], constants: Mapping[str, Constant]) -> Array:
    from ttcodegen.dialects.operations.operation import Call as Execution
    from ttcodegen.dialects.operations.operation import ResultInfo

    if call.callee == "ttnn::transpose":
        return _transposed(call, values)
    definition = _definition(call.callee)
    tensors: list[Array] = []
    numbers: list[object] = []
    for each in call.positional:
        kind = each.label if each.label in KINDS else kind_of(each.words, constants)
        if kind in ACTIVATIONS and each.text not in NOTHING:
            raise _Unknown
        if kind is not None or each.text in NOTHING:
            continue
        if each.variable is not None and each.text not in ("true", "false"):
            tensors.append(values[each.variable])
        else:
            numbers.append(_number(each, definition.short_name))
    operands: dict[str, Sequence[Array]] = {}
    given = iter(tensors)
    for spec in definition.operands:
        value = next(given, None)
        operands[spec.name] = () if value is None else (value,)
    if next(given, None) is not None:
        raise _Unknown
    attributes = _attributes(definition.attributes, numbers)
    attributes |= {str(o.label): _number(o, "") for o in call.options if o.label not in KINDS}
    if any(o.label in ACTIVATIONS for o in call.options) or definition.numpy is None:
        raise _Unknown
    first = next(iter(operands.values()))[0]
    execution = Execution(
        definition.name, operands, attributes, (ResultInfo(first.shape, "float64"),)
    )
    try:
        with np.errstate(all="ignore"):
            made = definition.numpy(execution)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
        raise _Unknown from None
    if not isinstance(made, np.ndarray):
        raise _Unknown
    return made.astype(np.float64)


def _transposed(call: Call, values: Mapping[str, Array]) -> Array:
    """Value of a transposition, a permutation in the catalogue."""
    if len(call.positional) < 3 or call.positional[0].variable is None:
        raise _Unknown
    first, second = (_number(each, "") for each in call.positional[1:3])
    try:
        return np.swapaxes(values[call.positional[0].variable], int(str(first)), int(str(second)))
    except (LookupError, ValueError):
        raise _Unknown from None


def _definition(callee: str) -> TTNNDefinition:
    import ttcodegen.ops as catalogue
    from ttcodegen.ops.core.definition import TTNN
    from ttcodegen.ops.core.traits import CallKind, Trait

    catalogue.load()
    name = callee.removeprefix("ttnn::").removeprefix("call::")
    for each in TTNN.values():
        if (each.function or each.short_name) == name and 1 <= len(each.operands) <= 3:
            elementwise = each.call_kind is CallKind.ELEMENTWISE and each.in_place is None
            if elementwise or Trait.MATRIX_PRODUCT in each.traits or name in _WITH_LISTS:
                return each
    raise _Unknown


def _attributes(specs: Sequence[AttributeSpec], numbers: Sequence[object]) -> dict[str, object]:
    """Attributes of a call from its numbers, in order of declaration."""
    from ttcodegen.dialects.operations.operation import REQUIRED

    if len(numbers) > len(specs):
        raise _Unknown
    found = {each.name: each.default for each in specs if each.default is not REQUIRED}
    found.update({each.name: value for each, value in zip(specs, numbers, strict=False)})
    return found


def _number(argument: Argument, name: str) -> object:
    text = argument.text
    if text in ("true", "false"):
        return text == "true"
    opening = argument.words.index("{") if "{" in argument.words else -1
    if name in _WITH_LISTS and opening >= 0:
        inner = joined(argument.words[opening + 1 : -1])
        try:
            return [int(each) for each in inner.split(",")]
        except ValueError:
            raise _Unknown from None
    try:
        return float(text.rstrip("fF")) if not text.lstrip("-").isdecimal() else int(text)
    except ValueError:
        raise _Unknown from None
