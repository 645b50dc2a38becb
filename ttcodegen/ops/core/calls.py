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
# An expression is a tree of calls, program values and C++ text; nothing is written before all
# statements of a function are known.


@dataclass(frozen=True, eq=False)
class Use:
    """A use of a program value in an expression."""

    value: SSAValue


@dataclass(frozen=True, eq=False)
class Call:
    """A C++ expression with subexpressions."""

    callee: str
    """Function, type of a list, or name of a member or method."""
    arguments: tuple[Argument, ...]
    type: str
    form: Literal["call", "get", "subscript", "member", "method", "list", "element", "literal"] = (
        "call"
    )
    index: int = 0
    """Position in a tuple or vector."""
    fields: tuple[str, ...] = ()
    """Field names of a braced initializer, or access paths of the arguments in an array element."""
    outlined: bool = False
    """True if the function was outlined from equal sequences of statements."""
    variable: str | None = None
    """Name of the variable that holds the value; None for an inlined expression."""
    parameters: tuple[str, ...] = ()
    """Parameter names, where the library's declarations do not give them."""
    purpose: str = ""
    """Name under which size-specialized functions are merged.

    Functions of the same purpose differ in a size only; the merged function takes it as an argument
    of this name.
    """


Argument = Use | Call | Text
"""A C++ expression."""


def in_release(call: Call, release: Release) -> Call:
    """Rewrites a call to the signature that a release declares."""
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
"""Names of tunable settings shared by all convolutions."""


class Default(Text):
    """An argument equal to the default of the parameter."""


class CppCalls(Protocol):
    """Interface of an op's C++ emission, implemented by the conversion to EmitC."""

    def __getitem__(self, value: SSAValue) -> Argument:
        """Returns the C++ expression of a TTNN value."""
        ...

    @property
    def device(self) -> Argument:
        """The `ttnn::MeshDevice&` of the function."""
        ...

    @property
    def device_pointer(self) -> Argument:
        """The device as a `ttnn::MeshDevice*`."""
        ...

    def include(self, header: str) -> None:
        """Adds `#include <header>` to the file."""
        ...

    def include_support(self, header: str) -> None:
        """Includes a header of the project's support folder."""
        ...

    def include_source(self, header: str) -> None:
        """Includes a header of the project's source folder."""
        ...

    def call(self, callee: str, *arguments: Argument, type: str = "ttnn::Tensor") -> Argument:
        """Returns a call expression."""
        ...

    def bind_several(self, results: Sequence[SSAValue], callee: str, *arguments: Argument) -> None:
        """Calls a function that returns a tuple and binds its elements to the results."""
        ...

    def nested(self, callee: str, *arguments: Argument, type: str = "ttnn::Tensor") -> Argument:
        """Returns a call expression that is written inside another one."""
        ...

    def run(self, callee: str, *arguments: Argument) -> None:
        """Adds a statement that calls a void function."""
        ...

    def literal(self, text: str, type: str) -> Argument:
        """Returns an expression given as text."""
        ...

    def get(self, value: Argument, index: int, type: str = "ttnn::Tensor") -> Argument:
        """Returns `std::get<index>(value)`."""
        ...

    def subscript(self, value: Argument, index: int, type: str = "ttnn::Tensor") -> Argument:
        """Returns `value[index]`."""
        ...

    def memory_config(self, placement: TensorPlacement) -> Argument:
        """Returns the memory config of a placement, a named constant if used more than once."""
        ...

    def compute_config(self, config: ComputeConfig) -> Argument:
        """Returns the named constant of a compute kernel config."""
        ...

    def data_type(self, op: CatalogueOp, data_type: DataType) -> Argument:
        """Returns the data type of an op's result, a named constant if it is tunable."""
        ...

    def tuned(self, name: str) -> Argument:
        """Returns the constant of src/tuning.hpp with that name.

        All calls of a kind share it; by default it leaves the decision to the library.
        """
        ...

    def program_config(self, config: ProgramConfig) -> Argument:
        """Returns the named constant of a program config."""
        ...

    def data_array(self, op: CatalogueOp) -> str:
        """Writes the elements of a constant op to the data folder and returns the file name."""
        ...

    def list(self, type: str, elements: Iterable[Argument]) -> Argument:
        """Returns `type{elements...}`."""
        ...

    def bind(self, result: SSAValue, value: Argument) -> None:
        """Binds a TTNN result to a C++ expression."""
        ...


CppEmission = Callable[[CppCalls, CatalogueOp], None]
"""Emits the call of an op and binds its results."""

ArgumentRule = Callable[[CppCalls, CatalogueOp], Argument]
"""Returns one argument of an op's call."""


def cpp_call(callee: str, header: str, *rules: ArgumentRule) -> CppEmission:
    """Emission of an op as one call that returns one tensor.

    Trailing arguments that equal the defaults of the function are left out.
    """

    def emission(calls: CppCalls, op: CatalogueOp) -> None:
        calls.include(header)
        arguments = trimmed(rule(calls, op) for rule in rules)
        calls.bind(op.results[0], calls.call(callee, *arguments))

    return emission


def bind_elements(calls: CppCalls, op: CatalogueOp, several: Argument) -> None:
    """Binds the results to the elements of a vector or array of tensors."""
    for index, result in enumerate(op.results):
        calls.bind(result, calls.subscript(several, index))


