"""Passes on data movement: folding of broadcasts, and cancellation of permutes."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from math import prod

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.passes import ModulePass

from ttcodegen.dialects.core.datatypes import element_of, shape_of, tensor_type
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.ops.core.builder import broadcast_shapes, splat_of
from ttcodegen.ops.core.definition import TTIR, has_trait
from ttcodegen.ops.core.dimensions import dimension_groups
from ttcodegen.ops.core.traits import Trait
from ttcodegen.ops.dialects import ttir_op_classes
from ttcodegen.ops.elementwise.registration import verify_broadcast
from ttcodegen.ops.movement.data_movement import inverse_permutation
from ttcodegen.ops.reduction.reduce import reduced_dims
from ttcodegen.transforms.functions import merge_common_subexpressions
from ttcodegen.transforms.rewriting import PatternSet, Rewriter, functions
from ttcodegen.transforms.ttir.canonicalize import canonical_rules
from ttcodegen.transforms.ttir.queries import is_elementwise, is_weight

# Implicit broadcasting.
#
# A broadcast moves down past unary ops, reshapes and permutes, and is dropped at elementwise ops,
# which broadcast like numpy. The library does so for all of them (docs/library-rules.md: binary
# ops, where, clamp; ranks may differ for binary ops).

Shape = tuple[int, ...]


@dataclass(frozen=True)
class TTIRImplicitBroadcastFoldPass(ModulePass):
    """Folds broadcasts into the elementwise ops that use them."""

    name = "ttir-implicit-broadcast-fold"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        rules = broadcast_rules()
        for function in functions(op):
            rules.apply(function)


@cache
def broadcast_rules() -> PatternSet:
    """Returns the rules of the pass; they need the complete catalogue."""
    ttir_op_classes()
    rules = PatternSet()
    elementwise = [d.name for d in TTIR.values() if d.verify is verify_broadcast]
    binary = [d.name for d in TTIR.values() if d.name in elementwise and len(d.operands) == 2]
    rules.on(*elementwise, "ttir.typecast")(broadcast_in_op)
    rules.on(*elementwise)(one_element_in_op)
    rules.on(*binary)(rank_in_op)
    rules.on("ttir.reshape")(broadcast_after_reshape)
    rules.on("ttir.permute")(broadcast_after_permute)
    return rules


def broadcast_in_op(rewriter: Rewriter, op: CatalogueOp) -> SSAValue | None:
    """Folds broadcasts of operands; if the op's result becomes smaller, broadcasts that instead."""
    operands: list[SSAValue] = list(op.operands)
    small = [_before_broadcast(rewriter, value) for value in operands]
    if small == operands:
        return None
    shape = op.result_shape
    # Splats take any shape, so they must not prevent a smaller result.
    spanned = broadcast_shapes([shape_of(v.type) for v in small if splat_of(v) is None])
    if spanned is None:
        return None
    if spanned == shape:
        return rewriter.again(op, small)
    if broadcast_shapes([shape_of(value.type) for value in small]) == shape:
        small = [_shrunk(rewriter, value, len(spanned)) for value in small]
    if len(spanned) != len(shape):
        return None
    result = rewriter.again(op, small, TensorType(op.result_type.element_type, spanned))
    return broadcast(rewriter, result, op.result_type)


def _before_broadcast(rewriter: Rewriter, value: SSAValue) -> SSAValue:
    producer = rewriter.defining(value, "ttir.broadcast")
    return value if producer is None else producer.operands[0]


def _shrunk(rewriter: Rewriter, value: SSAValue, rank: int) -> SSAValue:
    splat = splat_of(value)
    return value if splat is None else rewriter.full([1] * rank, splat, element_of(value.type))


def broadcast(rewriter: Rewriter, value: SSAValue, result: TensorType[Attribute]) -> SSAValue:
    """Broadcasts `value` to a type of the same rank."""
    factors = [
        wanted // size
        for wanted, size in zip(result.get_shape(), shape_of(value.type), strict=True)
    ]
    return rewriter.emit("broadcast", [value], result, broadcast_dimensions=factors)


