"""Loops, branches and calls, evaluated during conversion where their operands are known."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from xdsl.dialects.builtin import DenseIntOrFPElementsAttr
from xdsl.ir import Block, BlockArgument, SSAValue

from ttcodegen.dialects.core.datatypes import constant_array, element_of, i1, shape_of
from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.frontends.stablehlo.bodies import block_of
from ttcodegen.frontends.stablehlo.conversion import (
    Complex,
    Conversion,
    Refused,
    Results,
    Rule,
    Value,
)
from ttcodegen.frontends.stablehlo.reading.operations import StableHLOOp
from ttcodegen.ops.core.builder import OpBuilder

MOST_ITERATIONS = 4096
"""Limit on the iterations of an unrolled loop; longer loops run on the device."""
MOST_COPIES = 128
"""Limit on the unrolled iterations of a counting loop.

Beyond it, unless the loop computes constants, copies of the body cost more to read and to compile
than calls cost to run.
"""


def _while(conversion: Conversion, op: StableHLOOp) -> list[Value]:
    condition, body = block_of(op, 0), block_of(op, 1)
    initial = values = conversion.values(op)
    names = [argument.name_hint for argument in body.args]
    count = _trip_count(conversion, condition, body, initial)
    if count is not None and count > MOST_COPIES:
        with conversion.aside():
            computed = conversion.run(body, initial)
            is_constant = all(conversion.known(value) is not None for value in computed)
        if not is_constant:
            return conversion.loop(op, initial, lambda v: conversion.run(body, v), count, names)
    last = conversion.last_made
    for _ in range(MOST_ITERATIONS + 1):
        with conversion.aside():
            (going,) = conversion.run(condition, values)
            if going is None:
                raise Refused
            again = conversion.number(going)
        if again is None:
            break
        if not again:
            return values
        values = [_fold_scalar(conversion, value) for value in conversion.run(body, values)]
    conversion.discard_after(last)

    def iterate(values: Sequence[Value]) -> Sequence[Value]:
        following = conversion.run(body, values)
        return [*conversion.run(condition, following), *following]

    (going,) = conversion.run(condition, initial)
    return conversion.loop(op, initial, iterate, going, names)


def _trip_count(
    conversion: Conversion, condition: Block, body: Block, initial: Sequence[Value]
) -> int | None:
    """Trip count of a loop that counts by a constant to a constant bound, else None."""
    last, end = condition.last_op, body.last_op
    assert last is not None
    assert end is not None
    compared = last.operands[0].owner
    if not isinstance(compared, StableHLOOp) or compared.short_name != "compare":
        return None
    counter, bound = compared.operands
    if not isinstance(counter, BlockArgument) or counter.block is not condition:
        return None
    index = counter.index
    added = end.operands[index].owner
    if not isinstance(added, StableHLOOp) or added.short_name != "add":
        return None
    steps = [value for value in added.operands if value is not body.args[index]]
    if len(steps) != 1:
        return None
    first = conversion.number(initial[index])
    limit = _loop_invariant_number(conversion, bound, condition, body, initial)
    step = _loop_invariant_number(conversion, steps[0], body, body, initial)
    if first is None or limit is None or not step:
        return None
    distance, upwards = int(limit) - int(first), compared.direction in ("LT", "LE")
    if upwards != (step > 0) or compared.direction not in ("LT", "LE", "GT", "GE"):
        return None
    inclusive = compared.direction in ("LE", "GE")
    stride = abs(int(step))
    reach = distance if upwards else -distance
    return max(0, reach // stride + 1 if inclusive else -(-reach // stride))


def _loop_invariant_number(
    conversion: Conversion,
    value: SSAValue,
    block: Block,
    body: Block,
    initial: Sequence[Value],
) -> float | None:
    """Returns the value that a block's value has in all iterations, None if unknown."""
    if isinstance(value, BlockArgument) and value.block is block:
        end = body.last_op
        is_kept = end is not None and end.operands[value.index] is body.args[value.index]
        return conversion.number(initial[value.index]) if is_kept else None
    owner = value.owner
    if isinstance(owner, StableHLOOp) and owner.parent is block:
        held = owner.properties.get("value", owner.attributes.get("value"))
        if owner.short_name != "constant" or not isinstance(held, DenseIntOrFPElementsAttr):
            return None
        found = constant_array(cast("DenseIntOrFPElementsAttr[Any]", held))
        return found.item() if found.size == 1 else None
    return conversion.number(conversion.value(value))


def _scan(conversion: Conversion, op: StableHLOOp) -> list[Value]:
    """Scan: the body at each index of a dimension, with slices of the inputs and the carried
    values.

    It produces slices of the outputs and the next carried values.
    """
    builder = conversion.builder
    count, carried = op.ints("operandSegmentSizes")
    dim = int(op["dimension"])
    tensors = conversion.tensors(op)
    inputs, carries = tensors[:count], list(tensors[count:])
    lengths = {shape_of(value.type)[dim] for value in inputs}
    lengths |= {shape_of(result.type)[dim] for result in op.results[: len(op.results) - carried]}
    if len(lengths) != 1:
        raise ValueError(f"inputs and outputs have different lengths along dimension {dim}")
    (length,) = lengths
    if length > MOST_ITERATIONS:
        raise ValueError(f"it is longer than {MOST_ITERATIONS}, and its body would be repeated "
                         "as often")  # fmt: skip
    outputs: list[list[SSAValue]] = [[] for _ in range(len(op.results) - carried)]
    places = range(length - 1, -1, -1) if op.get("is_reverse", False) else range(length)
    for place in places:
        parts = [_index_dimension(builder, value, dim, place) for value in inputs]
        found = conversion.run(block_of(op), [*parts, *carries])
        if not all(isinstance(each, SSAValue) for each in found):
            raise Refused
        values = [each for each in found if isinstance(each, SSAValue)]
        carries = values[len(outputs) :]
        for output, value in zip(outputs, values, strict=False):
            shape = shape_of(value.type)
            output.append(builder.reshape(value, [*shape[:dim], 1, *shape[dim:]]))
    if not length:
        empty = [(shape_of(r.type), element_of(r.type)) for r in op.results[: len(outputs)]]
        return [*(conversion.filled(0, shape, element) for shape, element in empty), *carries]
    joined = [builder.concat(each[:: places.step], dim) for each in outputs]
    return [*joined, *carries]


