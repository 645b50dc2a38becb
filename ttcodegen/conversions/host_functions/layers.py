"""Outlining of repeated layers: one function, called with different weights.

Layers are found by their computation, not by their names: runs of equal statements with equal
dataflow. The search takes the runs that save most lines, counting each value that goes in or out,
so that a layer begins and ends where few tensors are alive. The order of statements is kept, except
for hoisted shared values, and so is the lifetime of memory."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from heapq import nlargest
from itertools import accumulate, chain, pairwise, zip_longest
from operator import itemgetter
from statistics import fmean

from xdsl.ir import SSAValue

from ttcodegen.conversions.host_functions.layer_analysis import (
    LONGEST,
    Run,
    alive_counts,
    drawn_near,
    joined_at,
    last_uses,
    made_by,
    primitive_lengths,
    rearranges,
    repeated_runs,
    shared_first,
    shared_values,
)
from ttcodegen.conversions.host_functions.layer_structures import (
    STRUCTURES,
    Body,
    all_members,
    elements_of,
    has_weights,
    size_constants,
    structures,
)
from ttcodegen.conversions.host_functions.outlining import (
    OutlinedFunction,
    Parameter,
    add_calls,
    differing_texts,
)
from ttcodegen.conversions.host_functions.statements import (
    Group,
    Links,
    Statement,
    general_signature,
    group_of,
    pieces_of,
)
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.emitc.spelling import NameScope, identifier
from ttcodegen.naming.functions import (
    common_title,
    layer_function_name,
    layer_parameter_name,
    names_inside,
    names_of_forms,
    role_in_layer,
    role_of_parameter,
)
from ttcodegen.naming.roles import STATES
from ttcodegen.naming.sources import name_in_layer, whole_layer
from ttcodegen.naming.values import ValueNames, operand_noun
from ttcodegen.ops.core.calls import PARAMETERS, Call, Use

SHORTEST = 6
"""Minimum number of lines of a layer that becomes a function."""
FEWEST = 3
"""Minimum number of statements, at least one of which is not a call of a layer function."""
LEAST_SAVED = 6
"""Minimum number of lines that a function must save."""
MOST_COMPUTED = 4
"""Maximum number of parameters that are neither weights nor inputs and differ between layers."""
MOST_SHARED = 6
"""Maximum number of computed parameters that all layers share: masks, rotary tables."""
MOST_RETURNED = 3
MOST_FUNCTIONS = 12
MOST_UNITED = 3
"""Maximum number of sizes in which merged functions of equal layers may differ."""
_TRIED = 40
_CALL_LINES = 2
_DIVIDED = 0.9
"""Penalty of a boundary that separates an op from a change of its result's form."""
_UNITED = [_DIVIDED**ends for ends in range(3)]
"""Penalty by the number of such boundaries."""
_INSIDE = [0.85**ends for ends in range(3)]
"""Penalty by the number of boundaries inside a module of the source."""
_ACROSS = 0.5
"""Penalty of statements that belong to more than one numbered layer."""
_NEAR = 0.75
"""Minimum relative score at which the steps of recurrent layers are preferred."""
_BLOCK = re.compile(r".*(?:^|[./_])\d+(?=$|[./])")
"""Layer path up to and including the last layer number."""
_MODULE = re.compile(r".*(?:^|[./_])\d+[./][^./]+")
"""Layer path up to a module of a numbered layer."""


def outline_layers(
    statements: Sequence[Statement], body: Body
) -> tuple[list[Statement], list[OutlinedFunction]]:
    """Replaces equal layers by calls; returns the statements and the functions, in order."""
    body = replace(body, lines_of=cache(body.lines_of))
    search, found = _best_order(statements, body)
    functions: dict[OutlinedFunction, _Equal] = {}
    while found is not None:
        function = _function(found, body)
        functions[function] = found
        search = _Search(list(_replaced(search.statements, function)), body)
        found = search.best() if len(functions) < MOST_FUNCTIONS else None
    return _merged(search.statements, functions, body)


