"""Faults of initialisation, put into kernels that are right."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_CALL = re.compile(
    r"^(?P<indent>\s*)(?P<name>[\w:]+)(?P<template><[^;]*?>)?\((?P<rest>[^;]*)\);\s*$"
)
_FULL = {
    "copy_tile_init": "unary_op_init_common({0}, {0})",
    "mm_init_short": "mm_init({0}, {1}, {0})",
    "mm_block_init_short": "mm_init({0}, {1}, {0})",
    "transpose_wh_init_short": "transpose_wh_init({0}, {0})",
    "add_tiles_init": "binary_op_init_common({0}, {1}, {0})",
    "sub_tiles_init": "binary_op_init_common({0}, {1}, {0})",
    "mul_tiles_init": "binary_op_init_common({0}, {1}, {0})",
}
"""A full initialisation in place of a short one, by its first arguments."""
_BUFFER = re.compile(
    r"// Circular buffer: [^\n]*?(?P<format>\w+)\.\n\s*constexpr uint32_t (?P<name>\w+) ="
)
"""The format of a circular buffer's pages, and its constant."""
_OTHER = {
    "copy_tile_init": "transpose_wh_init_short({0})",
    "transpose_wh_init_short": "copy_tile_init({0})",
    "mm_init_short": "copy_tile_init({0})",
    "mm_block_init_short": "copy_tile_init({0})",
    "add_tiles_init": "mul_tiles_init({0}, {1})",
    "sub_tiles_init": "add_tiles_init({0}, {1})",
    "mul_tiles_init": "sub_tiles_init({0}, {1})",
    "reduce_init": "copy_tile_init({0})",
}
"""The initialisation of another operation in place of the right one."""


@dataclass(frozen=True)
class Seed:
    """A kernel with one fault.

    Attributes:
        kind: of the fault, in a word.
        line: where it was put.
        text: the kernel.
    """

    kind: str
    line: int
    text: str


def seeds(text: str) -> Iterator[Seed]:
    """All faults of these kinds that fit a kernel."""
    lines = text.splitlines()
    calls = [_CALL.match(line) for line in lines]
    held = False
    fpu = ""
    for at, call in enumerate(calls):
        if call is None:
            continue
        name, indent = call["name"], call["indent"]
        arguments = [part.strip() for part in call["rest"].split(",")]
        if name == "tile_regs_acquire":
            held = True
            full = f"{indent}    unary_op_init_common(0, 16);"
            yield Seed("full after acquire", at + 2, _with(lines, at, lines[at], full))
        if "reconfig_data_format" in name and (other := _other_format(text, arguments[-1])):
            wrong = f"{indent}{name}({', '.join([*arguments[:-1], other])});"
            yield Seed("format of another operand", at + 1, _with(lines, at, wrong))
        if name == "tile_regs_release":
            full = f"{indent}unary_op_init_common(0, 16);"
            yield Seed("full before release", at + 1, _with(lines, at, full, lines[at]))
            held = False
        if held and name in _FULL:
            full = indent + _FULL[name].format(*arguments) + ";"
            yield Seed("full within registers", at + 1, _with(lines, at, full, lines[at]))
        if name in _OTHER and _is_used(calls, at):
            other = indent + _OTHER[name].format(*arguments) + ";"
            yield Seed("initialisation of another", at + 1, _with(lines, at, other))
        if name.endswith(("_uninit", "_uninit_with_dt")) and name != "unary_bcast_uninit":
            yield Seed("uninit left out", at + 1, _with(lines, at))
        if name in _OTHER or name in ("unary_op_init_common", "binary_op_init_common"):
            if name in _OTHER and fpu not in ("", name) and _is_used(calls, at):
                yield Seed("initialisation left out", at + 1, _with(lines, at))
            fpu = name
        vector = re.fullmatch(r"(\w+_tile)_init", name)
        if vector and name not in _OTHER and text.count(f"{name}(") == 1 == _inits(text, vector[1]):
            yield Seed("vector initialisation left out", at + 1, _with(lines, at))


def _other_format(text: str, buffer: str) -> str | None:
    """A circular buffer whose format is not that of `buffer`, which is known."""
    formats = {found["name"]: found["format"] for found in _BUFFER.finditer(text)}
    if buffer not in formats:
        return None
    return next((each for each, of in formats.items() if of != formats[buffer]), None)


def _inits(text: str, operation: str) -> int:
    """1 if the operation is called under the name of its initialisation; 2 if under others."""
    return 1 if re.search(rf"\b{operation}(<[^;]*?>)?\(", text) else 2


def _is_used(calls: list[re.Match[str] | None], at: int) -> bool:
    """Returns whether an initialisation's own operation precedes the next one."""
    found = calls[at]
    assert found is not None
    stem = re.sub(r"_init(_short)?$", "", found["name"])
    stem = {"mm": "matmul_tiles", "mm_block": "matmul_block", "transpose_wh": "transpose_wh_tile",
            "reduce": "reduce_tile"}.get(stem, stem)  # fmt: skip
    for call in calls[at + 1 :]:
        if call is not None and call["name"] == stem:
            return True
        if call is not None and call["name"] in (*_FULL, *_OTHER):
            return False
    return False


def _with(lines: list[str], at: int, *instead: str) -> str:
    return "\n".join([*lines[:at], *instead, *lines[at + 1 :]]) + "\n"
