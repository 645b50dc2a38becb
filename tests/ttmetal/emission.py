"""Files and manifest of modules of device programs."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp

from ttcodegen.emission.convert_to_emitc import (
    ConvertTTKernelToEmitC,
    ConvertTTMetalToEmitC,
    kernel_paths,
    kernel_texts,
)
from ttcodegen.emission.description import DeviceManifest
from ttcodegen.emission.manifest_entries import device_manifest
from ttcodegen.emitc.printer import print_module
from ttcodegen.flatbuffer.writer import Origin
from ttcodegen.ops.dialects import load_dialects
from ttcodegen.systems.cards import default_system


@dataclass(frozen=True)
class Emitted:
    """The files of a module, and what the manifest says of it."""

    files: dict[str, str]
    manifest: DeviceManifest


def with_kernels_written(module: ModuleOp, origin: Origin) -> dict[tuple[str, str], str]:
    """Makes files of the kernels of a module; their texts."""
    pass_ = ConvertTTKernelToEmitC("tiny", origin.input_hash, origin.release)
    pass_.apply(load_dialects(), module)
    return kernel_texts(module)


def emitted(module: ModuleOp, origin: Origin) -> Emitted:
    """All that is written for a module called tiny."""
    with_kernels_written(module, origin)
    manifest = device_manifest(module, kernel_paths(module), default_system(origin.arch).chip)
    pass_ = ConvertTTMetalToEmitC("tiny", origin.input_hash, origin.release)
    pass_.apply(load_dialects(), module)
    return Emitted(print_module(module), manifest)
