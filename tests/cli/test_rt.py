"""The command line of `ttcodegen-rt`, and its sub-commands called from Python."""

from __future__ import annotations

import csv
import json
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.flatbuffer.programs import adding_program, binary
from ttcodegen import __version__
from ttcodegen.cli.rt import main
from ttcodegen.cli.ttcodegen import main as compile_main
from ttcodegen.diagnostics import CompileError
from ttcodegen.flatbuffer import program as file
from ttcodegen.flatbuffer.encoding import encode
from ttcodegen.flatbuffer.schema import load_schema
from ttcodegen.flatbuffer.system import read_ttsys_file, write_ttsys
from ttcodegen.rt import API, Artifacts, Logger
from ttcodegen.rt.commands import arguments
from ttcodegen.rt.commands.perf import COLUMNS
from ttcodegen.rt.profiler_table import COLUMNS as PROFILER_COLUMNS
from ttcodegen.runtime import initialization
from ttcodegen.systems.description import ARCHITECTURES, default_system

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
SCHEMA = load_schema("ttnn.fbs")


@pytest.fixture
def adding(tmp_path: Path) -> Path:
    """A flatbuffer that adds."""
    path = tmp_path / "adding.ttnn"
    path.write_bytes(encode(SCHEMA, binary(adding_program())))
    return path


def written(folder: Path, name: str, **changes: Any) -> Path:
    """The adding program with changes, as a file."""
    path = folder / f"{name}.ttnn"
    path.write_bytes(encode(SCHEMA, binary(replace(adding_program(), **changes))))
    return path


