"""Matches the calls of a program with those of a changed model.

Calls match by the op's name if the model gave it one, else by their neighbourhood: the callee, the
producers of the operands and the users of the result.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Container, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from ttcodegen.emission.manifest_entries import LoweredOp, OpLines
from ttcodegen.ops.core.definition import call_has_trait
from ttcodegen.ops.core.traits import Trait
from ttcodegen.project.tuning.edited_files import OpIndex, ReplacedCalls
from ttcodegen.project.tuning.statements import (
    Call,
    Statement,
    parameters_of_functions,
    statements,
)

_ROUNDS = 4
"""Radius of the neighbourhood that is compared, in calls."""


@dataclass(eq=False)
class Node:
    """Call of a program, with its neighbours."""

    path: str
    statement: Statement
    ops: tuple[LoweredOp, ...]
    operands: list[Node | str] = field(default_factory=list["Node | str"])
    """Producer of each operand: a call, or the variable that it comes from."""
    users: list[tuple[Node, int]] = field(default_factory=list[tuple["Node", int]])
    """Calls that read the result, with the operand index."""
    is_merged: bool = False
    """True for an activation of a kind that the other program has fewer of: it may be part of the
    call before there."""
    weights: frozenset[str] = frozenset()
    """Weights that the call reads, for each call of its function: `1 layers[0].up.weight`."""
    place: tuple[str, str, int, int] | None = None
    """Heading above the call, its callee, and which of how many such calls under the heading it
    is."""

    @property
    def call(self) -> Call:
        """Call of the statement."""
        assert self.statement.call is not None
        return self.statement.call

    @cached_property
    def callee(self) -> str:
        """Name of the callee without its namespace."""
        return self.call.callee.rpartition("::")[2]

    @cached_property
    def names(self) -> frozenset[str]:
        """Names that the model gave the call's ops, without those derived from the op's kind."""
        kinds = {self.callee, "matmul", "reshape", "permute", "add", "multiply", "concat"}
        return frozenset(op.name for op in self.ops if op.name.partition("#")[0] not in kinds)


def program(texts: Mapping[str, str], ops: Iterable[OpLines]) -> list[Node]:
    """Calls of a program's files, in order."""
    known = list(ops)
    nodes: list[Node] = []
    parameters: dict[str, tuple[str, ...]] = {}
    for path in sorted(texts):
        if not path.endswith(".cpp"):
            continue
        index_of_ops = OpIndex(texts[path], known, path)
        parameters.update(parameters_of_functions(texts[path]))
        made: dict[tuple[str, str], Node] = {}
        for each in statements(texts[path]):
            if not each.function or each.call is None:
                continue
            node = Node(path, each, index_of_ops.at(each))
            for index, variable in enumerate(each.variables):
                source = made.get((each.function, _root(variable)))
                node.operands.append(source if source is not None else variable)
                if source is not None:
                    source.users.append((node, index))
            for name in (each.target or "").split(","):
                if name:
                    made[each.function, name] = node
            nodes.append(node)
    _collect_weights(nodes, parameters)
    _collect_places(nodes)
    return nodes


_MOST_INSTANCES = 256
"""Limit on the calls of a shared function whose weights are distinguished."""


def _collect_weights(nodes: Sequence[Node], parameters: Mapping[str, tuple[str, ...]]) -> None:
    """Collects the weights that calls read, also where their function has them as parameters."""
    calls: dict[str, list[Node]] = {}
    for node in nodes:
        if node.call.callee in parameters:
            calls.setdefault(node.call.callee, []).append(node)

    def instances(function: str, variable: str, depth: int) -> list[str]:
        """Weights that a variable of a function is in its calls; empty if it is none."""
        root = re.split(r"[.\[]", variable, maxsplit=1)[0]
        names = parameters.get(function, ())
        if not calls.get(function) or root not in names or depth > _ROUNDS:
            found = variable.partition(".")[2]
            return [found] if found and root in ("weights", "constants") else []
        index, rest = names.index(root), variable[len(root) :]
        weights: list[str] = []
        for each in calls[function]:
            given = each.call.positional[index : index + 1]
            if given and given[0].variable is not None and len(weights) < _MOST_INSTANCES:
                at = f"{given[0].variable}{rest}"
                weights += instances(each.statement.function, at, depth + 1)
        return weights

    for node in nodes:
        node.weights = frozenset(
            f"{index} {weight}"
            for index, each in enumerate(node.call.positional)
            if each.variable is not None
            for weight in instances(node.statement.function, each.variable, 0)
        )


