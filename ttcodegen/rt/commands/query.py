"""`query`: the device that programs run on, as a system description."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import ClassVar

from ttcodegen.flatbuffer.system import write_ttsys
from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.rt.commands.artifacts import json_text
from ttcodegen.rt.commands.command import Command, FileResult
from ttcodegen.systems.cards import default_system
from ttcodegen.systems.description import SystemDescription

CPU_BACKEND_ARCH = "wormhole_b0"
"""The card whose grid, memories and data types the CPU backend has."""


class Query(Command):
    """Describes the CPU backend's device, or a machine with a card of a named architecture."""

    name: ClassVar[str] = "query"

    def execute(self) -> list[FileResult]:
        """One result; its content is the description."""
        arch: str = self.arguments["arch"] or CPU_BACKEND_ARCH
        system = default_system(arch)
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
        name = "cpu" if self.arguments["arch"] is None else arch
        content = {"device": name, "system_desc": description, "written": written}
        return [FileResult(f"<{name}>", "ttsys", content=content)]


def cpu_backend_system() -> SystemDescription:
    """The description of the CPU backend's device."""
    return default_system(CPU_BACKEND_ARCH)
