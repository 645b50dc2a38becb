"""The REST interface: every command, every refusal, over HTTP."""

from __future__ import annotations

import http.client
import json
import os
import subprocess
import sys
from pathlib import Path
from urllib.parse import parse_qs, quote, urlsplit

import pytest

from tests.explorer.requesting import command, request, send
from tests.explorer.test_graphs import MODEL
from ttcodegen.cli.explorer import main
from ttcodegen.compilation import CompileOptions
from ttcodegen.explorer.client import ExplorerError, TTExplorer
from ttcodegen.explorer.models import model_graphs
from ttcodegen.explorer.server import Server
from ttcodegen.explorer.session import Session
from ttcodegen.explorer.stages import Settings, read_settings
from ttcodegen.flatbuffer.system import read_ttsys_file
from ttcodegen.foundation.diagnostics import CompileError

# Commands


def test_convert_gives_the_graphs_of_all_stages(explorer: TTExplorer, model: Path) -> None:
    graphs = {graph["id"]: graph for graph in explorer.convert(str(model))}
    assert {"model", "TTNN: model", "optimized: model", "lowered: model"} <= graphs.keys()
    # What the page sends of its own is no concern of ours; stages can be left out.
    settings = {"edge_label_font_size": 7.5, "stages": False, "const_element_count_limit": 4}
    assert [graph["id"] for graph in explorer.convert(str(model), settings)] == ["model"]


def test_commands_for_the_adapter_of_tt_mlir_are_taken(server: Server, model: Path) -> None:
    content = command(extensionId="tt_adapter", modelPath=str(model), settings={"stages": False})
    status, reported = send(server, content)
    assert status == 200
    assert reported["graphs"][0]["id"] == "model"
    assert "error" not in reported


def test_initialize_writes_a_system_description(explorer: TTExplorer) -> None:
    path = explorer.initialize({"arch": "blackhole"})["system_desc_path"]
    assert read_ttsys_file(path).arch == "blackhole"


def test_a_model_that_was_not_executed_has_no_status(explorer: TTExplorer, model: Path) -> None:
    with pytest.raises(ExplorerError, match=r"'model\.mlir' was not executed"):
        explorer.status_check(str(model))
    with pytest.raises(ExplorerError, match=r"'model\.mlir' has no results"):
        explorer.node_data(str(model))


def test_an_execution_tells_what_is_wrong_with_which_node(
    explorer: TTExplorer, model: Path
) -> None:
    model.write_text(MODEL.replace('"ttir.exp"', '"ttir.no_such_op"'))
    with pytest.raises(ExplorerError, match=r"model\.mlir:8:.*error.*no_such_op"):
        explorer.execute_model(str(model), timeout=60)
    status = explorer.status_check(str(model))
    assert status["isDone"]
    assert status["progress"] < status["total"]
    assert "no_such_op" in status["nodeErrors"]["head/scaled"]
    assert Path(status["log_file"]).read_text().splitlines() == status["stdout"].splitlines()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"optimize": 3}, "the setting 'optimize' is 3"),
        ({"optimize": "3"}, "the setting 'optimize' is '3'"),
        ({"optimize": True}, "the setting 'optimize' is True"),
        ({"target": "cuda"}, "one of ttnn, ttmetal"),
        ({"arch": "grayskull"}, "wormhole_b0"),
        ({"ttir_to_ttnn_options": "optimization-level=2"}, "no list of texts"),
        ({"ttir_to_ttnn_options": ["optimisation-level=2"]}, "did you mean 'optimization-level'?"),
        ({"ttir_to_ttnn_options": ["optimization-level=9"]}, "'optimization-level' is '9'"),
        ({"ttir_to_ttnn_options": ["enable-optimizer=maybe"]}, "true or false"),
        ({"artifact_dir": "/nowhere/near"}, "in none of the folders"),
    ],
)
def test_settings_that_there_are_not_are_refused(
    explorer: TTExplorer, model: Path, settings: dict[str, object], message: str
) -> None:
    with pytest.raises(ExplorerError) as raised:
        explorer.command("execute", str(model), settings)
    assert message in str(raised.value)


