"""A linalg.generic as ops of TTIR.

Its loops are the dimensions of tensors here: each operand is broadcast over all of them, an
operation on elements is an op on tensors, and what accumulates over loops is a reduction.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from xdsl.ir import Block, SSAValue
from xdsl.ir.affine import AffineDimExpr

from ttcodegen.dialects.core.datatypes import element_of, shape_of
from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.frontends.linalg.bodies import Body, returned_by, scalar_of
from ttcodegen.frontends.linalg.forms import inputs_and_outputs
from ttcodegen.frontends.linalg.loops import Loops, Value, device_element, places_of
from ttcodegen.frontends.linalg.reductions import reduction
from ttcodegen.frontends.source_ops import SourceOp
from ttcodegen.frontends.translation import Translator


def generic(build: Translator, op: SourceOp) -> list[SSAValue]:
    """The results of a linalg.generic."""
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
    """The iterations of the loops that alone index a dimension of an operand."""
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