def one_element_in_op(rewriter: Rewriter, op: CatalogueOp) -> SSAValue | None:
    """Shrinks splat operands to one element where the others determine the result shape."""
    operands: list[SSAValue] = list(op.operands)
    rest = [value for value in operands if splat_of(value) is None]
    if len(rest) == len(operands):
        return None
    if broadcast_shapes([shape_of(value.type) for value in rest]) != op.result_shape:
        return None
    small = [
        value if prod(shape_of(value.type)) == 1 else _shrunk(rewriter, value, len(op.result_shape))
        for value in operands
    ]
    return None if small == operands else rewriter.again(op, small)


def rank_in_op(rewriter: Rewriter, op: CatalogueOp) -> SSAValue | None:
    """Drops reshapes of operands that only add or drop leading ones: broadcasting aligns ranks."""
    operands: list[SSAValue] = list(op.operands)
    for index, value in enumerate(operands):
        producer = rewriter.defining(value, "ttir.reshape")
        if producer is None:
            continue
        source = producer.operands[0]
        shape, before = shape_of(value.type), shape_of(source.type)
        added = len(shape) - len(before)
        if not before or len(before) > len(op.result_shape) or added == 0:
            continue
        if (1,) * -added + shape != (1,) * added + before:
            continue
        operands[index] = source
        if broadcast_shapes([shape_of(v.type) for v in operands]) == op.result_shape:
            return rewriter.again(op, operands)
        operands[index] = value
    return None


def broadcast_after_permute(rewriter: Rewriter, op: CatalogueOp) -> SSAValue | None:
    """Moves a broadcast after a permute."""
    producer = rewriter.defining(op.operands[0], "ttir.broadcast")
    if producer is None:
        return None
    permuted = rewriter.permute(producer.operands[0], op.parameter("permutation"))
    return broadcast(rewriter, permuted, op.result_type)


def broadcast_after_reshape(rewriter: Rewriter, op: CatalogueOp) -> SSAValue | None:
    """Moves a broadcast after a reshape.

    Not where the reshape splits or merges dimensions of which only some were broadcast.
    """
    producer = rewriter.defining(op.operands[0], "ttir.broadcast")
    if producer is None:
        return None
    source = producer.operands[0]
    shape = reshaped_source(shape_of(source.type), shape_of(op.operands[0].type), op.result_shape)
    if shape is None:
        return None
    return broadcast(rewriter, rewriter.reshape(source, shape), op.result_type)


def reshaped_source(source: Shape, before: Shape, after: Shape) -> Shape | None:
    """Returns the shape that broadcasts to `after` as `source` broadcasts to `before`, or None.

    `after` is a reshape of `before`.
    """
    if 0 in before:
        return None
    result = [1] * len(after)
    for first, second in dimension_groups(before, after):
        if all(source[axis] == before[axis] for axis in first):
            for axis in second:
                result[axis] = after[axis]
        elif any(source[axis] != 1 for axis in first):
            return None
    return tuple(result)


# Cancellation of inverse permutes across the ops between them.
#
# Frontends whose convolutions have another dimension order put permutes around each of them. A
# permute moves down past ops if its inverse follows them; both cancel where they meet.

_SEARCHED_OPS = 48
_MOVED = ("ttir.concat", "ttir.slice_static", "ttir.pad", "ttir.typecast", "ttir.repeat_interleave")


@dataclass(frozen=True)
class TTIREraseInversePass(ModulePass):
    """Moves permutes towards their inverses to cancel them.

    They move past elementwise ops, concatenations, slices, pads and reductions with kept
    dimensions.
    """

    name = "ttir-erase-inverse"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        rules = erasing_rules()
        for function in functions(op):
            if rules.apply(function):
                merge_common_subexpressions(function)


@cache
def erasing_rules() -> PatternSet:
    """Returns the rules of the pass, with the simplifications that cancel adjacent permutes."""
    simplifications = canonical_rules()
    rules = PatternSet()
    names = [
        d.name for d in TTIR.values() if d.verify is verify_broadcast or Trait.REDUCES in d.traits
    ]
    rules.on(*names, *_MOVED)(move_permute_after)
    rules.on("ttir.permute")(undo_over_reshape)
    return PatternSet.union(simplifications, rules)


def move_permute_after(rewriter: Rewriter, op: CatalogueOp) -> SSAValue | None:
    """Rewrites op(permute(x), ...) to permute(op(x, ...)) if an inverse permute follows."""
    permutation = _common_permutation(rewriter, op)
    if permutation is None or not _meets_inverse(op, permutation):
        return None
    operands = _before_permute(rewriter, op, permutation)
    if operands is None:
        return None
    shape = [0] * len(permutation)
    for axis, source in enumerate(permutation):
        shape[source] = op.result_shape[axis]
    result = tensor_type(op.result_type.element_type, shape)
    moved = rewriter.again(op, operands, result, **_moved_attributes(op, permutation))
    return rewriter.permute(moved, permutation)


