"""Values of C++ as fields of the overrides file."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from typing import Any, get_type_hints

from ttcodegen.dialects.core.datatypes import DataType
from ttcodegen.dialects.ttnn.program_configs import Conv2dConfig, CoreGrid, ProgramConfig
from ttcodegen.project.tuning.statements import Statement, braced_fields, joined

TUNING = "tuning::"
"""The namespace of the constants of tuning.hpp."""
_MEMORIES = {"ttnn::DRAM_MEMORY_CONFIG": "dram", "ttnn::L1_MEMORY_CONFIG": "l1"}
_CORES = re.compile(r"CoreRange\(\{(\d+), ?(\d+)\}, ?\{(\d+), ?(\d+)\}\)")
_SHARD = re.compile(r"\{(\d+), ?(\d+)\}\)?[,)} ]*(?:ttnn::ShardOrientation::\w+\)?\}?)?$")
_PAIR = re.compile(r"(?:\w+::)*\w*[{(]*(\d+), ?(\d+)[})]*")
NOTHING = frozenset(("std::nullopt", "{}", ""))
"""Values that leave a choice to the library."""

KINDS = {
    "memory_config": "memory",
    "dtype": "data type",
    "program_config": "program configuration",
    "conv_config": "configuration of the convolution",
    "compute_kernel_config": "compute configuration",
    "compute_config": "compute configuration",
    "activation": "activation",
    "core_grid": "grid of cores",
    "lhs_activations": "activation of an operand",
    "rhs_activations": "activation of an operand",
    "post_activations": "activation",
}
"""Parameters that say how a call is made, and not what it computes, as a person calls them."""
ACTIVATIONS = frozenset(("activation", "lhs_activations", "rhs_activations", "post_activations"))


def same_parameter(one: str | None, other: str) -> bool:
    """True if two names are those of one parameter, which calls name differently."""
    return one is not None and one.replace("_kernel_", "_") == other.replace("_kernel_", "_")


@dataclass(frozen=True)
class Constant:
    """A constant of tuning.hpp."""

    name: str
    type_words: tuple[str, ...]
    value: tuple[str, ...]
    statement: Statement


def constants_of(declared: Sequence[Statement]) -> dict[str, Constant]:
    """The constants among the declarations of a file, by name."""
    found: dict[str, Constant] = {}
    for each in declared:
        if each.function or each.target is None or each.words[0] not in ("const", "inline"):
            continue
        place = each.words.index(each.target)
        value = each.words[place + 1 :]
        value = value[1:] if value[:1] == ("=",) else value
        found[each.target] = Constant(each.target, each.words[:place], tuple(value), each)
    return found


def kind_of(words: Sequence[str], constants: Mapping[str, Constant]) -> str | None:
    """The parameter that a value is for by its type; None if the type is of no such parameter."""
    text = joined(words)
    constant = constants.get(text.removeprefix(TUNING)) if text.startswith(TUNING) else None
    if constant is not None:
        text = " ".join(constant.type_words)
    if text.startswith('"'):
        return "activation"
    return next((kind for word, kind in _KINDS_OF_TYPES.items() if word in text), None)


_KINDS_OF_TYPES = {
    "UnaryWithParam": "lhs_activations",
    "MemoryConfig": "memory_config",
    "MEMORY_CONFIG": "memory_config",
    "KernelConfig": "compute_kernel_config",
    "ProgramConfig": "program_config",
    "Conv2dConfig": "conv_config",
    "DataType": "dtype",
}
"""Parameters by what the types of their values have in their names."""


def override_fields(
    parameter: str, words: Sequence[str], constants: Mapping[str, Constant]
) -> dict[str, Any]:
    """A value as fields of the overrides file; empty if they cannot say it.

    Args:
        parameter: the parameter that gets the value.
        words: the tokens of the value.
        constants: the constants of tuning.hpp by name.
    """
    text = joined(words)
    type_text = ""
    if text.startswith(TUNING) and text.removeprefix(TUNING) in constants:
        constant = constants[text.removeprefix(TUNING)]
        words, type_text = constant.value, " ".join(constant.type_words)
        text = joined(words)
    if text in NOTHING:
        return {}
    if parameter == "memory_config":
        return _memory(text)
    if parameter == "dtype":
        return _data_type(text)
    if parameter in ("compute_kernel_config", "compute_config"):
        found = re.search(r"MathFidelity::(\w+)", text)
        return {"math_fidelity": found[1].lower()} if found else {}
    if parameter == "program_config":
        config = program_config(words, type_text)
        return {"program_config": config.text} if config is not None else {}
    if parameter == "conv_config":
        return _convolution(words)
    return {"fuse": True} if parameter == "activation" else {}


def _convolution(words: Sequence[str]) -> dict[str, Any]:
    """The numbers and flags of a convolution's configuration."""
    known = {field.name for field in fields(Conv2dConfig)}
    found: dict[str, Any] = {}
    for name, value in braced_fields(words).items():
        text = joined(value)
        if name in known and (text.isdecimal() or text in ("true", "false")):
            found[name] = int(text) if text.isdecimal() else text == "true"
    return {"conv2d_config": found} if found else {}


