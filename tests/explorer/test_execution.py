"""Models are compiled, built, run and measured from the explorer."""

from __future__ import annotations

import csv
import json
import urllib.request
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.explorer.test_graphs import MODEL
from ttcodegen.cli.ttcodegen import main
from ttcodegen.compilation import CompileOptions
from ttcodegen.explorer import execution as explorer_execution
from ttcodegen.explorer.client import ExplorerError, TTExplorer
from ttcodegen.explorer.execution import Execution
from ttcodegen.explorer.session import Command, Session
from ttcodegen.explorer.stages import Settings
from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.project import checking

TOKEN = "of-the-test"


def led_to(address: str) -> dict[str, Any]:
    """Data that Model Explorer is to open, from the page an address redirects to."""
    request = urllib.request.Request(address, headers={"Authorization": f"Bearer {TOKEN}"})
    with urllib.request.urlopen(request) as answer:
        reached: str = answer.url
    (data,) = parse_qs(urlsplit(reached).query)["data"]
    return json.loads(data)


def test_a_flatbuffer_is_run_and_measured(tmp_path: Path) -> None:
    model = tmp_path / "model.mlir"
    model.write_text(MODEL)
    out = tmp_path / "out"
    assert main([str(model), "-o", str(out), "-q", "--embed-goldens", "--optimize", "2"]) == 0
    path = str(out / "model.ttnn")
    folders = {"folders": [str(tmp_path)]}
    with TTExplorer(0, server=True, config=folders, token=TOKEN) as explorer:
        reported = explorer.execute_model(path)
        assert reported["progress"] == reported["total"]
        assert "cpu_backend_us" not in reported["summary"], "there is no C++"
        rows = Path(reported["perf_trace"]).read_text().splitlines()
        data = {
            each["metric"]: each["data"]["model"]["results"] for each in explorer.node_data(path)
        }
        nodes = {n["id"]: n for n in explorer.convert(path)[0]["nodes"]}
        for metric in ("estimated_us", "flatbuffer_us", "bytes", "correlation"):
            assert data[metric].keys() <= nodes.keys()
            assert "scores" in data[metric], metric
        assert 0.99 < data["correlation"]["scores"]["value"] <= 1
        measured = csv.DictReader(rows)
        (time,) = [float(row["time_us"]) for row in measured if row["op"] == "ttnn.matmul"]
        assert data["flatbuffer_us"]["scores"]["value"] == time
        assert "measured_us" not in data, "there is no C++"
        graph = led_to(f"{explorer.address}/ttcodegen/graph?model={path}")
        assert graph["models"][0]["url"] == path
        assert {Path(file).stem for file in graph["nodeData"]} == data.keys()
        assert len(graph["nodeDataTargets"]) == len(graph["nodeData"])
        explorer.execute_model(path)
        again = {
            each["metric"]: each["data"]["model"]["results"] for each in explorer.node_data(path)
        }
        assert again["correlation_before"]["scores"]["value"] == pytest.approx(1)
        assert again["estimated_change"]["scores"]["value"] == 0


def test_models_of_the_same_name_have_results_of_their_own(tmp_path: Path) -> None:
    model = tmp_path / "model.mlir"
    model.write_text(MODEL)
    paths = [str(tmp_path / name / "model.ttnn") for name in ("first", "second")]
    for path in paths:
        assert main([str(model), "-o", str(Path(path).parent), "-q"]) == 0
    with TTExplorer(0, server=True, config={"folders": [str(tmp_path)]}) as explorer:
        for path in paths:
            explorer.convert(path)
            explorer.overrides(path)
        tables = {explorer.execute_model(path)["perf_trace"] for path in paths}
    assert len(tables) == 2


