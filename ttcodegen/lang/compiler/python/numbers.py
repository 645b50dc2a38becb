"""Numbers of kernels: constants of Python as long as possible, else values that the kernel
computes."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeGuard

from xdsl.dialects.builtin import Float32Type
from xdsl.ir import SSAValue

from ttcodegen.dialects.ttkernel.builder import KernelBuilder
from ttcodegen.lang.compiler.python.merging import Formula

Number: TypeAlias = int | SSAValue


def is_computed(value: object) -> TypeGuard[SSAValue]:
    """True if the kernel computes a value."""
    return isinstance(value, SSAValue)


def is_number(value: object) -> TypeGuard[Number]:
    """True if a value is a number of a kernel."""
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
        """Negation of the condition."""
        return Comparison(_OPPOSITE[self.predicate], self.left, self.right)


@dataclass(frozen=True)
class Joined:
    """Several conditions, all of which have to hold, or one of which."""

    parts: tuple[Condition, ...]
    needs_all: bool

    @property
    def opposite(self) -> Condition:
        """Negation of the condition."""
        return Joined(tuple(part.opposite for part in self.parts), not self.needs_all)


Condition: TypeAlias = Comparison | Joined
"""Condition that the running kernel decides."""


@dataclass(frozen=True)
class Quotient:
    """Result of Python's `/` on kernel integers: to be rounded, or a float."""

    dividend: Number
    divisor: Number


@dataclass(frozen=True)
class KernelFloat:
    """A float of the kernel: its value, or an integer with its bits."""

    value: SSAValue


def is_condition(value: object) -> TypeGuard[Condition]:
    """True if the running kernel decides something."""
    return isinstance(value, Comparison | Joined)


