"""Loops and bodies of linalg.generic as tensors and tensor ops."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, cast

import numpy as np
from xdsl.dialects.builtin import IntegerAttr, i32
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineDimExpr, AffineExpr

from ttcodegen.dialects.core.datatypes import (
    element_of,
    element_type_of,
    f32,
    i1,
    normalized_data_type,
    numpy_name,
    shape_of,
    tensor_type,
)
from ttcodegen.dialects.operations.operation import operation_name
from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.frontends.special_functions import (
    SPECIAL_FUNCTIONS,
    extreme_of_numbers,
    float_rest,
    floored,
    raised,
    rest_of,
    rounded,
    truncated,
)
from ttcodegen.frontends.translation import Translator
from ttcodegen.ops.core.builder import OpBuilder

# The loops of a linalg.generic as dimensions of tensors, and its operands as tensors over them.

Value = SSAValue | float
"""Tensor over the loops, or a scalar."""

_MAX_GATHERED_ELEMENTS = 1 << 22
"""Limit on the elements of an operand that are gathered by index."""


@dataclass
class Loops:
    """Iteration space of a linalg.generic."""

    build: Translator
    sizes: tuple[int, ...]
    reduced: list[int]
    """Reduction loops, which results have no dimension for."""

    @property
    def rank(self) -> int:
        """Number of loops."""
        return len(self.sizes)

    def operand(self, value: SSAValue, map_: Any) -> SSAValue:
        """Aligns an operand with the loops by its indexing map.

        The result has one dimension per loop, of size 1 where the operand does not depend on the
        loop.
        """
        places = places_of(map_)
        if places is None:
            return self._gather_by_map(value, list(map_.data.results))
        return self.broadcast(value, places)

    def broadcast(self, value: SSAValue, places: Sequence[int | None]) -> SSAValue:
        """As `operand`, for a map given as the loop of each dimension, None for a constant
        index 0."""
        kept = [axis for axis, place in enumerate(places) if place is not None]
        found = [place for place in places if place is not None]
        shape = shape_of(value.type)
        value = self.build.reshape(value, [shape[axis] for axis in kept])
        while len(set(found)) != len(found):
            value, found = self._diagonal(value, found)
        order = sorted(range(len(found)), key=lambda axis: found[axis])
        value = self.build.permute(value, order)
        return self.build.reshape(value, self._sizes_of(found))

    def _sizes_of(self, loops: Sequence[int]) -> list[int]:
        return [size if loop in loops else 1 for loop, size in enumerate(self.sizes)]

    def _diagonal(self, value: SSAValue, loops: list[int]) -> tuple[SSAValue, list[int]]:
        """Takes the diagonal of the first two dimensions that follow the same loop."""
        loop = next(each for each in loops if loops.count(each) > 1)
        pair = [axis for axis, each in enumerate(loops) if each == loop][:2]
        rest = [axis for axis in range(len(loops)) if axis not in pair]
        value = self.build.permute(value, [*rest, *pair])
        *others, size, _ = shape_of(value.type)
        flat = self.build.reshape(value, [*others, size * size])
        begins, ends = [0] * (len(others) + 1), [*others, size * size]
        value = self.build.slice(flat, begins, ends, [*[1] * len(others), size + 1])
        return value, [*(loops[axis] for axis in rest), loop]

    def _gather_by_map(self, value: SSAValue, expressions: Sequence[AffineExpr]) -> SSAValue:
        """Gathers elements at indices that are affine expressions of the loops."""
        used = sorted({loop for each in expressions for loop in each.used_dims()})
        sizes = self._sizes_of(used)
        if prod(sizes) > _MAX_GATHERED_ELEMENTS:
            raise CompileError(
                f"a linalg.generic that looks {prod(sizes)} elements of an operand up by an "
                "expression of loops is not supported",
                remedy="print convolutions, pools and slices as operations of that name",
            )
        loops: Any = list(np.indices(sizes).reshape(self.rank, -1))
        shape = shape_of(value.type)
        flat = np.zeros(prod(sizes), np.int64)
        for size, expression in zip(shape, expressions, strict=True):
            places = np.asarray(expression.eval(loops, []))
            flat = flat * size + np.broadcast_to(places, flat.shape)
        if flat.size and not 0 <= flat.min() <= flat.max() < prod(shape):
            raise CompileError("the indexing map leads out of the operand")
        return self.build.reshape(elements_at(self.build, value, self.build.constant(flat, i32)),
                                  sizes)  # fmt: skip

    def at_step(self, value: Value, step: Sequence[int]) -> Value:
        """Slices a tensor over the loops at one step of the reduction loops."""
        if not isinstance(value, SSAValue):
            return value
        begins, ends = [0] * self.rank, list(shape_of(value.type))
        for loop, place in zip(self.reduced, step, strict=True):
            if ends[loop] != 1:
                begins[loop], ends[loop] = place, place + 1
        return self.build.slice(value, begins, ends)

    def tensor(self, value: Value, element: Attribute) -> SSAValue:
        """Converts a scalar to a tensor that broadcasts over the loops."""
        if isinstance(value, SSAValue):
            return value
        data_type = normalized_data_type(element)
        is_float = data_type is not None and data_type.is_float
        number = float(value) if is_float else int(value)
        return self.build.full([1] * self.rank, number, element)


def places_of(map_: Any) -> list[int | None] | None:
    """Returns the loop index of each operand dimension, None for constant 0.

    None as a whole for a map that computes indices.
    """
    places: list[int | None] = []
    for expression in map_.data.results:
        if isinstance(expression, AffineDimExpr):
            places.append(expression.position)
        elif isinstance(expression, AffineConstantExpr) and expression.value == 0:
            places.append(None)
        else:
            return None
    return places


def elements_at(build: Translator, value: SSAValue, flat: SSAValue) -> SSAValue:
    """Gathers elements of a tensor at flat indices; the result has the shape of the indices."""
    shape = shape_of(flat.type)
    element = element_of(value.type)
    count = prod(shape_of(value.type))
    data_type = normalized_data_type(element)
    indices = build.reshape(flat, [prod(shape)])
    if data_type is not None and data_type.is_float:
        table = build.reshape(value, [count, 1])
        found = build.emit("embedding", [indices, table], tensor_type(element, [prod(shape), 1]))
        return build.reshape(found, shape)
    wide = build.typecast(build.reshape(value, [count]), i32)
    found = build.emit("gather", [wide, indices], tensor_type(element_of(wide.type), [prod(shape)]),
                       dim=0)  # fmt: skip
    return build.typecast(build.reshape(found, shape), element)


def device_element(type_: Attribute) -> Attribute:
    """Maps an element type to the device's: f64 to f32, index to i32."""
    name = str(type_)
    return {"f64": f32, "index": i32}.get(name, type_)


