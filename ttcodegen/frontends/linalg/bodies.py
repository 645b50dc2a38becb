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
"""A tensor over the loops, or one number."""

_MOST_PLACES = 1 << 22
"""Elements of an operand that are looked up one by one."""


@dataclass
class Loops:
    """The loops of a generic."""

    build: Translator
    sizes: tuple[int, ...]
    reduced: list[int]
    """Those that results have no dimension for."""

    @property
    def rank(self) -> int:
        """Number of loops."""
        return len(self.sizes)

    def operand(self, value: SSAValue, map_: Any) -> SSAValue:
        """A tensor with a dimension for each loop, of one element where it does not depend on it,
        from an operand and its indexing map."""
        places = places_of(map_)
        if places is None:
            return self._looked_up(value, list(map_.data.results))
        return self.broadcast(value, places)

    def broadcast(self, value: SSAValue, places: Sequence[int | None]) -> SSAValue:
        """As `operand`; `places` are the loops of its dimensions, None for one of one element."""
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
        """The elements at equal indices of the first two dimensions that follow one loop."""
        loop = next(each for each in loops if loops.count(each) > 1)
        pair = [axis for axis, each in enumerate(loops) if each == loop][:2]
        rest = [axis for axis in range(len(loops)) if axis not in pair]
        value = self.build.permute(value, [*rest, *pair])
        *others, size, _ = shape_of(value.type)
        flat = self.build.reshape(value, [*others, size * size])
        begins, ends = [0] * (len(others) + 1), [*others, size * size]
        value = self.build.slice(flat, begins, ends, [*[1] * len(others), size + 1])
        return value, [*(loops[axis] for axis in rest), loop]

    def _looked_up(self, value: SSAValue, expressions: Sequence[AffineExpr]) -> SSAValue:
        """The elements at the indices that expressions of loops say."""
        used = sorted({loop for each in expressions for loop in each.used_dims()})
        sizes = self._sizes_of(used)
        if prod(sizes) > _MOST_PLACES:
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
        """A number as a tensor that broadcasts over the loops."""
        if isinstance(value, SSAValue):
            return value
        data_type = normalized_data_type(element)
        is_float = data_type is not None and data_type.is_float
        number = float(value) if is_float else int(value)
        return self.build.full([1] * self.rank, number, element)


def places_of(map_: Any) -> list[int | None] | None:
    """Loop index of each operand dimension, None for constant 0.

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
    """The elements of a tensor at indices counted over all of it, in the shape of the indices."""
    shape = shape_of(flat.type)
    element = element_of(value.type)
    count = prod(shape_of(value.type))
    data_type = normalized_data_type(element)
    indices = build.reshape(flat, [prod(shape)])
    if data_type is not None and data_type.is_float:
        table = build.reshape(value, [count, 1])
        found = build.emit("embedding", [indices, table], tensor_type(element, [prod(shape), 1]))
        return build.reshape(found, shape)
    wide = build.typecast(build.reshape(value, [count]), element if element == i32 else f32)
    found = build.emit("gather", [wide, indices], tensor_type(element_of(wide.type), [prod(shape)]),
                       dim=0)  # fmt: skip
    return build.typecast(build.reshape(found, shape), element)


def device_element(type_: Attribute) -> Attribute:
    """The element type that replaces one of a body; f64 and indices are as wide as a device has
    them."""
    name = str(type_)
    return {"f64": f32, "index": i32}.get(name, type_)


# Tensor semantics of the scalar ops in linalg.generic bodies.

Composed = Callable[..., SSAValue]

ELEMENTWISE = {
    "arith.addf": "add", "arith.addi": "add", "arith.subf": "subtract", "arith.subi": "subtract",
    "arith.mulf": "multiply", "arith.muli": "multiply", "arith.divf": "div",
    "arith.maximumf": "maximum", "arith.minimumf": "minimum", "arith.maxnumf": "maximum",
    "arith.minnumf": "minimum", "arith.maxsi": "maximum", "arith.minsi": "minimum",
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
"""Tensor ops of scalar operations, by name."""

_BITWISE = {"arith.andi": "and", "arith.ori": "or", "arith.xori": "xor"}
_SPECIAL = {f"math.{name}": function for name, function in SPECIAL_FUNCTIONS.items()}
_CONVERSIONS = frozenset({
    "arith.truncf", "arith.extf", "arith.sitofp", "arith.uitofp", "arith.fptosi", "arith.extsi",
    "arith.extui", "arith.trunci", "arith.index_cast", "arith.fptoui",
})  # fmt: skip
_INTEGER_PREDICATES = ("eq", "ne", "lt", "le", "gt", "ge")
_FLOAT_PREDICATES = ("", "eq", "gt", "ge", "lt", "le", "ne", "", "eq", "gt", "ge", "lt", "le", "ne")

_ORDERED, _UNORDERED = 7, 14
"""The predicates `ord` and `uno`. Source: arith::CmpFPredicate."""

_NOT_COMPUTED = frozenset({"arith.constant", "cf.assert"})
"""Assertions, such as bounds of an index, that compiled programs take for granted."""


def scalar_of(value: SSAValue) -> float | None:
    """The number that a constant of no tensor is."""
    owner = value.owner
    if not isinstance(owner, Operation) or operation_name(owner) != "arith.constant":
        return None
    attribute: Any = owner.properties.get("value", owner.attributes.get("value"))
    data = getattr(getattr(attribute, "value", None), "data", None)
    return data if isinstance(data, int | float) else None


def _rest(build: OpBuilder, a: SSAValue, b: SSAValue) -> SSAValue:
    """Remainder of truncating division, with the dividend's sign."""
    return rest_of(build, a, b, truncated(build, a, b))


