"""From a module of device programs to everything that a project is made of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ttcodegen.conversions.cpp_interface import CppProgram, title_of
from ttcodegen.conversions.cpu_calls import cpu_functions
from ttcodegen.conversions.device_interface import device_entries
from ttcodegen.conversions.interface import Entry
from ttcodegen.conversions.ttkernel_to_emitc import write_compute_kernel
from ttcodegen.conversions.ttmetal_to_emitc import convert_ttmetal_to_emitc
from ttcodegen.dialects.device_module import (
    DeviceProgram,
    device_programs,
    function_named,
    launches,
)
from ttcodegen.dialects.programs import Processor
from ttcodegen.emitc.builder import open_file
from ttcodegen.emitc.printer import print_module

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from ttcodegen.emission.device_manifest import Entry as ManifestEntry
    from ttcodegen.flatbuffer.writer import Origin


@dataclass(frozen=True)
class DeviceSources:
    """What a module of device programs becomes."""

    entries: list[Entry]
    host: CppProgram
    """The host functions as EmitC, and the constants that they load."""
    files: dict[str, str]
    """All sources by path: host functions, programs, kernels."""
    kernel_texts: dict[tuple[str, str], str]
    """The kernels by the names of their programs and their own."""
    kernels: tuple[ManifestEntry, ...]
    programs: tuple[ManifestEntry, ...]
    cpu_functions: tuple[ManifestEntry, ...]
    """What manifest.json says of the functions that run on the CPU."""


def device_sources(module: ModuleOp, name: str, origin: Origin) -> DeviceSources:
    """The sources of a module of device programs.

    Args:
        module: host functions, the meanings of their programs, and compute kernels.
        name: the C++ name of the module.
        origin: what it was made from and for.

    Raises:
        CompileError: if an op has no C++.
    """
    # Rendering imports jinja2: who only gets a diagnostic must not wait for it.
    from ttcodegen.emission.device_manifest import (
        cpu_function_entries,
        kernel_entries,
        program_entries,
    )
    from ttcodegen.emission.program_sources import render_kernels, render_programs
    from ttcodegen.emission.templates import cpu_support_files

    entries = device_entries(module)
    functions = [entry.function for entry in entries]
    programs = device_programs(functions)
    title = title_of(name, origin.input_hash, origin.release)
    on_cpu = cpu_functions(module)
    host = convert_ttmetal_to_emitc(name, entries, origin.input_hash, origin.release, on_cpu)
    compute = _compute_kernels(module, programs, title)
    kernels = render_kernels(programs, compute, title)
    files = {
        **print_module(host.module),
        **render_programs(name, programs, kernels, title),
        **kernels.files,
        **cpu_support_files(host.cpu_headers),
    }
    counts = Counter(launch.program.name for launch in launches(functions))
    return DeviceSources(
        entries,
        host,
        files,
        {key: files[path] for key, path in kernels.paths.items()},
        kernel_entries(programs, kernels.paths, origin.arch),
        tuple(program_entries(programs, counts)),
        tuple(cpu_function_entries(functions, on_cpu)),
    )


def _compute_kernels(
    module: ModuleOp, programs: Sequence[DeviceProgram], title: str
) -> dict[str, str]:
    """The texts of the compute kernels, by the symbols of their functions."""
    from xdsl.dialects.builtin import ModuleOp

    holder = ModuleOp([])
    symbols: dict[str, str] = {}
    for program in (device_program.program for device_program in programs):
        for kernel in program.kernels:
            if kernel.processor is Processor.COMPUTE and kernel.source not in symbols:
                path = f"kernels/{len(symbols)}.cpp"
                file = open_file(holder, path)
                function = function_named(module, kernel.source)
                write_compute_kernel(file, function, kernel, program, title)
                symbols[kernel.source] = path
    texts = print_module(holder)
    return {symbol: texts[path] for symbol, path in symbols.items()}