# Tensor semantics of the scalar ops in linalg.generic bodies.

Composed = Callable[..., SSAValue]

ELEMENTWISE = {
    "arith.addf": "add", "arith.addi": "add", "arith.subf": "subtract", "arith.subi": "subtract",
    "arith.mulf": "multiply", "arith.muli": "multiply", "arith.divf": "div",
    "arith.maximumf": "maximum", "arith.minimumf": "minimum",
    "arith.maxsi": "maximum", "arith.minsi": "minimum",
    "arith.negf": "neg",
    "math.acos": "acos", "math.asin": "asin", "math.asinh": "asinh", "math.atan2": "atan2",
    "math.cbrt": "cbrt", "math.exp2": "exp2", "math.trunc": "trunc", "math.fpowi": "pow",
    "math.ipowi": "pow",
    "arith.shli": "logical_left_shift", "arith.shrui": "logical_right_shift",
    "arith.shrsi": "right_shift",
    "math.absf": "abs", "math.absi": "abs", "math.atan": "atan", "math.ceil": "ceil",
    "math.cos": "cos", "math.erf": "erf", "math.erfc": "erfc", "math.exp": "exp",
    "math.expm1": "expm1", "math.floor": "floor", "math.log": "log", "math.log1p": "log1p",
    "math.log10": "log10", "math.log2": "log2",
    "math.powf": "pow", "math.rsqrt": "rsqrt", "math.sin": "sin", "math.sqrt": "sqrt",
    "math.tan": "tan", "math.tanh": "tanh",
}  # fmt: skip
"""Tensor op of each scalar operation."""

IGNORING_NAN = {"arith.maxnumf": "maximum", "arith.minnumf": "minimum"}
"""Extremes that ignore NaN, with the op that propagates it."""