def _collect_places(nodes: Sequence[Node]) -> None:
    """Numbers the calls of each callee under each heading."""
    groups: dict[tuple[str, str, str], list[Node]] = {}
    heading = function = ""
    for node in nodes:
        statement = node.statement
        if statement.function != function:
            heading, function = "", statement.function
        above = [c.text for c in statement.comments if c.end <= statement.start]
        if above and above[-1].startswith("//"):
            heading = above[-1].removeprefix("//").strip()
        if heading:
            groups.setdefault((function, heading, node.callee), []).append(node)
    for (_, heading, callee), group in groups.items():
        for number, node in enumerate(group):
            node.place = heading, callee, number, len(group)


def matched(before: Sequence[Node], now: Sequence[Node]) -> dict[Node, Node]:
    """Calls of `before` with their counterparts in `now`; ambiguous calls are left out."""
    found: dict[Node, Node] = {}
    taken: set[Node] = set()
    doubtful = _ambiguous_chains(before, now)
    merged = _MergedActivations(before, now)

    def pair_up(key: Callable[[Node], Hashable | None]) -> int:
        old = _unique(before, key, found)
        new = _unique(now, key, taken)
        added = 0
        for value, node in old.items():
            other = new.get(value)
            if other is not None:
                found[node] = other
                taken.add(other)
                added += 1
        return added

    def by_name(node: Node) -> Hashable | None:
        return (node.statement.function, node.names, node.callee) if node.names else None

    def by_variable(node: Node) -> Hashable | None:
        target = node.statement.target
        # Variables are named after values of the model.
        return (target, node.callee, _uses(node)) if target and node.names else None

    def by_variable_alone(node: Node) -> Hashable | None:
        target = node.statement.target
        return (node.statement.function, target, node.callee) if target and node.names else None

    pair_up(by_name)
    pair_up(by_variable)
    pair_up(by_variable_alone)
    _by_shared_names(before, now, found, taken)
    _by_merged_activations(before, now, found, taken)
    pair_up(_by_weights)
    _by_neighbours(before, now, found, taken, doubtful, merged)

    def by_kind(node: Node) -> Hashable | None:
        # The only call of its kind, next to a matched one.
        known = found.keys() if node in olds else taken
        around = [*node.operands, *(user for user, _ in node.users)]
        return node.callee if any(each in known for each in around) else None

    olds = set(before)
    for rounds in range(_ROUNDS, 1, -1):
        if all(node in found or node in doubtful for node in before):
            break
        colours = _colours([*before, *now], rounds)
        if pair_up(lambda node, c=colours: None if node in doubtful else c[node]):
            _by_neighbours(before, now, found, taken, doubtful, merged)
    single = _single_kinds(before) & _single_kinds(now)
    if pair_up(lambda node: by_kind(node) if node.callee in single else None):
        _by_neighbours(before, now, found, taken, doubtful, merged)
    if pair_up(lambda node: None if node in doubtful else node.place):
        _by_neighbours(before, now, found, taken, doubtful, merged)

    def by_operands(node: Node) -> Hashable | None:
        # The same call of the same values, whatever reads its result.
        sources = [each for each in node.operands if isinstance(each, Node)]
        now_of = [found.get(each) if node in olds else each for each in sources]
        if not sources or node in doubtful or any(each not in taken for each in now_of):
            return None
        made = iter(now_of)
        around = tuple(_root(e) if isinstance(e, str) else next(made) for e in node.operands)
        return (node.callee, around)

    while pair_up(by_operands):
        _by_neighbours(before, now, found, taken, doubtful, merged)
    return found


def _by_weights(node: Node) -> Hashable | None:
    """Key of the weights that a call reads and their operand indices; None without any."""
    return (node.callee, node.weights) if node.weights else None


