"""Values of settings in C++: as fields of the overrides file, and program configs."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, fields
from typing import Any, get_type_hints

from ttcodegen.dialects.core.datatypes import DataType
from ttcodegen.dialects.ttnn.program_configs import (
    Conv2dConfig,
    CoreGrid,
    FusedActivation,
    ProgramConfig,
)
from ttcodegen.project.tuning.statements import (
    APPLIED_AFTER,
    NOTHING,
    TUNING,
    Constant,
    braced_fields,
    joined,
)

_MEMORIES = {"ttnn::DRAM_MEMORY_CONFIG": "dram", "ttnn::L1_MEMORY_CONFIG": "l1"}
_CORES = re.compile(r"CoreRange\(\{(\d+), ?(\d+)\}, ?\{(\d+), ?(\d+)\}\)")
_SHARD = re.compile(r"\{(\d+), ?(\d+)\}\)?[,)} ]*(?:ttnn::ShardOrientation::\w+\)?\}?)?$")
_ACTIVATION = re.compile(r"UnaryOpType::(\w+)([^)}]*)")
_NUMBER = re.compile(r"-?\d+\.?\d*(?:[eE][+-]?\d+)?")
_PAIR = re.compile(r"(?:\w+::)*\w*[{(]*(\d+), ?(\d+)[})]*")


def override_fields(
    parameter: str, words: Sequence[str], constants: Mapping[str, Constant]
) -> dict[str, Any]:
    """Value as fields of the overrides file; empty if they cannot express it.

    Args:
        parameter: the parameter of the value.
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
    return {"fuse": True} if parameter in APPLIED_AFTER else {}


def _convolution(words: Sequence[str]) -> dict[str, Any]:
    """Integers, flags and the data type of weights of a convolution config."""
    known = {field.name for field in fields(Conv2dConfig)}
    found: dict[str, Any] = {}
    for name, value in braced_fields(words).items():
        text = joined(value)
        if name == "weights_dtype":
            found.update((name, word) for word in _data_type(text).values())
        elif name in known and (text.isdecimal() or text in ("true", "false")):
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
    """Parses a program config from a C++ structure; None if it is not supported.

    Args:
        words: the tokens of the structure, with its name or only braces.
        type_text: the declared type for the latter.
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
    """Short description of a program config for tables: kind and block sizes."""
    name = config.cpp.rpartition("::")[2].removesuffix("ProgramConfig")
    names = ("in0_block_w", "per_core_m", "per_core_n", "q_chunk_size", "k_chunk_size", "block_w")
    sizes = [
        f"{config.spelled.get(each, each)}={getattr(config, each)}"
        for each in names
        if hasattr(config, each)
    ]
    if config.activation is not None:
        sizes.append(config.activation.op_type)
    return " ".join([name.removeprefix("MatmulMultiCore") or name, *sizes])


def in_declared_order(
    type_words: Sequence[str], given: Mapping[str, Sequence[str]]
) -> dict[str, Sequence[str]]:
    """Fields of a structure in the order of its declaration, which C++ asks for; as they are given
    for structures that are not known."""
    name = "".join(type_words).rpartition("::")[2].rstrip(">&")
    cls = next((each for each in _configs() if each.cpp.endswith(name)), None)
    names = _COMPUTE_FIELDS
    if cls is not None:
        names = tuple(cls.spelled.get(each.name, each.name) for each in fields(cls))
    if not name or not given.keys() <= set(names):
        return dict(given)
    return {each: given[each] for each in names if each in given}


_COMPUTE_FIELDS = (
    *("math_fidelity", "math_approx_mode", "fp32_dest_acc_en", "packer_l1_acc"),
    *("dst_full_sync_en", "throttle_level"),
)
"""Fields of `ttnn::DeviceComputeKernelConfig`, in the order of declaration."""


def _configs() -> list[type[ProgramConfig]]:
    def below(cls: type[ProgramConfig]) -> list[type[ProgramConfig]]:
        return [found for each in cls.__subclasses__() for found in (each, *below(each))]

    return [each for each in below(ProgramConfig) if "cpp" in vars(each)]


def _field(hint: str, text: str) -> object:
    if "FusedActivation" in hint:
        named = _ACTIVATION.search(text)
        if named is None:
            return None
        return FusedActivation(named[1].lower(), tuple(map(float, _NUMBER.findall(named[2]))))
    if "CoreGrid" in hint:
        pair = _PAIR.fullmatch(text)
        return None if pair is None else CoreGrid(int(pair[1]), int(pair[2]))
    if text in ("true", "false"):
        return text == "true"
    return int(text) if text.isdecimal() else None
