"""Recorded statements of a host function, the forms of their expressions, and groups of them."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import chain

from xdsl.ir import Operation, SSAValue

from ttcodegen.conversions.host_functions.cpp_interface import (
    DEVICE,
    ConstantFile,
    returned_type,
)
from ttcodegen.conversions.host_functions.tuning_constants import Tuning
from ttcodegen.dialects.core.datatypes import DataType
from ttcodegen.dialects.operations.compute_config import ComputeConfig
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.dialects.ttcore.loops import WhileLoopOp
from ttcodegen.dialects.ttnn.placement import TensorPlacement, placement_of
from ttcodegen.dialects.ttnn.program_configs import ProgramConfig
from ttcodegen.emitc.spelling import NameScope, Text, identifier
from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.naming.functions import shape_parameter_name
from ttcodegen.naming.values import ValueNames
from ttcodegen.ops.core.calls import PARAMETERS, SIZES, Argument, Call, Use, cpp_text, in_release
from ttcodegen.ops.core.definition import TTNNDefinition
from ttcodegen.systems.releases import DEFAULT_RELEASE, release_named

# Expressions taken apart: what stays the same where equal statements become one function, and
# what such a function is called with.

_INTEGER = re.compile(r"\d+$")
_SHARDED_MEMORY = r"tuning::\w+_sharded_\d+x"
_TYPES: Sequence[tuple[re.Pattern[str], str, str]] = tuple(
    (re.compile(pattern), type_, noun)
    for pattern, type_, noun in (
        (r"-?[\d.]+(?:e[+-]?\d+)?f$", "float", "factor"),
        (r"(?:true|false)$", "bool", "flag"),
        (r'"', "const char*", "name"),
        (r"ttnn::Shape\(", "const ttnn::Shape&", "shape"),
        (r"ttnn::DataType::|tuning::\w+_type$", "ttnn::DataType", "data_type"),
        (_SHARDED_MEMORY, "const ttnn::MemoryConfig&", "memory_config"),
        (r"ttnn::Layout::", "ttnn::Layout", "layout"),
        (r"\{[\d, ]*\}$", "const std::vector<std::uint64_t>&", "shape"),
    )
)
"""Pieces of C++ that a parameter can replace: their form, the type and a name for it."""
_ARRAY = re.compile(r"(std::array<\w+, \d+>|ttsl::SmallVector<int32_t>)\{")
"""Sizes, and the bounds of slices."""


@dataclass(frozen=True, slots=True)
class NamedConstant(Text):
    """The name of a constant of the file, of a type that is declared there."""

    type: str


DIMENSIONS = "std::vector<std::uint64_t>"
"""The type of the shape of a tensor on the device."""
SHAPE = f"const {DIMENSIONS}&"
_FUNCTION = "function "
"""Marker of the parameter that takes a function, before its name."""
_VALUE = "\x1c"
_OPEN = "\x1d"
_CLOSE = "\x1e"
_BETWEEN = "\x1f"
"""Separators of the parts of a skeleton; none of them occurs in C++."""


@dataclass(frozen=True, eq=False)
class Form:
    """An expression taken apart. It is needed each time that a statement may be part of a
    function, so it is made once for each statement."""

    skeleton: str
    """The expression without its values, and with the type of a parameter in the place of each
    piece of C++ that one can replace."""
    general: str
    """The same without the constants of the file in it."""
    values: tuple[SSAValue, ...]
    """Values that the skeleton leaves out, also of a call that an earlier statement has written."""
    used: tuple[SSAValue, ...]
    """The same values once each, those of a call before those of the calls in it."""
    texts: tuple[tuple[str, str], ...]
    """The pieces of C++ in order, each with the parameter of the library that takes it, or ''; that
    of a constant of the file with its type."""


def form_of(expression: Argument) -> Form:
    """Takes an expression apart."""
    skeleton: list[str] = []
    constants: list[str] = []
    values: list[SSAValue] = []
    used: dict[SSAValue, None] = {}
    texts: list[tuple[str, str]] = []

    def take(argument: Argument, parameter: str) -> None:
        if isinstance(argument, Text):
            text = argument.text
            is_constant = isinstance(argument, NamedConstant)
            if is_constant:
                parameter = f"const {argument.type}&"
            texts.append((text, parameter))
            skeleton.append("" if is_constant else kind_of(text, parameter)[0] or text)
            constants.append(text if is_constant else "")
        elif isinstance(argument, Use):
            skeleton.append(_VALUE)
            values.append(argument.value)
        else:
            take_call(argument)

    def take_call(call: Call) -> None:
        callee = call.callee
        if call.purpose:
            texts.append((callee, f"const {_FUNCTION}{call.purpose}"))
            constants.append(callee)
            callee = ""
        skeleton.extend((_OPEN, callee, call.form, str(call.index), *call.fields, _OPEN))
        arguments = call.arguments
        for each in arguments:
            if isinstance(each, Use):
                used[each.value] = None
        for each, name in zip(arguments, _parameters_of(call.callee, len(arguments)), strict=True):
            take(each, name)
        skeleton.append(_CLOSE)

    if isinstance(expression, Use):
        used[expression.value] = None
    take(expression, "")
    general = _BETWEEN.join(skeleton)
    named = tuple(filter(None, constants))
    return Form(_BETWEEN.join((general, *named)), general, tuple(values), tuple(used), tuple(texts))


def is_sharded_memory(text: str) -> bool:
    """True if a piece of C++ is the constant of a sharded memory configuration."""
    return re.match(_SHARDED_MEMORY, text) is not None


# Called for each piece of each statement; few are different.
@lru_cache(maxsize=1 << 14)
def kind_of(text: str, parameter: str) -> tuple[str, str]:
    """The type of the parameter that a piece of C++ can be, and a name; empty if it cannot.

    `parameter` is the name of the parameter of the library that takes it, or its type if it is a
    constant of the file: an integer is one only where it is known that the library takes it as a
    size.
    """
    if parameter.startswith(f"const {_FUNCTION}"):
        return f"decltype(&{text})", parameter.removeprefix(f"const {_FUNCTION}")
    if parameter.startswith("const "):
        type_ = parameter.removeprefix("const ").removesuffix("&")
        return parameter, re.sub(r"(?<=\w)(?=[A-Z])", "_", type_).lower()
    if _INTEGER.match(text):
        return ("uint32_t", parameter) if parameter in SIZES else ("", "")
    array = _ARRAY.match(text)
    if array is not None:
        return f"const {array[1]}&", "bounds" if "Vector" in array[1] else "sizes"
    return next(((t, noun) for pattern, t, noun in _TYPES if pattern.match(text)), ("", ""))


@lru_cache(maxsize=1 << 12)
def _parameters_of(callee: str, count: int) -> tuple[str, ...]:
    """The names of the parameters of a number of arguments, '' where it is unknown."""
    known = PARAMETERS.get(callee.partition("<")[0].rpartition("::")[2], ())
    return (*known[:count], *[""] * (count - len(known)))


# The ops of a function as statements that are written later: what both targets share, and the
# statements of TTNN ops, which the catalogue describes.

TENSOR = "ttnn::Tensor"
DEALLOCATE = "deallocate"
"""The op that says when memory is free, which C++ says by the lifetimes of variables."""


def is_deallocation(op: Operation) -> bool:
    """True if an op only says when memory is free."""
    return op.name == f"ttnn.{DEALLOCATE}"


@dataclass(frozen=True, slots=True)
class Counted(Text):
    """A number that grows by `step` in each turn of a loop; the text is the first one's."""

    step: int


