"""Arithmetic simplifications: identities, redundant conversions, constant folding of splats."""

from __future__ import annotations

from collections.abc import Callable
from math import copysign
from typing import TYPE_CHECKING

from xdsl.ir import Attribute, SSAValue

from ttcodegen.dialects.core.datatypes import DataType, element_of, normalized_data_type, shape_of
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.foundation.lazy_numpy import np
from ttcodegen.ops.core.builder import splat_of
from ttcodegen.ops.core.definition import TTIR, TTIRDefinition, has_trait, traits_of, with_trait
from ttcodegen.ops.core.traits import Trait
from ttcodegen.ops.elementwise.registration import verify_broadcast
from ttcodegen.transforms.const_eval import evaluate, rounded
from ttcodegen.transforms.rewriting import PatternSet, Rewriter
from ttcodegen.transforms.ttir.integer_arithmetic import holds_all
from ttcodegen.transforms.ttir.queries import (
    full_like,
    has_no_sign,
    is_elementwise,
    is_float,
    is_weight,
    same_type,
    with_splat,
)

if TYPE_CHECKING:
    import numpy

ARITHMETIC = PatternSet()

_LOSSLESS: dict[DataType, frozenset[DataType]] = {
    DataType.BFLOAT16: frozenset({DataType.FLOAT32}),
    DataType.UINT8: frozenset(
        {
            DataType.UINT16,
            DataType.UINT32,
            DataType.INT32,
            DataType.BFLOAT16,
            DataType.FLOAT32,
        }
    ),
    DataType.UINT16: frozenset({DataType.UINT32, DataType.INT32, DataType.FLOAT32}),
}
"""Data types that represent every value of another one."""


def is_truth(value: SSAValue) -> bool:
    """Returns whether all elements of `value` are 0 or 1."""
    owner = value.owner
    if not isinstance(owner, CatalogueOp):
        return splat_of(value) in (0, 1)
    return Trait.TRUTH in traits_of(owner.definition) or splat_of(value) in (0, 1)


def is_lossless(source: Attribute, target: Attribute) -> bool:
    """Returns whether a conversion between the element types preserves every value."""
    first, second = normalized_data_type(source), normalized_data_type(target)
    if first is None or second is None or not holds_all(source, target):
        return False
    return first is second or second in _LOSSLESS.get(first, frozenset())


@ARITHMETIC.on("ttir.constant", "ttir.zeros", "ttir.ones")
def splat_constant_to_full(rewriter: Rewriter, op: CatalogueOp) -> SSAValue | None:
    """Rewrites a splat constant to `full`."""
    splat = splat_of(op.results[0])
    return None if splat is None else full_like(rewriter, op, splat)


def fold_splats(rewriter: Rewriter, op: CatalogueOp) -> SSAValue | None:
    """Folds an op whose operands are all splats."""
    numbers = [splat_of(value) for value in op.operands]
    if not numbers or any(value is None for value in numbers):
        return None
    arrays = [
        _one_element(value, element_of(operand.type))
        for value, operand in zip(numbers, op.operands, strict=True)
    ]
    result = evaluate(op, arrays, [(1,)])[0].reshape(-1)[0].item()
    return full_like(rewriter, op, result)


def _one_element(value: float | None, element: Attribute) -> numpy.ndarray:
    data_type = normalized_data_type(element)
    assert data_type is not None
    dtype = "float32" if data_type.is_float else data_type.numpy
    return rounded(np.array([value], dtype=dtype), data_type.numpy)


def folding_rules() -> PatternSet:
    """Returns folding rules for elementwise ops of the catalogue and for conversions."""
    rules = PatternSet()
    names = [definition.name for definition in TTIR.values() if _folds(definition)]
    rules.on("ttir.typecast", *names)(fold_splats)
    return rules


def _folds(definition: TTIRDefinition) -> bool:
    return (
        definition.verify is verify_broadcast
        and definition.numpy is not None
        and not definition.draws
    )


@ARITHMETIC.on("ttir.add", "ttir.multiply", "ttir.subtract", "ttir.div")
def drop_identity(rewriter: Rewriter, op: CatalogueOp) -> SSAValue | None:
    """x + 0, x - 0, x * 1, x / 1."""
    lhs, rhs = op.operands
    if same_type(lhs, op) and _is_neutral(op, lhs, splat_of(rhs)):
        return lhs
    commutes = op.name in ("ttir.add", "ttir.multiply")
    return rhs if commutes and same_type(rhs, op) and _is_neutral(op, rhs, splat_of(lhs)) else None


