"""Translation of linalg.generic: elementwise bodies, reductions and contractions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any, cast

import ml_dtypes
import numpy as np
from xdsl.dialects.builtin import i32
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.ir.affine import AffineDimExpr

from ttcodegen.dialects.core.datatypes import (
    element_of,
    normalized_data_type,
    numpy_name,
    shape_of,
    tensor_type,
)
from ttcodegen.dialects.operations.operation import operation_name
from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.frontends.linalg.bodies import (
    ELEMENTWISE,
    IGNORING_NAN,
    Body,
    Loops,
    Value,
    device_element,
    is_ordered,
    places_of,
    predicate_of,
    returned_by,
    scalar_of,
)
from ttcodegen.frontends.linalg.forms import inputs_and_outputs
from ttcodegen.frontends.special_functions import number_or
from ttcodegen.frontends.translation import SourceOp, Translator
from ttcodegen.ops.core.builder import splat_of

# Sums of products over loops, as matmuls in any order of dimensions.


def contraction(
    loops: Loops, left: SSAValue, right: SSAValue, element: Attribute
) -> SSAValue | None:
    """Translates a sum of products over the reduction loops to a matmul.

    Operands have one dimension per loop, of size 1 where they do not depend on it; the result has
    size 1 for reduction loops. Returns None if it is no matmul: a reduction loop indexes only one
    operand, a parallel loop indexes neither, or no parallel loop indexes one operand alone.
    """
    shapes = [shape_of(value.type) for value in (left, right)]
    moving = [[axis for axis, size in enumerate(shape) if size != 1] for shape in shapes]
    summed = [axis for axis in loops.reduced if loops.sizes[axis] != 1]
    if not summed or not all(axis in side for axis in summed for side in moving):
        return None
    batch = [axis for axis in moving[0] if axis in moving[1] and axis not in summed]
    free = [[axis for axis in side if axis not in (*batch, *summed)] for side in moving]
    if not free[0] and not free[1]:
        return None
    order = [*batch, *free[0], *free[1]]
    if any(size != 1 and axis not in (*order, *summed) for axis, size in enumerate(loops.sizes)):
        return None
    build = loops.build
    operands = [
        build.typecast(build.reshape(value, [loops.sizes[axis] for axis in side]), element)
        for value, side in zip((left, right), moving, strict=True)
    ]
    product = build.emit(
        "dot_general",
        operands,
        tensor_type(element, [loops.sizes[axis] for axis in order]),
        batch_dims_lhs=_places(batch, moving[0]),
        batch_dims_rhs=_places(batch, moving[1]),
        contract_dims_lhs=_places(summed, moving[0]),
        contract_dims_rhs=_places(summed, moving[1]),
    )
    product = build.permute(product, _places(sorted(order), order))
    kept = [size if axis in order else 1 for axis, size in enumerate(loops.sizes)]
    return build.reshape(product, kept)


def _places(axes: Sequence[int], among: Sequence[int]) -> list[int]:
    return [among.index(axis) for axis in axes]


# Reductions of linalg.generic: sums, products, extremes, and sequential folds.
#
# A body that combines one element after the other with what it has so far, by one operation that
# knows no order, is a reduction. Any other is carried out step by step.

_MAX_UNROLLED_STEPS = 256
"""Limit on the reduction steps that are unrolled."""

_REDUCTIONS = {
    "add": ("sum", 0.0), "maximum": ("max", float("-inf")), "minimum": ("min", float("inf")),
    "multiply": ("prod", 1.0),
}  # fmt: skip
"""Reduction op and neutral element of each binary op."""


def reduction(
    body: Body, op: SourceOp, block: Block, maps: Sequence[Sequence[int | None]]
) -> list[SSAValue]:
    """Translates a generic with reduction loops; `body` holds the values of the inputs."""
    count = len(block.args) - len(maps)
    starts: dict[SSAValue, SSAValue] = dict(
        zip(block.args[count:], op.operands[count:], strict=True)
    )
    used: set[SSAValue] = set(starts)
    accumulating: list[Operation] = []
    before: list[Operation] = []
    for inner in list(block.ops)[:-1]:
        if used.isdisjoint(inner.operands):
            before.append(inner)
        else:
            accumulating.append(inner)
            used.update(inner.results)
    if any(place in body.loops.reduced for places in maps for place in places):
        raise CompileError("a linalg.generic with a result for each step of a sum is not supported")
    whole = _match_single_combiner(block, starts, accumulating)
    if whole is None and _match_arg_extreme(body, block, starts, accumulating) is None:
        return _unroll(body, op, block, maps)
    product = None if whole is None else _summed_product(whole, before)
    for inner in before:
        if inner is not product:
            body.run(inner)
    if whole is None:
        return _extreme_and_place(body, op, block, starts, accumulating)
    combine, start, term = whole
    element = device_element(term.type)
    loops = body.loops
    if product is not None:
        factors = [loops.tensor(body[value], element) for value in product.operands]
        found = contraction(loops, factors[0], factors[1], element)
        if found is not None:
            return [_restore_dimensions(loops, found, combine, starts[start], maps[0])]
        body.run(product)
    full = loops.build.repeat(loops.tensor(body[term], element), loops.sizes)
    if operation_name(accumulating[0]) in IGNORING_NAN:
        full = number_or(loops.build, full, _REDUCTIONS[combine][1])
    return [reduced(loops, full, combine, starts[start], maps[0])]


def combining(name: str) -> str:
    """Returns the binary tensor op of a scalar operation, or an empty string."""
    return ELEMENTWISE.get(name) or IGNORING_NAN.get(name, "")


def neutral_element(steps: Sequence[str]) -> float:
    """Returns the neutral element of the first operation that reduces, 0 if none does."""
    names = [combining(step) for step in steps]
    return next((_REDUCTIONS[name][1] for name in names if name in _REDUCTIONS), 0.0)


def _summed_product(
    whole: tuple[str, SSAValue, SSAValue], before: Sequence[Operation]
) -> Operation | None:
    """Returns the float multiplication whose results are only summed, else None."""
    combine, _, term = whole
    owner = term.owner
    if combine != "add" or owner not in before or not term.has_one_use():
        return None
    assert isinstance(owner, Operation)
    return owner if operation_name(owner) == "arith.mulf" else None


def _match_single_combiner(
    block: Block, starts: Mapping[SSAValue, SSAValue], steps: Sequence[Operation]
) -> tuple[str, SSAValue, SSAValue] | None:
    """Matches a body with one combining op: its name, its accumulator and its term."""
    returned = returned_by(block)
    if len(returned) != 1 or len(steps) != 1 or returned[0] is not steps[0].results[0]:
        return None
    combine = combining(operation_name(steps[0]))
    state = [each for each in steps[0].operands if each in starts]
    terms = [each for each in steps[0].operands if each not in starts]
    if combine not in _REDUCTIONS or len(state) != 1 or len(terms) != 1:
        return None
    return combine, state[0], terms[0]


def _unroll(
    body: Body, op: SourceOp, block: Block, maps: Sequence[Sequence[int | None]]
) -> list[SSAValue]:
    """Unrolls the reduction loops, each step on the elements of all parallel loops at once."""
    loops = body.loops
    sizes = [loops.sizes[axis] for axis in loops.reduced]
    if prod(sizes) > _MAX_UNROLLED_STEPS:
        raise CompileError(
            f"a linalg.generic that reduces in {prod(sizes)} steps is not supported: at most "
            f"{_MAX_UNROLLED_STEPS} are carried out one by one",
            remedy="combine elements by one sum, product, maximum or minimum",
        )
    kept = tuple(1 if axis in loops.reduced else n for axis, n in enumerate(loops.sizes))
    one = Loops(loops.build, kept, [])
    count = len(block.args) - len(maps)
    state: list[Value] = []
    for start, places in zip(op.operands[count:], maps, strict=True):
        number = scalar_of(start)
        state.append(one.broadcast(start, places) if number is None else number)
    for step in np.ndindex(*sizes):
        values = {argument: loops.at_step(value, step) for argument, value in body.values.items()}
        values |= dict(zip(block.args[count:], state, strict=True))
        turn = Body(one, values, dict(zip(loops.reduced, step, strict=True)))
        for inner in list(block.ops)[:-1]:
            turn.run(inner)
        state = [turn[value] for value in returned_by(block)]
    results: list[SSAValue] = []
    for value, result, places in zip(state, op.results, maps, strict=True):
        full = one.build.repeat(one.tensor(value, device_element(element_of(result.type))), kept)
        order = [place for place in places if place is not None]
        order += [axis for axis in range(loops.rank) if axis not in order]
        turned = loops.build.permute(full, order)
        results.append(loops.build.reshape(turned, shape_of(result.type)))
    return results


def reduced(
    loops: Loops, term: SSAValue, combine: str, start: SSAValue, places: Sequence[int | None]
) -> SSAValue:
    """Reduces `term` over the reduction loops and combines it with the initial value."""
    name, _ = _REDUCTIONS[combine]
    value = loops.build.reduce(name, term, loops.reduced)
    return _restore_dimensions(loops, value, combine, start, places)


def _restore_dimensions(
    loops: Loops, value: SSAValue, combine: str, start: SSAValue, places: Sequence[int | None]
) -> SSAValue:
    """Restores the dimension order after a reduction and combines it with the initial value."""
    build = loops.build
    kept = [axis for axis in range(loops.rank) if axis not in loops.reduced]
    value = build.reshape(value, [loops.sizes[axis] for axis in kept])
    value = build.permute(value, [kept.index(place) for place in places if place is not None])
    value = build.reshape(value, shape_of(start.type))
    begins = splat_of(start)
    return value if begins == _REDUCTIONS[combine][1] else build.like(combine, value, start)


_FIRST = {"maximum": "gt", "minimum": "lt"}
"""Comparison that keeps the first of equal extremes."""

_WIDTHS = ("arith.index_cast", "arith.extsi", "arith.extui", "arith.trunci")
"""Conversions that change only the width of an index."""


def _match_arg_extreme(
    body: Body, block: Block, starts: Mapping[SSAValue, SSAValue], steps: Sequence[Operation]
) -> tuple[str, SSAValue] | None:
    """Matches an argmax or argmin with the first of equal indices: op name and source."""
    named = {operation_name(step): step for step in steps}
    compare = named.get("arith.cmpf", named.get("arith.cmpi"))
    choose = named.get("arith.select")
    extreme = next((s for s in steps if ELEMENTWISE.get(operation_name(s)) in _FIRST), None)
    if compare is None or choose is None or extreme is None or len(steps) != 3 or len(starts) != 2:
        return None
    best, place = starts
    combine = ELEMENTWISE[operation_name(extreme)]
    source = next((value for value in extreme.operands if value not in starts), None)
    fits = (
        returned_by(block) == [extreme.results[0], choose.results[0]]
        and len(body.loops.reduced) == 1
        and source is not None and set(extreme.operands) == {source, best}
        and list(compare.operands) == [source, best]
        and is_ordered(compare) and predicate_of(compare) == _FIRST[combine]
        and choose.operands[0] is compare.results[0]
        and _is_index(choose.operands[1], body.loops.reduced[0])
        and choose.operands[2] is place
        and _is_neutral(combine, starts[best])
    )  # fmt: skip
    return (combine, source) if fits and source is not None else None


def _is_index(value: SSAValue, loop: int) -> bool:
    """Returns whether a value of a body is the index of a loop."""
    owner = value.owner
    while isinstance(owner, Operation) and operation_name(owner) in _WIDTHS:
        owner = owner.operands[0].owner
    if not isinstance(owner, Operation) or operation_name(owner) != "linalg.index":
        return False
    return cast("Any", owner.attributes["dim"]).value.data == loop


def _is_neutral(combine: str, start: SSAValue) -> bool:
    """Returns whether an extreme starts from infinity or from the type's limit."""
    begins, name = splat_of(start), numpy_name(element_of(start.type))
    if begins is None or name is None or begins == _REDUCTIONS[combine][1]:
        return begins is not None
    dtype = np.dtype(name)
    limits = cast("Any", np.iinfo(dtype) if dtype.kind in "iu" else ml_dtypes.finfo(dtype))
    return begins == float(limits.min if combine == "maximum" else limits.max)


