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

from ttcodegen.compat import ttir_buffers, ttnn_modules
from ttcodegen.diagnostics import CompileError, Diagnostics, Source
from ttcodegen.frontends import read_module
from ttcodegen.ops.context import load_dialects
from ttcodegen.opt.command_line import parse_command_line
from ttcodegen.parsing.legacy import current_operation_name
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


def _listings() -> Iterator[tuple[str, str]]:
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
    for name, text in _listings():
        try:
            module = read_module(Source(f"{name}.mlir", text), Diagnostics())
            module.verify()
            read.append(name)
        except CompileError as error:
            if not any(word in text for word in REFUSED):
                refused[name] = error.render()
    assert not refused
    assert len(read) >= 10


def test_operations_have_names() -> None:
    """Every operation that the books list is one of ours, under today's name or an older one."""
    context = load_dialects()
    other = {*ttnn_modules.DEVICE_OPS, *ttnn_modules.RULES, *ttir_buffers.TEXT}
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
        # Other dialects are read without being told to.
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
