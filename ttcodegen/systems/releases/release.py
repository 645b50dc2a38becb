"""A release of tt-metal, as a table of where it differs from what the catalogue states.

The catalogue and the tables of the dialects state each call once, as the oldest release has it
(tt_metal_0_70_1.py). A later release is a table of rows: calls whose arguments or names changed,
calls that it lacks, and functions of kernels that are spelled otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property


@dataclass(frozen=True)
class Parameter:
    """A parameter of a library function.

    Attributes:
        name: what it is called.
        value: what is passed where the catalogue has no argument of that name.
        is_written: true if the function assumes nothing, so that it is passed also at the end.
    """

    name: str
    value: str = "std::nullopt"
    is_written: bool = False


def parameters(text: str) -> tuple[Parameter, ...]:
    """`dim keepdim kv_tied!=false tile=ttnn::Tile()`: names, and what is passed where the catalogue
    has no such argument; `!=` for what the function assumes no value of."""
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
    """A ttnn call that a release takes in another form.

    Attributes:
        before: the names of the catalogue's arguments, in its order.
        after: the parameters of the release, in its order; what is not among them is not passed.
        values: by parameter, what a value of the catalogue is called in the release.
        callee: the qualified name in the release, where that is another one.
        is_first_option: whether the release gives a vector of optional tensors, the first of which
            is the catalogue's result.
    """

    before: tuple[str, ...]
    after: tuple[Parameter, ...]
    values: Mapping[str, Mapping[str, str]] = field(default_factory=dict[str, Mapping[str, str]])
    callee: str | None = None
    is_first_option: bool = False


@dataclass(frozen=True)
class KernelChange:
    """The function of an op of the kernel dialect, where a release spells it otherwise; `None`
    where that is the same.

    Attributes:
        function: its name; `{attribute}` in it is the word of an attribute of the op.
        header: the header that declares it, below tt_metal/hw/inc.
        arguments: the names of operands and attributes of the op, in the order of the call, with
            defaults as in `transpose=0`.
        template: its template arguments, attributes of the op or `=text`.
        before: what is called before it.
        conversion: the function that makes its argument of the operand.
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
        name: as in `0.70.1`, the version of the package `ttnn`.
        parameters: the names of parameters that calls are labelled with, by function.
        calls: by qualified name, calls that take another form than the catalogue's.
        absent_calls: by qualified name, functions that it lacks, and what to do without.
        headers: by header that the catalogue includes, the one in its place.
        numbers: ops that take a number for an operand only if their tensors have one data type, and
            none of 16-bit integers: by operand, the attribute of the number.
        wide_indices: ops whose second result, indices, has 32 bits where the operand is float32.
        kernels: by op of the kernel dialect, functions that are spelled otherwise.
        absent_kernels: ops of the kernel dialect that it has no function for.
        formats_prints: whether debug output of kernels takes a format, as in `DPRINT("{}", x)`.
        names: texts in the support files of projects, and what it has in their place.
    """

    name: str
    parameters: Mapping[str, tuple[str, ...]]
    calls: Mapping[str, CallChange] = field(default_factory=dict[str, CallChange])
    absent_calls: Mapping[str, str] = field(default_factory=dict[str, str])
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    numbers: Mapping[str, Mapping[str, str]] = field(default_factory=dict[str, Mapping[str, str]])
    wide_indices: frozenset[str] = frozenset()
    kernels: Mapping[str, KernelChange] = field(default_factory=dict[str, KernelChange])
    absent_kernels: frozenset[str] = frozenset()
    formats_prints: bool = False
    names: Mapping[str, str] = field(default_factory=dict[str, str])

    @cached_property
    def number(self) -> int:
        """The name as one number, 8101 for 0.81.1: two digits for each part but the first."""
        major, minor, patch = map(int, self.name.split("."))
        return (major * 100 + minor) * 100 + patch

    @property
    def definitions(self) -> tuple[str, ...]:
        """The macros by which declarations know the release that a program is written for; those of
        the catalogue's release are what they are without."""
        return (f"TTCODEGEN_TT_METAL={self.number}",) if self.calls else ()


def function_name(callee: str) -> str:
    """The last part of a qualified name, without template arguments."""
    return callee.partition("<")[0].rpartition("::")[2]


def moved(callee: str, names: str) -> CallChange:
    """A function of the same parameters under another qualified name."""
    return CallChange(tuple(names.split()), parameters(names), callee=callee)


def changed(before: Sequence[str] | str, after: str) -> CallChange:
    """A change from the catalogue's arguments to those of a release, as `parameters` reads them."""
    names = before.split() if isinstance(before, str) else before
    return CallChange(tuple(names), parameters(after))