def result_of(command: str, args: dict[str, Any]) -> tuple[int, dict[str, Any]]:
    """The code and the only result of a sub-command."""
    code, results = getattr(API, command)(args={**args, "--quiet": True})()
    (result,) = results["results"]
    return code, result


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
    [[], ["fly"], ["run"], ["run", "x.ttnn", "--loops", "0"], ["run", "x", "--init", "x"]],
)
def test_wrong_usage(options: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(options) == 2
    assert capsys.readouterr().err


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
    assert set(arguments.INIT_KINDS) == set(initialization.KINDS)
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


# read


def test_read_shows_each_section(adding: Path, capsys: pytest.CaptureFixture[str]) -> None:
    expected = {
        "version": '"tt_metal": "0.70.1"',
        "system_desc": '"arch": "wormhole_b0"',
        "mlir": '"ttnn.add"(%a, %b)',
        "cpp": "ttnn::add(",
        "inputs": '"name": "a"',
        "outputs": '"name": "sum"',
    }
    assert set(expected) == set(arguments.SECTIONS) - {"all"}
    for section, text in expected.items():
        assert main(["read", "--section", section, str(adding)]) == 0
        assert text in capsys.readouterr().out, section
    assert main(["read", str(adding)]) == 0
    everything = capsys.readouterr().out
    assert all(text in everything for text in expected.values())
    assert "# system_desc\n" in everything


def test_read_gives_sections_as_data(adding: Path) -> None:
    code, result = result_of("Read", {"binary": adding, "--section": "inputs"})
    assert code == 0
    rows = result["sections"]["inputs"]["main"]
    assert [(row["name"], row["kind"], row["shape"]) for row in rows] == [
        ("a", "input", [2, 32]),
        ("b", "parameter", [2, 32]),
    ]


def test_read_system_descriptions(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "x.ttsys"
    path.write_bytes(write_ttsys(default_system("blackhole")))
    assert main(["read", str(path)]) == 0
    assert '"arch": "blackhole"' in capsys.readouterr().out
    assert main(["read", "--section", "mlir", str(path)]) == 1
    assert "a .ttsys file has no section 'mlir'" in capsys.readouterr().err


def test_other_versions_are_refused_with_what_to_do(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "old.ttnn"
    path.write_bytes(encode(SCHEMA, replace(binary(adding_program()), minor=file.MINOR + 1)))
    for command in ("read", "run", "perf", "check"):
        assert main([command, str(path)]) == 1
        message = capsys.readouterr().err
        assert f"version {file.MAJOR}.{file.MINOR + 1}, which is newer" in message
        assert "make it again with this version of ttcodegen" in message


# run


def test_values_depend_on_seed_and_kind(adding: Path, tmp_path: Path) -> None:
    def inputs(*options: str) -> np.ndarray:
        folder = ["--artifact-dir", str(tmp_path / "f"), "--clean-artifacts", "--save-artifacts"]
        assert main(["run", str(adding), "--quiet", *folder, *options]) == 0
        return np.load(tmp_path / "f" / "run" / "adding" / "program_0" / "input_0.npy")

    assert np.array_equal(inputs("--seed", "1"), inputs("--seed", "1"))
    assert not np.array_equal(inputs("--seed", "1"), inputs("--seed", "2"))
    assert np.array_equal(inputs("--init", "arange").ravel(), np.arange(64))
    assert (inputs("--init", "ones") == 1).all()
    assert not inputs("--init", "zeros").any()
    assert np.abs(inputs("--init", "randn")).max() > 1
    assert (inputs("--init", "rand") >= 0).all()


def test_values_come_from_files(adding: Path, tmp_path: Path) -> None:
    values = tmp_path / "values"
    values.mkdir()
    np.save(values / "a.npy", np.full((2, 32), 3.0))
    np.save(values / "b.npy", np.full((2, 32), 4.0))
    args = {"binary": adding, "--inputs": values, "--save-artifacts": True}
    code, result = result_of("Run", {**args, "--artifact-dir": tmp_path / "f"})
    assert (code, result["programs"][0]["inputs"]) == (0, "files")
    total = np.load(tmp_path / "f" / "run" / "adding" / "program_0" / "output_0.npy")
    assert (total == 7).all()
    np.save(values / "b.npy", np.zeros(3))
    code, result = result_of("Run", {"binary": adding, "--inputs": values})
    assert code == 1
    assert "expected the shape (2, 32) of 'b', found (3,)" in result["error"]


def test_identity(tmp_path: Path) -> None:
    path = written(tmp_path, "same", outputs=(file.Output(0, "a"),))
    assert result_of("Run", {"binary": path, "--identity": True})[0] == 0
    other = written(tmp_path, "sum")
    code, result = result_of("Run", {"binary": other, "--identity": True})
    assert code == 4
    checks = {c["check"]: c for c in result["programs"][0]["outputs"][0]["checks"]}
    assert checks["golden"]["passed"]
    assert not checks["identity"]["passed"]
    loose = {"binary": other, "--identity": True, "--rtol": 1.0, "--atol": 10.0}
    assert result_of("Run", loose)[0] == 0


def test_non_zero(adding: Path) -> None:
    assert result_of("Run", {"binary": adding, "--non-zero": True})[0] == 0
    code, result = result_of("Run", {"binary": adding, "--non-zero": True, "--init": "zeros"})
    assert code == 4
    reasons = [c["reason"] for c in result["programs"][0]["outputs"][0]["checks"]]
    assert "all elements are zero" in reasons


def test_correlation_can_be_demanded(tmp_path: Path) -> None:
    """bf16 meets the program without rounding well, but not perfectly."""
    tensors = tuple(
        replace(t, type=replace(t.type, data_type="bf16")) for t in adding_program().tensors
    )
    path = written(tmp_path, "narrow", tensors=tensors)
    assert result_of("Run", {"binary": path, "--pcc": 0.99})[0] == 0
    assert result_of("Run", {"binary": path, "--pcc": 1.0})[0] == 4
    assert result_of("Run", {"binary": path, "--rtol": 0.01, "--atol": 0.01})[0] == 0
    assert result_of("Run", {"binary": path, "--rtol": 1e-7})[0] == 4


def test_programs_are_chosen_by_index(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "two.ttnn"
    path.write_bytes(encode(SCHEMA, binary(adding_program("first"), adding_program("second"))))
    for index, expected in (("all", ["first", "second"]), (1, ["second"])):
        _, result = result_of("Run", {"binary": path, "--program-index": index})
        assert [program["program"] for program in result["programs"]] == expected
    assert main(["run", str(path), "--program-index", "2"]) == 1
    assert "has no program 2; it has 2" in capsys.readouterr().err


def test_memory_and_leaks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    add = adding_program().operations[0]
    tensors = (*adding_program().tensors, adding_program().tensors[2])
    path = written(tmp_path, "leaky", tensors=tensors, operations=(add, replace(add, results=(3,))))
    assert main(["run", str(path), "--memory"]) == 0
    assert "peak memory: dram 16384 bytes, l1 0 bytes" in capsys.readouterr().out
    assert main(["run", str(path), "--check-memory-leak"]) == 4
    assert "leak: c, 4096 bytes in dram" in capsys.readouterr().err
    folder = tmp_path / "f"
    args = {"binary": path, "--memory": True, "--save-artifacts": True, "--artifact-dir": folder}
    _, result = result_of("Run", args)
    assert result["programs"][0]["memory"]["peak_bytes"] == {"dram": 16384, "l1": 0}
    rows = (folder / "run" / "leaky" / "program_0" / "memory.csv").read_text().splitlines()
    assert rows[0] == "index,op,location,dram_bytes,l1_bytes"
    assert rows[2] == '1,ttnn.add,"""add.1""",16384,0'


def test_arrays_are_printed(adding: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--print-input-output-tensors", "--init", "ones"]
    assert main(["run", str(adding), *options]) == 0
    text = capsys.readouterr().out
    assert "input 'a':\n[[1. 1." in text
    assert "output 'sum':\n[[2. 2." in text


def test_tensors_larger_than_the_machine_are_refused(tmp_path: Path) -> None:
    huge = tuple(
        replace(t, type=replace(t.type, shape=(2**31, 2**31))) for t in adding_program().tensors
    )
    path = written(tmp_path, "huge", tensors=huge)
    for command in ("Run", "Perf"):
        code, result = result_of(command, {"binary": path, "--artifact-dir": tmp_path / "f"})
        assert code == 1
        assert "GiB for its tensors, there are" in result["error"]


def test_programs_of_the_device(tmp_path: Path) -> None:
    out = tmp_path / "decoder"
    source = str(EXAMPLES / "stitching" / "decoder.mlir")
    options = ["--target", "ttmetal", "--no-format"]
    assert compile_main([source, "-o", str(out), *options]) == 0
    path = out / "model.ttm"
    seen: list[str] = []
    run = API.Run(
        args={"binary": path, "--quiet": True, "--memory": True, "--check-memory-leak": True},
        callback=lambda event: seen.append(event.name),
    )
    code, results = run()
    program = results["results"][0]["programs"][0]
    assert (code, program["golden"]) == (0, "unrounded")
    assert program["memory"]["peak_bytes"]["dram"] > 0
    assert "ttmetal.enqueue_program matmul" in seen
    assert "ttir.matmul" in seen
    _, result = result_of("Perf", {"binary": path, "--artifact-dir": tmp_path / "f"})
    rows = {row["op"]: row for row in result["ops"]}
    assert rows["matmul"]["flops"] == 2 * 32 * 128 * 10
    _, result = result_of("Read", {"binary": path, "--section": "cpp"})
    assert "void kernel_main() {" in result["sections"]["cpp"]
    assert result_of("Check", {"binary": path})[0] == 0


def test_programs_that_cannot_be_run(tmp_path: Path) -> None:
    tensors = (*adding_program().tensors[:2], replace(adding_program().tensors[2]))
    tensors = (
        *tensors[:2],
        replace(tensors[2], type=replace(tensors[2].type, shape=(2, 33))),
    )
    code, result = result_of("Run", {"binary": written(tmp_path, "wrong", tensors=tensors)})
    assert code == 1
    assert "cannot be run: ttnn.add at" in result["error"]


# perf


def test_perf_writes_a_table_and_a_trace(tmp_path: Path) -> None:
    out = tmp_path / "digits"
    source = EXAMPLES / "digits" / "digits.mlir"
    assert compile_main([str(source), "-o", str(out), "--no-format"]) == 0
    args = {"binary": out, "--loops": 3, "--artifact-dir": tmp_path / "f"}
    code, result = result_of("Perf", args)
    assert code == 0
    with Path(result["csv"]).open() as table:
        rows = list(csv.DictReader(table))
    assert tuple(rows[0]) == COLUMNS
    linear = next(row for row in rows if row["op"] == "ttnn.linear")
    assert (linear["calls"], linear["program"]) == ("3", "classify")
    assert int(linear["flops"]) == 3 * (2 * 360 * 64 * 64 + 360 * 64)
    assert int(linear["bytes"]) == 3 * 4 * (384 * 64 + 64 * 64 + 32 * 64 + 384 * 64)
    assert float(linear["time_us"]) > 0
    assert sum(float(row["time_share"]) for row in rows) == pytest.approx(1, abs=1e-3)
    assert linear["bound"] == "memory"
    with Path(result["perf_results"]).open() as table:
        calls = list(csv.DictReader(table))
    assert tuple(calls[0]) == PROFILER_COLUMNS
    assert len(calls) == sum(int(row["calls"]) for row in rows)
    assert [int(call["GLOBAL CALL COUNT"]) for call in calls] == list(range(1, len(calls) + 1))
    linears = [call for call in calls if call["OP CODE"] == "ttnn.linear"]
    host = sum(int(call["HOST DURATION [ns]"]) for call in linears)
    everything = [row for row in rows if row["op"] == "ttnn.linear"]
    told = sum(float(row["time_us"]) for row in everything)
    assert host / 1e3 == pytest.approx(told, rel=1e-3)
    assert all(call["DEVICE KERNEL DURATION [ns]"] == "" for call in calls)
    trace = json.loads(Path(result["trace"]).read_text())
    events = trace["traceEvents"]
    named = {e["args"]["name"] for e in events if e["ph"] == "M"}
    assert {"model.ttnn", "classify"} <= named
    spans = [e for e in events if e["ph"] == "X"]
    for op in {row["op"] for row in rows}:
        calls = [int(row["calls"]) for row in rows if row["op"] == op]
        assert set(calls) == {3}
        assert len([e for e in spans if e["name"] == op]) == sum(calls)
    assert all({"ts", "dur", "pid", "tid", "name", "cat", "args"} <= e.keys() for e in spans)


def test_perf_knows_the_card(adding: Path, tmp_path: Path) -> None:
    times = {}
    for arch in ARCHITECTURES:
        args = {"binary": adding, "--arch": arch, "--artifact-dir": tmp_path / arch}
        _, result = result_of("Perf", {**args, "--host-only": True})
        times[arch] = result["ops"][0]["card_us"]
    assert times["wormhole_b0"] == pytest.approx(3 * 4096 / 288e9 * 1e6, abs=1e-3)
    assert times["blackhole"] < times["wormhole_b0"]


# check and query


def test_query_describes_the_device(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "x.ttsys"
    assert main(["query", "--output", str(out)]) == 0
    assert json.loads(capsys.readouterr().out)["chips"][0]["arch"] == "wormhole_b0"
    assert read_ttsys_file(out) == default_system("wormhole_b0")
    args = {"--arch": "blackhole", "--save-artifacts": True, "--artifact-dir": tmp_path / "f"}
    code, result = result_of("Query", args)
    assert (code, result["device"]) == (0, "blackhole")
    assert read_ttsys_file(tmp_path / "f" / "system_desc.ttsys").arch == "blackhole"


def test_check_names_the_fields_that_differ(
    adding: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", str(adding)]) == 0
    assert "fits cpu" in capsys.readouterr().out
    system = default_system("wormhole_b0")
    smaller = replace(system, chips=(replace(system.chip, grid=(7, 8)),))
    folder = tmp_path / "systems"
    folder.mkdir()
    (folder / "n150.ttsys").write_bytes(write_ttsys(system))
    (folder / "small.ttsys").write_bytes(write_ttsys(smaller))
    assert main(["check", str(adding), "--system-desc", str(folder)]) == 4
    captured = capsys.readouterr()
    assert f"fits {folder / 'n150.ttsys'}" in captured.out
    assert "  grid: (8, 8) and (7, 8), of the file and of the system\n" in captured.err
    assert main(["check", str(adding), "--arch", "blackhole"]) == 4
    both = ["--arch", "blackhole", "--system-desc", str(folder)]
    assert main(["check", str(adding), *both]) == 1


def test_check_names_what_is_too_small(tmp_path: Path) -> None:
    system = default_system("wormhole_b0")
    huge = tuple(
        replace(t, type=replace(t.type, shape=(2**17, 2**15))) for t in adding_program().tensors
    )
    path = written(tmp_path, "huge", tensors=huge)
    code, result = result_of("Check", {"binary": path})
    assert code == 4
    (misfit,) = result["differences"]
    assert misfit.startswith("dram_unreserved_end: 'main' needs 51539607552 bytes of dram")
    few = replace(system, chips=(replace(system.chip, supported_data_types=("bf16",)),))
    (tmp_path / "few.ttsys").write_bytes(write_ttsys(few))
    small = written(tmp_path, "small")
    args = {"binary": small, "--system-desc": tmp_path / "few.ttsys"}
    code, result = result_of("Check", args)
    assert "supported_data_types: the file needs f32" in result["differences"]


def test_a_file_for_an_unknown_architecture(tmp_path: Path) -> None:
    path = tmp_path / "x.ttnn"
    path.write_bytes(encode(SCHEMA, replace(binary(adding_program()), arch="quasar")))
    code, result = result_of("Check", {"binary": path})
    assert code == 1
    assert "'quasar', an architecture that nobody knows" in result["error"]


def test_scripts_for_ttrt_need_another_name_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, adding: Path
) -> None:
    from ttcodegen.rt.common.api import API
    from ttcodegen.rt.common.util import Artifacts, Logger

    API.initialize_apis()
    logger = Logger(tmp_path / "some_file_name.log")
    artifacts = Artifacts(logger=logger, artifacts_folder_path=tmp_path / "artifacts")
    query = API.Query(args={"--clean-artifacts": True}, logger=logger, artifacts=artifacts)
    result_code, _ = query()
    assert result_code == 0
    read = API.Read(logger=logger)
    # Without a file, those of the folder that it is called in are read.
    monkeypatch.chdir(tmp_path)
    result_code, results = read()
    assert (result_code, [each["file"] for each in results["results"]]) == (0, [adding.name])
    adding.unlink()
    with pytest.raises(CompileError, match=r"there is no file in '\.'"):
        read()


def test_options_that_change_nothing_are_accepted() -> None:
    given = {"--enable-async-ttnn": True, "--load-kernels-from-disk": True}
    values = arguments.resolved("run", given)
    assert values["enable_async_ttnn"]
    assert values["load_kernels_from_disk"]


def test_the_level_of_ttrt_counts_after_ours(monkeypatch, capsys) -> None:
    from ttcodegen.rt import Logger

    monkeypatch.delenv("TTCODEGEN_RT_LOG_LEVEL", raising=False)
    monkeypatch.setenv("TTRT_LOGGER_LEVEL", "ERROR")
    Logger().info("quiet")
    assert capsys.readouterr().out == ""
    monkeypatch.setenv("TTCODEGEN_RT_LOG_LEVEL", "INFO")
    Logger().info("told")
    assert capsys.readouterr().out == "told\n"


def test_compare_names_the_first_op_that_drifts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tensor = "tensor<32x32xf32>"
    text = f"""
    func.func @f(%x: {tensor}) -> {tensor} {{
      %0 = "ttir.exp"(%x) : ({tensor}) -> {tensor}
      %1 = "ttir.clamp_scalar"(%0) <{{min = 0.0 : f32, max = 1.0 : f32}}> : ({tensor}) -> {tensor}
      %2 = "ttir.sin"(%1) : ({tensor}) -> {tensor}
      return %2 : {tensor}
    }}"""
    folders: list[str] = []
    for name, model in (("a", text), ("b", text.replace("max = 1.0", "max = 0.5"))):
        path = tmp_path / f"{name}.mlir"
        path.write_text(model)
        folders.append(str(tmp_path / name))
        assert compile_main([str(path), "-o", folders[-1], "--no-format"]) == 0
    capsys.readouterr()
    assert main(["compare", folders[0], folders[0]]) == 0
    assert "no op drifts, of 5 that both have" in "".join(capsys.readouterr())
    result = tmp_path / "result.json"
    assert main(["compare", *folders, "--result-file", str(result)]) == 4
    (entry,) = json.loads(result.read_text())["results"]
    assert entry["programs"][0]["first_drift"]["op"] == "ttnn.clamp_scalar"
    assert not entry["passed"]
    assert main(["compare", folders[0], str(tmp_path / "absent")]) == 1
