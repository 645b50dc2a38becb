"""C++ call rows of the catalogue, and the names of their parameters."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol

from xdsl.dialects.builtin import i32
from xdsl.ir import SSAValue

from ttcodegen.dialects.core.datatypes import DataType, ui32
from ttcodegen.dialects.operations.compute_config import COMPUTE_CONFIG, ComputeConfig
from ttcodegen.dialects.operations.operation import AttributeSpec, CatalogueOp
from ttcodegen.dialects.ttcore.shards import CoreRange
from ttcodegen.dialects.ttnn.placement import TensorPlacement, TTNNLayoutAttr
from ttcodegen.dialects.ttnn.program_configs import (
    CONV2D_CONFIG,
    MATMUL_CONFIG,
    NORM_CONFIG,
    SDPA_CONFIG,
    ProgramConfig,
)
from ttcodegen.emitc.spelling import Text
from ttcodegen.systems.releases import PARAMETERS
from ttcodegen.systems.releases.release import Release, function_name

# C++ call rows of the catalogue, collected by `conversions.recording`.
#
# An expression is a tree of calls, of values of the program and of pieces of C++; nothing is
# written before all statements of a function are known.


@dataclass(frozen=True, eq=False)
class Use:
    """A value of the program, where it is used."""

    value: SSAValue


@dataclass(frozen=True, eq=False)
class Call:
    """An expression that is made of others."""

    callee: str
    """The function, the type of a list, or the name of a member or a method."""
    arguments: tuple[Argument, ...]
    type: str
    form: Literal["call", "get", "subscript", "member", "method", "list", "element", "literal"] = (
        "call"
    )
    index: int = 0
    """The position in a tuple or a vector."""
    fields: tuple[str, ...] = ()
    """The fields of a structure that a list initialises; of an element of an array, the access
    paths in it of the tensors that are the arguments."""
    outlined: bool = False
    """True if the function is one that equal sequences of statements became."""
    variable: str | None = None
    """The name of the variable that holds the value, if it is to have one."""
    parameters: tuple[str, ...] = ()
    """The names of the parameters, if it is not the library that knows them."""
    purpose: str = ""
    """Purpose of a function that is specialized for sizes.

    Functions with the same purpose serve other sizes, so that a function for all of them takes one
    as an argument of this name.
    """


Argument = Use | Call | Text
"""A C++ expression."""


def in_release(call: Call, release: Release) -> Call:
    """A call of the catalogue in the form that a release takes it in."""
    change = release.calls.get(call.callee)
    if change is None:
        return call
    given = dict(zip(change.before, call.arguments, strict=False))
    arguments: list[Argument] = []
    needed = 0
    for parameter in change.after:
        argument = given.get(parameter.name)
        values = change.values.get(parameter.name)
        if values is not None and isinstance(argument, Text):
            argument = Text(values.get(argument.text, argument.text))
        arguments.append(Text(parameter.value) if argument is None else argument)
        if argument is not None or parameter.is_written:
            needed = len(arguments)
    names = tuple(parameter.name for parameter in change.after)
    made = replace(
        call,
        callee=change.callee or call.callee,
        arguments=tuple(arguments[:needed]),
        parameters=names[:needed],
    )
    if not change.is_first_option:
        return made
    option = f"std::optional<{call.type}>"
    first = Call("", (replace(made, type=f"std::vector<{option}>"),), option, "subscript")
    return Call("value", (first,), call.type, "method")


NULLOPT = Text("std::nullopt")
CONVOLUTION_CONFIG = "convolution_config"
CONVOLUTION_COMPUTE = "convolution_compute"
"""Names of decisions about convolutions that all of them share."""


class Default(Text):
    """An argument that the function assumes when it is not given."""


class CppCalls(Protocol):
    """Interface of an op's C++ emission, implemented by the conversion to EmitC."""

    def __getitem__(self, value: SSAValue) -> Argument:
        """The C++ value of a TTNN value."""
        ...

    @property
    def device(self) -> Argument:
        """The `ttnn::MeshDevice&` that the function runs on."""
        ...

    @property
    def device_pointer(self) -> Argument:
        """The device as a `ttnn::MeshDevice*`."""
        ...

    def include(self, header: str) -> None:
        """Makes the file include `<header>`."""
        ...

    def include_support(self, header: str) -> None:
        """Makes the file include a header of the project's support folder."""
        ...

    def include_source(self, header: str) -> None:
        """Makes the file include a header of the project's folder of sources."""
        ...

    def call(self, callee: str, *arguments: Argument, type: str = "ttnn::Tensor") -> Argument:
        """An expression that calls a function."""
        ...

    def bind_several(self, results: Sequence[SSAValue], callee: str, *arguments: Argument) -> None:
        """Calls a function that returns a tuple of tensors, and makes them the C++ values of TTNN
        results."""
        ...

    def nested(self, callee: str, *arguments: Argument, type: str = "ttnn::Tensor") -> Argument:
        """A call that is written inside another one."""
        ...

    def run(self, callee: str, *arguments: Argument) -> None:
        """A statement that calls a function without a result."""
        ...

    def literal(self, text: str, type: str) -> Argument:
        """An expression given as text."""
        ...

    def get(self, value: Argument, index: int, type: str = "ttnn::Tensor") -> Argument:
        """`std::get<index>(value)`."""
        ...

    def subscript(self, value: Argument, index: int, type: str = "ttnn::Tensor") -> Argument:
        """`value[index]`."""
        ...

    def memory_config(self, placement: TensorPlacement) -> Argument:
        """The memory config of a placement, by name if the program uses it more than once."""
        ...

    def compute_config(self, config: ComputeConfig) -> Argument:
        """A compute kernel configuration, by the name of its constant."""
        ...

    def data_type(self, op: CatalogueOp, data_type: DataType) -> Argument:
        """The data type that an op gives its result; by name, if a person may choose another."""
        ...

    def tuned(self, name: str) -> Argument:
        """A decision that is left to the library unless a person takes it: the constant of
        src/tuning.hpp with that name, which all calls of a kind share."""
        ...

    def program_config(self, config: ProgramConfig) -> Argument:
        """A program configuration, by the name of its constant."""
        ...

    def data_array(self, op: CatalogueOp) -> str:
        """Puts the elements of a constant op into the data folder and gives the file's name."""
        ...

    def list(self, type: str, elements: Iterable[Argument]) -> Argument:
        """`type{elements...}`."""
        ...

    def bind(self, result: SSAValue, value: Argument) -> None:
        """Makes `value` the C++ value of a TTNN result."""
        ...


