"""Fusion of decode attention: one query per user, which sees the cache up to its own position."""

from __future__ import annotations

from math import prod

from xdsl.dialects.builtin import IntegerType, TensorType
from xdsl.ir import SSAValue

from ttcodegen.dialects.core.datatypes import bf16, element_of, shape_of
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.dialects.ttcore.tile import TILE_SIDE
from ttcodegen.ops.attention.sdpa import MOST_USERS
from ttcodegen.ops.core.builder import splat_of
from ttcodegen.transforms.rewriting import PatternSet, Rewriter
from ttcodegen.transforms.ttir.fusing.attention import HIDES
from ttcodegen.transforms.ttir.fusing.heads import REPETITIONS
from ttcodegen.transforms.ttir.movement_passes import broadcast
from ttcodegen.transforms.ttir.position_forms import Linear
from ttcodegen.transforms.ttir.position_values import form_of

DECODING = PatternSet()

_FORMS = ("ttir.typecast", "ttir.reshape", *REPETITIONS)
"""Ops that convert or repeat a mask or a position."""
_WRITES = ("ttir.update_cache", "ttir.paged_update_cache")
_KEY_UP_TO_POSITION = {"ttir.le": (0, 1), "ttir.ge": (1, 0)}
"""Comparisons that hold for visible keys: which operands are the key and the position."""
_KEY_AFTER_POSITION = {"ttir.gt": (0, 1), "ttir.lt": (1, 0)}
"""Comparisons that hold for hidden keys."""


@DECODING.on("ttir.scaled_dot_product_attention")
def attend_up_to_position(rewriter: Rewriter, op: CatalogueOp) -> SSAValue | None:
    """A mask that hides the keys after the position of a token becomes that position.

    The library then reads the cache up to there, and no mask. The position has to be one that a
    cache is written at: so it is no lower than 0, and the token sees at least itself.
    """
    mask = op.optional_operand("attention_mask")
    if mask is None or op.optional_operand("attention_sink") is not None:
        return None
    if op.parameter("is_causal") or op.parameter("sliding_window_size"):
        return None
    query, key, value = (op.operand(name) for name in ("query", "key", "value"))
    users, heads, queries, size = shape_of(query.type)
    keys = shape_of(key.type)[2]
    in_library = all(element_of(tensor.type) == bf16 for tensor in (query, key, value))
    if not in_library or queries != 1 or keys % TILE_SIDE or users > MOST_USERS:
        return None
    position = _last_seen(mask, keys)
    if position is None or not _is_written_at(position):
        return None
    current = rewriter.reshape(position, [1])
    if users > 1:
        current = broadcast(rewriter, current, TensorType(element_of(current.type), [users]))
    result = rewriter.emit(
        "scaled_dot_product_attention_decode",
        [rewriter.permute(query, [2, 0, 1, 3]), key, value, None, current, None],
        TensorType(bf16, [1, users, heads, size]),
        is_causal=True,
        scale=op.parameter("scale"),
    )
    return rewriter.typecast(rewriter.permute(result, [1, 2, 0, 3]), op.result_type.element_type)


def _last_seen(mask: SSAValue, keys: int) -> SSAValue | None:
    """The position, of one element, up to which an additive mask shows all users their keys."""
    choice = _without_forms(mask, keys)
    if not isinstance(choice, CatalogueOp) or choice.name != "ttir.where":
        return None
    condition, inside, outside = choice.operands
    comparison = _without_forms(condition, keys)
    if not isinstance(comparison, CatalogueOp):
        return None
    if comparison.name in _KEY_UP_TO_POSITION:
        order = _KEY_UP_TO_POSITION[comparison.name]
    elif comparison.name in _KEY_AFTER_POSITION:
        order = _KEY_AFTER_POSITION[comparison.name]
        inside, outside = outside, inside
    else:
        return None
    shown, hidden = splat_of(inside), splat_of(outside)
    if shown != 0 or hidden is None or not hidden <= HIDES:
        return None
    counted, position = (comparison.operands[index] for index in order)
    return _single(position) if _counts_keys(counted, keys) else None


def _without_forms(value: SSAValue, keys: int) -> object:
    """The op of which a mask is a form that has the keys in its last dimension still."""
    while isinstance(op := value.owner, CatalogueOp):
        source = op.operands[0] if op.operands else None
        if op.name == "ttir.maximum":
            # What is hidden stays hidden above a number that is as low as that.
            bound = splat_of(op.operands[1])
            if bound is None or not bound <= HIDES:
                return op
        elif op.name not in _FORMS:
            return op
        if source is None or shape_of(source.type)[-1:] != (keys,):
            return op
        value = source
    return value.owner


def _counts_keys(value: SSAValue, keys: int) -> bool:
    """True if a value is the number of the key, which is its last dimension."""
    form = form_of(value)
    if not isinstance(form, Linear) or shape_of(value.type)[-1:] != (keys,):
        return False
    return form.constant == 0 and form.coefficients[-1] == 1 and not any(form.coefficients[:-1])


def _single(value: SSAValue) -> SSAValue | None:
    """The integer of one element that a value repeats."""
    while isinstance(op := value.owner, CatalogueOp) and op.name in _FORMS:
        value = op.operands[0]
    is_integer = isinstance(element_of(value.type), IntegerType)
    return value if is_integer and prod(shape_of(value.type)) == 1 else None


def _is_written_at(position: SSAValue) -> bool:
    """True if a cache is updated at a position."""
    pending = [position]
    while pending:
        for use in pending.pop().uses:
            user = use.operation
            if not isinstance(user, CatalogueOp):
                continue
            if user.name in _WRITES and user.operand("update_index") is user.operands[use.index]:
                return True
            if user.name in _FORMS:
                pending += user.results
    return False
