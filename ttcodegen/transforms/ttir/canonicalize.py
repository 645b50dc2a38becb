"""Canonical form of TTIR: data movement, empty tensors, chains of reshapes, decomposition.

Reshapes split and merge dimensions, permutes reorder them. A unit is a factor of a dimension that
no op of a chain splits further: the chain is determined by the order of its units, and often a
single permute, or one between two reshapes, is equivalent.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from itertools import pairwise
from math import prod

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass

from ttcodegen.dialects.core.datatypes import element_of, reshaped, shape_of
from ttcodegen.dialects.operations.functions import is_cpu_function
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.ops.core.builder import splat_of
from ttcodegen.ops.core.definition import (
    TTIR,
    PrimitiveLowering,
    TTIRDefinition,
    works_between_chips,
)
from ttcodegen.ops.dialects import ttir_op_classes
from ttcodegen.ops.reduction.reduce import reduced_dims
from ttcodegen.transforms.functions import merge_common_subexpressions
from ttcodegen.transforms.rewriting import (
    PatternSet,
    Replacement,
    Rewriter,
    functions,
    rewrite_each,
)
from ttcodegen.transforms.ttir.arithmetic_rules import ARITHMETIC, folding_rules
from ttcodegen.transforms.ttir.queries import full_like, is_same, same_type

CHAINS = PatternSet()

_MOVES = ("ttir.reshape", "ttir.permute")
_LONGEST = 16


@CHAINS.on(*_MOVES)
def shorten_chain(rewriter: Rewriter, op: CatalogueOp) -> SSAValue | None:
    """Replaces three or more reshapes and permutes in a row by an equivalent shorter chain."""
    chain = [op]
    while len(chain) < _LONGEST:
        before = rewriter.sole(chain[-1].operands[0], *_MOVES)
        if before is None:
            break
        chain.append(before)
    source = chain[-1].operands[0]
    if len(chain) < 3 or 0 in op.result_shape:
        return None
    units = _Units(shape_of(source.type))
    if not all(units.move(each) for each in reversed(chain)):
        return None
    steps = units.steps(op.result_shape)
    if len(steps) >= len(chain):
        return None
    value = source
    for step in steps:
        if isinstance(step, _Permute):
            value = rewriter.permute(value, step.places)
        else:
            value = rewriter.reshape(value, step)
    return value


@dataclass(frozen=True)
class _Permute:
    places: list[int]


_Shape = Sequence[int]


@dataclass
class _Units:
    """Units of a tensor, and the current dimensions in terms of them."""

    shape: _Shape
    _sizes: list[int] = field(default_factory=list[int])
    _source: list[list[int]] = field(default_factory=list[list[int]])
    """Units of each source dimension."""
    _now: list[list[int]] = field(default_factory=list[list[int]])

    def __post_init__(self) -> None:
        for size in self.shape:
            self._source.append([] if size == 1 else [len(self._sizes)])
            if size != 1:
                self._sizes.append(size)
        self._now = [list(units) for units in self._source]

    def move(self, op: CatalogueOp) -> bool:
        """Applies a reshape or permute; returns False if it merges part of a unit with another."""
        if op.name == "ttir.permute":
            self._now = [self._now[axis] for axis in op.parameter("permutation")]
            return True
        left = [unit for units in self._now for unit in units]
        made: list[list[int]] = []
        for size in op.result_shape:
            taken: list[int] = []
            while (have := self._size(taken)) != size:
                unit = left.pop(0)
                if have * self._sizes[unit] > size:
                    if size % have or self._sizes[unit] % (size // have):
                        return False
                    left.insert(0, self._divide(unit, size // have))
                taken.append(unit)
            made.append(taken)
        self._now = made
        return True

    def _divide(self, unit: int, outer: int) -> int:
        """Splits a unit, which keeps its outer part; returns the inner part."""
        inner = len(self._sizes)
        self._sizes.append(self._sizes[unit] // outer)
        self._sizes[unit] = outer
        for units in self._source:
            if unit in units:
                units.insert(units.index(unit) + 1, inner)
        return inner

    def _size(self, units: Sequence[int]) -> int:
        return prod(self._sizes[unit] for unit in units)

    def steps(self, shape: _Shape) -> list[_Permute | _Shape]:
        """Returns shapes and permutes that lead to the current order, in that shape."""
        before = [unit for units in self._source for unit in units]
        after = [unit for units in self._now for unit in units]
        if before == after:
            return [] if tuple(self.shape) == tuple(shape) else [shape]
        if (places := _permutation(self._source, self._now)) is not None:
            return [_Permute(places)]
        if _stays_together(self._source, after):
            return self._permuted(self.shape, self._source, after, shape)
        if _stays_together(self._now, before):
            order = sorted(
                range(len(self._now)),
                key=lambda axis: before.index(self._now[axis][0]) if self._now[axis] else -1,
            )
            return [[shape[axis] for axis in order],
                    _Permute([order.index(axis) for axis in range(len(order))])]  # fmt: skip
        joined = self._joined(before, after)
        sizes = [self._size(units) for units in joined]
        return [sizes, *self._permuted(sizes, joined, after, shape)]

    @staticmethod
    def _permuted(
        before: _Shape, dims: Sequence[list[int]], order: Sequence[int], shape: _Shape
    ) -> list[_Permute | _Shape]:
        """Permutes whole dimensions, those of size 1 first, then reshapes where necessary."""
        places = sorted(
            range(len(dims)), key=lambda axis: order.index(dims[axis][0]) if dims[axis] else -1
        )
        made = tuple(before[place] for place in places)
        return [_Permute(places), *([shape] if made != tuple(shape) else [])]

    @staticmethod
    def _joined(before: Sequence[int], after: Sequence[int]) -> list[list[int]]:
        """Groups the units in source order; units that stay adjacent form one dimension."""
        follows = dict(pairwise(after))
        joined = [[before[0]]]
        for last, unit in pairwise(before):
            if follows.get(last) == unit:
                joined[-1].append(unit)
            else:
                joined.append([unit])
        return joined


def _permutation(source: Sequence[list[int]], now: Sequence[list[int]]) -> list[int] | None:
    """Returns the permutation of source dimensions that gives the current ones, or None."""
    left = list(range(len(source)))
    if len(source) != len(now):
        return None
    places: list[int] = []
    for units in now:
        axis = next((axis for axis in left if source[axis] == units), None)
        if axis is None:
            return None
        left.remove(axis)
        places.append(axis)
    return places


def _stays_together(dims: Sequence[list[int]], order: Sequence[int]) -> bool:
    """Returns whether the units of each dimension are adjacent and in order in `order`."""
    place = {unit: index for index, unit in enumerate(order)}
    return all(place[last] + 1 == place[unit] for units in dims for last, unit in pairwise(units))


# Simplifications of data movement ops.

MOVEMENT = PatternSet()


@MOVEMENT.on(
    "ttir.reshape",
    "ttir.permute",
    "ttir.broadcast",
    "ttir.repeat",
    "ttir.repeat_interleave",
    "ttir.slice_static",
    "ttir.concat",
)
def fold_moved_splat(rewriter: Rewriter, op: CatalogueOp) -> SSAValue | None:
    """Folds data movement of splats of one number."""
    splats = [splat_of(value) for value in op.operands]
    first = splats[0]
    if first is None or any(splat is None or not is_same(splat, first) for splat in splats):
        return None
    return full_like(rewriter, op, first)


@MOVEMENT.on("ttir.broadcast", "ttir.repeat", "ttir.permute", "ttir.slice_static", "ttir.pad")
def drop_identity_move(rewriter: Rewriter, op: CatalogueOp) -> SSAValue | None:
    """Drops data movement that leaves every element in place."""
    source = op.operands[0]
    if not same_type(source, op):
        return None
    if op.name == "ttir.permute":
        permutation = op.parameter("permutation")
        return source if permutation == sorted(permutation) else None
    if op.name == "ttir.slice_static" and any(step < 0 for step in op.parameter("step")):
        return None
    # Padding may be negative: the shape is the same if one side is cropped and the other padded.
    if op.name == "ttir.pad" and any(op.parameter("padding")):
        return None
    return source


@MOVEMENT.on("ttir.reshape")
def merge_reshapes(rewriter: Rewriter, op: CatalogueOp) -> SSAValue | None:
    """Merges two reshapes; folds a reshape of a constant without other uses."""
    source = op.operands[0]
    if shape_of(source.type) == op.result_shape:
        return source
    producer = rewriter.defining(source, "ttir.reshape", "ttir.constant")
    if producer is None:
        return None
    if producer.name == "ttir.reshape":
        return rewriter.reshape(producer.operands[0], op.result_shape)
    if not source.has_one_use():
        return None
    value = reshaped(producer.parameter("value"), op.result_shape)
    made = rewriter.emit("constant", [], op.result_type, value=value)
    made.name_hint = source.name_hint
    return made


@MOVEMENT.on("ttir.reshape")
def embed_unreshaped_indices(rewriter: Rewriter, op: CatalogueOp) -> SSAValue | None:
    """Cancels reshapes of indices before and rows after an embedding.

    A dimension of size 1 in between may take 32 times the memory in tiles.
    """
    lookup = rewriter.sole(op.operands[0], "ttir.embedding")
    if lookup is None:
        return None
    indices = rewriter.defining(lookup.operands[0], "ttir.reshape")
    if indices is None:
        return None
    source, table = indices.operands[0], lookup.operands[1]
    if op.result_shape != (*shape_of(source.type), lookup.result_shape[-1]):
        return None
    if not 1 <= len(shape_of(source.type)) <= 2:
        return None
    return rewriter.again(lookup, [source, table], op.result_type)


@MOVEMENT.on("ttir.permute")
def merge_permutes(rewriter: Rewriter, op: CatalogueOp) -> SSAValue | None:
    """Merges two permutes; a permute that moves only dimensions of size 1 becomes a reshape."""
    source = op.operands[0]
    permutation = op.parameter("permutation")
    producer = rewriter.defining(source, "ttir.permute")
    if producer is not None:
        inner = producer.parameter("permutation")
        return rewriter.permute(producer.operands[0], [inner[axis] for axis in permutation])
    shape = shape_of(source.type)
    moved = [axis for axis in permutation if shape[axis] != 1]
    return rewriter.reshape(source, op.result_shape) if moved == sorted(moved) else None


@MOVEMENT.on("ttir.broadcast", "ttir.repeat")
def merge_broadcasts(rewriter: Rewriter, op: CatalogueOp) -> SSAValue | None:
    """Merges two broadcasts or two repeats."""
    producer = rewriter.defining(op.operands[0], op.name)
    if producer is None:
        return None
    name = "broadcast_dimensions" if op.name == "ttir.broadcast" else "repeat_dimensions"
    factors = [a * b for a, b in zip(op.parameter(name), producer.parameter(name), strict=True)]
    source = producer.operands[0]
    return rewriter.emit(op.definition.short_name, [source], op.result_type, **{name: factors})


def _bounds(op: CatalogueOp) -> tuple[list[int], list[int], list[int]] | None:
    """Returns non-negative begins, ends and steps, or None for a slice with negative steps."""
    shape = shape_of(op.operands[0].type)
    begins, ends, steps = (op.parameter(name) for name in ("begins", "ends", "step"))
    if any(step < 1 for step in steps):
        return None
    begins = [b + size if b < 0 else b for b, size in zip(begins, shape, strict=True)]
    ends = [e + size if e < 0 else e for e, size in zip(ends, shape, strict=True)]
    return begins, ends, steps


@MOVEMENT.on("ttir.slice_static")
def merge_slices(rewriter: Rewriter, op: CatalogueOp) -> SSAValue | None:
    """Merges two slices."""
    producer = rewriter.defining(op.operands[0], "ttir.slice_static")
    outer = _bounds(op)
    inner = None if producer is None else _bounds(producer)
    if producer is None or inner is None or outer is None or 0 in op.result_shape:
        return None
    begins = [b + s * o for b, s, o in zip(inner[0], inner[2], outer[0], strict=True)]
    steps = [a * b for a, b in zip(inner[2], outer[2], strict=True)]
    ends = [
        begin + (size - 1) * step + 1
        for begin, size, step in zip(begins, op.result_shape, steps, strict=True)
    ]
    return rewriter.slice(producer.operands[0], begins, ends, steps)


@MOVEMENT.on("ttir.slice_static")
def slice_operand_of_concat(rewriter: Rewriter, op: CatalogueOp) -> SSAValue | None:
    """Slices the operand of a concatenation that contains the slice."""
    producer = rewriter.defining(op.operands[0], "ttir.concat")
    bounds = _bounds(op)
    if producer is None or bounds is None or 0 in op.result_shape:
        return None
    begins, ends, steps = bounds
    dim: int = producer.parameter("dim") % len(begins)
    start = 0
    for part in producer.operands:
        size = shape_of(part.type)[dim]
        if start <= begins[dim] and ends[dim] <= start + size:
            begins[dim] -= start
            ends[dim] -= start
            return rewriter.slice(part, begins, ends, steps)
        start += size
    return None


@MOVEMENT.on("ttir.concat")
def simplify_concat(rewriter: Rewriter, op: CatalogueOp) -> SSAValue | None:
    """Drops empty operands, flattens nested concatenations, and forwards a single operand.

    A nested concatenation is flattened if it joins the same dimension and has no other use.
    """
    rank = len(op.result_shape)
    dim = op.parameter("dim") % rank
    parts: list[SSAValue] = []
    for value in op.operands:
        producer = rewriter.defining(value, "ttir.concat")
        if producer and value.has_one_use() and producer.parameter("dim") % rank == dim:
            parts += producer.operands
        elif shape_of(value.type)[dim] > 0:
            parts.append(value)
    if len(parts) == 1:
        return parts[0]
    if len(parts) == len(op.operands) or not parts:
        return None
    return rewriter.emit("concat", [parts], op.result_type, dim=dim)


@MOVEMENT.on("ttir.sum", "ttir.mean", "ttir.max", "ttir.min", "ttir.prod")
def drop_trivial_reduction(rewriter: Rewriter, op: CatalogueOp) -> SSAValue | None:
    """Rewrites a reduction over dimensions of size 1 to a reshape."""
    source = op.operands[0]
    shape = shape_of(source.type)
    same_element = element_of(source.type) == op.result_type.element_type
    if not same_element or any(shape[dim] != 1 for dim in reduced_dims(op)):
        return None
    return rewriter.reshape(source, op.result_shape)


# Empty tensors: their values need no computation.
#
# Most ops of the library refuse empty tensors, although it can create them.


def _is_empty(value: SSAValue) -> bool:
    return 0 in shape_of(value.type)


def _filled_result(rewriter: Rewriter, op: CatalogueOp, number: float) -> SSAValue:
    """Returns a result without contributions from an operand: a fill, plus the bias of a linear
    op."""
    result = rewriter.full(op.result_shape, number, op.result_type.element_type)
    named = {spec.name for spec in op.definition.operands}
    bias = op.optional_operand("bias") if "bias" in named else None
    if bias is None:
        return result
    bias = rewriter.typecast(bias, op.result_type.element_type)
    return rewriter.emit("add", [result, bias], op.result_type)


def _concat_nonempty(rewriter: Rewriter, op: CatalogueOp) -> SSAValue:
    """Concatenates the operands that have elements."""
    rank = len(op.result_shape)
    parts = [value for value in op.operands if not _is_empty(value)]
    return rewriter.concat(parts, op.parameter("dim") % rank)


def _padding(rewriter: Rewriter, op: CatalogueOp) -> SSAValue:
    return _filled_result(rewriter, op, op.parameter("value"))


_MOVING: Mapping[str, Callable[[Rewriter, CatalogueOp], SSAValue]] = {
    "concat": _concat_nonempty,
    "pad": _padding,
}
"""Rewrites of data movement ops with some empty operands, by op name."""


def _without_elements(rewriter: Rewriter, op: CatalogueOp) -> Replacement | None:
    if op.results and all([_is_empty(result) for result in op.results]):
        return [
            rewriter.full(shape_of(result.type), 0, element_of(result.type))
            for result in op.results
        ]
    if len(op.results) != 1 or not any(map(_is_empty, op.operands)):
        return None
    if (rule := _MOVING.get(op.definition.short_name)) is not None:
        return rule(rewriter, op)
    number = TTIR[op.definition.short_name].of_nothing
    return None if number is None else _filled_result(rewriter, op, number)


def _is_removable(definition: TTIRDefinition) -> bool:
    """Returns whether an op without elements can be replaced."""
    return (
        definition.refusal is None and definition.in_place is None and len(definition.operands) > 0
    )


def empty_rules() -> PatternSet:
    """Returns the rules for empty tensors, for all ops of the catalogue."""
    rules = PatternSet()
    rules.on(*(definition.name for definition in TTIR.values() if _is_removable(definition)))(
        _without_elements
    )
    return rules


# Canonical form, which later passes expect.


@cache
def canonical_rules() -> PatternSet:
    """Returns all simplifications; they need the complete catalogue."""
    ttir_op_classes()
    return PatternSet.union(empty_rules(), MOVEMENT, CHAINS, ARITHMETIC, folding_rules())


@dataclass(frozen=True)
class TTIRCanonicalizePass(ModulePass):
    """Simplifies constants, data movement and arithmetic, merges equal ops and erases dead ones."""

    name = "ttir-canonicalize"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        rules = canonical_rules()
        for function in functions(op):
            rules.apply(function)
            if users := merge_common_subexpressions(function):
                rules.apply(function, users)


# Decomposition of composite ops into other TTIR ops.


def _is_composite(op: CatalogueOp) -> bool:
    definition = op.definition
    return isinstance(definition, TTIRDefinition) and definition.decompose is not None


def _decompose(rewriter: Rewriter, op: CatalogueOp) -> Replacement | None:
    definition = op.definition
    assert isinstance(definition, TTIRDefinition)
    assert definition.decompose is not None
    return definition.decompose(rewriter, op)


@dataclass(frozen=True)
class TTIRDecomposePass(ModulePass):
    """Applies the decompositions of the catalogue until no op has one."""

    name = "ttir-decompose"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in functions(op):
            rewrite_each(function, _decompose, _is_composite)


# Lowering to the primitives of device kernels, as the catalogue defines them.

_RuleOf = Callable[[CatalogueOp], PrimitiveLowering | None]


def _has_no_elements(op: CatalogueOp) -> bool:
    return any(0 in shape_of(value.type) for value in (*op.operands, *op.results))


@dataclass(frozen=True)
class TTIRPrimitivesPass(ModulePass):
    """Lowers TTIR to the ops that device programs are generated from.

    These are elementwise ops, reductions that keep their dimensions, matmuls, embeddings, data
    movement and constants; convolutions and pools as well, unless this is the last run of the pass.
    """

    name = "ttir-primitives"
    last: bool = False
    """True if only grouping follows the pass."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in functions(op):
            rule_of = _cpu_lowering
            if not is_cpu_function(function):
                rule_of = partial(
                    _device_lowering, _program_lowering if self.last else _primitive_lowering
                )
            rewrite_each(function, partial(_replace, rule_of), partial(_has_rule, rule_of))


