"""Translations between modules and what is no MLIR: C++ and flatbuffers.

Each of them takes what a file holds and gives files by name; a translation that makes one text can
give it to the standard output.
"""

from __future__ import annotations

import hashlib
import os
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ttcodegen.diagnostics import CompileError, Source

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

DEFAULT_ARCH = "wormhole_b0"
DEFAULT_RELEASE = "0.70.1"


@dataclass(frozen=True)
class Translated:
    """What a translation made: files by their paths, and all of it as one."""

    files: Mapping[str, str | bytes]
    whole: str | bytes


@dataclass(frozen=True)
class Translation:
    """A translation that the command line offers."""

    name: str
    description: str
    reads_text: bool
    """Whether the input is MLIR; a flatbuffer otherwise."""
    translate: Callable[[Source | bytes], Translated]


def mlir_to_cpp(source: Source | bytes) -> Translated:
    """The C++ of a module of EmitC, a file for each `emitc.file`.

    As a whole it is one file that compiles by itself: what the files of the module include of each
    other stands in it once, in the order of the module.

    Raises:
        CompileError: if the text is no module of EmitC.
    """
    from ttcodegen.emitc.printer import print_module

    module = _module(source)
    _put_into_file(module)
    files = print_module(module)
    return Translated(files, _amalgamated(files))


def ttnn_to_flatbuffer(source: Source | bytes) -> Translated:
    """The `.ttnn` file of a module of TTNN functions with layouts.

    Raises:
        CompileError: if the text is no such module.
    """
    from ttcodegen.conversions.convert_ttnn_to_emitc import require_ttnn
    from ttcodegen.dialects import load_dialects
    from ttcodegen.flatbuffer.module import origin_of
    from ttcodegen.flatbuffer.writer import Origin, write_ttnn
    from ttcodegen.transforms.decompose_layouts import DecomposeLayouts

    module = _module(source)
    require_ttnn(module)
    if any(op.name == "ttnn.composite_to_layout" for op in module.walk()):
        DecomposeLayouts().apply(load_dialects(), module)
    assert isinstance(source, Source)
    text_hash = hashlib.sha256(source.text.encode()).hexdigest()
    origin = origin_of(module, Origin(text_hash, DEFAULT_ARCH, DEFAULT_RELEASE))
    data = write_ttnn(module, origin)
    return Translated({"model.ttnn": data}, data)


def flatbuffer_to_mlir(source: Source | bytes) -> Translated:
    """The module of a `.ttnn` file, with locations.

    Raises:
        CompileError: if the data are no such file.
    """
    from ttcodegen.flatbuffer.module import module_of
    from ttcodegen.flatbuffer.reader import read_ttnn
    from ttcodegen.transforms.module_text import module_text

    assert isinstance(source, bytes)
    text = module_text(module_of(read_ttnn(source)), locations=True)
    return Translated({"model.mlir": text}, text)


TRANSLATIONS = (
    Translation("mlir-to-cpp", "a module of EmitC to C++", True, mlir_to_cpp),
    Translation("ttnn-to-flatbuffer", "a module of TTNN to a .ttnn file", True, ttnn_to_flatbuffer),
    Translation(
        "flatbuffer-to-mlir", "a .ttnn file to a module of TTNN", False, flatbuffer_to_mlir
    ),
)
"""All translations, in the order of --help."""


def _module(source: Source | bytes) -> ModuleOp:
    from ttcodegen.parsing import parse_module

    assert isinstance(source, Source)
    return parse_module(source)


def _put_into_file(module: ModuleOp) -> None:
    """Puts a module of EmitC that has no files, as other tools print it, into one; functions of the
    dialect `func` become those of EmitC."""
    from xdsl.dialects import func
    from xdsl.ir import Block

    from ttcodegen.emitc.statements import FileOp, FuncOp, ReturnOp

    content = list(module.ops)
    if any(isinstance(op, FileOp) for op in content) or not content:
        return
    block = Block()
    for op in content:
        op.detach()
        if not isinstance(op, func.FuncOp):
            block.add_op(op)
            continue
        region = op.detach_region(op.body)
        for inner in region.walk():
            if isinstance(inner, func.ReturnOp):
                if len(inner.operands) > 1:
                    raise CompileError("a function of C++ returns one value", inner)
                parent = inner.parent_block()
                assert parent is not None
                parent.insert_op_before(ReturnOp(*inner.operands), inner)
                parent.erase_op(inner)
                break
        made = FuncOp(op.sym_name.data, op.function_type, region, arg_attrs=op.arg_attrs)
        made.location = op.location
        block.add_op(made)
    module.body.block.add_op(FileOp("model.cpp", block))


def _amalgamated(files: Mapping[str, str]) -> str:
    """All files as one: headers first, without what they include of each other."""
    if len(files) == 1:
        return next(iter(files.values()))
    # A file includes another one by its path in the project, or by that from its own folder.
    names = sorted({*files, *(path.rpartition("/")[2] for path in files)})
    own = "|".join(re.escape(name) for name in names)
    line = rf'#pragma once|#include ["<](?:{own})[">]'
    unneeded = re.compile(rf"^(?:{line})\n(?:\n(?=\n))?", re.MULTILINE)
    ordered = sorted(files, key=lambda path: not path.endswith(".hpp"))
    return "\n".join(unneeded.sub("", files[path]) for path in ordered)


def read_input(path: str) -> bytes:
    """The bytes of a file; `-` is standard input.

    Raises:
        CompileError: if it cannot be read.
    """
    if path == "-":
        return sys.stdin.buffer.read()
    try:
        return Path(path).read_bytes()
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise CompileError(f"cannot read '{path}': {reason}") from None


def write_output(translated: Translated, path: str) -> None:
    """Writes what was made: to standard output (`-`), to a file, or, if `path` is a folder or ends
    in `/`, to a file for each that was made. A file appears as a whole or not at all.

    Raises:
        CompileError: if it cannot be written.
    """
    if path == "-":
        _write_to_stdout(translated.whole)
        return
    target = Path(path)
    try:
        if path.endswith("/") or target.is_dir():
            for name, content in translated.files.items():
                _write_file(target / name, content)
        else:
            _write_file(target, translated.whole)
    except OSError as error:
        raise CompileError(f"cannot write '{path}': {error.strerror or error}") from None


def _write_to_stdout(content: str | bytes) -> None:
    if isinstance(content, str):
        sys.stdout.write(content)
        return
    if sys.stdout.isatty():
        raise CompileError(
            "a flatbuffer is no text for a terminal", remedy="name a file with -o, or pipe it on"
        )
    sys.stdout.flush()
    sys.stdout.buffer.write(content)
    sys.stdout.buffer.flush()


def _write_file(path: Path, content: str | bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        fresh.write_bytes(content.encode("utf-8") if isinstance(content, str) else content)
        fresh.replace(path)
    except OSError:
        fresh.unlink(missing_ok=True)
        raise
