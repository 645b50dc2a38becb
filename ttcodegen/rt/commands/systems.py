"""The systems that files are held against."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ttcodegen.flatbuffer.system import load_system, read_ttsys_file
from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.rt.commands.read import system_of
from ttcodegen.runtime.executable import (
    Executable,
    FlatbufferExecutable,
    find_files,
    flatbuffer_beside,
    open_flatbuffer,
)
from ttcodegen.systems.cards import default_machine
from ttcodegen.systems.description import SystemDescription, differences


def named_systems(arguments: Mapping[str, Any]) -> dict[str, SystemDescription]:
    """The systems that --system-desc, --machine or --arch name, by their names; that of the CPU
    backend if none is given.

    Raises:
        CompileError: if several are given, or a file is no description.
    """
    path: Path | None = arguments["system_desc"]
    if path is not None and path.is_dir():
        _name_of_system(arguments)
        return {str(file): read_ttsys_file(file) for file in find_files(path, (".ttsys",))}
    given = given_system(arguments)
    return {"cpu": default_machine()} if given is None else dict([given])


def given_system(arguments: Mapping[str, Any]) -> tuple[str, SystemDescription] | None:
    """The name and the description of the system that is named; None if none is.

    Raises:
        CompileError: if several are given, there is no such machine, or a file is no description.
    """
    name = _name_of_system(arguments)
    return None if name is None else (name, load_system(name))


def names_system(arguments: Mapping[str, Any]) -> bool:
    """True if a system is named."""
    return _name_of_system(arguments) is not None


def _name_of_system(arguments: Mapping[str, Any]) -> str | None:
    keys = ("system_desc", "machine", "arch")
    given = {key: str(arguments[key]) for key in keys if arguments[key] is not None}
    if len(given) > 1:
        first, second = (f"--{key.replace('_', '-')}" for key in list(given)[:2])
        raise CompileError(f"{first} and {second} exclude each other")
    return next(iter(given.values()), None)


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
            remedy="name its system with --machine, --system-desc or --arch; ttcodegen-rt check "
            "shows all differences",
        )
