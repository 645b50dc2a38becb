"""Finds the calls of a program again in one that was generated from a changed model.

A call is found by the name of its op where the model gave it one, else by its place among its
neighbours: what it calls, what makes its operands, and who reads its result.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from ttcodegen.emission.op_lines import LoweredOp, OpLines
from ttcodegen.project.tuning.decisions import OpIndex
from ttcodegen.project.tuning.statements import Call, Statement, statements

_ROUNDS = 4
"""Largest distance from a call, in calls, at which its neighbours are compared."""


@dataclass(eq=False)
class Node:
    """A call of a program, with its neighbours."""

    path: str
    statement: Statement
    ops: tuple[LoweredOp, ...]
    operands: list[Node | str] = field(default_factory=list["Node | str"])
    """The producer of each operand: a call, or the variable that it comes from."""
    users: list[tuple[Node, int]] = field(default_factory=list[tuple["Node", int]])
    """The calls that read the result, and as which operand."""

    @property
    def call(self) -> Call:
        """The call of the statement."""
        assert self.statement.call is not None
        return self.statement.call

    @property
    def callee(self) -> str:
        """The function that is called, without its namespace."""
        return self.call.callee.rpartition("::")[2]

    @property
    def names(self) -> frozenset[str]:
        """The names that the model gave its ops; those that follow from the kind of op do not
        count."""
        kinds = {self.callee, "matmul", "reshape", "permute", "add", "multiply", "concat"}
        return frozenset(op.name for op in self.ops if op.name.partition("#")[0] not in kinds)


def program(texts: Mapping[str, str], ops: Iterable[OpLines]) -> list[Node]:
    """The calls of the files of a program, in their order."""
    known = list(ops)
    nodes: list[Node] = []
    for path in sorted(texts):
        if not path.endswith(".cpp"):
            continue
        index_of_ops = OpIndex(texts[path], known, path)
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
    return nodes


def matched(before: Sequence[Node], now: Sequence[Node]) -> dict[Node, Node]:
    """The calls of `before` that are still there, with what they are in `now`; a call in doubt is
    not among them."""
    found: dict[Node, Node] = {}
    taken: set[Node] = set()
    doubtful = _doubtful(before, now)

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
        # The variable of a call is named after the value in the model.
        return (target, node.callee, _uses(node)) if target and node.names else None

    def by_variable_alone(node: Node) -> Hashable | None:
        target = node.statement.target
        return (node.statement.function, target, node.callee) if target and node.names else None

    pair_up(by_name)
    pair_up(by_variable)
    pair_up(by_variable_alone)
    _by_neighbours(before, now, found, taken, doubtful)

    def by_kind(node: Node) -> Hashable | None:
        # The only call of its kind, beside one that is still there.
        known = found.keys() if node in olds else taken
        around = [*node.operands, *(user for user, _ in node.users)]
        return node.callee if any(each in known for each in around) else None

    olds = set(before)
    for rounds in range(_ROUNDS, 1, -1):
        colours = _colours([*before, *now], rounds)
        if pair_up(lambda node, c=colours: None if node in doubtful else c[node]):
            _by_neighbours(before, now, found, taken, doubtful)
    single = _single_kinds(before) & _single_kinds(now)
    if pair_up(lambda node: by_kind(node) if node.callee in single else None):
        _by_neighbours(before, now, found, taken, doubtful)
    return found


def _single_kinds(nodes: Sequence[Node]) -> set[str]:
    """The functions that a program calls once."""
    return {name for name, count in Counter(node.callee for node in nodes).items() if count == 1}


def _unique(
    nodes: Sequence[Node],
    key: Callable[[Node], Hashable | None],
    done: Container[Node],
) -> dict[Hashable, Node]:
    """The nodes whose key no other has, by it."""
    keys = [(key(node), node) for node in nodes if node not in done]
    counts = Counter(value for value, _ in keys)
    return {value: node for value, node in keys if value is not None and counts[value] == 1}


def _uses(node: Node) -> tuple[tuple[str, int], ...]:
    return tuple(sorted((user.callee, index) for user, index in node.users))


def _doubtful(before: Sequence[Node], now: Sequence[Node]) -> set[Node]:
    """Calls in a row of the same kind where there are more or fewer of it now: any of them may be
    the one that is new, or gone."""
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
) -> None:
    """Finds calls whose operands, and the readers of whose results, were found."""
    numbers = {node: index for index, node in enumerate(now)}

    def of_old(each: Node | str) -> Hashable | None:
        if isinstance(each, str):
            return each
        other = found.get(each)
        return None if other is None else numbers[other]

    def of_new(each: Node | str) -> Hashable | None:
        return each if isinstance(each, str) else numbers[each] if each in taken else None

    def by_operands(node: Node, seen: _Seen) -> Hashable:
        # The same weight in the same place, with any readers of the result.
        if not any(isinstance(each, str) and "." in each for each in node.operands):
            return None
        around = tuple(seen(each) for each in node.operands)
        return None if None in around else (node.callee, around)

    def by_operands_and_readers(node: Node, seen: _Seen) -> Hashable:
        around = tuple(_root(e) if isinstance(e, str) else seen(e) for e in node.operands)
        return None if None in around or not around else (node.callee, around, _uses(node))

    def by_users(node: Node, seen: _Seen) -> Hashable:
        around = [(seen(user), index) for user, index in node.users]
        if not around or any(number is None for number, _ in around):
            return None
        return (node.callee, *sorted(around, key=repr))

    while True:
        size = len(found)
        for key in (by_operands, by_operands_and_readers, by_users):
            old = _unique(before, lambda n, k=key: None if n in doubtful else k(n, of_old), found)
            new = _unique(now, lambda n, k=key: None if n in doubtful else k(n, of_new), taken)
            for value, node in old.items():
                other = new.get(value)
                if other is not None:
                    found[node] = other
                    taken.add(other)
        if len(found) == size:
            return


_Seen = Callable[["Node | str"], Hashable | None]
"""Identity of a neighbour in both programs: its number, or its variable; None if unmatched."""


def _root(variable: str) -> str:
    """The structure that a variable is in."""
    return variable.partition(".")[0]


def _colours(nodes: Sequence[Node], rounds: int) -> dict[Node, int]:
    """Numbers of nodes, equal where everything within that many calls around them is."""
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
    """Equal numbers for equal keys."""
    numbers: dict[Hashable, int] = {}
    return {node: numbers.setdefault(key, len(numbers)) for node, key in keys.items()}
