"""Integers and floats of kernels: Python constants where known, else SSA values."""

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
    """True if a value is an integer of a kernel."""
    return isinstance(value, int | SSAValue)


Terms = dict[SSAValue | None, int]
"""A linear combination of values; the constant has the key None."""


@dataclass(frozen=True)
class Comparison:
    """A comparison of unsigned integers in the running kernel."""

    predicate: str
    left: Number
    right: Number

    @property
    def opposite(self) -> Condition:
        """Negation of the condition."""
        return Comparison(_NEGATED[self.predicate], self.left, self.right)


@dataclass(frozen=True)
class Joined:
    """A conjunction or disjunction of conditions."""

    parts: tuple[Condition, ...]
    needs_all: bool

    @property
    def opposite(self) -> Condition:
        """Negation of the condition."""
        return Joined(tuple(part.opposite for part in self.parts), not self.needs_all)


Condition: TypeAlias = Comparison | Joined
"""A condition that the running kernel evaluates."""


@dataclass(frozen=True)
class Quotient:
    """Result of Python's `/` on kernel integers: to be rounded, or a float."""

    dividend: Number
    divisor: Number


@dataclass(frozen=True)
class KernelFloat:
    """A float of the kernel: a float value, or an integer with its bits."""

    value: SSAValue


def is_condition(value: object) -> TypeGuard[Condition]:
    """True if the running kernel evaluates a value as a condition."""
    return isinstance(value, Comparison | Joined)


def joined(values: Sequence[Any], *, needs_all: bool) -> Any:
    """Conjunction or disjunction of values, folded where known."""
    parts = [each for each in values if is_condition(each)]
    known = [bool(each) for each in values if not is_condition(each)]
    if not parts or (not needs_all) in known:
        return all(known) if needs_all else any(known)
    return parts[0] if len(parts) == 1 else Joined(tuple(parts), needs_all)


_BY_DIFFERENCE: dict[str, Callable[[int], bool]] = {
    "eq": lambda difference: difference == 0,
    "ne": lambda difference: difference != 0,
    "ult": lambda difference: difference < 0,
    "ule": lambda difference: difference <= 0,
    "ugt": lambda difference: difference > 0,
    "uge": lambda difference: difference >= 0,
}
"""Predicates as functions of the difference of their operands."""
_NEGATED = {"eq": "ne", "ne": "eq", "ult": "uge", "uge": "ult", "ugt": "ule", "ule": "ugt"}


MAX_SUBSTITUTIONS = 8
"""Maximum number of bounds that are substituted to prove that a sum is not negative."""


@dataclass(frozen=True)
class Bounds:
    """Inclusive bounds of a value; None where unknown."""

    lower_bound: Number | None
    upper_bound: Number | None


_NATURAL = Bounds(0, None)


