"""Grouping of the ops of a function into device programs.

A chain of elementwise ops shares a program with the reduction or matmul that it begins or ends at.
An op joins the latest of the programs that produce its operands, never an older one: so no program
waits for one that was begun after it, and programs can run in the order in which they were
begun."""

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
"""Rows or elements of a table, by index."""
SCATTER = "ttir.scatter"
WINDOWS = (WINDOW_PRODUCT, WINDOW_REDUCTION)
"""Convolutions and pooling ops."""
DIVIDE = "divide it into several generics"
"""Remedy for a generic that is not a program."""
MAX_OPS = 24
"""Maximum number of ops in one program, for readable kernels."""
MAX_BUFFERS = 16
"""Maximum number of tensors of a program, which leaves circular buffers for other uses."""


class Kind(Enum):
    """Kind of a program."""

    TILES = auto()
    """Elementwise ops, optionally with a reduction."""
    ROWS = auto()
    """Elementwise ops and reductions of rows, with several passes over each row."""
    MATMUL = auto()
    """A matmul, optionally with an elementwise epilogue."""
    WINDOW = auto()
    """A convolution or pooling, optionally with an elementwise epilogue."""
    MOVEMENT = auto()
    """An op that moves elements."""
    INDEXED = auto()
    """Rows of a table, or elements, by index."""
    ORDER = auto()
    """Sort, topk or argmax of rows."""
    SCATTER = auto()
    """Replacement of elements of rows, by index."""
    ATTENTION = auto()
    """Attention of queries to keys and values."""
    CACHE = auto()
    """In-place update of rows of a cache."""
    OPERATION = auto()
    """An operation of TT-Lang."""
    CPU = auto()
    """Call of a CPU function: not a program, but ordered with them."""

    @property
    def computes(self) -> bool:
        """Returns whether elementwise ops can share the program."""
        return self in (Kind.TILES, Kind.ROWS, Kind.MATMUL, Kind.WINDOW)


@dataclass
class Group:
    """Ops of one program, in order."""

    index: int
    kind: Kind
    shape: tuple[int, ...]
    """Shape of the values that elementwise ops before the root compute."""
    ops: list[CatalogueOp] = field(default_factory=list[CatalogueOp])
    root: CatalogueOp | None = None
    """Op that is not elementwise: reduction, matmul, movement, embedding and so on."""
    call: CallOp | None = None
    generic: CallOp | None = None
    """Call of the source generic that the group implements; no other op joins it."""
    cores: CoreRange | None = None
    """Cores that its program runs on."""
    streamed: frozenset[SSAValue] = frozenset()
    """Inputs that are read through circular buffers even if they are local."""

    @property
    def result_shape(self) -> tuple[int, ...]:
        """Shape of the results of the program."""
        return self.root.result_shape if self.root is not None else self.shape

    @property
    def overwritten(self) -> SSAValue | None:
        """Operand that the root overwrites, if any."""
        return None if self.root is None else overwritten_operand(self.root)

    @property
    def is_dead(self) -> bool:
        """Returns whether nothing reads the results.

        That holds for fills that each group generates itself, and permutes that the matrix engine
        does."""
        return not self.outputs() and self.overwritten is None

    @property
    def draws(self) -> bool:
        """Returns whether it draws random numbers.

        Its kernels then number tiles from the first of the tensor, and compute each tile once."""
        return any(draws(op) for op in self.ops)

    @property
    def producers(self) -> list[CatalogueOp]:
        """Elementwise ops before the root; all ops if there is no root."""
        return self.ops if self.root is None else self.ops[: self.ops.index(self.root)]

    @property
    def epilogue(self) -> list[CatalogueOp]:
        """Elementwise ops after the root."""
        return [] if self.root is None else self.ops[self.ops.index(self.root) + 1 :]

    def inputs(self) -> list[SSAValue]:
        """Values from outside without splats, in order of first use."""
        made = {result for op in self.ops for result in op.results}
        read = (value for op in self.ops for value in op.operands)
        return [v for v in dict.fromkeys(read) if v not in made and not self.is_number(v)]

    def is_number(self, value: SSAValue) -> bool:
        """Returns whether a value is a splat that the root does not read."""
        if splat_of(value) is None:
            return False
        return all(value not in op.operands for op in self.ops if op is self.root)

    def outputs(self) -> list[SSAValue]:
        """Values that ops outside of the group read, in order."""
        inside: set[Operation] = set(self.ops)
        return [
            result
            for op in self.ops
            for result in op.results
            if any(use.operation not in inside for use in result.uses)
        ]


def draws(op: CatalogueOp) -> bool:
    """Returns whether an op draws random numbers."""
    return isinstance(op.definition, TTIRDefinition) and op.definition.draws


