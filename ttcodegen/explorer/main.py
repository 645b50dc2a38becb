"""Adapter that the stock server of Model Explorer loads:

    model-explorer --extensions=ttcodegen.explorer model.mlir

Its commands are those of `ttcodegen-explorer`, in one session for the life of the process. That
server reads any file that it is requested to read; `ttcodegen-explorer` does not.
"""

# The package of Model Explorer has no types.
# pyright: basic, reportMissingImports=false

from __future__ import annotations

from collections.abc import Callable
from dataclasses import make_dataclass
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

from model_explorer import Adapter, AdapterMetadata  # type: ignore[import-not-found]

from ttcodegen.explorer.access import FILE_EXTENSIONS
from ttcodegen.explorer.session import COMMANDS, EXTENSION, Command, Session


@cache
def _session() -> Session:
    return Session([Path("/")])


def _record(content: dict[str, Any]) -> object:
    """Converts a dictionary to a dataclass, as the stock server serializes only dataclasses."""
    return make_dataclass("Answer", list(content))(**content)


class TTAdapter(Adapter):
    """Adapter of TTIR, TTNN, TTMetal, TTKernel and EmitC modules, flatbuffers and projects."""

    metadata: ClassVar = AdapterMetadata(
        id=EXTENSION,
        name="ttcodegen",
        description="Models for Tenstorrent cards: TTIR, TTNN, TTMetal, TTKernel, EmitC, "
        "flatbuffers and projects of ttcodegen",
        source_repo="",
        fileExts=list(FILE_EXTENSIONS),
    )

    def _run(self, command: str, model_path: str, settings: dict[str, Any]) -> dict[str, Any]:
        results = _session().run(Command(command, model_path, settings, delete=False))
        return {"graphs": [_record(each) if isinstance(each, dict) else each for each in results]}


def _command(name: str) -> Callable[[TTAdapter, str, dict[str, Any]], dict[str, Any]]:
    def run(self: TTAdapter, model_path: str, settings: dict[str, Any]) -> dict[str, Any]:
        return self._run(name, model_path, settings)

    run.__name__ = name
    run.__doc__ = f"As `Session.{name}`."
    return run


# The server looks for a method with the name of the command.
for _name in COMMANDS:
    setattr(TTAdapter, _name, _command(_name))