def _extreme_and_place(
    body: Body,
    op: SourceOp,
    block: Block,
    starts: Mapping[SSAValue, SSAValue],
    steps: Sequence[Operation],
) -> list[SSAValue]:
    found = _match_arg_extreme(body, block, starts, steps)
    assert found is not None
    combine, source = found
    loops = body.loops
    term = loops.tensor(body[source], device_element(source.type))
    name, _ = _REDUCTIONS[combine]
    value = loops.build.reduce(name, term, loops.reduced, keep_dim=False)
    if combine == "minimum":
        # The lowest integer has no negative.
        data_type = normalized_data_type(element_of(term.type))
        is_float = data_type is not None and data_type.is_float
        term = loops.build.like("neg" if is_float else "bitwise_not", term)
    place = loops.build.emit(
        "argmax", [term], tensor_type(i32, shape_of(value.type)), dim_arg=loops.reduced,
        keep_dim=False,
    )  # fmt: skip
    place = loops.build.typecast(place, element_of(op.results[1].type))
    results = zip((value, place), op.results, strict=True)
    return [loops.build.reshape(each, shape_of(result.type)) for each, result in results]


# A linalg.generic as ops of TTIR.
#
# Its loops are the dimensions of tensors here: each operand is broadcast over all of them, an
# operation on elements is an op on tensors, and what accumulates over loops is a reduction.


