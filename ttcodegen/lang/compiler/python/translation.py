"""Translation of Python kernels to device kernels, statement by statement.

Values that are known at compile time are computed by Python. Loops, conditions and numbers that
depend on the node or on a loop become those of the device kernel. User functions are inlined.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from xdsl.ir import SSAValue

from ttcodegen.dialects.ttkernel.builder import KernelBuilder
from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.lang.compiler.python.calls import Signpost
from ttcodegen.lang.compiler.python.captured import Captured, stored_names
from ttcodegen.lang.compiler.python.evaluation import UNKNOWN, Undecided, is_below, is_known
from ttcodegen.lang.compiler.python.merging import in_grid
from ttcodegen.lang.compiler.python.numbers import (
    Condition,
    Number,
    is_condition,
    is_number,
    joined,
)
from ttcodegen.lang.compiler.python.pipe_nets import NetUses, covered
from ttcodegen.lang.compiler.python.rewriting import has_breaks, has_continue, with_choice
from ttcodegen.lang.compiler.python.variable_translation import (
    VariableTranslator,
    cpp_name,
)
from ttcodegen.lang.compiler.python.variables import (
    CountingLoop,
    KernelRange,
    LocalFunction,
    Loop,
    Returned,
    Variable,
    counting_loop,
    element_of,
    is_kernel_sequence,
    length_of,
)
from ttcodegen.lang.simulator import context
from ttcodegen.lang.simulator.buffers import DataflowBuffer
from ttcodegen.lang.simulator.context import Coordinates, Kernel
from ttcodegen.lang.simulator.functions import ONLY_WITH
from ttcodegen.lang.simulator.locations import ProgramError
from ttcodegen.lang.simulator.operations import REFUSED_STATEMENTS, no_statement, returned_value
from ttcodegen.lang.simulator.shapes import is_tuple
from ttcodegen.lang.simulator.spelling import in_language

MAX_GROUPS = 8
"""Maximum number of node groups with different tensors or buffers, each with its own code."""
MAX_UNROLLED = 1_000
"""Maximum number of iterations of a `while` loop that is unrolled."""
_STATEMENT_NAMES: dict[type[ast.AST], str] = {
    **REFUSED_STATEMENTS,
    ast.Raise: "raise",
    ast.Global: "global",
}
"""Source words of statements that kernels do not support."""
_MISSING = object()
_PYTHON_ERRORS = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)


class KernelTranslator(VariableTranslator):
    """Translates statements; subclasses translate what is specific to a kind of kernel."""

    def __init__(
        self, kernel: Kernel, captured: Captured, builder: KernelBuilder, nets: NetUses
    ) -> None:
        super().__init__(kernel, captured, builder, nets)
        self._last_region = 0

    @property
    def is_conditional(self) -> bool:
        return bool(self.regions)

    # Statements

    def kernel_body(self) -> None:
        """Translates the whole kernel."""
        with context.inside_of(self.kernel):
            groups = self.frame.captured.groups()
            if len(groups) > MAX_GROUPS:
                names = " and ".join(f"'{name}'" for name in groups[0][0])
                self.refuse(
                    f"the nodes have {len(groups)} different tensors or dataflow buffers in "
                    f"{names}: the kernel would have a part for each, more than {MAX_GROUPS}",
                    self.frame.syntax,
                )
            self._translate_groups(groups)

    def _translate_groups(self, groups: Sequence[tuple[dict[str, Any], list[Coordinates]]]) -> None:
        """Translates the kernel once for each group of nodes with the same tensors and buffers."""
        (held, nodes), *others = groups
        body, names = self.frame.body, [*held]
        if not others:
            self._translate_nodes(held)
            return
        grid = self.kernel.node.launch.grid
        size = (grid[0], grid[1] if len(grid) > 1 else 1)
        parts = [
            each.holds((self.column, self.row), size) for each in covered([*map(in_grid, nodes)])
        ]
        condition = joined(parts, needs_all=False)
        assert is_condition(condition)
        holds = self.arithmetic.condition(condition)
        with (
            self.scope([*names, *stored_names(body)]),
            self.builder.when(holds),
            self.arithmetic.assuming(condition),
        ):
            self._translate_nodes(held)
        with self.scope([*names, *stored_names(body)]), self.builder.otherwise():
            self._translate_groups(others)

    def _translate_nodes(self, held: dict[str, Any]) -> None:
        """Translates the kernel for nodes with given tensors and dataflow buffers."""
        made = next(iter(self.kernel.node.launch.nodes.values())).made.of(DataflowBuffer)
        frame = self.frame
        frame.names.clear()
        frame.names |= {
            name: made[value.number] if isinstance(value, DataflowBuffer) else value
            for name, value in held.items()
        }
        frame.rest, frame.regions = frame.body, len(self.regions)
        try:
            self.inside(frame.rest)
        except Returned as ending:
            if ending.value is not None:
                raise returned_value(self.kernel) from None

    def body(self, statements: Sequence[ast.stmt]) -> None:
        """Translates a sequence of statements."""
        for number, statement in enumerate(statements):
            self.here = statement
            with self._located_errors(statement):
                if self._is_early_exit(statement, statements):
                    self._early_exit(statement, statements[number + 1 :])
                    return
                try:
                    self.statement(statement)
                except Undecided as undecided:
                    branches = self._branches(statement, undecided)
                    if branches is None:
                        raise
                    self._if(undecided.condition, *branches)

    def _branches(
        self, statement: ast.stmt, undecided: Undecided
    ) -> tuple[list[ast.stmt], list[ast.stmt]] | None:
        """Duplicates a statement with `a if test else b`, once with each value.

        None if the undecided expression is not a part of the statement.
        """
        is_simple = isinstance(statement, ast.Expr | ast.Assign | ast.AnnAssign | ast.AugAssign)
        if undecided.frame is not self.frame or not is_simple:
            return None
        body, orelse = (with_choice(statement, undecided.test, which) for which in (True, False))
        return None if body is None or orelse is None else ([body], [orelse])

    @contextmanager
    def _located_errors(self, statement: ast.stmt) -> Generator[None]:
        """Reports errors of a statement at its line."""
        try:
            yield
        except CompileError as error:
            (diagnostic,) = error.diagnostics
            # Rules shared with the simulator do not know the location in the kernel.
            if isinstance(error, ProgramError) or diagnostic.place is None:
                self.refuse(in_language(diagnostic.message), remedy=diagnostic.remedy)
            raise
        except _PYTHON_ERRORS as error:
            # Raised by compile-time evaluation in Python.
            text = in_language(str(error))
            self.refuse(f"this raises {type(error).__name__}: {text}", statement)

    def statement(self, node: ast.stmt) -> None:
        """Translates a statement."""
        match node:
            case ast.Pass() | ast.Expr(ast.Constant()):
                pass
            case ast.Delete(targets):
                for target in targets:
                    if not isinstance(target, ast.Name):
                        self.refuse("kernels delete variables only", target)
                    self.names.pop(target.id, None)
            case ast.Nonlocal(names):
                for name in names:
                    self.declare_outer(name, node)
            case ast.Expr(value):
                if isinstance(self.value(value), Signpost):
                    self.refuse(ONLY_WITH)
            case ast.Assign(targets, value):
                found = self.value(value)
                for target in targets:
                    self.bind(target, found)
            case ast.AnnAssign(target, _, value) if value is not None:
                self.bind(target, self.value(value))
            case ast.AugAssign(target, operator, value):
                self._augmented(target, type(operator).__name__, value, node)
            case ast.For(target, iterated, body, orelse):
                self._for(target, iterated, body, node)
                self.body(orelse)
            case ast.While(orelse=orelse):
                self._while(node)
                self.body(orelse)
            case ast.If(test, body, orelse):
                self._if(self.test(test), body, orelse)
            case ast.With(items, body):
                self._with(items, body, node)
            case ast.FunctionDef(name, arguments):
                self.store_name(name, LocalFunction(node, self.frame, self.defaults(arguments)))
            case ast.Return(value):
                self._return(value, node)
            case ast.Assert(test):
                found = self.test(test)
                if is_condition(found):
                    self.leave_out("the assertion: the simulator makes it", node)
                elif not found:
                    self.refuse("this assertion fails", node)
            case ast.Import(modules):
                for each in modules:
                    module = import_module(each.name)
                    name, _, rest = each.name.partition(".")
                    held = import_module(name) if rest and not each.asname else module
                    self.store_name(each.asname or name, held)
            case ast.ImportFrom(str(name), modules, 0):
                for each in modules:
                    found = getattr(import_module(name), each.name)
                    self.store_name(each.asname or each.name, found)
            case ast.Break() | ast.Continue():
                word = type(node).__name__.lower()
                self.refuse(
                    f"the compiler takes '{word}' in conditions and with statements of loops only",
                    node,
                )
            case ast.Match():
                self.refuse(
                    "a kernel matches numbers, and tuples of them, with values, | and names only",
                    node,
                )
            case _:
                word = _STATEMENT_NAMES.get(type(node), type(node).__name__)
                self.refuse(no_statement(word), node)

    def bind(self, target: ast.expr, value: Any) -> None:
        match target:
            case ast.Name(name):
                self.store_name(name, value)
            case ast.Tuple(names) if is_tuple(value) and len(names) == len(value):
                for each, part in zip(names, value, strict=True):
                    self.bind(each, part)
            case _:
                self.refuse("the compiler assigns to names and tuples of names only", target)

    def _augmented(self, target: ast.expr, symbol: str, value: ast.expr, node: ast.stmt) -> None:
        if not isinstance(target, ast.Name):
            self.refuse("the compiler assigns to names and tuples of names only", target)
        old = self.name(target.id, node)
        self.update(target.id, old, symbol, self.binary(symbol, old, self.value(value), node))

    @contextmanager
    def scope(self, names: Sequence[str]) -> Generator[None]:
        """Scope of code that runs on some nodes only, or repeatedly.

        After it, variables in `names` are unknown unless their values survive.
        """
        before = dict(self.names)
        outer = self.regions
        self._last_region += 1
        self.regions = (*outer, self._last_region)
        yield
        self.regions = outer
        for name in names:
            if name in self.names:
                kept = before.get(name, _MISSING)
                is_new = kept is _MISSING and not is_known(self.names[name])
                changed = kept is not _MISSING and self.names[name] is not kept
                if is_new or (changed and not self.survives(name, kept)):
                    self.names[name] = UNKNOWN

    def _for(
        self, target: ast.expr, iterated: ast.expr, body: Sequence[ast.stmt], node: ast.stmt
    ) -> None:
        match target, iterated:
            case ast.Name(name), ast.Call(ast.Name("range") as called, limits, []) if (
                self.value(called) is range
            ):
                found = [self.value(limit) for limit in limits]
                if not all(isinstance(each, int) for each in found) or len(range(*found)) > 1:
                    self._range(name, found, body, node)
                    return
                values: list[Any] = list(range(*found))
            case _:
                sequence = self.value(iterated)
                if is_kernel_sequence(sequence):
                    self._device_for(target, sequence, body, node)
                    return
                values = self.known_sequence(sequence, iterated)
        for number, value in enumerate(values, 1):
            self.bind(target, value)
            with self._iteration(body, is_repeated=number < len(values)):
                self.body(body)
            self.here = node

    def _while(self, node: ast.While) -> None:
        """Translates a `while` loop: to a counting loop, by unrolling, or with a condition."""
        counting = counting_loop(node)
        if counting is not None and is_number(self.name(counting.name, node)):
            self._count_loop(counting, node)
            return
        for _ in range(MAX_UNROLLED):
            if is_condition(self.test(node.test)) or has_breaks(node) or has_continue(node.body):
                self._device_while(node)
                return
            if not self.test(node.test):
                return
            with self._iteration(node.body, is_repeated=True):
                self.body(node.body)
            self.here = node
        self.refuse(
            f"this loop has not ended after {MAX_UNROLLED:,} iterations, which the compiler "
            "unrolls",
            node,
            remedy="go over a range: the kernel counts then",
        )

    def _device_while(self, node: ast.While) -> None:
        """Translates a loop whose condition the running kernel evaluates."""
        body = node.body
        stored = stored_names(body)
        self.before_loop([ast.copy_location(ast.Expr(node.test), node), *body])
        with self.scope(stored), self.builder.repeat() as begin:
            before = {each: self.names[each] for each in stored if each in self.names}
            self.loops.append(Loop(self.frame, self.regions, before))
            holds = self.test(node.test)
            if not is_condition(holds):
                self.refuse("what the condition of this loop reads is no number", node)
            begin(self.arithmetic.condition(holds))
            with self._iteration(body), self.arithmetic.assuming(holds):
                self.inside(body)
            self.check_carried(self.loops.pop())

    def _device_for(
        self, target: ast.expr, sequence: Any, body: Sequence[ast.stmt], node: ast.stmt
    ) -> None:
        """Translates a `for` loop over a range or sequence of the running kernel."""
        if isinstance(sequence, KernelRange | range) and isinstance(target, ast.Name):
            limits = [sequence.start, sequence.stop, sequence.step]
            self._range(target.id, limits, body, node)
            return
        length = length_of(sequence, self.arithmetic)
        if length is None:
            self.refuse("kernels cannot count the elements of this sequence", node)
        position = f"position_{self._last_region}"

        def begin() -> None:
            found = element_of(sequence, self.name(position, node), self.arithmetic)
            if found is None:
                self.refuse("kernels go over ranges, and over sequences of integers", node)
            self.bind(target, found)

        self._range(position, [0, length, 1], body, node, begin, [target])

    def _count_loop(self, loop: CountingLoop, node: ast.While) -> None:
        name, start, step = loop.name, self.name(loop.name, node), self.value(loop.step)
        limit = self.value(loop.limit)
        if not all(map(is_number, (start, limit, step))):
            self.refuse("the limits of a loop that counts are integers", node)
        end = self.arithmetic.add(limit, 1) if loop.includes_limit else limit
        self._range(name, [start, end, step], loop.body, node)
        last = self._final_counter(start, end, step)
        if last is not None:
            self.store_name(name, last)
        elif isinstance(self.names.get(name), Variable):
            self.refuse(
                f"the compiler does not know what '{name}' is after this loop",
                node,
                remedy="use a range, and another variable for what is counted outside of the loop",
            )
        else:
            self.names[name] = UNKNOWN

    def _final_counter(self, start: Number, end: Number, step: Number) -> Number | None:
        """Final value of a loop counter; None if unknown."""
        if isinstance(start, int) and isinstance(end, int) and isinstance(step, int):
            return start + step * len(range(start, end, step))
        return self.arithmetic.extreme("max", start, end) if step == 1 else None

    def _range(
        self,
        name: str,
        limits: list[Any],
        body: Sequence[ast.stmt],
        node: ast.AST,
        begin: Callable[[], None] | None = None,
        targets: Sequence[ast.expr] = (),
    ) -> None:
        """Translates a counting loop.

        Args:
            name: the counter.
            limits: the arguments of `range`.
            body: the statements of an iteration.
            node: the loop.
            begin: action at the start of an iteration.
            targets: assignment targets of that action.
        """
        start, end, step = (0, limits[0], 1) if len(limits) == 1 else (*limits, 1)[:3]
        if not all(isinstance(each, int | SSAValue) for each in (start, end, step)):
            self.refuse("the limits of a range are integers", node)
        first, width = None, 1
        if is_below(step, 0) and (is_known((start, end)) or step == -1):
            # The device counts iterations upwards; the Python counter is computed from that.
            first, width = start, -step
            is_less = is_below(end, 0)
            length = (self.arithmetic.add(start, -end) if is_less
                      else self.arithmetic.subtract(start, end))  # fmt: skip
            end = -(-length // width) if isinstance(length, int) else length
            start, step = 0, 1
        if not isinstance(end, int) and not self.arithmetic.is_natural(end):
            end = self.arithmetic.extreme("max", end, 0)
        if end is None or is_below(step, 1) or not self.arithmetic.is_natural(start):
            self.refuse(
                "kernels count upwards from 0 or more, in positive steps",
                node,
                remedy="count upwards, and subtract the counter where it is used",
            )
        if is_below(end, 1):
            return
        hint = cpp_name(name) if name != "_" else None
        if first is not None:
            hint = "iteration"
        self.before_loop(body, (start, end, step))
        last = self.arithmetic.subtract(end, 1)
        stored = [name, *stored_names(targets), *stored_names(body)]
        loop = self.builder.loop(end, start=start, step=step, name_hint=hint)
        with self.scope(stored), loop as counter:
            self.arithmetic.bound(counter, start, last)
            value = counter
            if first is not None:
                distance = self.arithmetic.multiply(counter, width)
                value = self.arithmetic.subtract(first, distance)
            before = {each: self.names[each] for each in stored if each in self.names}
            is_uniform = isinstance(start, int) and isinstance(end, int)
            self.loops.append(Loop(self.frame, self.regions, before, counter, is_uniform))
            self.store_name(name, value)
            if begin is not None:
                begin()
            with self._iteration(body):
                self.inside(body)
            self.check_carried(self.loops.pop())
        self.after_loop()

    @contextmanager
    def _iteration(self, body: Sequence[ast.stmt], *, is_repeated: bool = False) -> Generator[None]:
        """Scope of a loop body; the body of an unrolled loop may be translated again."""
        frame = self.frame
        outer, frame.iteration = frame.iteration, body
        outer_again, frame.repeated_bodies = (
            frame.repeated_bodies,
            [*frame.repeated_bodies, *([body] if is_repeated else [])],
        )
        yield
        frame.iteration, frame.repeated_bodies = outer, outer_again

    def inside(self, body: Sequence[ast.stmt], joined: Sequence[str] = ()) -> None:
        """Translates the body of a loop, a condition or a function.

        `joined` are variables that are read after both branches of a condition.
        """
        self.body(body)

    def _if(
        self,
        condition: Condition | bool,
        body: Sequence[ast.stmt],
        orelse: Sequence[ast.stmt],
    ) -> None:
        if not is_condition(condition):
            self.body(body if condition else orelse)
            return
        self.before_condition([*body, *orelse])
        joined = self.joined_names(body, orelse)
        self.when(condition, body, joined)
        if orelse:
            with self.scope(stored_names(orelse)), self.builder.otherwise():
                self.inside(orelse, joined)
        for name in joined:
            self.join(name)

    def when(
        self, condition: Condition, body: Sequence[ast.stmt], joined: Sequence[str] = ()
    ) -> None:
        """Translates statements under a condition; `joined` are read after both branches."""
        # The condition is emitted before bounds are refined by it.
        holds = self.arithmetic.condition(condition)
        with (
            self.scope(stored_names(body)),
            self.builder.when(holds),
            self.arithmetic.assuming(condition),
        ):
            self.inside(body, joined)

    def join(self, name: str) -> None:
        """Makes a variable that both branches of a condition assign available after it."""

    def _is_early_exit(self, statement: ast.stmt, statements: Sequence[ast.stmt]) -> bool:
        """True if the rest of a function or iteration depends on a condition: an early exit."""
        match statement:
            case ast.If(_, [*_, ast.Return(None)], []):
                return statements is self.frame.rest
            case ast.If(_, [*_, ast.Continue()], []):
                return statements is self.frame.iteration
            case _:
                return False

    def _early_exit(self, statement: ast.stmt, rest: Sequence[ast.stmt]) -> None:
        assert isinstance(statement, ast.If)
        condition = self.test(statement.test)
        is_iteration = isinstance(statement.body[-1], ast.Continue)
        if is_iteration:
            self.frame.iteration = rest
        else:
            self.frame.rest = rest
        if not is_condition(condition):
            done = statement.body[:-1] if is_iteration else statement.body
            self.body(done if condition else rest)
            return
        if statement.body[:-1]:
            self.when(condition, statement.body[:-1])
        self.when(condition.opposite, rest)

    def _return(self, value: ast.expr | None, node: ast.stmt) -> None:
        if len(self.regions) > self.frame.regions:
            self.refuse(
                "the compiler does not return from loops and conditions of the running kernel",
                node,
                remedy="return at the end of the function, or at its start: if ...: return",
            )
        raise Returned(None if value is None else self.value(value))

    def _with(
        self, items: Sequence[ast.withitem], body: Sequence[ast.stmt], node: ast.stmt
    ) -> None:
        held: list[Any] = []
        for item in items:
            found = self.value(item.context_expr)
            if isinstance(found, Signpost):
                self.builder.op("begin_zone", zone=found.name)
            if item.optional_vars is not None:
                self.bind(item.optional_vars, found)
            held.append(found)
        returned: Returned | None = None
        try:
            self.body(body)
        except Returned as ending:
            returned = ending
            self.names[self.result_name] = ending.value
        self.here = node
        for found in reversed(held):
            self.leave(found, node)
        if returned is not None:
            raise Returned(self.names.pop(self.result_name))

    @property
    def result_name(self) -> str:
        """Variable that holds the result of a function until its `with` blocks have been left."""
        return f"{self.frame.name}_result"

    def leave(self, held: Any, node: ast.stmt) -> None:
        """Ends a `with` statement for one of its objects."""
        if not isinstance(held, Signpost):
            self.refuse("a with statement holds blocks and signposts only", node)
        self.builder.op("end_zone")