_BITWISE = {"arith.andi": "and", "arith.ori": "or", "arith.xori": "xor"}
_OF_ONE_BIT = {
    "arith.addi": "xor", "arith.subi": "xor", "arith.muli": "and", "arith.maxui": "or",
    "arith.minui": "and", "arith.maxsi": "and", "arith.minsi": "or",
}  # fmt: skip
"""Boolean arithmetic: sums modulo 2, and true is -1 where it is signed."""
_SPECIAL = {f"math.{name}": function for name, function in SPECIAL_FUNCTIONS.items()}
_SIGNED = frozenset({"arith.sitofp", "arith.extsi", "arith.index_cast"})
_UNSIGNED = frozenset({"arith.uitofp", "arith.extui", "arith.index_castui"})
_CONVERSIONS = frozenset({
    "arith.truncf", "arith.extf", "arith.fptosi", "arith.trunci", "arith.fptoui",
    *_SIGNED, *_UNSIGNED,
})  # fmt: skip
_INTEGER_PREDICATES = ("eq", "ne", "lt", "le", "gt", "ge")
_FIRST_UNSIGNED = 6
_OPPOSITES = {"gt": "le", "ge": "lt", "lt": "ge", "le": "gt"}
_ORDERED_PREDICATES = {1: "eq", 2: "gt", 3: "ge", 4: "lt", 5: "le", 13: "ne"}
"""Ordered comparisons of floats with a TTIR op; `ne` is true for NaN.

Source: arith::CmpFPredicate.
"""
_UNORDERED_PREDICATES = {9: "gt", 10: "ge", 11: "lt", 12: "le"}
"""Unordered comparisons: true if an operand is NaN."""
_DIFFERENT_NUMBERS, _EQUAL_OR_NAN = 6, 8
"""The predicates `one` and `ueq`."""
_ORDERED, _UNORDERED = 7, 14
"""The predicates `ord` and `uno`."""

_IGNORED = frozenset({"arith.constant", "cf.assert"})
"""Operations without a result on the device; assertions, such as bounds checks, are assumed to
hold."""


def scalar_of(value: SSAValue) -> float | None:
    """Returns the value of a scalar constant, else None."""
    owner = value.owner
    if not isinstance(owner, Operation) or operation_name(owner) != "arith.constant":
        return None
    attribute: Any = owner.properties.get("value", owner.attributes.get("value"))
    data = getattr(getattr(attribute, "value", None), "data", None)
    return data if isinstance(data, int | float) else None


def _remainder(build: OpBuilder, a: SSAValue, b: SSAValue) -> SSAValue:
    """Remainder of truncating division, with the dividend's sign."""
    return rest_of(build, a, b, truncated(build, a, b))


def _of_numbers(name: str) -> Callable[[OpBuilder, SSAValue, SSAValue], SSAValue]:
    return lambda build, a, b: extreme_of_numbers(build, name, a, b)


def _pairwise(name: str) -> Callable[[OpBuilder, SSAValue, SSAValue], SSAValue]:
    return lambda build, a, b: build.broadcasting(name, a, b)


def _unsigned(rule: Callable[[OpBuilder, SSAValue, SSAValue], SSAValue]) -> Composed:
    """Applies a rule to integers reinterpreted as unsigned."""

    def computed(build: Translator, a: SSAValue, b: SSAValue) -> SSAValue:
        operands = [_as_unsigned(build, value) for value in (a, b)]
        return build.typecast(rule(build, *operands), element_of(a.type))

    return computed


def _as_unsigned(build: OpBuilder, value: SSAValue) -> SSAValue:
    """Reinterprets integers as unsigned; booleans are 0 and 1."""
    element = element_of(value.type)
    if element == i1:
        return value
    return build.typecast(value, element_type_of(f"u{numpy_name(element)}"))


def _convert(build: Translator, name: str, value: SSAValue, element: Attribute) -> SSAValue:
    """Converts elements, with the signedness that the operation's name implies."""
    if name in _UNSIGNED:
        return build.typecast(_as_unsigned(build, value), element)
    if name == "arith.fptoui" and element != i1:
        unsigned = element_type_of(f"u{numpy_name(element)}")
        return build.typecast(build.typecast(value, unsigned), element)
    given = element_of(value.type)
    if name == "arith.trunci" and element == i1:
        # trunci keeps the lowest bit; a typecast to boolean would compare with zero.
        value = build.broadcasting("bitwise_and", value, build.number(1, value))
    found = build.typecast(value, element)
    return build.like("neg", found) if name in _SIGNED and given == i1 else found