def test_options_of_tt_mlir_are_settings(explorer: TTExplorer, model: Path) -> None:
    options = ["optimization-level=1", "override-output-layout=scores=4x4:l1:block_sharded"]
    graphs = explorer.convert(str(model), {"ttir_to_ttnn_options": options})
    optimized = next(graph for graph in graphs if graph["id"] == "optimized: model")
    (scores,) = [node for node in optimized["nodes"] if node["id"] == "scores"]
    reported = {each["key"]: each["value"] for each in scores["outputsMetadata"][0]["attrs"]}
    assert reported["sharding"] == "block_sharded"
    # The optimizer is off, so there is no such stage.
    graphs = explorer.convert(str(model), {"ttir_to_ttnn_options": ["optimization-level=0"]})
    assert not any(graph["id"].startswith("optimized") for graph in graphs)


@pytest.mark.parametrize(
    ("options", "level"),
    [
        ([], 2),
        (["optimization-level=1"], 1),
        (["optimization-level=0", "enable-optimizer=true"], 1),
        (["enable-optimizer=true", "memory-layout-analysis-enabled=true"], 2),
        (["enable-optimizer=false"], 0),
        (["enable-optimizer"], 1),
        # Decisions that are given are applied, as by the pipeline.
        (["optimization-level=0", "override-output-layout=scores=dram"], 1),
    ],
)
def test_levels_are_those_of_the_pipeline(options: list[str], level: int) -> None:
    assert read_settings({"ttir_to_ttnn_options": options}, Settings()).optimize == level


# Envelopes


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ([], "a command is a JSON object"),
        ({"cmdId": "convert"}, "the command has no 'extensionId'"),
        (command(settings=[]), "'settings' of the command is wrong"),
        (command(modelPath=3), "'modelPath' of the command is wrong"),
        (command(deleteAfterConversion="no"), "'deleteAfterConversion' of the command is wrong"),
        (command(extensionId="builtin_tflite"), "there is no extension 'builtin_tflite'"),
        (command(cmdId="excute"), "did you mean 'execute'?"),
        (command(cmdId="__init__"), "there is no command '__init__'"),
        (command(), "the path of the model is missing"),
        (command(modelPath="a\0b"), "the path of the model is missing"),
    ],
)
def test_wrong_commands_are_refused(server: Server, content: object, message: str) -> None:
    status, reported = send(server, content)
    assert status == 200
    assert reported["graphs"] == []
    assert message in reported["error"]


def test_errors_of_a_model_tell_where(explorer: TTExplorer, model: Path) -> None:
    model.write_text("func.func @f(%x: tensor<4xf32> {\n")
    with pytest.raises(ExplorerError, match=r"model\.mlir:\d+:\d+: error"):
        explorer.convert(str(model))


# What may be read


def test_files_outside_of_the_folders_are_refused(
    explorer: TTExplorer, model: Path, tmp_path: Path
) -> None:
    outside = tmp_path / "secret.mlir"
    outside.write_text(MODEL)
    link = model.parent / "link.mlir"
    link.symlink_to(outside)
    for path in (outside, link, model.parent / ".." / "secret.mlir", Path("/etc/passwd")):
        with pytest.raises(ExplorerError, match="in none of the folders"):
            explorer.convert(str(path))
    with pytest.raises(ExplorerError, match="there is no file"):
        explorer.convert(str(model.parent / "nothing.mlir"))