def undo_over_reshape(rewriter: Rewriter, op: CatalogueOp) -> SSAValue | None:
    """Rewrites permute(reshape(permute(x))) to reshape(x) if it restores the order of elements.

    For example a mean over the pixels of an image that was permuted to channels first.
    """
    reshape = rewriter.defining(op.operands[0], "ttir.reshape")
    if reshape is None:
        return None
    first = rewriter.defining(reshape.operands[0], "ttir.permute")
    if first is None:
        return _convolved_in_order(rewriter, op, reshape)
    before, after = first.parameter("permutation"), op.parameter("permutation")
    source = first.operands[0]
    if not keeps_order(shape_of(source.type), before, reshape.result_shape, after):
        return None
    return rewriter.reshape(source, op.result_shape)


_IMAGE_DIMS = ("batch_dim", "height_dim", "width_dim", "channel_dim")


def _convolved_in_order(
    rewriter: Rewriter, op: CatalogueOp, reshape: CatalogueOp
) -> SSAValue | None:
    """permute(reshape(conv2d(x))) is the reshape of a convolution with channels last, as the
    library makes it, if the pixels are rows: patches of an image, for instance."""
    convolution = rewriter.defining(reshape.operands[0], "ttir.conv2d")
    if convolution is None or not convolution.results[0].has_one_use():
        return None
    dims: list[int] = [convolution.parameter(name) for name in _IMAGE_DIMS]
    shape = [convolution.result_shape[dim] for dim in dims]
    before = inverse_permutation(dims)
    if before == [0, 1, 2, 3] or not keeps_order(
        shape, before, reshape.result_shape, op.parameter("permutation")
    ):
        return None
    image, *others = convolution.operands
    result = tensor_type(convolution.result_type.element_type, shape)
    made = rewriter.again(
        convolution,
        [rewriter.permute(image, dims), *others],
        result,
        **dict(zip(_IMAGE_DIMS, range(4), strict=True)),
    )
    return rewriter.reshape(made, op.result_shape)


def keeps_order(
    shape: Sequence[int], before: Sequence[int], reshaped: Sequence[int], after: Sequence[int]
) -> bool:
    """Returns whether a permute, a reshape and another permute keep the order of elements."""
    # Matches minimal runs of source and target dimensions of equal size; size 1 is ignored.
    sources = [axis for axis in before if shape[axis] != 1]
    targets = [axis for axis, size in enumerate(reshaped) if size != 1]
    run_of: dict[int, list[int]] = {}
    while targets and sources:
        source, target = [sources.pop(0)], [targets.pop(0)]
        while (have := prod(shape[axis] for axis in source)) != (
            want := prod(reshaped[axis] for axis in target)
        ):
            pending, run = (sources, source) if have < want else (targets, target)
            if not pending:
                return False
            run.append(pending.pop(0))
        run_of[target[0]] = source
        run_of.update((axis, []) for axis in target[1:])
        # Dimensions of a run have to remain adjacent.
        places = [after.index(axis) for axis in target]
        between = range(places[0], places[-1] + 1)
        kept = [place for place in between if reshaped[after[place]] != 1]
        if kept != places:
            return False
    order = [axis for target in after for axis in run_of.get(target, ())]
    return order == sorted(order)


def _common_permutation(rewriter: Rewriter, op: CatalogueOp) -> list[int] | None:
    """Returns the permutation that all permuted operands share, or None.

    None if all operands are weights: two of them could exchange the permute forever.
    """
    found: list[int] | None = None
    sources: list[SSAValue] = []
    for operand in op.operands:
        producer = rewriter.defining(operand, "ttir.permute")
        sources.append(operand if producer is None else producer.operands[0])
        if producer is None:
            continue
        permutation = producer.parameter("permutation")
        if found is not None and found != permutation:
            return None
        found = permutation
    if found is None or len(found) != len(op.result_shape) or not can_move(op):
        return None
    return None if all(map(is_weight, sources)) else found


