"""Equivalence of library calls, tested by the catalogue's numpy semantics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ttcodegen.foundation.lazy_numpy import np

if TYPE_CHECKING:
    from ttcodegen.foundation.lazy_numpy import Array
    from ttcodegen.ops.core.definition import TTNNDefinition

WITH_LISTS = frozenset(("permute",))
"""Calls with a list of numbers as attribute."""
_NORMS = frozenset(("layer_norm", "rms_norm"))
"""Normalizations of rows, whose meaning is known."""
TRANSPOSED = "dims"
"""Attribute of a permutation that swaps two dimensions."""
_SHAPES = ((4, 4), (2, 4, 4), (1, 2, 4, 4))
"""Shapes of samples: any two of one shape can be multiplied and permuted."""
_TOLERANCE = 1e-5
"""Tolerance for float32, in which most reference semantics compute."""
_MOST_OPERANDS = 3


@dataclass(frozen=True)
class KnownCall:
    """Library call whose semantics are known.

    Operands are names of values, in the order of the definition; None for an absent one.
    """

    definition: TTNNDefinition
    operands: tuple[str | None, ...]
    attributes: Mapping[str, Any]
    """Attributes that differ from their defaults."""
    result: str


@dataclass
class _Samples:
    shape: tuple[int, ...]
    values: dict[str, Array] = field(default_factory=dict[str, "Array"])

    def __getitem__(self, name: str) -> Array:
        if name not in self.values:
            # The same value has the same samples on both sides.
            generator = np.random.default_rng(list(name.encode()))
            magnitudes = 10.0 ** generator.integers(-1, 3, self.shape)
            self.values[name] = magnitudes * generator.standard_normal(self.shape)
        return self.values[name]


def known_definition(name: str) -> TTNNDefinition | None:
    """Definition of a call by its short name or its function, if its semantics are known.

    Known are elementwise calls, matrix products, permutations and normalizations of rows.
    """
    import ttcodegen.ops as catalogue
    from ttcodegen.ops.core.definition import TTNN
    from ttcodegen.ops.core.traits import CallKind, Trait

    catalogue.load()
    named = TTNN.get(name)
    for each in (*([named] if named is not None else ()), *TTNN.values()):
        if name not in (each.short_name, each.function) or each.in_place is not None:
            continue
        if each.numpy is None:
            continue
        if each.short_name in _NORMS:
            return each
        if not 1 <= len(each.operands) <= _MOST_OPERANDS:
            continue
        elementwise = each.call_kind is CallKind.ELEMENTWISE
        if elementwise or Trait.MATRIX_PRODUCT in each.traits or each.short_name in WITH_LISTS:
            return each
    return None


def is_elementwise(call: KnownCall) -> bool:
    """Returns whether a call is no matrix product, permutation or normalization."""
    from ttcodegen.ops.core.traits import Trait

    definition = call.definition
    others = (*WITH_LISTS, *_NORMS)
    return Trait.MATRIX_PRODUCT not in definition.traits and definition.short_name not in others


def is_norm(call: TTNNDefinition) -> bool:
    """Returns whether a call is a normalization of rows."""
    return call.short_name in _NORMS


def same_meaning(before: Sequence[KnownCall], after: Sequence[KnownCall]) -> bool:
    """Returns whether two sequences of calls compute the same on samples.

    The last call of each produces the result. Samples are float64, normally distributed with
    magnitudes from 0.1 to 100, so that bounds such as the 6 of relu6 are exceeded.
    """
    compared = 0
    for shape in _SHAPES:
        was = _result(before, shape)
        if was is None:
            continue
        now = _result(after, shape)
        if now is None:
            continue
        if was.shape != now.shape:
            return False
        if not np.allclose(was, now, _TOLERANCE, _TOLERANCE, equal_nan=True):
            return False
        compared += 1
    return compared > 0


def _result(calls: Sequence[KnownCall], shape: tuple[int, ...]) -> Array | None:
    """Value of the last call; None if samples of that shape cannot be computed."""
    samples = _Samples(shape)
    result: Array | None = None
    for each in calls:
        result = _computed(each, samples)
        if result is None:
            return None
        samples.values[each.result] = result
    return result


def _computed(call: KnownCall, samples: _Samples) -> Array | None:
    from ttcodegen.dialects.operations.operation import REQUIRED, ResultInfo
    from ttcodegen.dialects.operations.operation import Call as Execution

    definition = call.definition
    shape = samples[next(name for name in call.operands if name is not None)].shape
    operands: dict[str, Sequence[Array]] = {
        spec.name: () if name is None else (samples[name],)
        for spec, name in zip(definition.operands, call.operands, strict=True)
    }
    attributes = {
        spec.name: spec.default for spec in definition.attributes if spec.default is not REQUIRED
    }
    attributes.update(call.attributes)
    if TRANSPOSED in attributes:
        permutation = swapped(len(shape), attributes.pop(TRANSPOSED))
        if permutation is None:
            return None
        attributes["permutation"] = permutation
    execution = Execution(definition.name, operands, attributes, (ResultInfo(shape, "float64"),))
    assert definition.numpy is not None
    try:
        with np.errstate(all="ignore"):
            made = definition.numpy(execution)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
        return None
    return made.astype(np.float64) if isinstance(made, np.ndarray) else None


def swapped(rank: int, dims: Sequence[Any]) -> list[int] | None:
    """Permutation that swaps two dimensions; None if there are no such dimensions."""
    if len(dims) != 2 or any(type(each) is not int or not -rank <= each < rank for each in dims):
        return None
    permutation = list(range(rank))
    first, second = dims
    permutation[first], permutation[second] = permutation[second], permutation[first]
    return permutation
