"""Variables of C++ functions with their lifetimes, and option structures of ttnn calls.

A tensor of the library frees its memory with the last variable that holds it, so no statements
deallocate. A result that replaces its operand is assigned to the same variable. A variable at its
last use is moved out of (`last_use(x)`), so that its tensor is freed at the end of that statement,
as the deallocation in the source program does. Operands of the last statement are freed with the
scope. A state that calls of the file pass on stays in its variable, too:
`std::tie(hidden, cell) = ...`.

call::matmul(queries, keys, {.transpose_b = true, .dtype = ttnn::DataType::FLOAT32})

Options that a call omits have defaults that all matmuls share, from src/tuning.hpp. The structures
and functions are at the head of the source file, in a namespace of their own, so that no value of
the program hides them."""

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
    """Values that a statement uses, once per use, and values that it defines."""

    uses: tuple[SSAValue, ...]
    results: tuple[SSAValue, ...]
    takes_over: bool = False
    """True if it calls a function that frees its arguments before it returns.

    Variables are then moved out of even if the result replaces them, or the scope ends."""
    carried: Mapping[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])
    """Operand of the first iteration for each carried result of a loop."""

    @property
    def assigns_several(self) -> bool:
        """Returns whether several results may be assigned to variables in one statement."""
        return self.takes_over and not self.carried and len(self.results) > 1


@dataclass
class Lifetime:
    """Effect of a statement on variables."""

    assigned: dict[SSAValue, str] = field(default_factory=dict[SSAValue, str])
    """Results that are assigned to an existing variable."""
    declared: dict[SSAValue, str] = field(default_factory=dict[SSAValue, str])
    """Results that get a variable of their own."""
    moved: set[SSAValue] = field(default_factory=set[SSAValue])
    """Values that are moved out of their variable at their last use."""
    cleared: list[SSAValue] = field(default_factory=list[SSAValue])
    """Values that the last statement uses several times: their variable is emptied after it."""
    taken_over: set[SSAValue] = field(default_factory=set[SSAValue])
    """Operands whose variables results take over."""
    replaced: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])
    """Last value of the variable of each assigned result."""


