"""The conversion of host functions of device programs to C++ files as a pass."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from ttcodegen.conversions.host_functions.cpp_interface import (
    FileEmission,
    hold_constants,
    replace_content,
    title_of,
)
from ttcodegen.conversions.host_functions.interface import required
from ttcodegen.conversions.mesh import share_on_host
from ttcodegen.conversions.ttir_to_ttnn import cpu_functions
from ttcodegen.conversions.ttmetal_to_emitc.functions import (
    convert_ttmetal_to_emitc,
    device_entries,
)
from ttcodegen.conversions.ttmetal_to_emitc.recording import share_programs
from ttcodegen.emission.convert_ttkernel_to_emitc import (
    KERNELS,
    ConvertTTKernelToEmitC,
    kernel_paths,
)
from ttcodegen.emission.program_sources import render_programs
from ttcodegen.emission.templates import cpu_support_files
from ttcodegen.emitc.builder import open_file
from ttcodegen.emitc.statements import FileOp


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