@dataclass(frozen=True)
class Loop:
    """Repetition count of a statement."""

    counter: str
    """Name of the counter ..."""
    type: str
    """... and its type."""
    count: int
    carried: SSAValue | None = None
    """The value that the first iteration takes, in the place of what the others take of the one
    before; None if none gives anything."""
    first: int = 0
    """The counter in the first iteration."""
    array: Call | None = None
    """The array whose elements are all of the iterations; None if there is none."""


@dataclass(frozen=True, eq=False)
class Statement:
    """A statement: an expression, and the values of the program that hold what it gives."""

    op: Operation
    call: Argument
    results: tuple[SSAValue, ...]
    uses: tuple[SSAValue, ...]
    """The values that the expression uses, once for each time."""
    title: str | None = None
    """Title of a statement that calls a layer."""
    types: tuple[str, ...] | None = None
    """The C++ types of the results; None if all are tensors of the target."""
    others: tuple[Operation, ...] = ()
    """The other ops that the statement is run for, or that it runs."""
    loop: Loop | None = None
    """The loop that it is the body of."""

    @property
    def ops(self) -> tuple[Operation, ...]:
        """All ops that it implements."""
        return self.op, *self.others

    @property
    def runs_statements(self) -> bool:
        """True if it calls a function of the program, which frees its arguments."""
        is_call = isinstance(self.call, Call) and self.call.outlined
        return is_call and (self.loop is None or self.loop.carried is not None)

    @cached_property
    def form(self) -> Form:
        """The expression taken apart, to be compared with others."""
        return form_of(self.call)