def plan_variables(
    statements: Sequence[Usage],
    names: ValueNames,
    type_of: Callable[[SSAValue], str],
    *,
    owned: Iterable[tuple[SSAValue, str]] = (),
    returned: Iterable[SSAValue] = (),
    reserved: Iterable[str] = (),
) -> list[Lifetime]:
    """Plans the variables of a function, statement by statement.

    Args:
        statements: values that they use and define; other values are defined elsewhere.
        names: names of the values.
        type_of: C++ types of the values; a variable holds values of one type.
        owned: parameters that the function may move out of, with their names.
        returned: values that the function returns.
        reserved: names that are taken.
    """
    planner = _Planner(statements, names, type_of, returned, reserved)
    for value, name in owned:
        planner.scope.reserve(name)
        planner.variable_of[value] = name
        planner.value_in[name] = value
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
        self.value_in: dict[str, SSAValue] = {}
        """Last value of each variable."""
        self._place: dict[SSAValue, int] = {}
        """Positions of results among those of their call."""
        self._free: dict[str, None] = {}
        self._count = len(statements)
        self._last_use = {
            value: index for index, usage in enumerate(statements) for value in usage.uses
        }
        self._last_use.update((value, self._count) for value in returned)

    def plan(self, index: int, usage: Usage) -> Lifetime:
        """Plans the effect of a statement on variables."""
        lifetime = Lifetime()
        counts = Counter(usage.uses)
        dying = [
            value
            for value in counts
            if value in self.variable_of and self._last_use[value] == index
        ]
        single = usage.results[0] if len(usage.results) == 1 else None
        if single is not None:
            self._take_over(single, dying, lifetime)
        elif usage.assigns_several:
            self._take_over_several(usage.results, dying, lifetime)
        else:
            for result in usage.results:
                operand = usage.carried.get(result)
                is_reused = operand in dying and self._reuses(operand, result, lifetime)
                if not is_reused:
                    self._declare(result, self._unique(result), lifetime)
        for result in usage.results if usage.assigns_several else ():
            if result not in self._last_use:
                # It is in a field of the constants, or not wanted.
                self._free[self.variable_of[result]] = None
        is_last = index == self._count - 1
        for value in dying:
            if value in lifetime.taken_over:
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

    def _take_over(self, result: SSAValue, dying: Sequence[SSAValue], lifetime: Lifetime) -> None:
        """Chooses the variable of a result.

        Prefers that of a dying operand of its name, then a free one of its name, then a new one."""
        if any(self._reuses(value, result, lifetime) for value in dying):
            return
        base = self._base(result)
        for name in map(identifier, self.names.names_of(result)):
            if name in self._free and self.base_of[name][1] == base[1]:
                self._assign(result, name, lifetime)
                return
            if not self.scope.is_taken(name):
                self._declare(result, self.scope.unique(name), lifetime, base)
                return
        self._declare(result, self._unique(result), lifetime, base)

    def _take_over_several(
        self, results: Sequence[SSAValue], dying: Sequence[SSAValue], lifetime: Lifetime
    ) -> None:
        """Chooses the variables of results, first those that held the same result of a call."""
        self._place.update((result, place) for place, result in enumerate(results))
        for result in results:
            before = (value for value in dying if self._place.get(value) == self._place[result])
            for value in before:
                if value not in lifetime.taken_over and self._reuses(value, result, lifetime):
                    break
        for result in results:
            if result not in lifetime.assigned:
                rest = [value for value in dying if value not in lifetime.taken_over]
                self._take_over(result, rest, lifetime)

    def _reuses(self, operand: SSAValue | None, result: SSAValue, lifetime: Lifetime) -> bool:
        """Gives a result the variable of an operand with the same name and type, if possible."""
        if operand is None:
            return False
        variable = self.variable_of[operand]
        if self.base_of[variable] != self._base(result):
            return False
        self._assign(result, variable, lifetime)
        lifetime.taken_over.add(operand)
        return True

    def _base(self, value: SSAValue) -> tuple[str, str]:
        return identifier(self.names[value]), self.type_of(value)

    def _unique(self, result: SSAValue) -> str:
        for name in map(identifier, self.names.names_of(result)):
            if not self.scope.is_taken(name):
                return self.scope.unique(name)
        return self.scope.unique(identifier(self.names[result]))

    def _assign(self, result: SSAValue, variable: str, lifetime: Lifetime) -> None:
        self._free.pop(variable, None)
        self.variable_of[result] = variable
        lifetime.assigned[result] = variable
        lifetime.replaced[result] = self.value_in[variable]
        self.value_in[variable] = result

    def _declare(
        self,
        result: SSAValue,
        variable: str,
        lifetime: Lifetime,
        base: tuple[str, str] | None = None,
    ) -> None:
        self.variable_of[result] = variable
        self.value_in[variable] = result
        self.base_of[variable] = base or self._base(result)
        lifetime.declared[result] = variable


NAMESPACE = "call"


@dataclass(frozen=True)
class Option:
    """Option of a function: its type and default."""

    name: str
    type: str
    default: str = "std::nullopt"
    tuned: str = ""
    """Constant of src/tuning.hpp that all calls share, if there is one."""


_MATMUL_OPTIONS = (
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
    "ttnn::matmul": (("const ttnn::Tensor&", "const ttnn::Tensor&"), _MATMUL_OPTIONS),
    "ttnn::linear": (
        ("const ttnn::Tensor&", "const ttnn::Tensor&", "const std::optional<ttnn::Tensor>&"),
        _MATMUL_OPTIONS,
    ),
}
"""Operand types and options of functions with many parameters."""


def with_options(
    call: Call, shared: Mapping[str, str]
) -> tuple[str, Sequence[Argument], dict[str, Argument]] | None:
    """Returns the wrapper of a call, its operands and the chosen options.

    None if it has no wrapper.

    Args:
        call: the call as the library takes it.
        shared: values of the constants of src/tuning.hpp that differ from the library's defaults.
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
    # Omitted trailing operands are optional tensors.
    taken = [*call.arguments[: len(operands)]]
    taken += [NULLOPT] * (len(operands) - len(taken))
    return f"{NAMESPACE}::{name}", taken, chosen


def options_type(wrapper: str) -> str:
    """Structure of the options of a wrapper."""
    return f"{NAMESPACE}::{type_name(wrapper.rpartition('::')[2])}Options"


def definitions(wrappers: Iterable[str]) -> str:
    """C++ definitions of wrappers."""
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