def trimmed(arguments: Iterable[Argument]) -> list[Argument]:
    """Drops trailing arguments that equal the defaults of the function."""
    result = list(arguments)
    while result and (result[-1] == NULLOPT or isinstance(result[-1], Default)):
        result.pop()
    return result


def operand_(name: str) -> ArgumentRule:
    """Rule for the operand of that name, `std::nullopt` if it is absent."""

    def rule(calls: CppCalls, op: CatalogueOp) -> Argument:
        value = op.optional_operand(name)
        return NULLOPT if value is None else calls[value]

    return rule


def nullopt(calls: CppCalls, op: CatalogueOp) -> Argument:
    """Rule for an argument that is not given."""
    return NULLOPT


def attribute_(
    name: str, as_: Callable[[Any], str] | None = None, default: Any = None
) -> ArgumentRule:
    """Rule for the attribute of that name, `std::nullopt` if it is None.

    `default` is the default of the C++ parameter.
    """

    def rule(calls: CppCalls, op: CatalogueOp) -> Argument:
        value = op.parameter(name)
        if value is None:
            return NULLOPT
        text = as_(value) if as_ is not None else cpp_text(value)
        return Default(text) if value == default else Text(text)

    return rule


def fixed_(text: str) -> ArgumentRule:
    """Rule for an argument that always equals the default of the parameter."""
    return lambda calls, op: Default(text)


COMPUTE_CONFIG_ATTRIBUTE = AttributeSpec("compute_config", COMPUTE_CONFIG, None)
"""Attribute of a call's compute kernel config; unset is the library's default."""


def compute_config(calls: CppCalls, op: CatalogueOp) -> Argument:
    """Rule for the compute kernel config, `std::nullopt` if it is left to the library."""
    config = op.parameter(COMPUTE_CONFIG_ATTRIBUTE.name)
    return NULLOPT if config is None else calls.compute_config(config)


MATMUL_CONFIG_ATTRIBUTE = AttributeSpec("matmul_program_config", MATMUL_CONFIG, None)
NORM_CONFIG_ATTRIBUTE = AttributeSpec("program_config", NORM_CONFIG, None)
CONV2D_CONFIG_ATTRIBUTE = AttributeSpec("conv2d_config", CONV2D_CONFIG, None)
SDPA_CONFIG_ATTRIBUTE = AttributeSpec("program_config", SDPA_CONFIG, None)
"""Attribute of an SDPA program config; unset is the library's choice."""


def program_config(name: str) -> ArgumentRule:
    """Rule for the program config attribute `name`, `std::nullopt` if it is left to the library."""

    def rule(calls: CppCalls, op: CatalogueOp) -> Argument:
        config = op.parameter(name)
        return NULLOPT if config is None else calls.program_config(config)

    return rule


def output_memory(calls: CppCalls, op: CatalogueOp) -> Argument:
    """Rule for the memory config of the result.

    `std::nullopt` if all operands and results are in interleaved DRAM, the default of the calls.
    """
    encodings = [getattr(value.type, "encoding", None) for value in (*op.operands, *op.results)]
    placements = [e.data for e in encodings if isinstance(e, TTNNLayoutAttr)]
    if all(p.buffer_type != "l1" and p.shards is None for p in placements):
        return NULLOPT
    return calls.memory_config(placements[-1])


def core_set_text(ranges: Sequence[CoreRange]) -> str:
    """Returns a `ttnn::CoreRangeSet` expression."""
    each = [
        f"ttnn::CoreRange({{{r.first_column}, {r.first_row}}}, {{{r.last_column}, {r.last_row}}})"
        for r in ranges
    ]
    cores = each[0] if len(each) == 1 else f"std::vector<ttnn::CoreRange>{{{', '.join(each)}}}"
    return f"ttnn::CoreRangeSet({cores})"


def cpp_text(value: bool | float | str | DataType | list[Any]) -> str:
    """Returns a Python value as a C++ expression; lists become braced lists."""
    from ttcodegen.emitc.spelling import float_value, integer_value, string_literal

    match value:
        case bool():
            return "true" if value else "false"
        case int():
            # The library takes 32-bit integers; without a suffix, 2^31 and above would be `long`.
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
    """Returns a `ttnn::Shape` expression."""
    return "ttnn::Shape({" + ", ".join(str(size) for size in shape) + "})"


def small_vector_text(values: Iterable[int], type_: str = "int32_t") -> str:
    """Returns a `ttsl::SmallVector` expression."""
    return f"ttsl::SmallVector<{type_}>{{" + ", ".join(str(value) for value in values) + "}"


# Names of the parameters of library calls with long argument lists.
#
# Names and order are those of the declarations of tt-metal (`ttnn/operations/`).

MOST_UNNAMED = 6
"""Largest number of arguments that a call has without parameter names."""

SIZES = frozenset(
    "in_channels out_channels batch_size input_height input_width groups channels num_heads "
    "num_kv_heads batch_idx".split()
)
"""Parameters that the library takes as `uint32_t`."""


def parameter_names(callee: str, count: int) -> tuple[str, ...]:
    """Returns the names of the first `count` parameters if they are many and known."""
    if count <= MOST_UNNAMED:
        return ()
    return PARAMETERS.get(function_name(callee), ())[:count]