class Arithmetic:
    """Arithmetic of unsigned integers, with constant folding and bounds analysis."""

    def __init__(self, builder: KernelBuilder) -> None:
        self.builder = builder
        self._terms: dict[SSAValue, Terms] = {}
        self._bounds: dict[SSAValue, Bounds] = {}

    def terms(self, value: Number) -> Terms:
        """Decomposes a value into a linear combination."""
        if isinstance(value, int):
            return {None: value}
        return self._terms.get(value, {value: 1})

    def bound(self, value: Number, lower_bound: Number | None, upper_bound: Number | None) -> None:
        """Records the bounds of a value; the default is 0 or more."""
        if isinstance(value, SSAValue):
            self._bounds[value] = Bounds(lower_bound, upper_bound)

    def bound_below(self, value: SSAValue, lower_bound: int) -> None:
        """Records a lower bound of a value, keeping its upper bound."""
        self._bounds[value] = Bounds(lower_bound, self._bounds.get(value, _NATURAL).upper_bound)

    @contextmanager
    def assuming(self, condition: Condition) -> Generator[None]:
        """Scope in which a condition holds and refines the bounds of its operands."""
        before = dict(self._bounds)
        for part in _conjuncts(condition):
            for value, term in self.terms(part.left).items():
                lower_bound = self.lower_bound(part.right)
                known = value is not None and term == 1 and len(self.terms(part.left)) == 1
                if value is None or not known or lower_bound is None:
                    continue
                more = {"ugt": 1, "uge": 0, "ne": 1 if part.right == 0 else None}
                if (step := more.get(part.predicate)) is not None:
                    bounds = self._bounds.get(value, _NATURAL)
                    self._bounds[value] = Bounds(lower_bound + step, bounds.upper_bound)
        yield
        for value in self._bounds.keys() & before.keys():
            self._bounds[value] = before[value]
        for part in _conjuncts(condition):
            for value in self.terms(part.left):
                if value is not None and value not in before:
                    self._bounds.pop(value, None)

    def record_equal(self, value: SSAValue, other: SSAValue) -> None:
        """Records that a value equals another one."""
        self._terms[value] = self.terms(other)

    def lower_bound(self, value: Number) -> int | None:
        """Constant lower bound of a value; None if unknown."""
        terms = self.terms(value)
        for _ in range(MAX_SUBSTITUTIONS):
            found = self._constant_lower_bound(terms)
            if found is not None and found >= 0:
                return found
            replaced = self._substitute_bound(terms)
            if replaced is None:
                return found
            terms = replaced
        return self._constant_lower_bound(terms)

    def upper_bound(self, value: Number) -> int | None:
        """Constant upper bound of a value; None if unknown."""
        if isinstance(value, int):
            return value
        below = self._constant_lower_bound(
            {key: -factor for key, factor in self.terms(value).items()}
        )
        return None if below is None else -below

    def is_natural(self, value: Number) -> bool:
        """True if a value is known not to be negative."""
        lower_bound = self.lower_bound(value)
        return lower_bound is not None and lower_bound >= 0

    def _constant_lower_bound(self, terms: Terms) -> int | None:
        """Lower bound of a linear combination from the constant bounds of its values."""
        total = terms.get(None, 0)
        for key, factor in terms.items():
            if key is None:
                continue
            bounds = self._bounds.get(key, _NATURAL)
            end = bounds.lower_bound if factor > 0 else bounds.upper_bound
            constant = self._constant_bound(end, below=factor > 0)
            if constant is None:
                return None
            total += factor * constant
        return total

    def _constant_bound(self, end: Number | None, *, below: bool) -> int | None:
        """Constant bound of a bound: a lower one (`below`) or an upper one."""
        if end is None or isinstance(end, int):
            return end
        terms = self.terms(end)
        if below:
            return self._constant_lower_bound(terms)
        lower_bound = self._constant_lower_bound({key: -factor for key, factor in terms.items()})
        return None if lower_bound is None else -lower_bound

    def _substitute_bound(self, terms: Terms) -> Terms | None:
        """Substitutes the symbolic bound of one value; None if there is none."""
        for key, factor in terms.items():
            if key is None:
                continue
            bounds = self._bounds.get(key, _NATURAL)
            end = bounds.lower_bound if factor > 0 else bounds.upper_bound
            if isinstance(end, SSAValue):
                rest = {other: times for other, times in terms.items() if other is not key}
                scaled = {other: times * factor for other, times in self.terms(end).items()}
                return _add_terms(rest, scaled, 1)
        return None

    def known_difference(self, end: Number, start: Number) -> int | None:
        """Difference of two values if it is a compile-time constant."""
        difference = _add_terms(self.terms(end), self.terms(start), -1)
        return difference.get(None, 0) if not set(difference) - {None} else None

    def add(self, left: Number, right: Number) -> Number:
        """Emits `left + right`."""
        if isinstance(left, int) and isinstance(right, int):
            return left + right
        if isinstance(left, int):
            left, right = right, left
        if right == 0 and isinstance(right, int):
            return left
        if isinstance(right, int) and right < 0:
            return self.subtract(left, -right)
        return self._with_terms(
            self.builder.sum(left, right), _add_terms(self.terms(left), self.terms(right), 1)
        )

    def subtract(self, left: Number, right: Number) -> Number:
        """Emits `left - right`."""
        if isinstance(left, int) and isinstance(right, int):
            return left - right
        if right == 0 and isinstance(right, int):
            return left
        return self._with_terms(
            self.builder.difference(left, right),
            _add_terms(self.terms(left), self.terms(right), -1),
        )

    def multiply(self, left: Number, right: Number) -> Number:
        """Emits `left * right`."""
        if isinstance(left, int) and isinstance(right, int):
            return left * right
        if isinstance(left, int):
            left, right = right, left
        if isinstance(right, int):
            if right in (0, 1):
                return left if right else 0
            scaled = {key: factor * right for key, factor in self.terms(left).items()}
            return self._with_terms(self.builder.product(left, right), scaled)
        return self.builder.product(left, right)

    def sum(self, terms: Sequence[Number]) -> Number:
        """Emits the sum of numbers."""
        total: Number = 0
        for term in terms:
            total = self.add(total, term)
        return total

    def index(self, position: Sequence[Number], sizes: Sequence[int]) -> Number:
        """Emits the row-major linear index of a position."""
        total: Number = 0
        for coordinate, size in zip(position, sizes, strict=True):
            total = self.add(self.multiply(total, size), coordinate)
        return total

    def _with_terms(self, value: SSAValue, terms: Terms) -> SSAValue:
        self._terms[value] = terms
        return value

    def binary(self, symbol: str, left: Number, right: Number) -> Number | None:
        """Emits a binary operator; None if the operator or its operands are not supported."""
        match symbol:
            case "Add":
                return self.add(left, right)
            case "Sub":
                return self.subtract(left, right)
            case "Mult":
                return self._checked_product(left, right)
            case "FloorDiv" | "Mod":
                return self._divide(symbol, left, right)
            case "Pow":
                return self._power(left, right)
            case _ if symbol in BITWISE_OPERATORS:
                return self._bitwise(BITWISE_OPERATORS[symbol], left, right)
            case _:
                return None

    def _power(self, base: Number, exponent: Number) -> Number | None:
        """Emits a power as repeated multiplication."""
        if not isinstance(exponent, int) or exponent < 0:
            return None
        total: Number | None = 1
        for _ in range(exponent):
            total = None if total is None else self._checked_product(base, total)
        return total

    def _bitwise(self, symbol: str, left: Number, right: Number) -> Number | None:
        """Emits a bitwise operator on operands that are not negative."""
        if not (self.is_natural(left) and self.is_natural(right)):
            return None
        if symbol == "<<" and isinstance(right, int):
            return self.multiply(left, 1 << right)
        if symbol == ">>" and isinstance(right, int):
            return self._divide("FloorDiv", left, 1 << right)
        if right == 0 and isinstance(right, int):
            return 0 if symbol == "&" else left
        value = self.builder.of_bits(symbol, left, right)
        self._bounds.setdefault(value, Bounds(0, self._bitwise_upper_bound(symbol, left, right)))
        return value

    def _bitwise_upper_bound(self, symbol: str, left: Number, right: Number) -> int | None:
        ends = [self.upper_bound(left), self.upper_bound(right)]
        known = [end for end in ends if end is not None]
        if symbol == "&":
            return min(known, default=None)
        if symbol == ">>":
            return ends[0]
        # Neither `|` nor `^` sets a bit above the highest one of their operands.
        return (1 << max(known).bit_length()) - 1 if symbol != "<<" and len(known) == 2 else None

    def chosen(self, condition: Condition, left: Number, right: Number) -> Number:
        """Emits a select."""
        if self.known_difference(left, right) == 0:
            return left
        value = self.builder.chosen(self.condition(condition), left, right)
        lower_bound, upper_bound = (
            (self.lower_bound(left), self.lower_bound(right)),
            (self.upper_bound(left), self.upper_bound(right)),
        )
        self._bounds[value] = Bounds(
            None if None in lower_bound else min(each for each in lower_bound if each is not None),
            None if None in upper_bound else max(each for each in upper_bound if each is not None),
        )
        return value

    def logical(self, numbers: Sequence[Number], *, needs_all: bool) -> Number:
        """Emits Python's `and` or `or` as a value."""
        *others, last = numbers
        for number in reversed(others):
            left, right = (last, number) if needs_all else (number, last)
            last = self.chosen(Comparison("ne", number, 0), left, right)
        return last

    def magnitude(self, value: Number) -> Number:
        """Emits the absolute value."""
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
        """Emits a float operator; None if kernels do not support it."""
        operands = [self.float_value(each) for each in (left, right)]
        spelling = SPELLINGS.get(symbol, "")
        if None in operands or spelling not in ("+", "-", "*", "/"):
            return None
        return KernelFloat(self.builder.of_floats(spelling, *(each for each in operands if each)))

    def float_value(self, value: Any) -> SSAValue | None:
        """Converts a number to a float; None if it may be negative or is not a number."""
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
        """Emits a table lookup."""
        if isinstance(position, int):
            return numbers[position]
        lower_bound = min(0, *numbers)
        value = self.builder.element([number - lower_bound for number in numbers], position, name)
        self._bounds.setdefault(
            value, Bounds(min(numbers) - lower_bound, max(numbers) - lower_bound)
        )
        return self.add(value, lower_bound)

    def rounded(self, quotient: Quotient, *, is_up: bool) -> Number | None:
        """Emits the floor or ceiling of a quotient; None if it may be negative."""
        dividend = quotient.dividend
        if is_up:
            dividend = self.add(dividend, self.subtract(quotient.divisor, 1))
        return self._divide("FloorDiv", dividend, quotient.divisor)

    def _checked_product(self, left: Number, right: Number) -> Number | None:
        if isinstance(left, SSAValue) and isinstance(right, SSAValue):
            # The sign of other products is unknown.
            if not (self.is_natural(left) and self.is_natural(right)):
                return None
        return self.multiply(left, right)

    def _divide(self, symbol: str, left: Number, right: Number) -> Number | None:
        """Emits a floor division or its remainder; None if the sign is unknown."""
        shift = 0
        if not self.is_natural(left):
            if not isinstance(right, int):
                return None
            if symbol == "Mod":
                left = self._natural_congruent(left, right)
            else:
                lower_bound = self.lower_bound(left)
                if lower_bound is None:
                    return None
                shift = -(lower_bound // right)
                left = self._shifted(left, shift * right)
        if isinstance(left, int) and isinstance(right, int):
            return left // right - shift if symbol == "FloorDiv" else left % right
        if symbol == "Mod":
            found = self.builder.remainder(left, right)
            upper_bound = right - 1 if isinstance(right, int) else None
            self._bounds.setdefault(found, Bounds(0, upper_bound))
            return found
        return self.subtract(self.builder.quotient(left, right), shift)

    def _natural_congruent(self, value: Number, divisor: int) -> Number:
        """A value that is congruent modulo a divisor and not negative."""
        factors = {key: factor % divisor for key, factor in self.terms(value).items()}
        return self._emit_terms(factors)

    def _shifted(self, value: Number, distance: int) -> Number:
        """Adds a constant to a value, folding it into the constant of its linear combination."""
        if not distance or isinstance(value, int):
            return self.add(value, distance)
        return self._emit_terms(_add_terms(self.terms(value), {None: distance}, 1))

    def _emit_terms(self, terms: Terms) -> Number:
        """Emits a linear combination."""
        parts = [(key, factor) for key, factor in terms.items() if key is not None]
        return self._signed_sum(parts, terms.get(None, 0))

    def _signed_sum(self, terms: Sequence[tuple[Number, int]], constant: int) -> Number:
        """Emits a linear combination, subtractions last."""
        value = self.sum([self.multiply(key, factor) for key, factor in terms if factor > 0])
        if constant >= 0:
            value = self.add(value, constant)
        for key, factor in terms:
            if factor < 0:
                value = self.subtract(value, self.multiply(key, -factor))
        return value if constant >= 0 else self.add(value, constant)

    def formula(self, formula: Formula, point: Sequence[Number]) -> Number:
        """Emits a formula of a point."""
        terms = [(c, f) for f, c in zip(formula.factors, point, strict=True)]
        value = self._signed_sum(terms, formula.first)
        if formula.modulus is not None:
            value = self.binary("Mod", value, formula.modulus)
        for symbol, end in (("min", formula.upper_bound), ("max", formula.lower_bound)):
            if end is not None and value is not None:
                value = self.extreme(symbol, value, end)
        assert value is not None
        return value

    def extreme(self, symbol: str, left: Number, right: Number) -> Number | None:
        """Emits the minimum or maximum; None if a lower bound is unknown."""
        if isinstance(left, int) and isinstance(right, int):
            return max(left, right) if symbol == "max" else min(left, right)
        found = [self.lower_bound(left), self.lower_bound(right)]
        if found[0] is None or found[1] is None:
            return None
        # Negative numbers are large if interpreted as unsigned: shift both operands to 0 or above.
        shift = max(0, -min(found[0], found[1]))
        shifted = self._shifted(left, shift), self._shifted(right, shift)
        function = self.builder.larger if symbol == "max" else self.builder.smaller
        value = function(*shifted)
        self._bounds.setdefault(value, self._extreme_bounds(symbol, *shifted))
        return self.subtract(value, shift)

    def _extreme_bounds(self, symbol: str, left: Number, right: Number) -> Bounds:
        constants = [each for each in (left, right) if isinstance(each, int)]
        if symbol == "min":
            return Bounds(0, constants[0] if constants else left)
        lower_bound = constants[0] if constants else 0
        return Bounds(lower_bound, None)

    def comparison(self, predicate: str, left: Number, right: Number) -> Condition | bool:
        """Compares two numbers; possibly negative terms are moved to the other side."""
        difference = self.known_difference(left, right)
        if difference is not None:
            return _BY_DIFFERENCE[predicate](difference)
        if predicate in ("eq", "ne") or (self.is_natural(left) and self.is_natural(right)):
            return Comparison(predicate, left, right)
        difference = _add_terms(self.terms(left), self.terms(right), -1)
        above = {key: factor for key, factor in difference.items() if factor > 0}
        below = {key: -factor for key, factor in difference.items() if factor < 0}
        return Comparison(predicate, self._emit_terms(above), self._emit_terms(below))

    def condition(self, condition: Condition) -> SSAValue:
        """Emits a condition."""
        if isinstance(condition, Comparison):
            return self.builder.compare(condition.predicate, condition.left, condition.right)
        total, *others = map(self.condition, condition.parts)
        join = self.builder.both if condition.needs_all else self.builder.either
        for each in others:
            total = join(total, each)
        return total


def _conjuncts(condition: Condition) -> list[Comparison]:
    """Comparisons that all hold if a condition does."""
    if isinstance(condition, Comparison):
        return [condition]
    parts = condition.parts if condition.needs_all else ()
    return [each for part in parts for each in _conjuncts(part)]


def _add_terms(left: Terms, right: Terms, sign: int) -> Terms:
    found = dict(left)
    for key, factor in right.items():
        found[key] = found.get(key, 0) + sign * factor
    return {key: factor for key, factor in found.items() if factor}


PREDICATES = {"Eq": "eq", "NotEq": "ne", "Lt": "ult", "LtE": "ule", "Gt": "ugt", "GtE": "uge"}
"""Predicates by the names of Python's comparison nodes."""

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
"""Python's binary operators by the names of their nodes, for compile-time evaluation."""

PYTHON_UNARY_OPERATORS: dict[str, Callable[[Any], Any]] = {
    "USub": lambda a: -a,
    "UAdd": lambda a: a,
    "Invert": lambda a: ~a,
}
"""Python's unary operators by the names of their nodes."""

BITWISE_OPERATORS = {"BitAnd": "&", "BitOr": "|", "BitXor": "^", "LShift": "<<", "RShift": ">>"}
"""Bitwise operators by the names of their nodes."""

SPELLINGS = {
    "Add": "+", "Sub": "-", "Mult": "*", "Div": "/", "FloorDiv": "//", "Mod": "%", "MatMult": "@",
    "BitXor": "^",
}  # fmt: skip
"""Source spelling of operators, by the names of their nodes."""
