"""A model, a server of its folder, and a client of the server."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import pytest

from tests.explorer.test_graphs import MODEL
from ttcodegen.explorer.client import TTExplorer
from ttcodegen.explorer.server import Server
from ttcodegen.explorer.session import Session


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