def _compare(build: Translator, op: Operation, a: SSAValue, b: SSAValue) -> SSAValue:
    """Compares integers of either signedness, or floats with the predicate's result for NaN."""
    number = _predicate_number(op)
    if operation_name(op) == "arith.cmpi":
        if number >= _FIRST_UNSIGNED:
            a, b = (_as_unsigned(build, value) for value in (a, b))
        elif element_of(a.type) == i1 and _INTEGER_PREDICATES[number] in _OPPOSITES:
            a, b = b, a  # True is -1.
        return build.broadcasting(predicate_of(op), a, b, element=i1)
    if number in (_ORDERED, _UNORDERED):
        no_number = _is_nan(build, a, b)
        return no_number if number == _UNORDERED else build.like("logical_not", no_number)
    if number in (_DIFFERENT_NUMBERS, _EQUAL_OR_NAN):
        below, above = (build.broadcasting(name, a, b, element=i1) for name in ("lt", "gt"))
        found = build.like("logical_or", below, above)
        return found if number == _DIFFERENT_NUMBERS else build.like("logical_not", found)
    if number in _UNORDERED_PREDICATES:
        opposite = _OPPOSITES[_UNORDERED_PREDICATES[number]]
        return build.like("logical_not", build.broadcasting(opposite, a, b, element=i1))
    return build.broadcasting(predicate_of(op), a, b, element=i1)


def _select(
    build: Translator, condition: SSAValue, first: SSAValue, second: SSAValue, element: Attribute
) -> SSAValue:
    """Selects elements; a negated condition swaps the operands instead."""
    owner = condition.owner
    if isinstance(owner, Operation) and operation_name(owner) == "ttir.logical_not":
        condition, first, second = owner.operands[0], second, first
    return build.broadcasting("where", condition, first, second, element=element)


def _fused(build: Translator, a: SSAValue, b: SSAValue, c: SSAValue) -> SSAValue:
    return build.broadcasting("add", build.broadcasting("multiply", a, b), c)


def _with_sign(build: Translator, size: SSAValue, sign: SSAValue) -> SSAValue:
    size = build.like("abs", size)
    below = build.like("signbit", sign, element=i1)
    return build.broadcasting("where", below, build.like("neg", size), size,
                              element=element_of(size.type))  # fmt: skip


def _rounded_away(build: Translator, x: SSAValue) -> SSAValue:
    """Rounds to the nearest integer, halves away from zero."""
    return rounded(build, x, to_even=False)


def _is_nan(build: Translator, *values: SSAValue) -> SSAValue:
    """Returns a mask of the elements where any of the values is NaN."""
    found = [build.like("isnan", value, element=i1) for value in values]
    return found[0] if len(found) == 1 else build.broadcasting("logical_or", *found)


def _is_infinite(build: Translator, x: SSAValue) -> SSAValue:
    return build.like("isinf", x, element=i1)


def _is_finite(build: Translator, x: SSAValue) -> SSAValue:
    return build.like("isfinite", x, element=i1)


_COMPOSED: dict[str, Composed] = {
    "arith.ceildivsi": raised, "arith.ceildivui": _unsigned(raised),
    "arith.divsi": truncated, "arith.divui": _unsigned(truncated),
    "arith.floordivsi": floored,
    "arith.maxui": _unsigned(_pairwise("maximum")), "arith.minui": _unsigned(_pairwise("minimum")),
    "arith.remf": float_rest, "arith.remsi": _remainder, "arith.remui": _unsigned(_remainder),
    "math.isfinite": _is_finite, "math.isinf": _is_infinite, "math.isnan": _is_nan,
    **{name: _of_numbers(extreme) for name, extreme in IGNORING_NAN.items()},
    "math.copysign": _with_sign, "math.fma": _fused, "math.round": _rounded_away,
    "math.roundeven": Translator.rounded,
}  # fmt: skip
"""Scalar operations that are composed of several tensor ops."""


