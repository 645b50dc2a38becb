"""The cache folder is used only if it is the user's own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ttcodegen.emitc.formatting import FormattedTexts
from ttcodegen.foundation import cache
from ttcodegen.foundation.cache import kept_file, own_cache_folder
from ttcodegen.foundation.whole_files import write_whole

OTHER_USER = 4242
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")


@pytest.fixture
def top(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for the cache; the user has no other one."""
    monkeypatch.setenv("TTCODEGEN_CACHE", str(tmp_path / "top"))
    monkeypatch.setattr(cache, "_home", lambda: tmp_path / "top")
    monkeypatch.setattr(cache, "_warn", lambda line: print(line))
    (tmp_path / "top").mkdir(mode=0o700)
    (tmp_path / "top" / ".cache").write_text("so that this is no folder")
    return tmp_path / "top"


def test_the_folder_is_made_for_the_user_alone(top: Path) -> None:
    before = os.umask(0)
    try:
        folder = own_cache_folder()
    finally:
        os.umask(before)
    assert folder == top / "ttcodegen"
    assert folder.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("mode", [0o777, 0o1777, 0o720, 0o702])
def test_a_folder_that_others_can_write_is_not_used(
    top: Path, mode: int, capsys: pytest.CaptureFixture[str]
) -> None:
    (top / "ttcodegen").mkdir()
    (top / "ttcodegen").chmod(mode)
    assert own_cache_folder() is None
    message = f"the cache folder '{top / 'ttcodegen'}' is not used: other users can write to it\n"
    assert capsys.readouterr().out == f"ttcodegen: {message}"


def test_a_folder_that_others_can_replace_is_not_used(
    top: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (top / "ttcodegen").mkdir(mode=0o700)
    top.chmod(0o777)
    assert own_cache_folder() is None
    assert f"other users can write to '{top}'" in capsys.readouterr().out
    top.chmod(0o1777)  # as /tmp
    assert own_cache_folder() == top / "ttcodegen"


def test_a_link_is_not_used(top: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    (top / "ttcodegen").symlink_to(tmp_path / "elsewhere")
    assert own_cache_folder() is None
    assert "is not used: it is a link" in capsys.readouterr().out


@as_root
@pytest.mark.parametrize("owned", ["ttcodegen", "."])
def test_a_folder_of_another_user_is_not_used(
    top: Path, owned: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (top / "ttcodegen").mkdir(mode=0o700)
    os.chown(top / owned, OTHER_USER, OTHER_USER)
    assert own_cache_folder() is None
    assert f"belongs to user {OTHER_USER}" in capsys.readouterr().out


def test_the_home_of_the_user_database_is_used_instead(
    top: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (top / "ttcodegen").mkdir()
    (top / "ttcodegen").chmod(0o777)
    monkeypatch.setattr(cache, "_home", lambda: tmp_path / "home")
    assert own_cache_folder() == tmp_path / "home" / ".cache" / "ttcodegen"


def test_files_that_others_can_write_are_not_read(top: Path) -> None:
    path = top / "file"
    write_whole(path, b"own", private=True)
    assert kept_file(path) == b"own"
    path.chmod(0o666)
    assert kept_file(path) is None
    path.chmod(0o600)
    if os.geteuid() == 0:
        os.chown(path, OTHER_USER, OTHER_USER)
        assert kept_file(path) is None
    (top / "link").symlink_to(path)
    with pytest.raises(OSError, match="link"):
        kept_file(top / "link")
    os.mkfifo(top / "pipe")
    assert kept_file(top / "pipe") is None


def test_a_planted_text_does_not_become_part_of_a_project(top: Path) -> None:
    texts = FormattedTexts(sys.executable, "style")
    key = texts.key("a.cpp", "int a;")
    texts.keep(key, "int planted;")
    assert texts.find(key) == "int planted;"
    (top / "ttcodegen" / "formatted" / key).chmod(0o666)
    assert texts.find(key) is None


def test_no_code_is_loaded_from_the_cache(tmp_path: Path) -> None:
    """Neither bytecode of templates nor of generated methods is kept there."""
    environment = {**os.environ, "TTCODEGEN_CACHE": str(tmp_path)}
    source = tmp_path / "m.mlir"
    source.write_text("func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {return %x:tensor<4xf32>}")
    for command in (["--version"], [str(source), "-o", str(tmp_path / "out"), "-q"]):
        program = [sys.executable, "-m", "ttcodegen.cli.ttcodegen", *command]
        subprocess.run(program, env=environment, check=True, capture_output=True)
    kept = {path.name for path in tmp_path.joinpath("ttcodegen").iterdir()}
    assert kept <= {"formatted"}
