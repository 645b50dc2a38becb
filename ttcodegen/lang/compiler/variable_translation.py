"""Variables of kernels: what becomes a variable of C++, and what loops carry."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any, TypeGuard

from xdsl.ir import SSAValue

from ttcodegen.dialects.ttkernel.builder import KernelBuilder
from ttcodegen.lang.compiler.calls import CallTranslator
from ttcodegen.lang.compiler.captured import Captured, stored_names
from ttcodegen.lang.compiler.evaluation import is_known
from ttcodegen.lang.compiler.frames import Frame
from ttcodegen.lang.compiler.loops import Loop
from ttcodegen.lang.compiler.numbers import Number, is_number
from ttcodegen.lang.compiler.pipe_nets import NetUses
from ttcodegen.lang.compiler.variables import Variable, last_line, read_after, reads_first
from ttcodegen.lang.context import Kernel


def is_changeable(value: object) -> TypeGuard[Number]:
    """Whether a value is a number that the kernel can keep in a variable."""
    return is_number(value) and not isinstance(value, bool)


def cpp_name(name: str) -> str | None:
    """A name of Python as one of C++; None if it is none there."""
    return name if SSAValue.is_valid_name(name) else None


class VariableTranslator(CallTranslator):
    """Keeps what the variables of a kernel hold."""

    def __init__(
        self, kernel: Kernel, captured: Captured, builder: KernelBuilder, nets: NetUses
    ) -> None:
        super().__init__(kernel, captured, builder, nets)
        self.loops: list[Loop] = []
        """The loops of the running kernel around a statement, the outermost first."""

    def update(self, name: str, old: Any, symbol: str, value: Any) -> None:
        """Gives a name what an assignment with an operator made of its old value."""
        self.store_name(name, value)

    def store_name(self, name: str, value: Any) -> None:
        """Binds a name."""
        if name in self.frame.outer_names:
            self.refuse(
                f"the compiler does not assign to '{name}', a variable of a function around it",
                remedy="return the value",
            )
        for loop in self.loops:
            loop.assigns(self.frame, name, self.regions)
        held = self.names.get(name)
        if isinstance(held, Variable) and is_changeable(value):
            self._change(name, held, value)
            return
        if isinstance(value, SSAValue) and value.name_hint is None and SSAValue.is_valid_name(name):
            value.name_hint = name
        self.names[name] = value

    def read_variable(self, variable: Variable) -> SSAValue:
        found = self.builder.load(variable.slot)
        before = variable.known_in(self.regions)
        if before is not None:
            self.arithmetic.same(found, before)
        else:
            variable.read, variable.read_in = found, self.regions
        return found

    def _change(self, name: str, variable: Variable, value: Number) -> None:
        self._check_natural(name, value)
        self.builder.assign(variable.slot, value)
        variable.read = None

    def _check_natural(self, name: str, value: Number) -> None:
        if not self.arithmetic.is_natural(value):
            self.refuse(
                f"'{name}' changes while the kernel runs, and may become negative here",
                remedy="kernels count with numbers that are 0 or more: take max(..., 0)",
            )

    def _make_variables(self, body: Sequence[ast.stmt], *, is_loop: bool) -> None:
        """Numbers that the running kernel changes in a loop or under a condition become variables
        of C++, if somebody reads them as they are then."""
        end = last_line(body)
        for name in stored_names(body):
            value = self.names.get(name)
            if isinstance(value, Variable):
                value.read = None
            elif is_changeable(value) and (
                (is_loop and reads_first(body, name)) or read_after(self.frame.syntax, end, name)
            ):
                self._check_natural(name, value)
                if isinstance(value, SSAValue) and value.name_hint == name:
                    value.name_hint = None
                self.names[name] = Variable(self.builder.variable(value, cpp_name(name)))

    def survives(self, name: str, before: Any) -> bool:
        """Whether what a name holds outlives the loop or condition that it is assigned in."""
        return is_known(before) and is_known(self.names[name]) and before == self.names[name]

    def before_loop(self, body: Sequence[ast.stmt]) -> None:
        """Prepares what a loop carries from one iteration to the next."""
        self._make_variables(body, is_loop=True)

    def before_condition(self, body: Sequence[ast.stmt]) -> None:
        """Prepares what statements change that are carried out where a condition holds."""
        self._make_variables(body, is_loop=False)

    def noted(self, frame: Frame, name: str, node: ast.AST) -> None:
        for loop in self.loops:
            loop.reads(frame, name, node)

    def check_carried(self, loop: Loop) -> None:
        """At the end of a loop: what it read of its variables holds in all of its iterations."""
        for name, node in loop.carried():
            if not self.survives(name, loop.before[name]):
                self.refuse(
                    f"'{name}' is carried from one iteration to the next: the compiler takes "
                    "numbers that follow from the counters of loops",
                    node,
                )
