"""The command line of `ttcodegen-rt`, its files and messages."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ttcodegen import __version__
from ttcodegen.cli.rt import main
from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.rt import API, Artifacts, Logger
from ttcodegen.rt.commands import arguments
from ttcodegen.runtime import program_inputs
from ttcodegen.systems.description import ARCHITECTURES

# The command line


@pytest.mark.parametrize("command", list(arguments.COMMANDS))
def test_help_tells_the_options(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([command, "--help"]) == 0
    text = capsys.readouterr().out
    for argument in arguments.COMMANDS[command]:
        shown = argument.name.startswith("--") and argument.refusal is None
        assert (f"{argument.name} " in text or f"{argument.name}\n" in text) == shown or (
            not argument.name.startswith("--")
        ), argument.name


def test_help_imports_neither_numpy_nor_xdsl() -> None:
    code = (
        "import sys; from ttcodegen.cli.rt import main\n"
        "main(['run', '--help'])\n"
        "sys.exit(any(name in sys.modules for name in ('xdsl', 'numpy', 'jinja2')))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True).returncode == 0


@pytest.mark.parametrize(
    "options",
    [[], ["fly"], ["run", "x.ttnn", "--loops", "0"], ["run", "x", "--init", "x"]],
)
def test_wrong_usage(options: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(options) == 2
    assert capsys.readouterr().err


def test_a_folder_without_programs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["run"]) == 1
    assert "there is no file in '.' that ends in .ttnn" in capsys.readouterr().err


@pytest.mark.parametrize(
    "option",
    [a.name for a in arguments.COMMANDS["run"] if a.refusal is not None],
)
def test_options_that_make_no_sense_are_refused_by_name(
    option: str, adding: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    known = {a.name: a for a in arguments.COMMANDS["run"]}[option]
    value = [] if known.kind == "flag" else ["1"]
    assert main(["run", str(adding), option, *value]) == 2
    assert f"{option} is not possible here: {known.refusal}" in capsys.readouterr().err


def test_tables_of_names_agree_with_what_they_name() -> None:
    assert set(arguments.INIT_KINDS) == set(program_inputs.KINDS)
    assert arguments.ARCHITECTURES == ARCHITECTURES


def test_files_that_are_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for command in ("read", "run", "perf", "check"):
        assert main([command, str(tmp_path / "no.ttnn")]) == 1
        assert "No such file" in capsys.readouterr().err
    assert main(["run", str(tmp_path)]) == 1
    assert "there is no file in" in capsys.readouterr().err
    other = tmp_path / "x.txt"
    other.touch()
    assert main(["run", str(other)]) == 1
    assert "does not end in .ttnn, .ttm, .so" in capsys.readouterr().err


# Results, messages, artifacts


def test_the_result_file_has_a_schema(adding: Path, tmp_path: Path) -> None:
    out = tmp_path / "results.json"
    assert main(["run", str(adding), "--result-file", str(out), "--quiet"]) == 0
    results = json.loads(out.read_text())
    assert list(results) == [
        "schema_version",
        "tool_version",
        "command",
        "result_code",
        "passed",
        "results",
    ]
    assert (results["schema_version"], results["tool_version"]) == (1, __version__)
    (entry,) = results["results"]
    assert (entry["file"], entry["kind"], entry["error"]) == (str(adding), "ttnn", None)
    (program,) = entry["programs"]
    assert set(program) == {
        *("program", "index", "passed", "inputs", "golden", "stopped"),
        *("seconds", "outputs", "drifting_ops", "memory"),
    }
    (output,) = program["outputs"]
    (check,) = output["checks"]
    assert check == {
        "check": "golden",
        "passed": True,
        "measure": "correlation",
        "value": pytest.approx(1),
        "max_abs_err": 0.0,
        "reason": None,
    }


def test_one_bad_file_does_not_keep_others_from_running(
    adding: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "zz.ttnn").write_bytes(b"\x08\0\0\0TTNN" + bytes(20))
    code, results = API.Run(args={"binary": tmp_path})()
    assert code == 1
    assert [result["passed"] for result in results["results"]] == [True, False]
    assert "is damaged" in results["results"][1]["error"]
    captured = capsys.readouterr()
    assert "adding.ttnn: main: passed" in captured.out
    assert "zz.ttnn: error: the .ttnn file is damaged" in captured.err


def test_messages_go_to_a_log_file(
    adding: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "rt.log"
    assert main(["run", str(adding), "--log-file", str(log)]) == 0
    assert capsys.readouterr() == ("", "")
    assert "main: passed" in log.read_text()


def test_how_much_is_logged(
    adding: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["run", str(adding), "--quiet"]) == 0
    assert capsys.readouterr() == ("", "")
    monkeypatch.setenv("TTCODEGEN_RT_LOG_LEVEL", "error")
    assert main(["run", str(adding)]) == 0
    assert capsys.readouterr() == ("", "")
    monkeypatch.setenv("TTCODEGEN_RT_LOG_LEVEL", "loud")
    assert main(["run", str(adding)]) == 1
    assert "'loud' is none of critical, error, warning, info, debug" in capsys.readouterr().err


def test_artifacts_are_kept_and_cleaned(adding: Path, tmp_path: Path) -> None:
    folder = tmp_path / "artifacts"
    options = ["run", str(adding), "--save-artifacts", "--artifact-dir", str(folder), "--quiet"]
    assert main(options) == 0
    program = folder / "run" / "adding" / "program_0"
    a, b, total = (np.load(program / n) for n in ("input_0.npy", "input_1.npy", "output_0.npy"))
    assert np.array_equal(a + b, total)
    assert json.loads((folder / "run_results.json").read_text())["passed"]
    (folder / "old").touch()
    assert main([*options, "--clean-artifacts"]) == 0
    assert not (folder / "old").exists()


@pytest.mark.parametrize("inner", ["", "run"])
def test_artifacts_are_not_written_through_links(
    adding: Path,
    tmp_path: Path,
    inner: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(tmp_path)
    link = Path("ttcodegen-artifacts", inner)
    link.parent.mkdir(exist_ok=True)
    link.symlink_to(elsewhere)
    options = ["run", str(adding), "--save-artifacts", "--quiet"]
    assert main(options) == 1
    assert "is a link: nothing is written or removed through it" in capsys.readouterr().err
    assert not any(elsewhere.iterdir())
    if not inner:
        assert main([*options, "--clean-artifacts"]) == 1
        assert not any(elsewhere.iterdir())
        # A link that the user names leads where it is to lead.
        assert main([*options, "--artifact-dir", "ttcodegen-artifacts"]) == 0
        assert any(elsewhere.iterdir())


def test_folders_of_others_are_not_cleaned(
    adding: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["run", str(adding), "--clean-artifacts", "--artifact-dir", str(tmp_path)]
    assert main(options) == 1
    assert "was not made by ttcodegen-rt" in capsys.readouterr().err
    assert adding.exists()


def test_progress_is_shown_on_a_terminal_only(
    adding: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shutil.copy(adding, tmp_path / "again.ttnn")
    assert main(["run", str(tmp_path)]) == 0
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(type(sys.stderr), "isatty", lambda self: True)
    assert main(["run", str(tmp_path)]) == 0
    shown = capsys.readouterr().err
    assert "[1/2] " in shown
    assert shown.endswith("\r\x1b[K")
    assert main(["run", str(adding), "--loops", "3"]) == 0
    assert f"[1/1] {adding}, run 3 of 3" in capsys.readouterr().err
    assert main(["run", str(adding)]) == 0
    assert capsys.readouterr().err == ""


def test_python_gives_loggers_and_artifacts(adding: Path, tmp_path: Path) -> None:
    logger = Logger(tmp_path / "some.log")
    artifacts = Artifacts(logger=logger, artifacts_folder_path=tmp_path / "folder")
    args = {"binary": str(adding), "--clean-artifacts": True, "--save-artifacts": True}
    run = API.Run(
        args={**args, "--loops": 10, "--init": "randn"}, logger=logger, artifacts=artifacts
    )
    code, results = run()
    assert code == 0
    assert len(results["results"][0]["programs"][0]["seconds"]) == 10
    assert (tmp_path / "folder" / "run_results.json").is_file()
    assert "passed" in (tmp_path / "some.log").read_text()


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ({"binary": "x.ttnn", "--lops": 1}, "'run' has no argument '--lops'"),
        ({"binary": "x.ttnn", "--loops": "many"}, "--loops should be an integer"),
        ({"binary": "x.ttnn", "--loops": True}, "--loops should be an integer"),
        ({"binary": "x.ttnn", "--pcc": "high"}, "--pcc should be a number"),
        ({"binary": "x.ttnn", "--identity": 1}, "--identity should be True or False"),
        ({"binary": 1}, "binary should be text"),
        ({"binary": "x.ttnn", "--debugger": True}, "--debugger needs a terminal"),
    ],
)
def test_arguments_that_are_not_possible(
    args: dict[str, Any], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(type(sys.stdin), "isatty", lambda self: False, raising=False)
    with pytest.raises(CompileError, match=message):
        API.Run(args=args)
