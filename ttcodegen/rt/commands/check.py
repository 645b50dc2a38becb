"""`check` and `query`: system descriptions, and compatibility of a flatbuffer with one."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from ttcodegen.cost import memory_use
from ttcodegen.flatbuffer.program import Program
from ttcodegen.flatbuffer.system import load_system, read_ttsys_file, system_of, write_ttsys
from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.rt.commands.command import Command, FileResult, json_text
from ttcodegen.runtime.executable import (
    ENDINGS,
    Executable,
    FlatbufferExecutable,
    find_files,
    flatbuffer_beside,
    open_flatbuffer,
)
from ttcodegen.systems.cards import default_machine
from ttcodegen.systems.description import SystemDescription, differences

# The systems that files are held against.


def named_systems(arguments: Mapping[str, Any]) -> dict[str, SystemDescription]:
    """Systems of --system-desc, --machine or --arch by name; by default the CPU backend's.

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
    """Name and description of the requested system; None if none is given.

    Raises:
        CompileError: if several are given, the machine is unknown, or a file is no description.
    """
    name = _name_of_system(arguments)
    return None if name is None else (name, load_system(name))


def names_system(arguments: Mapping[str, Any]) -> bool:
    """Returns whether a system is given."""
    return _name_of_system(arguments) is not None


def _name_of_system(arguments: Mapping[str, Any]) -> str | None:
    keys = ("system_desc", "machine", "arch")
    given = {key: str(arguments[key]) for key in keys if arguments[key] is not None}
    if len(given) > 1:
        first, second = (f"--{key.replace('_', '-')}" for key in list(given)[:2])
        raise CompileError(f"{first} and {second} exclude each other")
    return next(iter(given.values()), None)


def refuse_other_system(executable: Executable, systems: Mapping[str, SystemDescription]) -> None:
    """Refuses a file that was compiled for none of the given systems.

    The system of a shared object is known only with its flatbuffer next to it. Raises:
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


# `check`: whether a flatbuffer fits a system.


class Check(Command):
    """Compares a file's target system and resource needs with system descriptions."""

    name: ClassVar[str] = "check"

    def execute(self) -> list[FileResult]:
        """Returns a result per file and description, whose content lists the differing fields."""
        systems = named_systems(self.arguments)
        paths = find_files(self.arguments["binary"], ENDINGS)
        return [
            self._check(path, name, system) for path in paths for name, system in systems.items()
        ]

    def _check(self, path: Path, name: str, system: SystemDescription) -> FileResult:
        kind = path.suffix.lstrip(".")
        try:
            flatbuffer = _flatbuffer(path)
            found = differences(system_of(flatbuffer.header), system)
            misfits = [f"{field}, of the file and of the system" for field in found]
            misfits += unmet_needs(flatbuffer.functions, system)
        except CompileError as error:
            return self.failed(path, kind, error)
        if misfits:
            self.logger.error(f"{path} does not fit {name}:")
            for misfit in misfits:
                self.logger.error(f"  {misfit}")
            self.logger.error(
                "note: compile the model again for that system: --machine, --system-desc or --arch"
            )
        else:
            self.logger.info(f"{path} fits {name}")
        content = {"system_desc": name, "differences": misfits}
        return FileResult(str(path), kind, passed=not misfits, content=content)


def _flatbuffer(path: Path) -> FlatbufferExecutable:
    if path.suffix == ".so":
        beside = flatbuffer_beside(path)
        if beside is None:
            raise CompileError(f"'{path}' does not say what it was built for: it has no flatbuffer")
        path = beside
    return open_flatbuffer(path)


def unmet_needs(functions: Sequence[Program], system: SystemDescription) -> list[str]:
    """Data types and memory that functions need and a system lacks."""
    chip = system.chip
    types = {tensor.type.data_type for function in functions for tensor in function.tensors}
    missing = sorted(types - set(chip.supported_data_types))
    misfits = [f"supported_data_types: the file needs {data_type}" for data_type in missing]
    limits = {"dram": chip.usable_dram, "l1": chip.usable_l1 * chip.cores}
    fields = {"dram": "dram_unreserved_end", "l1": "l1_size"}
    for program in functions:
        for memory, needed in memory_use(program).peak.items():
            if needed > limits[memory]:
                misfits.append(
                    f"{fields[memory]}: '{program.name}' needs {needed} bytes of {memory}, the "
                    f"system has {limits[memory]}"
                )
    return misfits


# `query`: the device that programs run on, as a system description.


class Query(Command):
    """Describes the CPU backend's default device, or a named machine."""

    name: ClassVar[str] = "query"

    def execute(self) -> list[FileResult]:
        """Returns one result, whose content is the description."""
        name, system = given_system(self.arguments) or ("cpu", default_machine())
        data = write_ttsys(system)
        written: list[str] = []
        if self.arguments["save_artifacts"]:
            written.append(str(self.artifacts.write("system_desc.ttsys", data)))
        path: Path | None = self.arguments["output"]
        if path is not None:
            try:
                path.write_bytes(data)
            except OSError as error:
                raise CompileError(f"cannot write '{path}': {error.strerror or error}") from None
            written.append(str(path))
        description = dataclasses.asdict(system)
        self.logger.info(json_text(description).rstrip())
        content = {"device": name, "system_desc": description, "written": written}
        return [FileResult(f"<{name}>", "ttsys", content=content)]