class Body:
    """Interpreter of a body's scalar operations on tensors."""

    def __init__(
        self, loops: Loops, values: dict[SSAValue, Value], step: Mapping[int, int] | None = None
    ) -> None:
        """`step` maps loops that are unrolled to their current index."""
        self.loops = loops
        self.values = values
        self.step = step or {}

    def __getitem__(self, value: SSAValue) -> Value:
        found = self.values.get(value)
        if found is None:
            found = scalar_of(value)
        if found is None:
            found = self._extracted(value)
        if found is None:
            raise CompileError("a linalg.generic that takes values from outside is not supported")
        return found

    def _extracted(self, value: SSAValue) -> SSAValue | None:
        """Returns the gathered elements if a value is a tensor.extract outside of the body."""
        owner = value.owner
        if not isinstance(owner, Operation) or operation_name(owner) != "tensor.extract":
            return None
        return self._element(owner)

    def _element(self, op: Operation) -> SSAValue:
        """Gathers elements of a tensor at computed indices."""
        build = self.loops.build
        source, *places = op.operands
        flat: SSAValue | None = None
        for place, size in zip(places, shape_of(source.type), strict=True):
            index = build.typecast(self.loops.tensor(self[place], i32), i32)
            if flat is not None:
                scaled = build.like("multiply", flat, build.number(size, flat))
                index = build.broadcasting("add", scaled, index)
            flat = index
        if flat is None:
            return build.reshape(source, [1] * self.loops.rank)
        return elements_at(build, source, flat)

    def run(self, op: Operation) -> None:
        """Translates one operation of the body."""
        name = operation_name(op)
        if name in _IGNORED:
            return
        if name == "linalg.index":
            self.values[op.results[0]] = self._index(op)
        elif name == "tensor.extract":
            self.values[op.results[0]] = self._element(op)
        else:
            self.values[op.results[0]] = self._computed(name, op)

    def _computed(self, name: str, op: Operation) -> SSAValue:
        build = self.loops.build
        element = device_element(op.results[0].type)
        arguments = [
            self.loops.tensor(self[operand], device_element(operand.type))
            for operand in op.operands
        ]
        if name in _CONVERSIONS:
            return _convert(build, name, arguments[0], element)
        if name in ("arith.cmpf", "arith.cmpi"):
            return _compare(build, op, arguments[0], arguments[1])
        if name == "arith.select":
            condition, first, second = arguments
            return _select(build, condition, first, second, element)
        if name in _OF_ONE_BIT and element == i1:
            return build.broadcasting(f"logical_{_OF_ONE_BIT[name]}", *arguments)
        if name in _BITWISE:
            kind = "logical" if element == i1 else "bitwise"
            return build.broadcasting(f"{kind}_{_BITWISE[name]}", *arguments)
        if name in _SPECIAL:
            return _SPECIAL[name](build, arguments[0])
        if name in _COMPOSED:
            return _COMPOSED[name](build, *arguments)
        if name in ELEMENTWISE:
            arguments = [build.typecast(each, element) for each in arguments]
            return build.broadcasting(ELEMENTWISE[name], *arguments)
        raise CompileError(f"'{name}' in a linalg.generic is not supported")

    def _index(self, op: Operation) -> Value:
        dim = op.attributes["dim"]
        assert isinstance(dim, IntegerAttr)
        axis = dim.value.data
        if axis in self.step:
            return self.step[axis]
        sizes = [size if i == axis else 1 for i, size in enumerate(self.loops.sizes)]
        return self.loops.build.emit(
            "arange", [], tensor_type(i32, sizes), start=0, end=sizes[axis], step=1,
            arange_dimension=axis,
        )  # fmt: skip


def _predicate_number(op: Operation) -> int:
    return int(cast("Any", op.properties["predicate"]).value.data)


def is_ordered(op: Operation) -> bool:
    """Returns whether a comparison is signed, or of floats and false for NaN."""
    number = _predicate_number(op)
    integers = operation_name(op) == "arith.cmpi"
    return number < (_FIRST_UNSIGNED if integers else _ORDERED)


def predicate_of(op: Operation) -> str:
    """Returns the comparison op of a predicate; unordered predicates map to the ordered op.

    Raises CompileError for predicates that are always true or always false.
    """
    number = _predicate_number(op)
    if operation_name(op) == "arith.cmpi":
        return (*_INTEGER_PREDICATES, *_INTEGER_PREDICATES[2:])[number]
    name = _ORDERED_PREDICATES.get(number) or _UNORDERED_PREDICATES.get(number)
    if name is None:
        raise CompileError("a comparison that is always true or always false is not supported")
    return name


def returned_by(block: Block) -> list[SSAValue]:
    """Values that a body yields."""
    assert block.last_op is not None
    return list(block.last_op.operands)