def _merged(
    statements: Sequence[Statement], functions: Mapping[OutlinedFunction, _Equal], body: Body
) -> tuple[list[Statement], list[OutlinedFunction]]:
    """Merges functions that differ only in file constants: blocks with layers of several sizes."""
    index_of = {id(statement): index for index, statement in enumerate(statements)}
    alike: dict[object, list[OutlinedFunction]] = {}
    for function in functions:
        # Functions that other functions call are not merged.
        is_called_here = all(id(call) in index_of for call in function.calls.values())
        key = general_signature(function.groups[0]) if is_called_here else id(function)
        alike.setdefault(key, []).append(function)
    made: list[OutlinedFunction] = []
    changed: dict[int, Statement] = {}
    for known in alike.values():
        calls = {group: id(call) for each in known for group, call in each.calls.items()}
        groups = tuple(sorted(calls, key=lambda group: index_of.get(calls[group], 0)))
        columns = set(zip(*map(pieces_of, groups), strict=True))
        texts = sum(len(set(column)) > 1 for column in columns)
        if len(known) == 1 or texts > MOST_UNITED:
            made += known
            continue
        dying = frozenset(index for each in known for index in functions[each].dying)
        function = _function(_Equal(groups, 0, dying), body, known[0].name)
        made.append(function)
        changed |= {call: function.calls[group] for group, call in calls.items()}
    return [changed.get(id(statement), statement) for statement in statements], made


def _best_order(statements: Sequence[Statement], body: Body) -> tuple[_Search, _Equal | None]:
    """Returns the search over the best order of statements, with its best function.

    Tries hoisting shared values, and grouping the steps of recurrent layers."""
    search = _Search(statements, body)
    found = search.best()
    hoisted = shared_first(statements, body.returned, body.layers_of(statements))
    if hoisted is not None:
        other = _Search(hoisted, body)
        after = other.best()
        if after is not None and (found is None or after.score > found.score):
            search, found = other, after
    if found is not None and _are_steps(found, body):
        drawn = drawn_near(search.statements, body.returned)
        near = None if drawn is None else _Search(drawn, body)
        after = None if near is None else near.best()
        # A step with the slices of its input may save fewer lines, but becomes a loop.
        if near is not None and after is not None and after.score > _NEAR * found.score:
            return near, after
    return search, found


def _are_steps(found: _Equal, body: Body) -> bool:
    """Returns whether most groups use the weights of the previous one.

    This holds for the steps of recurrent layers."""
    pairs = list(pairwise(found.groups))
    # The initial state of the first step may be an input, unlike that of the last one.
    last = found.groups[-1]
    taken = [index for index, value in enumerate(last.live_in) if value in body.members]
    alike = [all(one.live_in[i] is other.live_in[i] for i in taken) for one, other in pairs]
    return bool(taken) and 2 * sum(alike) > len(pairs)


def _replaced(statements: Sequence[Statement], function: OutlinedFunction) -> Iterator[Statement]:
    starts = {id(group.statements[0]): group for group in function.groups}
    skipped = 0
    for statement in statements:
        if skipped:
            skipped -= 1
            continue
        group = starts.get(id(statement))
        if group is None:
            yield statement
        else:
            yield function.calls[group]
            skipped = len(group.statements) - 1


@dataclass(frozen=True)
class _Equal:
    """Groups of statements that can be one function."""

    groups: tuple[Group, ...]
    score: float
    dying: frozenset[int]
    """Indices of incoming values whose last use is in at least one of the groups."""


_Best = tuple[tuple[float, int, int, int], list[Group]]
"""Score of the best groups, led by the lines that their function saves, and the groups."""


