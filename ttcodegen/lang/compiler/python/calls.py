"""Calls in kernels: language functions, inlined user functions, `print`."""

from __future__ import annotations

import ast
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from math import ceil, floor
from types import FunctionType
from typing import Any, ClassVar

from xdsl.ir import SSAValue

from ttcodegen.dialects.ttkernel.builder import KernelBuilder
from ttcodegen.foundation.messages import is_of_user
from ttcodegen.lang.compiler.python.block_lifetimes import Regions
from ttcodegen.lang.compiler.python.captured import Captured, location
from ttcodegen.lang.compiler.python.evaluation import ExpressionTranslator, is_known
from ttcodegen.lang.compiler.python.merging import CapturedFunction
from ttcodegen.lang.compiler.python.numbers import Condition, Number, Quotient, is_computed, joined
from ttcodegen.lang.compiler.python.pipe_nets import NetUses
from ttcodegen.lang.compiler.python.variables import (
    Frame,
    KernelRange,
    KernelZip,
    LocalFunction,
    Returned,
    bound_arguments,
    captured_defaults,
    captured_frame,
    computed_by_python,
    is_kernel_sequence,
    is_plain,
    length_of,
    zipped,
)
from ttcodegen.lang.simulator import context
from ttcodegen.lang.simulator.buffers import DataflowBuffer
from ttcodegen.lang.simulator.context import Kernel
from ttcodegen.lang.simulator.functions import ONE_OBJECT, debug_print, signpost
from ttcodegen.lang.simulator.pipes import PipeNet
from ttcodegen.lang.simulator.spelling import (
    Representation,
    wrong_arguments,
    wrong_method_arguments,
)

_STRUCTURAL: frozenset[Any] = frozenset({slice, len, tuple, list, zip, enumerate, reversed})
"""Python functions that do not inspect the elements of their arguments."""
MAX_CALL_DEPTH = 100
"""Maximum depth of calls, because the bodies of functions are inlined."""


@dataclass(frozen=True)
class Signpost:
    """A named zone of a kernel, for profiling."""

    name: str


@dataclass(frozen=True)
class PrintedText(Representation):
    """A formatted string with parts that are unknown at compile time."""

    language_class: ClassVar[type] = str

    parts: tuple[Any, ...]