def _by_shared_names(
    before: Sequence[Node], now: Sequence[Node], found: dict[Node, Node], taken: set[Node]
) -> None:
    """Matches calls that share an op's name.

    A call may be of one layer before and in a function of several layers now, or the reverse.
    """

    def by_op(nodes: Iterable[Node]) -> dict[tuple[str, str], list[Node]]:
        named: dict[tuple[str, str], list[Node]] = {}
        for node in nodes:
            for name in sorted(node.names):
                named.setdefault((name, node.callee), []).append(node)
        return named

    new = by_op(node for node in now if node not in taken)
    pairs: dict[Node, dict[Node, None]] = {}
    for key, olds in by_op(node for node in before if node not in found).items():
        for node in olds:
            pairs.setdefault(node, {}).update(dict.fromkeys(new.get(key, ())))
    claimed = Counter(other for others in pairs.values() for other in others)
    for node, others in pairs.items():
        if len(others) == 1 and claimed[other := next(iter(others))] == 1:
            found[node] = other
            taken.add(other)


def _by_merged_activations(
    before: Sequence[Node], now: Sequence[Node], found: dict[Node, Node], taken: set[Node]
) -> None:
    """Matches calls that apply the activation after them now, and are named after that."""
    new: dict[tuple[str, frozenset[str]], list[Node]] = {}
    for node in now:
        if node not in taken and node.names:
            new.setdefault((node.callee, node.names), []).append(node)
    for node in before:
        activation = _activation_after(node)
        if node in found or activation is None or activation in found:
            continue
        others = new.get((node.callee, activation.names), [])
        if len(others) == 1 and others[0] not in taken:
            found[node] = others[0]
            taken.add(others[0])


def _activation_after(node: Node) -> Node | None:
    """Activation that is the only reader of a call, or of its reshaped result; None if there is
    none."""
    user = node
    while user is node or user.callee == "reshape":
        if len(user.users) != 1:
            return None
        user = user.users[0][0]
    return user if call_has_trait(user.callee, Trait.ACTIVATES) and user.names else None


def split_calls(
    before: Sequence[Node], now: Sequence[Node], found: Mapping[Node, Node]
) -> dict[Node, tuple[Node, ...]]:
    """Calls of functions that layers shared, with their counterparts in functions of their own.

    Args:
        before: the calls of the previous program.
        now: the calls of the program.
        found: the calls that match already.
    """
    taken = set(found.values())
    there = {name for node in now for name in (*node.names, *node.weights)}
    free: dict[str, list[Node]] = {}
    for node in now:
        if node not in taken and (node.names or node.weights):
            free.setdefault(node.callee, []).append(node)
    split: dict[Node, tuple[Node, ...]] = {}
    for node in before:
        if node in found or len(node.ops) < 2:
            continue
        activation = _activation_after(node)
        for named in (node, activation):
            if named is None or named in found:
                continue
            others = [e for e in free.get(node.callee, ()) if e.names and e.names <= named.names]
            names = [name for each in others for name in each.names]
            # Others of the ops may be gone, or be one call with these.
            if names and len(names) == len(set(names)) and not (named.names - set(names)) & there:
                split[node] = tuple(others)
                break
        else:
            others = [
                e for e in free.get(node.callee, ()) if e.weights and e.weights <= node.weights
            ]
            read = [weight for each in others for weight in each.weights]
            if read and len(read) == len(set(read)):
                split[node] = tuple(others)
    return split


def _single_kinds(nodes: Sequence[Node]) -> set[str]:
    """Functions that a program calls once."""
    return {name for name, count in Counter(node.callee for node in nodes).items() if count == 1}


def _unique(
    nodes: Sequence[Node],
    key: Callable[[Node], Hashable | None],
    done: Container[Node],
) -> dict[Hashable, Node]:
    """Nodes whose key is unique, by key."""
    keys = [(key(node), node) for node in nodes if node not in done]
    counts = Counter(value for value, _ in keys)
    return {value: node for value, node in keys if value is not None and counts[value] == 1}


def _uses(node: Node) -> tuple[tuple[str, int], ...]:
    """Functions that read a result, if by an activation that may be part of the call."""
    found = [
        use
        for user, index in node.users
        for use in (_uses(user) if user.is_merged else [(user.callee, index)])
    ]
    return tuple(sorted(found))


def _ambiguous_chains(before: Sequence[Node], now: Sequence[Node]) -> set[Node]:
    """Calls in chains of the same callee whose number changed: any may be the new or
    removed one."""
    old, new = (Counter(node.callee for node in nodes) for nodes in (before, now))
    found: set[Node] = set()
    for node in (*before, *now):
        around = [each for each in node.operands if isinstance(each, Node)]
        around += [user for user, _ in node.users]
        if old[node.callee] != new[node.callee] and node.callee in {n.callee for n in around}:
            found.add(node)
    return found


