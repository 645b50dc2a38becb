"""Numbers of kernels: constants of Python as long as possible, else values that the kernel
computes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeGuard

from xdsl.ir import SSAValue

from ttcodegen.dialects.ttkernel.builder import KernelBuilder

Number = int | SSAValue


def is_computed(value: object) -> TypeGuard[SSAValue]:
    """Whether the kernel computes a value."""
    return isinstance(value, SSAValue)


def is_number(value: object) -> TypeGuard[Number]:
    """Whether a value is a number of a kernel."""
    return isinstance(value, int | SSAValue)


Terms = dict[SSAValue | None, int]
"""A sum of multiples of values; the constant stands at None."""


@dataclass(frozen=True)
class Condition:
    """A comparison, or several that all have to hold."""

    parts: tuple[tuple[str, Number, Number], ...]

    @property
    def opposite(self) -> Condition | None:
        """What holds where it does not; None if that is no single comparison."""
        if len(self.parts) != 1:
            return None
        predicate, left, right = self.parts[0]
        return Condition(((_OPPOSITE[predicate], left, right),))


_OPPOSITE = {"eq": "ne", "ne": "eq", "ult": "uge", "uge": "ult", "ugt": "ule", "ule": "ugt"}


class Arithmetic:
    """Computes with unsigned integers."""

    def __init__(self, builder: KernelBuilder) -> None:
        self.builder = builder
        self._terms: dict[SSAValue, Terms] = {}

    def terms(self, value: Number) -> Terms:
        """What a value is made of, as far as it is a sum of multiples."""
        if isinstance(value, int):
            return {None: value}
        return self._terms.get(value, {value: 1})

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
        """The result of an operator of Python; None if kernels do not have it."""
        match symbol:
            case "Add":
                return self.add(left, right)
            case "Sub":
                return self.subtract(left, right)
            case "Mult":
                return self.multiply(left, right)
            case "FloorDiv":
                return self.builder.quotient(left, right)
            case "Mod":
                return self.builder.remainder(left, right)
            case _:
                return None

    def condition(self, condition: Condition) -> SSAValue:
        """Whether a condition holds."""
        found = [self.builder.compare(p, left, right) for p, left, right in condition.parts]
        total = found[0]
        for each in found[1:]:
            total = self.builder.both(total, each)
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
    "Not": lambda a: not a,
    "Invert": lambda a: ~a,
}
"""Operators of one operand."""