def joined(values: Sequence[Any], *, needs_all: bool) -> Any:
    """Conjunction or disjunction of several values, folded where known."""
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
"""True if comparisons hold, by the difference of what they compare."""
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
        """Decomposes a value into a sum of multiples."""
        if isinstance(value, int):
            return {None: value}
        return self._terms.get(value, {value: 1})

    def bound(self, value: Number, least: Number | None, most: Number | None) -> None:
        """Records the bounds of a value; of others it is known that they are 0 or more."""
        if isinstance(value, SSAValue):
            self._bounds[value] = Bounds(least, most)

    def bound_below(self, value: SSAValue, least: int) -> None:
        """Records what a value is not below, beside what is known of it."""
        self._bounds[value] = Bounds(least, self._bounds.get(value, _NATURAL).most)

    @contextmanager
    def assuming(self, condition: Condition) -> Generator[None]:
        """Bounds the values computed inside by a condition."""
        before = dict(self._bounds)
        for part in _all_of(condition):
            for value, term in self.terms(part.left).items():
                least = self.least(part.right)
                known = value is not None and term == 1 and len(self.terms(part.left)) == 1
                if value is None or not known or least is None:
                    continue
                more = {"ugt": 1, "uge": 0, "ne": 1 if part.right == 0 else None}
                if (step := more.get(part.predicate)) is not None:
                    bounds = self._bounds.get(value, _NATURAL)
                    self._bounds[value] = Bounds(least + step, bounds.most)
        yield
        for value in self._bounds.keys() & before.keys():
            self._bounds[value] = before[value]
        for part in _all_of(condition):
            for value in self.terms(part.left):
                if value is not None and value not in before:
                    self._bounds.pop(value, None)

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

    def most(self, value: Number) -> int | None:
        """A number that a value is not above; None if none is found."""
        if isinstance(value, int):
            return value
        below = self._constant_below({key: -factor for key, factor in self.terms(value).items()})
        return None if below is None else -below

    def is_natural(self, value: Number) -> bool:
        """True if a value is known to be 0 or more."""
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
        """Difference of two values if it is known at compile time."""
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
            case "Pow":
                return self._power(left, right)
            case _ if symbol in OF_BITS:
                return self._of_bits(OF_BITS[symbol], left, right)
            case _:
                return None

    def _power(self, base: Number, exponent: Number) -> Number | None:
        """A number multiplied by itself."""
        if not isinstance(exponent, int) or exponent < 0:
            return None
        total: Number | None = 1
        for _ in range(exponent):
            total = None if total is None else self._product(base, total)
        return total

    def _of_bits(self, symbol: str, left: Number, right: Number) -> Number | None:
        """An operator of bits, of numbers that are 0 or more."""
        if not (self.is_natural(left) and self.is_natural(right)):
            return None
        if symbol == "<<" and isinstance(right, int):
            return self.multiply(left, 1 << right)
        if symbol == ">>" and isinstance(right, int):
            return self._divided("FloorDiv", left, 1 << right)
        if right == 0 and isinstance(right, int):
            return 0 if symbol == "&" else left
        value = self.builder.of_bits(symbol, left, right)
        self._bounds.setdefault(value, Bounds(0, self._most_of_bits(symbol, left, right)))
        return value

    def _most_of_bits(self, symbol: str, left: Number, right: Number) -> int | None:
        ends = [self.most(left), self.most(right)]
        known = [end for end in ends if end is not None]
        if symbol == "&":
            return min(known, default=None)
        if symbol == ">>":
            return ends[0]
        # Neither `|` nor `^` gives a higher bit than both have.
        return (1 << max(known).bit_length()) - 1 if symbol != "<<" and len(known) == 2 else None

    def chosen(self, condition: Condition, left: Number, right: Number) -> Number:
        """One number if a condition holds, else another one."""
        if self.known_difference(left, right) == 0:
            return left
        value = self.builder.chosen(self.condition(condition), left, right)
        least, most = (self.least(left), self.least(right)), (self.most(left), self.most(right))
        self._bounds[value] = Bounds(
            None if None in least else min(each for each in least if each is not None),
            None if None in most else max(each for each in most if each is not None),
        )
        return value

    def deciding(self, numbers: Sequence[Number], *, needs_all: bool) -> Number:
        """The first of several numbers that is 0 (`and`), or is not (`or`); else the last one."""
        *others, last = numbers
        for number in reversed(others):
            left, right = (last, number) if needs_all else (number, last)
            last = self.chosen(Comparison("ne", number, 0), left, right)
        return last

    def magnitude(self, value: Number) -> Number:
        """A number without its sign."""
        if self.is_natural(value):
            return value
        sign = self.comparison("uge", value, 0)
        opposite = self.subtract(0, value)
        if not is_condition(sign):
            return value if sign else opposite
        found = self.builder.chosen(self.condition(sign), value, opposite)
        self._bounds[found] = Bounds(0, None)
        return found

    def of_floats(self, symbol: str, left: Any, right: Any) -> KernelFloat | None:
        """An operator of numbers one of which is no integer; None if kernels do not have it."""
        operands = [self.float_value(each) for each in (left, right)]
        spelling = SPELLINGS.get(symbol, "")
        if None in operands or spelling not in ("+", "-", "*", "/"):
            return None
        return KernelFloat(self.builder.of_floats(spelling, *(each for each in operands if each)))

    def float_value(self, value: Any) -> SSAValue | None:
        """A number as a float; None if it is none, or may be an integer below 0."""
        match value:
            case KernelFloat(computed) if isinstance(computed.type, Float32Type):
                return computed
            case KernelFloat(bits):
                return self.builder.float_of_bits(bits)
            case Quotient(dividend, divisor):
                parts = self.float_value(dividend), self.float_value(divisor)
                if parts[0] is None or parts[1] is None:
                    return None
                return self.builder.of_floats("/", parts[0], parts[1])
            case int() | float():
                return self.builder.as_float(float(value))
            case _ if is_computed(value) and self.is_natural(value):
                return self.builder.as_float(value)
            case _:
                return None

    def looked_up(self, numbers: Sequence[int], position: Number, name: str) -> Number:
        """The number at a position of a table."""
        if isinstance(position, int):
            return numbers[position]
        least = min(0, *numbers)
        value = self.builder.element([number - least for number in numbers], position, name)
        self._bounds.setdefault(value, Bounds(min(numbers) - least, max(numbers) - least))
        return self.add(value, least)

    def rounded(self, quotient: Quotient, *, is_up: bool) -> Number | None:
        """The integer below a quotient, or above it; None if it may be below 0."""
        dividend = quotient.dividend
        if is_up:
            dividend = self.add(dividend, self.subtract(quotient.divisor, 1))
        return self._divided("FloorDiv", dividend, quotient.divisor)

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
        parts = [(key, factor) for key, factor in terms.items() if key is not None]
        return self._signed_sum(parts, terms.get(None, 0))

    def _signed_sum(self, terms: Sequence[tuple[Number, int]], constant: int) -> Number:
        """A sum of multiples: what is taken away from it comes last."""
        value = self.sum([self.multiply(key, factor) for key, factor in terms if factor > 0])
        if constant >= 0:
            value = self.add(value, constant)
        for key, factor in terms:
            if factor < 0:
                value = self.subtract(value, self.multiply(key, -factor))
        return value if constant >= 0 else self.add(value, constant)

    def formula(self, formula: Formula, point: Sequence[Number]) -> Number:
        """Evaluates a formula at a point."""
        terms = [(c, f) for f, c in zip(formula.factors, point, strict=True)]
        value = self._signed_sum(terms, formula.first)
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
        """True if a condition holds."""
        if isinstance(condition, Comparison):
            return self.builder.compare(condition.predicate, condition.left, condition.right)
        total, *others = map(self.condition, condition.parts)
        join = self.builder.both if condition.needs_all else self.builder.either
        for each in others:
            total = join(total, each)
        return total


def _all_of(condition: Condition) -> list[Comparison]:
    """Comparisons all of which hold where a condition does."""
    if isinstance(condition, Comparison):
        return [condition]
    parts = condition.parts if condition.needs_all else ()
    return [each for part in parts for each in _all_of(part)]


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
    "BitAnd": lambda a, b: a & b,
    "BitOr": lambda a, b: a | b,
    "BitXor": lambda a, b: a ^ b,
    "LShift": lambda a, b: a << b,
    "RShift": lambda a, b: a >> b,
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

OF_BITS = {"BitAnd": "&", "BitOr": "|", "BitXor": "^", "LShift": "<<", "RShift": ">>"}
"""Operators of bits, by the names of their nodes."""

SPELLINGS = {
    "Add": "+", "Sub": "-", "Mult": "*", "Div": "/", "FloorDiv": "//", "Mod": "%", "MatMult": "@",
    "BitXor": "^",
}  # fmt: skip
"""Operators of Python as programs write them, by the names of their nodes."""
