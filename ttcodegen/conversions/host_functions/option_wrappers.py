"""Functions of the library with many options, called with a structure of those that are chosen.

    call::matmul(queries, keys, {.transpose_b = true, .dtype = ttnn::DataType::FLOAT32})

What a call does not choose is shared by all products, from src/tuning.hpp. The structures and
functions are at the head of the source file, in a namespace of their own, so that no value of
the program hides them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from ttcodegen.emitc.spelling import Text, type_name
from ttcodegen.naming.tuning import (
    PRODUCT_COMPUTE,
    PRODUCT_MEMORY,
    PRODUCT_PROGRAM,
    qualified,
)
from ttcodegen.ops.core.calls import NULLOPT, PARAMETERS, Argument, Call

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
