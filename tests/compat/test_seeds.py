"""The listings and command lines of the reference system's documents, where they are: in the
folder that TTCODEGEN_SEEDS names, or beside the corpus. What a test of its own needs is retyped in
the other files of this folder."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from ttcodegen.compat import ttmetal_programs, ttnn_modules
from ttcodegen.foundation.diagnostics import CompileError, Diagnostics, Source
from ttcodegen.frontends import read_module
from ttcodegen.ops.dialects import load_dialects
from ttcodegen.opt.command_line import parse_command_line
from ttcodegen.parsing.tokens import current_operation_name
from ttcodegen.rt.commands.arguments import COMMANDS


def _folder() -> Path | None:
    if (named := os.environ.get("TTCODEGEN_SEEDS")) is not None:
        return Path(named)
    corpus = os.environ.get("TTCODEGEN_CORPUS")
    beside = Path(corpus).parents[1] / "seeds" if corpus else None
    return beside if beside is not None and beside.is_dir() else None


SEEDS = _folder()
pytestmark = pytest.mark.skipif(SEEDS is None, reason="TTCODEGEN_SEEDS names no folder")


def texts() -> Iterator[tuple[str, str]]:
    """The name and the text of each document."""
    assert SEEDS is not None
    for path in sorted(SEEDS.glob("*.txt")):
        yield path.stem, path.read_text("utf-8")


_IS_IR = re.compile(
    r"\s*(%|\"|return|module|func|\}|\)|\^|//|#|emitc\.|\w+ = |\(|ml_|linalg|ttir\.|arith)"
)


def listings() -> Iterator[tuple[str, str]]:
    """Modules and functions from their first alias to their last brace."""
    for name, text in texts():
        lines = text.splitlines()
        end = 0
        for index, line in enumerate(lines):
            if index < end or not re.match(r"module\b.*\{$|func\.func @.*\{$", line):
                continue
            begin = index
            while begin and re.match(r"#\w+ = |// ", lines[begin - 1]):
                begin -= 1
            depth, end = 0, index
            while end < len(lines) and (end == index or depth > 0) and _IS_IR.match(lines[end]):
                depth += lines[end].count("{") - lines[end].count("}")
                end += 1
            # Where the text was taken from a page, the last braces may be lost.
            missing = "}\n" * depth
            yield f"{name}:{index + 1}", "\n".join(lines[begin:end]) + "\n" + missing


REFUSED = ("linalg.generic", "ml_program.global")
"""Listings with these are of another stage, or a sketch that is no MLIR."""


def test_listings_are_read() -> None:
    read, refused = [], {}
    for name, text in listings():
        try:
            module = read_module(Source(f"{name}.mlir", text), Diagnostics())
            module.verify()
            read.append(name)
        except CompileError as error:
            if not any(word in text for word in REFUSED):
                refused[name] = error.render()
    assert not refused
    assert len(read) >= 10


NO_MLIR = {
    '"ttir.clamp"(%arg0)': "what a call computes is written where the types should be",
    '"ttnn.clamp"(%arg0)': "what a call computes is written where the types should be",
    "%result = tt.tuple": "a bracket is missing",
}
"""Examples that no tool reads as they are printed, and why."""
_ALIASES = {
    "#layout": "#tt.metal_layout<(d0, d1) -> (d0, d1), undef, <1x1>, "
    "memref<64x128xf32, #tt.memory_space<l1>>>",
    "#ttnn_layout": "#ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, "
    "memref<2x4x!tt.tile<32x32, bf16>, #ttnn.buffer_type<dram>>, <interleaved>>",
    **{
        name: "#tt.operand_constraint<dram|l1|scalar|tile>"
        for name in ("#any_device", "#any_device_tile")
    },
}


def _examples() -> Iterator[tuple[str, str]]:
    """The single operations that documents show, each in a function that takes its operands."""
    pattern = r'\s*(?:%\w+ = )?"?(?:ttir|ttnn|ttmetal|ttkernel|tt|emitc)\.[a-z_0-9]+"? ?[(%"]'
    found: set[str] = set()
    for name, text in texts():
        for line in text.splitlines():
            example = line.strip().partition(" // ")[0]
            if not re.match(pattern, line) or "..." in line or " : " not in line:
                continue
            # The introduction shows whole modules only: they are listings.
            if not name.endswith("-zh") and example not in found:
                found.add(example)
                yield name, example


def _function_of(example: str) -> str:
    """A module with one function that holds the operation."""
    before, _, signature = example.partition(" : (")
    if not signature:
        before, _, signature = example.rpartition(" : ")
    operands = signature.partition(") -> ")[0].rstrip(")")
    types = re.split(r",\s*(?![^<]*>)", operands)
    if operands.startswith("tuple<"):
        types = [operands]
    values = list(dict.fromkeys(re.findall(r"%\w+(?! =)", re.sub(r"^%\w+ =", "", before))))
    aliases = "".join(
        f"{alias} = {_ALIASES[alias.rstrip('0123456789')]}\n"
        for alias in sorted(set(re.findall(r"#\w+\b(?![.<\w])", example)))
    )
    arguments = ", ".join(f"{v}: {t}" for v, t in zip(values, types, strict=False))
    return f"{aliases}func.func @f({arguments}) {{\n  {example}\n  return\n}}\n"


def test_examples_of_operations_are_read() -> None:
    read: list[str] = []
    refused: dict[str, str] = {}
    for name, example in _examples():
        try:
            source = Source(f"{name}.mlir", _function_of(example))
            read_module(source, Diagnostics()).verify()
            read.append(example)
        except CompileError as error:
            if not any(example.startswith(start) for start in NO_MLIR):
                refused[example] = error.render()
    assert not refused
    assert len(read) >= 10


def test_operations_have_names() -> None:
    """Every operation that the books list is one of ours, under today's name or an older one."""
    context = load_dialects()
    other = {*ttnn_modules.DEVICE_OPS, *ttnn_modules.RULES, *ttmetal_programs.TEXT}
    missing: set[str] = set()
    found: set[str] = set()
    pattern = r"^((?:tt|ttir|ttnn|ttmetal|ttkernel)\.[a-z_0-9]+)(?: \(tt::|\n\(tt::)"
    for _, text in texts():
        for name in re.findall(pattern, text, re.MULTILINE):
            found.add(name)
            current = current_operation_name(name)
            current = re.sub(r"^tt\.", "ttcore.", current)
            context.get_optional_op(current)  # Loads the dialect.
            dialect = context.get_optional_dialect(current.partition(".")[0])
            names = {op.name for op in dialect.operations} if dialect is not None else set()
            if current not in names and name not in other:
                missing.add(name)
    assert not missing
    assert len(found) > 250


def _commands(program: str) -> Iterator[list[str]]:
    for _, text in texts():
        for line in text.splitlines():
            match = re.match(rf"(?:// RUN: )?(?:\./build/bin/)?{program} (.*)", line)
            if match is not None and "..." not in line and "cmake" not in line:
                command = re.split(r"\s(?:\||>|2>|#|&&)\s?", match[1])[0]
                yield shlex.split(command.replace("\\", ""))


def test_command_lines_of_opt_are_read() -> None:
    lines = [line for line in _commands("ttmlir-opt") if any(w.startswith("--") for w in line)]
    assert len(lines) >= 10
    for line in lines:
        # Other dialects are read without an option.
        if "--convert-tosa-to-ttir" not in line:
            parse_command_line(line)


def test_options_of_ttrt_are_known() -> None:
    lines = list(_commands("ttrt"))
    assert len(lines) > 90
    for line in lines:
        command = line[0]
        if command not in COMMANDS:
            continue
        known = {argument.name: argument for argument in COMMANDS[command]}
        for word in line[1:]:
            if word.startswith("--") and word != "--help":
                assert word in known, line
                assert known[word].refusal is None, line