def _has_rule(rule_of: _RuleOf, op: CatalogueOp) -> bool:
    return rule_of(op) is not None


def _replace(rule_of: _RuleOf, rewriter: Rewriter, op: CatalogueOp) -> Replacement | None:
    rule = rule_of(op)
    assert rule is not None
    return rule(rewriter, op)


def _device_lowering(rule_of: _RuleOf, op: CatalogueOp) -> PrimitiveLowering | None:
    """Returns the lowering of an op on the device, or None if a device program computes it
    directly."""
    definition = op.definition
    assert isinstance(definition, TTIRDefinition)
    return None if definition.stays is not None and definition.stays(op) else rule_of(op)


def _cpu_lowering(op: CatalogueOp) -> PrimitiveLowering | None:
    """Returns the lowering of an op on the CPU; None for collectives, which it computes in one
    step."""
    return None if works_between_chips(op) else _primitive_lowering(op)


def _primitive_lowering(op: CatalogueOp) -> PrimitiveLowering | None:
    """Returns the lowering of an op to other ops, or None."""
    definition = op.definition
    return definition.primitives if isinstance(definition, TTIRDefinition) else None


def _program_lowering(op: CatalogueOp) -> PrimitiveLowering | None:
    """Returns the lowering of an op for device programs, else to other ops, or None."""
    definition = op.definition
    if not isinstance(definition, TTIRDefinition):
        return None
    if definition.program is not None and not _has_no_elements(op):
        return definition.program
    return definition.primitives