def _is_neutral(op: CatalogueOp, value: SSAValue, number: float | None) -> bool:
    """Returns whether `number` is the neutral operand of the op for this value.

    -0.0 + 0.0 and -0.0 - -0.0 are 0.0, so for floats that may be -0.0 only -0.0 is neutral to add
    and 0.0 to subtract.
    """
    if op.name in ("ttir.multiply", "ttir.div"):
        return number == 1
    if number != 0:
        return False
    keeps = (copysign(1.0, number) < 0) == (op.name == "ttir.add")
    return keeps or not is_float(value) or has_no_sign(value)


_POWERS: dict[float, Callable[[Rewriter, SSAValue], SSAValue]] = {
    1: lambda rewriter, base: base,
    2: lambda rewriter, base: rewriter.like("multiply", base, base),
    0.5: lambda rewriter, base: rewriter.like("sqrt", base),
    -0.5: lambda rewriter, base: rewriter.like("rsqrt", base),
    -1: lambda rewriter, base: rewriter.like("reciprocal", base),
}


@ARITHMETIC.on("ttir.pow")
def expand_power(rewriter: Rewriter, op: CatalogueOp) -> SSAValue | None:
    """Rewrites powers 1, 2, 0.5, -0.5 and -1 to simpler ops; for integers only 1 and 2."""
    base, exponent = op.operands
    splat = splat_of(exponent)
    if splat is None or splat not in _POWERS or not same_type(base, op):
        return None
    data_type = normalized_data_type(op.result_type.element_type)
    if data_type is None or (not data_type.is_float and splat not in (1, 2)):
        return None
    # pow(-inf, 0.5) and pow(-0.0, -0.5) are inf, whereas sqrt and rsqrt give NaN and -inf.
    if splat in (0.5, -0.5) and not has_no_sign(base):
        return None
    return _POWERS[splat](rewriter, base)


@ARITHMETIC.on(*with_trait(Trait.SELF_INVERSE))
def cancel_inverse(rewriter: Rewriter, op: CatalogueOp) -> SSAValue | None:
    """Cancels a self-inverse op applied twice.

    Not 1 / (1 / x), which rounds and is zero for subnormal x.
    """
    if op.name == "ttir.reciprocal":
        return None
    producer = rewriter.defining(op.operands[0], op.name)
    if producer is None or not same_type(producer.operands[0], op):
        return None
    return producer.operands[0]


@ARITHMETIC.on(*with_trait(Trait.IDEMPOTENT))
def drop_repetition(rewriter: Rewriter, op: CatalogueOp) -> SSAValue | None:
    """Drops the second application of an idempotent op."""
    producer = rewriter.defining(op.operands[0], op.name)
    return op.operands[0] if producer is not None and same_type(op.operands[0], op) else None


@ARITHMETIC.on("ttir.maximum", "ttir.minimum")
def drop_same_operand(rewriter: Rewriter, op: CatalogueOp) -> SSAValue | None:
    """Maximum or minimum of a value with itself, or with its neutral infinity."""
    lhs, rhs = op.operands
    if lhs is rhs:
        return lhs if same_type(lhs, op) else None
    neutral = float("-inf" if op.name == "ttir.maximum" else "inf")
    found = with_splat(op)
    return found[0] if found and found[1] == neutral and same_type(found[0], op) else None


@ARITHMETIC.on("ttir.logical_not")
def negate_truth(rewriter: Rewriter, op: CatalogueOp) -> SSAValue | None:
    """not(not x) for a truth value x; not(a == b), not(a != b).

    Negated order comparisons are kept: for NaN neither order holds.
    """
    producer = rewriter.defining(op.operands[0], "ttir.logical_not", "ttir.eq", "ttir.ne")
    if producer is None:
        return None
    if producer.name == "ttir.logical_not":
        source = producer.operands[0]
        return source if is_truth(source) and same_type(source, op) else None
    name = "ne" if producer.name == "ttir.eq" else "eq"
    return rewriter.emit(name, list(producer.operands), op.result_type)


@ARITHMETIC.on("ttir.logical_and", "ttir.logical_or")
def drop_neutral_truth(rewriter: Rewriter, op: CatalogueOp) -> SSAValue | None:
    """x and true, x or false, x and x, x or x, for a truth value x."""
    lhs, rhs = op.operands
    if lhs is rhs:
        return lhs if is_truth(lhs) and same_type(lhs, op) else None
    found = with_splat(op)
    if found is None or not is_truth(found[0]) or not same_type(found[0], op):
        return None
    return found[0] if bool(found[1]) == (op.name == "ttir.logical_and") else None


@ARITHMETIC.on("ttir.typecast")
def convert_once(rewriter: Rewriter, op: CatalogueOp) -> SSAValue | None:
    """Drops conversions to the same type and lossless intermediate conversions."""
    source = op.operands[0]
    if same_type(source, op):
        return source
    producer = rewriter.defining(source, "ttir.typecast")
    if producer is None:
        return None
    first = producer.operands[0]
    if not is_lossless(element_of(first.type), element_of(source.type)):
        return None
    return rewriter.typecast(first, op.result_type.element_type)


