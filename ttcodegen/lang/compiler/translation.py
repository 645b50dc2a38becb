"""Kernels of Python become kernels of the device, statement by statement.

What the kernel knows when it is compiled is computed by Python; loops, conditions and numbers that
depend on the node or on a loop become those of the kernel.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Generator, Hashable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from operator import is_
from typing import Any, NoReturn

from xdsl.ir import SSAValue

from ttcodegen.diagnostics import CompileError, Diagnostics
from ttcodegen.dialects.ttkernel.builder import KernelBuilder
from ttcodegen.lang import context
from ttcodegen.lang.compiler.captured import Captured, OfPlace, location, stored_names
from ttcodegen.lang.compiler.numbers import (
    PREDICATES,
    PYTHON_OPERATORS,
    PYTHON_SIGNS,
    Arithmetic,
    Condition,
    Number,
    is_computed,
    is_number,
)
from ttcodegen.lang.context import Kernel, grid_in_dimensions
from ttcodegen.lang.places import ProgramError
from ttcodegen.lang.shapes import is_range, is_tuple
from ttcodegen.lang.signposts import signpost

_MISSING = object()
_OF_PYTHON = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)


@dataclass(frozen=True)
class _Signpost:
    """A part of a kernel that has a name."""

    name: str


def is_known(value: object) -> bool:
    """Whether a value is known when the kernel is compiled."""
    if is_tuple(value):
        return all(map(is_known, value))
    if is_range(value):
        return is_known((value.start, value.stop))
    return not isinstance(value, SSAValue | Condition)


class KernelTranslator:
    """Translates one kernel; subclasses know what belongs to its kind."""

    def __init__(self, kernel: Kernel, captured: Captured, builder: KernelBuilder) -> None:
        self.kernel = kernel
        self.captured = captured
        self.builder = builder
        self.arithmetic = Arithmetic(builder)
        self.names: dict[str, Any] = {}
        self.calls: dict[Any, Callable[..., Any]] = {
            context.node: self._node,
            context.grid_size: self._grid_size,
            signpost: self._signpost,
            min: lambda *values: self._extreme(min, *values),  # pyright: ignore
            max: lambda *values: self._extreme(max, *values),  # pyright: ignore
        }
        """What calls become that are not Python's, by function."""
        self._column: Number = 0
        self._row: Number = 0
        self.here: ast.AST = ast.Pass()
        self.diagnostics = Diagnostics()
        """Warnings of what the kernel of the device does not do."""

    def place(self, column: SSAValue | None, row: SSAValue | None) -> None:
        """Declares where the kernel finds its column and row."""
        self._column = 0 if column is None else column
        self._row = 0 if row is None else row
        columns, rows = (*self.kernel.node.launch.grid, 1)[:2]
        self.arithmetic.bound(self._column, 0, columns - 1)
        self.arithmetic.bound(self._row, 0, rows - 1)

    def refuse(
        self, message: str, node: ast.AST | None = None, remedy: str | None = None
    ) -> NoReturn:
        """Raises CompileError at a part of the kernel."""
        where = location(self.kernel, node if node is not None else self.here)
        raise CompileError(message, where, remedy=remedy)

    def leave_out(self, what: str, node: ast.AST) -> None:
        """Warns that a part of the kernel only has a meaning in Python."""
        message = f"the kernel '{self.kernel.name}' of the project leaves out {what}"
        self.diagnostics.warn(message, location(self.kernel, node))

    # Statements

    def body(self, statements: Sequence[ast.stmt]) -> None:
        """Statements, one after the other."""
        for statement in statements:
            self.here = statement
            try:
                self.statement(statement)
            except ProgramError as wrong:
                # Rules that the simulator knows too do not know the line of the kernel.
                (told,) = wrong.diagnostics
                self.refuse(told.message, remedy=told.remedy)
            except _OF_PYTHON as wrong:
                # What is known when the kernel is compiled, Python computes.
                self.refuse(f"this raises {type(wrong).__name__}: {wrong}", statement)

    def statement(self, node: ast.stmt) -> None:
        """One statement."""
        match node:
            case ast.Pass() | ast.Expr(ast.Constant()):
                pass
            case ast.Expr(value):
                self.value(value)
            case ast.Assign([target], value):
                self.assign(target, self.value(value))
            case ast.AnnAssign(target, _, value) if value is not None:
                self.assign(target, self.value(value))
            case ast.AugAssign(ast.Name(name), operator, value):
                old = self.name(name, node)
                self.assign(
                    ast.Name(name, ast.Store()),
                    self.binary(type(operator).__name__, old, self.value(value), node),
                )
            case ast.For(ast.Name(name), ast.Call(ast.Name("range"), limits), body, []):
                self._for(name, [self.value(limit) for limit in limits], body, node)
            case ast.If(test, body, orelse):
                self._if(test, body, orelse)
            case ast.With(items, body):
                self._with(items, body, node)
            case ast.FunctionDef(name):
                self.names[name] = node
            case _:
                self.refuse(f"the compiler does not take a statement {type(node).__name__}", node)

    def assign(self, target: ast.expr, value: Any) -> None:
        """Assigns to a name, or to the names of a tuple."""
        match target:
            case ast.Name(name):
                self.store_name(name, value)
            case ast.Tuple(names) if is_tuple(value) and len(names) == len(value):
                for each, part in zip(names, value, strict=True):
                    self.assign(each, part)
            case _:
                self.refuse("the compiler assigns to names and tuples of names only", target)

    def store_name(self, name: str, value: Any) -> None:
        """Binds a name."""
        if isinstance(value, SSAValue) and value.name_hint is None and SSAValue.is_valid_name(name):
            value.name_hint = name
        self.names[name] = value

    @contextmanager
    def scope(self, body: Sequence[ast.stmt]) -> Generator[None]:
        """What is only carried out for some nodes, or several times: numbers that are assigned
        there are not known after it."""
        before = dict(self.names)
        yield
        for name in stored_names(body):
            if name in self.names:
                kept = before.get(name, _MISSING)
                changed = kept is not _MISSING and self.names[name] is not kept
                if changed and not self.survives(name, kept):
                    self.names[name] = _MISSING

    def survives(self, name: str, before: Any) -> bool:
        """Whether what a name holds outlives the loop or condition that it is assigned in."""
        return is_known(before) and is_known(self.names[name]) and before == self.names[name]

    def _for(self, name: str, limits: list[Any], body: Sequence[ast.stmt], node: ast.AST) -> None:
        start, end, step = (0, limits[0], 1) if len(limits) == 1 else (*limits, 1)[:3]
        if not all(isinstance(each, int | SSAValue) for each in (start, end, step)):
            self.refuse("the limits of a range are integers", node)
        if isinstance(start, int) and isinstance(end, int) and isinstance(step, int):
            count = len(range(start, end, step))
            if count <= 1:
                if count:
                    self.names[name] = start
                    self.body(body)
                return
        if not isinstance(end, int) and not self.arithmetic.is_natural(end):
            end = self.arithmetic.extreme("max", end, 0)
        if end is None or _is_below(step, 1) or not self.arithmetic.is_natural(start):
            self.refuse(
                "kernels count upwards from 0 or more, in positive steps",
                node,
                remedy="count upwards, and subtract the counter where it is used",
            )
        hint = name if name != "_" and SSAValue.is_valid_name(name) else None
        if _is_below(end, 1):
            return
        self.before_loop(body)
        last = self.arithmetic.subtract(end, 1)
        with self.scope(body), self.builder.loop(end, start=start, step=step, name_hint=hint) as i:
            self.arithmetic.bound(i, start, last)
            self.names[name] = i
            self.inside(body)

    def before_loop(self, body: Sequence[ast.stmt]) -> None:
        """Prepares what a loop carries from one iteration to the next."""
        for node in body:
            for each in ast.walk(node):
                if isinstance(each, ast.AugAssign) and isinstance(each.target, ast.Name):
                    value = self.names.get(each.target.id)
                    if isinstance(value, int | float | SSAValue):
                        self.refuse(
                            f"'{each.target.id}' is carried from one iteration to the next: the "
                            "compiler takes numbers that follow from the counters of loops",
                            each,
                        )

    def inside(self, body: Sequence[ast.stmt]) -> None:
        """The body of a loop or of a condition."""
        self.body(body)

    def _if(self, test: ast.expr, body: Sequence[ast.stmt], orelse: Sequence[ast.stmt]) -> None:
        condition = self.value(test)
        if is_computed(condition):
            condition = Condition((("ne", condition, 0),))
        if not isinstance(condition, Condition):
            self.body(body if condition else orelse)
            return
        with self.scope(body), self.builder.when(self.arithmetic.condition(condition)):
            self.inside(body)
        if orelse:
            opposite = condition.opposite
            if opposite is None:
                self.refuse("the compiler takes 'else' after a single comparison only", test)
            with self.scope(orelse), self.builder.when(self.arithmetic.condition(opposite)):
                self.inside(orelse)

    def _with(
        self, items: Sequence[ast.withitem], body: Sequence[ast.stmt], node: ast.stmt
    ) -> None:
        held: list[Any] = []
        for item in items:
            found = self.value(item.context_expr)
            if isinstance(found, _Signpost):
                self.leave_out(f"the signpost '{found.name}'", item.context_expr)
            if item.optional_vars is not None:
                self.assign(item.optional_vars, found)
            held.append(found)
        self.body(body)
        self.here = node
        for found in reversed(held):
            self.leave(found, node)

    def leave(self, held: Any, node: ast.stmt) -> None:
        """The end of a with statement for what it holds."""
        if not isinstance(held, _Signpost):
            self.refuse("a with statement holds blocks and signposts only", node)

    # Expressions

    def value(self, node: ast.expr) -> Any:
        """What an expression is, or the value of the kernel that holds it."""
        match node:
            case ast.Constant(value):
                return value
            case ast.Name(name):
                return self.name(name, node)
            case ast.Tuple(parts) | ast.List(parts):
                found = tuple(self.value(part) for part in parts)
                return list(found) if isinstance(node, ast.List) else found
            case ast.Attribute(of, name):
                return getattr(self.value(of), name)
            case ast.BinOp(left, operator, right):
                operands = self.value(left), self.value(right)
                return self.binary(type(operator).__name__, *operands, node)
            case ast.UnaryOp(operator, of):
                return self.unary(type(operator).__name__, self.value(of), node)
            case ast.Compare(left, operators, others):
                return self._compare(left, operators, others)
            case ast.BoolOp(ast.And(), values):
                return self._both([self.value(each) for each in values])
            case ast.Slice(start, stop, step):
                ends = (None if each is None else self.value(each) for each in (start, stop, step))
                return slice(*ends)
            case ast.Subscript(of, index):
                return self.subscript(self.value(of), self.value(index), node)
            case ast.Call():
                return self._call(node)
            case ast.JoinedStr():
                return ""
            case _:
                self.refuse(f"the compiler does not take a {type(node).__name__}", node)

    def name(self, name: str, node: ast.AST) -> Any:
        """What a name stands for."""
        if name in self.names:
            found = self.names[name]
            if found is _MISSING:
                self.refuse(f"'{name}' depends on the way that the kernel took", node)
            return found
        if name not in self.captured:
            self.refuse(f"the name '{name}' is not known", node)
        try:
            found = self.captured[name]
        except ValueError as wrong:
            self.refuse(str(wrong), node)
        placed = self._placed(name, found)
        if placed is not found:
            self.names[name] = placed
        return placed

    def _placed(self, name: str, found: Any) -> Any:
        """A captured value, with what depends on the node computed from its place."""
        if isinstance(found, OfPlace):
            return self._of_place(name, found)
        if not is_tuple(found):
            return found
        parts = tuple(self._placed(f"{name}{n}", part) for n, part in enumerate(found))
        return found if all(map(is_, parts, found)) else parts

    def _of_place(self, name: str, found: OfPlace) -> Number:
        arithmetic = self.arithmetic
        value = arithmetic.sum(
            [
                arithmetic.multiply(self._column, found.per_column),
                arithmetic.multiply(self._row, found.per_row),
                found.first,
            ]
        )
        if found.bound is not None:
            value = arithmetic.extreme("min", value, found.bound)
            assert value is not None
        if isinstance(value, SSAValue) and value not in (self._column, self._row):
            value.name_hint = name if SSAValue.is_valid_name(name) else None
        return value

    def binary(self, symbol: str, left: Any, right: Any, node: ast.AST) -> Any:
        """An operator of two operands."""
        if is_known(left) and is_known(right):
            try:
                return PYTHON_OPERATORS[symbol](left, right)
            except (KeyError, TypeError, ArithmeticError) as wrong:
                self.refuse(f"the operator {symbol} cannot be applied here: {wrong}", node)
        if is_number(left) and is_number(right):
            divides = symbol in ("FloorDiv", "Mod")
            found = None
            if not (divides and _is_below(right, 1)):
                found = self.arithmetic.binary(symbol, left, right)
            if found is not None:
                return found
            if divides:
                self.refuse("kernels divide numbers that are 0 or more by numbers above 0", node)
            if symbol == "Mult":
                self.refuse("kernels multiply numbers that are 0 or more", node)
        self.refuse(f"kernels have no operator {symbol} of these operands", node)

    def unary(self, symbol: str, value: Any, node: ast.AST) -> Any:
        """An operator of one operand."""
        if isinstance(value, Condition) and symbol == "Not" and value.opposite is not None:
            return value.opposite
        if not is_known(value):
            self.refuse(f"kernels have no operator {symbol} of this operand", node)
        return PYTHON_SIGNS[symbol](value)

    def _compare(
        self, left: ast.expr, operators: Sequence[ast.cmpop], others: Sequence[ast.expr]
    ) -> Any:
        values = [self.value(left), *(self.value(each) for each in others)]
        found: list[Any] = []
        for operator, first, second in zip(operators, values, values[1:], strict=False):
            symbol = type(operator).__name__
            if is_known(first) and is_known(second):
                found.append(PYTHON_OPERATORS[symbol](first, second))
            else:
                found.append(self._condition(symbol, first, second, left))
        return self._both(found)

    def _condition(self, symbol: str, first: Any, second: Any, node: ast.AST) -> Condition | bool:
        """A comparison that the kernel makes, of unsigned integers."""
        if symbol not in PREDICATES or not (is_number(first) and is_number(second)):
            self.refuse(f"kernels have no comparison {symbol} of these operands", node)
        return self.arithmetic.comparison(PREDICATES[symbol], first, second)

    def _both(self, values: Sequence[Any]) -> Any:
        parts = [each for each in values if isinstance(each, Condition)]
        known = [each for each in values if not isinstance(each, Condition)]
        if not all(known) or not parts:
            return all(known)
        return Condition(tuple(part for each in parts for part in each.parts))

    def subscript(self, value: Any, index: Any, node: ast.AST) -> Any:
        """An element of a tuple."""
        if not is_known(index):
            self.refuse("an index of a tuple is known when the kernel is compiled", node)
        return value[index]

    def _call(self, node: ast.Call) -> Any:
        if isinstance(node.func, ast.Attribute):
            of = self.value(node.func.value)
            method = self.method(of, node.func.attr)
            if method is not None:
                return method(*self._arguments(node), **self._keywords(node))
            function = getattr(of, node.func.attr)
        else:
            function = self.value(node.func)
        if function is print:
            self.leave_out("what it prints: the simulator does it", node)
            return None
        arguments, keywords = self._arguments(node), self._keywords(node)
        self.here = node
        special = self.calls.get(function) if _is_hashable(function) else None
        if special is not None:
            return special(*arguments, **keywords)
        if isinstance(function, ast.FunctionDef):
            self.refuse("the compiler does not take calls of functions inside of kernels", node)
        if function is not slice and not all(map(is_known, [*arguments, *keywords.values()])):
            name = getattr(function, "__name__", "a function")
            self.refuse(f"'{name}' is given a number that only the running kernel knows", node)
        return function(*arguments, **keywords)

    def method(self, value: Any, name: str) -> Callable[..., Any] | None:
        """What a call of a method becomes; None if Python does it."""
        return None

    def _arguments(self, node: ast.Call) -> list[Any]:
        found: list[Any] = []
        for each in node.args:
            if isinstance(each, ast.Starred):
                found += self.value(each.value)
            else:
                found.append(self.value(each))
        return found

    def _keywords(self, node: ast.Call) -> dict[str, Any]:
        return {each.arg: self.value(each.value) for each in node.keywords if each.arg}

    # Functions of the language

    def _node(self, dims: int | None = None) -> Any:
        grid = self.kernel.node.launch.grid
        place: tuple[Number, ...] = (self._column, self._row)[: len(grid)]
        dims = len(grid) if dims is None else dims
        if dims == 1 and len(grid) == 2:
            column = self.arithmetic.multiply(self._column, grid[1])
            return self.arithmetic.add(column, self._row)
        found = place + (0,) * (dims - len(place))
        return found[0] if dims == 1 else found

    def _signpost(self, name: object) -> _Signpost:
        if not isinstance(name, str):
            self.refuse(f"the name of a signpost is a string, not a {type(name).__name__}")
        return _Signpost(name)

    def _grid_size(self, dims: int | None = None) -> Any:
        grid = self.kernel.node.launch.grid
        found = grid_in_dimensions(grid, len(grid) if dims is None else dims)
        return found[0] if len(found) == 1 else found

    def _extreme(self, function: Callable[..., Any], *values: Any) -> Any:
        given = values[0] if len(values) == 1 and is_tuple(values[0]) else values
        if all(map(is_known, given)):
            return function(*given)
        total: Any = given[0]
        for value in given[1:]:
            both_known = is_known(total) and is_known(value)
            if not both_known and not (is_number(total) and is_number(value)):
                self.refuse(f"kernels have no {function.__name__} of these operands")
            total = (
                function(total, value)
                if both_known
                else self.arithmetic.extreme(function.__name__, total, value)
            )
            if total is None:
                self.refuse(f"kernels take the {function.__name__} of numbers that are 0 or more")
        return total


def _is_below(value: object, least: int) -> bool:
    """Whether a value is known to be less."""
    return isinstance(value, int) and value < least


def _is_hashable(value: Any) -> bool:
    return isinstance(value, Hashable)