class CallTranslator(ExpressionTranslator):
    """Translates calls."""

    def __init__(
        self, kernel: Kernel, captured: Captured, builder: KernelBuilder, nets: NetUses
    ) -> None:
        super().__init__(kernel, captured, builder)
        self.nets = nets
        self.calls: dict[Any, Callable[..., Any]] = {
            context.node: self.node_of_kernel,
            context.grid_size: self.grid_size,
            signpost: self._signpost,
            min: lambda *values: self.extreme(min, *values),  # pyright: ignore
            max: lambda *values: self.extreme(max, *values),  # pyright: ignore
            divmod: lambda a, b: (  # pyright: ignore
                self.binary("FloorDiv", a, b, self.here),
                self.binary("Mod", a, b, self.here),
            ),
            **self._python_functions(),
        }
        """Translations by Python function; others are inlined, or called at compile time."""
        self.regions: Regions = ()

    def _python_functions(self) -> dict[Any, Callable[..., Any]]:
        """Translations of Python builtins for values of the running kernel."""
        return {
            abs: self._magnitude,
            int: self._rounded(int, is_up=False),
            floor: self._rounded(floor, is_up=False),
            ceil: self._rounded(ceil, is_up=True),
            range: self._range_of,
            len: self._length,
            zip: lambda *parts, strict=False: zipped(parts) or zip(*parts, strict=strict),  # pyright: ignore
            enumerate: self._enumerate,
            reversed: self._reversed,
            sum: self._sum,
            any: lambda values: self._any_or_all(values, needs_all=False),  # pyright: ignore
            all: lambda values: self._any_or_all(values, needs_all=True),  # pyright: ignore
            map: self._map,
            reduce: self._fold,
        }

    def _magnitude(self, value: Any) -> Any:
        return self.arithmetic.magnitude(value) if is_computed(value) else abs(value)

    def _rounded(self, function: Callable[..., Any], *, is_up: bool) -> Callable[..., Any]:
        def call(value: Any) -> Any:
            if is_computed(value):
                return value
            if not isinstance(value, Quotient):
                return function(value)
            found = self.arithmetic.rounded(value, is_up=is_up)
            if found is None:
                self.refuse("kernels divide numbers that are 0 or more by numbers above 0")
            return found

        return call

    def _range_of(self, *limits: Any) -> Any:
        if all(map(is_known, limits)):
            return range(*limits)
        start, stop, step = (0, limits[0], 1) if len(limits) == 1 else (*limits, 1)[:3]
        return KernelRange(start, stop, step)

    def _length(self, value: Any) -> Any:
        found = length_of(value, self.arithmetic)
        if found is None:
            self.refuse("kernels cannot count the elements of this sequence")
        return found

    def _enumerate(self, values: Any, start: Any = 0) -> Any:
        if not is_kernel_sequence(values):
            return enumerate(self.known_sequence(values, self.here), start)
        length = self._length(values)
        counted = KernelRange(start, self.arithmetic.add(start, length), 1)
        return KernelZip((counted, values), length)

    def _reversed(self, values: Any) -> Any:
        if not isinstance(values, KernelRange):
            return reversed(values)
        if values.step != 1:
            self.refuse("kernels go back in steps of 1")
        last = self.arithmetic.subtract(values.stop, 1)
        return KernelRange(last, self.arithmetic.subtract(values.start, 1), -1)

    def _map(self, function: Any, *parts: Any) -> list[Any]:
        given = zip(*(self.known_sequence(part, self.here) for part in parts), strict=False)
        return [self.called(function, arguments, {}) for arguments in given]

    def _sum(self, values: Any, start: Any = 0) -> Any:
        total = start
        for value in self.known_sequence(values, self.here):
            total = value if total == 0 else self.binary("Add", total, value, self.here)
        return total

    def _any_or_all(self, values: Any, *, needs_all: bool) -> Any:
        return joined(self.known_sequence(values, self.here), needs_all=needs_all)

    def _fold(self, function: Any, values: Any, *start: Any) -> Any:
        total, *others = [*start, *self.known_sequence(values, self.here)]
        for value in others:
            total = self.called(function, (total, value), {})
        return total

    def leave_out(self, what: str, node: ast.AST) -> None:
        """Warns that the device kernel omits a part of the Python kernel."""
        message = f"the kernel '{self.kernel.name}' of the project leaves out {what}"
        self.diagnostics.warn(message, location(self.frame.captured.file, node))

    def inside(self, body: Sequence[ast.stmt], joined: Sequence[str] = ()) -> None:
        """Translates the body of a loop, a condition or a function.

        `joined` are variables that are read after both branches of a condition.
        """
        raise NotImplementedError

    def call(self, node: ast.Call) -> Any:
        if isinstance(node.func, ast.Attribute):
            of = self.value(node.func.value)
            method = self.method(of, node.func.attr)
            if method is not None:
                arguments, keywords = self._arguments(node), self._keywords(node)
                self.here = node
                self._refuse_if(wrong_method_arguments(of, node.func.attr, arguments, keywords))
                return method(*arguments, **keywords)
            function = self.attribute_of(of, node.func.attr, node.func)
        else:
            function = self.value(node.func)
        if function in (print, debug_print):
            self._print(node)
            return None
        arguments, keywords = self._arguments(node), self._keywords(node)
        self.here = node
        return self.called(function, arguments, keywords)

    def _refuse_if(self, message: str | None) -> None:
        """Refuses a call if there is an error message for its arguments."""
        if message is not None:
            self.refuse(message)

    def called(self, function: Any, arguments: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
        """Translates a call of a function value."""
        is_hashable: bool = isinstance(function, Hashable)
        special = self.calls.get(function) if is_hashable else None
        if special is not None:
            if getattr(function, "__module__", "").startswith("ttcodegen.lang."):
                name = function.__name__
                self._refuse_if(wrong_arguments(name, function, arguments, keywords))
            return special(*arguments, **keywords)
        if isinstance(function, LocalFunction):
            frame = function.new_frame(len(self.regions))
            return self._inline(frame, function.defaults, arguments, keywords)
        if isinstance(function, FunctionType) and is_of_user(function.__code__.co_filename):
            function = CapturedFunction({self.kernel.node.coordinates: function})
        values = [*arguments, *keywords.values()]
        if isinstance(function, CapturedFunction):
            computed = computed_by_python(function, arguments, keywords)
            if computed is not None:
                return computed[0]
            frame = captured_frame(function, len(self.regions))
            return self._inline(frame, captured_defaults(function), arguments, keywords)
        is_structural = is_hashable and function in _STRUCTURAL
        if not is_structural and not all(map(is_known, values)):
            name = getattr(function, "__name__", "a function")
            self.refuse(f"'{name}' is given a number that only the running kernel knows")
        return function(*arguments, **keywords)

    def _inline(
        self,
        frame: Frame,
        defaults: Mapping[str, Any],
        arguments: Sequence[Any],
        keywords: Mapping[str, Any],
    ) -> Any:
        """Inlines the body of a function."""
        if len(self.frames) > MAX_CALL_DEPTH:
            if any(each.syntax is frame.syntax for each in self.frames):
                name = "<lambda>" if frame.name == "lambda" else frame.name
                self.refuse(f"the function '{name}' calls itself without an end")
            self.refuse(f"functions call each other more than {MAX_CALL_DEPTH} deep")
        frame.names.update(bound_arguments(frame.syntax, defaults, arguments, keywords))
        self.frames.append(frame)
        try:
            self.inside(frame.rest)
        except Returned as ending:
            return ending.value
        finally:
            self.frames.pop()
        return None

    def _print(self, node: ast.Call) -> None:
        """Translates `print` to debug output: strings, and numbers of the running kernel."""
        keywords = self._keywords(node)
        operands: list[SSAValue] = []
        self._element_values: list[Any] = []
        values = self._arguments(node)
        if sum(map(self._is_object, values)) > 1:
            self.refuse(ONE_OBJECT, node)
        texts = [self._format(each, operands) for each in values]
        separator = keywords.get("sep")
        line = (" " if separator is None else str(separator)).join(texts)
        if line or not self._element_values:
            self.builder.op("dprint", *operands, fmt=line)
        for value in self._element_values:
            if not self.print_elements(value, int(keywords.get("num_pages", 1))):
                self.leave_out("elements that it prints: the simulator prints them", node)

    def _format(self, value: Any, operands: list[SSAValue]) -> str:
        """Format string of a value, with `{}` for computed numbers, which are added to `operands`.

        Values with elements are collected, to be printed after the line.
        """
        if isinstance(value, PrintedText):
            return "".join(self._format(part, operands) for part in value.parts)
        if is_computed(value):
            operands.append(value)
            return "{}"
        if isinstance(value, DataflowBuffer):
            return self.printed_buffer(value, operands)
        if is_known(value) and is_plain(value):
            return str(value).replace("{}", "{ }")
        self._element_values.append(value)
        return ""

    def _is_object(self, value: Any) -> bool:
        """True if a value is a tensor, a block or a dataflow buffer."""
        is_number = is_computed(value) or (is_known(value) and is_plain(value))
        return not is_number and not isinstance(value, PrintedText)

    def print_elements(self, value: Any, pages: int) -> bool:
        """Prints the elements of a block or of a tensor's first pages; False if not supported."""
        return False

    def print_tiles(self, tiles: int, kind: str, address: Callable[[Number], SSAValue]) -> None:
        """Prints tiles; `address` computes the address of a tile from its index."""
        if tiles == 1:
            self.builder.op("blocks.print_tile", address(0), printed=kind)
            return
        with self.builder.loop(tiles, name_hint="tile") as tile:
            self.builder.op("dprint", tile, fmt="tile {}")
            self.builder.op("blocks.print_tile", address(tile), printed=kind)

    def printed_buffer(self, buffer: DataflowBuffer, operands: list[SSAValue]) -> str:
        """Format string for the state of a dataflow buffer."""
        return buffer.describe_size()

    def joined_text(self, node: ast.JoinedStr) -> Any:
        parts: list[Any] = []
        for each in node.values:
            match each:
                case ast.Constant(text):
                    parts.append(text)
                case ast.FormattedValue(value, -1, None):
                    parts.append(self.value(value))
                case ast.FormattedValue(value, -1, ast.JoinedStr([ast.Constant(form)])) if is_plain(
                    found := self.value(value)
                ):
                    parts.append(format(found, str(form)))
                case _:
                    self.refuse("the compiler takes values in texts without formats", node)
        return (
            PrintedText(tuple(parts)) if not all(map(is_plain, parts)) else "".join(map(str, parts))
        )

    def method(self, value: Any, name: str) -> Callable[..., Any] | None:
        """Returns the translation of a method, or None if Python runs it at compile time."""
        if isinstance(value, PipeNet) and name in ("is_src", "is_dst", "is_active"):
            return lambda: self._has_role(value, name)
        return None

    def _has_role(self, net: PipeNet, role: str) -> Condition | bool:
        """True if the node is the source of a pipe, a destination, or either."""
        compiled = self.nets[net].compiled
        sources, targets = list(compiled.at_sources()), list(compiled.at_targets())
        nodes = {"is_src": sources, "is_dst": targets}.get(role, [*sources, *targets])
        return bool(nodes) and compiled.holds(nodes, (self.column, self.row))

    def _arguments(self, node: ast.Call) -> list[Any]:
        return self.values(node.args)

    def _keywords(self, node: ast.Call) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for each in node.keywords:
            value = self.value(each.value)
            found |= {each.arg: value} if each.arg else value
        return found

    def _signpost(self, name: object) -> Signpost:
        if not isinstance(name, str):
            self.refuse(f"the name of a signpost is a string, not a {type(name).__name__}")
        return Signpost(name)
