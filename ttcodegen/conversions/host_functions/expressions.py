"""Canonical forms of expressions: the skeleton that equal statements share, and their arguments."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from xdsl.ir import SSAValue

from ttcodegen.conversions.host_functions.cpp_interface import DEVICE
from ttcodegen.emitc.spelling import Text
from ttcodegen.ops.core.calls import (
    MOST_UNNAMED,
    PARAMETERS,
    SIZES,
    Argument,
    Call,
    Use,
    parameter_names,
)

_INTEGER = re.compile(r"\d+$")
_SHARDED_MEMORY = r"tuning::\w+_sharded_\d+x"
_TYPES: Sequence[tuple[re.Pattern[str], str, str]] = tuple(
    (re.compile(pattern), type_, noun)
    for pattern, type_, noun in (
        (r"-?[\d.]+(?:e[+-]?\d+)?f$", "float", "factor"),
        (r"(?:true|false)$", "bool", "flag"),
        (r'"', "const char*", "name"),
        (r"ttnn::Shape\(", "const ttnn::Shape&", "shape"),
        (r"ttnn::DataType::|tuning::\w+_type$", "ttnn::DataType", "data_type"),
        (_SHARDED_MEMORY, "const ttnn::MemoryConfig&", "memory_config"),
        (r"ttnn::Layout::", "ttnn::Layout", "layout"),
        (r"\{[\d, ]*\}$", "const std::vector<std::uint64_t>&", "shape"),
    )
)
"""Pieces of C++ that a parameter can replace: pattern, parameter type and name."""
_ARRAY = re.compile(r"(std::array<\w+, \d+>|ttsl::SmallVector<int32_t>)\{")
"""Sizes, and the bounds of slices."""


@dataclass(frozen=True, slots=True)
class NamedConstant(Text):
    """Name of a constant of the file, and its type, which is declared there."""

    type: str


DIMENSIONS = "std::vector<std::uint64_t>"
"""Type of the shape of a tensor on the device."""
SHAPE = f"const {DIMENSIONS}&"
_FUNCTION = "function "
"""Marks a parameter that takes a function; its name follows."""
_VALUE = "\x1c"
_OPEN = "\x1d"
_CLOSE = "\x1e"
_BETWEEN = "\x1f"
"""Separators of the parts of a skeleton; they do not occur in C++."""


@dataclass(frozen=True, eq=False)
class Form:
    """Canonical form of an expression, cached per statement for frequent comparisons."""

    skeleton: str
    """The expression without values, with the parameter type in place of each replaceable piece."""
    general: str
    """The skeleton without the constants of the file."""
    values: tuple[SSAValue, ...]
    """Values that the skeleton leaves out, also of calls that an earlier statement has written."""
    used: tuple[SSAValue, ...]
    """The distinct values, those of a call before those of its nested calls."""
    texts: tuple[tuple[str, str], ...]
    """Pieces of C++ in order, each with the library's parameter that takes it, or ''.

    Constants of the file have their type instead."""


def form_of(expression: Argument) -> Form:
    """Returns the canonical form of an expression."""
    skeleton: list[str] = []
    constants: list[str] = []
    values: list[SSAValue] = []
    used: dict[SSAValue, None] = {}
    texts: list[tuple[str, str]] = []

    def take(argument: Argument, parameter: str) -> None:
        if isinstance(argument, Text):
            text = argument.text
            is_constant = isinstance(argument, NamedConstant)
            if is_constant:
                parameter = f"const {argument.type}&"
            texts.append((text, parameter))
            skeleton.append("" if is_constant else kind_of(text, parameter)[0] or text)
            constants.append(text if is_constant else "")
        elif isinstance(argument, Use):
            skeleton.append(_VALUE)
            values.append(argument.value)
        else:
            take_call(argument)

    def take_call(call: Call) -> None:
        callee = call.callee
        if call.purpose:
            texts.append((callee, f"const {_FUNCTION}{call.purpose}"))
            constants.append(callee)
            callee = ""
        skeleton.extend((_OPEN, callee, call.form, str(call.index), *call.fields, _OPEN))
        arguments = call.arguments
        for each in arguments:
            if isinstance(each, Use):
                used[each.value] = None
        for each, name in zip(arguments, _parameters_of(call.callee, len(arguments)), strict=True):
            take(each, name)
        skeleton.append(_CLOSE)

    if isinstance(expression, Use):
        used[expression.value] = None
    take(expression, "")
    general = _BETWEEN.join(skeleton)
    named = tuple(filter(None, constants))
    return Form(_BETWEEN.join((general, *named)), general, tuple(values), tuple(used), tuple(texts))


def is_sharded_memory(text: str) -> bool:
    """Returns whether a piece of C++ is the constant of a sharded memory config."""
    return re.match(_SHARDED_MEMORY, text) is not None


# Called for each piece of each statement; few are distinct.
@lru_cache(maxsize=1 << 14)
def kind_of(text: str, parameter: str) -> tuple[str, str]:
    """Returns the type and name of the parameter that a piece of C++ can be; empty if it cannot.

    `parameter` is the library's parameter that takes it, or the type of a constant of the file. An
    integer qualifies only where the library takes a size."""
    if parameter.startswith(f"const {_FUNCTION}"):
        return f"decltype(&{text})", parameter.removeprefix(f"const {_FUNCTION}")
    if parameter.startswith("const "):
        type_ = parameter.removeprefix("const ").removesuffix("&")
        return parameter, re.sub(r"(?<=\w)(?=[A-Z])", "_", type_).lower()
    if _INTEGER.match(text):
        return ("uint32_t", parameter) if parameter in SIZES else ("", "")
    array = _ARRAY.match(text)
    if array is not None:
        return f"const {array[1]}&", "bounds" if "Vector" in array[1] else "sizes"
    return next(((t, noun) for pattern, t, noun in _TYPES if pattern.match(text)), ("", ""))


@lru_cache(maxsize=1 << 12)
def _parameters_of(callee: str, count: int) -> tuple[str, ...]:
    """Names of the first `count` parameters of a function, '' where unknown."""
    known = PARAMETERS.get(callee.partition("<")[0].rpartition("::")[2], ())
    return (*known[:count], *[""] * (count - len(known)))


def labels_of(call: Call) -> Sequence[str]:
    """Parameter names that label the arguments of a long call.

    Labels begin at the first argument that is neither a tensor nor the device: these have names."""
    if len(call.arguments) <= MOST_UNNAMED:
        return ()
    names = call.parameters or parameter_names(call.callee, len(call.arguments))
    is_device = [isinstance(a, Text) and a.text in (DEVICE, f"&{DEVICE}") for a in call.arguments]
    plain = [
        isinstance(argument, Use) or device
        for argument, device in zip(call.arguments, is_device, strict=True)
    ]
    # At most MOST_UNNAMED tensors before it stay without a label.
    first = plain.index(False) if False in plain[: MOST_UNNAMED + 1] else 0
    return ["" if index < first or is_device[index] else name for index, name in enumerate(names)]
