"""Division of functions into pipeline stages, each a function of its own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, FunctionType, ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, BlockArgument, Operation, Region, SSAValue

from ttcodegen.dialects.operations.functions import argument_type, attributes_at, body_of
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.dialects.ttcore.device import ONE_CHIP, set_mesh
from ttcodegen.dialects.ttcore.dialect import ArgumentType, ArgumentTypeAttr
from ttcodegen.emitc.spelling import identifier
from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.foundation.messages import did_you_mean
from ttcodegen.naming.sources import location_name, name_in_text
from ttcodegen.ops.core.definition import works_between_chips
from ttcodegen.transforms.mesh.logical_dimensions import Rates, bytes_before_lowering
from ttcodegen.transforms.mesh.parallelism import Divisions, Parallelism, annotate
from ttcodegen.transforms.mesh.partition import TTIRPartition
from ttcodegen.transforms.rewriting import functions, is_repeatable, set_type

ARGUMENT = -1
"""Stage of an argument of the whole function."""
MOST_STAGES = 128
"""Upper bound on stages: chips of the largest system, one per stage."""
MOST_MICRO_BATCHES = 128
"""Upper bound on micro-batches, which are computed as the shards of a mesh: devices of the largest
mesh."""
_NAME = "ttir.name"
_KIND = "ttcore.argument_type"
_WEIGHTS = (ArgumentType.PARAMETER, ArgumentType.CONSTANT)


@dataclass(frozen=True)
class Origin:
    """Source of a tensor in a pipeline: an argument of the function, or the result of a stage."""

    stage: int
    index: int

    @property
    def is_argument(self) -> bool:
        """Returns whether the caller passes it."""
        return self.stage == ARGUMENT


@dataclass(frozen=True)
class Stage:
    """Part of a function that runs on a device of its own."""

    name: str
    """Name of its function."""
    arguments: tuple[Origin, ...]
    results: int
    """Number of its results."""


@dataclass(frozen=True)
class StagedFunction:
    """A function divided into stages."""

    name: str
    stages: tuple[Stage, ...]
    results: tuple[Origin, ...]


class Line:
    """Ops of a function in program order, and the bytes that cross between them.

    Ops that depend only on weights and constants have no position: each stage clones those it needs
    and computes them once.
    """

    def __init__(self, function: FuncOp) -> None:
        self.function = function
        self.block = body_of(function)
        terminator = self.block.last_op
        assert terminator is not None
        self.returned: Sequence[SSAValue] = terminator.operands
        constant: set[SSAValue] = {
            argument
            for argument in self.block.args
            if argument_type(function, argument.index) in _WEIGHTS
        }
        self.ops: list[Operation] = []
        for op in self.block.ops:
            if op is terminator:
                continue
            if is_repeatable(op) and all(value in constant for value in _read(op)):
                constant.update(op.results)
            else:
                self.ops.append(op)
        self.place = {op: place for place, op in enumerate(self.ops)}
        self._uncuttable = self._cuts_in_place_writes()

    def _cuts_in_place_writes(self) -> list[bool]:
        """Returns, by position, whether a cut there would separate uses of an argument written in
        place.

        Such an argument has to be written in a single stage.
        """
        starts = [0] * (len(self.ops) + 1)
        written: set[SSAValue] = set()
        for op in self.ops:
            written |= _written_arguments(op)
        touched: dict[SSAValue, tuple[int, int]] = {}
        for place, op in enumerate(self.ops):
            for value in _read(op):
                if value in written:
                    first, _ = touched.get(value, (self._position(value, place), place))
                    touched[value] = first, place
        for first, last in touched.values():
            starts[first + 1] += 1
            starts[last + 1] -= 1
        found: list[bool] = []
        depth = 0
        for change in starts:
            depth += change
            found.append(depth > 0)
        return found

    def _position(self, value: SSAValue, default: int) -> int:
        owner = value.owner
        return self.place.get(owner, default) if isinstance(owner, Operation) else default

    def crossing(self) -> list[int]:
        """Returns, by position, the bytes that a stage beginning there receives from earlier
        ones."""
        change = [0] * (len(self.ops) + 1)
        last: dict[SSAValue, int] = {}
        for place, op in enumerate(self.ops):
            for value in _read(op):
                if value.owner in self.place:
                    last[value] = place
        for value, place in last.items():
            assert isinstance(value.owner, Operation)
            size = bytes_before_lowering(value)
            change[self.place[value.owner] + 1] += size
            change[place + 1] -= size
        found: list[int] = []
        total = 0
        for each in change:
            total += each
            found.append(total)
        return found

    def may_begin(self, place: int) -> bool:
        """Returns whether a stage may begin with the op at that position."""
        return 0 < place < len(self.ops) and not self._uncuttable[place]

    def named(self, names: Sequence[str]) -> list[int]:
        """Returns the cuts after the ops of the given names.

        Raises:
            CompileError: if no op has one of the names, or no stage can end there.
        """
        known: dict[str, int] = {}
        for place, op in enumerate(self.ops):
            for name in (location_name(op.location), *(each.name_hint for each in op.results)):
                if name:
                    known[name] = place
        cuts: list[int] = []
        for name in names:
            if name not in known:
                raise CompileError(
                    f"no op of '{self.function.sym_name.data}' is called '{name}'"
                    + did_you_mean(name, known),
                    remedy="stages end after ops by the names of their results or locations",
                )
            if not self.may_begin(known[name] + 1):
                raise CompileError(
                    f"no stage of '{self.function.sym_name.data}' can end after '{name}'",
                    remedy="there are ops before and after a cut, and what is written in place "
                    "stays in one stage",
                )
            cuts.append(known[name] + 1)
        if any(second <= first for first, second in pairwise(cuts)):
            raise CompileError("the names that stages end after are not in the order of the ops")
        return cuts


def _read(op: Operation) -> Iterator[SSAValue]:
    """Yields the values that an op and its regions use from outside."""
    if not op.regions:
        yield from op.operands
        return
    inner = {value for each in op.walk() for value in each.results}
    inner |= {argument for each in op.walk() for r in each.regions for argument in _arguments(r)}
    for each in op.walk():
        yield from (value for value in each.operands if value not in inner)


def _arguments(region: Region) -> Iterator[BlockArgument]:
    for block in region.blocks:
        yield from block.args


def divide(
    module: ModuleOp, lines: Sequence[Line], cuts: Sequence[Sequence[int]]
) -> list[StagedFunction]:
    """Replaces functions by their stages.

    Args:
        module: the module of the functions.
        lines: the functions.
        cuts: for each, the positions of the first ops of its stages but the first.
    """
    taken = {function.sym_name.data for function in functions(module)}
    return [_Division(line, places, taken).run() for line, places in zip(lines, cuts, strict=True)]


class _Division:
    """Creates the stages of one function."""

    def __init__(self, line: Line, cuts: Sequence[int], taken: set[str]) -> None:
        self._line = line
        self._taken = taken
        self._bounds = [0, *cuts, len(line.ops)]
        self._stage: dict[Operation, int] = {
            op: stage
            for stage, (begin, end) in enumerate(pairwise(self._bounds))
            for op in line.ops[begin:end]
        }
        self._last = len(self._bounds) - 2
        self._origins: dict[SSAValue, Origin] = {
            argument: Origin(ARGUMENT, argument.index) for argument in line.block.args
        }
        self._outgoing = self._stage_results()

    def _stage_results(self) -> list[list[SSAValue]]:
        """Returns, by stage, the values that later stages or the caller use, in program order."""
        wanted: set[SSAValue] = set(self._line.returned)
        for op in self._line.ops:
            for value in _read(op):
                owner = value.owner
                made = self._stage.get(owner) if isinstance(owner, Operation) else None
                if made is not None and made != self._stage[op]:
                    wanted.add(value)
        found: list[list[SSAValue]] = [[] for _ in range(self._last + 1)]
        for op in self._line.ops:
            found[self._stage[op]] += [value for value in op.results if value in wanted]
        # Returned arguments and constants: results of the stage that writes them, else of the last.
        writers = {v: self._stage[op] for op in self._line.ops for v in _written_arguments(op)}
        for value in dict.fromkeys(self._line.returned):
            if value.owner not in self._stage:
                found[writers.get(value, self._last)].append(value)
        return found

    def run(self) -> StagedFunction:
        function = self._line.function
        stages = [self._make(stage) for stage in range(self._last + 1)]
        results = tuple(self._result(value) for value in self._line.returned)
        name = function.sym_name.data
        function.detach()
        function.erase()
        return StagedFunction(name, tuple(stages), results)

    def _result(self, value: SSAValue) -> Origin:
        for stage, values in enumerate(self._outgoing):
            if value in values:
                return Origin(stage, values.index(value))
        raise AssertionError("a result that no stage has")

    def _make(self, stage: int) -> Stage:
        line, function = self._line, self._line.function
        ops = self._with_constants(line.ops[self._bounds[stage] : self._bounds[stage + 1]], stage)
        inside = {value for op in ops for value in op.results}
        taken = [value for op in ops for value in _read(op)]
        taken += [value for value in self._outgoing[stage] if value not in inside]
        incoming = [value for value in dict.fromkeys(taken) if value not in inside]
        # Arguments first, in the order of the function.
        incoming.sort(key=lambda value: self._order(value))
        block = Block(arg_types=[value.type for value in incoming])
        mapper: dict[SSAValue, SSAValue] = {}
        attributes: list[DictionaryAttr] = []
        for value, argument in zip(incoming, block.args, strict=True):
            mapper[value] = argument
            argument.name_hint = value.name_hint
            attributes.append(DictionaryAttr(self._attributes(value)))
        for op in ops:
            block.add_op(op.clone(mapper))
        outgoing = self._outgoing[stage]
        block.add_op(ReturnOp(*(mapper[value] for value in outgoing)))
        name = self._free_name(f"{function.sym_name.data}_stage{stage}")
        made = FuncOp(
            name,
            FunctionType.from_lists(
                [argument.type for argument in block.args], [value.type for value in outgoing]
            ),
            Region(block),
            arg_attrs=ArrayAttr(attributes),
            res_attrs=ArrayAttr([DictionaryAttr(self._result_attributes(v)) for v in outgoing]),
        )
        parent = function.parent_block()
        assert parent is not None
        parent.insert_op_before(made, function)
        origins = tuple(self._origins[value] for value in incoming)
        for index, value in enumerate(outgoing):
            self._origins.setdefault(value, Origin(stage, index))
        return Stage(name, origins, len(outgoing))

    def _order(self, value: SSAValue) -> tuple[int, int]:
        origin = self._origins[value]
        return origin.stage, origin.index

    def _with_constants(self, ops: Sequence[Operation], stage: int) -> list[Operation]:
        """Returns the ops of a stage, preceded by the constant ops that they use."""
        found: dict[Operation, None] = {}
        pending: list[SSAValue] = [value for op in ops for value in _read(op)]
        pending += [v for v in self._outgoing[stage] if v.owner not in self._stage]
        while pending:
            owner = pending.pop().owner
            if isinstance(owner, Operation) and owner not in self._stage and owner not in found:
                found[owner] = None
                pending += _read(owner)
        return [op for op in self._line.block.ops if op in found] + list(ops)

    def _attributes(self, value: SSAValue) -> dict[str, Attribute]:
        function = self._line.function
        if isinstance(value, BlockArgument):
            return attributes_at(function.arg_attrs, value.index)
        origin = self._origins[value]
        name = name_in_text(value, f"stage{origin.stage}_{origin.index}")
        return {
            _NAME: StringAttr(identifier(name)),
            _KIND: ArgumentTypeAttr(ArgumentType.INPUT),
        }

    def _result_attributes(self, value: SSAValue) -> dict[str, Attribute]:
        returned = list(self._line.returned)
        if value not in returned:
            return {}
        return attributes_at(self._line.function.res_attrs, returned.index(value))

    def _free_name(self, name: str) -> str:
        while name in self._taken:
            name += "_"
        self._taken.add(name)
        return name


# Micro-batches: stages compute the shards of the batch that a mesh of devices would compute.

_SHARD = "ttir.mesh_shard"
_BATCH = Parallelism((("data", 0),))


def divide_batch(context: Context, module: ModuleOp, parts: int, rates: Rates) -> None:
    """Makes functions compute one micro-batch: the shard of one of `parts` devices.

    Args:
        context: the context of the passes.
        module: a TTIR module whose functions call no others.
        parts: the number of micro-batches.
        rates: figures of the device, for the order in which dimensions are taken.

    Raises:
        CompileError: if a function has no divisible batch, or micro-batches depend on each other.
    """
    mesh = (parts, 1)
    set_mesh(module, mesh)
    for function in functions(module):
        if function.is_declaration:
            continue
        divisions = Divisions(function, mesh, rates)
        axes, useful = divisions.divided(_BATCH)
        if not useful:
            reason = divisions.indivisible("data", parts)
            raise CompileError(
                f"'{function.sym_name.data}' has no {parts} micro-batches: "
                + (f"{reason} do not divide" if reason else "no input has a batch to divide"),
                function,
                remedy="give another number with --micro-batches",
            )
        annotate(function, divisions.shardings(axes))
    TTIRPartition().apply(context, module)
    for function in functions(module):
        if not function.is_declaration:
            _use_shard_signature(function)
    set_mesh(module, ONE_CHIP)


def _use_shard_signature(function: FuncOp) -> None:
    """Replaces whole tensors by shards in the signature of a function."""
    block = body_of(function)
    divided: set[SSAValue] = set()
    for argument in block.args:
        shards = [use.operation for use in argument.uses]
        types = {op.results[0].type for op in shards if op.name == _SHARD}
        if len(types) != 1 or any(op.name != _SHARD for op in shards):
            continue
        divided.add(argument)
        set_type(argument, types.pop())
        for op in shards:
            op.results[0].replace_all_uses_with(argument)
            block.erase_op(op)
    terminator = block.last_op
    assert terminator is not None
    for place, value in enumerate(terminator.operands):
        owner = value.owner
        if isinstance(owner, Operation) and owner.name == _SHARD and len(list(value.uses)) == 1:
            terminator.operands[place] = owner.operands[0]
            block.erase_op(owner)
    for op in block.ops:
        if works_between_chips(op) or _written_arguments(op) - divided:
            raise CompileError(
                f"micro-batches of '{function.sym_name.data}' depend on each other here",
                op,
                remedy="leave out --micro-batches",
            )
    function.function_type = FunctionType.from_lists(
        [argument.type for argument in block.args],
        [value.type for value in terminator.operands],
    )


def _written_arguments(op: Operation) -> set[SSAValue]:
    """Returns the arguments of the function that an op writes in place."""
    if not isinstance(op, CatalogueOp) or op.definition.in_place is None:
        return set()
    value = op.operand(op.definition.in_place)
    return {value} if isinstance(value, BlockArgument) else set()