class SourceFacts:
    """Declarations that the statements of a source file need."""

    def __init__(self, release: str = DEFAULT_RELEASE) -> None:
        self.release = release_named(release)
        """The release of tt-metal that calls are written for."""
        self.own_headers: set[str] = set()
        self.headers: set[str] = set()
        self.constants: list[ConstantFile] = []
        self.constant_names = NameScope()
        self.tuning = Tuning()


class StatementRecorder:
    """Records the statements of a function, whatever its ops are."""

    def __init__(self, facts: SourceFacts, names: ValueNames) -> None:
        self.facts = facts
        self.names = names
        self.statements: list[Statement] = []
        self._op: Operation | None = None
        self._same: dict[SSAValue, SSAValue] = {}
        self._shared: set[int] = set()

    def resolved(self, value: SSAValue) -> SSAValue:
        """The value that a value is the same as in C++; itself in general."""
        return self._same.get(value, value)

    def type_of(self, value: SSAValue) -> str:
        """The C++ type of a value."""
        return TENSOR

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
        """The statements of ops in order.

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

    # --- What the catalogue uses -----------------------------------------------------------------

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
        """A call in the form that the release takes it in."""
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
            self._same[result] = value.value
        else:
            self._add(value, (result,))


# Statements in groups: what comes in, what goes out, and when two groups are equal but for what
# they are called with.


@dataclass(frozen=True, eq=False)
class Group:
    """Statements that belong together, in order."""

    statements: tuple[Statement, ...]
    live_in: tuple[SSAValue, ...]
    """The values of others that they use, in the order of their first use."""
    live_out: tuple[SSAValue, ...]
    """Their values that others use."""

    @property
    def results(self) -> list[SSAValue]:
        """All values that they make, in order."""
        return [result for statement in self.statements for result in statement.results]


def components(statements: Sequence[Statement], returned: Iterable[SSAValue]) -> list[Group]:
    """Divides statements that may run in any order into groups that share no values.

    What several groups use and nothing is made of (a number that fills a tensor) is a group of its
    own, before all others.
    """
    maker = {result: index for index, s in enumerate(statements) for result in s.results}
    written = {value for s in statements if not s.results for value in s.uses}
    sets = _DisjointSets(len(statements))
    users: dict[int, list[int]] = {}
    calls: dict[int, int] = {}
    for index, statement in enumerate(statements):
        # Several results of one call: the first statement writes it for all of them.
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
    """Numbers in sets that are joined; the smallest of a set represents it."""

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
    """The calls in an expression."""
    if isinstance(argument, Call):
        yield argument
        for inner in argument.arguments:
            yield from _calls(inner)


def group_of(inside: Sequence[Statement], wanted: Collection[SSAValue]) -> Group:
    """The group of some statements; `wanted` are the values that others use."""
    made = {result for statement in inside for result in statement.results}
    used = dict.fromkeys(chain.from_iterable([statement.form.used for statement in inside]))
    return Group(
        tuple(inside),
        tuple([value for value in used if value not in made]),
        tuple([value for s in inside for value in s.results if value in wanted]),
    )


def pieces_of(each: Group) -> list[str]:
    """The pieces of C++ of a group in order."""
    return [text for statement in each.statements for text, _ in statement.form.texts]


def texts_of(each: Group, names: Mapping[SSAValue, str]) -> list[tuple[str, str]]:
    """The pieces of C++ of a group in order, each with the name of a parameter for it, or ''."""
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
    """Producers of the values of statements, so that consecutive groups compare without a second
    look at their values.

    Each position at which a statement makes or takes a value has the distance to the last position
    of the same value before it. Where that is before a group, a value comes in.
    """

    def __init__(self, statements: Iterable[Statement]) -> None:
        self._distances: list[int] = []
        self._starts = [0]
        """The first position of each statement."""
        last: dict[SSAValue, int] = {}
        for statement in statements:
            for value in (*statement.form.values, *statement.results):
                place = len(self._distances)
                # What is far away is outside of all groups.
                self._distances.append(place - last.get(value, -_FAR))
                last[value] = place
            self._starts.append(len(self._distances))

    def inside(self, start: int, end: int) -> tuple[int, ...]:
        """The distances of a group, 0 where a value is seen first: alike in groups of equal
        skeletons whose values go alike."""
        places = self._distances[self._starts[start] : self._starts[end]]
        return tuple([each if each <= place else 0 for place, each in enumerate(places)])


_FAR = 1 << 62


def general_signature(each: Group) -> object:
    """The same of groups that may differ in constants of the file."""
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
