"""HTTP server of Model Explorer's page, the REST interface and uploads."""

from __future__ import annotations

import asyncio
import hmac
import importlib.util
import ipaddress
import json
import mimetypes
import secrets
import socket
import threading
import traceback
from collections import OrderedDict
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from email.message import Message
from functools import partial
from http import HTTPStatus
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, quote, unquote, urlencode, urlsplit

from ttcodegen.explorer.access import FILE_EXTENSIONS, PROJECT, uploaded_file
from ttcodegen.explorer.session import EXTENSION, Session
from ttcodegen.foundation.diagnostics import CompileError

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

# Serves the page of Model Explorer, the interface that it talks to, and pages of our own.
#
# The page is the one of the stock package, with a link to ours (`page`). Its server is not used:
# it reads whatever file a request names, takes uploads of any size and asks other hosts for news.
# This one answers the same requests (source: `server.py` of ai-edge-model-explorer 0.1.34), reads
# files of the session's folders only, answers no page of another origin, and requires a token,
# for other users of the machine reach it as well. It is an ASGI application of starlette, run by
# uvicorn; models are read by worker processes (`requests.py`).

MOST_UPLOADED = 256 << 20
"""Size limit of one upload in bytes."""
MOST_IN_COMMAND = 16 << 20
"""Size limit of one command in bytes."""
_TOKEN_COOKIE = "ttcodegen_explorer"
_SESSION_COOKIE = "ttcodegen_session"
_MOST_SESSIONS = 256
"""Limit on user sessions; least recently used ones are dropped."""
_THREADS = 256
"""Limit on requests that wait for a worker or a file."""
_MOST_AT_ONCE = 16 << 10
"""Size limit of commands that are handled in the event loop's thread."""
_ASKING = 10.0
"""Seconds after which a connection without a request is closed."""
_HEARTBEAT = 5.0
"""Seconds between heartbeats of an idle stream."""
_CLOSING = 0.25
"""Seconds until such a stream notices that the server is closed."""
_PACKAGE = "model_explorer"
_OWN_PAGE = Path(__file__).with_name("page")
_OWN_PATH = "/ttcodegen/"
"""Path of our page."""
_OWN_FILES = {
    "": ("index.html", "text/html; charset=utf-8"),
    "page.js": ("page.js", "text/javascript; charset=utf-8"),
    "code": ("code.html", "text/html; charset=utf-8"),
    "beside": ("beside.html", "text/html; charset=utf-8"),
    "beside.js": ("beside.js", "text/javascript; charset=utf-8"),
    "code.js": ("code.js", "text/javascript; charset=utf-8"),
    "commands.js": ("commands.js", "text/javascript; charset=utf-8"),
    "links.js": ("links.js", "text/javascript; charset=utf-8"),
    "page.css": ("page.css", "text/css; charset=utf-8"),
}
_OWN_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-src 'self'; frame-ancestors 'self'"
)
"""Security policy of our page: only its own scripts, whatever names a model contains."""
_LINK = f"""<a href="{_OWN_PATH}" style="position: fixed; bottom: 4px; left: 4px; z-index: 10;
font: 12px sans-serif; background: #fff; padding: 2px 6px">Decisions</a>
<script src="{_OWN_PATH}links.js" defer></script>"""
"""Link from Model Explorer's page to ours."""
_NO_PACKAGE = """<!doctype html><title>ttcodegen-explorer</title>
<p>The page of Model Explorer is not installed: <code>pip install 'ttcodegen[explorer]'</code>.
The interface is there: <code>POST /apipost/v1/send_command</code>."""


@dataclass(frozen=True)
class Answer:
    """Response to a request."""

    content: bytes
    kind: str = "application/json"
    status: HTTPStatus = HTTPStatus.OK
    policy: str = ""
    """The `Content-Security-Policy`."""
    location: str = ""
    """Target of a redirection."""

    @staticmethod
    def json(content: object, status: HTTPStatus = HTTPStatus.OK) -> Answer:
        """JSON response."""
        text = json.dumps(content, ensure_ascii=False, allow_nan=False)
        return Answer(text.encode("utf-8", "replace"), status=status)

    @staticmethod
    def error(status: HTTPStatus, message: str) -> Answer:
        """Error response."""
        return Answer.json({"graphs": [], "error": message}, status)


