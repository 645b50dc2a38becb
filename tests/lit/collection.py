"""Lets pytest run MLIR files that have RUN lines: a conftest.py imports the hook."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from ttcodegen.cli.lit import LitError, features, run_lines, run_test, unmet


def pytest_collect_file(parent: pytest.Collector, file_path: Path) -> pytest.Collector | None:
    """Collects the files of the folder of the conftest.py, and those below it."""
    if file_path.suffix == ".mlir" and run_lines(file_path.read_text("utf-8")):
        return LitFile.from_parent(parent, path=file_path)
    return None


class LitFile(pytest.File):
    """A file with RUN lines."""

    def collect(self) -> Iterator[pytest.Item]:
        yield LitItem.from_parent(self, name="RUN")


class LitItem(pytest.Item):
    """All RUN lines of a file."""

    def runtest(self) -> None:
        condition = unmet(self.path.read_text("utf-8"), features())
        if condition is not None:
            pytest.skip(condition)
        with tempfile.TemporaryDirectory() as folder:
            run_test(self.path, Path(folder))

    def repr_failure(
        self, excinfo: pytest.ExceptionInfo[BaseException], style: object = None
    ) -> str:
        if isinstance(excinfo.value, LitError):
            return str(excinfo.value)
        return str(super().repr_failure(excinfo))

    def reportinfo(self) -> tuple[Path, int, str]:
        return self.path, 0, f"RUN lines of {self.path.name}"
