"""Shared by the tests of the command lines."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.flatbuffers import SCHEMA
from tests.flatbuffer.programs import adding_program, binary
from ttcodegen.flatbuffer.decoding import encode


@pytest.fixture
def adding(tmp_path: Path) -> Path:
    """A flatbuffer that adds."""
    path = tmp_path / "adding.ttnn"
    path.write_bytes(encode(SCHEMA, binary(adding_program())))
    return path
