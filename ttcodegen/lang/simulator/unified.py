"""Operations with one body for all kernels: each statement goes to the kernel that carries it out.

What computes with blocks goes to the compute kernel; what copies into reserved blocks to one data
movement kernel, what copies out of blocks that were waited for to the other. Loops, conditions and
arithmetic of integers are in each kernel that needs them, and what makes buffers, nets of pipes and
semaphores stays in the body. The kernels are functions like those that programs write themselves.
"""

from __future__ import annotations

import ast
import linecache
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from enum import Enum
from functools import lru_cache
from types import CellType, CodeType, FunctionType
from typing import Any

from ttcodegen.foundation.diagnostics import SourceLocation
from ttcodegen.lang.simulator.locations import ProgramError
from ttcodegen.lang.simulator.loops import COUNTERS, with_counted_loops


class Thread(Enum):
    """A kernel that statements go to, by its name."""

    READ = "read"
    COMPUTE = "compute"
    WRITE = "write"

    @property
    def is_compute(self) -> bool:
        """True if it computes with blocks."""
        return self is Thread.COMPUTE


WRITTEN_KERNELS: dict[CodeType, ast.FunctionDef] = {}
"""The syntax of kernels that no program has the text of, by their code."""

_ACQUIRING = {"reserve": Thread.READ, "wait": Thread.WRITE}
_MOVING = frozenset("copy raw_element_read raw_element_write read_index".split())
"""Functions of `ttl` that data movement kernels call."""
_MOVING_METHODS = frozenset(
    "publish if_src if_dst wait_eq wait_ge set inc get_remote get_remote_multicast".split()
)
_NEUTRAL_METHODS = ("push", "pop")
_MAKING = frozenset(
    "make_dataflow_buffer_like make_dfb make_tensor_backed_dfb make_dfb_allocation_group PipeNet "
    "Pipe Semaphore".split()
)
"""Functions of `ttl` that make what kernels share."""


def syntax_of_function(function: FunctionType) -> ast.FunctionDef | None:
    """The text of a function of the program, None if it cannot be found."""
    code = function.__code__
    text = "".join(linecache.getlines(code.co_filename))
    return _functions_of(text).get((code.co_name, code.co_firstlineno))


@lru_cache(8)
def _functions_of(text: str) -> dict[tuple[str, int], ast.FunctionDef]:
    """The functions of a program by their names and first lines."""
    found: dict[tuple[str, int], ast.FunctionDef] = {}
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef):
            first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
            found[node.name, first] = node
    return found


def has_kernels(syntax: ast.FunctionDef) -> bool:
    """True if an operation writes its kernels itself: functions in it have decorators, by whatever
    names it knows those."""
    return any(
        isinstance(node, ast.FunctionDef) and node is not syntax and bool(node.decorator_list)
        for node in ast.walk(syntax)
    )


def error_at(file: str, message: str, node: ast.AST, remedy: str | None = None) -> ProgramError:
    """The error of a program at a part of its text."""
    line: int = getattr(node, "lineno", 1)
    text = linecache.getline(file, line).encode()[: getattr(node, "col_offset", 0)]
    where = SourceLocation(file, line, len(text.decode(errors="replace")) + 1)
    return ProgramError(message, where, remedy=remedy)