def overwritten_operand(op: CatalogueOp) -> SSAValue | None:
    """Operand that an op overwrites; None if it has only results."""
    name = op.definition.in_place
    return None if name is None else op.operand(name)


def is_free_reshape(op: Operation) -> bool:
    """Returns whether an op is a reshape that leaves all elements in their tiles."""
    if op.name != "ttir.reshape":
        return False
    return is_view(shape_of(op.operands[0].type), shape_of(op.results[0].type))


def is_reordering(ops: Sequence[CatalogueOp]) -> bool:
    """Returns whether ops are a chain of reshapes and permutes that one program can do."""
    if not all(op.name in REORDERINGS for op in ops):
        return False
    for before, op in pairwise(ops):
        if op.operands[0] is not before.results[0] or not before.results[0].has_one_use():
            return False
    return reordering(ops) is not None


def is_fill(op: Operation) -> bool:
    """Returns whether the elements of an op's result follow from its attributes."""
    if not isinstance(op, CatalogueOp) or not isinstance(op.definition, TTIRDefinition):
        return False
    return op.definition.fills


def fits(group: Group) -> bool:
    """Returns whether registers and circular buffers suffice for the group."""
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
            # Before the root it is the accumulator, after it the result.
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
        self._generic_groups: dict[CallOp, Group] = {}

    def add(self, op: CatalogueOp) -> None:
        if op in self._generics and not is_free_reshape(op) and not is_fill(op):
            self._add_to_generic(op, self._generics[op])
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
            # It is not assigned to a group, because elementwise ops use the constant.
            self.groups.append(Group(len(self.groups), Kind.TILES, op.result_shape, [op]))

    def _add_to_generic(self, op: CatalogueOp, generic: CallOp) -> None:
        """Adds an op of a source generic, whose ops form one group.

        Raises:
            CompileError: if it reads a reshaped result of the same generic.
        """
        group = self._generic_groups.get(generic)
        if group is None:
            group = Group(len(self.groups), Kind.TILES, (), generic=generic)
            self.groups.append(group)
            self._generic_groups[generic] = group
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
        """View of the same buffer: readers wait for the program that writes it."""
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
        """Adds a movement; chains of reshapes and permutes form one group."""
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
        """Begins a group for a cache op; later readers of the cache wait for it."""
        group = Group(len(self.groups), Kind.CACHE, op.shape("cache"), [op], root=op)
        self.groups.append(group)
        self._of[op.operand("cache")] = group

    def call(self, op: CallOp) -> None:
        """Adds a call of a CPU function.

        Readers of its results and of overwritten operands wait for it."""
        group = Group(len(self.groups), Kind.CPU, (), call=op)
        self.groups.append(group)
        for value in (*op.results, *overwritten_operands(op)):
            self._of[value] = group

    def _assign(self, op: CatalogueOp, group: Group) -> None:
        for result in op.results:
            self._of[result] = group

    def _latest_group(self, op: CatalogueOp) -> Group | None:
        """Returns the group to join.

        None if there is none, or its result is read through a view."""
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
        """Adds an elementwise op to a group if the loops of its program do not change."""
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
        """Adds an op to a group, which becomes one over rows, if it fits.

        Rows that stayed in L1 before must still stay."""
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
        """Returns whether only the reduction reads the group, and no padding is masked."""
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
    """Returns whether an op continues the rows of a group, or starts another pass over them."""
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
    # An op that reads none of the rows again gains nothing, and would run on fewer cores.
    rows = {*group.inputs(), *(result for each in group.ops for result in each.results)}
    return (
        group.root is not None
        and op.result_shape == group.shape
        and any(v in rows and shape_of(v.type) == group.shape for v in op.operands)
    )


def pads_tiles(op: CatalogueOp) -> bool:
    """Returns whether a reduction has padding in its tiles along a reduced dimension."""
    shape, kept = shape_of(op.operands[0].type), op.result_shape
    return any(
        size != kept[axis] and size % TILE_SIDE != 0 for axis, size in list(enumerate(shape))[-2:]
    )


def _is_needed_fill(op: CatalogueOp) -> bool:
    """Returns whether a splat tensor has to exist, because a non-elementwise op reads it."""
    if not is_fill(op) or splat_of(op.results[0]) is None:
        return False
    return any(not is_elementwise(use.operation) for use in op.results[0].uses)


def form_groups(
    function: FuncOp, block: Block, generics: Mapping[Operation, CallOp]
) -> list[Group]:
    """Returns the programs of a function, in an order in which they can run.

    Args:
        function: the function, for messages.
        block: its ops.
        generics: call of the source generic of each op in one; the ops of a generic form a program.
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