def _by_neighbours(
    before: Sequence[Node],
    now: Sequence[Node],
    found: dict[Node, Node],
    taken: set[Node],
    doubtful: set[Node],
    merged: _MergedActivations,
) -> None:
    """Matches calls whose operands and users are matched."""
    numbers = {node: index for index, node in enumerate(now)}
    places = {node: index for index, node in enumerate(before)}
    old = _KeyedNodes(before, {node: numbers[other] for node, other in found.items()}, doubtful)
    new = _KeyedNodes(now, {node: numbers[node] for node in taken}, doubtful)
    for node, other in found.items():
        merged.settle(node, other, old, new, numbers[other])
    while True:
        size = len(found)
        for kind in range(len(_KEYS)):
            keys = {**old.taken_changes(kind), **new.taken_changes(kind)}
            pairs = [(old.only(kind, key), new.only(kind, key)) for key in keys]
            known = [(o, n) for o, n in pairs if o is not None and n is not None]
            for node, other in sorted(known, key=lambda pair: places[pair[0]]):
                found[node] = other
                taken.add(other)
                old.settle(node, numbers[other])
                new.settle(other, numbers[other])
                merged.settle(node, other, old, new, numbers[other])
        if len(found) == size:
            return


def _by_operands(node: Node, numbers: Mapping[Node, int]) -> Hashable:
    # The same weight in the same place, with any readers of the result.
    if not any(isinstance(each, str) and "." in each for each in node.operands):
        return None
    return (
        node.callee,
        tuple(e if isinstance(e, str) else numbers[e] for e in node.operands),
    )


def _by_operands_and_readers(node: Node, numbers: Mapping[Node, int]) -> Hashable:
    if not node.operands:
        return None
    around = tuple(_root(e) if isinstance(e, str) else numbers[e] for e in node.operands)
    return node.callee, around, _uses(node)


def _by_users(node: Node, numbers: Mapping[Node, int]) -> Hashable:
    if not node.users:
        return None
    return (node.callee, *sorted((numbers[user], index) for user, index in node.users))


_KEYS = ((_by_operands, False), (_by_operands_and_readers, False), (_by_users, True))
"""Keys of nodes, most reliable first, and whether they are of users instead of operands."""


class _KeyedNodes:
    """Unmatched calls of one program, by keys of their neighbours.

    A key is computed once, when the last neighbour that it depends on is matched, and then stays
    valid.
    """

    def __init__(
        self, nodes: Sequence[Node], numbers: dict[Node, int], doubtful: Container[Node]
    ) -> None:
        self._numbers = numbers
        """Matched calls, with the same numbers in both programs."""
        self._ambiguous_chains = doubtful
        self._waiting: dict[tuple[Node, bool], int] = {}
        """Numbers of unmatched operands, or users."""
        self._by_key: list[dict[Hashable, dict[Node, None]]] = [{} for _ in _KEYS]
        self._changed: list[dict[Hashable, None]] = [{} for _ in _KEYS]
        for node in nodes:
            self._waiting[node, False] = sum(
                isinstance(each, Node) and each not in numbers for each in node.operands
            )
            self._waiting[node, True] = sum(user not in numbers for user, _ in node.users)
            self._add(node, of_users=False)
            self._add(node, of_users=True)

    def __contains__(self, node: Node) -> bool:
        return node in self._numbers

    def taken_changes(self, kind: int) -> dict[Hashable, None]:
        """Returns and clears the keys whose calls changed."""
        found, self._changed[kind] = self._changed[kind], {}
        return found

    def only(self, kind: int, key: Hashable) -> Node | None:
        """The only call with a key, None if there are none or several."""
        nodes = self._by_key[kind].get(key, {})
        return next(iter(nodes)) if len(nodes) == 1 else None

    def settle(self, node: Node, number: int) -> None:
        """Records a matched call."""
        for kind, (make, of_users) in enumerate(_KEYS):
            if not self._waiting[node, of_users] and node not in self._ambiguous_chains:
                key = make(node, self._numbers)
                if key is not None:
                    del self._by_key[kind][key][node]
                    self._changed[kind][key] = None
        self._numbers[node] = number
        for user, _ in node.users:
            self._found_neighbour(user, of_users=False)
        for each in node.operands:
            if isinstance(each, Node):
                self._found_neighbour(each, of_users=True)

    def _found_neighbour(self, node: Node, of_users: bool) -> None:
        self._waiting[node, of_users] -= 1
        self._add(node, of_users)

    def _add(self, node: Node, of_users: bool) -> None:
        if self._waiting[node, of_users] or node in self._numbers or node in self._ambiguous_chains:
            return
        for kind, (make, reads_users) in enumerate(_KEYS):
            if reads_users is of_users:
                key = make(node, self._numbers)
                if key is not None:
                    self._by_key[kind].setdefault(key, {})[node] = None
                    self._changed[kind][key] = None