def _pairwise(name: str) -> Callable[[OpBuilder, SSAValue, SSAValue], SSAValue]:
    return lambda build, a, b: build.broadcasting(name, a, b)


def _unsigned(rule: Callable[[OpBuilder, SSAValue, SSAValue], SSAValue]) -> Composed:
    """A rule on integers whose bits count as numbers without a sign."""

    def computed(build: Translator, a: SSAValue, b: SSAValue) -> SSAValue:
        element = element_of(a.type)
        unsigned = element_type_of(f"u{numpy_name(element)}")
        operands = [build.typecast(value, unsigned) for value in (a, b)]
        return build.typecast(rule(build, *operands), element)

    return computed


def _fused(build: Translator, a: SSAValue, b: SSAValue, c: SSAValue) -> SSAValue:
    return build.broadcasting("add", build.broadcasting("multiply", a, b), c)


def _with_sign(build: Translator, size: SSAValue, sign: SSAValue) -> SSAValue:
    size = build.like("abs", size)
    below = build.like("signbit", sign, element=i1)
    return build.broadcasting("where", below, build.like("neg", size), size,
                              element=element_of(size.type))  # fmt: skip


def _rounded_away(build: Translator, x: SSAValue) -> SSAValue:
    """To the nearest integer, halves away from zero."""
    return rounded(build, x, to_even=False)


def _is_nan(build: Translator, *values: SSAValue) -> SSAValue:
    """True if a value is NaN, or one of two is."""
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
    "arith.remf": float_rest, "arith.remsi": _rest, "arith.remui": _unsigned(_rest),
    "math.isfinite": _is_finite, "math.isinf": _is_infinite, "math.isnan": _is_nan,
    "math.copysign": _with_sign, "math.fma": _fused, "math.round": _rounded_away,
    "math.roundeven": Translator.rounded,
}  # fmt: skip
"""Vector operations as tensor operations."""


class Body:
    """The operations of a body, applied to tensors."""

    def __init__(
        self, loops: Loops, values: dict[SSAValue, Value], step: Mapping[int, int] | None = None
    ) -> None:
        """`step` has the indices of loops that are gone through one by one."""
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
        """An element that was taken out of a tensor outside of the body."""
        owner = value.owner
        if not isinstance(owner, Operation) or operation_name(owner) != "tensor.extract":
            return None
        return self._element(owner)

    def _element(self, op: Operation) -> SSAValue:
        """The elements of a tensor at indices that are computed."""
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
        """Carries one operation out."""
        name = operation_name(op)
        if name in _NOT_COMPUTED:
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
            return build.typecast(arguments[0], element)
        if name == "arith.cmpf" and (asks := _asks_for_numbers(op)) is not None:
            no_number = _is_nan(build, *arguments)
            return no_number if not asks else build.like("logical_not", no_number)
        if name in ("arith.cmpf", "arith.cmpi"):
            return build.broadcasting(predicate_of(op), *arguments, element=i1)
        if name == "arith.select":
            # The condition has elements of its own.
            return build.broadcasting("where", *arguments, element=element)
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


def _asks_for_numbers(op: Operation) -> bool | None:
    """True if a comparison of floats only asks if both are numbers (`ord`), or if one is none
    (`uno`); None if it compares them."""
    number = int(cast("Any", op.properties["predicate"]).value.data)
    return {_ORDERED: True, _UNORDERED: False}.get(number)


def predicate_of(op: Operation) -> str:
    """The op that a comparison is. Ordered and unordered ones are one: they differ for NaN only."""
    attribute = cast("Any", op.properties["predicate"])
    number = int(attribute.value.data)
    table = _FLOAT_PREDICATES if operation_name(op) == "arith.cmpf" else None
    name = table[number] if table is not None and number < len(table) else ""
    if table is None and number < 10:
        name = (*_INTEGER_PREDICATES, *_INTEGER_PREDICATES[2:])[number]
    if not name:
        raise CompileError(
            "a comparison that is always true, always false or tests for NaN only is not supported"
        )
    return name


def returned_by(block: Block) -> list[SSAValue]:
    """Values that a body yields."""
    assert block.last_op is not None
    return list(block.last_op.operands)