@dataclass
class UnifiedBody:
    """The body of an operation, whose statements are divided among kernels."""

    file: str
    syntax: ast.FunctionDef
    _threads: dict[int, frozenset[Thread]] = field(default_factory=dict[int, frozenset[Thread]])
    """Where statements and acquisitions go, by the identity of their nodes; nowhere: to all."""
    _names: dict[str, frozenset[Thread]] = field(default_factory=dict[str, frozenset[Thread]])
    """The kernels of the values that variables hold."""

    def kernels(self) -> list[tuple[Thread, ast.FunctionDef]]:
        """The kernels that have something to do."""
        self._divide(self.syntax.body)
        shared = [each for each in self.syntax.body if self._is_shared(each)]
        rest = [each for each in self.syntax.body if each not in shared]
        self.syntax.body = shared
        if not rest:
            return []
        found: list[tuple[Thread, ast.FunctionDef]] = []
        for thread in Thread:
            body = self._slice(rest, thread)
            if not any(self._does(each, thread) for each in rest):
                continue
            kernel = ast.FunctionDef(thread.value, _no_arguments(), body, [], None, None)
            ast.copy_location(kernel, rest[0])
            found.append((thread, kernel))
        return found

    def refuse(self, message: str, node: ast.AST, remedy: str | None = None) -> ProgramError:
        """The error of a program at a part of the body."""
        return error_at(self.file, message, node, remedy)

    # Where statements go

    def _divide(self, statements: Sequence[ast.stmt]) -> None:
        for number, statement in enumerate(statements):
            rest = statements[number + 1 :]
            match statement:
                case ast.With(items, body):
                    for item in items:
                        self._acquire(item.context_expr, item.optional_vars, body)
                    self._divide(body)
                case ast.For(_, iterated, body):
                    self._threads[id(statement)] = self._threads_of(iterated)
                    self._divide(body)
                case ast.While(test, body):
                    self._threads[id(statement)] = self._threads_of(test)
                    self._divide(body)
                case ast.If(test, body, orelse):
                    self._threads[id(statement)] = self._threads_of(test)
                    self._divide(body)
                    self._divide(orelse)
                case ast.FunctionDef(name, _, body):
                    self._divide(body)
                    self._names[name] = self._all_of(body)
                    self._threads[id(statement)] = self._names[name]
                case ast.Assign([target], value):
                    if not self._acquire(value, target, rest):
                        self._leaf(statement, [target], rest)
                case ast.AugAssign(target) | ast.AnnAssign(target):
                    self._leaf(statement, [target], rest)
                case ast.Assign(targets):
                    self._leaf(statement, targets, rest)
                case _:
                    self._leaf(statement, [], rest)

    def _acquire(self, value: ast.expr, target: ast.expr | None, users: Sequence[ast.stmt]) -> bool:
        """Finds the kernel of an acquisition, that of what uses its block; False if it is none."""
        match value:
            case ast.Call(ast.Attribute(ast.Name(buffer), "reserve" | "wait" as way), [], []):
                pass
            case _:
                return False
        if not isinstance(target, ast.Name):
            raise self.refuse(
                f"the block of '{buffer}' that {way} gives needs a name: who uses it says which "
                "kernel acquires it",
                value,
            )
        is_moved, is_computed = self._uses(target.id, users)
        if is_moved and is_computed:
            raise self.refuse(
                f"the block '{target.id}' is computed with and copied: each statement belongs to "
                "one kernel",
                value,
                "store what is computed into a dataflow buffer, and copy from there",
            )
        if not is_moved and not is_computed:
            raise self.refuse(
                f"nothing uses the block '{target.id}', so no kernel acquires it", value
            )
        thread = Thread.COMPUTE if is_computed else _ACQUIRING[way]
        self._threads[id(value)] = frozenset([thread])
        self._names[target.id] = frozenset([thread])
        return True

    def _uses(self, name: str, statements: Sequence[ast.stmt]) -> tuple[bool, bool]:
        """True if a block is copied, or an element of it accessed, and whether it is computed
        with, until its name gets another block."""
        moved = computed = False
        for statement in statements:
            inside = {
                id(part)
                for node in ast.walk(statement)
                if isinstance(node, ast.Call) and _called(node) in _MOVING
                for argument in (*node.args, *(each.value for each in node.keywords))
                for part in ast.walk(argument)
            }
            neutral = {
                id(node.value)
                for node in ast.walk(statement)
                if isinstance(node, ast.Attribute) and node.attr in _NEUTRAL_METHODS
            }
            for node in ast.walk(statement):
                if isinstance(node, ast.Name) and node.id == name:
                    if isinstance(node.ctx, ast.Store):
                        if node in _stored_by(statement):
                            return moved, computed
                    elif id(node) in inside:
                        moved = True
                    elif id(node) not in neutral:
                        computed = True
        return moved, computed

    def _leaf(
        self, statement: ast.stmt, targets: Sequence[ast.expr], rest: Sequence[ast.stmt]
    ) -> None:
        threads = self._threads_of(statement)
        names = [each.id for target in targets for each in ast.walk(target)
                 if isinstance(each, ast.Name)]  # fmt: skip
        if not threads and any(
            isinstance(node, ast.Call) and _called(node) == "GroupTransfer"
            for node in ast.walk(statement)
        ):
            threads = self._threads_of_group(names, rest)
        if len(threads) > 1:
            kinds = " and ".join(f"'{each.value}'" for each in Thread if each in threads)
            raise self.refuse(
                f"this statement is one of the kernels {kinds}: each belongs to one kernel",
                statement,
                "store what is computed into a dataflow buffer, and copy from there",
            )
        self._threads[id(statement)] = threads
        for name in names:
            if threads or name not in self._names:
                self._names[name] = threads

    def _threads_of_group(
        self, names: Sequence[str], rest: Sequence[ast.stmt]
    ) -> frozenset[Thread]:
        """The kernel of a group of transfers: that of the first block that is copied with it."""
        acquired = [(item.context_expr, item.optional_vars, each.body)
                    for statement in rest for each in ast.walk(statement)
                    if isinstance(each, ast.With) for item in each.items]  # fmt: skip
        for value, target, body in acquired:
            if isinstance(target, ast.Name) and self._acquire(value, target, body):
                self._names.pop(target.id)
        for node in (each for statement in rest for each in ast.walk(statement)):
            match node:
                case ast.Call(ast.Attribute(ast.Name(group), "add"), arguments) if group in names:
                    blocks = {
                        n.id for a in arguments for n in ast.walk(a) if isinstance(n, ast.Name)
                    }
                    for value, target, _ in acquired:
                        if isinstance(target, ast.Name) and target.id in blocks:
                            return self._threads[id(value)]
                    return self._threads_of(node) or frozenset([Thread.READ])
                case _:
                    pass
        return frozenset([Thread.READ])

    def _threads_of(self, node: ast.AST) -> frozenset[Thread]:
        """The kernels that may carry an expression out."""
        found: set[Thread] = set()
        is_moving = False
        for part in ast.walk(node):
            if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load):
                found |= self._names.get(part.id, frozenset())
            is_moving = is_moving or (isinstance(part, ast.Call) and self._moves(part))
        if is_moving and not found:
            return frozenset([Thread.READ])
        return frozenset(found)

    @staticmethod
    def _moves(call: ast.Call) -> bool:
        name = _called(call)
        is_method = isinstance(call.func, ast.Attribute)
        return name in _MOVING or (is_method and name in _MOVING_METHODS)

    def _all_of(self, statements: Sequence[ast.stmt]) -> frozenset[Thread]:
        """The kernels of statements."""
        nodes = (node for statement in statements for node in ast.walk(statement))
        return frozenset[Thread]().union(*(self._threads.get(id(n), frozenset()) for n in nodes))

    # Kernels

    def _is_shared(self, statement: ast.stmt) -> bool:
        """True if a statement stays in the body: it makes what kernels share, or assigns what
        never changes."""
        if not isinstance(statement, ast.Assign | ast.AnnAssign | ast.Expr | ast.FunctionDef):
            return False
        if self._all_of([statement]):
            return False
        calls = (node for node in ast.walk(statement) if isinstance(node, ast.Call))
        if any(_called(call) in _MAKING for call in calls):
            return True
        stored = {node.id for node in _stored_by(statement)}
        again = [
            node.id
            for other in self.syntax.body
            if other is not statement
            for node in ast.walk(other)
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
        ]
        return not stored & {*again}

    def _does(self, statement: ast.stmt, thread: Thread) -> bool:
        """True if a kernel has to do something in a statement."""
        return thread in self._all_of([statement])

    def _slice(self, statements: Sequence[ast.stmt], thread: Thread) -> list[ast.stmt]:
        """The part of statements that a kernel carries out."""
        found = [part for each in statements for part in self._part(each, thread)]
        return found or [ast.copy_location(ast.Pass(), statements[0])]

    def _part(self, statement: ast.stmt, thread: Thread) -> Iterator[ast.stmt]:
        own = self._threads.get(id(statement), frozenset())
        if not isinstance(statement, ast.With | ast.For | ast.While | ast.If | ast.FunctionDef):
            acquired = getattr(statement, "value", None)
            own = own or self._threads.get(id(acquired), frozenset())
            if not own or thread in own:
                yield statement
            return
        if not self._does(statement, thread) and self._all_of([statement]):
            return
        if isinstance(statement, ast.With):
            items = [
                item
                for item in statement.items
                if thread in self._threads.get(id(item.context_expr), frozenset([thread]))
            ]
            body = self._slice(statement.body, thread)
            if items:
                yield ast.copy_location(ast.With(items, body), statement)
            else:
                yield from body
            return
        if own - {thread}:
            (other, *_) = own - {thread}
            raise self.refuse(
                f"what the kernel '{other.value}' finds out decides about statements of the kernel "
                f"'{thread.value}'",
                statement,
            )
        copied = type(statement)(**dict(ast.iter_fields(statement)))
        ast.copy_location(copied, statement)
        copied.body = self._slice(statement.body, thread)
        if isinstance(copied, ast.If) and isinstance(statement, ast.If) and statement.orelse:
            copied.orelse = self._slice(statement.orelse, thread)
        yield copied


