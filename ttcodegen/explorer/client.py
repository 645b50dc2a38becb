"""Python client of `ttcodegen-explorer`'s REST interface, by the standard library alone.

explorer = TTExplorer(port=8080)
path = explorer.get_model_path(open("model.mlir", "rb"))
explorer.execute_model(path, {"optimize": 2})
"""

from __future__ import annotations

import json
import os
import time
import urllib.error
import urllib.request
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from ttcodegen.explorer.server import Server


class ExplorerError(Exception):
    """Error response of a server."""


class TTExplorer:
    """Session with a server; a server started here ends with `close`."""

    def __init__(
        self,
        port: int = 8080,
        url: str = "http://localhost",
        server: bool = False,
        config: Mapping[str, Any] | None = None,
        token: str = "",
    ) -> None:
        """
        Args:
            port: of the server; with `server`, 0 selects a free one.
            url: of the server, without the port.
            server: whether to start one in a thread.
            config: of that server: `folders`, a list of folders with models (by default the current
                one), and settings of `ttcodegen.explorer.stages`.
            token: required by the server; with `server`, a random one if empty.

        Raises:
            CompileError: if the server cannot be started.
        """
        self._token = token
        self._server: Server | None = None
        if server:
            from ttcodegen.explorer.server import Server
            from ttcodegen.explorer.session import Session
            from ttcodegen.explorer.stages import Settings, read_settings

            given = dict(config or {})
            folders = [Path(folder) for folder in given.pop("folders", ["."])]
            host = url.partition("://")[2] or url
            self._server = Server(
                Session(folders, read_settings(given, Settings())), host, port, token=token
            )
            self._server.start()
            port, self._token = self._server.port, self._server.token
        self.address = f"{url.rstrip('/')}:{port}"

    def close(self) -> None:
        """Stops a server that was started here."""
        if self._server is not None:
            self._server.close()
            self._server = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # The methods of the chapter

    def get_model_path(self, file: IO[Any] | str | os.PathLike[str]) -> str:
        """Uploads a model, an open file or a path; returns its path on the server."""
        if isinstance(file, str | os.PathLike):
            with Path(file).open("rb") as opened:
                return self.get_model_path(opened)
        content: Any = file.read()
        data = content.encode() if isinstance(content, str) else content
        name = Path(str(getattr(file, "name", "model.mlir"))).name.replace('"', "_")
        boundary = uuid.uuid4().hex
        head = (
            f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n'
            "Content-Type: application/octet-stream\r\n\r\n"
        )
        body = head.encode() + data + f"\r\n--{boundary}--\r\n".encode()
        answer = self._post("upload", body, f"multipart/form-data; boundary={boundary}")
        return str(answer["path"])

    def initialize(self, settings: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Description of the target system: `system_desc_path`."""
        return self.command("initialize", "", settings)[0]

    def execute_model(
        self, model_path: str, settings: Mapping[str, Any] | None = None, timeout: float = 3600.0
    ) -> dict[str, Any]:
        """Executes a model, and waits for the end.

        Returns:
            `stdout`, `log_file`, `perf_trace` (path of a CSV file with a line per op) and `summary`
            (total times).

        Raises:
            ExplorerError: if the model does not compile, build or run, or has wrong outputs.
            TimeoutError: if it takes longer than `timeout` seconds.
        """
        self.command("execute", model_path, settings)
        end = time.monotonic() + timeout
        while time.monotonic() < end:
            status = self.status_check(model_path)
            if status["isDone"]:
                if "error" in status:
                    raise ExplorerError(status["error"])
                return status
            time.sleep(0.1)
        raise TimeoutError(f"the execution of '{model_path}' takes longer than {timeout:g} s")

    # The other commands

    def convert(
        self, model_path: str, settings: Mapping[str, Any] | None = None
    ) -> list[dict[str, Any]]:
        """Graphs of a model."""
        return self.command("convert", model_path, settings)

    def status_check(self, model_path: str) -> dict[str, Any]:
        """Progress of an execution."""
        return self.command("status_check", model_path)[0]

    def override(self, model_path: str, overrides: Mapping[str, Any]) -> bool:
        """Overrides ops, by nodes: `named_location` and `attributes`."""
        return bool(self.command("override", model_path, {"overrides": overrides})[0]["success"])

    def overrides(self, model_path: str) -> dict[str, Any]:
        """Current overrides, in the form of `ttcodegen --overrides`."""
        return self.command("overrides", model_path)[0]

    def choices(self, model_path: str, node: str) -> dict[str, Any]:
        """Decision of the optimizer for an op, and legal ones: `chosen`, `fields` and `ways`."""
        return self.command("choices", model_path, {"node": node})[0]

    def node_data(self, model_path: str) -> list[dict[str, Any]]:
        """Results of the last execution, by metric."""
        return self.command("node_data", model_path)

    def command(
        self, name: str, model_path: str, settings: Mapping[str, Any] | None = None
    ) -> list[dict[str, Any]]:
        """Runs a command; returns the answer's `graphs`.

        Raises:
            ExplorerError: if the answer is an error.
        """
        content = {
            "cmdId": name,
            "extensionId": "ttcodegen",
            "modelPath": model_path,
            "settings": dict(settings or {}),
            "deleteAfterConversion": False,
        }
        answer = self._post("send_command", json.dumps(content).encode(), "application/json")
        return answer["graphs"]

    def _post(self, endpoint: str, body: bytes, kind: str) -> dict[str, Any]:
        request = urllib.request.Request(
            f"{self.address}/apipost/v1/{endpoint}", body, {"Content-Type": kind}
        )
        if self._token:
            request.add_header("Authorization", f"Bearer {self._token}")
        try:
            with urllib.request.urlopen(request) as response:
                answer: dict[str, Any] = json.load(response)
        except urllib.error.HTTPError as error:
            with error:
                raise ExplorerError(_error_of(error.read(), str(error))) from None
        except urllib.error.URLError as error:
            raise ExplorerError(f"no server answers at {self.address}: {error.reason}") from None
        if "error" in answer:
            raise ExplorerError(str(answer["error"]))
        return answer


def _error_of(content: bytes, default: str) -> str:
    try:
        return str(json.loads(content)["error"])
    except (ValueError, KeyError, TypeError):
        return default