class _Search:
    """Search for the layers whose function saves most lines."""

    def __init__(self, statements: Sequence[Statement], body: Body) -> None:
        self.statements = statements
        self.body = body
        self.weights = set(body.members).difference(body.inputs)
        self.ends = list(accumulate(map(body.lines_of, statements)))
        made_at = made_by(statements)
        self.last_use = last_uses(body.returned, statements, made_at)
        shared = shared_values(statements)
        counted = {value: index for value, index in made_at.items() if value not in shared}
        self.own = [0, *accumulate([not each.runs_statements for each in statements])]
        """Number of statements before each position that are not calls of layer functions."""
        self.joined = joined_at(statements)
        self.alive = alive_counts(counted, self.last_use, len(statements))
        most = 2 * max(self.alive, default=0)
        self.closed = [2 / (2 + max(count - 2, 0)) for count in range(most + 1)]
        """Closedness of statement ranges, by the number of values alive at both ends."""
        self.divided = [*map(self._continues, range(len(statements) + 1))]
        self.until = [
            max([self.last_use.get(result, -1) for result in statement.results], default=-1)
            for statement in statements
        ]
        """Index of the last use of the results of each statement."""
        self.links = Links(statements)
        before, after = _neighbours(statements, body.layers_of(statements))
        pairs = zip(map(_module, before), map(_module, after), strict=True)
        self.inside = [one == other != "" for one, other in pairs]
        """True for positions inside a module of a layer."""
        self.block_before = [*map(_block, before)]
        self.block_after = [*map(_block, after)]
        """Numbered layers of the computations before and after each position."""

    def best(self) -> _Equal | None:
        """Returns the groups of the best function; None if no function is worth it."""
        numbers: dict[object, int] = {}
        tokens = [
            numbers.setdefault(self._token(statement), len(numbers))
            for statement in self.statements
        ]
        candidates = chain.from_iterable(
            self._candidates(run, tokens) for run in repeated_runs(tokens)
        )
        likely = nlargest(_TRIED, candidates, key=itemgetter(0))
        best: _Best = (0, 0, 0, 0), []
        for _, starts, length in likely:
            for groups in self._alike(starts, length):
                best = self._better(groups, best)
        (score, *_), groups = best
        return _Equal(tuple(groups), score, self._dying(groups)) if groups else None

    def _token(self, statement: Statement) -> object:
        weights, form = self.weights, statement.form
        return (
            form.skeleton,
            len(statement.results),
            tuple([value in weights for value in form.values]),
        )

    def _candidates(
        self, run: Run, tokens: Sequence[int]
    ) -> Iterator[tuple[float, tuple[int, ...], int]]:
        """Yields candidate runs of all lengths: estimated score, starts and length."""
        starts = run.starts
        first, count = starts[0], len(starts)
        if any(self.joined[start] for start in starts):
            return
        before = self.ends[first - 1] if first else 0
        # Only lengths up to that of a function are considered: long runs have many.
        longest = min(run.length, bisect_right(self.ends, before + LONGEST, first) - first)
        for size in primitive_lengths(tokens[first : first + 2 * longest], longest):
            end = first + size
            lines = self.ends[end - 1] - before
            if lines < SHORTEST or size < FEWEST:
                continue
            if self.own[end] == self.own[first]:
                continue
            # Whole layers score higher than parts of one. This runs for thousands of candidates.
            closedness = self.closed[self.alive[first] + self.alive[end]]
            unity = self._unity(first, end)
            yield (count - 1) * lines * closedness * unity, starts, size

    def _closedness(self, start: int, end: int) -> float:
        """1 for statements with one incoming and one outgoing value, less for more.

        Values that layers share, such as masks, do not count."""
        return self.closed[self.alive[start] + self.alive[end]]

    def _unity(self, start: int, end: int) -> float:
        """1 for statements whose boundaries separate computations; lower otherwise.

        Penalized are boundaries before a mere change of form, inside a module of the source, and in
        different numbered layers."""
        inside = _INSIDE[self.inside[start] + self.inside[end]]
        if self.block_after[start] != self.block_before[end]:
            inside *= _ACROSS
        return _UNITED[self.divided[start] + self.divided[end]] * inside

    def _continues(self, position: int) -> bool:
        """Returns whether a statement only changes the form of the previous statement's result."""
        if not 0 < position < len(self.statements):
            return False
        before, here = self.statements[position - 1], self.statements[position]
        if len(before.results) != 1 or len(here.results) != 1:
            return False
        value, names = before.results[0], self.body.names
        return self.last_use.get(value) == position and names[value] == names[here.results[0]]

    def _alike(self, starts: tuple[int, ...], length: int) -> Iterable[list[tuple[int, int]]]:
        """Groups runs of equal statements by their dataflow; yields starts and ends."""
        alike: dict[object, list[tuple[int, int]]] = {}
        last: dict[object, tuple[int, frozenset[tuple[int, int]]]] = {}
        for start in starts:
            end = start + length
            live_out = self._live_out(start, end)
            # Groups without results are kept: they overwrite, such as rows of a cache.
            if len(live_out) > MOST_RETURNED or self.joined[end]:
                continue
            inside = self.links.inside(start, end)
            before, given = last.get(inside, (start, live_out))
            # The final state after the last step may be unused.
            if live_out and live_out < given:
                states = [
                    self.statements[before + row].results[column]
                    for row, column in given - live_out
                ]
                if all(start <= self.last_use.get(value, -1) < end for value in states):
                    live_out = given
            last[inside] = start, live_out
            alike.setdefault((inside, live_out), []).append((start, end))
        return [places for places in alike.values() if len(places) > 1]

    def _live_out(self, start: int, end: int) -> frozenset[tuple[int, int]]:
        """Rows and columns of results that are used after the statements."""
        return frozenset(
            [
                (row - start, column)
                for row in range(start, end)
                if self.until[row] >= end
                for column, result in enumerate(self.statements[row].results)
                if self.last_use.get(result, -1) >= end
            ]
        )

    def _better(
        self,
        places: Sequence[tuple[int, int]],
        best: _Best,
    ) -> _Best:
        """Returns the better of the function for these places and the best so far.

        Tuples compare the score first, then the tie-breakers."""
        # The last layer before the head of a model may end differently: it is still a layer.
        whole = min([self._closedness(*place) for place in places])
        whole *= fmean([self._unity(*place) for place in places])
        start, end = places[0]
        lines = self.ends[end - 1] - (self.ends[start - 1] if start else 0)
        # This upper bound is cheap: it needs no analysis of arguments.
        most = (len(places) - 1) * lines - len(places) * _CALL_LINES
        if most * whole < best[0][0]:
            return best
        live_out = self._live_out(start, end)
        groups = [self._group(*place, live_out) for place in places]
        saved = self._saved(groups, lines)
        # Fewer incoming and outgoing values are better, and states of a cell are best. Later starts
        # are preferred: setup before the first step is more common than work after the last.
        taken, given = groups[0].live_in, groups[0].live_out
        states = sum(self.body.names[value] in STATES for value in taken)
        score = saved * whole, -len(taken) - len(given), states, start
        return (score, groups) if saved >= LEAST_SAVED and score > best[0] else best

    def _group(self, start: int, end: int, live_out: Iterable[tuple[int, int]]) -> Group:
        inside = self.statements[start:end]
        return group_of(inside, {inside[row].results[column] for row, column in live_out})

    def _dying(self, groups: Sequence[Group]) -> frozenset[int]:
        """Indices of incoming values whose last use is in one of the groups."""
        starts = {id(statement): index for index, statement in enumerate(self.statements)}
        return frozenset(
            index
            for each in groups
            for index, value in enumerate(each.live_in)
            if self.last_use.get(value, -1) < starts[id(each.statements[0])] + len(each.statements)
            and value not in self.body.members
            # Groups that write cache rows read one tensor in a loop, which must not free it.
            and (each.live_out or any(value is not other.live_in[index] for other in groups))
        )

    def _saved(self, groups: Sequence[Group], lines: int) -> int:
        """Number of lines that a function for these groups saves.

        Negative if it has too many parameters."""
        first = groups[0]
        computed = shared = 0
        for index, value in enumerate(first.live_in):
            if not all_members(groups, index, self.body):
                computed += 1
                shared += all(group.live_in[index] is value for group in groups)
        if computed - shared > MOST_COMPUTED or shared > MOST_SHARED:
            return -1
        pieces = zip(*map(pieces_of, groups), strict=True)
        texts = len({column for column in pieces if len(set(column)) > 1})
        members = len(first.live_in) - computed
        # Weights are passed in structures; inputs are named at each call.
        named = sum(
            value in self.body.inputs and all_members(groups, index, self.body)
            for index, value in enumerate(first.live_in)
        )
        call = _CALL_LINES + named + texts // 2
        return (len(groups) - 1) * lines - len(groups) * call - members - texts


