"""Requests to a server, as a browser or a client sends them."""

from __future__ import annotations

import http.client
import json
from typing import Any

from ttcodegen.explorer.server import Server


def request(
    server: Server,
    path: str,
    body: bytes | None = None,
    headers: dict[str, str] | None = None,
    *,
    token: bool = True,
) -> tuple[int, Any, dict[str, str]]:
    headers = dict(headers or {})
    if token:
        headers.setdefault("Authorization", f"Bearer {server.token}")
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
    try:
        connection.request("GET" if body is None else "POST", path, body, headers)
        answer = connection.getresponse()
        content = answer.read()
        try:
            reported = json.loads(content)
        except ValueError:
            reported = content
        named = {name.title(): value for name, value in answer.getheaders()}
        return answer.status, reported, named
    finally:
        connection.close()


def command(**changes: object) -> dict[str, object]:
    return {
        "cmdId": "convert",
        "extensionId": "ttcodegen",
        "modelPath": "",
        "settings": {},
        "deleteAfterConversion": False,
        **changes,
    }


def send(server: Server, content: object) -> tuple[int, Any]:
    headers = {"Content-Type": "application/json"}
    body = json.dumps(content).encode()
    status, reported, _ = request(server, "/apipost/v1/send_command", body, headers)
    return status, reported
