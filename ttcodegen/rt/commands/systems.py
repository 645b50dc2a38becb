"""The systems that files are held against."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ttcodegen.flatbuffer.system import load_system, read_ttsys_file
from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.rt.commands.query import cpu_backend_system
from ttcodegen.rt.commands.read import system_of
from ttcodegen.runtime.executable import (
    Executable,
    FlatbufferExecutable,
    find_files,
    flatbuffer_beside,
    open_flatbuffer,
)
from ttcodegen.systems.cards import default_system
from ttcodegen.systems.description import SystemDescription, differences
from ttcodegen.systems.machines import machine


def named_systems(arguments: Mapping[str, Any]) -> dict[str, SystemDescription]:
    """The systems that --system-desc or --arch name, by their names; that of the CPU backend if
    neither is given.

    Raises:
        CompileError: if both are given, or a file is no description.
    """
    path: Path | None = arguments["system_desc"]
    arch: str | None = arguments["arch"]
    if path is not None and arch is not None:
        raise CompileError("--system-desc and --arch exclude each other")
    if path is not None and not path.exists() and machine(str(path)) is not None:
        return {str(path): load_system(str(path))}
    if path is not None:
        return {str(file): read_ttsys_file(file) for file in find_files(path, (".ttsys",))}
    if arch is not None:
        return {arch: default_system(arch)}
    return {"cpu": cpu_backend_system()}


def refuse_other_system(executable: Executable, systems: Mapping[str, SystemDescription]) -> None:
    """Makes sure that a file was compiled for one of the systems, if any are given. What a shared
    object was built for is known if its flatbuffer is beside it.

    Raises:
        CompileError: if it was compiled for another one.
    """
    flatbuffer = executable if isinstance(executable, FlatbufferExecutable) else None
    if flatbuffer is None and (beside := flatbuffer_beside(executable.path)) is not None:
        flatbuffer = open_flatbuffer(beside)
    if flatbuffer is None or not systems:
        return
    own = system_of(flatbuffer.header)
    found = [differences(own, system) for system in systems.values()]
    if all(found):
        raise CompileError(
            f"'{executable.path}' was compiled for another system than {', '.join(systems)}: "
            f"{found[0][0]}",
            remedy="name its system with --arch or --system-desc; ttcodegen-rt check shows all "
            "differences",
        )
