"""Mutable variables of kernels, as C++ variables or loop-carried values."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any, TypeGuard

from xdsl.ir import SSAValue

from ttcodegen.dialects.ttkernel.builder import KernelBuilder
from ttcodegen.lang.compiler.python.calls import CallTranslator
from ttcodegen.lang.compiler.python.captured import Captured, function_of, stored_names
from ttcodegen.lang.compiler.python.evaluation import UNKNOWN, is_known
from ttcodegen.lang.compiler.python.numbers import Number, is_number
from ttcodegen.lang.compiler.python.pipe_nets import NetUses
from ttcodegen.lang.compiler.python.variables import (
    Frame,
    Limits,
    Loop,
    Variable,
    assigned_values,
    is_assigned_on_all_paths,
    last_line,
    reads_first,
)
from ttcodegen.lang.simulator.context import Kernel
from ttcodegen.lang.simulator.shapes import is_tuple


def is_mutable_number(value: object) -> TypeGuard[Number]:
    """True if a value is a number that a mutable variable can hold."""
    return is_number(value) and not isinstance(value, bool)


def cpp_name(name: str) -> str | None:
    """Converts a Python name to a C++ name; None if it is not valid there."""
    return name if SSAValue.is_valid_name(name) else None


class VariableTranslator(CallTranslator):
    """Translates assignments and reads of variables."""

    def __init__(
        self, kernel: Kernel, captured: Captured, builder: KernelBuilder, nets: NetUses
    ) -> None:
        super().__init__(kernel, captured, builder, nets)
        self.loops: list[Loop] = []
        """Enclosing device loops, outermost first."""

    @property
    def is_uniform(self) -> bool:
        """True if all nodes reach a statement, and equally often."""
        uniform = {loop.regions for loop in self.loops if loop.is_uniform}
        regions = self.regions
        return all(regions[: number + 1] in uniform for number in range(len(regions)))

    def update(self, name: str, old: Any, symbol: str, value: Any) -> None:
        """Translates an augmented assignment; `value` is the new value."""
        self.store_name(name, value)

    def store_name(self, name: str, value: Any) -> None:
        """Assigns a value to a variable."""
        if name in self.frame.outer_names:
            self._store_outer(name, value)
            return
        for loop in self.loops:
            loop.assigns(self.frame, name, self.regions)
        held = self.names.get(name)
        if isinstance(held, Variable) and is_mutable_number(value):
            self._assign_variable(name, held, value)
            return
        if is_mutable_number(value) and name in self.frame.shared_names:
            # Nested functions may change it at any call.
            self._check_natural(name, value)
            self.names[name] = Variable(self.builder.variable(value, cpp_name(name)))
            return
        if isinstance(value, SSAValue) and value.name_hint is None and SSAValue.is_valid_name(name):
            value.name_hint = name
        self.names[name] = value

    def declare_outer(self, name: str, node: ast.stmt) -> None:
        """Translates a `nonlocal` declaration.

        A variable of the operation's body becomes a variable of the kernel, if no other kernel uses
        it.
        """
        if len(self.frames) > 1:
            self.frame.outer_names.add(name)
            return
        others = [
            other.name
            for other in self.kernel.node.kernels
            if other is not self.kernel and name in function_of(other).__code__.co_freevars
        ]
        if others:
            self.refuse(
                f"the kernels '{self.kernel.name}' and '{others[0]}' share the variable '{name}', "
                "which one of them changes",
                node,
                remedy="hand it on in a dataflow buffer, or let each kernel count for itself",
            )
        initial = self.kernel.node.launch.initial
        if (self.kernel.name, name) not in initial:
            initial[self.kernel.name, name] = self.captured_value(name, node)
        value = self.resolve_captured(name, initial[self.kernel.name, name])
        if not is_mutable_number(value):
            self.refuse(f"'{name}' is no number: kernels change numbers only", node)
        self._check_natural(name, value)
        self.names[name] = Variable(self.builder.variable(value, cpp_name(name)))

    def _store_outer(self, name: str, value: Any) -> None:
        """Assigns a value to a variable of an enclosing function."""
        frame = self.frame.enclosing
        while frame is not None and (name not in frame.names or name in frame.outer_names):
            frame = frame.enclosing
        held = None if frame is None else frame.names[name]
        if not isinstance(held, Variable) or not is_mutable_number(value):
            self.refuse(
                f"'{name}' is a variable of a function around this one: a kernel changes numbers "
                "of its own only",
                remedy="give the variable a number in the kernel before, or return the value",
            )
        self._assign_variable(name, held, value)

    def read_variable(self, variable: Variable) -> SSAValue:
        found = self.builder.load(variable.slot)
        before = variable.known_in(self.regions)
        if before is not None:
            self.arithmetic.record_equal(found, before)
        else:
            variable.read, variable.read_in = found, self.regions
        return found

    def _assign_variable(self, name: str, variable: Variable, value: Number) -> None:
        self._check_natural(name, value)
        self.builder.assign(variable.slot, value)
        variable.read = None

    def _check_natural(self, name: str, value: Number) -> None:
        if not self.arithmetic.is_natural(value):
            self.refuse(
                f"'{name}' changes while the kernel runs, and may become negative here",
                remedy="kernels count with numbers that are 0 or more: take max(..., 0)",
            )

    def _promote_variables(self, body: Sequence[ast.stmt], *, is_loop: bool) -> None:
        """Promotes assigned numbers that are read later to C++ variables."""
        end = last_line(body)
        for name in stored_names(body):
            value = self.names.get(name)
            if isinstance(value, Variable):
                value.read = None
            elif is_mutable_number(value) and (
                (is_loop and reads_first(body, name)) or self.frame.reads_later(name, end)
            ):
                self._check_natural(name, value)
                if isinstance(value, SSAValue) and value.name_hint == name:
                    value.name_hint = None
                self.names[name] = Variable(self.builder.variable(value, cpp_name(name)))

    def joined_names(self, body: Sequence[ast.stmt], orelse: Sequence[ast.stmt]) -> list[str]:
        """Variables that both branches of a condition assign and that are read after it.

        Numbers become C++ variables instead of being returned.
        """
        end = last_line([*body, *orelse])
        found: list[str] = []
        for name in stored_names([*body, *orelse]) if orelse else ():
            is_new = self.names.get(name, UNKNOWN) is UNKNOWN
            if not is_new or not self.frame.reads_later(name, end):
                continue
            if is_assigned_on_all_paths((body, orelse), name):
                if self._are_numbers(name, [*body, *orelse], frozenset()):
                    self.names[name] = Variable(self.builder.variable(0, cpp_name(name)))
                else:
                    found.append(name)
        return found

    def _are_numbers(
        self, name: str, statements: Sequence[ast.stmt], assumed: frozenset[str]
    ) -> bool:
        """True if statements assign only numbers to a variable; `assumed` hold numbers as well."""
        values = assigned_values(statements, name)
        return name in assumed or (
            bool(values)
            and all(
                value is not None and self._looks_like_number(value, statements, assumed | {name})
                for value in values
            )
        )

    def _looks_like_number(
        self, value: ast.expr, statements: Sequence[ast.stmt], assumed: frozenset[str]
    ) -> bool:
        """True if an expression consists of integers and integer operators only."""
        match value:
            case ast.Constant(number):
                return is_mutable_number(number)
            case ast.Name(name) if name not in self.names and (
                name in assumed or assigned_values(statements, name)
            ):
                return self._are_numbers(name, statements, assumed)
            case ast.Name(name):
                frame = self.frame
                while frame is not None and name not in frame.names:
                    frame = frame.enclosing
                if frame is None:
                    captured = self.frame.captured
                    return name in captured and is_mutable_number(self.name(name, value))
                held = frame.names[name]
                return is_mutable_number(held) or isinstance(held, Variable)
            case ast.Subscript(ast.Name(name), ast.Constant(int(index))):
                held = self.names.get(name)
                return is_tuple(held) and len(held) > index and is_mutable_number(held[index])
            case ast.BinOp(left, operator, right) if not isinstance(operator, ast.Div):
                parts = (left, right)
                return all(self._looks_like_number(part, statements, assumed) for part in parts)
            case _:
                return False

    def survives(self, name: str, before: Any) -> bool:
        """True if the value of a variable remains valid after the loop or condition."""
        return is_known(before) and is_known(self.names[name]) and before == self.names[name]

    def before_loop(self, body: Sequence[ast.stmt], limits: Limits | None = None) -> None:
        """Prepares the loop-carried variables of a loop; `limits` are those of a counting loop."""
        self._promote_variables(body, is_loop=True)

    def after_loop(self) -> None:
        """Finishes a counting loop."""

    def before_condition(self, body: Sequence[ast.stmt]) -> None:
        """Prepares the variables that statements under a condition assign."""
        self._promote_variables(body, is_loop=False)

    def note_read(self, frame: Frame, name: str, node: ast.AST) -> None:
        for loop in self.loops:
            loop.reads(frame, name, node, self.regions)

    def check_carried(self, loop: Loop) -> None:
        """Refuses loop-carried values that the kernel does not keep in variables."""
        for name, node in loop.carried():
            if not self.survives(name, loop.before[name]):
                self.refuse(
                    f"'{name}' is carried from one iteration to the next: the compiler takes "
                    "numbers that follow from the counters of loops",
                    node,
                )