def generic(build: Translator, op: SourceOp) -> list[SSAValue]:
    """Translates a linalg.generic."""
    kinds = [str(kind) for kind in cast("Any", op.attributes["iterator_types"]).data]
    maps = list(cast("Any", op.attributes["indexing_maps"]).data)
    _require_consistency(op, maps, len(kinds))
    sizes = _sizes_of_loops(op, maps)
    if len(sizes) != len(kinds):
        raise CompileError("a linalg.generic is not supported if no operand bounds a loop")
    reduced = [axis for axis, kind in enumerate(kinds) if "reduction" in kind]
    loops = Loops(build, tuple(sizes[axis] for axis in range(len(kinds))), reduced)
    block = op.regions[0].block
    count = inputs_and_outputs(op)
    written = [places_of(map_) for map_ in maps[count:]]
    results = [places for places in written if places is not None]
    if len(results) != len(written):
        raise CompileError(f"the indexing map {maps[-1]} of a result is not supported")
    values: dict[SSAValue, Value] = {}
    for argument, operand, map_ in zip(block.args, op.operands, maps, strict=True):
        number = scalar_of(operand)
        if number is not None:
            values[argument] = number
        elif block.args.index(argument) < count or not reduced:
            values[argument] = loops.operand(operand, map_)
    if not reduced:
        return _parallel(loops, op, block, values, results)
    return reduction(Body(loops, values), op, block, results)


