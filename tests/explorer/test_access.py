"""Access control of a server: hosts, tokens, users and sessions."""

from __future__ import annotations

import html
import json
import os
import socket
import stat
import webbrowser
from pathlib import Path
from urllib.parse import parse_qs, urlsplit
from urllib.request import url2pathname

import pytest

from tests.explorer.requesting import command, request, send
from ttcodegen.cli.explorer import main
from ttcodegen.explorer import server as server_module
from ttcodegen.explorer.client import ExplorerError, TTExplorer
from ttcodegen.explorer.server import Server, is_loopback
from ttcodegen.explorer.session import Session
from ttcodegen.foundation.diagnostics import CompileError

# Who may ask


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Content-Type": "text/plain"}, 415),
        ({"Content-Type": "application/json", "Origin": "http://example.com"}, 403),
        ({"Content-Type": "application/json", "Host": "example.com"}, 403),
        ({"Content-Type": "application/json", "Sec-Fetch-Site": "cross-site"}, 403),
    ],
)
def test_other_sites_are_refused(server: Server, headers: dict[str, str], status: int) -> None:
    assert request(server, "/apipost/v1/send_command", b"{}", headers)[0] == status


def test_every_request_is_answered(
    server: Server, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert request(server, "/check_health", headers={"Host": "["})[0] == 403
    monkeypatch.setattr(server.session, "answer_text", lambda _: 1 // 0)
    status, reported = send(server, {})
    assert status == 500
    assert reported["error"].startswith("internal error: ZeroDivisionError")
    assert "Traceback" in capsys.readouterr().err


def test_a_token_that_is_given_may_have_any_characters(model: Path) -> None:
    with_token = Server(Session([model.parent]), port=0, token="a b;c=\u20ac")
    with_token.start()
    try:
        path = with_token.address().partition(f":{with_token.port}")[2]
        cookie = request(with_token, path, token=False)[2]["Set-Cookie"].partition(";")[0]
        kept = request(with_token, "/check_health", headers={"Cookie": cookie}, token=False)
        assert kept[0] == 200
    finally:
        with_token.close()


def test_what_is_no_request_is_refused(server: Server) -> None:
    json_type = {"Content-Type": "application/json"}
    assert request(server, "/apipost/v1/send_command", b"{", json_type)[0] == 400
    assert request(server, "/apipost/v1/send_command", b"[" * 10**5, json_type)[0] == 400
    assert request(server, "/apipost/v1/nothing", b"{}", json_type)[0] == 404
    assert request(server, "/nothing.js")[0] == 404


def test_a_server_on_the_network_asks_for_a_token(model: Path) -> None:
    with_token = Server(Session([model.parent]), "0.0.0.0", 0)
    with_token.start()
    try:
        assert len(with_token.token) >= 32
        assert f"token={with_token.token}" in with_token.address(model)
        assert request(with_token, "/check_health", token=False)[0] == 401
        assert request(with_token, "/check_health?token=wrong", token=False)[0] == 401
        asked, _, headers = request(
            with_token, f"/check_health?token={with_token.token}", token=False
        )
        assert asked == 200
        assert "HttpOnly" in headers["Set-Cookie"]
        cookie = headers["Set-Cookie"].partition(";")[0]
        kept = request(with_token, "/check_health", headers={"Cookie": cookie}, token=False)
        assert kept[0] == 200
        with pytest.raises(ExplorerError, match="the token is missing or wrong"):
            TTExplorer(with_token.port).convert(str(model))
        explorer = TTExplorer(with_token.port, token=with_token.token)
        assert explorer.convert(str(model), {"stages": False})
    finally:
        with_token.close()


def test_loopback_is_known() -> None:
    assert all(
        is_loopback(host) for host in ("localhost", "127.0.0.1", "127.8.8.8", "::1", "[::1]")
    )
    assert not any(is_loopback(host) for host in ("0.0.0.0", "::", "example.com", "10.0.0.1"))


def test_other_users_of_the_machine_need_the_token(server: Server, model: Path) -> None:
    assert len(server.token) >= 32
    assert request(server, "/check_health", token=False)[0] == 401
    with pytest.raises(ExplorerError, match="the token is missing or wrong"):
        TTExplorer(server.port).execute_model(str(model))
    open_to_all = Server(Session([model.parent]), port=0, without_token=True)
    open_to_all.start()
    try:
        assert "token" not in open_to_all.address(model)
        assert request(open_to_all, "/check_health", token=False)[0] == 200
    finally:
        open_to_all.close()
    with pytest.raises(CompileError, match="reached over the network needs a token"):
        Server(Session([model.parent]), "0.0.0.0", 0, without_token=True)


def test_the_token_is_no_argument_of_a_program(
    model: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    opened: list[str] = []

    def end(self: Server) -> None:
        (url,) = opened
        path = Path(url2pathname(urlsplit(url).path))
        address = capsys.readouterr().out.splitlines()[1]
        token = parse_qs(urlsplit(address).query)["token"][0]
        assert token not in url
        assert f'content="0; url={html.escape(address)}"' in path.read_text()
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700

    monkeypatch.setattr(webbrowser, "open_new_tab", opened.append)
    monkeypatch.setattr(Server, "wait", end)
    assert main(["-p", "0", str(model)]) == 0


def test_a_length_that_is_none_is_refused(server: Server) -> None:
    # A body in chunks can be of any length, whatever the other header says.
    headers = {"Content-Type": "application/json", "Transfer-Encoding": "chunked"}
    headers["Content-Length"] = "2"
    assert request(server, "/apipost/v1/send_command", b"2\r\n{}\r\n", headers)[0] == 411


def test_connections_that_ask_nothing_are_closed(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_module, "_ASKING", 0.2)
    silent = socket.create_connection(("127.0.0.1", server.port), timeout=10)
    slow = socket.create_connection(("127.0.0.1", server.port), timeout=10)
    slow.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nX: ")
    with silent, slow:
        assert silent.recv(1) == b""
        assert slow.recv(1) == b""


def test_pipes_are_no_models(server: Server, model: Path) -> None:
    pipe = model.with_name("pipe.mlir")
    os.mkfifo(pipe)
    status, reported = send(server, command(modelPath=str(pipe)))
    assert status == 200
    assert "pipe.mlir' is neither a file nor a folder" in reported["error"]
    content = request(server, f"/api/v1/read_text_file?path={pipe}")[1]
    assert "neither a file nor a folder" in content["error"]


def test_two_browsers_have_two_sessions(server: Server, model: Path) -> None:
    cookies = list[str]()
    for _ in range(2):
        _, _, headers = request(server, "/", headers={"Accept": "text/html"})
        cookies.append(headers["Set-Cookie"].partition(";")[0])
    assert cookies[0] != cookies[1]
    kind = {"Content-Type": "application/json"}
    pairs = [{"key": "memory", "value": "dram"}]
    given = {"overrides": {"scores": {"attributes": pairs}}}
    content = command(cmdId="override", modelPath=str(model), settings=given)
    path, body = "/apipost/v1/send_command", json.dumps(content).encode()
    request(server, path, body, {**kind, "Cookie": cookies[0]})
    body = json.dumps(command(cmdId="overrides", modelPath=str(model))).encode()
    found = [
        request(server, path, body, {**kind, "Cookie": cookie})[1]["graphs"][0]["functions"]
        for cookie in cookies
    ]
    assert found == [{"*": {"scores": {"memory": "dram"}}}, {}]
