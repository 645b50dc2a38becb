"""Numbers of kernels: constants of Python as long as possible, else values that the kernel
computes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeGuard

from xdsl.ir import SSAValue

from ttcodegen.dialects.ttkernel.builder import KernelBuilder
from ttcodegen.lang.compiler.fitting import Formula

Number: TypeAlias = int | SSAValue


def is_computed(value: object) -> TypeGuard[SSAValue]:
    """Whether the kernel computes a value."""
    return isinstance(value, SSAValue)


def is_number(value: object) -> TypeGuard[Number]:
    """Whether a value is a number of a kernel."""
    return isinstance(value, int | SSAValue)


Terms = dict[SSAValue | None, int]
"""A sum of multiples of values; the constant has the key None."""


@dataclass(frozen=True)
class Comparison:
    """A comparison of unsigned numbers that the kernel makes."""

    predicate: str
    left: Number
    right: Number

    @property
    def opposite(self) -> Condition:
        """What holds where it does not."""
        return Comparison(_OPPOSITE[self.predicate], self.left, self.right)


@dataclass(frozen=True)
class Joined:
    """Several conditions, all of which have to hold, or one of which."""

    parts: tuple[Condition, ...]
    needs_all: bool

    @property
    def opposite(self) -> Condition:
        """What holds where it does not."""
        return Joined(tuple(part.opposite for part in self.parts), not self.needs_all)


Condition: TypeAlias = Comparison | Joined
"""What the running kernel decides."""


def is_condition(value: object) -> TypeGuard[Condition]:
    """Whether the running kernel decides something."""
    return isinstance(value, Comparison | Joined)


def joined(values: Sequence[Any], *, needs_all: bool) -> Any:
    """What several values say together, `all` or `any` of them: a value that is known, if it is."""
    parts = [each for each in values if is_condition(each)]
    known = [bool(each) for each in values if not is_condition(each)]
    if not parts or (not needs_all) in known:
        return all(known) if needs_all else any(known)
    return parts[0] if len(parts) == 1 else Joined(tuple(parts), needs_all)


_HOLDS: dict[str, Callable[[int], bool]] = {
    "eq": lambda apart: apart == 0,
    "ne": lambda apart: apart != 0,
    "ult": lambda apart: apart < 0,
    "ule": lambda apart: apart <= 0,
    "ugt": lambda apart: apart > 0,
    "uge": lambda apart: apart >= 0,
}
"""Whether comparisons hold, by the difference of what they compare."""
_OPPOSITE = {"eq": "ne", "ne": "eq", "ult": "uge", "uge": "ult", "ugt": "ule", "ule": "ugt"}


MOST_SUBSTITUTIONS = 8
"""Bounds that are put in for values, one after the other, to find out whether a sum is below 0."""


@dataclass(frozen=True)
class Bounds:
    """Numbers that a value is between, both included; None where nothing is known."""

    least: Number | None
    most: Number | None


_NATURAL = Bounds(0, None)


class Arithmetic:
    """Computes with unsigned integers, which Python's are where they are 0 or more."""

    def __init__(self, builder: KernelBuilder) -> None:
        self.builder = builder
        self._terms: dict[SSAValue, Terms] = {}
        self._bounds: dict[SSAValue, Bounds] = {}

    def terms(self, value: Number) -> Terms:
        """What a value is made of, as far as it is a sum of multiples."""
        if isinstance(value, int):
            return {None: value}
        return self._terms.get(value, {value: 1})

    def bound(self, value: Number, least: Number | None, most: Number | None) -> None:
        """Records the bounds of a value; of others it is known that they are 0 or more."""
        if isinstance(value, SSAValue):
            self._bounds[value] = Bounds(least, most)

    def same(self, value: SSAValue, other: SSAValue) -> None:
        """Notes that a value is another one."""
        self._terms[value] = self.terms(other)

    def least(self, value: Number) -> int | None:
        """A number that a value is not below; None if none is found."""
        terms = self.terms(value)
        for _ in range(MOST_SUBSTITUTIONS):
            found = self._constant_below(terms)
            if found is not None and found >= 0:
                return found
            replaced = self._with_a_bound(terms)
            if replaced is None:
                return found
            terms = replaced
        return self._constant_below(terms)

    def is_natural(self, value: Number) -> bool:
        """Whether a value is known to be 0 or more."""
        least = self.least(value)
        return least is not None and least >= 0

    def _constant_below(self, terms: Terms) -> int | None:
        """The smallest value of a sum, from the constant bounds of its values."""
        total = terms.get(None, 0)
        for key, factor in terms.items():
            if key is None:
                continue
            bounds = self._bounds.get(key, _NATURAL)
            end = bounds.least if factor > 0 else bounds.most
            constant = self._constant(end, below=factor > 0)
            if constant is None:
                return None
            total += factor * constant
        return total

    def _constant(self, end: Number | None, *, below: bool) -> int | None:
        """A constant that is not above (`below`) or not below the end of a range."""
        if end is None or isinstance(end, int):
            return end
        terms = self.terms(end)
        if below:
            return self._constant_below(terms)
        least = self._constant_below({key: -factor for key, factor in terms.items()})
        return None if least is None else -least

    def _with_a_bound(self, terms: Terms) -> Terms | None:
        """The sum with the bound of a value, which is no constant, in place of the value."""
        for key, factor in terms.items():
            if key is None:
                continue
            bounds = self._bounds.get(key, _NATURAL)
            end = bounds.least if factor > 0 else bounds.most
            if isinstance(end, SSAValue):
                rest = {other: times for other, times in terms.items() if other is not key}
                scaled = {other: times * factor for other, times in self.terms(end).items()}
                return _combined(rest, scaled, 1)
        return None

    def known_difference(self, end: Number, start: Number) -> int | None:
        """How far two values are apart, if that does not depend on the run."""
        difference = _combined(self.terms(end), self.terms(start), -1)
        return difference.get(None, 0) if not set(difference) - {None} else None

    def add(self, left: Number, right: Number) -> Number:
        """left + right."""
        if isinstance(left, int) and isinstance(right, int):
            return left + right
        if isinstance(left, int):
            left, right = right, left
        if right == 0 and isinstance(right, int):
            return left
        if isinstance(right, int) and right < 0:
            return self.subtract(left, -right)
        return self._keep(
            self.builder.sum(left, right), _combined(self.terms(left), self.terms(right), 1)
        )

    def subtract(self, left: Number, right: Number) -> Number:
        """left - right."""
        if isinstance(left, int) and isinstance(right, int):
            return left - right
        if right == 0 and isinstance(right, int):
            return left
        return self._keep(
            self.builder.difference(left, right), _combined(self.terms(left), self.terms(right), -1)
        )

    def multiply(self, left: Number, right: Number) -> Number:
        """left * right."""
        if isinstance(left, int) and isinstance(right, int):
            return left * right
        if isinstance(left, int):
            left, right = right, left
        if isinstance(right, int):
            if right in (0, 1):
                return left if right else 0
            scaled = {key: factor * right for key, factor in self.terms(left).items()}
            return self._keep(self.builder.product(left, right), scaled)
        return self.builder.product(left, right)

    def sum(self, terms: Sequence[Number]) -> Number:
        """The sum of numbers."""
        total: Number = 0
        for term in terms:
            total = self.add(total, term)
        return total

    def index(self, position: Sequence[Number], sizes: Sequence[int]) -> Number:
        """The number of an element, the last dimension counted fastest."""
        total: Number = 0
        for place, size in zip(position, sizes, strict=True):
            total = self.add(self.multiply(total, size), place)
        return total

    def _keep(self, value: SSAValue, terms: Terms) -> SSAValue:
        self._terms[value] = terms
        return value

    def binary(self, symbol: str, left: Number, right: Number) -> Number | None:
        """The result of an operator of Python; None if kernels do not have it, or not of these
        operands."""
        match symbol:
            case "Add":
                return self.add(left, right)
            case "Sub":
                return self.subtract(left, right)
            case "Mult":
                return self._product(left, right)
            case "FloorDiv" | "Mod":
                return self._divided(symbol, left, right)
            case _:
                return None

    def _product(self, left: Number, right: Number) -> Number | None:
        if isinstance(left, SSAValue) and isinstance(right, SSAValue):
            # Nothing is known of the sign of other products.
            if not (self.is_natural(left) and self.is_natural(right)):
                return None
        return self.multiply(left, right)

    def _divided(self, symbol: str, left: Number, right: Number) -> Number | None:
        """A quotient that is rounded down, or what is left of it."""
        shift = 0
        if not self.is_natural(left):
            if not isinstance(right, int):
                return None
            if symbol == "Mod":
                left = self._congruent(left, right)
            else:
                least = self.least(left)
                if least is None:
                    return None
                shift = -(least // right)
                left = self._moved(left, shift * right)
        if isinstance(left, int) and isinstance(right, int):
            return left // right - shift if symbol == "FloorDiv" else left % right
        if symbol == "Mod":
            found = self.builder.remainder(left, right)
            most = right - 1 if isinstance(right, int) else None
            self._bounds.setdefault(found, Bounds(0, most))
            return found
        return self.subtract(self.builder.quotient(left, right), shift)

    def _congruent(self, value: Number, divisor: int) -> Number:
        """A value that is 0 or more, and leaves the same when it is divided."""
        factors = {key: factor % divisor for key, factor in self.terms(value).items()}
        return self._total(factors)

    def _moved(self, value: Number, distance: int) -> Number:
        """A value and a constant, which joins the constant that the value is the sum of."""
        if not distance or isinstance(value, int):
            return self.add(value, distance)
        return self._total(_combined(self.terms(value), {None: distance}, 1))

    def _total(self, terms: Terms) -> Number:
        """A sum of multiples as a value."""
        parts = [self.multiply(key, factor) for key, factor in terms.items() if key is not None]
        return self.sum([*parts, terms.get(None, 0)])

    def formula(self, formula: Formula, point: Sequence[Number]) -> Number:
        """What a formula is at a point."""
        terms = [self.multiply(c, f) for f, c in zip(formula.factors, point, strict=True)]
        value = self.sum([*terms, formula.first])
        if formula.modulus is not None:
            value = self.binary("Mod", value, formula.modulus)
        for symbol, end in (("min", formula.most), ("max", formula.least)):
            if end is not None and value is not None:
                value = self.extreme(symbol, value, end)
        assert value is not None
        return value

    def extreme(self, symbol: str, left: Number, right: Number) -> Number | None:
        """The larger (`max`) or the smaller (`min`) of two numbers; None if it is not known how
        far they may be below 0."""
        if isinstance(left, int) and isinstance(right, int):
            return max(left, right) if symbol == "max" else min(left, right)
        found = [self.least(left), self.least(right)]
        if found[0] is None or found[1] is None:
            return None
        # Numbers below 0 are large ones, if they have no sign: both are moved up.
        shift = max(0, -min(found[0], found[1]))
        moved = self._moved(left, shift), self._moved(right, shift)
        function = self.builder.larger if symbol == "max" else self.builder.smaller
        value = function(*moved)
        self._bounds.setdefault(value, self._extreme_bounds(symbol, *moved))
        return self.subtract(value, shift)

    def _extreme_bounds(self, symbol: str, left: Number, right: Number) -> Bounds:
        constants = [each for each in (left, right) if isinstance(each, int)]
        if symbol == "min":
            return Bounds(0, constants[0] if constants else left)
        least = constants[0] if constants else 0
        return Bounds(least, None)

    def comparison(self, predicate: str, left: Number, right: Number) -> Condition | bool:
        """A comparison of two numbers, what is subtracted on one side added on the other."""
        apart = self.known_difference(left, right)
        if apart is not None:
            return _HOLDS[predicate](apart)
        if predicate in ("eq", "ne") or (self.is_natural(left) and self.is_natural(right)):
            return Comparison(predicate, left, right)
        difference = _combined(self.terms(left), self.terms(right), -1)
        above = {key: factor for key, factor in difference.items() if factor > 0}
        below = {key: -factor for key, factor in difference.items() if factor < 0}
        return Comparison(predicate, self._total(above), self._total(below))

    def condition(self, condition: Condition) -> SSAValue:
        """Whether a condition holds."""
        if isinstance(condition, Comparison):
            return self.builder.compare(condition.predicate, condition.left, condition.right)
        total, *others = map(self.condition, condition.parts)
        join = self.builder.both if condition.needs_all else self.builder.either
        for each in others:
            total = join(total, each)
        return total


def _combined(left: Terms, right: Terms, sign: int) -> Terms:
    found = dict(left)
    for key, factor in right.items():
        found[key] = found.get(key, 0) + sign * factor
    return {key: factor for key, factor in found.items() if factor}


PREDICATES = {"Eq": "eq", "NotEq": "ne", "Lt": "ult", "LtE": "ule", "Gt": "ugt", "GtE": "uge"}
"""Comparisons of Python, and what kernels call them."""

PYTHON_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "Add": lambda a, b: a + b,
    "Sub": lambda a, b: a - b,
    "Mult": lambda a, b: a * b,
    "Div": lambda a, b: a / b,
    "FloorDiv": lambda a, b: a // b,
    "Mod": lambda a, b: a % b,
    "Pow": lambda a, b: a**b,
    "Eq": lambda a, b: a == b,
    "NotEq": lambda a, b: a != b,
    "Lt": lambda a, b: a < b,
    "LtE": lambda a, b: a <= b,
    "Gt": lambda a, b: a > b,
    "GtE": lambda a, b: a >= b,
    "Is": lambda a, b: a is b,
    "IsNot": lambda a, b: a is not b,
    "In": lambda a, b: a in b,
    "NotIn": lambda a, b: a not in b,
}
"""Operators of Python by the names of their nodes, for what is known when a kernel is compiled."""

PYTHON_SIGNS: dict[str, Callable[[Any], Any]] = {
    "USub": lambda a: -a,
    "UAdd": lambda a: a,
    "Invert": lambda a: ~a,
}
"""Operators of one operand."""

SPELLINGS = {
    "Add": "+", "Sub": "-", "Mult": "*", "Div": "/", "FloorDiv": "//", "Mod": "%", "MatMult": "@",
    "BitXor": "^",
}  # fmt: skip
"""Operators of Python as programs write them, by the names of their nodes."""
