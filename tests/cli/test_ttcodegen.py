"""The command line: what it writes, what it says, and what it ends with."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.project.conftest import SOURCE
from ttcodegen import __version__
from ttcodegen.cli.ttcodegen import main
from ttcodegen.project import checking

RELU = """
func.func @forward(%x: tensor<32x32xf32>) -> tensor<32x32xf32> {
  %0 = "ttir.relu"(%x) : (tensor<32x32xf32>) -> tensor<32x32xf32>
  return %0 : tensor<32x32xf32>
}
"""


@pytest.fixture
def relu(tmp_path: Path) -> Path:
    """A file with a module."""
    path = tmp_path / "relu.mlir"
    path.write_text(RELU)
    return path


def test_a_project_is_written(relu: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = relu.parent / "out"
    assert main([str(relu), "-o", str(out)]) == 0
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("ttcodegen: wrote ")
    assert {p.name for p in out.iterdir()} == {
        *("CMakeLists.txt", "CMakePresets.json", "README.md", ".clang-format"),
        *("src", "include", "support", "data", "model.ttnn", "manifest.json", ".ttcodegen"),
    }
    assert {p.name for p in (out / "src").iterdir()} == {
        *("relu.hpp", "relu.cpp", "main.cpp", "capi.cpp", "entry_points.hpp", "entry_points.cpp"),
    }


@pytest.mark.parametrize(
    ("stem", "options", "expected"),
    [
        ("models__blocks__llama_3_2_1b_decode", [], "llama_3_2_1b_decode"),
        ("a_model_of_many_words_that_nobody_wants", [], "a_model_of_many_words_that"),
        ("x" * 40, [], "x" * 30),
        ("relu", ["--name", "llama_decode"], "llama_decode"),
        ("relu", ["--name", "a_name_that_was_chosen_is_kept_as_it_is"],
            "a_name_that_was_chosen_is_kept_as_it_is"),
    ],
)  # fmt: skip
def test_the_name_of_a_project(relu: Path, stem: str, options: list[str], expected: str) -> None:
    source = relu.rename(relu.parent / f"{stem}.mlir")
    out = relu.parent / "out"
    assert main([str(source), "-o", str(out), "-q", "--no-format", *options]) == 0
    assert json.loads((out / "manifest.json").read_text())["module"] == expected
    assert f"namespace {expected} {{" in (out / "src" / f"{expected}.cpp").read_text()
    # The project keeps its name, and no other one takes its place.
    assert main([str(source), "-o", str(out), "-q"]) == 0
    assert (out / "src" / f"{expected}.cpp").is_file()
    assert main([str(source), "-o", str(out), "-q", "--name", "another"]) == 1


def test_the_same_input_gives_the_same_bytes(relu: Path) -> None:
    outs = [relu.parent / "a", relu.parent / "b"]
    for out in outs:
        assert main([str(relu), "-o", str(out)]) == 0
    files = [{p.relative_to(o): p.read_bytes() for p in o.rglob("*") if p.is_file()} for o in outs]
    assert files[0] == files[1]


def test_standard_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stdin = io.TextIOWrapper(io.BytesIO(RELU.encode()))
    monkeypatch.setattr(sys, "stdin", stdin)
    assert main(["-", "-o", str(tmp_path / "out")]) == 0
    assert (tmp_path / "out" / "src" / "model.cpp").is_file()


def test_without_formatting(relu: Path) -> None:
    out = relu.parent / "out"
    assert main([str(relu), "-o", str(out), "--no-format"]) == 0
    assert (out / "src" / "relu.cpp").is_file()


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["x.mlir"],
        ["-o", "out"],
        ["x.mlir", "y.mlir", "-o", "out"],
        ["x.mlir", "-o", "out", "--target", "cuda"],
        ["x.mlir", "-o", "out", "--kind", "dll"],
        ["x.mlir", "-o", "out", "--kind", "sources", "--check"],
        ["x.mlir", "-o", "out", "--arch", "grayskull"],
        ["x.mlir", "-o", "out", "--tt-metal", "0.1"],
        ["x.mlir", "-o", "out", "--seed", "x"],
        ["x.mlir", "-o", "out", "--nothing"],
        ["x.mlir", "-o", "out", "--forc"],
    ],
)
def test_wrong_usage(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    assert capsys.readouterr().err.startswith("ttcodegen: error: ")


def test_version_and_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.startswith(f"ttcodegen {__version__}")
    assert main(["--help"]) == 0
    assert "exit status: 0 done" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "error"),
        (b"func.func @f(", "error"),
        (b"\xff\xfe\0", "error"),
        (RELU.replace("ttir.relu", "ttir.nothing").encode(), "ttir.nothing"),
        (RELU.replace(") -> tensor<32x32xf32>\n", ") -> tensor<32x3xf32>\n").encode(), "error"),
    ],
)
def test_wrong_input(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: bytes, message: str
) -> None:
    path = tmp_path / "bad.mlir"
    path.write_bytes(content)
    assert main([str(path), "-o", str(tmp_path / "out"), "--check"]) == 1
    error = capsys.readouterr().err
    assert error.startswith(str(path))
    assert message in error
    assert "Traceback" not in error
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", ["missing.mlir", ".", "a\0b"])
def test_unreadable_input(tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    assert main([str(tmp_path / name), "-o", str(tmp_path / "out")]) == 1
    assert "error: cannot read" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_system_description_is_read(relu: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = [str(relu), "-o", str(relu.parent / "out"), "--system-desc", "x.ttsys"]
    assert main(arguments) == 1
    assert "cannot read 'x.ttsys'" in capsys.readouterr().err


def test_a_foreign_folder_stays(relu: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = relu.parent / "out"
    out.mkdir()
    (out / "mine").write_text("mine")
    assert main([str(relu), "-o", str(out)]) == 1
    assert "--force" in capsys.readouterr().err
    assert [p.name for p in out.iterdir()] == ["mine"]
    assert main([str(relu), "-o", str(out), "--force"]) == 0
    assert (out / "mine").read_text() == "mine"
    assert (out / "manifest.json").is_file()


def test_without_a_compiler_nothing_is_written(
    relu: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(relu.parent))
    monkeypatch.delenv("CXX", raising=False)
    for option in ("--build", "--check"):
        assert main([str(relu), "-o", str(relu.parent / "out"), option]) == 3
        assert "error: no C++ compiler was found" in capsys.readouterr().err
    assert main(["--cpu-backend-dir"]) == 3
    assert not (relu.parent / "out").exists()


def test_a_bug_leaves_what_reproduces_it(
    relu: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def broken(*_: object) -> object:
        raise RecursionError("too deep\nto say")

    monkeypatch.setattr("ttcodegen.staged_compilation.compile_module", broken)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert main([str(relu), "-o", str(tmp_path / "out"), "--check", "--seed", "3"]) == 70
    error = capsys.readouterr().err
    assert error.startswith("ttcodegen: internal error: RecursionError: too deep\n")
    assert "Traceback" not in error
    folder = next(tmp_path.glob("ttcodegen-bug-*"))
    assert str(folder) in error
    assert (folder / "input.mlir").read_text() == RELU
    assert (folder / "command.txt").read_text().endswith("out --check --seed 3\n")
    assert "RecursionError: too deep" in (folder / "traceback.txt").read_text()
    assert __version__ in (folder / "version.txt").read_text()


def test_an_interruption_is_said_in_a_line(
    relu: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> object:
        raise KeyboardInterrupt

    monkeypatch.setattr("ttcodegen.staged_compilation.compile_module", interrupted)
    assert main([str(relu), "-o", str(relu.parent / "out")]) == 130
    assert capsys.readouterr().err == "ttcodegen: interrupted\n"


def test_a_closed_pipe_is_quiet() -> None:
    code = "import sys; from ttcodegen.cli.ttcodegen import main; sys.exit(main(['--help']))"
    reader, writer = os.pipe()
    os.close(reader)
    # Unbuffered, argparse itself would meet the error, which it ignores.
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONUNBUFFERED"}
    command = [sys.executable, "-c", code]
    done = subprocess.run(
        command, stdout=writer, stderr=subprocess.PIPE, env=environment, check=False
    )
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, b"")


def test_modules_are_dumped(relu: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = relu.parent / "ir"
    arguments = ["--dump-ir", str(folder), "--time-passes"]
    assert main([str(relu), "-o", str(relu.parent / "out"), *arguments]) == 0
    assert any("convert-ttir-to-ttnn" in path.name for path in folder.iterdir())
    error = capsys.readouterr().err
    assert "write project" in error
    assert "total" in error


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    """A file with a module of several functions."""
    path = tmp_path / "tiny.mlir"
    path.write_text(SOURCE)
    return path


@pytest.mark.slow
def test_check(tiny: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tiny.parent / "out"
    assert main([str(tiny), "-o", str(out), "--check", "--seed", "4"]) == 0, capsys.readouterr().err
    report = json.loads((out / "check.json").read_text())
    assert report["passed"] is True
    assert report["seed"] == 4
    names = [(output["function"], output["name"]) for output in report["outputs"]]
    assert names[0] == ("forward", "y")
    assert len(names) == 5
    assert all(o["pcc"] >= 0.999 for o in report["outputs"])
    assert sorted(p.name for p in (out / "build").glob("*tiny*")) == ["tiny_main"]
    # Nothing that the check needed on the way is left.
    assert not list((out / "build").glob("check-*"))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("exit 3", "the program ended with status 3: it said nothing"),
        ("echo 'error: no device' >&2; exit 3", "the program ended with status 3: no device"),
        ("kill -SEGV $$", "the program ended with signal SIGSEGV"),
        ("exit 0", "the program did not write it"),
        ("sleep 60", "the program did not end within 1 s"),
    ],
)
def test_a_program_that_fails_is_a_mismatch(
    tiny: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    script: str,
    reason: str,
) -> None:
    program = tiny.parent / "program"
    program.write_text(f"#!/bin/bash\n{script}\n")
    program.chmod(0o755)
    run = checking.run_executable
    monkeypatch.setattr(
        checking, "run_executable", lambda _, runs, folder, __: run(program, runs, folder, 1.0)
    )
    out = tiny.parent / "out"
    assert main([str(tiny), "-o", str(out), "--check"]) == 4
    error = capsys.readouterr().err
    assert f"error: forward, output 'y', C++ against flatbuffer: {reason}" in error
    report = json.loads((out / "check.json").read_text())
    assert report["passed"] is False
    assert report["outputs"][0]["pcc"] == 0
    assert report["outputs"][0]["max_abs_err"] is None


@pytest.mark.slow
def test_a_build_that_fails(
    tiny: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> dict[str, str]:
        return {"src/capi.cpp": "#error no\n", "src/main.cpp": "#error no\n"}

    monkeypatch.setattr("ttcodegen.project.sources.render_sources", broken)
    out = tiny.parent / "out"
    for option in ("--check", "--build"):
        assert main([str(tiny), "-o", str(out), option]) == 3
        error = capsys.readouterr().err
        assert "error: the C++ did not build: " in error
        assert f"the log is {out}/build/ttcodegen.log" in error


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "files"),
    [("so", ["libtiny.so"]), ("exe", ["tiny_main"]), ("both", ["libtiny.so", "tiny_main"])],
)
def test_build(tiny: Path, kind: str, files: list[str]) -> None:
    out = tiny.parent / "out"
    assert main([str(tiny), "-o", str(out), "--build", "--kind", kind]) == 0
    assert sorted(p.name for p in (out / "build").glob("*tiny*")) == files


@pytest.mark.parametrize(
    ("arguments", "before", "expected"),
    [(["--check"], None, "0"), (["--check"], "1", "1"), ([], None, "None")],
)
def test_a_check_touches_memory_in_small_pages(
    tmp_path: Path, arguments: list[str], before: str | None, expected: str
) -> None:
    """Unless the user says otherwise; numpy looks when it is imported."""
    variable = "NUMPY_MADVISE_HUGEPAGE"
    program = (
        "import os, sys\n"
        "from ttcodegen.cli.ttcodegen import main\n"
        "assert 'numpy' not in sys.modules\n"
        f"main({[str(tmp_path / 'missing.mlir'), '-o', str(tmp_path / 'out'), *arguments]})\n"
        f"print(os.environ.get('{variable}'))\n"
    )
    environment = {name: value for name, value in os.environ.items() if name != variable}
    if before is not None:
        environment[variable] = before
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        env=environment,
    )
    assert done.stdout.strip() == expected