def _neighbours(
    statements: Sequence[Statement], layers: Sequence[str]
) -> tuple[list[str], list[str]]:
    """Layers of the last computation before and the first one after each position.

    Statements that only change the form of tensors belong to either side."""
    computes = [not all(map(rearranges, each.ops)) for each in statements]
    before, after = [""], [""]
    for layer, is_computed in zip(layers, computes, strict=True):
        before.append(layer if is_computed else before[-1])
    for layer, is_computed in zip(reversed(layers), reversed(computes), strict=True):
        after.append(layer if is_computed else after[-1])
    return before, after[::-1]


def _block(layer: str) -> str:
    """Numbered layer of a path; empty if there is none."""
    found = _BLOCK.match(layer)
    return found[0] if found is not None else ""


def _module(layer: str) -> str:
    """Module of a numbered layer of a path; empty if there is none."""
    found = _MODULE.match(layer)
    return found[0] if found is not None else ""


def _function(found: _Equal, body: Body, known_name: str = "") -> OutlinedFunction:
    groups = found.groups
    first = groups[0]
    titles = [whole_layer(body.layers_of(group.statements)) for group in groups]
    relative: dict[SSAValue, str] = {}
    for group, title in zip(groups, titles, strict=True):
        for value in (*group.results, *group.live_in):
            relative[value] = name_in_layer(body.names[value], title)
    results = [group.results for group in groups]
    inner = names_inside(results, relative.__getitem__, "")
    elements = elements_of(groups, body)
    taken = NameScope([*(name for name, _ in body.context), *STRUCTURES])
    roles = _roles(first, inner)
    tensors: list[Parameter] = []
    kept: dict[tuple[str, ...], str] = {}
    for index, value in enumerate(first.live_in):
        values = [group.live_in[index] for group in groups]
        called = layer_parameter_name(
            [relative[each] for each in values],
            roles.get(value),
            are_members=all_members(groups, index, body),
        )
        path = elements.get(index)
        name = identifier(called) if path is not None else taken.unique(identifier(called))
        inner[value] = kept[tuple(body.names[each] for each in values)] = name
        type_ = body.type_of(value)
        type_ = type_ if index in found.dying else f"const {type_}&"
        tensors.append(Parameter(name if path is None else path.inside, type_))
    inner |= names_of_forms(results, body.names.__getitem__, kept)
    parameters = {value: inner[value] for value in first.live_in}
    local = ValueNames([statement.op for statement in first.statements], parameters, {}, {})
    inner |= {value: local[value] for value, name in inner.items() if not name}
    texts = differing_texts(groups, inner, taken)
    result = inner[first.live_out[0]] if first.live_out else ""
    ops = [op for statement in first.statements for op in statement.ops]
    called = layer_function_name(ops, titles, result, has_weights=has_weights(first, body))
    name = identifier(called)
    if body.scope.is_taken(name):
        # Layers of another entry function have the same name.
        name = identifier(f"{body.function}_{called}")
    name = known_name or body.scope.unique(name)
    common = common_title(titles)
    function = OutlinedFunction(
        name,
        groups,
        tensors,
        texts,
        inner,
        titles=titles,
        comment=f"{common}: called with different weights." if common else "",
        layers=_inner_layers(groups, titles, body),
        type_of=body.type_of,
        context=body.context,
    )
    function.structs = tuple(structures(function, body, elements))
    function.values = tuple(size_constants(function, body))
    add_calls(function)
    return function


