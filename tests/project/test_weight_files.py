"""Files of weights and inputs that are none: an error by name, never values drawn at random."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import ttcodegen
from tests.project.test_program import BIAS, WEIGHT, X
from ttcodegen import ModuleError
from ttcodegen.foundation.array_files import existing_file, load_array
from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.project.building import BuiltProject


def _link(target: str) -> Callable[[Path], object]:
    return lambda path: path.symlink_to(target)


FILES: dict[str, Callable[[Path], object]] = {
    "a pipe": os.mkfifo,
    "a folder": Path.mkdir,
    "a link to nothing": _link("/missing/file"),
    "a link to itself": lambda path: path.symlink_to(path),
    "a device": _link("/dev/zero"),
}
FOLDERS: dict[str, Callable[[Path], object]] = {
    "a pipe": os.mkfifo,
    "a file": Path.touch,
    "a link to nothing": _link("/missing/folder"),
    "a link to a file": _link(__file__),
}


@pytest.mark.parametrize("kind", FILES)
def test_a_file_that_is_none_is_named(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "w.npy"
    FILES[kind](path)
    with pytest.raises(CompileError, match=r"w\.npy'(: Too many| is no regular file| is a link)"):
        existing_file(path)


@pytest.mark.parametrize("kind", FOLDERS)
def test_a_folder_that_is_none_is_named(tmp_path: Path, kind: str) -> None:
    FOLDERS[kind](tmp_path / "data")
    for path in ("w.npy", "layers/0/w.npy"):
        with pytest.raises(CompileError, match=r"data' is (no folder|a link to no folder)"):
            existing_file(tmp_path / "data" / path)


def test_what_is_not_there_is_no_mistake(tmp_path: Path) -> None:
    assert existing_file(tmp_path / "data" / "w.npy") is None
    (tmp_path / "real").mkdir()
    (tmp_path / "data").symlink_to("real")
    assert existing_file(tmp_path / "data" / "w.npy") is None
    np.save(tmp_path / "real" / "w.npy", WEIGHT)
    assert existing_file(tmp_path / "data" / "w.npy") == tmp_path / "data" / "w.npy"


def test_masks_are_not_forgotten(tmp_path: Path) -> None:
    np.ma.masked_array(WEIGHT, mask=WEIGHT > 0).dump(tmp_path / "w.npy")
    with pytest.raises(CompileError, match=r"w\.npy' is no \.npy file"):
        load_array(tmp_path / "w.npy")


@pytest.mark.slow
def test_programs_name_what_is_no_file(built: tuple[Path, BuiltProject], tmp_path: Path) -> None:
    assert built[1].executable is not None
    program = tmp_path / "build" / "tiny_main"
    program.parent.mkdir()
    shutil.copy(built[1].executable, program)
    data = tmp_path / "data"
    constants = sorted((built[0] / "data").glob("*.npy"))

    def said() -> str:
        ran = subprocess.run([program], capture_output=True, text=True, timeout=60, check=False)
        assert ran.returncode == 3, ran.stdout
        return ran.stderr

    for make in FILES.values():
        data.mkdir()
        for constant in constants:
            shutil.copy(constant, data)
        make(data / "forward.layer_weight.npy")
        assert "forward.layer_weight.npy: " in said()
        shutil.rmtree(data)
    for make in FOLDERS.values():
        make(data)
        assert "data: not a folder" in (text := said()) or "data: a link to no folder" in text
        data.unlink()


@pytest.mark.slow
def test_masked_arrays_are_refused(built: tuple[Path, BuiltProject]) -> None:
    masked = np.ma.masked_array(WEIGHT, mask=WEIGHT > 0)
    with ttcodegen.load(built[0]) as model:
        for values in (masked, list(masked)):
            with pytest.raises(ModuleError, match=r"'layer\.weight': elements .* are masked"):
                model.set_weight("layer.weight", values)
        model.set_weight("layer.weight", np.ma.masked_array(WEIGHT))
        model.set_weight("layer.bias", BIAS)
        with pytest.raises(ModuleError, match="'x': elements of the array are masked"):
            model.forward(np.ma.masked_array(X, mask=X > 0))
