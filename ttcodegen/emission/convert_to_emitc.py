"""Passes that convert the kernels and the host functions of device programs to C++ files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from xdsl.context import Context
from xdsl.dialects.builtin import DictionaryAttr, ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp

from ttcodegen.conversions.host_functions.cpp_interface import (
    FileEmission,
    hold_constants,
    replace_content,
    title_of,
)
from ttcodegen.conversions.host_functions.interface import required
from ttcodegen.conversions.mesh import share_on_host
from ttcodegen.conversions.ttir_to_ttnn import cpu_functions
from ttcodegen.conversions.ttkernel_to_emitc.functions import write_kernel
from ttcodegen.conversions.ttmetal_to_emitc.functions import (
    convert_ttmetal_to_emitc,
    device_entries,
)
from ttcodegen.conversions.ttmetal_to_emitc.recording import share_programs
from ttcodegen.dialects.operations.operation import operation_name
from ttcodegen.dialects.ttmetal.device_module import (
    DeviceProgram,
    device_programs,
    functions_of,
    is_host_function,
)
from ttcodegen.dialects.ttmetal.program_verification import verify_programs
from ttcodegen.dialects.ttmetal.programs import CONSTANT
from ttcodegen.emission.program_sources import kernel_files, render_programs
from ttcodegen.emission.templates import cpu_support_files
from ttcodegen.emitc.builder import open_file
from ttcodegen.emitc.printer import print_file, print_module
from ttcodegen.emitc.statements import FileOp
from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.systems.releases import release_named
from ttcodegen.systems.releases.release import Release
from ttcodegen.transforms.rewriting import body_of

# The conversion of the kernels of device programs to C++ files as a pass.

KERNELS = "ttcodegen.kernels"
"""Attribute of a module whose kernels are C++ files: their paths, by the names of their programs
and their own."""


@dataclass(frozen=True)
class ConvertTTKernelToEmitC(FileEmission):
    """Makes one `emitc.file` of each kernel that the programs of a module run, and of what they
    include; host functions stay as they are. Kernels with the same text share a file.

    Raises CompileError if no program is launched, or an op has no C++.
    """

    name = "convert-ttkernel-to-emitc"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        lift_programs_of_2024(op)
        verify_programs(op)
        hosts = [function for function in functions_of(op) if is_host_function(function)]
        for host in hosts:
            _require_lowered(host)
        title = title_of(self.cpp_name(op), self.source_hash(op), self.release)
        programs = device_programs(hosts)
        functions = {function.sym_name.data: function for function in functions_of(op)}
        kernels = kernel_files(
            programs, kernel_cpp(functions, programs, title, release_named(self.release))
        )
        paths: dict[str, dict[str, str]] = {}
        for (program, kernel), path in kernels.paths.items():
            paths.setdefault(program, {})[kernel] = path
        for path, text in kernels.files.items():
            open_file(op, path).verbatim(text.removesuffix("\n"))
        op.attributes[KERNELS] = DictionaryAttr(
            {
                program: DictionaryAttr({kernel: StringAttr(p) for kernel, p in found.items()})
                for program, found in paths.items()
            }
        )


def _require_lowered(function: FuncOp) -> None:
    """Raises CompileError at an op that has not been lowered to programs of the device."""
    for op in body_of(function).ops:
        if operation_name(op) != CONSTANT and op.dialect_name() in ("ttir", "ttnn"):
            raise CompileError(
                f"'{operation_name(op)}' does not launch a program of the device",
                op,
                remedy="run --ttir-to-ttmetal-pipeline on the module of TTIR first",
            )


def lift_programs_of_2024(module: ModuleOp) -> None:
    """Makes programs of today of what dispatches those of 2024; leaves other modules alone.

    Raises:
        CompileError: at a program that computes no more or less than one builtin.
    """
    from ttcodegen.compat.ttmetal_programs import lift_programs
    from ttcodegen.ops.dialects import load_dialects
    from ttcodegen.transforms.pass_runner import PassRunner
    from ttcodegen.transforms.registry import Step, passes_of

    if lift_programs(module):
        PassRunner(load_dialects()).run(module, passes_of(Step("ttir-to-ttmetal-pipeline")))


def kernel_cpp(
    functions: Mapping[str, FuncOp],
    programs: Sequence[DeviceProgram],
    title: str,
    release: Release,
) -> dict[str, str]:
    """The C++ of the kernels of programs, by the symbols of their functions.

    Args:
        functions: those of the kernels among others, by their symbols.
        programs: the programs.
        title: the lines at the head of each file.
        release: the release of tt-metal that the functions are those of.
    """
    holder = ModuleOp([])
    paths: dict[str, str] = {}
    for program in (device_program.program for device_program in programs):
        for kernel in program.kernels:
            if kernel.function not in paths:
                path = paths[kernel.function] = f"kernels/{len(paths)}.cpp"
                file = open_file(holder, path)
                write_kernel(file, functions[kernel.function], kernel, program, title, release)
    texts = print_module(holder)
    return {symbol: texts[path] for symbol, path in paths.items()}


def kernel_paths(module: ModuleOp) -> dict[tuple[str, str], str]:
    """The file of each kernel of a module, by the names of its program and its own."""
    paths: dict[tuple[str, str], str] = {}
    kept = cast("DictionaryAttr", module.attributes[KERNELS])
    for program, kernels in kept.data.items():
        for kernel, path in cast("DictionaryAttr", kernels).data.items():
            paths[program, kernel] = cast("StringAttr", path).data
    return paths


def kernel_texts(module: ModuleOp) -> dict[tuple[str, str], str]:
    """The C++ of each kernel of a module, by the names of its program and its own."""
    texts = {op.id.data: print_file(op) for op in module.ops if isinstance(op, FileOp)}
    return {key: texts[path] for key, path in kernel_paths(module).items()}


# The conversion of host functions of device programs to C++ files as a pass.


@dataclass(frozen=True)
class ConvertTTMetalToEmitC(FileEmission):
    """Makes one `emitc.file` per source file of what was a module of device programs; kernels that
    are no files yet become such first (`convert-ttkernel-to-emitc`).

    The host functions are ops of EmitC; the functions that build programs are rendered from a
    template, so their text is kept as it is. Raises CompileError if there is nothing to call, or an
    op has no C++.
    """

    name = "convert-ttmetal-to-emitc"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        name, source_hash = self.cpp_name(op), self.source_hash(op)
        if KERNELS not in op.attributes:
            ConvertTTKernelToEmitC(name, source_hash, self.release).apply(ctx, op)
        share_on_host(op)
        entries = self.interface or required(device_entries(op))
        programs = share_programs([entry.function for entry in entries], kernel_paths(op))
        host = convert_ttmetal_to_emitc(
            name, entries, source_hash, self.release, programs, cpu_functions(op)
        )
        title = title_of(name, source_hash, self.release)
        texts = render_programs(name, programs, title, host.exchanges, self.trace)
        for path, text in texts.items():
            open_file(host.module, path).verbatim(text.removesuffix("\n"))
        for path, text in cpu_support_files(host.cpu_headers).items():
            open_file(op, path).verbatim(text.removesuffix("\n"))
        others = [inner for inner in op.ops if isinstance(inner, FileOp)]
        replace_content(op, [*host.module.ops, *others])
        op.attributes.pop(KERNELS)
        hold_constants(op, host.constants)
