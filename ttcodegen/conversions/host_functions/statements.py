"""Recorded statements of a host function, and groups of them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain

from xdsl.ir import Operation, SSAValue

from ttcodegen.conversions.host_functions.cpp_interface import (
    DEVICE,
    ConstantFile,
    returned_type,
)
from ttcodegen.conversions.host_functions.expressions import SHAPE, Form, form_of, is_sharded_memory
from ttcodegen.conversions.host_functions.tuning_constants import Tuning
from ttcodegen.dialects.core.datatypes import DataType
from ttcodegen.dialects.operations.compute_config import ComputeConfig
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.dialects.ttcore.loops import WhileLoopOp
from ttcodegen.dialects.ttnn.placement import TensorPlacement, placement_of
from ttcodegen.dialects.ttnn.program_configs import ProgramConfig
from ttcodegen.emitc.builder import TENSOR
from ttcodegen.emitc.spelling import NameScope, Text, identifier
from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.naming.functions import shape_parameter_name
from ttcodegen.naming.values import ValueNames
from ttcodegen.ops.core.calls import Argument, Call, Use, cpp_text, in_release
from ttcodegen.ops.core.definition import TTNNDefinition
from ttcodegen.systems.releases import DEFAULT_RELEASE, release_named

# Ops of a function are recorded as statements that are written later: a recorder that both targets
# share, and one for TTNN ops, whose definitions describe their calls.

VECTOR = "std::vector<ttnn::Tensor>"
DEALLOCATE = "deallocate"
"""Name of the op that frees memory, which C++ expresses by the lifetimes of variables."""


def is_deallocation(op: Operation) -> bool:
    """Returns whether an op only frees memory."""
    return op.name == f"ttnn.{DEALLOCATE}"


@dataclass(frozen=True, slots=True)
class Counted(Text):
    """Number that grows by `step` in each iteration of a loop; the text is the first one's."""

    step: int


@dataclass(frozen=True)
class Kept:
    """Vector that collects a result of each iteration of a loop."""

    vector: SSAValue
    """Value that represents the vector."""
    position: int
    """Index of the result of the call."""
    others: tuple[SSAValue, ...]
    """Values in the vector before the first iteration."""
    is_reversed: bool
    """True if each iteration inserts at the front."""


@dataclass(frozen=True)
class Loop:
    """Loop around the call of a statement.

    The results of the statement are the carried results of the last iteration, in order, followed
    by the vectors of kept results."""

    counter: str
    """Name of the counter ..."""
    type: str
    """... and its type."""
    count: int
    carried: tuple[tuple[SSAValue, int], ...] = ()
    """Operands of the first iteration that later iterations take from the previous one.

    Each comes with the position of that result."""
    first: int = 0
    """Initial value of the counter."""
    array: Call | None = None
    """Array that the loop iterates over completely; None if there is none."""
    kept: tuple[Kept, ...] = ()


@dataclass(frozen=True, eq=False)
class Statement:
    """Expression, and the values of the program that hold its results."""

    op: Operation
    call: Argument
    results: tuple[SSAValue, ...]
    uses: tuple[SSAValue, ...]
    """Values that the expression uses, once per use."""
    title: str | None = None
    """Title of a statement that calls a layer."""
    types: tuple[str, ...] | None = None
    """C++ types of the results; None if all are tensors of the target."""
    others: tuple[Operation, ...] = ()
    """Other ops that the statement implements."""
    loop: Loop | None = None
    """Loop around the call."""

    @property
    def ops(self) -> tuple[Operation, ...]:
        """All ops that it implements."""
        return self.op, *self.others

    @property
    def runs_statements(self) -> bool:
        """Returns whether it calls an outlined function, which frees its arguments."""
        is_call = isinstance(self.call, Call) and self.call.outlined
        return is_call and (self.loop is None or bool(self.loop.carried))

    @property
    def carried(self) -> dict[SSAValue, SSAValue]:
        """Operand of the first iteration for each carried result of a loop."""
        taken = () if self.loop is None else self.loop.carried
        return {result: value for result, (value, _) in zip(self.results, taken, strict=False)}

    @cached_property
    def form(self) -> Form:
        """Canonical form of the expression, for comparison."""
        return form_of(self.call)