def _memory(text: str) -> dict[str, Any]:
    if text in _MEMORIES:
        return {"memory": _MEMORIES[text], "sharding": "interleaved"}
    layout = re.search(r"TensorMemoryLayout::(\w+)", text)
    buffer = re.search(r"BufferType::(DRAM|L1)\b", text)
    if layout is None or buffer is None:
        return {}
    entry: dict[str, Any] = {"memory": buffer[1].lower(), "sharding": layout[1].lower()}
    cores = _CORES.findall(text)
    if len(cores) == 1:
        left, top, right, bottom = map(int, cores[0])
        entry["grid"] = [right - left + 1, bottom - top + 1]
    shard = _SHARD.search(text)
    if cores and shard is not None:
        entry["shard"] = [int(shard[1]), int(shard[2])]
    return entry


def _data_type(text: str) -> dict[str, Any]:
    name = text.rpartition("::")[2]
    found = next((each for each in DataType if each.cpp == name), None)
    return {} if found is None else {"data_type": found.mlir}


def program_config(words: Sequence[str], type_text: str = "") -> ProgramConfig | None:
    """The program configuration that a structure of C++ is; None if it is not read.

    Args:
        words: the tokens of the structure, with its name or in braces alone.
        type_text: the declared type where it is in braces alone.
    """
    head = words[0] if words and words[0] != "{" else type_text.replace("const ", "").strip()
    cls = next((each for each in _configs() if each.cpp.endswith(head.rpartition("::")[2])), None)
    if cls is None or not head:
        return None
    given = braced_fields(words)
    hints = get_type_hints(cls)
    found: dict[str, Any] = {}
    for field in fields(cls):
        value = given.get(cls.spelled.get(field.name, field.name))
        text = "" if value is None else joined(value)
        if text in NOTHING:
            if field.default is MISSING:
                return None
            continue
        read = _field(str(hints[field.name]), text)
        if read is None:
            return None
        found[field.name] = read
    return cls(**found)


def program_summary(config: ProgramConfig) -> str:
    """A program configuration by its kind and its blocks, as tables show it."""
    name = config.cpp.rpartition("::")[2].removesuffix("ProgramConfig")
    names = ("in0_block_w", "per_core_m", "per_core_n", "q_chunk_size", "k_chunk_size", "block_w")
    sizes = [
        f"{config.spelled.get(each, each)}={getattr(config, each)}"
        for each in names
        if hasattr(config, each)
    ]
    return " ".join([name.removeprefix("MatmulMultiCore") or name, *sizes])


def _configs() -> list[type[ProgramConfig]]:
    def below(cls: type[ProgramConfig]) -> list[type[ProgramConfig]]:
        return [found for each in cls.__subclasses__() for found in (each, *below(each))]

    return [each for each in below(ProgramConfig) if "cpp" in vars(each)]


def _field(hint: str, text: str) -> object:
    if "CoreGrid" in hint:
        pair = _PAIR.fullmatch(text)
        return None if pair is None else CoreGrid(int(pair[1]), int(pair[2]))
    if text in ("true", "false"):
        return text == "true"
    return int(text) if text.isdecimal() else None
