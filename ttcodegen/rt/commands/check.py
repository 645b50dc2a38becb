"""`check`: whether a flatbuffer fits a system."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from ttcodegen.cost.memory_use import memory_use
from ttcodegen.flatbuffer.program import Program
from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.rt.commands.command import Command, FileResult
from ttcodegen.rt.commands.read import system_of
from ttcodegen.rt.commands.systems import named_systems
from ttcodegen.runtime.executable import (
    FlatbufferExecutable,
    find_files,
    flatbuffer_beside,
    open_flatbuffer,
)
from ttcodegen.systems.description import SystemDescription, differences

ENDINGS = (".ttnn", ".ttm", ".so")


class Check(Command):
    """Compares the system that a file was compiled for with one or more system descriptions, and
    what the file needs with what they have."""

    name: ClassVar[str] = "check"

    def execute(self) -> list[FileResult]:
        """A result for each file and description; its content says in which fields they differ."""
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
    """What the tensors of functions need that a system does not have: data types and memory."""
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
