"""Expressions of kernels, evaluated at compile time or computed by the running kernel."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NoReturn, cast

from xdsl.ir import SSAValue

from ttcodegen.dialects.ttkernel.builder import KernelBuilder
from ttcodegen.foundation.diagnostics import CompileError, Diagnostics, SourceLocation
from ttcodegen.lang.compiler.python.capture_resolution import NodePosition
from ttcodegen.lang.compiler.python.captured import Captured, kernel_syntax, location
from ttcodegen.lang.compiler.python.numbers import (
    BITWISE_OPERATORS,
    PREDICATES,
    PYTHON_OPERATORS,
    PYTHON_UNARY_OPERATORS,
    Arithmetic,
    Comparison,
    Condition,
    KernelFloat,
    Number,
    Quotient,
    is_computed,
    is_condition,
    is_number,
    joined,
)
from ttcodegen.lang.compiler.python.variables import (
    Frame,
    KernelList,
    KernelRange,
    KernelZip,
    LocalFunction,
    Variable,
    element_of,
    looked_up,
)
from ttcodegen.lang.simulator.context import Kernel, grid_in_dimensions
from ttcodegen.lang.simulator.operations import no_expression
from ttcodegen.lang.simulator.shapes import is_range, is_sequence, is_tuple, sequence_of
from ttcodegen.lang.simulator.spelling import misspelled

UNKNOWN = object()
"""Value of a variable that depends on the control flow of the running kernel."""


def is_known(value: object) -> bool:
    """True if a value is known at compile time."""
    if is_sequence(value):
        return all(map(is_known, value))
    if is_range(value):
        return is_known((value.start, value.stop))
    if isinstance(value, KernelRange | KernelZip | KernelList | Quotient | KernelFloat):
        return False
    return not isinstance(value, SSAValue) and not is_condition(value)


def is_below(value: object, bound: int) -> bool:
    """True if a value is known to be less than a bound."""
    return isinstance(value, int) and value < bound


class Undecided(CompileError):
    """Raised if the running kernel would choose between non-numbers in `a if test else b`."""

    def __init__(
        self, condition: Condition, frame: Frame, test: ast.AST, where: SourceLocation
    ) -> None:
        super().__init__(
            "the compiler chooses between numbers here, not between these",
            where,
            remedy="use an if statement",
        )
        self.condition = condition
        self.frame = frame
        self.test = test


class ExpressionTranslator:
    """Translates expressions; subclasses translate calls and statements."""

    def __init__(self, kernel: Kernel, captured: Captured, builder: KernelBuilder) -> None:
        self.kernel = kernel
        self.builder = builder
        self.arithmetic = Arithmetic(builder)
        self.frames = [Frame(kernel_syntax(kernel), captured)]
        """Call stack of inlined functions; the kernel is the outermost frame."""
        self.diagnostics = Diagnostics()
        """Warnings about parts of the kernel that the device does not execute."""
        self.column: Number = 0
        self.row: Number = 0

    @property
    def frame(self) -> Frame:
        """Frame of the function that is being translated."""
        return self.frames[-1]

    @property
    def names(self) -> dict[str, Any]:
        """Variables of the current frame."""
        return self.frame.names

    @property
    def here(self) -> ast.AST:
        """Syntax node that is being translated."""
        return self.frame.here

    @here.setter
    def here(self, node: ast.AST) -> None:
        self.frame.here = node

    def set_position(self, column: SSAValue | None, row: SSAValue | None) -> None:
        """Sets the values that hold the column and row of the node."""
        self.column = 0 if column is None else column
        self.row = 0 if row is None else row
        columns, rows = (*self.kernel.node.launch.grid, 1)[:2]
        self.arithmetic.bound(self.column, 0, columns - 1)
        self.arithmetic.bound(self.row, 0, rows - 1)

    @property
    def where(self) -> SourceLocation:
        """Source location of the syntax node that is being translated."""
        return location(self.frame.captured.file, self.here)

    def refuse(
        self, message: str, node: ast.AST | None = None, remedy: str | None = None
    ) -> NoReturn:
        """Raises CompileError at a syntax node, by default at the current one."""
        where = location(self.frame.captured.file, node if node is not None else self.here)
        raise CompileError(message, where, remedy=remedy)

    def value(self, node: ast.expr) -> Any:
        """Translates an expression to a Python value or a kernel value."""
        match node:
            case ast.Constant(value):
                return value
            case ast.Name(name):
                return self.name(name, node)
            case ast.Tuple(parts) | ast.List(parts):
                found = self.values(parts)
                return found if isinstance(node, ast.List) else tuple(found)
            case ast.NamedExpr(target, named):
                found = self.value(named)
                self.bind(target, found)
                return found
            case ast.Attribute(of, name):
                return self.attribute_of(self.value(of), name, node)
            case ast.BinOp(left, operator, right):
                operands = self.value(left), self.value(right)
                return self.binary(type(operator).__name__, *operands, node)
            case ast.UnaryOp(ast.Not()):
                return self.test(node)
            case ast.UnaryOp(operator, of):
                return self.unary(type(operator).__name__, self.value(of), node)
            case ast.Compare(left, operators, others):
                self.here = node
                return self._compare(left, operators, others)
            case ast.BoolOp(operator, values):
                return self._logical(isinstance(operator, ast.And), values, node)
            case ast.IfExp(test, body, orelse):
                return self._conditional(test, body, orelse)
            case ast.Slice(start, stop, step):
                ends = (None if each is None else self.value(each) for each in (start, stop, step))
                return slice(*ends)
            case ast.Subscript(of, index):
                return self.subscript(self.value(of), self.value(index), node)
            case ast.Call():
                return self.call(node)
            case ast.Lambda(arguments):
                return LocalFunction(node, self.frame, self.defaults(arguments))
            case ast.ListComp(element, generators) | ast.GeneratorExp(element, generators):
                return self._comprehension(element, generators)
            case ast.Dict(keys, values):
                return self._dictionary(keys, values)
            case ast.DictComp(key, value, generators):
                pair = ast.copy_location(ast.Tuple([key, value], ast.Load()), key)
                return dict(self._comprehension(pair, generators))
            case ast.Set(parts):
                return tuple(self.values(parts))
            case ast.SetComp(element, generators):
                return tuple(self._comprehension(element, generators))
            case ast.JoinedStr():
                return self.joined_text(node)
            case _:
                self.refuse(no_expression(node), node)

    def values(self, nodes: Sequence[ast.expr]) -> list[Any]:
        """Translates the elements of a sequence display, unpacking starred elements."""
        found: list[Any] = []
        for each in nodes:
            if isinstance(each, ast.Starred):
                found += self.known_sequence(self.value(each.value), each)
            else:
                found.append(self.value(each))
        return found

    def _dictionary(
        self, keys: Sequence[ast.expr | None], values: Sequence[ast.expr]
    ) -> dict[Any, Any]:
        found: dict[Any, Any] = {}
        for key, value in zip(keys, values, strict=True):
            if key is None:
                found |= self.value(value)
                continue
            known = self.value(key)
            if not is_known(known):
                self.refuse("a key of a dictionary is known when the kernel is compiled", key)
            found[known] = self.value(value)
        return found

    def call(self, node: ast.Call) -> Any:
        """Translates a call."""
        raise NotImplementedError

    def joined_text(self, node: ast.JoinedStr) -> Any:
        """Translates an f-string, which is only supported as an argument of `print`."""
        return ""

    def attribute_of(self, value: Any, name: str, node: ast.AST) -> Any:
        """Evaluates an attribute; refuses a missing one at its location."""
        try:
            return self.attribute(value, name)
        except AttributeError as raised:
            self.refuse(misspelled(raised) or f"this raises AttributeError: {raised}", node)

    def attribute(self, value: Any, name: str) -> Any:
        """Evaluates an attribute."""
        return getattr(value, name)

    def defaults(self, arguments: ast.arguments) -> dict[str, Any]:
        """Evaluates the default values of parameters."""
        names = [each.arg for each in (*arguments.posonlyargs, *arguments.args)]
        values = arguments.defaults
        found = {
            name: self.value(value)
            for name, value in zip(names[len(names) - len(values) :], values, strict=True)
        }
        for each, value in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
            if value is not None:
                found[each.arg] = self.value(value)
        return found

    # Names

    def name(self, name: str, node: ast.AST) -> Any:
        """Evaluates a name."""
        frame: Frame | None = self.frame
        while frame is not None:
            if name in frame.names:
                found = frame.names[name]
                if found is UNKNOWN:
                    self.refuse(f"'{name}' depends on the control flow of the running kernel", node)
                self.note_read(frame, name, node)
                return self.read_variable(found) if isinstance(found, Variable) else found
            frame = frame.enclosing
        found = self.captured_value(name, node)
        resolved = self.resolve_captured(name, found)
        if resolved is not found and not self.is_conditional:
            self.names[name] = resolved
        return resolved

    def captured_value(self, name: str, node: ast.AST) -> Any:
        """Returns a captured value, in which node-dependent parts are formulas or tables."""
        captured = self.frame.captured
        if name not in captured:
            self.refuse(f"the name '{name}' is not known", node)
        try:
            return captured[name]
        except ValueError as error:
            self.refuse(str(error), node)

    def read_variable(self, variable: Variable) -> SSAValue:
        """Loads the current value of a kernel variable."""
        raise NotImplementedError

    def note_read(self, frame: Frame, name: str, node: ast.AST) -> None:
        """Notes that a variable of a frame is read."""

    @property
    def is_conditional(self) -> bool:
        """True inside device loops and conditions, after which computed values are unknown."""
        return False

    def resolve_captured(self, name: str, found: Any) -> Any:
        """Replaces the node-dependent parts of a captured value by values of the kernel."""
        here = NodePosition(self.arithmetic, self.column, self.row, self.node_of_kernel)
        return here.value(name, found)

    # Operators

    def binary(self, symbol: str, left: Any, right: Any, node: ast.AST) -> Any:
        """Translates a binary operator."""
        scalars = [each for each in (left, right) if not is_sequence(each)]
        # Concatenation and repetition of sequences do not inspect their elements.
        joins = symbol in ("Add", "Mult") and len(scalars) < 2 and all(map(is_known, scalars))
        if joins or (is_known(left) and is_known(right)):
            try:
                return PYTHON_OPERATORS[symbol](left, right)
            except (KeyError, TypeError, ArithmeticError) as error:
                reason = "" if isinstance(error, KeyError) else f": {error}"
                self.refuse(f"'{ast.unparse(node)}' cannot be computed{reason}", node)
        if any(isinstance(each, KernelFloat | Quotient | float) for each in (left, right)):
            real = self.arithmetic.of_floats(symbol, left, right)
            if real is not None:
                return real
        if is_number(left) and is_number(right):
            if symbol == "Div":
                return Quotient(left, right)
            divides = symbol in ("FloorDiv", "Mod")
            found = None
            if not (divides and is_below(right, 1)):
                found = self.arithmetic.binary(symbol, left, right)
            if found is not None:
                return found
            if divides:
                self.refuse("kernels divide numbers that are 0 or more by numbers above 0", node)
            if symbol == "Mult":
                self.refuse("kernels multiply numbers that are 0 or more", node)
            if symbol in BITWISE_OPERATORS:
                self.refuse("kernels have operators of bits of numbers that are 0 or more", node)
        self.refuse(f"kernels have no operator {symbol} of these operands", node)

    def unary(self, symbol: str, value: Any, node: ast.AST) -> Any:
        """Translates a unary operator."""
        if is_computed(value) and symbol == "USub":
            return self.arithmetic.subtract(0, value)
        if not is_known(value):
            self.refuse(f"kernels have no operator {symbol} of this operand", node)
        return PYTHON_UNARY_OPERATORS[symbol](value)

    def _compare(
        self, left: ast.expr, operators: Sequence[ast.cmpop], others: Sequence[ast.expr]
    ) -> Any:
        values = [self.value(left), *(self.value(each) for each in others)]
        found: list[Any] = []
        for operator, first, second in zip(operators, values, values[1:], strict=False):
            symbol = type(operator).__name__
            is_test_of_objects = symbol in ("Is", "IsNot") and not (
                isinstance(first, bool) or isinstance(second, bool)
            )
            if is_test_of_objects or (is_known(first) and is_known(second)):
                found.append(PYTHON_OPERATORS[symbol](first, second))
            else:
                found.append(self._comparison(symbol, first, second, left))
        return joined(found, needs_all=True)

    def _comparison(self, symbol: str, first: Any, second: Any, node: ast.AST) -> Condition | bool:
        """Translates a comparison of unsigned integers, or of tuples elementwise."""
        if is_tuple(first) and is_tuple(second) and symbol in ("Eq", "NotEq"):
            if len(first) != len(second):
                return symbol == "NotEq"
            parts = [
                PYTHON_OPERATORS["Eq"](a, b)
                if is_known(a) and is_known(b)
                else self._comparison("Eq", a, b, node)
                for a, b in zip(first, second, strict=True)
            ]
            same = joined(parts, needs_all=True)
            if symbol == "Eq":
                return same
            return same.opposite if is_condition(same) else not same
        if symbol in ("In", "NotIn"):
            found = self._is_in(first, second, node)
            if symbol == "In":
                return found
            return found.opposite if is_condition(found) else not found
        if symbol not in PREDICATES or not (is_number(first) and is_number(second)):
            self.refuse(f"kernels have no comparison {symbol} of these operands", node)
        return self.arithmetic.comparison(PREDICATES[symbol], first, second)

    def _is_in(self, value: Any, values: Any, node: ast.AST) -> Condition | bool:
        """Translates a membership test in a range or a sequence."""
        match values:
            case range() | KernelRange() if isinstance(values.step, int) and values.step > 0:
                parts = [
                    self._comparison("GtE", value, values.start, node),
                    self._comparison("Lt", value, values.stop, node),
                ]
                if values.step > 1:
                    distance = self.binary("Sub", value, values.start, node)
                    rest = self.binary("Mod", distance, values.step, node)
                    parts.append(self._comparison("Eq", rest, 0, node))
                return joined(parts, needs_all=True)
            case _:
                pass
        if is_known(value) and is_known(values):
            return value in values
        found = [
            value == each
            if is_known(value) and is_known(each)
            else self._comparison("Eq", value, each, node)
            for each in self.known_sequence(values, node)
        ]
        return joined(found, needs_all=False)

    def test(self, node: ast.expr) -> Condition | bool:
        """Translates an expression whose truth value is used."""
        match node:
            case ast.UnaryOp(ast.Not(), of):
                found = self.test(of)
                return found.opposite if is_condition(found) else not found
            case ast.BoolOp(operator, values):
                needs_all = isinstance(operator, ast.And)
                parts: list[Condition | bool] = []
                for each in values:
                    parts.append(self.test(each))
                    if parts[-1] is not needs_all and not is_condition(parts[-1]):
                        # Python does not evaluate the remaining operands.
                        break
                return joined(parts, needs_all=needs_all)
            case _:
                value = self.value(node)
                if is_condition(value):
                    return value
                return Comparison("ne", value, 0) if is_computed(value) else self.truth(value)

    def truth(self, value: Any) -> bool:
        """Truth value of a compile-time value."""
        return bool(value)

    def _logical(self, needs_all: bool, values: Sequence[ast.expr], node: ast.AST) -> Any:
        """Translates `and` or `or` as a value: the first operand that decides, or the last one."""
        found: list[Any] = []
        for each in values:
            value = self.value(each)
            decides = is_known(value) and self.truth(value) is not needs_all
            if not found and (decides or each is values[-1]):
                return value
            if found or not is_known(value):
                found.append(value)
            if decides:
                break
        if len(found) > 1 and all(is_number(x) and not isinstance(x, bool) for x in found):
            return self.arithmetic.logical(found, needs_all=needs_all)
        if len(found) > 1 and not all(is_condition(x) or isinstance(x, bool) for x in found):
            self.refuse(
                "the compiler does not choose between these: they are not all numbers",
                node,
                remedy="use an if statement",
            )
        return found[0] if len(found) == 1 else joined(found, needs_all=needs_all)

    def _known_test(self, node: ast.expr) -> bool:
        """Truth value of an expression, which must be known at compile time."""
        found = self.test(node)
        if isinstance(found, bool):
            return found
        self.refuse(
            "the compiler takes a choice that is known when the kernel is compiled",
            node,
            remedy="use an if statement",
        )

    def _conditional(self, test: ast.expr, body: ast.expr, orelse: ast.expr) -> Any:
        condition = self.test(test)
        if not is_condition(condition):
            return self.value(body if condition else orelse)
        found: list[Any] = []
        bounds: list[int | None] = []
        for holds, part in ((condition, body), (condition.opposite, orelse)):
            with self.arithmetic.assuming(holds):
                found.append(self.value(part))
                number = found[-1]
                bounds.append(self.arithmetic.lower_bound(number) if is_number(number) else None)
        chosen = self.chosen(condition, found[0], found[1], test)
        if is_computed(chosen) and chosen not in found and None not in bounds:
            self.arithmetic.bound_below(chosen, min(each for each in bounds if each is not None))
        return chosen

    def chosen(self, condition: Condition, left: Any, right: Any, node: ast.AST) -> Any:
        """Selects one of two values by a condition of the running kernel."""
        if is_number(left) and is_number(right):
            return self.arithmetic.chosen(condition, left, right)
        if is_tuple(left) and is_tuple(right) and len(left) == len(right):
            parts = zip(left, right, strict=True)
            return tuple(self.chosen(condition, first, second, node) for first, second in parts)
        if left is right or (is_known(left) and is_known(right) and left == right):
            return left
        if all(is_condition(each) or isinstance(each, bool) for each in (left, right)):
            first = joined((condition, left), needs_all=True)
            second = joined((condition.opposite, right), needs_all=True)
            return joined((first, second), needs_all=False)
        raise Undecided(condition, self.frame, node, location(self.frame.captured.file, node))

    def _comprehension(
        self, element: ast.expr, generators: Sequence[ast.comprehension]
    ) -> list[Any]:
        frame = Frame(self.frame.syntax, self.frame.captured, self.frame, self.frame.regions)
        first = self.value(generators[0].iter)
        self.frames.append(frame)
        found = list(self._elements(element, generators, first))
        self.frames.pop()
        return found

    def _elements(
        self, element: ast.expr, generators: Sequence[ast.comprehension], values: Any
    ) -> Iterator[Any]:
        """Yields the elements of a comprehension; `values` is the outermost iterable."""
        generator, *inner = generators
        for value in self.known_sequence(values, generator.iter):
            self.here = element
            self.bind(generator.target, value)
            if not all(map(self._known_test, generator.ifs)):
                continue
            if inner:
                yield from self._elements(element, inner, self.value(inner[0].iter))
            else:
                yield self.value(element)

    def bind(self, target: ast.expr, value: Any) -> None:
        """Assigns to a name or to a tuple of names."""
        raise NotImplementedError

    def known_sequence(self, values: Any, node: ast.AST) -> list[Any]:
        """Elements of a sequence that is known at compile time."""
        if is_condition(values) or not hasattr(values, "__iter__"):
            self.refuse("kernels go over ranges, and over sequences that are known", node)
        return list(values)

    def subscript(self, value: Any, index: Any, node: ast.AST) -> Any:
        """Translates a subscript."""
        if isinstance(value, KernelRange | KernelZip | KernelList):
            if not is_number(index):
                self.refuse("an index of this sequence is an integer", node)
            return element_of(value, index, self.arithmetic)
        if is_computed(index) and isinstance(value, dict):
            return self._dictionary_lookup(cast(dict[Any, Any], value), index, node)
        if is_computed(index) and is_known(value) and hasattr(value, "__len__"):
            if not self.arithmetic.is_natural(index):
                self.refuse("kernels count the elements of a sequence from 0", node)
            of = node.value if isinstance(node, ast.Subscript) else None
            name = of.id if isinstance(of, ast.Name) else "table"
            found = looked_up(value, index, self.arithmetic, name)
            if found is not None:
                return found
            self.refuse(
                "an index that the running kernel computes is one of a sequence of integers", node
            )
        if not is_known(index):
            self.refuse("an index of a tuple is known when the kernel is compiled", node)
        return value[index]

    def _dictionary_lookup(self, values: dict[Any, Any], key: SSAValue, node: ast.AST) -> Any:
        """Looks up a dictionary by a key that the running kernel computes."""
        if not values or not all(isinstance(each, int) for each in values):
            self.refuse("a key that the running kernel computes is one of integers", node)
        is_counted = sorted(values) == list(range(len(values)))
        if is_counted and self.arithmetic.is_natural(key):
            found = looked_up([values[n] for n in range(len(values))], key, self.arithmetic)
            if found is not None:
                return found
        *others, (_, found) = values.items()
        for each, value in reversed(others):
            same = self.arithmetic.comparison("eq", key, each)
            if not is_condition(same):
                found = value if same else found
                continue
            found = self.chosen(same, value, found, node)
        return found

    # Functions that kernels compute

    def node_of_kernel(self, dims: int | None = None) -> Any:
        """Coordinates of the node."""
        grid = self.kernel.node.launch.grid
        position: tuple[Number, ...] = (self.column, self.row)[: len(grid)]
        dims = len(grid) if dims is None else dims
        if dims == 1 and len(grid) == 2:
            column = self.arithmetic.multiply(self.column, grid[1])
            return self.arithmetic.add(column, self.row)
        found = position + (0,) * (dims - len(position))
        return found[0] if dims == 1 else found

    def grid_size(self, dims: int | None = None) -> Any:
        """Size of the grid."""
        grid = self.kernel.node.launch.grid
        found = grid_in_dimensions(grid, len(grid) if dims is None else dims)
        return found[0] if len(found) == 1 else found

    def extreme(self, function: Callable[..., Any], *values: Any) -> Any:
        """Translates `min` and `max` of numbers."""
        given = sequence_of(values[0]) if len(values) == 1 else values
        if all(map(is_known, given)):
            return function(*values)
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