def _called(call: ast.Call) -> str:
    """The name of what is called."""
    of = call.func
    return of.attr if isinstance(of, ast.Attribute) else of.id if isinstance(of, ast.Name) else ""


def _stored_by(statement: ast.stmt) -> list[ast.Name]:
    """The names that a statement itself assigns to."""
    targets: list[ast.expr] = []
    match statement:
        case ast.Assign(found):
            targets = found
        case ast.AugAssign(target) | ast.AnnAssign(target) | ast.For(target):
            targets = [target]
        case _:
            pass
    return [n for target in targets for n in ast.walk(target) if isinstance(n, ast.Name)]


def _no_arguments() -> ast.arguments:
    return ast.arguments([], [], None, [], [], None, [])


@dataclass(frozen=True)
class SplitOperation:
    """An operation whose kernels were written from its body."""

    function: FunctionType
    """Runs the body on a node, and gives the kernels."""
    threads: tuple[Thread, ...]
    """Where each of them runs."""


def split(
    function: FunctionType, syntax: ast.FunctionDef, values: Mapping[str, Any]
) -> SplitOperation | None:
    """The operation with kernels in place of its one body; None if no statement is one of a kernel.

    Args:
        function: the operation.
        syntax: its text, in which other operations have taken the places of their calls.
        values: what names mean that those brought along.

    Raises:
        ProgramError: if a statement belongs to no kernel, or to several.
    """
    body = UnifiedBody(function.__code__.co_filename, syntax)
    kernels = body.kernels()
    if not kernels:
        return None
    names = [ast.Name(kernel.name, ast.Load()) for _, kernel in kernels]
    result = ast.Return(ast.Tuple([*names], ast.Load()))
    syntax.body = [*syntax.body, *(kernel for _, kernel in kernels), result]
    syntax.decorator_list, syntax.returns = [], None
    made = _compiled(function, syntax, values)
    by_name = {kernel.name: kernel for _, kernel in kernels}
    for each in made.__code__.co_consts:
        if isinstance(each, CodeType) and each.co_name in by_name:
            WRITTEN_KERNELS[each] = by_name[each.co_name]
    return SplitOperation(made, tuple(thread for thread, _ in kernels))


