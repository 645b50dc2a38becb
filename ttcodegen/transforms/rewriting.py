"""Rewrite drivers: single walk, worklist of local patterns, and rebuilding of functions."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Block, Operation, OpResult, SSAValue

from ttcodegen.dialects.operations.functions import body_of
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.naming.sources import name_intermediates, name_replacement
from ttcodegen.ops.core.builder import OpBuilder
from ttcodegen.ops.core.definition import TTIRDefinition, TTNNDefinition
from ttcodegen.ops.dialects import ttir_op_classes

# Drivers of the TTIR passes: a single walk, or local patterns until none applies.
#
# Both run in time linear in the number of ops and rewrites. Replacements inherit the location,
# the position in the source text and the result name of the replaced op. Ops that write an
# operand in place (`in_place`) are not moved, and no reader of such an operand moves across
# them.

Replacement = SSAValue | Sequence[SSAValue]
Rule = Callable[["Rewriter", CatalogueOp], Replacement | None]
"""Returns the replacements for the results of the op, or None to keep it.

A rule may create ops through the rewriter but modifies no existing op.
"""


def functions(module: ModuleOp) -> list[FuncOp]:
    """Returns the functions of a module, in order."""
    return [op for op in module.body.block.ops if isinstance(op, FuncOp)]


def function_blocks(function: FuncOp) -> list[Block]:
    """Returns the blocks of a function; none for a declaration."""
    return list(function.body.blocks)


# Cached by class: checks against abstract classes are slow, and there are few op classes.
@cache
def _overwrites(op_class: type[Operation]) -> bool | None:
    """Returns whether ops of a class overwrite an operand; None for ops of no catalogue."""
    if not issubclass(op_class, CatalogueOp):
        return None
    return op_class.definition.in_place is not None


def is_pure(op: Operation) -> bool:
    """Returns whether the op has no effect but its results, so that it is dead if they are
    unused."""
    return _overwrites(type(op)) is False and len(op.results) > 0


def is_unused(op: Operation) -> bool:
    """Returns whether the op is pure and its results are unused."""
    return is_pure(op) and all([result.first_use is None for result in op.results])


def is_repeatable(op: Operation) -> bool:
    """Returns whether equal operands give equal results, so that equal ops can be merged."""
    if not isinstance(op, CatalogueOp) or not is_pure(op):
        return False
    definition = op.definition
    if isinstance(definition, TTNNDefinition):
        return definition.pure
    return not isinstance(definition, TTIRDefinition) or not definition.draws


def set_type(value: SSAValue, type_: Attribute) -> None:
    """Changes the type of a value without visiting its users.

    xDSL has no public way that keeps the value and its users in place.
    """
    value._type = type_  # pyright: ignore[reportPrivateUsage]


def erase(op: Operation) -> None:
    """Erases an op whose results are unused from its block."""
    assert op.parent is not None
    op.parent.erase_op(op)


class InPlaceWrites:
    """In-place writes of a block, by epoch.

    Epoch n of an op means that n overwriting ops come before it; the n-th overwriting op ends epoch
    n. A value that no op overwrites costs nothing.
    """

    def __init__(self, block: Block) -> None:
        self._epochs: dict[Operation, int] = {}
        self._writes: dict[SSAValue, list[int]] = {}
        self._buffers: dict[SSAValue, SSAValue] = {}
        epoch = 0
        for op in block.ops:
            if not _overwrites(type(op)):
                continue
            assert isinstance(op, CatalogueOp)
            assert op.definition.in_place is not None
            buffer = self._buffer(op.operand(op.definition.in_place))
            self._writes.setdefault(buffer, []).append(epoch)
            for result in op.results:
                self._buffers[result] = buffer
            epoch += 1
        if epoch:
            self._number(block)

    def _number(self, block: Block) -> None:
        epoch = 0
        for op in block.ops:
            self._epochs[op] = epoch
            if _overwrites(type(op)):
                epoch += 1

    def _buffer(self, value: SSAValue) -> SSAValue:
        return self._buffers.get(value, value)

    def overwrites(self, value: SSAValue) -> bool:
        """Returns whether an op of the block overwrites a value."""
        return self._buffer(value) in self._writes

    def insert(self, op: Operation, before: Operation) -> None:
        """Records an op inserted before another."""
        if self._writes:
            self._epochs[op] = self._epochs[before]

    def may_recompute(self, op: Operation, at: Operation) -> bool:
        """Returns whether `op`, moved down to the op `at`, would read the same operand contents."""
        if not self._writes:
            return True
        begin, end = self._epochs[op], self._epochs[at]
        return all(
            begin == end or self.version(operand, begin) == self.version(operand, end)
            for operand in op.operands
        )

    def may_read_later(self, value: SSAValue, at: Operation) -> bool:
        """Returns whether `value` is not overwritten after the op `at`."""
        writes = self._writes.get(self._buffer(value))
        return not writes or self.version(value, self._epochs[at]) == len(writes)

    def version(self, value: SSAValue, epoch: int) -> int:
        """Counts the writes to a value before an epoch."""
        writes = self._writes.get(self._buffer(value))
        return bisect_left(writes, epoch) if writes else 0

    def versions(self, op: Operation) -> tuple[int, ...]:
        """Counts the writes to each operand before an op; empty if there are none."""
        if not self._writes:
            return ()
        return tuple(self.version(operand, self._epochs[op]) for operand in op.operands)


class Rewriter(OpBuilder):
    """Builder that inserts TTIR ops before the root of a rule, and finds defining ops."""

    def __init__(self, block: Block) -> None:
        super().__init__(ttir_op_classes(), self._insert_before_root)
        self.writes = InPlaceWrites(block)
        self.made: list[Operation] = []
        self._root: CatalogueOp | None = None

    def start(self, root: CatalogueOp) -> None:
        """Makes `root` the op that the rule matches."""
        self._root = self.origin = root
        self.made = []

    @property
    def root(self) -> CatalogueOp:
        """Returns the op that the rule matches."""
        assert self._root is not None
        return self._root

    def _insert_before_root(self, op: Operation) -> None:
        root = self.root
        assert root.parent is not None
        root.parent.insert_op_before(op, root)
        self.writes.insert(op, root)
        self.made.append(op)

    def defining(self, value: SSAValue, *names: str) -> CatalogueOp | None:
        """Returns the op that defines `value`, if it has one of the names (any if none is given).

        None also if one of its operands is overwritten between it and the root: ops made at the
        root may use the operands of the returned op.
        """
        if type(value) is not OpResult:
            return None
        op = value.op
        if (names and op.name not in names) or not isinstance(op, CatalogueOp):
            return None
        return op if self.writes.may_recompute(op, self.root) else None

    def sole(self, value: SSAValue, *names: str) -> CatalogueOp | None:
        """Returns the defining op like `defining`, but only if `value` has one use, so that it may
        be fused."""
        return self.defining(value, *names) if value.has_one_use() else None

    def again(
        self,
        op: CatalogueOp,
        operands: Sequence[SSAValue],
        result: Attribute | None = None,
        **attributes: Any,
    ) -> SSAValue:
        """Clones an op with one result at the root, with other operands (the same number).

        `result` replaces its result type, `attributes` some of its attributes.
        """
        properties = dict(op.properties)
        discardable = dict(op.attributes)
        for key, value in attributes.items():
            discardable.pop(key, None)
            properties[key] = op.definition.attribute(key).kind.encode(value)
        made = type(op).create(
            operands=operands,
            result_types=[result or op.results[0].type],
            properties=properties,
            attributes=discardable,
            location=self.root.location,
        )
        made.source_offset = self.root.source_offset
        self._insert_before_root(made)
        return made.results[0]

    def finish(self, replacement: Replacement) -> bool:
        """Replaces the root's results by the values and erases the root; returns whether it did.

        Refuses if one of the values is overwritten later: users of the result need the old
        contents.
        """
        values = [replacement] if isinstance(replacement, SSAValue) else list(replacement)
        root = self.root
        assert len(values) == len(root.results)
        if not all(self.writes.may_read_later(value, root) for value in values):
            self.discard()
            return False
        for old, new in zip(root.results, values, strict=True):
            old.replace_all_uses_with(new)
        erase(root)
        return True

    def discard(self) -> None:
        """Erases the ops made since `start`."""
        for op in reversed(self.made):
            erase(op)
        self.made = []


def rewrite_each(function: FuncOp, rule: Rule, wants: Callable[[CatalogueOp], bool]) -> bool:
    """Applies `rule` in order to every op that `wants` accepts, also to the ops that it makes.

    Returns whether anything changed. Raises RecursionError if a rule keeps making ops that it
    rewrites.
    """
    changed = False
    for block in function_blocks(function):
        rewriter = Rewriter(block)
        depth: dict[Operation, int] = {}
        op = block.first_op
        while op is not None:
            following = op.next_op
            if isinstance(op, CatalogueOp) and wants(op):
                rewriter.start(op)
                level = depth.pop(op, 0) + 1
                if level > _DEPTH_LIMIT:
                    raise RecursionError(f"rewriting {op.name} never ends")
                replacement = rule(rewriter, op)
                if replacement is None:
                    assert not rewriter.made
                else:
                    made = rewriter.made
                    if rewriter.finish(replacement):
                        changed = True
                        depth.update((new, level) for new in made)
                        following = made[0] if made else following
            op = following
    return changed


_DEPTH_LIMIT = 32
_REWRITES_PER_OP = 100


@dataclass
class PatternSet:
    """Rules by the names of their root ops."""

    rules: dict[str, list[Rule]] = field(default_factory=dict[str, list[Rule]])

    def on(self, *names: str) -> Callable[[Rule], Rule]:
        """Registers a rule for root ops of these names; earlier rules are tried first."""

        def add(rule: Rule) -> Rule:
            for name in names:
                self.rules.setdefault(name, []).append(rule)
            return rule

        return add

    @staticmethod
    def union(*sets: PatternSet) -> PatternSet:
        """Merges several sets; rules of earlier ones are tried first."""
        result = PatternSet()
        for patterns in sets:
            for name, rules in patterns.rules.items():
                result.rules.setdefault(name, []).extend(rules)
        return result

    def apply(self, function: FuncOp, start: Iterable[Operation] | None = None) -> bool:
        """Applies the rules until none applies, and erases ops whose results are unused.

        Starts from all ops or from `start`, and revisits what changes. Returns whether anything
        changed.
        """
        first = None if start is None else set(start)
        changed = [_Worklist(self.rules, block, first).run() for block in function_blocks(function)]
        return any(changed)


class _Worklist:
    """Ops to visit because they or their neighbours changed."""

    def __init__(
        self, rules: dict[str, list[Rule]], block: Block, first: set[Operation] | None
    ) -> None:
        self._rules = rules
        self._rewriter = Rewriter(block)
        self._stack = [op for op in block.ops if first is None or op in first]
        self._stack.reverse()
        self._waiting = set(self._stack)
        self._budget = _REWRITES_PER_OP * (len(self._stack) + 1000)

    def run(self) -> bool:
        changed = False
        while self._stack:
            op = self._stack.pop()
            if op not in self._waiting:
                continue
            self._waiting.discard(op)
            if is_unused(op):
                self._erase(op)
                changed = True
            elif (rules := self._rules.get(op.name)) is not None and isinstance(op, CatalogueOp):
                changed |= self._rewrite(op, rules)
        return changed

    def _rewrite(self, op: CatalogueOp, rules: list[Rule]) -> bool:
        rewriter = self._rewriter
        rewriter.start(op)
        for rule in rules:
            replacement = rule(rewriter, op)
            if replacement is None:
                if rewriter.made:
                    rewriter.discard()
                continue
            users = [use.operation for result in op.results for use in result.uses]
            operands = list(op.operands)
            made = rewriter.made
            if not rewriter.finish(replacement):
                continue
            self._budget -= 1
            if self._budget < 0:
                raise RecursionError(f"the rules for {op.name} never settle")
            # The stack is last in, first out: producers are visited before their users.
            for user in users:
                self._push(user)
            for new in reversed(made):
                self._push(new)
            self._push_owners(operands)
            return True
        return False

    def _push(self, op: Operation) -> None:
        if op not in self._waiting:
            self._waiting.add(op)
            self._stack.append(op)

    def _push_owners(self, values: Sequence[SSAValue]) -> None:
        for value in values:
            if value.first_use is None and isinstance(value.owner, CatalogueOp):
                self._push(value.owner)

    def _erase(self, op: Operation) -> None:
        operands = list(op.operands)
        erase(op)
        self._push_owners(operands)


def erase_dead(function: FuncOp) -> bool:
    """Erases the ops whose results are unused, last first; returns whether there were any."""
    changed = False
    for block in function_blocks(function):
        op = block.last_op
        while op is not None:
            preceding = op.prev_op
            if is_unused(op):
                erase(op)
                changed = True
            op = preceding
    return changed


# Rebuilding of a function's body in one linear walk.


def rebuild(
    function: FuncOp,
    builder_of: Callable[[Callable[[Operation], None], dict[SSAValue, SSAValue]], OpBuilder],
    rewrite: Callable[[OpBuilder, CatalogueOp], SSAValue | Sequence[SSAValue]],
    rewrite_other: Callable[[OpBuilder, Operation], None] | None = None,
) -> None:
    """Replaces every catalogue op of a function by the result of `rewrite`.

    `rewrite` may insert the op itself, modified in place, which is cheaper than a new op. Other ops
    (return, calls, loops) are kept with their operands mapped, unless `rewrite_other` inserts them.
    A replacement without a name inherits that of the replaced value.
    """
    block = body_of(function)
    made: list[Operation] = []
    mapping: dict[SSAValue, SSAValue] = {}
    builder = builder_of(made.append, mapping)
    old = list(block.ops)
    for op in old:
        builder.origin = op
        if isinstance(op, CatalogueOp):
            start = len(made)
            values = rewrite(builder, op)
            if isinstance(values, SSAValue):
                values = (values,)
            for result, value in zip(op.results, values, strict=True):
                mapping[result] = value
                name_replacement(value, result)
            name_intermediates(made[start:], op)
        elif rewrite_other is not None:
            rewrite_other(builder, op)
        else:
            keep(builder, op, [builder[value] for value in op.operands])
    kept = set(made)
    for op in reversed(old):
        op.detach()
        if op not in kept:
            op.drop_all_references()
    block.add_ops(made)


def keep(builder: OpBuilder, op: Operation, operands: Sequence[SSAValue]) -> None:
    """Inserts an op of the function itself, with these operands."""
    if any([new is not old for new, old in zip(operands, op.operands, strict=True)]):
        op.operands = operands
    builder.insert(op)
