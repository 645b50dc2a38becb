"""What the body of a linalg.generic computes: elements at one place, sums, products, extremes.

The loops of a generic are the dimensions of tensors here: each operand is broadcast over all of
them, an operation on elements is an op on tensors, and what accumulates over loops is a reduction.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

from xdsl.dialects.builtin import IntegerAttr, i32
from xdsl.ir import Attribute, Block, Operation, SSAValue

from ttcodegen.diagnostics import CompileError
from ttcodegen.dialects.datatypes import (
    element_of,
    f32,
    i1,
    normalized_data_type,
    shape_of,
    tensor_type,
)
from ttcodegen.dialects.operation import operation_name
from ttcodegen.frontends.linalg.forms import inputs_and_outputs
from ttcodegen.frontends.source_ops import SourceOp
from ttcodegen.frontends.translation import Translator
from ttcodegen.ops.constant_values import splat_of

Value = SSAValue | float
"""A tensor over the loops, or one number."""

ELEMENTWISE = {
    "arith.addf": "add", "arith.addi": "add", "arith.subf": "subtract", "arith.subi": "subtract",
    "arith.mulf": "multiply", "arith.muli": "multiply", "arith.divf": "div",
    "arith.maximumf": "maximum", "arith.minimumf": "minimum", "arith.maxnumf": "maximum",
    "arith.minnumf": "minimum", "arith.maxsi": "maximum", "arith.minsi": "minimum",
    "arith.negf": "neg", "arith.remf": "remainder",
    "math.absf": "abs", "math.absi": "abs", "math.atan": "atan", "math.ceil": "ceil",
    "math.cos": "cos", "math.erf": "erf", "math.exp": "exp", "math.expm1": "expm1",
    "math.floor": "floor", "math.log": "log", "math.log1p": "log1p", "math.powf": "pow",
    "math.rsqrt": "rsqrt", "math.sin": "sin", "math.sqrt": "sqrt", "math.tan": "tan",
    "math.tanh": "tanh",
}  # fmt: skip
"""What an operation on elements is as an op on tensors."""

_LOGICAL = {"arith.andi": "logical_and", "arith.ori": "logical_or", "arith.xori": "logical_xor"}
_CONVERSIONS = frozenset({
    "arith.truncf", "arith.extf", "arith.sitofp", "arith.uitofp", "arith.fptosi", "arith.extsi",
    "arith.extui", "arith.trunci", "arith.index_cast",
})  # fmt: skip
_REDUCTIONS = {
    "add": ("sum", 0.0), "maximum": ("max", float("-inf")), "minimum": ("min", float("inf")),
    "multiply": ("prod", 1.0),
}  # fmt: skip
"""What an op that combines two elements is over many, and the number that changes nothing."""
_PREDICATES = {"eq": "eq", "ne": "ne", "gt": "gt", "ge": "ge", "lt": "lt", "le": "le"}
_INTEGER_PREDICATES = ("eq", "ne", "lt", "le", "gt", "ge")
_FLOAT_PREDICATES = ("", "eq", "gt", "ge", "lt", "le", "ne", "", "eq", "gt", "ge", "lt", "le", "ne")


def scalar_of(value: SSAValue) -> float | None:
    """The number that a constant of no tensor is."""
    owner = value.owner
    if not isinstance(owner, Operation) or operation_name(owner) != "arith.constant":
        return None
    attribute: Any = owner.properties.get("value", owner.attributes.get("value"))
    data = getattr(getattr(attribute, "value", None), "data", None)
    return data if isinstance(data, int | float) else None


@dataclass
class Loops:
    """The loops of a generic."""

    build: Translator
    sizes: tuple[int, ...]
    reduced: list[int]
    """Those that results have no dimension for."""

    @property
    def rank(self) -> int:
        """How many there are."""
        return len(self.sizes)

    def broadcast(self, value: SSAValue, places: Sequence[int | None]) -> SSAValue:
        """A tensor with a dimension for each loop, of one element where it does not depend on it;
        `places` are the loops of its own dimensions, None for one of one element."""
        kept = [axis for axis, place in enumerate(places) if place is not None]
        found = [place for place in places if place is not None]
        if len(set(found)) != len(found):
            raise CompileError("a linalg.generic that takes a diagonal is not supported")
        shape = shape_of(value.type)
        value = self.build.reshape(value, [shape[axis] for axis in kept])
        order = sorted(range(len(found)), key=lambda axis: found[axis])
        value = self.build.permute(value, order)
        sizes = [1] * self.rank
        for place in found:
            sizes[place] = self.sizes[place]
        return self.build.reshape(value, sizes)

    def tensor(self, value: Value, element: Attribute) -> SSAValue:
        """A number as a tensor that broadcasts over the loops."""
        if isinstance(value, SSAValue):
            return value
        data_type = normalized_data_type(element)
        is_float = data_type is not None and data_type.is_float
        number = float(value) if is_float else int(value)
        return self.build.full([1] * self.rank, number, element)


def device_element(type_: Attribute) -> Attribute:
    """The element type that stands for one of a body; f64 and indices are as wide as a device has
    them."""
    name = str(type_)
    return {"f64": f32, "index": i32}.get(name, type_)


def places_of(map_: Any) -> list[int | None]:
    """Which loop each dimension of an operand follows; None for the constant 0."""
    from xdsl.ir.affine import AffineConstantExpr, AffineDimExpr

    places: list[int | None] = []
    for expression in map_.data.results:
        if isinstance(expression, AffineDimExpr):
            places.append(expression.position)
        elif isinstance(expression, AffineConstantExpr) and expression.value == 0:
            places.append(None)
        else:
            raise CompileError(f"the indexing map {map_} is not supported")
    return places


class Body:
    """The operations of a body, applied to tensors."""

    def __init__(self, loops: Loops, values: dict[SSAValue, Value]) -> None:
        self.loops = loops
        self.values = values

    def __getitem__(self, value: SSAValue) -> Value:
        found = self.values.get(value)
        if found is None:
            found = scalar_of(value)
        if found is None:
            raise CompileError("a linalg.generic that takes values from outside is not supported")
        return found

    def run(self, op: Operation) -> None:
        """Carries one operation out."""
        name = operation_name(op)
        if name == "arith.constant":
            return
        build = self.loops.build
        if name == "linalg.index":
            self.values[op.results[0]] = self._index(op)
            return
        element = device_element(op.results[0].type)
        arguments = [
            self.loops.tensor(self[operand], device_element(operand.type))
            for operand in op.operands
        ]
        if name in _CONVERSIONS:
            result = build.typecast(arguments[0], element)
        elif name in ("arith.cmpf", "arith.cmpi"):
            result = build.broadcasting(_predicate(op), *arguments, element=i1)
        elif name == "arith.select":
            # The condition has elements of its own.
            result = build.broadcasting("where", *arguments, element=element)
        elif name in _LOGICAL and element == i1:
            result = build.broadcasting(_LOGICAL[name], *arguments)
        elif name in ELEMENTWISE:
            result = build.broadcasting(ELEMENTWISE[name], *arguments)
        else:
            raise CompileError(f"'{name}' in a linalg.generic is not supported")
        self.values[op.results[0]] = result

    def _index(self, op: Operation) -> SSAValue:
        dim = op.attributes["dim"]
        assert isinstance(dim, IntegerAttr)
        axis = dim.value.data
        sizes = [size if i == axis else 1 for i, size in enumerate(self.loops.sizes)]
        return self.loops.build.emit(
            "arange", [], tensor_type(i32, sizes), start=0, end=sizes[axis], step=1,
            arange_dimension=axis,
        )  # fmt: skip


def _predicate(op: Operation) -> str:
    """Ordered and unordered forms are one: they differ for NaN only."""
    attribute = cast("Any", op.properties["predicate"])
    number = int(attribute.value.data)
    table = _FLOAT_PREDICATES if operation_name(op) == "arith.cmpf" else None
    name = table[number] if table is not None and number < len(table) else ""
    if table is None and number < 10:
        name = (*_INTEGER_PREDICATES, *_INTEGER_PREDICATES[2:])[number]
    if not name:
        raise CompileError("a comparison that asks for NaN only is not supported")
    return name


def generic(build: Translator, op: SourceOp) -> list[SSAValue]:
    """The results of a linalg.generic."""
    kinds = [str(kind) for kind in cast("Any", op.attributes["iterator_types"]).data]
    maps = [places_of(map_) for map_ in cast("Any", op.attributes["indexing_maps"]).data]
    sizes: dict[int, int] = {}
    for operand, places in zip(op.operands, maps, strict=True):
        if scalar_of(operand) is not None:
            continue
        sizes.update(
            (place, size)
            for place, size in zip(places, shape_of(operand.type), strict=True)
            if place is not None
        )
    if len(sizes) != len(kinds):
        raise CompileError("a linalg.generic whose loops no operand measures is not supported")
    reduced = [axis for axis, kind in enumerate(kinds) if "reduction" in kind]
    loops = Loops(build, tuple(sizes[axis] for axis in range(len(kinds))), reduced)
    block = op.regions[0].block
    count = inputs_and_outputs(op)
    values: dict[SSAValue, Value] = {}
    for argument, operand, places in zip(block.args, op.operands, maps, strict=True):
        number = scalar_of(operand)
        if number is not None:
            values[argument] = number
        elif block.args.index(argument) < count or not reduced:
            values[argument] = loops.broadcast(operand, places)
    if not reduced:
        return _parallel(loops, op, block, values, maps[count:])
    return _reduction(loops, op, block, values, maps[count:], count)


def _returned(block: Block) -> list[SSAValue]:
    assert block.last_op is not None
    return list(block.last_op.operands)


def _parallel(
    loops: Loops,
    op: SourceOp,
    block: Block,
    values: dict[SSAValue, Value],
    maps: Sequence[Sequence[int | None]],
) -> list[SSAValue]:
    body = Body(loops, values)
    for inner in list(block.ops)[:-1]:
        body.run(inner)
    results: list[SSAValue] = []
    for value, result, places in zip(_returned(block), op.results, maps, strict=True):
        element = device_element(element_of(result.type))
        full = loops.build.repeat(loops.tensor(body[value], element), loops.sizes)
        order = [place for place in places if place is not None]
        if len(order) != loops.rank:
            raise CompileError("a linalg.generic with results of fewer loops is not supported")
        results.append(loops.build.permute(full, order))
    return results


def _reduction(
    loops: Loops,
    op: SourceOp,
    block: Block,
    values: dict[SSAValue, Value],
    maps: Sequence[Sequence[int | None]],
    count: int,
) -> list[SSAValue]:
    body = Body(loops, values)
    starts: dict[SSAValue, SSAValue] = dict(
        zip(block.args[count:], op.operands[count:], strict=True)
    )
    used: set[SSAValue] = set(starts)
    accumulating: list[Operation] = []
    for inner in list(block.ops)[:-1]:
        if used.isdisjoint(inner.operands):
            body.run(inner)
        else:
            accumulating.append(inner)
            used.update(inner.results)
    returned = _returned(block)
    if len(returned) == 2:
        return _extreme_and_place(body, op, block, starts, accumulating)
    if len(returned) != 1 or len(accumulating) != 1:
        raise CompileError("a linalg.generic that reduces in several steps is not supported")
    (step,) = accumulating
    combine = ELEMENTWISE.get(operation_name(step), "")
    if combine not in _REDUCTIONS or returned[0] is not step.results[0]:
        raise CompileError(
            f"a linalg.generic that reduces by '{operation_name(step)}' is not supported"
        )
    start = next(each for each in block.args[count:] if each in step.operands)
    others = [each for each in step.operands if each is not start]
    if len(others) != 1:
        raise CompileError("a linalg.generic that reduces in several steps is not supported")
    element = device_element(others[0].type)
    term = loops.build.repeat(loops.tensor(body[others[0]], element), loops.sizes)
    return [reduced(loops, term, combine, starts[start], maps[0])]


def reduced(
    loops: Loops, term: SSAValue, combine: str, start: SSAValue, places: Sequence[int | None]
) -> SSAValue:
    """`term` combined over the reduced loops, and with what the result starts from."""
    build = loops.build
    if any(place in loops.reduced for place in places):
        raise CompileError("a linalg.generic with a result for each step of a sum is not supported")
    name, neutral = _REDUCTIONS[combine]
    value = build.reduce(name, term, loops.reduced, keep_dim=False)
    kept = [axis for axis in range(loops.rank) if axis not in loops.reduced]
    value = build.permute(value, [kept.index(place) for place in places if place is not None])
    value = build.reshape(value, shape_of(start.type))
    begins = splat_of(start)
    return value if begins == neutral else build.like(combine, value, start)


_ARG: dict[str, Callable[[str], bool]] = {
    "maximum": lambda predicate: predicate in ("gt", "ge"),
    "minimum": lambda predicate: predicate in ("lt", "le"),
}


def _extreme_and_place(
    body: Body,
    op: SourceOp,
    block: Block,
    starts: dict[SSAValue, SSAValue],
    steps: Sequence[Operation],
) -> list[SSAValue]:
    """The largest element along one loop, and where it is: what maximum, comparison and choice
    become."""
    named = {operation_name(step): step for step in steps}
    compare, choose = named.get("arith.cmpf"), named.get("arith.select")
    extreme = next((s for s in steps if ELEMENTWISE.get(operation_name(s)) in _ARG), None)
    returned = _returned(block)
    loops = body.loops
    fits = (
        len(steps) == 3 and compare is not None and choose is not None and extreme is not None
        and returned[0] is extreme.results[0] and returned[1] is choose.results[0]
        and choose.operands[0] is compare.results[0] and len(loops.reduced) == 1
    )  # fmt: skip
    if not fits or compare is None or extreme is None:
        raise CompileError("a linalg.generic with several results that reduces is not supported")
    combine = ELEMENTWISE[operation_name(extreme)]
    source = next(value for value in extreme.operands if value not in starts)
    if compare.operands[0] is not source or not _ARG[combine](_predicate(compare)):
        raise CompileError("a linalg.generic with several results that reduces is not supported")
    if combine != "maximum":
        raise CompileError("the place of the smallest element is not supported")
    term = loops.tensor(body[source], device_element(source.type))
    value = loops.build.reduce("max", term, loops.reduced, keep_dim=False)
    place = loops.build.emit(
        "argmax", [term], tensor_type(i32, shape_of(value.type)), dim_arg=loops.reduced,
        keep_dim=False,
    )  # fmt: skip
    place = loops.build.typecast(place, element_of(op.results[1].type))
    results = zip((value, place), op.results, strict=True)
    return [loops.build.reshape(each, shape_of(result.type)) for each, result in results]
