"""Recognition of the bodies of reductions, sorts and scatters.

A body of one op says what it is. Others (the pairs of value and index of an argmax, comparators)
are recognised by what they give: such a body only compares and selects, so that the order of its
arguments among each other and to its constants decides, and trying each order once is a proof.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, cast

from xdsl.dialects.builtin import DenseIntOrFPElementsAttr
from xdsl.ir import Block, Operation, Region, SSAValue

from ttcodegen.dialects.core.datatypes import constant_array, element_of, is_boolean, numpy_name
from ttcodegen.foundation.lazy_numpy import Array, np
from ttcodegen.frontends.stablehlo.reading.operations import StableHLOOp, numpy_dtype

_REDUCERS = {"add": "sum", "multiply": "prod", "maximum": "max", "minimum": "min", "and": "and",
             "or": "or", "xor": "xor"}  # fmt: skip
_BOOLEAN_REDUCERS = {"add": "or", "multiply": "and", "maximum": "or", "minimum": "and"}
NEUTRAL: dict[str, float] = {
    "sum": 0.0,
    "prod": 1.0,
    "max": float("-inf"),
    "min": float("inf"),
    "or": 0,
    "and": 1,
}
"""Neutral element of each reduction of floats and booleans."""


def block_of(op: Operation, index: int = 0) -> Block:
    """Returns the only block of a region; raises ValueError if there is none."""
    regions: Sequence[Region] = op.regions
    if index >= len(regions) or len(regions[index].blocks) != 1:
        raise ValueError(f"'{op.name}' needs a body of one block")
    return regions[index].block


def returned(block: Block) -> list[SSAValue]:
    """Values that a body returns."""
    last = block.last_op
    return list(last.operands) if last is not None else []


def reducer(block: Block) -> str | None:
    """Returns sum, prod, max, min, and, or, xor for a body of two arguments that is one,
    else None."""
    results = returned(block)
    if len(block.args) != 2 or len(results) != 1:
        return None
    # The sum of narrow floats may be computed in wide ones.
    op = _without_conversions(results[0]).owner
    if not isinstance(op, StableHLOOp) or len(op.operands) != 2:
        return None
    if {_without_conversions(operand) for operand in op.operands} != set(block.args):
        return None
    name = op.short_name
    if is_boolean(element_of(block.args[0].type)) and name in _BOOLEAN_REDUCERS:
        return _BOOLEAN_REDUCERS[name]
    return _REDUCERS.get(name)


def _without_conversions(value: SSAValue) -> SSAValue:
    while isinstance(op := value.owner, StableHLOOp) and _is_passthrough(op):
        value = op.operands[0]
    return value


def _is_passthrough(op: StableHLOOp) -> bool:
    """Returns whether an op passes its operand through: a conversion or a sharding annotation."""
    is_sharding = op.short_name == "custom_call" and op.get("call_target_name") == "Sharding"
    return op.short_name in _PASSING or is_sharding


_PASSING = frozenset(
    {"convert", "reduce_precision", "copy", "optimization_barrier", "sharding_constraint"}
)


def replacement(block: Block) -> str | None:
    """Returns how a scatter's body combines old and new values: a reduction or `invalid`.

    `invalid` is TTIR's name of replacement; None for any other body.
    """
    results = returned(block)
    if len(block.args) == 2 and len(results) == 1:
        if _without_conversions(results[0]) is block.args[1]:
            return "invalid"
        if (name := reducer(block)) in ("sum", "prod", "max", "min"):
            return name
        if is_boolean(element_of(block.args[0].type)):
            return {"or": "max", "and": "min"}.get(str(name))
    return None


def is_subtraction(block: Block) -> bool:
    """Returns whether a body of two arguments subtracts the second from the first."""
    results = returned(block)
    op = results[0].owner if len(results) == 1 else None
    if not isinstance(op, StableHLOOp) or op.short_name != "subtract":
        return False
    return list(op.operands) == list(block.args)


# Bodies that are tried


_COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "EQ": operator.eq,
    "NE": operator.ne,
    "GE": operator.ge,
    "GT": operator.gt,
    "LE": operator.le,
    "LT": operator.lt,
}


def _selected(condition: Array, first: Array, second: Array) -> Array:
    return np.where(condition, first, second)


def _larger(first: Array, second: Array) -> Array:
    return np.maximum(first, second)


def _smaller(first: Array, second: Array) -> Array:
    return np.minimum(first, second)


def _finite(value: Array) -> Array:
    return np.isfinite(value)


_bits = cast("Any", operator)
_OPERATIONS: dict[str, Callable[..., Any]] = {
    "and": _bits.and_,
    "or": _bits.or_,
    "xor": _bits.xor,
    "not": operator.invert,
    "select": _selected,
    "maximum": _larger,
    "minimum": _smaller,
    "negate": operator.neg,
    "abs": operator.abs,
    "add": operator.add,
    "subtract": operator.sub,
    "is_finite": _finite,
    "shift_right_arithmetic": _bits.rshift,
}


def _samples(dtype: str) -> Array:
    """Sample values in every order relative to each other and to zero."""
    if dtype == "bool":
        return np.asarray([False, True])
    if dtype.startswith("uint"):
        return np.asarray([0, 1, 2, 7], dtype=numpy_dtype(dtype))
    if dtype.startswith("int"):
        return np.asarray([-5, -1, 0, 1, 2], dtype=numpy_dtype(dtype))
    return np.asarray([-np.inf, -3.0, -1.0, 0.0, 1.0, 3.0, np.inf], dtype=numpy_dtype(dtype))


def tried(
    block: Block, used: set[int] | None = None
) -> tuple[dict[int, Array], list[Array]] | None:
    """Evaluates a body for every order of its arguments.

    Returns None if the order alone does not decide the result. `used`: the arguments that the body
    reads, all if None.
    """
    order = sorted(used) if used is not None else list(range(len(block.args)))
    names = [numpy_name(element_of(block.args[index].type)) for index in order]
    if len(names) > 6 or any(name is None for name in names):
        return None
    grids = np.meshgrid(*(_samples(str(name)) for name in names), indexing="ij")
    arguments = {index: grid.ravel() for index, grid in zip(order, grids, strict=True)}
    values: dict[SSAValue, Array] = {block.args[index]: array for index, array in arguments.items()}
    with np.errstate(all="ignore"):
        for op in block.ops:
            if op is block.last_op:
                return arguments, [values[operand] for operand in op.operands]
            found = _value(op, values)
            if found is None:
                return None
            values[op.results[0]] = found
    return None


def _value(op: Operation, values: dict[SSAValue, Array]) -> Array | None:
    if not isinstance(op, StableHLOOp) or len(op.results) != 1:
        return None
    dtype = numpy_name(element_of(op.results[0].type))
    if dtype is None:
        return None
    operands: list[Array] = []
    for operand in op.operands:
        known = values.get(operand)
        owner = operand.owner
        # `jax.export` has constants before the operation, not in its body.
        if known is None and isinstance(owner, StableHLOOp) and owner.short_name == "constant":
            known = _value(owner, values)
        if known is None:
            return None
        operands.append(known)
    if op.short_name == "constant":
        value = op.properties.get("value", op.attributes.get("value"))
        if not isinstance(value, DenseIntOrFPElementsAttr):
            return None
        found = constant_array(cast("DenseIntOrFPElementsAttr[Any]", value))
        return found.reshape(-1)[:1] if found.size else None
    if op.short_name == "compare":
        return np.asarray(_COMPARISONS[op.direction](*operands))
    if op.short_name in _PASSING:
        return operands[0].astype(numpy_dtype(dtype))
    if op.short_name == "bitcast_convert":
        return operands[0].view(numpy_dtype(dtype))
    operation = _OPERATIONS.get(op.short_name)
    return None if operation is None else np.asarray(operation(*operands))


def chooser(block: Block) -> str | None:
    """Matches an argmax or argmin body of two value-index pairs.

    `max` or `min` if ties keep the first index, `last max` or `last min` if they keep the last;
    else None.
    """
    if len(block.args) != 4:
        return None
    found = tried(block)
    if found is None:
        return None
    arguments, results = found
    if len(results) != 2:
        return None
    # Both values come first where operands come in pairs.
    a, i, b, j = (arguments[index] for index in range(4))
    for name, better in (("max", a > b), ("min", a < b)):
        for prefix, first in (("", i <= j), ("last ", i >= j)):
            left = better | ((a == b) & first)
            value, place = np.where(left, a, b), np.where(left, i, j)
            if (results[0] == value).all() and (results[1] == place).all():
                return prefix + name
        # What comes first wins where values are equal, wherever it is.
        left = better | (a == b)
        value, place = np.where(left, a, b), np.where(left, i, j)
        if (results[0] == value).all() and (results[1] == place).all():
            return name
    return None


def sort_keys(block: Block) -> list[tuple[int, bool]] | None:
    """Sort keys of a comparator by precedence, each with whether it is descending.

    None if the comparator is not a lexicographic order.
    """
    count = len(block.args) // 2
    keys = [index for index in range(count) if _uses(block, index)]
    found = _evaluate_comparator(block, keys)
    if found is None:
        return None
    pairs, result = found
    return _lexicographic(keys, pairs, result)


def _uses(block: Block, index: int) -> bool:
    return any(argument.first_use is not None for argument in block.args[2 * index : 2 * index + 2])


def _evaluate_comparator(
    block: Block, keys: Sequence[int]
) -> tuple[dict[int, tuple[Array, Array]], Array] | None:
    """Evaluates a comparator on the operands that it reads: their value pairs and the results."""
    if not 0 < len(keys) <= 3:
        return None
    found = tried(block, {2 * key + side for key in keys for side in (0, 1)})
    if found is None:
        return None
    arguments, results = found
    if len(results) != 1:
        return None
    pairs = {key: (arguments[2 * key], arguments[2 * key + 1]) for key in keys}
    return pairs, np.broadcast_to(results[0], arguments[2 * keys[0]].shape)


def _lexicographic(
    keys: Sequence[int], pairs: dict[int, tuple[Array, Array]], result: Array
) -> list[tuple[int, bool]] | None:
    """Matches a lexicographic order of keys against results."""
    from itertools import permutations, product

    for order in permutations(keys):
        for directions in product((False, True), repeat=len(order)):
            before = np.zeros(result.shape, dtype=bool)
            equal = np.ones(result.shape, dtype=bool)
            for key, descending in zip(order, directions, strict=True):
                a, b = pairs[key]
                before |= equal & ((a > b) if descending else (a < b))
                equal &= a == b
            # Equal elements are in any order for `<=`.
            if bool((result == before).all()) or bool((result == (before | equal)).all()):
                return list(zip(order, directions, strict=True))
    return None
