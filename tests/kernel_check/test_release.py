"""The release that a check names, and the package that its script imports."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from scripts.kernel_check_toolchain import release_of
from ttcodegen.systems.releases import DEFAULT_RELEASE, RELEASES

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "kernel_check.py"


def test_the_release_is_that_of_the_wheel_that_was_given(tmp_path: Path) -> None:
    (tmp_path / "ttnn").mkdir()
    (tmp_path / "ttnn-0.81.1.dist-info").mkdir()
    assert release_of(tmp_path / "ttnn") == "0.81.1"
    assert release_of(None) == DEFAULT_RELEASE
    assert release_of(None, RELEASES[-1]) == RELEASES[-1]


def test_a_folder_without_metadata_is_of_no_known_release(tmp_path: Path) -> None:
    (tmp_path / "ttnn").mkdir()
    assert release_of(tmp_path / "ttnn") == "unknown"


def test_the_script_imports_the_package_beside_it(tmp_path: Path) -> None:
    other = tmp_path / "scripts"
    other.mkdir()
    (other / "__init__.py").write_text("raise RuntimeError('another checkout')\n")
    ran = subprocess.run(
        [sys.executable, str(SCRIPT), "--help"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
