"""The adapter that the stock server of Model Explorer loads:

    model-explorer --extensions=ttcodegen.explorer model.mlir

Its commands are those of `ttcodegen-explorer`, in one session for the life of the process. That
server reads whatever file it is asked for; `ttcodegen-explorer` does not.
"""

# The package of Model Explorer has no types.
# pyright: basic, reportMissingImports=false

from __future__ import annotations

from dataclasses import make_dataclass
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

from model_explorer import Adapter, AdapterMetadata  # type: ignore[import-not-found]

from ttcodegen.explorer.access import FILE_EXTENSIONS
from ttcodegen.explorer.session import EXTENSION, Command, Session


@cache
def _session() -> Session:
    return Session([Path("/")])


def _record(content: dict[str, Any]) -> object:
    """A dataclass with these fields: the stock server makes JSON of dataclasses alone."""
    return make_dataclass("Answer", list(content))(**content)


class TTAdapter(Adapter):
    """Modules of TTIR, TTNN, TTMetal, TTKernel and EmitC, flatbuffers and projects."""

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

    def convert(self, model_path: str, settings: dict[str, Any]) -> dict[str, Any]:
        """As `Session.convert`."""
        return self._run("convert", model_path, settings)

    def initialize(self, model_path: str, settings: dict[str, Any]) -> dict[str, Any]:
        """As `Session.initialize`."""
        return self._run("initialize", model_path, settings)

    def execute(self, model_path: str, settings: dict[str, Any]) -> dict[str, Any]:
        """As `Session.execute`."""
        return self._run("execute", model_path, settings)

    def status_check(self, model_path: str, settings: dict[str, Any]) -> dict[str, Any]:
        """As `Session.status_check`."""
        return self._run("status_check", model_path, settings)

    def override(self, model_path: str, settings: dict[str, Any]) -> dict[str, Any]:
        """As `Session.override`."""
        return self._run("override", model_path, settings)

    def overrides(self, model_path: str, settings: dict[str, Any]) -> dict[str, Any]:
        """As `Session.overrides`."""
        return self._run("overrides", model_path, settings)

    def choices(self, model_path: str, settings: dict[str, Any]) -> dict[str, Any]:
        """As `Session.choices`."""
        return self._run("choices", model_path, settings)

    def decisions(self, model_path: str, settings: dict[str, Any]) -> dict[str, Any]:
        """As `Session.decisions`."""
        return self._run("decisions", model_path, settings)

    def models(self, model_path: str, settings: dict[str, Any]) -> dict[str, Any]:
        """As `Session.models`."""
        return self._run("models", model_path, settings)

    def node_data(self, model_path: str, settings: dict[str, Any]) -> dict[str, Any]:
        """As `Session.node_data`."""
        return self._run("node_data", model_path, settings)
