"""Grouping of the ops of a function into device programs.

Chains of elementwise ops share a program, and so do the reduction or the matrix product that they
begin or end at. An op joins the latest of the programs that its operands come from, never an
older one: so no program ever waits for one that was begun after it, and the programs can run in
the order in which they were begun.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from itertools import pairwise

from xdsl.dialects.func import CallOp, FuncOp, ReturnOp
from xdsl.ir import Block, Operation, SSAValue

from ttcodegen.conversions.ttir_to_ttmetal.grouping.index_maps import (
    REORDERINGS,
    is_movement,
    is_view,
    reordering,
)
from ttcodegen.conversions.ttir_to_ttmetal.grouping.row_plan import (
    plan_rows,
    reduces_rows,
    row_values_shape,
)
from ttcodegen.conversions.ttir_to_ttmetal.grouping.tile_operations import (
    GREATEST,
    LEAST,
    REDUCTIONS,
    accumulated_type,
    allocate,
    capacity,
    is_elementwise,
    lower_chain,
    needs_fp32,
)
from ttcodegen.conversions.ttir_to_ttnn import overwritten_operands
from ttcodegen.dialects.core.datatypes import DataType, shape_of
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.dialects.ttcore.shards import CoreRange
from ttcodegen.dialects.ttcore.tile import TILE_SIDE
from ttcodegen.dialects.ttmetal.programs import CIRCULAR_BUFFERS
from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.ops.attention.sdpa import ATTENTION
from ttcodegen.ops.convolution.device_windows import WINDOW_PRODUCT, WINDOW_REDUCTION
from ttcodegen.ops.core.builder import splat_of
from ttcodegen.ops.core.definition import TTIRDefinition, has_trait
from ttcodegen.ops.core.lowering import Tile, TileBuilder
from ttcodegen.ops.core.traits import Trait
from ttcodegen.ops.indexing.dynamic_slicing import SLICE_AT
from ttcodegen.ops.tt_lang import CALLED_OPERATION

INDEXED = ("ttir.embedding", "ttir.gather", SLICE_AT)
"""Ops that take elements from where indices say."""
SCATTER = "ttir.scatter"
WINDOWS = (WINDOW_PRODUCT, WINDOW_REDUCTION)
"""Convolutions and pools."""
DIVIDE = "divide it into several generics"
"""Remedy for a generic that is no program."""
MAX_OPS = 24
"""Ops in one program: beyond that a kernel is no pleasure to read."""
MAX_BUFFERS = 16
"""Tensors that one program reads and writes, which leaves circular buffers for the rest."""


class Kind(Enum):
    """Kind of the root op of a program."""

    TILES = auto()
    """Elementwise ops, perhaps with a reduction."""
    ROWS = auto()
    """Elementwise ops and reductions of rows, which go over each row several times."""
    MATMUL = auto()
    """A matrix product, perhaps with elementwise ops after it."""
    WINDOW = auto()
    """A convolution or a pool, perhaps with elementwise ops after it."""
    MOVEMENT = auto()
    """An op that moves elements."""
    INDEXED = auto()
    """Rows of a table, or elements, by index."""
    ORDER = auto()
    """Rows whose elements are put in order."""
    SCATTER = auto()
    """Rows of which elements are replaced by index."""
    ATTENTION = auto()
    """Attention of queries to keys and values."""
    CACHE = auto()
    """Rows of a cache, overwritten in place."""
    OPERATION = auto()
    """An operation of TT-Lang."""
    CPU = auto()
    """A call of a function that runs on the CPU: no program, but in order with them."""

    @property
    def computes(self) -> bool:
        """True if elementwise ops can share the program."""
        return self in (Kind.TILES, Kind.ROWS, Kind.MATMUL, Kind.WINDOW)


@dataclass
class Group:
    """The ops of one program, in order."""

    index: int
    kind: Kind
    shape: tuple[int, ...]
    """Of the values that elementwise ops before the root work on."""
    ops: list[CatalogueOp] = field(default_factory=list[CatalogueOp])
    root: CatalogueOp | None = None
    """The op that is not elementwise: reduction, matrix product, movement, embedding."""
    call: CallOp | None = None
    generic: CallOp | None = None
    """The call of the generic of the source that the group is; nothing joins it."""
    cores: CoreRange | None = None
    """Those that its program runs on."""
    streamed: frozenset[SSAValue] = frozenset()
    """Inputs that come through circular buffers wherever they lie."""

    @property
    def result_shape(self) -> tuple[int, ...]:
        """Of the values that the program gives."""
        return self.root.result_shape if self.root is not None else self.shape

    @property
    def overwritten(self) -> SSAValue | None:
        """Operand that the root overwrites, if any."""
        return None if self.root is None else overwritten_operand(self.root)

    @property
    def is_dead(self) -> bool:
        """True if nothing reads what it computes: a fill that every group makes itself, or what the
        matrix engine turns round itself."""
        return not self.outputs() and self.overwritten is None

    @property
    def draws(self) -> bool:
        """True if it draws random numbers: its kernels count tiles from the first of the tensor on,
        and compute each of them once."""
        return any(draws(op) for op in self.ops)

    @property
    def producers(self) -> list[CatalogueOp]:
        """The elementwise ops before the root; all if there is none."""
        return self.ops if self.root is None else self.ops[: self.ops.index(self.root)]

    @property
    def epilogue(self) -> list[CatalogueOp]:
        """The elementwise ops after the root."""
        return [] if self.root is None else self.ops[self.ops.index(self.root) + 1 :]

    def inputs(self) -> list[SSAValue]:
        """Values from outside, in order of first use, without those that are one number."""
        made = {result for op in self.ops for result in op.results}
        read = (value for op in self.ops for value in op.operands)
        return [v for v in dict.fromkeys(read) if v not in made and not self.is_number(v)]

    def is_number(self, value: SSAValue) -> bool:
        """True if a number can replace the value: only elementwise ops of the group read it."""
        if splat_of(value) is None:
            return False
        return all(value not in op.operands for op in self.ops if op is self.root)

    def outputs(self) -> list[SSAValue]:
        """Values that ops outside the group read, in order."""
        inside: set[Operation] = set(self.ops)
        return [
            result
            for op in self.ops
            for result in op.results
            if any(use.operation not in inside for use in result.uses)
        ]


def draws(op: CatalogueOp) -> bool:
    """True if an op draws random numbers."""
    return isinstance(op.definition, TTIRDefinition) and op.definition.draws


def overwritten_operand(op: CatalogueOp) -> SSAValue | None:
    """Operand that an op overwrites, None if it only computes results."""
    name = op.definition.in_place
    return None if name is None else op.operand(name)


def is_free_reshape(op: Operation) -> bool:
    """True if an op gives the same tiles another shape."""
    if op.name != "ttir.reshape":
        return False
    return is_view(shape_of(op.operands[0].type), shape_of(op.results[0].type))


def is_reordering(ops: Sequence[CatalogueOp]) -> bool:
    """True if ops are reshapes and permutes, each of what only it reads of the one before, that a
    program can do at once."""
    if not all(op.name in REORDERINGS for op in ops):
        return False
    for before, op in pairwise(ops):
        if op.operands[0] is not before.results[0] or not before.results[0].has_one_use():
            return False
    return reordering(ops) is not None


def is_fill(op: Operation) -> bool:
    """True if the attributes of an op alone say what its elements are."""
    if not isinstance(op, CatalogueOp) or not isinstance(op.definition, TTIRDefinition):
        return False
    return op.definition.fills


def fits(group: Group) -> bool:
    """True if the registers and the circular buffers hold what the group needs at any time."""
    tensors = len(group.inputs()) + len(group.outputs())
    if tensors > MAX_BUFFERS:
        return False
    if group.kind is Kind.ROWS:
        plan = plan_rows(group.ops, group.shape, group.outputs())
        return plan is not None and tensors + plan.own_buffers <= CIRCULAR_BUFFERS
    outside = set(group.outputs())
    wide = group.root is not None or needs_fp32(
        [*group.inputs(), *(result for op in group.ops for result in op.results)]
    )
    for ops in (group.producers, group.epilogue):
        builder = TileBuilder()
        known: dict[SSAValue, Tile] = {}
        held: dict[Tile, int] = {}
        if group.root is not None:
            # The accumulator before the root, what it gives after it.
            tile = builder.new_tile(accumulated_type(group.root))
            held[tile] = GREATEST
            reduction = REDUCTIONS.get(group.root.name)
            compares = reduction is not None and reduction.is_extreme
            if compares and ops is group.producers:
                held[builder.new_tile(DataType.FLOAT32)] = LEAST
            if ops is not group.producers:
                known[group.root.results[0]] = tile
        lower_chain(builder, ops, known, {})
        if ops is group.producers and group.root is not None:
            ends = [known[v] for v in group.root.operands if v in known]
            ends += [tile for tile in held]
        else:
            ends = [known[v] for v in known if v in outside]
        if allocate(builder.calls, list(dict.fromkeys(ends)), capacity(wide), held) is None:
            return False
    return True


class _Grouping:
    def __init__(self, generics: Mapping[Operation, CallOp]) -> None:
        self.groups: list[Group] = []
        self._of: dict[SSAValue, Group] = {}
        self._views: set[SSAValue] = set()
        self._generics = generics
        self._given: dict[CallOp, Group] = {}

    def add(self, op: CatalogueOp) -> None:
        if op in self._generics and not is_free_reshape(op) and not is_fill(op):
            self._add_given(op, self._generics[op])
        elif is_elementwise(op):
            self._add_elementwise(op)
        elif op.name in REDUCTIONS:
            self._add_reduction(op)
        elif op.name == "ttir.matmul":
            self._begin(op, Kind.MATMUL)
        elif op.name == CALLED_OPERATION:
            self._begin(op, Kind.OPERATION)
        elif op.name in WINDOWS:
            self._begin(op, Kind.WINDOW)
        elif op.name == ATTENTION:
            self._begin(op, Kind.ATTENTION)
        elif op.name in INDEXED:
            self._begin(op, Kind.INDEXED)
        elif op.name == SCATTER:
            self._begin(op, Kind.SCATTER)
        elif has_trait(op, Trait.ORDERS):
            self._begin(op, Kind.ORDER)
        elif op.definition.in_place is not None:
            self._begin_cache(op)
        elif is_free_reshape(op):
            self._view(op)
        elif is_movement(op):
            self._add_movement(op)
        elif _is_needed_fill(op):
            # Nothing waits for it: elementwise ops know the number.
            self.groups.append(Group(len(self.groups), Kind.TILES, op.result_shape, [op]))

    def _add_given(self, op: CatalogueOp, generic: CallOp) -> None:
        """An op of a generic of the source, whatever it is: all of them are one group.

        Raises CompileError where it reads what one of them gives in another shape.
        """
        group = self._given.get(generic)
        if group is None:
            group = Group(len(self.groups), Kind.TILES, (), generic=generic)
            self.groups.append(group)
            self._given[generic] = group
        if any(v in self._views and self._of.get(v) is group for v in op.operands):
            raise CompileError(
                f"this ttir.generic is no program: '{op.name}' reads a result of another of its "
                "ops in another shape",
                generic,
                remedy=DIVIDE,
            )
        group.ops.append(op)
        self._assign(op, group)
        overwritten = overwritten_operand(op)
        if overwritten is not None:
            self._of[overwritten] = group

    def _view(self, op: CatalogueOp) -> None:
        """The same buffer: readers wait for the program that writes it."""
        group = self._of.get(op.operands[0])
        if group is not None:
            self._of[op.results[0]] = group
        self._views.add(op.results[0])

    def _begin(self, op: CatalogueOp, kind: Kind) -> None:
        group = Group(len(self.groups), kind, op.result_shape, [op])
        if not is_elementwise(op):
            group.root = op
            group.shape = shape_of((*op.operands, *op.results)[0].type)
        self.groups.append(group)
        self._assign(op, group)

    def _add_movement(self, op: CatalogueOp) -> None:
        """Reshapes and permutes of each other are one movement."""
        group = self._of.get(op.operands[0])
        if (
            group is not None
            and group.generic is None
            and group.kind is Kind.MOVEMENT
            and op.operands[0] not in self._views
            and is_reordering([*group.ops, op])
        ):
            group.ops.append(op)
            group.root = op
            self._assign(op, group)
        else:
            self._begin(op, Kind.MOVEMENT)

    def _begin_cache(self, op: CatalogueOp) -> None:
        """Later readers of the cache wait."""
        group = Group(len(self.groups), Kind.CACHE, op.shape("cache"), [op], root=op)
        self.groups.append(group)
        self._of[op.operand("cache")] = group

    def call(self, op: CallOp) -> None:
        """A function for the CPU. Readers of its results, or of what it overwrites, wait."""
        group = Group(len(self.groups), Kind.CPU, (), call=op)
        self.groups.append(group)
        for value in (*op.results, *overwritten_operands(op)):
            self._of[value] = group

    def _assign(self, op: CatalogueOp, group: Group) -> None:
        for result in op.results:
            self._of[result] = group

    def _latest_group(self, op: CatalogueOp) -> Group | None:
        """The group to join: None if there is none, or what it gives is read in another shape."""
        found = [(self._of[value], value) for value in op.operands if value in self._of]
        latest = max((group for group, _ in found), key=lambda g: g.index, default=None)
        if any(group is latest and value in self._views for group, value in found):
            return None
        return latest

    def _add_elementwise(self, op: CatalogueOp) -> None:
        group = self._latest_group(op)
        if group is not None and (
            self._joins(group, op) or (_continues_rows(group, op) and self._joins_rows(group, op))
        ):
            self._assign(op, group)
        else:
            self._begin(op, Kind.TILES)

    @staticmethod
    def _joins(group: Group, op: CatalogueOp) -> bool:
        """Adds an elementwise op to a group where the loops of its program stay what they are."""
        if group.generic is not None or not group.kind.computes or group.kind is Kind.ROWS:
            return False
        if group.result_shape != op.result_shape:
            return False
        if draws(op) and group.root is not None:
            return False
        group.ops.append(op)
        if len(group.ops) <= MAX_OPS and fits(group):
            return True
        group.ops.pop()
        return False

    @staticmethod
    def _joins_rows(group: Group, op: CatalogueOp) -> bool:
        """Adds an op to a group whose program goes over rows from now on, if it fits; what lay in
        L1 before stays there."""
        before = (group.kind, group.root)
        rows = plan_rows(group.ops, group.shape, group.outputs())
        group.ops.append(op)
        group.kind, group.root = Kind.ROWS, None
        if len(group.ops) <= MAX_OPS and fits(group):
            plan = plan_rows(group.ops, group.shape, group.outputs())
            assert plan is not None
            if plan.stays or rows is None or not rows.stays:
                return True
        group.ops.pop()
        group.kind, group.root = before
        return False

    def _add_reduction(self, op: CatalogueOp) -> None:
        group = self._latest_group(op)
        if group is not None and self._reducible(group, op):
            group.ops.append(op)
            group.root = op
            if len(group.ops) <= MAX_OPS and fits(group):
                self._assign(op, group)
                return
            group.ops.pop()
            group.root = None
        elif group is not None and _continues_rows(group, op) and self._joins_rows(group, op):
            self._assign(op, group)
            return
        self._begin(op, Kind.TILES)

    @staticmethod
    def _reducible(group: Group, op: CatalogueOp) -> bool:
        """True if the reduction is all that becomes of what the group computes, and no padding of
        tiles gets in between."""
        if group.kind is not Kind.TILES or group.root is not None or group.generic is not None:
            return False
        if group.draws:
            return False
        shape = shape_of(op.operands[0].type)
        if group.shape != shape:
            return False
        inside = {*group.ops, op}
        if any(u.operation not in inside for o in group.ops for r in o.results for u in r.uses):
            return False
        return not pads_tiles(op)


def _continues_rows(group: Group, op: CatalogueOp) -> bool:
    """True if an op goes on with the rows that a group works on, or goes over them again."""
    if group.generic is not None or group.kind not in (Kind.TILES, Kind.ROWS):
        return False
    if group.draws or draws(op):
        return False
    if group.root is not None and not reduces_rows(group.root):
        return False
    if op.name in REDUCTIONS:
        return reduces_rows(op) and shape_of(op.operands[0].type) == group.shape
    if group.kind is Kind.ROWS:
        return op.result_shape in (group.shape, row_values_shape(group.shape))
    # What reads none of the rows again would only be computed by fewer cores.
    rows = {*group.inputs(), *(result for each in group.ops for result in each.results)}
    return (
        group.root is not None
        and op.result_shape == group.shape
        and any(v in rows and shape_of(v.type) == group.shape for v in op.operands)
    )


def pads_tiles(op: CatalogueOp) -> bool:
    """True if what a reduction reduces has tiles with padding along a dimension that it reduces."""
    shape, kept = shape_of(op.operands[0].type), op.result_shape
    return any(
        size != kept[axis] and size % TILE_SIDE != 0 for axis, size in list(enumerate(shape))[-2:]
    )


def _is_needed_fill(op: CatalogueOp) -> bool:
    """True if a tensor of one number has to exist, because something else than an elementwise op
    reads it."""
    if not is_fill(op) or splat_of(op.results[0]) is None:
        return False
    return any(not is_elementwise(use.operation) for use in op.results[0].uses)


def form_groups(
    function: FuncOp, block: Block, generics: Mapping[Operation, CallOp]
) -> list[Group]:
    """The programs of a function, in an order in which they can run.

    Args:
        function: the function, for messages.
        block: its ops.
        generics: for ops that the source has in a `ttir.generic` its call: these are one program.
    """
    grouping = _Grouping(generics)
    for op in block.ops:
        if isinstance(op, CatalogueOp):
            grouping.add(op)
        elif isinstance(op, CallOp):
            grouping.call(op)
        else:
            assert isinstance(op, ReturnOp), (function.sym_name.data, op.name)
    return grouping.groups