def _require_consistency(op: SourceOp, maps: Sequence[Any], loops: int) -> None:
    """Raises CompileError if maps, operands, arguments and results of the region do not match."""
    block = op.regions[0].block
    if not len(maps) == len(block.args) == len(op.operands):
        raise CompileError(
            f"a linalg.generic of {len(op.operands)} operands has {len(maps)} indexing maps and "
            f"{len(block.args)} arguments in its region"
        )
    for map_, operand in zip(maps, op.operands, strict=True):
        rank = len(shape_of(operand.type)) if scalar_of(operand) is None else 0
        if map_.data.num_dims != loops or len(map_.data.results) != rank:
            raise CompileError(
                f"the indexing map {map_} of a linalg.generic does not map {loops} loops to an "
                f"operand of rank {rank}"
            )
    yielded = len(returned_by(block)) if block.last_op is not None else 0
    if yielded != len(op.results):
        raise CompileError(
            f"the region of a linalg.generic yields {yielded} values for {len(op.results)} results"
        )


def _sizes_of_loops(op: SourceOp, maps: Sequence[Any]) -> dict[int, int]:
    """Returns the trip counts of the loops that index an operand dimension directly."""
    sizes: dict[int, int] = {}
    for operand, map_ in zip(op.operands, maps, strict=True):
        if scalar_of(operand) is not None:
            continue
        for expression, size in zip(map_.data.results, shape_of(operand.type), strict=True):
            if isinstance(expression, AffineDimExpr):
                sizes[expression.position] = size
    return sizes


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
    for value, result, places in zip(returned_by(block), op.results, maps, strict=True):
        element = device_element(element_of(result.type))
        full = loops.build.repeat(loops.tensor(body[value], element), loops.sizes)
        order = [place for place in places if place is not None]
        if len(order) != loops.rank:
            raise CompileError("a linalg.generic with results of fewer loops is not supported")
        results.append(loops.build.permute(full, order))
    return results