def _inner_layers(
    groups: Sequence[Group], titles: Sequence[str | None], body: Body
) -> Sequence[str]:
    """Inner layer of each statement, relative to the titles; empty if the groups differ."""
    found = [
        [
            layer.removeprefix(title or "").lstrip("./") if layer != title else ""
            for layer in body.layers_of(group.statements)
        ]
        for group, title in zip(groups, titles, strict=True)
    ]
    return found[0] if all(each == found[0] for each in found) else ()


def _roles(group: Group, names: Mapping[SSAValue, str]) -> dict[SSAValue, str]:
    """Names of weights after the results of their calls, such as `query_weight`."""
    roles: dict[SSAValue, str] = {}
    for statement in group.statements:
        call = statement.call
        while isinstance(call, Call) and call.form in ("get", "subscript"):
            call = call.arguments[0]
        if not isinstance(call, Call) or not statement.results:
            continue
        callee = call.callee.rpartition("::")[2]
        known = PARAMETERS.get(callee, ())
        layer = names[statement.results[0]]
        op = statement.op
        plain = None if call.outlined or not isinstance(op, CatalogueOp) else operand_noun(op)
        for parameter, argument in zip_longest(known, call.arguments):
            role = role_of_parameter(parameter or "") if layer else plain
            if isinstance(argument, Use) and role is not None:
                roles.setdefault(argument.value, role_in_layer(layer, role))
            elif isinstance(argument, Call) and argument.fields and layer:
                # Weights of an inner layer are named after the fields of their structure.
                for name, given in zip(argument.fields, argument.arguments, strict=True):
                    role = role_of_parameter(re.split(r"[._]", name)[-1])
                    if isinstance(given, Use) and role is not None:
                        roles.setdefault(given.value, role_in_layer(layer, role))
    return roles
