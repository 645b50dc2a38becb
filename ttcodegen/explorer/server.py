"""Serves the page of Model Explorer, the interface that it talks to, and pages of our own.

The page is the one of the stock package, with a link to ours (`page`). Its server is not used: it
reads whatever file a request names, takes uploads of any size and asks other hosts for news. This
one answers the same requests (source: `server.py` of ai-edge-model-explorer 0.1.34), reads files of
the session's folders only, answers no page of another origin, and requires a token where it is
reached over the network.
"""

from __future__ import annotations

import hmac
import importlib.util
import ipaddress
import json
import mimetypes
import secrets
import socket
import threading
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from http.cookies import CookieError, SimpleCookie
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path, PurePosixPath
from typing import Any, cast
from urllib.parse import parse_qs, quote, unquote, urlencode, urlsplit

from ttcodegen.diagnostics import CompileError
from ttcodegen.explorer.access import FILE_EXTENSIONS
from ttcodegen.explorer.multipart import uploaded_file
from ttcodegen.explorer.session import EXTENSION, Session

MOST_UPLOADED = 256 << 20
"""Bytes of one upload."""
MOST_IN_COMMAND = 16 << 20
"""Bytes of one command."""
_TOKEN_COOKIE = "ttcodegen_explorer"
_HEARTBEAT = 5.0
"""Seconds between two signs of life of a stream that has nothing to report."""
_PACKAGE = "model_explorer"
_OWN_PAGE = Path(__file__).with_name("page")
_OWN_PATH = "/ttcodegen/"
"""Where our page is."""
_OWN_FILES = {
    "": ("index.html", "text/html; charset=utf-8"),
    "page.js": ("page.js", "text/javascript; charset=utf-8"),
    "code": ("code.html", "text/html; charset=utf-8"),
    "code.js": ("code.js", "text/javascript; charset=utf-8"),
    "links.js": ("links.js", "text/javascript; charset=utf-8"),
    "page.css": ("page.css", "text/css; charset=utf-8"),
}
_OWN_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""Our page runs no script but its own, whatever a model calls its ops."""
_LINK = f"""<a href="{_OWN_PATH}" style="position: fixed; bottom: 4px; left: 4px; z-index: 10;
font: 12px sans-serif; background: #fff; padding: 2px 6px">Decisions</a>
<script src="{_OWN_PATH}links.js" defer></script>"""
"""What the page of Model Explorer gets, to lead to ours."""
_NO_PACKAGE = """<!doctype html><title>ttcodegen-explorer</title>
<p>The page of Model Explorer is not installed: <code>pip install 'ttcodegen[explorer]'</code>.
The interface is there: <code>POST /apipost/v1/send_command</code>."""


@dataclass(frozen=True)
class Answer:
    """What a request gets."""

    content: bytes
    kind: str = "application/json"
    status: HTTPStatus = HTTPStatus.OK
    cookie: str = ""
    policy: str = ""
    """The `Content-Security-Policy`."""
    location: str = ""
    """Where a redirection leads."""

    @staticmethod
    def json(content: object, status: HTTPStatus = HTTPStatus.OK) -> Answer:
        """An answer that is JSON."""
        text = json.dumps(content, ensure_ascii=False, allow_nan=False)
        return Answer(text.encode("utf-8", "replace"), status=status)

    @staticmethod
    def error(status: HTTPStatus, message: str) -> Answer:
        """An answer that says what is wrong."""
        return Answer.json({"graphs": [], "error": message}, status)


class Refused(Exception):
    """A request that is not answered, and why."""

    def __init__(self, status: HTTPStatus, message: str) -> None:
        super().__init__(message)
        self.status = status


def is_loopback(host: str) -> bool:
    """Whether a host is this machine alone."""
    if host in ("localhost", ""):
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def web_folder() -> Path | None:
    """The folder of the page in the package of Model Explorer; None if it is not installed.

    The package itself is not imported: that takes seconds.
    """
    found = importlib.util.find_spec(_PACKAGE)
    if found is None or found.origin is None:
        return None
    folder = Path(found.origin).parent / "web_app"
    return folder if folder.is_dir() else None


class Server:
    """A server with its session, in a thread of its own."""

    def __init__(
        self,
        session: Session,
        host: str = "localhost",
        port: int = 8080,
        *,
        token: str = "",
        most_uploaded: int = MOST_UPLOADED,
    ) -> None:
        """
        Args:
            session: runs the commands.
            host: the name or address of the interface; another one than loopback needs a token.
            port: 0 takes any that is free.
            token: what requests have to have; empty for one that is drawn, or none on loopback.
            most_uploaded: bytes of one upload.

        Raises:
            CompileError: if the interface or the port cannot be had.
        """
        self.session = session
        self.host = host.strip("[]") or "localhost"
        self.token = token or ("" if is_loopback(self.host) else secrets.token_urlsafe(24))
        self.most_uploaded = most_uploaded
        self.web = web_folder()
        self._closing = threading.Event()
        try:
            self._http = _listen(self.host, port, self)
        except (OSError, OverflowError) as error:
            reason = getattr(error, "strerror", None) or error
            raise CompileError(
                f"cannot listen on port {port} of '{host}': {reason}",
                remedy="choose another port with -p, or another interface with -u",
            ) from None
        self.port: int = self._http.server_address[1]
        self._thread = threading.Thread(target=self._http.serve_forever, daemon=True)

    def start(self) -> None:
        """Begins to answer."""
        self._thread.start()

    def wait(self) -> None:
        """Waits until the server is closed."""
        while self._thread.is_alive():
            self._thread.join(1.0)

    def close(self) -> None:
        """Ends the server and its session."""
        self._closing.set()
        if self._thread.is_alive():
            self._http.shutdown()
        self._http.server_close()
        self.session.close()

    @property
    def closing(self) -> threading.Event:
        """Set when streams have to end."""
        return self._closing

    def address(self, model: Path | None = None, graphs: Sequence[str] = ()) -> str:
        """Where the page is: with the token, a model and those of its graphs that are shown."""
        query = [f"token={quote(self.token)}"] if self.token else []
        if model is not None:
            query.append(f"data={page_data(model, [], graphs)}")
        return f"{self._origin}/{'?' if query else ''}{'&'.join(query)}"

    @property
    def _origin(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}"

    def own_address(self, model: Path | None = None) -> str:
        """Where the page of decisions is: with the token and a model if there are any."""
        query = {"token": self.token, "model": "" if model is None else str(model)}
        text = urlencode({name: value for name, value in query.items() if value})
        return f"{self._origin}{_OWN_PATH}{'?' if text else ''}{text}"


MOST_PANES = 2
"""How many graphs the page shows at a time."""


def page_data(model: Path, node_data: list[str], graphs: Sequence[str] = ()) -> str:
    """Which model the page opens, and with which adapter: `.mlir` is also that of one of its own.

    Args:
        model: its path.
        node_data: the files of numbers that colour its nodes.
        graphs: the ids of the graphs that are shown, each in a pane, and follow each other; the
            first graph, that of the source, if there are none. (The page would choose the largest.)
    """
    shown = list(graphs[:MOST_PANES]) or [""]
    panes: list[dict[str, Any]] = [
        {
            "deepestExpandedGroupNodeIds": [],
            "selectedNodeId": "",
            "selectedGraphId": graph,
            "selectedCollectionLabel": model.name,
            "widthFraction": 1 / len(shown),
            "selected": index == 0,
        }
        for index, graph in enumerate(shown)
    ]
    content: dict[str, Any] = {
        "models": [{"url": str(model), "adapterId": EXTENSION}],
        "uiState": {"paneStates": panes},
    }
    if len(shown) > 1:
        # Without a mapping, nodes of the same id follow each other in this mode.
        content["sync"] = {"mode": "from_computer"}
    if node_data:
        content |= {"nodeData": node_data, "nodeDataTargets": [model.name] * len(node_data)}
    return quote(json.dumps(content))


def _listen(host: str, port: int, server: Server) -> ThreadingHTTPServer:
    family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    if host == "localhost":
        # Some resolve it to ::1 first, where browsers that try 127.0.0.1 find nothing.
        family, address = socket.AF_INET, ("127.0.0.1", port)

    class Listener(ThreadingHTTPServer):
        address_family = family
        daemon_threads = True

    class Handler(_Handler):
        owner = server

    return Listener(cast("Any", address)[:2], Handler)


class _Handler(BaseHTTPRequestHandler):
    """Answers one request after the other."""

    owner: Server
    protocol_version = "HTTP/1.1"
    server_version = "ttcodegen-explorer"
    timeout = 600

    def do_GET(self) -> None:
        """Pages, and what they read."""
        self._answer(self._get)

    def do_POST(self) -> None:
        """Commands and uploads."""
        self._answer(self._post)

    def log_message(self, format: str, *args: Any) -> None:
        """Logs nothing: the messages would contain paths and tokens."""

    def _answer(self, make: Callable[[], Answer | None]) -> None:
        try:
            self._check_origin()
            cookie = self._check_token()
            answer = make()
        except Refused as refused:
            # What was not read of the request would be taken for the next one.
            self.close_connection = True
            cookie, answer = "", Answer.error(refused.status, str(refused))
        except CompileError as error:
            cookie, answer = "", Answer.error(HTTPStatus.BAD_REQUEST, error.render())
        except (ConnectionError, TimeoutError):
            raise  # Nobody is left to be answered.
        except Exception as error:
            traceback.print_exc()
            self.close_connection = True
            message = f"internal error: {type(error).__name__}: {error}"
            cookie, answer = "", Answer.error(HTTPStatus.INTERNAL_SERVER_ERROR, message)
        if answer is None:
            return
        self.send_response(answer.status)
        self.send_header("Content-Type", answer.kind)
        self.send_header("Content-Length", str(len(answer.content)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Referrer-Policy", "no-referrer")
        if answer.policy:
            self.send_header("Content-Security-Policy", answer.policy)
        if answer.location:
            self.send_header("Location", answer.location)
        if cookie:
            self.send_header("Set-Cookie", cookie)
        self.end_headers()
        self.wfile.write(answer.content)

    # Who asks

    def _check_origin(self) -> None:
        """No page of another origin, and no name that another host's owner made to mean us."""
        host = self.headers.get("Host", "")
        try:
            name = urlsplit(f"//{host}").hostname or ""
        except ValueError:
            name = host
        if is_loopback(self.owner.host) and not is_loopback(name):
            raise Refused(HTTPStatus.FORBIDDEN, f"this server is not '{name}'")
        origin = self.headers.get("Origin")
        if origin not in (None, f"http://{host}"):
            raise Refused(HTTPStatus.FORBIDDEN, "requests of pages of other origins are refused")
        if self.headers.get("Sec-Fetch-Site") == "cross-site" and self.command != "GET":
            raise Refused(HTTPStatus.FORBIDDEN, "requests of other sites are refused")

    def _check_token(self) -> str:
        """Whether the request has the token, if there is one; the cookie that keeps it."""
        token = self.owner.token
        if not token:
            return ""
        bearer = self.headers.get("Authorization", "").removeprefix("Bearer ").strip()
        (asked,) = parse_qs(urlsplit(self.path).query).get("token", [""])[:1]
        try:
            morsel = SimpleCookie(self.headers.get("Cookie", "")).get(_TOKEN_COOKIE)
        except CookieError:
            morsel = None
        kept = unquote(morsel.value) if morsel is not None else ""
        if not any(_same(given, token) for given in (bearer, asked, kept)):
            message = "the token is missing or wrong: ttcodegen-explorer prints the address with it"
            raise Refused(HTTPStatus.UNAUTHORIZED, message)
        if not _same(asked, token):
            return ""
        # A token that is given may have what would end the cookie.
        return f"{_TOKEN_COOKIE}={quote(token, safe='')}; HttpOnly; SameSite=Strict; Path=/"

    # What is asked

    def _get(self) -> Answer | None:
        url = urlsplit(self.path)
        query = {name: values[0] for name, values in parse_qs(url.query).items()}
        match url.path:
            case "/check_health":
                return Answer(b"model_explorer_ok", "text/plain")
            case "/api/v1/get_extensions":
                return Answer.json([EXTENSION_METADATA])
            case "/api/v1/check_new_version":
                nothing = ("version", "runningVersion", "releaseUrl", "desktopAppUrl")
                return Answer.json(dict.fromkeys(nothing, ""))
            case "/api/v1/read_text_file":
                return self._read_text_file(query)
            case "/api/v1/notify_user_provided_model_path":
                return Answer.json({"status": "ok"})
            case "/api/v1/load_graphs_json" | "/api/v1/load_node_data":
                return Answer.json({})
            case "/apistream/server_director":
                return self._stream()
            case "/ttcodegen/graph":
                return self._graph(query)
            case path if path.startswith(_OWN_PATH):
                return _own_file(path)
            case path:
                return self._file(unquote(path))

    def _post(self) -> Answer:
        match urlsplit(self.path).path:
            case "/apipost/v1/send_command":
                return Answer.json(self.owner.session.answer(self._json()))
            case "/apipost/v1/upload":
                name, content = uploaded_file(
                    self.headers.get("Content-Type", ""), self._body(self.owner.most_uploaded)
                )
                path = self.owner.session.access.upload(name, content)
                return Answer.json({"path": str(path)})
            case path:
                raise Refused(HTTPStatus.NOT_FOUND, f"there is no '{path}'")

    def _body(self, most: int) -> bytes:
        length = self.headers.get("Content-Length")
        if length is None or not length.isdecimal():
            raise Refused(HTTPStatus.LENGTH_REQUIRED, "the request does not say how long it is")
        if int(length) > most:
            message = f"the request has {length} bytes; {most} are taken"
            raise Refused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, message)
        return self.rfile.read(int(length))

    def _json(self) -> object:
        body = self._body(MOST_IN_COMMAND)
        if self.headers.get_content_type() != "application/json":
            # A page of another origin can send text without asking first, but no JSON.
            raise Refused(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "a command is application/json")
        try:
            return json.loads(body)
        except (ValueError, RecursionError) as error:
            raise Refused(HTTPStatus.BAD_REQUEST, f"the command is no JSON: {error}") from None

    def _read_text_file(self, query: Mapping[str, str]) -> Answer:
        """A file of node data, or of graphs as JSON."""
        try:
            path = self.owner.session.access.path(query.get("path", ""))
            return Answer.json({"content": path.read_text("utf-8")})
        except CompileError as error:
            return Answer.json({"error": error.render()})
        except (OSError, UnicodeDecodeError) as error:
            return Answer.json({"error": f"error: the file cannot be read: {error}"})

    def _graph(self, query: Mapping[str, str]) -> Answer:
        """Leads to the graph of a model, coloured by what its last execution found."""
        session = self.owner.session
        path = session.access.path(query.get("model", ""))
        files = [str(file) for file in session.node_data_files(path)]
        to = f"/?data={page_data(path, files)}"
        return Answer(b"", "text/plain", HTTPStatus.FOUND, location=to)

    def _stream(self) -> None:
        """The page listens for directives of its server; there are none."""
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Cache-Control", "no-cache")
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        try:
            while not self.owner.closing.wait(_HEARTBEAT):
                self.wfile.write(b": heartbeat\n\n")
                self.wfile.flush()
        except OSError:
            pass  # The page was closed.

    def _file(self, path: str) -> Answer:
        """A file of the page of Model Explorer."""
        web = self.owner.web
        name = path.lstrip("/") or "index.html"
        if web is None:
            if name == "index.html":
                return Answer(_NO_PACKAGE.encode(), "text/html; charset=utf-8")
            raise Refused(HTTPStatus.NOT_FOUND, f"there is no '{path}'")
        file = (web / PurePosixPath(name)).resolve()
        if not file.is_relative_to(web.resolve()) or not file.is_file():
            raise Refused(HTTPStatus.NOT_FOUND, f"there is no '{path}'")
        kind = mimetypes.guess_type(file.name)[0] or "application/octet-stream"
        content = file.read_bytes()
        if name == "index.html":
            content = content.replace(b"</body>", _LINK.encode() + b"</body>")
        return Answer(content, kind)


def _own_file(path: str) -> Answer:
    """A file of our page; others are not looked for."""
    found = _OWN_FILES.get(path.removeprefix(_OWN_PATH))
    if found is None:
        raise Refused(HTTPStatus.NOT_FOUND, f"there is no '{path}'")
    name, kind = found
    return Answer((_OWN_PAGE / name).read_bytes(), kind, policy=_OWN_POLICY)


EXTENSION_METADATA = {
    "id": EXTENSION,
    "name": "ttcodegen",
    "description": "Models for Tenstorrent cards",
    "source_repo": "",
    "fileExts": list(FILE_EXTENSIONS),
    "type": "adapter",
}
"""What the page gets to know of the adapter."""


def _same(given: str, token: str) -> bool:
    return hmac.compare_digest(given.encode(), token.encode())