class Refused(Exception):
    """Raised for a request that is refused."""

    def __init__(self, status: HTTPStatus, message: str) -> None:
        super().__init__(message)
        self.status = status


def is_loopback(host: str) -> bool:
    """Returns whether a host is a loopback address."""
    if host in ("localhost", ""):
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def web_folder() -> Path | None:
    """Folder of Model Explorer's page, without the slow import of its package; None without it."""
    found = importlib.util.find_spec(_PACKAGE)
    if found is None or found.origin is None:
        return None
    folder = Path(found.origin).parent / "web_app"
    return folder if folder.is_dir() else None


class Server:
    """Server with its sessions, in a thread."""

    def __init__(
        self,
        session: Session,
        host: str = "localhost",
        port: int = 8080,
        *,
        token: str = "",
        without_token: bool = False,
        most_uploaded: int = MOST_UPLOADED,
    ) -> None:
        """
        Args:
            session: runs the commands of clients without a cookie; each browser has a similar
                session.
            host: name or address of the interface.
            port: 0 selects a free one.
            token: required of requests; empty for a random one.
            without_token: accepts all requests of this machine.
            most_uploaded: size limit of one upload in bytes.

        Raises:
            CompileError: if the interface or port is unavailable, the network would have access
                without token, or the packages of the extra `explorer` are missing.
        """
        self.session = session
        self.host = host.strip("[]") or "localhost"
        if without_token and not is_loopback(self.host):
            raise CompileError(
                "a server that is reached over the network needs a token",
                remedy="leave --no-token out, or leave -u at localhost",
            )
        self.token = "" if without_token else token or secrets.token_urlsafe(24)
        self.most_uploaded = most_uploaded
        self.web = web_folder()
        self._users: OrderedDict[str, Session] = OrderedDict()
        self._users_lock = threading.Lock()
        self._closing = threading.Event()
        try:
            import uvicorn

            application = _application(self)
        except ImportError as error:
            raise CompileError(
                f"the package {error.name} is not installed",
                remedy="pip install 'ttcodegen[explorer]'",
            ) from None
        try:
            self._socket = _listen(self.host, port)
        except (OSError, OverflowError) as error:
            reason = getattr(error, "strerror", None) or error
            raise CompileError(
                f"cannot listen on port {port} of '{host}': {reason}",
                remedy="choose another port with -p, or another interface with -u",
            ) from None
        self.port: int = self._socket.getsockname()[1]
        self._uvicorn = uvicorn.Server(
            uvicorn.Config(
                application,
                http=_protocol(),
                lifespan="off",
                log_config=None,
                access_log=False,
                server_header=False,
                ws="none",
                timeout_graceful_shutdown=1,
            )
        )
        self._thread = threading.Thread(
            target=partial(self._uvicorn.run, sockets=[self._socket]), daemon=True
        )

    def start(self) -> None:
        """Starts serving."""
        self._thread.start()

    def wait(self) -> None:
        """Waits until the server is closed."""
        while self._thread.is_alive():
            self._thread.join(1.0)

    def close(self) -> None:
        """Stops the server and its sessions."""
        self._closing.set()
        self._uvicorn.should_exit = True
        if self._thread.is_alive():
            self._thread.join(5.0)
        self._socket.close()
        self.session.close()

    @property
    def closing(self) -> threading.Event:
        """Event that ends streams."""
        return self._closing

    def session_of(self, user: str) -> Session:
        """Session of a browser by its cookie; without one, the shared session."""
        if not user:
            return self.session
        with self._users_lock:
            session = self._users.setdefault(user, self.session.of_another_user())
            self._users.move_to_end(user)
            idle = (name for name, each in self._users.items() if not each.is_executing)
            while len(self._users) > _MOST_SESSIONS and (oldest := next(idle, None)) is not None:
                del self._users[oldest]
                idle = (name for name, each in self._users.items() if not each.is_executing)
            return session

    def address(self, model: Path | None = None, graphs: Sequence[str] = ()) -> str:
        """URL of the page with the token, a model and its shown graphs."""
        query = [f"token={quote(self.token)}"] if self.token else []
        if model is not None:
            query.append(f"data={page_data(model, [], graphs)}")
        return f"{self._origin}/{'?' if query else ''}{'&'.join(query)}"

    @property
    def _origin(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}"

    def own_address(self, model: Path | None = None) -> str:
        """URL of the decisions page with the token and a model, if any."""
        query = {"token": self.token, "model": "" if model is None else str(model)}
        text = urlencode({name: value for name, value in query.items() if value})
        return f"{self._origin}{_OWN_PATH}{'?' if text else ''}{text}"