class SourceFacts:
    """Declarations that the statements of a source file need."""

    def __init__(self, release: str = DEFAULT_RELEASE) -> None:
        self.release = release_named(release)
        """Release of tt-metal whose API is called."""
        self.own_headers: set[str] = set()
        self.headers: set[str] = set()
        self.constants: list[ConstantFile] = []
        self.constant_names = NameScope()
        self.tuning = Tuning()


class StatementRecorder:
    """Base of recorders of the statements of a function."""

    def __init__(self, facts: SourceFacts, names: ValueNames) -> None:
        self.facts = facts
        self.names = names
        self.statements: list[Statement] = []
        self._op: Operation | None = None
        self.vectors: set[SSAValue] = set()
        """Values that represent vectors of the results of loop iterations."""
        self._aliases: dict[SSAValue, SSAValue] = {}
        self._shared: set[int] = set()

    def resolved(self, value: SSAValue) -> SSAValue:
        """Returns the value that an alias refers to in C++; other values are returned unchanged."""
        return self._aliases.get(value, value)

    def type_of(self, value: SSAValue) -> str:
        """C++ type of a value."""
        return VECTOR if value in self.vectors else TENSOR

    def _add(
        self, call: Argument, results: Sequence[SSAValue], types: tuple[str, ...] | None = None
    ) -> None:
        assert self._op is not None
        uses = tuple(self._uses(call))
        self.statements.append(Statement(self._op, call, tuple(results), uses, types=types))

    def _uses(self, argument: Argument) -> Iterator[SSAValue]:
        if isinstance(argument, Use):
            yield argument.value
        elif isinstance(argument, Call) and id(argument) not in self._shared:
            if argument.type != TENSOR:
                self._shared.add(id(argument))
            for inner in argument.arguments:
                yield from self._uses(inner)


