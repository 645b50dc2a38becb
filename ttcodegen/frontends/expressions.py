"""Tensors with the operators of Python, for formulas that are written once for all front ends."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from xdsl.dialects.builtin import Float64Type
from xdsl.ir import Attribute, SSAValue

from ttcodegen.dialects.core.datatypes import element_of, f32, i1, numpy_name, shape_of
from ttcodegen.ops.core.builder import OpBuilder

Number = bool | int | float


class Expression:
    """Value of a builder.

    Operators emit elementwise ops, whose operands broadcast. Numbers take the element type of the
    tensor beside them; comparisons are booleans.
    """

    __slots__ = ("build", "value")

    def __init__(self, build: OpBuilder, value: SSAValue) -> None:
        self.build = build
        self.value = value

    @classmethod
    def computed(cls, build: OpBuilder, value: SSAValue) -> Self:
        """Converts a tensor to the type that is computed with: float32, unless it is float64."""
        element = element_of(value.type)
        return cls(build, build.typecast(value, element if _is_double(element) else f32))

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the tensor."""
        return shape_of(self.value.type)

    @property
    def element(self) -> Attribute:
        """The element type of the tensor."""
        return element_of(self.value.type)

    def of(self, value: SSAValue) -> Self:
        """Expression of another value of the same builder."""
        return type(self)(self.build, value)

    def number(self, number: Number, element: Attribute | None = None) -> Self:
        """Number that broadcasts with the tensor, by default in its element type."""
        element = element or self.element
        is_float = not (numpy_name(element) or "").startswith(("int", "uint", "bool"))
        given = float(number) if is_float else int(number)
        return self.of(self.build.full([1] * len(self.shape), given, element))

    def apply(self, name: str, *others: Expression | Number, element: Attribute | None = None,
    ) -> Self:  # fmt: skip
        """Elementwise op of the tensor and others."""
        given = [each if isinstance(each, Expression) else self.number(each) for each in others]
        values = [self.value, *(each.value for each in given)]
        return self.of(self.build.broadcasting(name, *values, element=element))

    def to(self, element: Attribute) -> Self:
        """Converts the element type."""
        return self.of(self.build.typecast(self.value, element))

    def reshape(self, shape: Sequence[int]) -> Self:
        """Reshapes the tensor."""
        return self.of(self.build.reshape(self.value, shape))

    def __add__(self, other: Expression | Number) -> Self:
        return self.apply("add", other)

    def __radd__(self, other: Number) -> Self:
        return self.number(other) + self

    def __sub__(self, other: Expression | Number) -> Self:
        return self.apply("subtract", other)

    def __rsub__(self, other: Number) -> Self:
        return self.number(other) - self

    def __mul__(self, other: Expression | Number) -> Self:
        return self.apply("multiply", other)

    def __rmul__(self, other: Number) -> Self:
        return self * other

    def __truediv__(self, other: Expression | Number) -> Self:
        return self.apply("div", other)

    def __rtruediv__(self, other: Number) -> Self:
        return self.number(other) / self

    def __neg__(self) -> Self:
        return self.apply("neg")

    def __abs__(self) -> Self:
        return self.apply("abs")

    def __lt__(self, other: Expression | Number) -> Self:
        return self.apply("lt", other, element=i1)

    def __le__(self, other: Expression | Number) -> Self:
        return self.apply("le", other, element=i1)

    def __gt__(self, other: Expression | Number) -> Self:
        return self.apply("gt", other, element=i1)

    def __ge__(self, other: Expression | Number) -> Self:
        return self.apply("ge", other, element=i1)

    def equals(self, other: Expression | Number) -> Self:
        """Mask of equal elements."""
        return self.apply("eq", other, element=i1)

    def differs(self, other: Expression | Number) -> Self:
        """Mask of different elements; true for NaN."""
        return self.apply("ne", other, element=i1)

    def __and__(self, other: Expression) -> Self:
        return self.apply("logical_and", other, element=i1)

    def __or__(self, other: Expression) -> Self:
        return self.apply("logical_or", other, element=i1)

    def __invert__(self) -> Self:
        return self.apply("logical_not", element=i1)

    def where(self, first: Expression | Number, second: Expression | Number) -> Self:
        """Takes elements of `first` where this mask is true, and of `second` where it is not."""
        typed = next(each for each in (first, second) if isinstance(each, Expression))
        chosen = [
            each if isinstance(each, Expression) else self.number(each, typed.element)
            for each in (first, second)
        ]
        values = [self.value, *(each.value for each in chosen)]
        return self.of(self.build.broadcasting("where", *values, element=typed.element))

    def sqrt(self) -> Self:
        """Square root."""
        return self.apply("sqrt")

    def floor(self) -> Self:
        """Greatest integer that is not above."""
        return self.apply("floor")


def _is_double(element: Attribute) -> bool:
    return isinstance(element, Float64Type)