def test_a_damaged_flatbuffer_is_reported(tmp_path: Path) -> None:
    model = tmp_path / "model.mlir"
    model.write_text(MODEL)
    assert main([str(model), "-o", str(tmp_path / "out"), "-q"]) == 0
    data = (tmp_path / "out" / "model.ttnn").read_bytes()
    path = tmp_path / "cut.ttnn"
    path.write_bytes(data[: len(data) // 2])
    with TTExplorer(0, server=True, config={"folders": [str(tmp_path)]}) as explorer:
        for command in ("convert", "execute_model"):
            with pytest.raises(ExplorerError, match="error: "):
                getattr(explorer, command)(str(path))


@pytest.mark.slow
def test_a_model_is_executed_and_measured_op_by_op(tmp_path: Path) -> None:
    model = tmp_path / "model.mlir"
    model.write_text(MODEL)
    config = {"folders": [str(tmp_path)]}
    with TTExplorer(0, server=True, config=config) as explorer:
        reported = explorer.execute_model(str(model), {"artifact_dir": str(tmp_path / "results")})
        assert reported["progress"] == reported["total"]
        assert Path(reported["perf_trace"]).read_text().startswith("program,index,op,")
        assert Path(reported["perf_trace"]).is_relative_to(tmp_path / "results")
        assert reported["summary"]["cpu_backend_us"] > 0
        assert (tmp_path / "results" / "project" / "check.json").is_file()
        data = {each["metric"]: each["data"] for each in explorer.node_data(str(model))}
        for metric in ("estimated_us", "measured_us", "bytes", "l1_bytes", "correlation"):
            # The graphs of the source and of all stages that have the op.
            for graph in ("model", "optimized: model", "lowered: model"):
                assert "scores" in data[metric][graph]["results"], (metric, graph)
        assert data["correlation"]["model"]["results"]["scores"]["value"] > 0.99
        shares = data["estimated_share"]["lowered: model"]["results"].values()
        assert sum(share["value"] for share in shares) <= 100.01
        before = data["estimated_us"]["lowered: model"]["results"]["scores"]["value"]

        pairs = [{"key": "memory", "value": "dram"}, {"key": "math_fidelity", "value": "hifi4"}]
        explorer.override(str(model), {"scores": {"attributes": pairs}})
        again = {"artifact_dir": str(tmp_path / "results")}
        explorer.execute_model(str(model), again)
        data = {each["metric"]: each["data"] for each in explorer.node_data(str(model))}
        after = data["estimated_us"]["lowered: model"]["results"]["scores"]["value"]
        change = data["estimated_change"]["lowered: model"]["results"]["scores"]["value"]
        assert after > before
        assert change == pytest.approx(after - before, abs=0.01)
        for metric in ("measured_us", "measured_change", "flatbuffer_us"):
            assert "scores" in data[metric]["lowered: model"]["results"], metric
        assert data["correlation_before"]["lowered: model"]["results"]["scores"]["value"] > 0.99
        given = tmp_path / "overrides.json"
        given.write_text(json.dumps(explorer.overrides(str(model))))
        # A project is run as it is.
        project = str(tmp_path / "results" / "project")
        reported = explorer.execute_model(project)
        assert reported["summary"]["cpu_backend_us"] > 0
        data = {each["metric"]: each["data"] for each in explorer.node_data(project)}
        assert data["measured_us"]["model"]["results"]["scores"]["value"] > 0


def uploaded(session: Session, content: bytes) -> Command:
    """The command that executes an uploaded flatbuffer and deletes it afterwards."""
    path = session.access.upload("model.ttnn", content)
    return Command("execute", str(path), {}, delete=True)


def compiled(tmp_path: Path) -> bytes:
    model = tmp_path / "model.mlir"
    model.write_text(MODEL)
    assert main([str(model), "-o", str(tmp_path / "out"), "-q"]) == 0
    return (tmp_path / "out" / "model.ttnn").read_bytes()


def test_an_upload_is_deleted_when_its_execution_ends(tmp_path: Path) -> None:
    session = Session([])
    command = uploaded(session, compiled(tmp_path))
    path = Path(command.model)
    session.run(command)
    execution = session.state(path).execution
    assert execution is not None
    assert execution.wait(60)
    assert not path.exists()
    # What it found can still be requested.
    (reported,) = session.run(Command("status_check", command.model, {}, delete=False))
    assert reported["isDone"]
    assert "error" not in reported
    assert session.run(Command("node_data", command.model, {}, delete=False))
    with pytest.raises(CompileError, match="there is no file"):
        session.run(Command("convert", command.model, {}, delete=True))
    session.close()


def test_a_failed_run_does_not_hide_the_one_before(tmp_path: Path) -> None:
    content = compiled(tmp_path)
    path = tmp_path / "out" / "model.ttnn"
    with TTExplorer(0, server=True, config={"folders": [str(tmp_path)]}) as explorer:
        explorer.execute_model(str(path))
        path.write_bytes(content[: len(content) // 2])
        with pytest.raises(ExplorerError):
            explorer.execute_model(str(path))
        path.write_bytes(content)
        reported = explorer.execute_model(str(path))
        metrics = {each["metric"] for each in explorer.node_data(str(path))}
        assert {"estimated_change", "correlation_before"} <= metrics
        # The log is the one of the last run.
        log = Path(reported["log_file"]).read_text()
        assert log.count("Path: ") == 1
        assert log.splitlines() == reported["stdout"].splitlines()


def test_programs_without_a_meaning_in_ttir_are_not_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = tmp_path / "model.mlir"
    model.write_text(MODEL)
    options = CompileOptions("model", "ttmetal")
    execution = Execution(model, Settings("ttmetal"), options, tmp_path / "run")
    compile_stages = explorer_execution.compile_stages

    def without_flatbuffer(*arguments: Any, **more: Any) -> Any:
        made, recorder = compile_stages(*arguments, **more)
        return replace(made, flatbuffer=b""), recorder

    monkeypatch.setattr(explorer_execution, "compile_stages", without_flatbuffer)
    monkeypatch.setattr(checking, "check_project", lambda *_, **__: [])
    execution.start()
    assert execution.wait(120)
    reported = execution.report()
    assert "error" not in reported, reported["stdout"]
    assert reported["progress"] == reported["total"] == 3
    assert "perf_trace" not in reported