class Recorder(StatementRecorder):
    """Records the statements of TTNN ops; implements `cpp_calls.CppCalls`."""

    def __init__(
        self, facts: SourceFacts, names: ValueNames, loops: Mapping[str, str] | None = None
    ) -> None:
        """`loops` are the C++ names of loops, by the symbols of their bodies."""
        super().__init__(facts, names)
        self._loops: Mapping[str, str] = {} if loops is None else loops

    def record(self, ops: Iterable[Operation]) -> list[Statement]:
        """Records the statements of ops in order.

        Raises:
            CompileError: if an op has no C++.
        """
        for op in ops:
            if isinstance(op, WhileLoopOp):
                self._record_loop(op)
            if not isinstance(op, CatalogueOp) or is_deallocation(op):
                continue
            definition = op.definition
            if not isinstance(definition, TTNNDefinition) or definition.cpp is None:
                raise CompileError(f"'{op.name}' has no C++ call", op.source_offset)
            self._op = op
            definition.cpp(self, op)
        return self.statements

    def _record_loop(self, op: WhileLoopOp) -> None:
        self._op = op
        arguments = [self[value] for value in op.operands]
        name = self._loops[op.callee.string_value()]
        type_ = returned_type([TENSOR] * len(op.results)) or "void"
        self._add(Call(name, (*arguments, self.device), type_), op.results)

    # --- Interface of the op definitions ---------------------------------------------------------

    def __getitem__(self, value: SSAValue) -> Argument:
        return Use(self.resolved(value))

    @property
    def device(self) -> Argument:
        return Text(DEVICE)

    @property
    def device_pointer(self) -> Argument:
        return Text(f"&{DEVICE}")

    def include(self, header: str) -> None:
        self.facts.headers.add(self.facts.release.headers.get(header, header))

    def include_support(self, header: str) -> None:
        self.facts.own_headers.add(f"support/{header}")

    def include_source(self, header: str) -> None:
        self.facts.own_headers.add(header)

    def call(self, callee: str, *arguments: Argument, type: str = TENSOR) -> Argument:
        return self._library_call(callee, arguments, type)

    def nested(self, callee: str, *arguments: Argument, type: str = TENSOR) -> Argument:
        return self._library_call(callee, arguments, type)

    def bind_several(self, results: Sequence[SSAValue], callee: str, *arguments: Argument) -> None:
        self._add(self._library_call(callee, arguments, TENSOR), results)

    def run(self, callee: str, *arguments: Argument) -> None:
        self._add(self._library_call(callee, arguments, "void"), ())

    def _library_call(self, callee: str, arguments: tuple[Argument, ...], type: str) -> Call:
        """Returns a call in the form that the release takes."""
        release = self.facts.release
        if callee in release.absent_calls:
            raise CompileError(
                f"tt-metal {release.name} has no '{callee}'",
                self._op,
                remedy=release.absent_calls[callee],
            )
        return in_release(Call(callee, arguments, type), release)

    def literal(self, text: str, type: str) -> Argument:
        return Call(text, (), type, "literal")

    def get(self, value: Argument, index: int, type: str = TENSOR) -> Argument:
        return Call("std::get", (value,), type, "get", index)

    def subscript(self, value: Argument, index: int, type: str = TENSOR) -> Argument:
        return Call("", (value,), type, "subscript", index)

    def memory_config(self, placement: TensorPlacement) -> Argument:
        if placement.shards is not None:
            return Text(self.facts.tuning.sharded(placement))
        known = {("dram", "interleaved"): "DRAM", ("l1", "interleaved"): "L1"}
        buffer = known[placement.buffer_type, placement.memory_layout or ""]
        kind = "weights" if self.names.of_weights else "activations"
        return Text(self.facts.tuning.memory(kind, buffer))

    def compute_config(self, config: ComputeConfig) -> Argument:
        return Text(self.facts.tuning.compute(config))

    def data_type(self, op: CatalogueOp, data_type: DataType) -> Argument:
        return Text(self.facts.tuning.data_type(op) or cpp_text(data_type))

    def tuned(self, name: str) -> Argument:
        return Text(self.facts.tuning.undecided(name))

    def program_config(self, config: ProgramConfig) -> Argument:
        release = self.facts.release
        lacking = release.absent_fields.get(config.cpp, frozenset())
        for name, _ in config.given():
            if name in lacking:
                raise CompileError(
                    f"tt-metal {release.name} has no '{name}' in '{config.cpp}'",
                    self._op,
                    remedy="leave the field out, or choose a later release with --tt-metal",
                )
        self.facts.headers.add(config.header)
        return Text(self.facts.tuning.program(config))

    def data_array(self, op: CatalogueOp) -> str:
        name = self.facts.constant_names.unique(identifier(self.names[op.results[0]]))
        self.facts.constants.append(
            ConstantFile(name, op.parameter("value"), placement_of(op.results[0]).data_type)
        )
        return name

    def list(self, type: str, elements: Iterable[Argument]) -> Argument:
        return Call(type, tuple(elements), type, "list")

    def bind(self, result: SSAValue, value: Argument) -> None:
        if isinstance(value, Use):
            self._aliases[result] = value.value
        else:
            self._add(value, (result,))


# Groups of statements: incoming and outgoing values, and equality up to arguments.


@dataclass(frozen=True, eq=False)
class Group:
    """Statements that belong together, in order."""

    statements: tuple[Statement, ...]
    live_in: tuple[SSAValue, ...]
    """Values of other statements that they use, in the order of their first use."""
    live_out: tuple[SSAValue, ...]
    """Values that other statements use."""

    @property
    def results(self) -> list[SSAValue]:
        """All values that they define, in order."""
        return [result for statement in self.statements for result in statement.results]


def components(statements: Sequence[Statement], returned: Iterable[SSAValue]) -> list[Group]:
    """Divides statements that may run in any order into groups that share no values.

    A value without operands that several groups use (a scalar that fills a tensor) forms a group of
    its own, before all others."""
    maker = {result: index for index, s in enumerate(statements) for result in s.results}
    written = {value for s in statements if not s.results for value in s.uses}
    sets = _DisjointSets(len(statements))
    users: dict[int, list[int]] = {}
    calls: dict[int, int] = {}
    for index, statement in enumerate(statements):
        # Statements that take several results of one call share it: the first one writes it.
        for call in _calls(statement.call):
            if call.type != TENSOR and form_of(call).values:
                sets.join(calls.setdefault(id(call), index), index)
        for value in statement.form.values:
            made = maker.get(value)
            if made is not None and (statements[made].uses or value in written):
                sets.join(made, index)
            elif made is not None:
                users.setdefault(made, []).append(index)
    shared: set[int] = set()
    for made, using in users.items():
        if len({sets.root(index) for index in using}) > 1:
            shared.add(made)
        else:
            sets.join(made, using[0])
    members: dict[int, list[Statement]] = {}
    for index, statement in enumerate(statements):
        if index not in shared:
            members.setdefault(sets.root(index), []).append(statement)
    wanted = set(returned).union(result for index in shared for result in statements[index].results)
    alone = [[statements[index]] for index in sorted(shared)]
    return [group_of(each, wanted) for each in (*alone, *members.values())]


