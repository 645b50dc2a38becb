"""`ttcodegen-lit`: tests of users, what they require, and where what they write is kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from ttcodegen.cli.lit import main
from ttcodegen.cli.rt import main as rt

MATMUL = """\
// RUN: ttmlir-opt --ttir-to-ttnn-backend-pipeline="system-desc-path=%system_desc_path%" %s > %t.mlir
// RUN: FileCheck %s --input-file=%t.mlir
// RUN: ttmlir-translate --ttnn-to-flatbuffer %t.mlir > %t.ttnn
// CHECK: "ttnn.matmul"
func.func @forward(%arg0: tensor<64x128xbf16>, %arg1: tensor<128x96xbf16>) -> tensor<64x96xbf16> {
  %0 = "ttir.matmul"(%arg0, %arg1) : (tensor<64x128xbf16>, tensor<128x96xbf16>) -> tensor<64x96xbf16>
  return %0 : tensor<64x96xbf16>
}
"""  # noqa: E501


@pytest.fixture
def tests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with one test, in the working directory."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SYSTEM_DESC_PATH", raising=False)
    folder = tmp_path / "test" / "Silicon"
    folder.mkdir(parents=True)
    (folder / "matmul.mlir").write_text(MATMUL)
    return folder


def test_what_a_test_writes_is_kept_below_build(
    tests: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["-sv", "test/Silicon"]) == 0
    reported = capsys.readouterr().out
    assert "PASS" not in reported
    assert "Passed     : 1 (100.00%)" in reported
    [written] = Path("build/test/Silicon").rglob("*.ttnn")
    assert written == Path("build/test/Silicon/Output/matmul.mlir.tmp.ttnn")
    # As the book has it: the folder of what was written stands for the tests, and is run.
    assert main(["build/test/Silicon", "--show-tests"]) == 0
    assert "test/Silicon/matmul.mlir" in capsys.readouterr().out
    assert main(["build/test/Silicon/matmul.mlir"]) == 0
    assert rt(["read", "--section", "version", "build/test/Silicon"]) == 0


def test_relative_files_of_a_test_are_kept_with_the_others(tests: Path) -> None:
    (tests / "matmul.mlir").write_text("// RUN: cat %s > copied.mlir\n")
    assert main(["test"]) == 0
    assert Path("build/test/Silicon/Output/copied.mlir").is_file()
    assert sorted(p.name for p in Path.cwd().iterdir()) == ["build", "test"]


@pytest.mark.parametrize(
    ("system", "required", "runs"),
    [
        (None, "wormhole_b0", True),
        (None, "n150, functional, push", True),
        (None, "n300", False),
        (None, "blackhole", False),
        ("n300", "n300, wormhole_b0, perf", True),
        ("n300", "n150", False),
        ("p150", "blackhole, p150", True),
        ("galaxy", "galaxy", True),
    ],
)
def test_the_system_says_what_may_be_required(
    tests: Path,
    capsys: pytest.CaptureFixture[str],
    system: str | None,
    required: str,
    runs: bool,
) -> None:
    (tests / "matmul.mlir").write_text(f"// REQUIRES: {required}\n// RUN: cat %s\n")
    arguments = [] if system is None else ["--system-desc", system]
    assert main([*arguments, "test"]) == 0
    assert ("PASS: " if runs else "UNSUPPORTED: ") in capsys.readouterr().out


def test_a_file_describes_the_system_too(
    tests: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert rt(["query", "--arch", "blackhole", "--save-artifacts"]) == 0
    [description] = Path.cwd().rglob("*.ttsys")
    monkeypatch.setenv("SYSTEM_DESC_PATH", str(description))
    (tests / "matmul.mlir").write_text("// REQUIRES: blackhole, system-desc\n// RUN: cat %s\n")
    assert main(["test"]) == 0
    assert "PASS: " in capsys.readouterr().out


def test_a_failure_says_what_failed(tests: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tests / "matmul.mlir").write_text(MATMUL.replace("CHECK: ", "CHECK-NOT: "))
    assert main(["-s", "test"]) == 1
    short = capsys.readouterr().out
    assert "FAIL: ttcodegen :: test/Silicon/matmul.mlir (1 of 1)" in short
    assert "Failed     : 1" in short
    assert main(["-sv", "test"]) == 1
    assert "RUN: FileCheck" in capsys.readouterr().out
    assert main(["test", "--feature", "mine"]) == 1


def test_wrong_arguments_are_refused(tests: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["nowhere"]) == 1
    (tests / "matmul.mlir").write_text("func.func @f() { return }")
    assert main(["test"]) == 1
    assert main(["--system-desc", "n15", "test/Silicon/matmul.mlir"]) == 1
    reported = capsys.readouterr().err
    assert "'nowhere' is not there" in reported
    assert "'test' has no tests" in reported
    assert "there is no system 'n15'" in reported