def test_the_page_reads_files_of_the_folders_only(server: Server, model: Path) -> None:
    data = model.parent / "data.json"
    data.write_text('{"f": {}}')
    _, reported, _ = request(server, f"/api/v1/read_text_file?path={data}")
    assert reported == {"content": '{"f": {}}'}
    for path in ("/etc/passwd", "", f"{model.parent}/../x"):
        _, reported, _ = request(server, f"/api/v1/read_text_file?path={path}")
        assert "error" in reported
    for path in ("/../../../../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "//etc/passwd"):
        assert request(server, path)[0] == 404


def test_models_are_uploaded(explorer: TTExplorer, model: Path) -> None:
    path = explorer.get_model_path(model)
    assert Path(path).read_text() == MODEL
    assert explorer.convert(path, {"stages": False})[0]["id"] == "model"
    content = {"cmdId": "convert", "extensionId": "ttcodegen", "modelPath": path}
    content |= {"settings": {"stages": False}, "deleteAfterConversion": True}
    explorer._post("send_command", json.dumps(content).encode(), "application/json")
    assert not Path(path).exists()
    # What was not uploaded stays, whatever the command says.
    content["modelPath"] = str(model)
    explorer._post("send_command", json.dumps(content).encode(), "application/json")
    assert model.exists()


def test_paths_that_no_file_can_have_are_refused(explorer: TTExplorer, model: Path) -> None:
    for path in (str(model.parent / ("a" * 300)), "/" + "a" * 5000, "\ud800", "a\0b"):
        with pytest.raises(ExplorerError, match=r"no file|in none of the folders|is missing"):
            explorer.convert(path)


@pytest.mark.parametrize("name", ["a\0.mlir", "a" * 300 + ".mlir"])
def test_uploads_that_no_file_can_be_called_are_refused(server: Server, name: str) -> None:
    kind = {"Content-Type": "multipart/form-data; boundary=b"}
    body = f'--b\r\nfilename="{name}"\r\n\r\nx\r\n--b--'.encode()
    status, reported, _ = request(server, "/apipost/v1/upload", body, kind)
    assert status == 400
    assert "cannot be kept" in reported["error"]
    assert not any((server.session.access.own / "uploads").iterdir())


def test_a_folder_that_cannot_be_made_leaves_nothing_executing(
    explorer: TTExplorer, model: Path
) -> None:
    for _ in range(2):
        with pytest.raises(ExplorerError, match=r"cannot write .*Not a directory"):
            explorer.execute_model(str(model), {"artifact_dir": str(model / "results")})
    with pytest.raises(ExplorerError, match="was not executed"):
        explorer.status_check(str(model))


def test_uploads_are_limited(server: Server, explorer: TTExplorer, tmp_path: Path) -> None:
    large = tmp_path / "large.mlir"
    large.write_text(MODEL + "// " + "x" * 1000)
    with pytest.raises(ExplorerError, match="1000 are taken"):
        explorer.get_model_path(large)
    script = tmp_path / "script.py"
    script.write_text("")
    with pytest.raises(ExplorerError, match="no model by its name"):
        explorer.get_model_path(script)
    kind = {"Content-Type": "multipart/form-data; boundary=b"}
    for body in (b"", b"--b\r\n\r\nx\r\n--b--", b'--b\r\nfilename="a.mlir"\r\n\r\ncut off'):
        assert request(server, "/apipost/v1/upload", body, kind)[0] == 400
    named = b'--b\r\nContent-Disposition: form-data; filename="../../../a.mlir"\r\n\r\nx\r\n--b--'
    status, reported, _ = request(server, "/apipost/v1/upload", named, kind)
    assert status == 200
    assert Path(reported["path"]).is_relative_to(server.session.access.own)


# The page of decisions


def test_the_page_of_decisions_is_served_and_runs_its_own_script_only(server: Server) -> None:
    for path, kind in {"": "text/html", "page.js": "text/javascript", "page.css": "css"}.items():
        status, content, headers = request(server, f"/ttcodegen/{path}?model=x")
        assert status == 200
        assert kind in headers["Content-Type"]
        assert "default-src 'none'; script-src 'self'" in headers["Content-Security-Policy"]
        # Names of models and ops go into the page as text.
        for way in (b"innerHTML", b"outerHTML", b"insertAdjacentHTML", b"document.write", b"eval("):
            assert way not in content
        assert b"<script>" not in content, "the policy refuses it"
    for path in ("nothing.js", "../server.py", "%2e%2e/server.py"):
        assert request(server, f"/ttcodegen/{path}")[0] == 404


def test_the_page_of_decisions_asks_for_the_token(model: Path) -> None:
    with_token = Server(Session([model.parent]), port=0, token="of-the-test")
    with_token.start()
    try:
        for path in ("", "page.js", f"graph?model={model}"):
            assert request(with_token, f"/ttcodegen/{path}", token=False)[0] == 401
        address = urlsplit(with_token.own_address(model))
        assert parse_qs(address.query) == {"token": ["of-the-test"], "model": [str(model)]}
        assert request(with_token, f"{address.path}?{address.query}")[0] == 200
    finally:
        with_token.close()


def test_decisions_of_all_ops_follow_overrides(explorer: TTExplorer, model: Path) -> None:
    reported = {each["node"]: each for each in explorer.command("decisions", str(model))}
    assert reported["scores"]["function"] == "model"
    assert reported["scores"]["op"] == "matmul"
    assert reported["scores"]["chosen"]["memory"] == "l1"
    assert 0 < reported["scores"]["estimated_us"] < 1000
    pairs = [{"key": "memory", "value": "dram"}]
    explorer.override(str(model), {"scores": {"function": "model", "attributes": pairs}})
    reported = {each["node"]: each for each in explorer.command("decisions", str(model))}
    assert reported["scores"]["chosen"]["memory"] == "dram"
    with pytest.raises(ExplorerError, match="without the optimizer"):
        explorer.command("decisions", str(model), {"optimize": 0})
    with pytest.raises(ExplorerError, match="was compiled already"):
        explorer.command("decisions", str(model.parent))


def test_the_models_of_a_session_are_reported(explorer: TTExplorer, model: Path) -> None:
    assert explorer.command("models", "") == []
    explorer.convert(str(model), {"stages": False})
    assert explorer.command("models", "") == [{"path": str(model), "executed": False}]


def test_the_graph_of_a_model_is_led_to(server: Server, model: Path, tmp_path: Path) -> None:
    status, _, headers = request(server, f"/ttcodegen/graph?model={quote(str(model))}")
    assert status == 302
    (data,) = parse_qs(urlsplit(headers["Location"]).query)["data"]
    reported = json.loads(data)
    assert reported["models"] == [{"url": str(model), "adapterId": "ttcodegen"}]
    # The page would open the largest graph, which is one of C++.
    assert [pane["selectedGraphId"] for pane in reported["uiState"]["paneStates"]] == [""]
    assert "sync" not in reported
    status, reported, _ = request(server, "/ttcodegen/graph?model=/etc/passwd")
    assert status == 400
    assert "in none of the folders" in reported["error"]


def test_the_page_of_model_explorer_leads_to_that_of_decisions(
    server: Server, tmp_path: Path
) -> None:
    (tmp_path / "index.html").write_text("<html><body><app-root></app-root></body></html>")
    server.web = tmp_path
    assert b'<a href="/ttcodegen/"' in request(server, "/")[1]


# Stages


def test_two_stages_stand_side_by_side(server: Server, model: Path) -> None:
    graphs = server.session.graphs_of_stages(model, ["source", "EmitC"])
    assert graphs == ["model", "EmitC: src/model.cpp:model"]
    known = [graph.id for graph in model_graphs(model, CompileOptions("model", optimize=2))]
    assert set(graphs) <= set(known)
    (data,) = parse_qs(urlsplit(server.address(model, graphs)).query)["data"]
    reported = json.loads(data)
    panes = reported["uiState"]["paneStates"]
    assert [pane["selectedGraphId"] for pane in panes] == graphs
    assert [pane["widthFraction"] for pane in panes] == [0.5, 0.5]
    assert reported["sync"] == {"mode": "from_computer"}


def test_stages_that_a_model_has_not_are_refused(
    server: Server, model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(CompileError) as caught:
        server.session.graphs_of_stages(model, ["source", "ttmetal"])
    assert "the model has no stage 'ttmetal'" in caught.value.render()
    assert "there are source, ttnn, optimized, lowered, emitc" in caught.value.render()
    assert main(["-q", "-p", "0", "--stages", "source", str(model)]) == 1
    assert "--stages takes two stages of one model" in capsys.readouterr().err
    assert main(["-q", "-p", "0", "--stages", "source,emitc"]) == 1


# The program


def test_the_page_knows_the_adapter(server: Server) -> None:
    _, (adapter,), _ = request(server, "/api/v1/get_extensions")
    assert (adapter["id"], adapter["type"]) == ("ttcodegen", "adapter")
    assert {"mlir", "ttnn", "ttm"} <= set(adapter["fileExts"])
    assert request(server, "/check_health")[1] == b"model_explorer_ok"
    assert request(server, "/api/v1/check_new_version")[1]["version"] == ""


def test_the_page_is_that_of_model_explorer_or_says_what_to_install(server: Server) -> None:
    status, page, _ = request(server, "/")
    assert status == 200
    assert b"<html" in page or b"pip install 'ttcodegen[explorer]'" in page


def test_what_cannot_be_started_is_reported(
    server: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["-q", str(tmp_path / "nothing.mlir")]) == 1
    assert "there is no file" in capsys.readouterr().err
    assert main(["-q", "-p", str(server.port), str(tmp_path)]) == 1
    assert f"cannot listen on port {server.port}" in capsys.readouterr().err
    assert main(["-q", "-p", "99999", str(tmp_path)]) == 1
    assert main(["-q", "-u", "no.such.host.invalid", str(tmp_path)]) == 1
    # As in the book's example, which has no host.
    assert main(["-p", str(server.port), "-u", "-q", str(tmp_path)]) == 1
    assert "of 'localhost'" in capsys.readouterr().err
    with pytest.raises(CompileError, match="cannot listen"):
        Server(Session([tmp_path]), "localhost", server.port)


def test_a_session_leaves_nothing_behind(model: Path) -> None:
    with TTExplorer(0, server=True, config={"folders": [str(model.parent)]}) as explorer:
        path = explorer.get_model_path(model)
        assert os.path.exists(path)
    assert not os.path.exists(path)


@pytest.mark.parametrize("path", ["/a%00b", "/" + "a" * 300, "/" + "%2e/" * 300, "//[::1/"])
def test_names_that_no_file_can_have_are_not_found(server: Server, path: str) -> None:
    assert request(server, path)[0] == 404


@pytest.mark.parametrize("name", ["target", "arch", "weights", "optimize", "seed", "stages"])
def test_settings_of_wrong_types_are_refused(server: Server, model: Path, name: str) -> None:
    for value in ([], {}, [[]], None, 1.5):
        content = command(modelPath=str(model), settings={name: value})
        status, reported = send(server, content)
        assert (status, f"the setting '{name}'" in reported["error"]) == (200, True)


@pytest.mark.parametrize("method", ["PUT", "DELETE", "OPTIONS"])
def test_other_methods_are_refused(server: Server, method: str) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
    connection.request(method, "/", headers={"Authorization": f"Bearer {server.token}"})
    assert connection.getresponse().status == 405
    connection.close()


def test_a_level_that_the_target_does_not_have_is_refused(
    model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["-q", "-p", "0", "--target", "ttmetal", "--optimize", "2", str(model)]) == 1
    assert "'ttmetal' has no optimizer" in capsys.readouterr().err


def test_a_server_that_is_terminated_leaves_nothing_behind(model: Path, tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.mkdir()
    program = [sys.executable, "-m", "ttcodegen.cli.explorer", "-q", "-p", "0", str(model)]
    with subprocess.Popen(
        program, stdout=subprocess.PIPE, text=True, env={**os.environ, "TMPDIR": str(own)}
    ) as running:
        assert running.stdout is not None
        while "Ctrl+C" not in running.stdout.readline():
            pass
        assert any(own.iterdir())
        running.terminate()
        assert running.wait(30) == 0
    assert not any(own.iterdir())


def test_the_models_of_a_folder_are_offered(tmp_path: Path) -> None:
    names = (
        "a.mlir",
        "deeper/b.ttnn",
        "project/manifest.json",
        "project/model.ttnn",
        ".git/c.mlir",
    )
    for name in (*names, "notes.txt"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("{}")
    session = Session([tmp_path], listed=True)
    asked = command(cmdId="models")
    found = [Path(each["path"]) for each in session.answer(asked)["graphs"]]
    assert found == [tmp_path / name for name in ("a.mlir", "deeper/b.ttnn", "project")]
    session.close()
    assert Session([tmp_path]).answer(asked)["graphs"] == []