class _MergedActivations:
    """Activations that only one of two programs calls: in the other one they are part of the call
    before, whose readers are theirs."""

    def __init__(self, before: Sequence[Node], now: Sequence[Node]) -> None:
        old, new = (Counter(node.callee for node in nodes) for nodes in (before, now))
        activations = {each for each in old | new if call_has_trait(each, Trait.ACTIVATES)}
        self._gone = {each for each in activations if new[each] < old[each]}
        self._added = {each for each in activations if old[each] < new[each]}
        for nodes, kinds in ((before, self._gone), (now, self._added)):
            for node in nodes:
                node.is_merged = node.callee in kinds

    def settle(
        self, node: Node, other: Node, old: _KeyedNodes, new: _KeyedNodes, number: int
    ) -> None:
        """Gives activations after a matched call, which the other program does not call, the
        number of that call."""
        for one, another, keyed, kinds in (
            (node, other, old, self._gone),
            (other, node, new, self._added),
        ):
            there = {user.callee for user, _ in another.users}
            for user, _ in one.users:
                if user.callee in kinds and user.callee not in there and user not in keyed:
                    keyed.settle(user, number)


def _root(variable: str) -> str:
    """Root variable of a member path."""
    return variable.partition(".")[0]


def _colours(nodes: Sequence[Node], rounds: int) -> dict[Node, int]:
    """Weisfeiler-Lehman colours: equal for nodes with equal neighbourhoods of radius `rounds`."""
    colours = _numbered({node: node.callee for node in nodes})
    for _ in range(rounds):
        around: dict[Node, Hashable] = {}
        for node in nodes:
            made = tuple(_root(e) if isinstance(e, str) else colours[e] for e in node.operands)
            read = tuple(sorted((colours[user], index) for user, index in node.users))
            around[node] = colours[node], made, read
        colours = _numbered(around)
    return colours


def _numbered(keys: Mapping[Node, Hashable]) -> dict[Node, int]:
    """Numbers keys: equal numbers for equal keys."""
    numbers: dict[Hashable, int] = {}
    return {node: numbers.setdefault(key, len(numbers)) for node, key in keys.items()}


def makes(nodes: Sequence[Node], group: ReplacedCalls) -> bool:
    """Returns whether a program makes the user's calls itself, as an override has it."""
    names = {op.name for op in group.ops[-1:]}
    wanted = [
        (each.call.callee.rpartition("::")[2], len(each.variables))
        for each in group.after
        if each.call
    ]
    for node in nodes:
        if not node.names & names or _form(node) != wanted[-1]:
            continue
        found, waiting = {node: None}, [node]
        while waiting:
            for each in waiting.pop().operands:
                if isinstance(each, Node) and _form(each) in wanted and each not in found:
                    found[each] = None
                    waiting.append(each)
        if not Counter(wanted) - Counter(map(_form, found)):
            return True
    return False


def _form(node: Node) -> tuple[str, int]:
    """Callee of a call, and the number of its operands."""
    return node.callee, len(node.operands)


def applying_call(nodes: Sequence[Node], group: ReplacedCalls, source: Node | None) -> Node | None:
    """Call that applies the activation by itself that the user made by other calls.

    Args:
        nodes: the calls of the program.
        group: the user's calls.
        source: the call of the program that makes what the activation was of.
    """
    (*others, last) = group.before
    if others or last.call is None:
        return None
    activation = f'"{last.call.callee.rpartition("::")[2]}"'
    names = {op.name for op in group.ops}
    found = [
        node
        for node in nodes
        if (node is source or node.names & names)
        and any((o.label, o.text) == ("activation", activation) for o in node.call.options)
    ]
    return found[0] if len(found) == 1 else None
