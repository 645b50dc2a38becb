"""A model, a server of its folder, and a client of the server."""

from __future__ import annotations

import contextlib
from collections.abc import Generator
from pathlib import Path

import pytest

from tests.explorer.test_graphs import MODEL
from ttcodegen.explorer.client import TTExplorer
from ttcodegen.explorer.server import Server
from ttcodegen.explorer.session import Session


def processes_below(process: int) -> list[int]:
    """The children of a process, and theirs."""
    found: list[int] = []
    for task in Path(f"/proc/{process}/task").glob("*/children"):
        with contextlib.suppress(OSError):  # It has ended since.
            for child in map(int, task.read_text().split()):
                found += [child, *processes_below(child)]
    return found


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "models" / "model.mlir"
    path.parent.mkdir()
    path.write_text(MODEL)
    return path


@pytest.fixture
def server(model: Path) -> Generator[Server]:
    made = Server(Session([model.parent]), port=0, most_uploaded=1000)
    made.start()
    yield made
    made.close()


@pytest.fixture
def explorer(server: Server) -> TTExplorer:
    return TTExplorer(server.port, token=server.token)
