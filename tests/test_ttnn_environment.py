"""The environment that the real library is asked in."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from scripts import ttnn_environment
from scripts.ttnn_environment import NoEnvironment, main, ttnn_python


def test_one_that_was_made_is_taken(tmp_path: Path) -> None:
    (tmp_path / "made").touch()
    assert ttnn_python(tmp_path) == tmp_path / "bin" / "python"


def test_why_there_is_none_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def nothing(name: str) -> None:
        return None

    monkeypatch.setattr(shutil, "which", nothing)
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path))
    monkeypatch.setattr(ttnn_environment.sys, "executable", "/bin/false")
    with pytest.raises(NoEnvironment, match="it said nothing"):
        ttnn_python(tmp_path / "environment")
    assert main([str(tmp_path / "environment")]) == 1
    assert "error: /bin/false -m pip" in capsys.readouterr().err