def can_move(op: Operation) -> bool:
    """Returns whether a permute of the op's operands can become one of its result."""
    if not isinstance(op, CatalogueOp):
        return False
    if has_trait(op, Trait.REDUCES):
        return op.parameter("keep_dim")
    return op.name in _MOVED or is_elementwise(op)


def _before_permute(
    rewriter: Rewriter, op: CatalogueOp, permutation: Sequence[int]
) -> list[SSAValue] | None:
    """Returns the operands before the permute, or None.

    Operands that are not permuted have to be splats, weights, or vectors.
    """
    inverse = inverse_permutation(permutation)
    operands: list[SSAValue] = []
    for operand in op.operands:
        producer = rewriter.defining(operand, "ttir.permute")
        if producer is not None:
            operands.append(producer.operands[0])
            continue
        shape = shape_of(operand.type)
        if splat_of(operand) is not None:
            operands.append(_permuted_number(rewriter, operand, inverse))
        elif is_elementwise(op) and (is_weight(operand) or _is_along_one(shape)):
            aligned = rewriter.reshape(operand, [1] * (len(permutation) - len(shape)) + [*shape])
            operands.append(rewriter.permute(aligned, inverse))
        else:
            return None
    return operands


def _permuted_number(rewriter: Rewriter, value: SSAValue, order: Sequence[int]) -> SSAValue:
    shape = shape_of(value.type)
    splat = splat_of(value)
    assert splat is not None
    if prod(shape) == 1 or len(shape) != len(order):
        return value
    return rewriter.full([shape[axis] for axis in order], splat, element_of(value.type))


def _is_along_one(shape: Sequence[int]) -> bool:
    """Returns whether the shape has at most one dimension larger than 1."""
    return sum(size != 1 for size in shape) <= 1


def _moved_attributes(op: CatalogueOp, permutation: Sequence[int]) -> dict[str, object]:
    """Returns the attributes that refer to dimensions, for the order before the permute."""
    inverse = inverse_permutation(permutation)
    rank = len(permutation)
    match op.name:
        case "ttir.concat" | "ttir.repeat_interleave":
            return {"dim": permutation[op.parameter("dim") % rank]}
        case "ttir.slice_static":
            names = ("begins", "ends", "step")
            return {name: [op.parameter(name)[axis] for axis in inverse] for name in names}
        case "ttir.pad":
            padding = op.parameter("padding")
            pairs = [padding[2 * axis : 2 * axis + 2] for axis in inverse]
            return {"padding": [width for pair in pairs for width in pair]}
        case _ if has_trait(op, Trait.REDUCES):
            return {"dim_arg": sorted(permutation[dim] for dim in reduced_dims(op))}
        case _:
            return {}


def _meets_inverse(op: CatalogueOp, permutation: Sequence[int]) -> bool:
    """Returns whether moving the permute cancels at least as many permutes as it leaves.

    Searches the users that the permute can move past for inverse permutes.
    """
    inverse = inverse_permutation(permutation)
    pending: deque[Operation] = deque([op])
    seen: set[Operation] = {op}
    cancelled = left = 0
    while pending and len(seen) <= _SEARCHED_OPS:
        current = pending.popleft()
        stops = False
        for result in current.results:
            for use in result.uses:
                user = use.operation
                if isinstance(user, CatalogueOp) and user.name == "ttir.permute":
                    cancelled += user.parameter("permutation") == inverse
                elif _is_undone_after_reshape(user, permutation):
                    cancelled += 1
                elif not can_move(user) or len(seen) >= _SEARCHED_OPS:
                    stops = True
                elif user not in seen:
                    seen.add(user)
                    pending.append(user)
        left += stops
    return cancelled > 0 and cancelled >= left


def _is_undone_after_reshape(reshape: Operation, permutation: Sequence[int]) -> bool:
    """Returns whether the only user of a reshape is a permute that inverts `permutation` across
    it."""
    if not isinstance(reshape, CatalogueOp) or reshape.name != "ttir.reshape":
        return False
    (result,) = reshape.results
    after = result.get_user_of_unique_use()
    if not isinstance(after, CatalogueOp) or after.name != "ttir.permute":
        return False
    permuted = shape_of(reshape.operands[0].type)
    shape = [permuted[place] for place in inverse_permutation(permutation)]
    return len(permuted) == len(permutation) and keeps_order(
        shape, permutation, reshape.result_shape, after.parameter("permutation")
    )
