"""Flatbuffers that tests of `ttcodegen-rt` run, and results of its sub-commands."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.flatbuffer.programs import adding_program, binary
from ttcodegen.flatbuffer.decoding import encode
from ttcodegen.flatbuffer.schema import load_schema
from ttcodegen.rt import API

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
SCHEMA = load_schema("ttnn.fbs")


def written(folder: Path, name: str, **changes: Any) -> Path:
    """The adding program with changes, as a file."""
    path = folder / f"{name}.ttnn"
    path.write_bytes(encode(SCHEMA, binary(replace(adding_program(), **changes))))
    return path


def result_of(command: str, args: dict[str, Any]) -> tuple[int, dict[str, Any]]:
    """The code and the only result of a sub-command."""
    code, results = getattr(API, command)(args={**args, "--quiet": True})()
    (result,) = results["results"]
    return code, result