@ARITHMETIC.on("ttir.ne")
def drop_test_of_truth(rewriter: Rewriter, op: CatalogueOp) -> SSAValue | None:
    """x != 0 for a truth value x."""
    found = with_splat(op)
    if found is None or found[1] != 0 or not is_truth(found[0]) or not same_type(found[0], op):
        return None
    return found[0]


@ARITHMETIC.on("ttir.typecast")
def compute_in_source_type(rewriter: Rewriter, op: CatalogueOp) -> SSAValue | None:
    """Drops lossless conversions around one op that is converted back to the narrow type.

    The library computes in f32 internally, so that the narrow op rounds its result like the
    conversion.
    """
    element = op.result_type.element_type
    producer = rewriter.sole(op.operands[0])
    if producer is None or not (
        is_elementwise(producer) or has_trait(producer, Trait.MATRIX_PRODUCT)
    ):
        return None
    wide = producer.result_type.element_type
    data_type = normalized_data_type(element)
    if data_type is None or not data_type.is_float or wide == element:
        return None
    if not is_lossless(element, wide):
        return None
    operands = [_narrowed(rewriter, value, element) for value in producer.operands]
    if any(value is None or element_of(value.type) != element for value in operands):
        return None
    narrow = [value for value in operands if value is not None]
    return rewriter.again(producer, narrow, op.result_type)


def _narrowed(rewriter: Rewriter, value: SSAValue, element: Attribute) -> SSAValue | None:
    """Returns the value in a narrower type: before its conversion, or a splat that the type
    represents."""
    if element_of(value.type) == element:
        return value
    splat = splat_of(value)
    if splat is not None:
        exact = _one_element(splat, element)[0] == _one_element(splat, element_of(value.type))[0]
        return rewriter.full(shape_of(value.type), splat, element) if exact else None
    producer = rewriter.defining(value, "ttir.typecast")
    return None if producer is None else producer.operands[0]


@ARITHMETIC.on("ttir.clamp_tensor")
def clamp_to_numbers(rewriter: Rewriter, op: CatalogueOp) -> SSAValue | None:
    """Rewrites a clamp with splat bounds to one with numbers; not for NaN, ordered by its sign."""
    source, *bounds = op.operands
    low, high = (splat_of(bound) for bound in bounds)
    if low is None or high is None or low != low or high != high or not same_type(source, op):
        return None
    return rewriter.emit("clamp_scalar", [source], op.result_type, min=low, max=high)


@ARITHMETIC.on("ttir.where")
def choose_known(rewriter: Rewriter, op: CatalogueOp) -> SSAValue | None:
    """Select with a known condition or equal operands."""
    condition, first, second = op.operands
    splat = splat_of(condition)
    if splat is not None:
        chosen = first if splat != 0 else second
    elif first is second:
        chosen = first
    else:
        return None
    return chosen if same_type(chosen, op) else None


@ARITHMETIC.on("ttir.linear")
def without_bias(rewriter: Rewriter, op: CatalogueOp) -> SSAValue | None:
    """Rewrites a linear op without bias to a matmul."""
    if op.optional_operand("bias") is not None:
        return None
    transposes = {name: op.parameter(name) for name in ("transpose_a", "transpose_b")}
    return rewriter.emit("matmul", list(op.operands), op.result_type, **transposes)


@ARITHMETIC.on("ttir.matmul", "ttir.linear")
def fold_transpose(rewriter: Rewriter, op: CatalogueOp) -> SSAValue | None:
    """Folds a transpose of an operand into the matmul.

    Not for weights: their permutation is computed once, before the program runs.
    """
    operands = list(op.operands)
    attributes: dict[str, bool] = {}
    for index, name in enumerate(("transpose_a", "transpose_b")):
        producer = rewriter.defining(operands[index], "ttir.permute")
        if producer is None or not _exchanges_last_two(producer) or is_weight(operands[index]):
            continue
        operands[index] = producer.operands[0]
        attributes[name] = not op.parameter(name)
    return rewriter.again(op, operands, None, **attributes) if attributes else None


def _exchanges_last_two(op: CatalogueOp) -> bool:
    permutation = op.parameter("permutation")
    rank = len(permutation)
    return rank >= 2 and permutation == [*range(rank - 2), rank - 1, rank - 2]


@ARITHMETIC.on("ttir.add")
def add_negated(rewriter: Rewriter, op: CatalogueOp) -> SSAValue | None:
    """Rewrites a + -b to a - b."""
    for index in (1, 0):
        producer = rewriter.defining(op.operands[index], "ttir.neg")
        if producer is not None and op.operands[index].has_one_use():
            operands = [op.operands[1 - index], producer.operands[0]]
            return rewriter.emit("subtract", operands, op.result_type)
    return None
