"""`ttcodegen-rt run OUT`: a project is built as it is, run and compared; nothing is rewritten."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ttcodegen.cli.rt import main
from ttcodegen.cli.ttcodegen import main as compile_main
from ttcodegen.project.cpu_backend import CPUBackend

pytestmark = pytest.mark.slow

SOURCE = """
func.func @mix(%x: tensor<4x32xf32> {ttir.name = "x"}, %y: tensor<4x32xf32> {ttir.name = "y"})
    -> (tensor<4x32xf32> {ttir.name = "mixed"}) {
  %0 = "ttir.subtract"(%x, %y) : (tensor<4x32xf32>, tensor<4x32xf32>) -> tensor<4x32xf32>
  return %0 : tensor<4x32xf32>
}
"""


def contents(out: Path) -> dict[str, bytes]:
    """All files of a project but what a build makes."""
    return {
        str(path.relative_to(out)): path.read_bytes()
        for path in sorted(out.rglob("*"))
        if path.is_file() and path.relative_to(out).parts[0] != "build"
    }


def test_an_edited_project_is_run_and_stays_as_it_is(
    cpu_backend: CPUBackend, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, out, result = tmp_path / "mix.mlir", tmp_path / "out", tmp_path / "result.json"
    source.write_text(SOURCE)
    assert compile_main([str(source), "-o", str(out), "-q"]) == 0
    written = contents(out)
    command = ["run", str(out), "--result-file", str(result)]

    assert main(command) == 0, capsys.readouterr().err
    assert contents(out) == written
    assert json.loads(result.read_text())["passed"] is True

    # An edit that computes something else is built, and found.
    code = out / "src" / "mix.cpp"
    edited = code.read_text().replace("ttnn::subtract(", "ttnn::add(")
    assert edited != code.read_text()
    code.write_text(edited)
    expected = contents(out)
    assert main(command) == 4
    assert contents(out) == expected
    assert json.loads(result.read_text())["passed"] is False

    # One that computes the same passes, and stays.
    code.write_text(written["src/mix.cpp"].decode() + "\n// tuned by hand\n")
    assert main(command) == 0
    assert code.read_text().endswith("\n// tuned by hand\n")

    # One that does not build ends as a failed build does.
    code.write_text("nothing that compiles\n")
    assert main(command) == 3
    assert code.read_text() == "nothing that compiles\n"