MOST_PANES = 2
"""Limit on the graphs that the page shows at a time."""


def page_data(model: Path, node_data: list[str], graphs: Sequence[str] = ()) -> str:
    """Page parameters: the model and its adapter, as `.mlir` also has a built-in one.

    Args:
        model: its path.
        node_data: files of numbers that colour its nodes.
        graphs: ids of the shown graphs, one per synchronized pane; by default the source's graph.
            (The page would select the largest.)
    """
    # The page only opens paths with a file ending.
    model = model / PROJECT if model.is_dir() else model
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
        # Without a mapping, this mode synchronizes nodes of the same id.
        content["sync"] = {"mode": "from_computer"}
    if node_data:
        content |= {"nodeData": node_data, "nodeDataTargets": [model.name] * len(node_data)}
    return quote(json.dumps(content))


def _listen(host: str, port: int) -> socket.socket:
    family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    if host == "localhost":
        # Some resolve it to ::1 first, where browsers that try 127.0.0.1 find nothing.
        family, address = socket.AF_INET, ("127.0.0.1", port)
    listening = socket.socket(family, kind, protocol)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen(1024)
    except BaseException:
        listening.close()
        raise
    return listening


def _protocol() -> type[asyncio.Protocol]:
    """uvicorn's HTTP protocol with a timeout for connections without a request.

    They would exhaust the process's descriptors, without needing a token.
    """
    from uvicorn.protocols.http.auto import AutoHTTPProtocol

    class Impatient(AutoHTTPProtocol):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            super().connection_made(transport)
            asyncio.get_running_loop().call_later(_ASKING, self._close_unasked, transport)

        def _close_unasked(self, transport: asyncio.BaseTransport) -> None:
            # uvicorn's protocols create `cycle` with the first request.
            if getattr(self, "cycle", None) is None and not transport.is_closing():
                transport.close()

    return Impatient


def _application(server: Server) -> Starlette:
    from starlette.applications import Starlette
    from starlette.routing import Route

    async def answer(request: Request) -> Response:
        return await _Exchange(server, request).response()

    methods = ["GET", "POST", "HEAD", "PUT", "DELETE", "OPTIONS", "PATCH"]
    return Starlette(routes=[Route("/{path:path}", answer, methods=methods)])


