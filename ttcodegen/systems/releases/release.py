"""Release tables: differences to the calls in the catalogue.

The catalogue and the dialect tables state each call once, for the oldest release
(tt_metal_0_70_1.py). A later release is a table of rows: calls whose arguments or names changed,
missing calls, and kernel functions with other names or arguments.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property


@dataclass(frozen=True)
class Parameter:
    """Parameter of a library function.

    Attributes:
        name: Name of the parameter.
        value: Argument where the catalogue has none of that name.
        is_written: True if the parameter has no default, so that it is passed also at the end.
    """

    name: str
    value: str = "std::nullopt"
    is_written: bool = False


def parameters(text: str) -> tuple[Parameter, ...]:
    """Parses a parameter list such as `dim keepdim kv_tied!=false tile=ttnn::Tile()`.

    `name=value` gives the argument where the catalogue has none of that name; `!=` marks parameters
    without a default.
    """
    found: list[Parameter] = []
    for word in text.split():
        name, separator, value = word.partition("=")
        found.append(
            Parameter(name.removesuffix("!"), value or "std::nullopt", name.endswith("!"))
            if separator
            else Parameter(name)
        )
    return tuple(found)


@dataclass(frozen=True)
class CallChange:
    """A ttnn call with another signature in a release.

    Attributes:
        before: Names of the catalogue's arguments, in order.
        after: Parameters of the release, in order; other arguments are dropped.
        values: By parameter, the release's spelling of a value of the catalogue.
        callee: Qualified name in the release, if it differs.
        is_first_option: True if the release returns a vector of optional tensors, the first of
            which is the catalogue's result.
    """

    before: tuple[str, ...]
    after: tuple[Parameter, ...]
    values: Mapping[str, Mapping[str, str]] = field(default_factory=dict[str, Mapping[str, str]])
    callee: str | None = None
    is_first_option: bool = False


@dataclass(frozen=True)
class KernelChange:
    """Function of a kernel dialect op in a release; `None` fields are unchanged.

    Attributes:
        function: Name; `{attribute}` in it is replaced by an attribute of the op.
        header: Header that declares it, below tt_metal/hw/inc.
        arguments: Names of operands and attributes of the op, in the order of the call, with
            defaults as in `transpose=0`.
        template: Template arguments: attributes of the op or `=text`.
        before: Call that precedes it.
        conversion: Function that converts the operand to its argument.
    """

    function: str | None = None
    header: str | None = None
    arguments: str | None = None
    template: str | None = None
    before: KernelChange | None = None
    conversion: str = ""


@dataclass(frozen=True, eq=False)
class Release:
    """A release of tt-metal.

    Attributes:
        name: Version of the package `ttnn`, as in `0.70.1`.
        parameters: Parameter names that label the arguments of calls, by function.
        calls: Calls with another signature than the catalogue's, by qualified name.
        absent_calls: Missing functions by qualified name, with a remedy.
        absent_fields: Fields of configs that the release lacks, by C++ structure.
        headers: Replaced headers of the catalogue.
        numbers: Ops that take a scalar operand only if their tensors have one data type, none of
            narrow integers, and the result's type represents the scalar. By operand, the
            attribute of the scalar.
        wide_indices: Ops whose second result, indices, has 32 bits where the operand is float32
            or of 16-bit integers.
        kernels: Changed functions, by op of the kernel dialect.
        absent_kernels: Ops of the kernel dialect without a function.
        formats_prints: True if debug output of kernels takes a format, as in `DPRINT("{}", x)`.
        names: Replaced texts in the support files of projects.
        l1_bases: By architecture, the L1 address where tensors and circular buffers begin, after
            firmware and kernels.
    """

    name: str
    parameters: Mapping[str, tuple[str, ...]]
    calls: Mapping[str, CallChange] = field(default_factory=dict[str, CallChange])
    absent_calls: Mapping[str, str] = field(default_factory=dict[str, str])
    absent_fields: Mapping[str, frozenset[str]] = field(default_factory=dict[str, frozenset[str]])
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    numbers: Mapping[str, Mapping[str, str]] = field(default_factory=dict[str, Mapping[str, str]])
    wide_indices: frozenset[str] = frozenset()
    kernels: Mapping[str, KernelChange] = field(default_factory=dict[str, KernelChange])
    absent_kernels: frozenset[str] = frozenset()
    formats_prints: bool = False
    names: Mapping[str, str] = field(default_factory=dict[str, str])
    l1_bases: Mapping[str, int] = field(default_factory=dict[str, int])

    @cached_property
    def number(self) -> int:
        """Version as a number, 8101 for 0.81.1: two digits for each part but the first."""
        major, minor, patch = map(int, self.name.split("."))
        return (major * 100 + minor) * 100 + patch

    @property
    def definitions(self) -> tuple[str, ...]:
        """Macros that select the release in declarations; none for the catalogue's release."""
        return (f"TTCODEGEN_TT_METAL={self.number}",) if self.calls else ()


def function_name(callee: str) -> str:
    """Returns the last part of a qualified name, without template arguments."""
    return callee.partition("<")[0].rpartition("::")[2]


def moved(callee: str, names: str) -> CallChange:
    """Change of a function's qualified name."""
    return CallChange(tuple(names.split()), parameters(names), callee=callee)


def changed(before: Sequence[str] | str, after: str) -> CallChange:
    """Change of the arguments of a call, in the syntax of `parameters`."""
    names = before.split() if isinstance(before, str) else before
    return CallChange(tuple(names), parameters(after))
