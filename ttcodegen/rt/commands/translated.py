"""Builds the shared object of C++ that was translated beside its flatbuffer.

Tests write both from one module, by `ttcodegen-translate --ttnn-to-flatbuffer` and `--mlir-to-cpp`.
What a project has around such a file follows from the flatbuffer.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from ttcodegen.compilation import CompiledModule, CompileOptions, emit_module
from ttcodegen.emission.description import ModuleDescription
from ttcodegen.flatbuffer.module import module_of
from ttcodegen.flatbuffer.program import Program
from ttcodegen.flatbuffer.reader import read_ttnn_file
from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.ops.dialects import load_dialects
from ttcodegen.project.building import build_project
from ttcodegen.project.rendering import project_files
from ttcodegen.project.toolchain import find_toolchain
from ttcodegen.project.writer import write_project
from ttcodegen.rt.commands.read import system_of
from ttcodegen.transforms.pass_runner import PassRunner

_NAMESPACE = re.compile(r"^namespace (\w+) \{$", re.MULTILINE)


def build_translated(flatbuffer: Path, source: Path, out: Path) -> Path:
    """The shared object of a C++ file.

    Args:
        flatbuffer: the `.ttnn` file of the same module.
        source: the C++, as one file.
        out: the folder of the project that is made of it.

    Raises:
        CompileError: if the C++ cannot be read, is not what the tools translate, does not belong
            to the flatbuffer, or does not build.
    """
    try:
        text = source.read_text("utf-8")
    except (OSError, ValueError) as error:
        raise CompileError(f"cannot read '{source}': {error}") from None
    namespace = _NAMESPACE.search(text)
    if namespace is None:
        raise CompileError(f"'{source}' has no namespace of a module")
    compiled = _compiled(flatbuffer, namespace[1])
    # One file of the project includes the C++; that which usually holds it stays empty.
    header, body = f"src/{namespace[1]}.hpp", f"src/{namespace[1]}.cpp"
    files = {header: f"#pragma once\n{text}", body: f"// {source.name} is in the header.\n"}
    description = _without_tuning(compiled.description)
    compiled = replace(compiled, description=description, files=files, lines=())
    out.mkdir(parents=True, exist_ok=True)
    made = project_files(compiled, formatted=False)
    write_project(compiled.description, out, made, force=True)
    built = build_project(out, compiled.description.name, find_toolchain(), "so").library
    assert built is not None
    return built


def _without_tuning(module: ModuleDescription) -> ModuleDescription:
    """A module whose C++ has no src/tuning.hpp that the types of weights could come from."""
    functions = tuple(
        replace(function, arguments=tuple(replace(a, tuned_type="") for a in function.arguments))
        for function in module.functions
    )
    return replace(module, functions=functions)


def _compiled(flatbuffer: Path, name: str) -> CompiledModule:
    binary = read_ttnn_file(flatbuffer)
    options = CompileOptions(
        name, arch=binary.arch, release=binary.release, system=system_of(binary)
    )
    dtypes = {p.name: _source_dtypes(p) for p in binary.programs if p.kind == "entry"}
    runner = PassRunner(load_dialects())
    return emit_module(module_of(binary), options, runner, binary.input_hash, dtypes)


def _source_dtypes(program: Program) -> tuple[list[str], list[str]]:
    """The numpy dtypes of arguments and results, those of the device if they are unknown."""

    def name(tensor: int, known: str | None) -> str:
        return known or program.tensors[tensor].type.placement.data_type.numpy

    return (
        [name(entry.tensor, entry.element_type) for entry in program.inputs],
        [name(entry.tensor, entry.element_type) for entry in program.outputs],
    )