def _index_dimension(builder: OpBuilder, value: SSAValue, dim: int, place: int) -> SSAValue:
    """Takes the slice at an index of a dimension and drops the dimension."""
    shape = shape_of(value.type)
    part = builder.slice_dim(value, dim, place, place + 1)
    return builder.reshape(part, [*shape[:dim], *shape[dim + 1 :]])


def _fold_scalar(conversion: Conversion, value: Value) -> Value:
    """Folds a known scalar, such as a loop counter, to a constant."""
    if not isinstance(value, SSAValue) or shape_of(value.type) != ():
        return value
    known = conversion.known(value)
    if known is None or getattr(value.owner, "name", "") == "ttir.constant":
        return value
    return conversion.constant(known, element_of(value.type))


def _if(conversion: Conversion, op: StableHLOOp) -> list[Value]:
    (predicate,) = conversion.tensors(op)
    number = conversion.number(predicate)
    if number is not None:
        return conversion.run(block_of(op, 0 if number else 1), [])
    branches = [_branch(conversion, block_of(op, index)) for index in range(2)]
    return [
        _chosen(conversion, predicate, first, second)
        for first, second in zip(*branches, strict=True)
    ]


def _case(conversion: Conversion, op: StableHLOOp) -> list[Value]:
    """Case; an index out of range selects the last branch."""
    (index,) = conversion.tensors(op)
    last = len(op.regions) - 1
    number = conversion.number(index)
    if number is not None:
        place = int(number) if 0 <= number <= last else last
        return conversion.run(block_of(op, place), [])
    found = _branch(conversion, block_of(op, last))
    for place in range(last):
        branch = _branch(conversion, block_of(op, place))
        at = conversion.filled_like(place, index)
        taken = conversion.builder.like("eq", index, at, element=i1)
        found = [
            _chosen(conversion, taken, first, second)
            for first, second in zip(branch, found, strict=True)
        ]
    return found


def _branch(conversion: Conversion, block: Block) -> list[Value]:
    """Converts a branch that may not be taken: it must not write in place."""
    donated, conversion.donated = conversion.donated, set()
    try:
        return conversion.run(block, [])
    finally:
        conversion.donated = donated


def _chosen(conversion: Conversion, predicate: SSAValue, first: Value, second: Value) -> Value:
    """Selects between the results of both branches, which both run."""
    if isinstance(first, Complex) and isinstance(second, Complex):
        return Complex(
            _selected(conversion, predicate, first.real, second.real),
            _selected(conversion, predicate, first.imag, second.imag),
        )
    if isinstance(first, SSAValue) and isinstance(second, SSAValue):
        return _selected(conversion, predicate, first, second)
    return first


def _selected(
    conversion: Conversion, predicate: SSAValue, first: SSAValue, second: SSAValue
) -> SSAValue:
    if first is second:
        return first
    shape = shape_of(first.type)
    one = conversion.builder.reshape(predicate, [1] * len(shape))
    condition = conversion.broadcast_to(one, shape)
    return conversion.builder.emit("where", [condition, first, second], first.type)


def _call(conversion: Conversion, op: StableHLOOp) -> list[Value]:
    """Call of the function that an attribute names, such as `mhlo.call`."""
    return conversion.call(str(op["callee"]), conversion.values(op), op)


def _inline_region(conversion: Conversion, op: StableHLOOp) -> list[Value]:
    """Operation that inlines its region."""
    return conversion.run(block_of(op), conversion.values(op))


def token(conversion: Conversion, op: StableHLOOp) -> Results:
    """Drops tokens: they order side effects, and a program has none."""
    return [None] * len(op.results)


def identity(conversion: Conversion, op: StableHLOOp) -> Results:
    """Converts an op that only annotates the placement of a value."""
    return conversion.values(op)


def side_effect(conversion: Conversion, op: StableHLOOp) -> Value:
    """Refuses an operation with side effects."""
    raise CompileError(
        f"'{op.name}' has a side effect, which a compiled program cannot have",
        op,
        remedy="pass a function whose results depend on its arguments alone",
    )


RULES: dict[str, Rule] = {
    "after_all": token,
    "all_slice": identity,
    "call": _call,
    "case": _case,
    "create_token": token,
    "if": _if,
    "infeed": side_effect,
    "named_computation": _inline_region,
    "outfeed": side_effect,
    "propagation_barrier": identity,
    "recv": side_effect,
    "reshard": identity,
    "send": side_effect,
    "sharding_constraint": identity,
    "sharding_group": identity,
    "trace": token,
    "scan": _scan,
    "while": _while,
}
