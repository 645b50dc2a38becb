"""Which calls of ttnn that C++ made are which ops of a flatbuffer.

The C++ may have been edited: calls that belong to no op are left over, and so are ops without
calls.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from xdsl.dialects.func import FuncOp

from ttcodegen.conversions.host_functions.interface import entries
from ttcodegen.conversions.host_functions.statements import Recorder, SourceFacts
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.flatbuffer.module import module_of
from ttcodegen.flatbuffer.program import Binary, Program
from ttcodegen.naming.values import ValueNames
from ttcodegen.ops.core.calls import Argument, Call
from ttcodegen.ops.core.definition import function_of
from ttcodegen.ops.tt_lang import LIBRARY_CALL
from ttcodegen.runtime.backend_reports import ReportedCall
from ttcodegen.transforms.rebuilding import body_of

_NAMESPACE = "ttnn::"
_REACH = 16
"""How far a call may be from the line of its op: C++ evaluates arguments in any order."""

Shape = tuple[int, ...]
Key = tuple[str, Shape | None]


@dataclass(frozen=True)
class ExpectedCall:
    """A call that the C++ of an op makes."""

    program: str
    op: int
    """The index of the op in its program."""
    name: str
    """The function, without its namespace."""
    shape: Shape | None
    """That of the op's first result."""
    inner: tuple[str, ...] = ()
    """The calls whose results are arguments of this one."""

    @property
    def key(self) -> Key:
        """What a call has in common with the one that it is."""
        return self.name, self.shape


def expected_calls(binary: Binary, programs: Sequence[str]) -> list[ExpectedCall]:
    """The calls of ttnn that the C++ of some programs makes, in the order of their ops.

    Raises:
        CompileError: if the file has ops or attributes that this version does not know.
    """
    module = module_of(binary)
    facts = SourceFacts()
    facts.tuning.collect(entries(module))
    functions = {op.sym_name.data: op for op in module.ops if isinstance(op, FuncOp)}
    return [
        call
        for name in programs
        for call in _calls_of(binary.program(name), functions[name], facts)
    ]


def _calls_of(program: Program, function: FuncOp, facts: SourceFacts) -> Iterator[ExpectedCall]:
    ops = list(body_of(function).ops)[:-1]
    places = {op: index for index, op in enumerate(ops)}
    recorder = Recorder(facts, ValueNames([], {}, {}, {}))
    for statement in recorder.record(ops):
        names = list(_called(statement.call, set()))
        op = statement.op
        if isinstance(op, CatalogueOp) and op.name == LIBRARY_CALL and len(op.results) == 1:
            # By way of a function of the project.
            names.append(function_of(op.definition.short_name))
        if not names:
            continue
        place = places[statement.op]
        results = program.operations[place].results
        shape = program.tensors[results[0]].type.shape if results else None
        yield ExpectedCall(program.name, place, names[-1], shape, tuple(names[:-1]))


def _called(argument: Argument, seen: set[int]) -> Iterator[str]:
    """The functions of ttnn that an expression calls, arguments first."""
    if not isinstance(argument, Call) or id(argument) in seen:
        return
    seen.add(id(argument))
    for inner in argument.arguments:
        yield from _called(inner, seen)
    makes_value = argument.callee == argument.type
    if argument.form == "call" and argument.callee.startswith(_NAMESPACE) and not makes_value:
        yield argument.callee.rpartition("::")[2]


def ops_of_calls(
    expected: Sequence[ExpectedCall], calls: Sequence[ReportedCall]
) -> list[ExpectedCall | None]:
    """For each call the expected one that it is, or is an argument of; None if it is none of
    them."""
    keys = [(call.name, call.results[0].shape if call.results else None) for call in calls]
    found: dict[int, ExpectedCall] = {}
    rest: list[tuple[int, ExpectedCall]] = []
    place = 0
    for each, call in zip(expected, _aligned([each.key for each in expected], keys), strict=True):
        if call is None:
            rest.append((place, each))
        else:
            found[call] = each
            place = call + 1
    left: dict[Key, deque[int]] = defaultdict(deque)
    for call, key in enumerate(keys):
        if call not in found:
            left[key].append(call)
    for place, each in rest:
        near = [call for call in left[each.key] if abs(call - place) <= _REACH]
        if near:
            left[each.key].remove(near[0])
            found[near[0]] = each
    ops = [found.get(call) for call in range(len(calls))]
    for call, each in found.items():
        _give_inner(each, call, keys, ops)
    return ops


def _give_inner(
    outer: ExpectedCall, call: int, keys: Sequence[Key], ops: list[ExpectedCall | None]
) -> None:
    """The calls before one that are arguments of it belong to the same op."""
    wanted = list(outer.inner)
    place = call - 1
    while wanted and place >= 0 and call - place <= _REACH:
        if ops[place] is None and keys[place][0] in wanted:
            wanted.remove(keys[place][0])
            ops[place] = outer
        place -= 1


def _aligned(expected: Sequence[Key], found: Sequence[Key]) -> list[int | None]:
    """For each key the index of the same one among those that were found, in the same order."""
    begin = 0
    shorter = min(len(expected), len(found))
    while begin < shorter and expected[begin] == found[begin]:
        begin += 1
    end = 0
    while end < shorter - begin and expected[-1 - end] == found[-1 - end]:
        end += 1
    places: list[int | None] = [None] * len(expected)
    for index in range(begin):
        places[index] = index
    for index in range(1, end + 1):
        places[-index] = len(found) - index
    first, second = expected[begin : len(expected) - end], found[begin : len(found) - end]
    # The text between is short, unless much was edited.
    matcher = SequenceMatcher(None, first, second, autojunk=False)
    for block in matcher.get_matching_blocks():
        for offset in range(block.size):
            places[begin + block.a + offset] = begin + block.b + offset
    return places
