"""Variables of C++ functions with their lifetimes, and option structures of ttnn calls.

A tensor of the library frees its memory when the last variable that holds it goes. So there are no
statements that free it: a value that takes the place of its operand is assigned to the same
variable, and a variable that is used for the last time is moved out of (`last_use(x)`), so that
its tensor goes at the end of that statement, which is when it was deallocated in the program that
is written. What is used by the last statement goes with the scope.

call::matmul(queries, keys, {.transpose_b = true, .dtype = ttnn::DataType::FLOAT32})

What a call does not choose is shared by all products, from src/tuning.hpp. The structures and
functions are at the head of the source file, in a namespace of their own, so that no value of
the program hides them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest

from xdsl.ir import SSAValue

from ttcodegen.emitc.spelling import NameScope, Text, identifier, type_name
from ttcodegen.naming.modules import (
    PRODUCT_COMPUTE,
    PRODUCT_MEMORY,
    PRODUCT_PROGRAM,
    qualified,
)
from ttcodegen.naming.values import ValueNames
from ttcodegen.ops.core.calls import NULLOPT, PARAMETERS, Argument, Call


@dataclass(frozen=True)
class Usage:
    """The values that a statement uses, once for each time, and those that it makes."""

    uses: tuple[SSAValue, ...]
    results: tuple[SSAValue, ...]
    takes_over: bool = False
    """True if it calls a function that frees what it is given before it returns: a variable is
    then moved out of even if the result takes its place, or the scope ends."""


@dataclass
class Lifetime:
    """Effect of a statement on variables."""

    assigned: dict[SSAValue, str] = field(default_factory=dict[SSAValue, str])
    """Results that go into a variable that is there already."""
    declared: dict[SSAValue, str] = field(default_factory=dict[SSAValue, str])
    """Results that get a variable of their own."""
    moved: set[SSAValue] = field(default_factory=set[SSAValue])
    """Values that are used for the last time and moved out of their variable."""
    cleared: list[SSAValue] = field(default_factory=list[SSAValue])
    """Values that are used for the last time, more than once: their variable is emptied after."""
    taken_over: SSAValue | None = None
    """The operand whose variable the only result goes into."""


def plan_variables(
    statements: Sequence[Usage],
    names: ValueNames,
    type_of: Callable[[SSAValue], str],
    *,
    owned: Iterable[tuple[SSAValue, str]] = (),
    returned: Iterable[SSAValue] = (),
    reserved: Iterable[str] = (),
) -> list[Lifetime]:
    """The variables of a function, statement by statement.

    Args:
        statements: what they use and make; other values are defined elsewhere.
        names: what values are called.
        type_of: their C++ types; a variable holds values of one.
        owned: parameters that the function may move out of, with their names.
        returned: what the function returns.
        reserved: names that are taken.
    """
    planner = _Planner(statements, names, type_of, returned, reserved)
    for value, name in owned:
        planner.scope.reserve(name)
        planner.variable_of[value] = name
        planner.base_of[name] = identifier(names[value]), type_of(value)
    return [planner.plan(index, usage) for index, usage in enumerate(statements)]


class _Planner:
    def __init__(
        self,
        statements: Sequence[Usage],
        names: ValueNames,
        type_of: Callable[[SSAValue], str],
        returned: Iterable[SSAValue],
        reserved: Iterable[str],
    ) -> None:
        self.names = names
        self.type_of = type_of
        self.scope = NameScope(reserved)
        self.variable_of: dict[SSAValue, str] = {}
        self.base_of: dict[str, tuple[str, str]] = {}
        """Base name and type of the values of a variable."""
        self._free: dict[str, None] = {}
        self._count = len(statements)
        self._last_use = {
            value: index for index, usage in enumerate(statements) for value in usage.uses
        }
        self._last_use.update((value, self._count) for value in returned)

    def plan(self, index: int, usage: Usage) -> Lifetime:
        """Effect on variables of the statement with that index."""
        lifetime = Lifetime()
        counts = Counter(usage.uses)
        dying = [
            value
            for value in counts
            if value in self.variable_of and self._last_use[value] == index
        ]
        single = usage.results[0] if len(usage.results) == 1 else None
        if single is not None:
            lifetime.taken_over = self._take_over(single, dying, lifetime)
        else:
            for result in usage.results:
                self._declare(result, self._unique(result), lifetime)
        is_last = index == self._count - 1
        for value in dying:
            if value is lifetime.taken_over:
                if usage.takes_over and counts[value] == 1:
                    lifetime.moved.add(value)
            else:
                if counts[value] > 1:
                    if not is_last:
                        lifetime.cleared.append(value)
                elif not is_last or usage.takes_over:
                    lifetime.moved.add(value)
                self._free[self.variable_of[value]] = None
        return lifetime

    def _take_over(
        self, result: SSAValue, dying: Sequence[SSAValue], lifetime: Lifetime
    ) -> SSAValue | None:
        """Gives a result its variable: that of an operand of its name that is not used any more,
        else one of its name that is free, else a new one. Returns the operand, if any."""
        base = self._base(result)
        for value in dying:
            variable = self.variable_of[value]
            if self.base_of[variable] == base:
                self._assign(result, variable, lifetime)
                return value
        for name in map(identifier, self.names.names_of(result)):
            if name in self._free and self.base_of[name][1] == base[1]:
                del self._free[name]
                self._assign(result, name, lifetime)
                return None
            if not self.scope.is_taken(name):
                self._declare(result, self.scope.unique(name), lifetime, base)
                return None
        self._declare(result, self._unique(result), lifetime, base)
        return None

    def _base(self, value: SSAValue) -> tuple[str, str]:
        return identifier(self.names[value]), self.type_of(value)

    def _unique(self, result: SSAValue) -> str:
        for name in map(identifier, self.names.names_of(result)):
            if not self.scope.is_taken(name):
                return self.scope.unique(name)
        return self.scope.unique(identifier(self.names[result]))

    def _assign(self, result: SSAValue, variable: str, lifetime: Lifetime) -> None:
        self.variable_of[result] = variable
        lifetime.assigned[result] = variable

    def _declare(
        self,
        result: SSAValue,
        variable: str,
        lifetime: Lifetime,
        base: tuple[str, str] | None = None,
    ) -> None:
        self.variable_of[result] = variable
        self.base_of[variable] = base or self._base(result)
        lifetime.declared[result] = variable


NAMESPACE = "call"


@dataclass(frozen=True)
class Option:
    """An option of a function: its type, and what the function assumes."""

    name: str
    type: str
    default: str = "std::nullopt"
    tuned: str = ""
    """The constant of src/tuning.hpp that all calls share, if there is one."""


_PRODUCT = (
    Option("transpose_a", "bool", "false"),
    Option("transpose_b", "bool", "false"),
    Option("memory_config", "std::optional<ttnn::MemoryConfig>", tuned=PRODUCT_MEMORY),
    Option("dtype", "std::optional<ttnn::DataType>"),
    Option(
        "program_config",
        "std::optional<ttnn::operations::matmul::MatmulProgramConfig>",
        tuned=PRODUCT_PROGRAM,
    ),
    Option("activation", "std::optional<std::string>"),
    Option(
        "compute_kernel_config",
        "std::optional<ttnn::DeviceComputeKernelConfig>",
        tuned=PRODUCT_COMPUTE,
    ),
)
_OPTIONS: Mapping[str, tuple[tuple[str, ...], tuple[Option, ...]]] = {
    "ttnn::matmul": (("const ttnn::Tensor&", "const ttnn::Tensor&"), _PRODUCT),
    "ttnn::linear": (
        ("const ttnn::Tensor&", "const ttnn::Tensor&", "const std::optional<ttnn::Tensor>&"),
        _PRODUCT,
    ),
}
"""The types of the operands, and the options, of functions that take more than a reader counts."""


def with_options(
    call: Call, shared: Mapping[str, str]
) -> tuple[str, Sequence[Argument], dict[str, Argument]] | None:
    """The wrapper of a call, its operands and the options that are chosen; None if it has none.

    Args:
        call: the call as the library takes it.
        shared: what constants of src/tuning.hpp that all calls share are, if not left to the
            library.
    """
    known = _OPTIONS.get(call.callee)
    if known is None:
        return None
    operands, options = known
    given = call.arguments[len(operands) :]
    if len(given) > len(options):
        return None
    chosen: dict[str, Argument] = {}
    for option, argument in zip_longest(options, given, fillvalue=None):
        assert option is not None
        value = Text(option.default) if argument is None else argument
        assumed = shared.get(option.tuned, option.default)
        if not (isinstance(value, Text) and value.text == assumed):
            chosen[option.name] = value
    name = call.callee.rpartition("::")[2]
    # What is left out at the end of the operands is none.
    taken = [*call.arguments[: len(operands)]]
    taken += [NULLOPT] * (len(operands) - len(taken))
    return f"{NAMESPACE}::{name}", taken, chosen


def options_type(wrapper: str) -> str:
    """The structure of the options of a wrapper."""
    return f"{NAMESPACE}::{type_name(wrapper.rpartition('::')[2])}Options"


def definitions(wrappers: Iterable[str]) -> str:
    """The C++ of some wrappers."""
    texts = [_definition(f"ttnn::{wrapper.rpartition('::')[2]}") for wrapper in wrappers]
    return "\n".join([f"namespace {NAMESPACE} {{", *texts, "", f"}}  // namespace {NAMESPACE}"])


def _definition(callee: str) -> str:
    name = callee.rpartition("::")[2]
    operands, options = _OPTIONS[callee]
    names = PARAMETERS[name]
    struct = f"{type_name(name)}Options"
    fields = [
        f"    {option.type} {option.name} = {qualified(option.tuned) or option.default};"
        for option in options
    ]
    taken = [f"{type_} {each}" for type_, each in zip(operands, names, strict=False)]
    passed = [
        *names[: len(operands)],
        *(f"/*{option.name}=*/options.{option.name}" for option in options),
    ]
    return "\n".join(
        [
            "",
            f"// Options of {callee}. The defaults that all calls share are in tuning.hpp.",
            f"struct {struct} {{",
            *fields,
            "};",
            "",
            f"static ttnn::Tensor {name}({', '.join(taken)}, const {struct}& options = {{}}) {{",
            f"    return {callee}({', '.join(passed)});",
            "}",
        ]
    )