class _DisjointSets:
    """Union-find; the smallest index of a set represents it."""

    def __init__(self, count: int) -> None:
        self._parent = list(range(count))

    def root(self, index: int) -> int:
        parent = self._parent
        while parent[index] != index:
            parent[index] = parent[parent[index]]
            index = parent[index]
        return index

    def join(self, first: int, second: int) -> None:
        low, high = sorted((self.root(first), self.root(second)))
        self._parent[high] = low


def _calls(argument: Argument) -> Iterator[Call]:
    """Yields the calls in an expression."""
    if isinstance(argument, Call):
        yield argument
        for inner in argument.arguments:
            yield from _calls(inner)


def group_of(inside: Sequence[Statement], wanted: Collection[SSAValue]) -> Group:
    """Returns the group of some statements; `wanted` are the values that others use."""
    made = {result for statement in inside for result in statement.results}
    used = dict.fromkeys(chain.from_iterable([statement.form.used for statement in inside]))
    return Group(
        tuple(inside),
        tuple([value for value in used if value not in made]),
        tuple([value for s in inside for value in s.results if value in wanted]),
    )


def pieces_of(each: Group) -> list[str]:
    """Pieces of C++ text of a group, in order."""
    return [text for statement in each.statements for text, _ in statement.form.texts]


def texts_of(each: Group, names: Mapping[SSAValue, str]) -> list[tuple[str, str]]:
    """Pieces of C++ text of a group in order, each with a parameter name for it, or ''."""
    found: list[tuple[str, str]] = []
    for statement in each.statements:
        for text, name in statement.form.texts:
            is_shape = name == SHAPE if name else text.startswith("ttnn::Shape(")
            if is_shape and statement.results:
                result = statement.results[0]
                source = next(iter(statement.uses), None)
                name = shape_parameter_name(result, source, names.get(result, "result"))
            elif is_sharded_memory(text) and statement.results:
                name = f"{names.get(statement.results[0], 'result')}_memory"
            found.append((text, name))
    return found


class Links:
    """Dataflow of statements, encoded so that consecutive groups compare quickly.

    Each position at which a statement defines or uses a value has the distance to the previous
    position of the same value. A distance that reaches before a group marks an incoming value."""

    def __init__(self, statements: Iterable[Statement]) -> None:
        self._distances: list[int] = []
        self._starts = [0]
        """First position of each statement."""
        last: dict[SSAValue, int] = {}
        for statement in statements:
            for value in (*statement.form.values, *statement.results):
                place = len(self._distances)
                # The first position of a value has a distance that exceeds all groups.
                self._distances.append(place - last.get(value, -_FAR))
                last[value] = place
            self._starts.append(len(self._distances))

    def inside(self, start: int, end: int) -> tuple[int, ...]:
        """Distances within a group, 0 for the first position of a value.

        Groups of equal skeletons with equal dataflow have the same distances."""
        places = self._distances[self._starts[start] : self._starts[end]]
        return tuple([each if each <= place else 0 for place, each in enumerate(places)])


_FAR = 1 << 62


def general_signature(each: Group) -> object:
    """Key that two groups share if they differ only in arguments and file constants."""
    return _signature(each, [statement.form.general for statement in each.statements])


def signature(each: Group) -> object:
    """Key that two groups share if they can be one function."""
    return _signature(each, [statement.form.skeleton for statement in each.statements])


def _signature(each: Group, skeletons: Sequence[str]) -> object:
    wanted = set(each.live_out)
    return (
        tuple([(s, len(row.results)) for s, row in zip(skeletons, each.statements, strict=True)]),
        Links(each.statements).inside(0, len(each.statements)),
        tuple(
            [
                (row, column)
                for row, statement in enumerate(each.statements)
                for column, result in enumerate(statement.results)
                if result in wanted
            ]
        ),
    )
