"""Roles of values in the ops around them: attention, rotary embeddings, recurrent cells."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from xdsl.ir import SSAValue

from ttcodegen.dialects.core.datatypes import shape_of
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.ops.core.definition import library_definition, traits_of
from ttcodegen.ops.core.traits import Trait

Role = tuple[SSAValue, str, bool]
"""Value, its role, and True if the value itself has it, or False if its root form has."""


ROLES = frozenset(
    """
    queries keys values scores qkv mask cosine sine
    input_gate forget_gate output_gate reset_gate update_gate candidate cell hidden
    """.split()
)
"""Roles that a value keeps through sums and rotations, whatever its layer is called."""


STATES = frozenset({"cell", "hidden"})
"""Roles of values that are computed from others with roles."""


_OPERANDS = {
    "query": "queries",
    "key": "keys",
    "value": "values",
    "attention_mask": "mask",
    "cos_cache": "cosine",
    "sin_cache": "sine",
}
"""Roles by catalogue names of operands."""


_HEAD_ROLES = ("queries", "keys", "values")
"""Roles of the results of an op that splits a fused projection into heads."""


def attention_roles(op: CatalogueOp, caches: dict[SSAValue, str]) -> Iterator[Role]:
    """Yields roles of operands of attention, cache updates and splits into heads.

    Args:
        op: the op.
        caches: memoized roles of caches, which this op may extend.
    """
    definition = library_definition(op)
    if Trait.ATTENDS in traits_of(definition):
        groups = op.operand_groups()
        for name in ("query", "key", "value", "attention_mask"):
            for value in groups.get(name, ()):
                yield value, _OPERANDS[name], False
    elif op.definition.in_place == "cache":
        groups = op.operand_groups()
        role = _role_of_cache(groups["cache"][0], caches)
        if role is not None:
            yield _all_rows(groups["input"][0]), role, False
    elif definition.nouns == _HEAD_ROLES:
        yield op.operands[0], "qkv" if len(op.operands) == 1 else "queries", False


def _all_rows(value: SSAValue) -> SSAValue:
    """Tensor of all users, if a slice of it for one user is written into a cache."""
    owner = moved(value).owner
    if not isinstance(owner, CatalogueOp) or Trait.TAKES_PART not in traits_of(
        library_definition(owner)
    ):
        return value
    taken, whole = owner.result_shape, shape_of(owner.operands[0].type)
    return owner.operands[0] if taken[1:] == whole[1:] else value


def _role_of_cache(cache: SSAValue, caches: dict[SSAValue, str]) -> str | None:
    """Role of a cache, keys or values, in the first attention op that reads it."""
    if cache not in caches:
        caches[cache] = next(
            (
                _OPERANDS[name]
                for use in cache.uses
                if isinstance(user := use.operation, CatalogueOp)
                and Trait.ATTENDS in traits_of(library_definition(user))
                for name in ("key", "value")
                if user.operand(name) is cache
            ),
            "",
        )
    return caches[cache] or None


def rotary_roles(op: CatalogueOp) -> Iterator[Role]:
    """Yields the roles of the tables of a rotary embedding: an op, or a sum of products."""
    groups = op.operand_groups()
    if "cos_cache" in groups:
        for name in ("cos_cache", "sin_cache"):
            yield groups[name][0], _OPERANDS[name], False
        return
    found = _rotation(op)
    if found is not None:
        for value, name in zip(found[1:], ("cosine", "sine"), strict=True):
            yield value, name, False


def rotated_value(op: CatalogueOp) -> SSAValue | None:
    """Value that a sum `x * cosine + rotated x * sine` rotates; None for other ops."""
    found = _rotation(op)
    return None if found is None else found[0]


def _rotation(op: CatalogueOp) -> tuple[SSAValue, SSAValue, SSAValue] | None:
    """Value, cosines and sines of a rotary embedding that this sum computes, or None."""
    if op.definition.short_name != "add" or len(op.operands) != 2:
        return None
    products = [_made_by(value, "multiply") for value in op.operands]
    for rotated, scaled in (products, products[::-1]):
        if rotated is None or scaled is None:
            continue
        for index, value in enumerate(rotated.operands):
            joined = moved(value).owner
            whole = reordered(joined) if isinstance(joined, CatalogueOp) else None
            if whole is None:
                continue
            factors = [moved(operand) for operand in scaled.operands]
            if moved(whole) in factors:
                place = factors.index(moved(whole))
                tables = scaled.operands[1 - place], rotated.operands[1 - index]
                return scaled.operands[place], *tables
    return None


_MOST_STEPS = 32


def reaches(value: SSAValue, is_end: Callable[[CatalogueOp], bool]) -> bool:
    """Returns whether an op of a kind is among the next users of a value."""
    rest = [value]
    for _ in range(_MOST_STEPS):
        if not rest:
            return False
        for use in rest.pop(0).uses:
            op = use.operation
            if isinstance(op, CatalogueOp):
                if is_end(op):
                    return True
                rest += op.results
    return False


def is_attention(op: CatalogueOp) -> bool:
    """Returns whether the op computes attention or its probabilities."""
    attends = Trait.ATTENDS in traits_of(library_definition(op))
    return attends or op.definition.short_name == "softmax"


def turns(op: CatalogueOp) -> bool:
    """Returns whether the op is a cosine or a sine."""
    return op.definition.short_name in ("cos", "sin")


def cell_roles(op: CatalogueOp) -> Iterator[Role]:
    """Yields roles of the gates and states of a step of an LSTM or a GRU, from its last op."""
    match op.definition.short_name:
        case "multiply":
            yield from _long_short_term(op)
        case "add":
            yield from _gated_unit(op)
        case _:
            pass


def _long_short_term(op: CatalogueOp) -> Iterator[Role]:
    """Matches `o * tanh(c)` with `c = f * (the cell before) + i * tanh(...)`."""
    for gate, state in _both_orders(op):
        tanh = _made_by(state, "tanh")
        total = None if tanh is None else _made_by(tanh.operands[0], "add")
        if total is None or tanh is None or _made_by(gate, "sigmoid") is None:
            continue
        products = [_made_by(value, "multiply") for value in total.operands]
        for kept, added in (products, products[::-1]):
            forget = _operand_made_by(kept, "sigmoid")
            fresh = _operand_made_by(added, "sigmoid")
            candidate = _operand_made_by(added, "tanh")
            if forget is None or fresh is None or candidate is None:
                continue
            yield moved(tanh.operands[0]), "cell", True
            yield op.results[0], "hidden", True
            yield gate, "output_gate", False
            yield forget, "forget_gate", False
            yield fresh, "input_gate", False
            yield candidate, "candidate", False
            return


def _gated_unit(op: CatalogueOp) -> Iterator[Role]:
    """Matches `(h - n) * z + n`, or `(1 - z) * n + z * h`, with `n = tanh(... + r * ...)`."""
    for first, second in _both_orders(op):
        product, other = _made_by(first, "multiply"), _made_by(second, "multiply")
        if _operand_made_by(product, "subtract") is None:
            continue
        candidate = second if other is None else _operand_made_by(product, "tanh")
        update = _operand_made_by(product if other is None else other, "sigmoid")
        tanh = None if candidate is None else _made_by(candidate, "tanh")
        if candidate is None or tanh is None or update is None:
            continue
        yield op.results[0], "hidden", True
        yield update, "update_gate", False
        yield candidate, "candidate", False
        total = _made_by(tanh.operands[0], "add")
        for value in () if total is None else total.operands:
            reset = _operand_made_by(_made_by(value, "multiply"), "sigmoid")
            if reset is not None:
                yield reset, "reset_gate", False
        return


def _both_orders(op: CatalogueOp) -> tuple[tuple[SSAValue, SSAValue], ...]:
    if len(op.operands) != 2:
        return ()
    first, second = op.operands
    return (first, second), (second, first)


def _operand_made_by(op: CatalogueOp | None, short: str) -> SSAValue | None:
    """Operand of an op that is computed by an op of a kind; None if there is none."""
    operands = () if op is None else op.operands
    return next((value for value in operands if _made_by(value, short) is not None), None)


def _made_by(value: SSAValue, short: str) -> CatalogueOp | None:
    """Op of a kind that computes a value, in any form."""
    owner = moved(value).owner
    if isinstance(owner, CatalogueOp) and owner.definition.short_name == short:
        return owner
    return None


def moved(value: SSAValue) -> SSAValue:
    """Value that a value is a rearranged form of."""
    while isinstance(op := value.owner, CatalogueOp) and len(op.results) == 1:
        if not op.definition.rearranges or not op.operands:
            break
        value = op.operands[0]
    return value


def reordered(op: CatalogueOp) -> SSAValue | None:
    """Value whose slices, possibly negated, a concatenation joins in another order.

    Rotary embeddings do so with halves."""
    if op.definition.short_name != "concat" or len(op.operands) < 2:
        return None
    wholes = {_whole(operand) for operand in op.operands}
    return wholes.pop() if len(wholes) == 1 else None


def _whole(value: SSAValue) -> SSAValue | None:
    """Value that a value is a slice of, possibly negated; None if there is none."""
    while isinstance(op := value.owner, CatalogueOp):
        traits = traits_of(library_definition(op))
        if Trait.TAKES_PART in traits:
            return op.operands[0]
        if not (op.definition.rearranges or Trait.ALTERS in traits):
            return None
        value = op.operands[0]
    return None