CppEmission = Callable[[CppCalls, CatalogueOp], None]
"""Writes an op's call, and binds its results to C++ values."""

ArgumentRule = Callable[[CppCalls, CatalogueOp], Argument]
"""Gives an argument of a call for an op."""


def cpp_call(callee: str, header: str, *rules: ArgumentRule) -> CppEmission:
    """The emission of an op that is one call with one tensor as result.

    Arguments at the end that are defaults of the function are left out.
    """

    def emission(calls: CppCalls, op: CatalogueOp) -> None:
        calls.include(header)
        arguments = trimmed(rule(calls, op) for rule in rules)
        calls.bind(op.results[0], calls.call(callee, *arguments))

    return emission


def bind_elements(calls: CppCalls, op: CatalogueOp, several: Argument) -> None:
    """Makes the elements of a vector or an array of tensors the C++ values of the results."""
    for index, result in enumerate(op.results):
        calls.bind(result, calls.subscript(several, index))


def trimmed(arguments: Iterable[Argument]) -> list[Argument]:
    """The arguments without those at the end that are defaults of the function."""
    result = list(arguments)
    while result and (result[-1] == NULLOPT or isinstance(result[-1], Default)):
        result.pop()
    return result


def operand_(name: str) -> ArgumentRule:
    """The operand of that name, `std::nullopt` if it is absent."""

    def rule(calls: CppCalls, op: CatalogueOp) -> Argument:
        value = op.optional_operand(name)
        return NULLOPT if value is None else calls[value]

    return rule


def nullopt(calls: CppCalls, op: CatalogueOp) -> Argument:
    """An argument that is not given."""
    return NULLOPT


def attribute_(
    name: str, as_: Callable[[Any], str] | None = None, default: Any = None
) -> ArgumentRule:
    """The attribute of that name as C++ text, `std::nullopt` if it is None.

    `default` is what the C++ function assumes if the argument is not given.
    """

    def rule(calls: CppCalls, op: CatalogueOp) -> Argument:
        value = op.parameter(name)
        if value is None:
            return NULLOPT
        text = as_(value) if as_ is not None else cpp_text(value)
        return Default(text) if value == default else Text(text)

    return rule


