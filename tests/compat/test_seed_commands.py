"""The commands that the reference system's documents print, run word for word: with programs of
their names, and files at the places that they name."""

from __future__ import annotations

import os
import re
import shlex
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.compat.test_seeds import SEEDS, texts
from ttcodegen.cli.rt import main as rt
from ttcodegen.cli.ttcodegen import main as compile_
from ttcodegen.rt import API
from ttcodegen.rt.commands.arguments import COMMANDS

pytestmark = pytest.mark.skipif(SEEDS is None, reason="TTCODEGEN_SEEDS names no folder")

MODEL = """
#any_device = #tt.operand_constraint<dram|l1|scalar|tile|any_device|any_device_tile>
module attributes {} {
  func.func @forward(%arg0: tensor<64x128xf32>, %arg1: tensor<64x128xf32>) -> tensor<64x128xf32> {
    %0 = tensor.empty() : tensor<64x128xf32>
    %1 = "ttir.multiply"(%arg0, %arg1, %0) <{operandSegmentSizes = array<i32: 2, 1>, operand_constraints = [#any_device, #any_device, #any_device]}> : (tensor<64x128xf32>, tensor<64x128xf32>, tensor<64x128xf32>) -> tensor<64x128xf32>
    return %1 : tensor<64x128xf32>
  }
}
"""  # noqa: E501
TOSA = """
func.func @test_mul(%arg0: tensor<13x21x3xf32>, %arg1: tensor<13x21x3xf32>) -> tensor<13x21x3xf32> {
  %0 = tosa.mul %arg0, %arg1 {shift = 0 : i8} : (tensor<13x21x3xf32>, tensor<13x21x3xf32>) -> tensor<13x21x3xf32>
  return %0 : tensor<13x21x3xf32>
}
"""  # noqa: E501
NOT_ITSELF = 4
"""Exit status of `--identity` here: no output of the matmul equals an input."""


def _lines() -> Iterator[str]:
    """The lines of all documents; one that ends in a backslash goes on in the next."""
    for _, text in texts():
        yield from re.sub(r"\\\n\s*", " ", text).splitlines()


def _ttrt_lines() -> list[list[str]]:
    commands = "|".join(COMMANDS)
    found = {line.strip() for line in _lines() if re.match(rf"ttrt ({commands})(?= |$)", line)}
    return [shlex.split(line)[1:] for line in sorted(found)]


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The flatbuffer of the model."""
    folder = tmp_path_factory.mktemp("model")
    folder.joinpath("model.mlir").write_text(MODEL, "utf-8")
    assert compile_([str(folder / "model.mlir"), "-o", str(folder / "out"), "-q"]) == 0
    return (folder / "out" / "model.ttnn").read_bytes()


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, compiled: bytes) -> Path:
    """A folder with all files that the commands name, and the working directory."""
    for name in (
        "out.ttnn",
        "path/to/out.ttnn",
        "path/to/test.ttnn",
        "path/to/dir/of/flatbuffers/a.ttnn",
        "dir/of/flatbuffers/a.ttnn",
        "build/test/ttmlir/Silicon/a.ttnn",
    ):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(compiled)
    for name in ("system_desc.ttsys", "path/to/system_desc.ttsys", "dir/of/system_desc/a.ttsys"):
        tmp_path.joinpath(name).parent.mkdir(parents=True, exist_ok=True)
        API.Query(args={"--output": str(tmp_path / name), "--quiet": True})()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_commands_of_ttrt(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = _ttrt_lines()
    assert len(lines) > 60
    failed: dict[str, tuple[int, str]] = {}
    for line in lines:
        if "--emitc" in line or "--debugger" in line:
            # These need a compiler and a terminal; tests of their own run them.
            continue
        words = [re.sub("^/(?=path|dir|opt)", f"{place}/", word) for word in line]
        status = rt(words)
        expected = NOT_ITSELF if "--identity" in line else 0
        if status != expected and not (expected and status == 0):
            failed[" ".join(line)] = (status, capsys.readouterr().err[-300:])
    assert not failed
    assert list(place.glob("path/to/some/dir/**/*.ttsys"))
    assert list(place.glob("path/to/some/dir/**/ops_perf_results.csv"))


def _tool_lines() -> list[str]:
    """The commands of the compiler's tools; lines that go on in a pipe are joined."""
    text = re.sub(r"\n\s*([|>] )", r" \1", "\n".join(_lines()))
    found = {
        line
        for line in text.splitlines()
        if re.match(r"(\./build/bin/)?ttmlir-(opt|translate) .*-", line) and "%s" not in line
    }
    return sorted(found)


@pytest.mark.slow
def test_commands_of_the_compiler(place: Path) -> None:
    """In the order in which each can have its input; what they name is there."""
    scripts = {"ttmlir-opt": "opt", "ttmlir-translate": "translate"}
    for folder in (place / "build" / "bin", place / "bin"):
        folder.mkdir(parents=True)
        for name, tool in scripts.items():
            script = folder / name
            script.write_text(f'#!/bin/sh\nexec {sys.executable} -m ttcodegen.cli.{tool} "$@"\n')
            script.chmod(script.stat().st_mode | stat.S_IXUSR)
    lines = _tool_lines()
    assert len(lines) >= 12
    for line in lines:
        for name in re.findall(r"(test/ttmlir/\S+\.mlir)", line):
            place.joinpath(name).parent.mkdir(parents=True, exist_ok=True)
            place.joinpath(name).write_text(MODEL, "utf-8")
    place.joinpath("tosa.mlir").write_text(TOSA, "utf-8")
    place.joinpath("tools/ttnn-standalone").mkdir(parents=True)
    environment = {**os.environ, "PATH": f"{place / 'bin'}:{os.environ['PATH']}"}
    failed: dict[str, str] = {}
    waiting = lines
    while waiting:
        failed = {}
        for line in waiting:
            command = line.replace("/path/to", f"{place}/path/to")
            command = command.replace("<PATH_TO_SYSTEM_DESC>", "system_desc.ttsys")
            done = subprocess.run(
                ["bash", "-o", "pipefail", "-c", command],
                env=environment,
                capture_output=True,
                text=True,
            )
            if done.returncode:
                failed[line] = done.stderr[-400:]
        if len(failed) == len(waiting):
            break
        waiting = list(failed)
    assert not failed
    assert "ttnn::" in place.joinpath("tools/ttnn-standalone/ttnn-standalone.cpp").read_text()
    assert rt(["run", "out.ttnn", "--quiet"]) == 0