def _compiled(
    function: FunctionType, syntax: ast.FunctionDef, values: Mapping[str, Any]
) -> FunctionType:
    """A function of that text, with the variables around another function."""
    closure = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    cells = {**closure, **{name: CellType(value) for name, value in values.items()}}
    outer = ast.FunctionDef("__ttl_outer__", _no_arguments(), [], [], None, None)
    nothing = ast.Constant(None)
    outer.body = [
        *(ast.Assign([ast.Name(name, ast.Store())], nothing) for name in cells),
        syntax,
    ]
    module = ast.Module([outer], [])
    for node in (outer, *outer.body[:-1]):
        ast.copy_location(node, syntax)
    counted = with_counted_loops if COUNTERS.keys() <= function.__globals__.keys() else _as_it_is
    # Kernels are compiled from a text without counters.
    text = ast.fix_missing_locations(counted(deepcopy(module)))
    code = compile(text, function.__code__.co_filename, "exec", dont_inherit=True)
    outer_code = next(each for each in code.co_consts if isinstance(each, CodeType))
    inner = next(
        each
        for each in outer_code.co_consts
        if isinstance(each, CodeType) and each.co_name == syntax.name
    )
    given = tuple(cells[name] for name in inner.co_freevars)
    ast.fix_missing_locations(syntax)
    return FunctionType(inner, function.__globals__, function.__name__, None, given)


def _as_it_is(module: ast.Module) -> ast.Module:
    return module
