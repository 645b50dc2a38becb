"""Distinction of the user's own files from those of packages."""

from __future__ import annotations

import sysconfig
from pathlib import Path

import pytest

import ttcodegen
from ttcodegen.foundation.messages import is_of_user

PACKAGE = str(Path(ttcodegen.__file__).parent)


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        ("model.py", True),
        (f"{PACKAGE}-models/model.py", True),
        (f"{PACKAGE}/jax.py", False),
        (f"{sysconfig.get_path('stdlib')}/contextlib.py", False),
        ("/env/lib/python3.11/site-packages/flax/linen/module.py", False),
        ("<frozen runpy>", False),
    ],
)
def test_files_of_packages_are_not_of_the_user(file: str, expected: bool) -> None:
    assert is_of_user(file) == expected


def test_packages_may_be_installed_in_any_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`pip install --target`, with the folder in PYTHONPATH; the user's own are there as well."""
    for folder in ("packages", "models"):
        monkeypatch.syspath_prepend(tmp_path / folder)
        tmp_path.joinpath(folder).mkdir()
    tmp_path.joinpath("packages/flax-0.12.dist-info").mkdir()
    assert not is_of_user(str(tmp_path / "packages/flax/linen/module.py"))
    assert is_of_user(str(tmp_path / "models/decoder/attention.py"))
    assert is_of_user(str(tmp_path / "model.py"))
