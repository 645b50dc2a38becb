"""The packages of the compiler import downwards only.

Their order stands in pyproject.toml, under `tool.importlinter`; scripts/lint checks it as well.
"""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


def test_packages_import_downwards_only(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    linter = pytest.importorskip("importlinter.cli", reason="needs the extra 'test'")
    monkeypatch.chdir(ROOT)
    status = linter.lint_imports(no_cache=True, no_logo=True)
    assert status == linter.EXIT_STATUS_SUCCESS, capsys.readouterr().out
