"""`query`: the device that programs run on, as a system description."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import ClassVar

from ttcodegen.flatbuffer.system import write_ttsys
from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.rt.commands.artifacts import json_text
from ttcodegen.rt.commands.command import Command, FileResult
from ttcodegen.rt.commands.systems import given_system
from ttcodegen.systems.cards import default_machine


class Query(Command):
    """Describes the device that the CPU backend emulates by default, or a machine that is named."""

    name: ClassVar[str] = "query"

    def execute(self) -> list[FileResult]:
        """One result; its content is the description."""
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
