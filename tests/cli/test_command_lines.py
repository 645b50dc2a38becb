"""Behaviour of all command lines: hints at spellings, messages, completion."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from ttcodegen import __version__, version
from ttcodegen.cli import explorer, lang, opt, rt, translate, ttcodegen
from ttcodegen.cli.completion import SHELLS, completion_script
from ttcodegen.cli.ttcodegen import argument_parser as ttcodegen_parser
from ttcodegen.foundation import messages
from ttcodegen.foundation.messages import Level, Progress

Main = Callable[[Sequence[str]], int]

RELU = """
func.func @f(%a: tensor<32x32xf32>) -> tensor<32x32xf32> {
  %0 = "ttir.OP"(%a) : (tensor<32x32xf32>) -> tensor<32x32xf32>
  return %0 : tensor<32x32xf32>
}
"""


@pytest.mark.parametrize(
    ("main", "arguments", "meant"),
    [
        (ttcodegen.main, ["x.mlir", "-o", "out", "--chek"], "--check"),
        (ttcodegen.main, ["x.mlir", "-o", "out", "--arch", "wormhole"], "wormhole_b0"),
        (ttcodegen.main, ["x.mlir", "-o", "out", "--arch", "Blackhole"], "blackhole"),
        (ttcodegen.main, ["x.mlir", "-o", "out", "--target=ttmetall"], "ttmetal"),
        (ttcodegen.main, ["x.mlir", "-o", "out", "--log-level", "warn"], "WARNING"),
        (translate.main, ["--ttnn-to-flatbufer", "x.mlir"], "--ttnn-to-flatbuffer"),
        (translate.main, ["--mlir-to-cpp", "--log-levl=INFO"], "--log-level"),
        (rt.main, ["runn", "x.ttnn"], "run"),
        (rt.main, ["run", "x.ttnn", "--loop", "2"], "--loops"),
        (rt.main, ["read", "x.ttnn", "--section", "output"], "outputs"),
        (rt.main, ["query", "--log-level", "debugg"], "DEBUG"),
        (opt.main, ["--ttir-fusng"], "--ttir-fusing"),
        (opt.main, ["--log-level", "infos"], "INFO"),
        (explorer.main, ["--log-level", "warn"], "WARNING"),
    ],
)
def test_what_was_meant(
    main: Main, arguments: list[str], meant: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    assert f"did you mean {meant}?" in capsys.readouterr().err


@pytest.mark.parametrize(("wrong", "meant"), [("reluu", "relu"), ("soft_max", "softmax")])
def test_which_op_was_meant(
    wrong: str, meant: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "f.mlir"
    file.write_text(RELU.replace("OP", wrong))
    assert ttcodegen.main([str(file), "-o", str(tmp_path / "out")]) == 1
    reported = capsys.readouterr().err
    assert f"unknown operation 'ttir.{wrong}'" in reported
    assert f"note: did you mean 'ttir.{meant}'?" in reported


def test_nothing_is_suggested_for_what_is_like_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert ttcodegen.main(["x.mlir", "-o", "out", "--qwertz"]) == 2
    reported = capsys.readouterr().err
    assert "there is no option --qwertz" in reported
    assert "did you mean" not in reported


@pytest.mark.parametrize("main", [ttcodegen.main, translate.main, rt.main, opt.main])
def test_help_has_examples(main: Main, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    shown = capsys.readouterr().out
    assert "examples:\n  ttcodegen" in shown


@pytest.mark.parametrize("main", [ttcodegen.main, translate.main, rt.main, opt.main])
def test_version_names_the_commit(
    main: Main, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for module in ("ttcodegen.cli.arguments", "ttcodegen.version"):
        monkeypatch.setattr(f"{module}.commit", lambda: "0123456789ab+changes")
    assert main(["--version"]) == 0
    assert f" {__version__} (commit 0123456789ab+changes)\n" in capsys.readouterr().out
    assert version.package_version() == f"{__version__}+g0123456789ab.changes"


def test_version_without_a_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "ttcodegen"
    package.mkdir()
    monkeypatch.setattr(version, "__file__", str(package / "version.py"))
    assert version.commit() is None
    assert version.package_version() == __version__
    (package / version.COMMIT_FILE).write_text("0123456789ab\n")
    assert version.commit() == "0123456789ab"


def test_levels(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    missing = [str(tmp_path / "x.mlir"), "-o", str(tmp_path / "out")]
    for options, reported in (([], True), (["-q"], True), (["--log-level", "critical"], False)):
        assert ttcodegen.main([*missing, *options]) == 1
        assert ("cannot read" in capsys.readouterr().err) == reported


def test_progress_in_lines(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    times = iter([0.0, 1.0, 2.0, 11.0, 11.0])
    monkeypatch.setattr(messages, "monotonic", lambda: next(times))
    monkeypatch.setattr(messages, "_level", Level.INFO)
    progress = Progress("building x")
    for done in range(1, 5):
        progress.update(done, 4)
    progress.end()
    assert capsys.readouterr().err == "building x: 1 of 4\nbuilding x: 4 of 4\n"


def test_progress_on_a_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setattr(messages, "_level", Level.INFO)
    progress = Progress("building x")
    progress.update(1, 2)
    progress.update(2, 2)
    progress.end()
    wipe = "\r\x1b[K"
    expected = f"{wipe}building x: 1 of 2{wipe}building x: 2 of 2{wipe}"
    assert capsys.readouterr().err == expected


def test_quiet_tells_no_progress(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(messages, "_level", Level.WARNING)
    progress = Progress("building x")
    progress.update(1, 2)
    progress.end()
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("shell", SHELLS)
def test_completion_knows_all_programs(shell: str) -> None:
    script = completion_script(shell, ttcodegen_parser())
    for text in ("check", "blackhole", "loops", "ttir-fusing", "mlir-to-cpp", "CRITICAL"):
        assert text in script
    if shutil.which(shell) is not None:
        done = subprocess.run([shell, "-n"], input=script, text=True, capture_output=True)
        assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("ttcodegen x.mlir --che", "--check"),
        ("ttcodegen x.mlir --arch b", "blackhole"),
        ("ttcodegen-rt pe", "perf"),
        ("ttcodegen-rt run --loo", "--loops"),
        ("ttcodegen-opt --ttir-fus", "--ttir-fusing"),
    ],
)
def test_bash_completes(line: str, expected: str) -> None:
    words = line.split()
    program = words[0].replace("-", "_")
    script = completion_script("bash", ttcodegen_parser()) + (
        f"COMP_WORDS=({line}); COMP_CWORD={len(words) - 1}; _{program}; "
        'printf "%s\\n" "${COMPREPLY[@]}"'
    )
    done = subprocess.run(["bash", "-c", script], text=True, capture_output=True, check=True)
    assert expected in done.stdout.split()


def test_older_pythons_get_one_sentence() -> None:
    code = "import sys; sys.version_info = (3, 10, 12); import ttcodegen"
    done = subprocess.run([sys.executable, "-c", code], text=True, capture_output=True)
    expected = "ttcodegen needs Python 3.11, 3.12 or 3.13; this is Python 3.10\n"
    assert (done.returncode, done.stderr) == (1, expected)


def test_arguments_move_no_cursor(capsys: pytest.CaptureFixture[str]) -> None:
    assert opt.main(["--\x1b[31mx", "a.mlir"]) == 2
    assert "found --\\x1b[31mx" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("main", "arguments", "said"),
    [
        (ttcodegen.main, ["x.mlir", "-o", "out", "--name", ""], "--name is empty"),
        (ttcodegen.main, ["x.mlir", "-o", "out", "--seed", "-1", "--check"], "--seed is a number"),
        (ttcodegen.main, ["tune", "out", "--measured", "nosuch.tsv"], "no table 'nosuch.tsv'"),
        (lang.main, ["x.py", "--num-devices", "0"], "--num-devices is a number of 1 or more"),
        (lang.main, ["x.py", "--force"], "--force needs -o"),
        (rt.main, ["run", "x.ttnn", "-q", "-v"], "--quiet and --log-level exclude each other"),
        (rt.main, ["run", "x.ttnn", "--pcc", "2"], "--pcc is 2, the maximum is 1"),
        (rt.main, ["run", "x.ttnn", "--pcc", "nan"], "--pcc is nan, the minimum is -1"),
        (rt.main, ["run", "x.ttnn", "--rtol", "nan"], "--rtol is nan, the minimum is 0"),
        (
            rt.main,
            ["run", "x.ttnn", "--disable-golden", "--rtol", "1"],
            "--disable-golden and --rtol exclude each other",
        ),
    ],
)
def test_what_has_no_effect_is_refused(
    main: Main, arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    assert said in capsys.readouterr().err


def test_a_dump_that_cannot_be_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "f.mlir"
    file.write_text(RELU.replace("OP", "relu"))
    dump = tmp_path / "f.mlir" / "dump"
    assert ttcodegen.main([str(file), "-o", str(tmp_path / "out"), "--dump-ir", str(dump)]) == 1
    assert f"error: cannot write '{dump}'" in capsys.readouterr().err


@pytest.mark.parametrize("rows", [-1, 9])
def test_a_grid_that_the_chip_does_not_have(
    rows: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "f.mlir"
    file.write_text(RELU.replace("OP", "relu"))
    assert opt.main([f"--ttir-to-ttir-generic=rows={rows}", str(file)]) == 1
    assert f"there is no grid of {rows}x8 cores" in capsys.readouterr().err
