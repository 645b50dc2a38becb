"""The conversion of device programs to EmitC as a pass, for modules that are kept as text."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from ttcodegen.conversions.convert_ttnn_to_emitc import CONSTANTS, constants_attribute
from ttcodegen.conversions.interface import module_name
from ttcodegen.diagnostics import CompileError
from ttcodegen.dialects.system import system_of
from ttcodegen.emitc.builder import open_file
from ttcodegen.emitc.naming import identifier
from ttcodegen.systems.description import DEFAULT_ARCHITECTURE
from ttcodegen.systems.releases import DEFAULT_RELEASE
from ttcodegen.transforms.module_text import module_text

if TYPE_CHECKING:
    from ttcodegen.emission.device_sources import DeviceSources


def take_over_programs(module: ModuleOp) -> None:
    """Makes programs of today of what dispatches those of 2024; leaves other modules alone.

    Raises:
        CompileError: at a program that computes no more or less than one builtin.
    """
    from ttcodegen.compat.ttmetal_programs import lift_programs
    from ttcodegen.ops.context import load_dialects
    from ttcodegen.transforms.pass_runner import PassRunner
    from ttcodegen.transforms.registry import Step, passes_of

    if lift_programs(module):
        PassRunner(load_dialects()).run(module, passes_of(Step("ttir-to-ttmetal-pipeline")))


@dataclass(frozen=True)
class ConvertTTMetalToEmitC(ModulePass):
    """Makes one `emitc.file` per source file of what was a module of device programs.

    The host functions are ops of EmitC; what is made from templates, the functions that build
    programs and the kernels, stands there as it is. Raises CompileError if there is nothing to
    call, or an op has no C++.
    """

    name = "convert-ttmetal-to-emitc"

    module_name: str = ""
    """The namespace and the stem of the host's files; the module's own name if empty."""
    input_hash: str = ""
    """What the header line of the files says about their origin; that of the module if empty."""
    release: str = DEFAULT_RELEASE

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        take_over_programs(op)
        sources = self._sources(op)
        host = sources.host.module
        written = {str(file.properties["id"]).strip('"') for file in host.ops}
        for path, text in sources.files.items():
            if path not in written:
                open_file(host, path).verbatim(text.removesuffix("\n"))
        for old in list(op.ops):
            op.body.block.erase_op(old, safe_erase=False)
        for new in list(host.ops):
            new.detach()
            op.body.block.add_op(new)
        if sources.host.constants:
            op.attributes[CONSTANTS] = constants_attribute(sources.host.constants)

    def _sources(self, module: ModuleOp) -> DeviceSources:
        from ttcodegen.emission.device_sources import device_sources
        from ttcodegen.flatbuffer.writer import Origin

        if not any(op.name == "ttmetal.enqueue_program" for op in module.walk()):
            raise CompileError(
                "the module launches no programs of the device",
                remedy="run --ttir-to-ttmetal-pipeline first",
            )
        system = system_of(module)
        arch = DEFAULT_ARCHITECTURE if system is None else system.arch
        input_hash = self.input_hash or hashlib.sha256(module_text(module).encode()).hexdigest()
        name = identifier(self.module_name or module_name(module) or "model")
        sources = device_sources(module, name, Origin(input_hash, arch, self.release))
        if not sources.entries:
            raise CompileError(
                "the module has no public function",
                remedy="remove 'private' from the function that is to be called",
            )
        return sources