class _Exchange:
    """Request and its response."""

    def __init__(self, server: Server, request: Request) -> None:
        self._server = server
        self._request = request
        self._headers = request.headers
        self._path = request.scope["path"]
        query = parse_qs(request.scope["query_string"].decode("utf-8", "replace"))
        self._query = {name: values[0] for name, values in query.items()}
        self._session = server.session

    async def response(self) -> Response:
        """Computes the response; errors become error responses."""
        from starlette.responses import Response, StreamingResponse

        cookies: dict[str, str] = {}
        is_refused = True
        try:
            self._check_origin()
            cookies = self._check_token()
            self._session = self._session_of_user(cookies)
            if self._request.method == "GET" and self._path == "/apistream/server_director":
                return StreamingResponse(self._heartbeats(), media_type="text/event-stream")
            answer = await self._answer()
            is_refused = False
        except Refused as refused:
            answer = Answer.error(refused.status, str(refused))
        except CompileError as error:
            answer = Answer.error(HTTPStatus.BAD_REQUEST, error.render())
        except Exception as error:
            traceback.print_exc()
            message = f"internal error: {type(error).__name__}: {error}"
            answer = Answer.error(HTTPStatus.INTERNAL_SERVER_ERROR, message)
        headers = {
            "Content-Type": answer.kind,
            "Cache-Control": "no-store",
            "X-Content-Type-Options": "nosniff",
            "Referrer-Policy": "no-referrer",
        }
        if answer.policy:
            headers["Content-Security-Policy"] = answer.policy
        if answer.location:
            headers["Location"] = answer.location
        if is_refused:
            # Unread data of the request would be parsed as the next one.
            headers["Connection"] = "close"
        response = Response(answer.content, answer.status, headers)
        for name, value in cookies.items():
            # A user's token may contain characters that are special in cookies.
            response.set_cookie(name, quote(value, safe=""), httponly=True, samesite="strict")
        return response

    async def _answer(self) -> Answer:
        from anyio import to_thread

        match self._request.method:
            case "GET":
                make = self._get
            case "POST":
                body = await self._body()
                if found := self._kept(body):
                    return found
                make = partial(self._post, body)
            case method:
                message = f"'{method}' is no method of this server"
                raise Refused(HTTPStatus.METHOD_NOT_ALLOWED, message)
        to_thread.current_default_thread_limiter().total_tokens = _THREADS
        return await to_thread.run_sync(make)

    def _kept(self, body: bytes) -> Answer | None:
        """Cached response to a command, computed without another thread; None if there is none."""
        if self._path != "/apipost/v1/send_command" or len(body) > _MOST_AT_ONCE:
            return None
        found = self._session.kept_text(_json(self._headers.get("Content-Type", ""), body))
        return Answer(found) if found else None

    # Who asks

    def _check_origin(self) -> None:
        """Refuses pages of other origins, and host names other than ours (DNS rebinding)."""
        host = self._headers.get("Host", "")
        try:
            name = urlsplit(f"//{host}").hostname or ""
        except ValueError:
            name = host
        if is_loopback(self._server.host) and not is_loopback(name):
            raise Refused(HTTPStatus.FORBIDDEN, f"this server is not '{name}'")
        origin = self._headers.get("Origin")
        if origin not in (None, f"http://{host}"):
            raise Refused(HTTPStatus.FORBIDDEN, "requests of pages of other origins are refused")
        is_of_other_site = self._headers.get("Sec-Fetch-Site") == "cross-site"
        if is_of_other_site and self._request.method != "GET":
            raise Refused(HTTPStatus.FORBIDDEN, "requests of other sites are refused")

    def _check_token(self) -> dict[str, str]:
        """Checks the token, if there is one; returns the cookie that stores it."""
        token = self._server.token
        if not token:
            return {}
        bearer = self._headers.get("Authorization", "").removeprefix("Bearer ").strip()
        asked = self._query.get("token", "")
        kept = unquote(self._request.cookies.get(_TOKEN_COOKIE, ""))
        if not any(_same(given, token) for given in (bearer, asked, kept)):
            message = "the token is missing or wrong: ttcodegen-explorer prints the address with it"
            raise Refused(HTTPStatus.UNAUTHORIZED, message)
        return {_TOKEN_COOKIE: token} if _same(asked, token) else {}

    def _session_of_user(self, cookies: dict[str, str]) -> Session:
        """Session of the requesting browser; a new browser gets one with its first page."""
        user = self._request.cookies.get(_SESSION_COOKIE, "")
        if not user and "text/html" in self._headers.get("Accept", ""):
            user = cookies[_SESSION_COOKIE] = secrets.token_urlsafe(16)
        return self._server.session_of(user)

    # What is asked

    def _get(self) -> Answer:
        match self._path:
            case "/check_health":
                return Answer(b"model_explorer_ok", "text/plain")
            case "/api/v1/get_extensions":
                return Answer.json([EXTENSION_METADATA])
            case "/api/v1/check_new_version":
                nothing = ("version", "runningVersion", "releaseUrl", "desktopAppUrl")
                return Answer.json(dict.fromkeys(nothing, ""))
            case "/api/v1/read_text_file":
                return self._read_text_file()
            case "/api/v1/notify_user_provided_model_path":
                return Answer.json({"status": "ok"})
            case "/api/v1/load_graphs_json" | "/api/v1/load_node_data":
                return Answer.json({})
            case "/ttcodegen/graph":
                return self._graph()
            case path if path.startswith(_OWN_PATH):
                return _own_file(path)
            case path:
                return self._file(path)

    def _post(self, body: bytes) -> Answer:
        kind = self._headers.get("Content-Type", "")
        match self._path:
            case "/apipost/v1/send_command":
                return Answer(self._session.answer_text(_json(kind, body)))
            case "/apipost/v1/upload":
                path = self._session.access.upload(*uploaded_file(kind, body))
                return Answer.json({"path": str(path)})
            case path:
                raise Refused(HTTPStatus.NOT_FOUND, f"there is no '{path}'")

    async def _body(self) -> bytes:
        is_upload = self._path == "/apipost/v1/upload"
        most = self._server.most_uploaded if is_upload else MOST_IN_COMMAND
        length = self._headers.get("Content-Length")
        # With both headers, the one that says nothing of the length counts (RFC 9112, 6.3).
        if length is None or not length.isdecimal() or "Transfer-Encoding" in self._headers:
            raise Refused(HTTPStatus.LENGTH_REQUIRED, "the request does not say how long it is")
        if int(length) > most:
            message = f"the request has {length} bytes; {most} are taken"
            raise Refused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, message)
        return await self._request.body()

    def _read_text_file(self) -> Answer:
        """File of node data, or of graphs as JSON."""
        try:
            path = self._session.access.path(self._query.get("path", ""))
            return Answer.json({"content": path.read_text("utf-8")})
        except CompileError as error:
            return Answer.json({"error": error.render()})
        except (OSError, UnicodeDecodeError) as error:
            return Answer.json({"error": f"error: the file cannot be read: {error}"})

    def _graph(self) -> Answer:
        """Redirects to the graph of a model, coloured by its last execution."""
        path = self._session.access.path(self._query.get("model", ""))
        files = [str(file) for file in self._session.node_data_files(path)]
        to = f"/?data={page_data(path, files)}"
        return Answer(b"", "text/plain", HTTPStatus.FOUND, location=to)

    async def _heartbeats(self) -> AsyncGenerator[bytes]:
        """Stream of server directives, which only has heartbeats."""
        while True:
            for _ in range(round(_HEARTBEAT / _CLOSING)):
                if self._server.closing.is_set():
                    return
                await asyncio.sleep(_CLOSING)
            yield b": heartbeat\n\n"

    def _file(self, path: str) -> Answer:
        """File of Model Explorer's page."""
        web = self._server.web
        name = path.lstrip("/") or "index.html"
        if web is None:
            if name == "index.html":
                return Answer(_NO_PACKAGE.encode(), "text/html; charset=utf-8")
            raise Refused(HTTPStatus.NOT_FOUND, f"there is no '{path}'")
        try:
            file = (web / PurePosixPath(name)).resolve()
            is_there = file.is_relative_to(web.resolve()) and file.is_file()
        except (OSError, ValueError):
            # Not a valid file name.
            is_there, file = False, web
        if not is_there:
            raise Refused(HTTPStatus.NOT_FOUND, f"there is no '{path}'")
        kind = mimetypes.guess_type(file.name)[0] or "application/octet-stream"
        content = file.read_bytes()
        linked = name == "index.html"
        return Answer(content.replace(b"</body>", _LINK.encode() + b"</body>", linked), kind)


def _json(kind: str, body: bytes) -> object:
    message = Message()
    message["Content-Type"] = kind
    if message.get_content_type() != "application/json":
        # A page of another origin can send text without asking first, but no JSON.
        raise Refused(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "a command is application/json")
    try:
        return json.loads(body)
    except (ValueError, RecursionError) as error:
        raise Refused(HTTPStatus.BAD_REQUEST, f"the command is no JSON: {error}") from None


def _own_file(path: str) -> Answer:
    """File of our page."""
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
"""Metadata of the adapter for the page."""


def _same(given: str, token: str) -> bool:
    return hmac.compare_digest(given.encode(), token.encode())