def fixed_(text: str) -> ArgumentRule:
    """An argument that is always the default of the function."""
    return lambda calls, op: Default(text)


COMPUTE_CONFIG_ATTRIBUTE = AttributeSpec("compute_config", COMPUTE_CONFIG, None)
"""Attribute of a call's compute kernel config; unset is the library's default."""


def compute_config(calls: CppCalls, op: CatalogueOp) -> Argument:
    """The compute kernel configuration of the op, `std::nullopt` if it leaves it to the library."""
    config = op.parameter(COMPUTE_CONFIG_ATTRIBUTE.name)
    return NULLOPT if config is None else calls.compute_config(config)


MATMUL_CONFIG_ATTRIBUTE = AttributeSpec("matmul_program_config", MATMUL_CONFIG, None)
NORM_CONFIG_ATTRIBUTE = AttributeSpec("program_config", NORM_CONFIG, None)
CONV2D_CONFIG_ATTRIBUTE = AttributeSpec("conv2d_config", CONV2D_CONFIG, None)
SDPA_CONFIG_ATTRIBUTE = AttributeSpec("program_config", SDPA_CONFIG, None)
"""Attribute of an SDPA program config; unset is the library's choice."""


def program_config(name: str) -> ArgumentRule:
    """The program configuration in the attribute of that name, `std::nullopt` if the op leaves it
    to the library."""

    def rule(calls: CppCalls, op: CatalogueOp) -> Argument:
        config = op.parameter(name)
        return NULLOPT if config is None else calls.program_config(config)

    return rule


def output_memory(calls: CppCalls, op: CatalogueOp) -> Argument:
    """The memory configuration of the result, `std::nullopt` where everything is in interleaved
    DRAM, which is what calls give without one."""
    encodings = [getattr(value.type, "encoding", None) for value in (*op.operands, *op.results)]
    placements = [e.data for e in encodings if isinstance(e, TTNNLayoutAttr)]
    if all(p.buffer_type != "l1" and p.shards is None for p in placements):
        return NULLOPT
    return calls.memory_config(placements[-1])


def core_set_text(ranges: Sequence[CoreRange]) -> str:
    """Cores as a C++ expression."""
    each = [
        f"ttnn::CoreRange({{{r.first_column}, {r.first_row}}}, {{{r.last_column}, {r.last_row}}})"
        for r in ranges
    ]
    cores = each[0] if len(each) == 1 else f"std::vector<ttnn::CoreRange>{{{', '.join(each)}}}"
    return f"ttnn::CoreRangeSet({cores})"


def cpp_text(value: bool | float | str | DataType | list[Any]) -> str:
    """A Python value as a C++ expression; lists become braced lists."""
    from ttcodegen.emitc.spelling import float_value, integer_value, string_literal

    match value:
        case bool():
            return "true" if value else "false"
        case int():
            # The library's numbers have 32 bits; without a suffix, the larger half would be `long`.
            return integer_value(value, ui32 if 1 << 31 <= value < 1 << 32 else i32).text
        case float():
            return float_value(value).text
        case DataType():
            return f"ttnn::DataType::{value.cpp}"
        case str():
            return string_literal(value)
        case list():
            return "{" + ", ".join(cpp_text(element) for element in value) + "}"


def shape_text(shape: Iterable[int]) -> str:
    """A `ttnn::Shape` expression."""
    return "ttnn::Shape({" + ", ".join(str(size) for size in shape) + "})"


def small_vector_text(values: Iterable[int], type_: str = "int32_t") -> str:
    """A `ttsl::SmallVector` expression."""
    return f"ttsl::SmallVector<{type_}>{{" + ", ".join(str(value) for value in values) + "}"


# Names of the parameters of library calls with long argument lists.
#
# Names and order are those of the declarations of tt-metal (`ttnn/operations/`).

MOST_UNNAMED = 6
"""The most arguments that a call has without their names."""

SIZES = frozenset(
    "in_channels out_channels batch_size input_height input_width groups channels num_heads "
    "num_kv_heads batch_idx".split()
)
"""Parameters that the library takes as `uint32_t`."""


def parameter_names(callee: str, count: int) -> tuple[str, ...]:
    """The names of the first `count` parameters of a function if they are many and known."""
    if count <= MOST_UNNAMED:
        return ()
    return PARAMETERS.get(function_name(callee), ())[:count]
