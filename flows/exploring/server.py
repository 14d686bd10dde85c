"""The server of `koco explore`: one page, its files, and answers, to who has its address.

It listens on the loopback interface alone. Its addresses begin with a random word that other users
of the machine, and pages in a browser, do not know. It only reads.
"""

import json
import secrets
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from socket import SHUT_RDWR
from threading import Event, Thread
from time import monotonic
from typing import Any, Self
from urllib.parse import parse_qs, unquote, urlsplit

from flows.exploring.answers import Answer, Explorer
from flows.exploring.chosen import LISTS, Chosen
from koco_stream.errors import WrongInput
from koco_stream.io.paths import AnyPath

HOSTS = ("127.0.0.1", "localhost")  # what a browser may call this server
# Plotly writes styles into the page. Scripts, and all that could send something, are only ours.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; connect-src 'self';"
    " img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",  # the address has the token
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
}
KINDS = {".html": "text/html", ".css": "text/css", ".js": "text/javascript"}
PAGE_FILES = ("page.css", "page.js", "drawing.js", "summary.js")
PAGE = {
    "": "exploring/page/index.html",
    "style.css": "templates/style.css",
    **{name: f"exploring/page/{name}" for name in PAGE_FILES},
}
PLOTLY = "plotly.min.js"
LEAST_PAUSE = 1.0  # seconds between looking at the store
LONGEST_SLEEP = 0.1  # seconds until an interrupt is noticed, at most
SHARE = 0.1  # of the time is spent reading the store, at most
Query = dict[str, list[str]]


class Server(ThreadingHTTPServer):
    """Serves the page of a store on a free port, or a given one, while its block runs.

    Threads do all the work. An interrupt reaches the main thread alone, which only waits, so that
    it never arrives in the middle of an answer.

    Attributes
    ----------
    url : str
        The page's address, with the token.
    """

    daemon_threads = False  # they are waited for: DuckDB complains of threads that are left

    def __init__(self, store: AnyPath, port: int = 0) -> None:
        self.explorer = Explorer(store)
        self.token = secrets.token_urlsafe(24)
        self._closed = Event()
        self._open = set[Any]()  # sockets of connections
        super().__init__(("127.0.0.1", port), Handler)
        self.url = f"http://127.0.0.1:{self.server_port}/{self.token}/"
        self._loops = [Thread(target=loop) for loop in (self._follow, self._serve)]

    def __enter__(self) -> Self:
        """Begin to answer and to look at the store."""
        for thread in self._loops:
            thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        """Stop to listen and to look at the store; connections that are open end."""
        self._closed.set()
        self.shutdown()
        for thread in self._loops:
            thread.join()
        for connection in tuple(self._open):
            with suppress(OSError):
                connection.shutdown(SHUT_RDWR)
        self.server_close()

    def wait(self) -> None:
        """Wait until an interrupt: Ctrl-C is a `KeyboardInterrupt` here."""
        # A signal that comes just before a thread falls asleep does not wake it.
        while not self._closed.wait(LONGEST_SLEEP):
            pass

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer the requests of a connection in a thread."""
        self._open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        """End a connection."""
        self._open.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say what went wrong, unless a browser has only gone away."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)

    def _serve(self) -> None:
        self.serve_forever(poll_interval=LONGEST_SLEEP)

    def _follow(self) -> None:
        """Read what is new in the store, again and again."""
        pause = LEAST_PAUSE
        while not self._closed.wait(pause):
            begun = monotonic()
            try:
                self.explorer.refresh()
            except (WrongInput, OSError) as error:
                print(f"koco explore: {error}", file=sys.stderr)
            pause = max(LEAST_PAUSE, (monotonic() - begun) / SHARE)


class Handler(BaseHTTPRequestHandler):
    """Answers one request; those without the token, or for another host's name, are refused."""

    server: Server
    server_version, sys_version = "koco", ""
    protocol_version = "HTTP/1.1"
    timeout = 60.0

    def do_GET(self) -> None:
        """Send a file of the page, or an answer."""
        # A name that somebody lets point to this machine is not ours, so that no page reads this.
        name = (self.headers.get("Host") or "").rpartition(":")[0] or self.headers.get("Host")
        asked = urlsplit(self.path)
        token, _, path = asked.path.removeprefix("/").partition("/")
        right = secrets.compare_digest(unquote(token).encode(), self.server.token.encode())
        if name not in HOSTS or not right:
            self._send(HTTPStatus.FORBIDDEN, b"koco explore: use the address that it printed\n")
        elif path in PAGE or path == PLOTLY:
            file = plotly_file() if path == PLOTLY else files("flows") / PAGE[path]
            kind = KINDS[Path(file.name).suffix]
            self._send(HTTPStatus.OK, file.read_bytes(), kind)
        elif path in ANSWERS:
            self._answer(ANSWERS[path], parse_qs(asked.query, keep_blank_values=True))
        else:
            self._send(HTTPStatus.NOT_FOUND, b"koco explore: there is no such page\n")

    def _answer(self, answer: Callable[[Explorer, Query], Answer], query: Query) -> None:
        status, found = HTTPStatus.OK, dict[str, object]()
        try:
            found = answer(self.server.explorer, query)
        except (WrongInput, OSError) as error:
            status, found = HTTPStatus.BAD_REQUEST, {"error": str(error)}
        except Exception as error:
            traceback.print_exc()
            words = f"{type(error).__name__}: {error}".splitlines()[0]
            status, found = HTTPStatus.INTERNAL_SERVER_ERROR, {"error": words}
        self._send(status, json.dumps(found, allow_nan=False).encode(), "application/json")

    def _send(self, status: HTTPStatus, content: bytes, kind: str = "text/plain") -> None:
        self.send_response(status)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(content)))
        for name, value in HEADERS.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        """Requests are not written down: their addresses have the token."""


def plotly_file() -> Path:
    """The file of Plotly's script in its package, which is not imported: that takes a second.

    Raises `ModuleNotFoundError` if it is not installed, and `RuntimeError` without the file.
    """
    spec = find_spec("plotly")
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError("No module named 'plotly'", name="plotly")
    file = Path(spec.origin).parent / "package_data" / PLOTLY
    if not file.is_file():
        raise RuntimeError(f"{file} is missing: pip install --force-reinstall plotly")
    return file


def _chosen(query: Query) -> Chosen:
    picked = tuple(tuple(query.get(name, [])) for name in LISTS)
    return Chosen(picked, _one(query, "where", ""))


def _one(query: Query, name: str, default: str) -> str:
    return query.get(name, [default])[-1]


def _number(query: Query, name: str, default: int) -> int:
    text = _one(query, name, str(default))
    if not text.isascii() or not text.isdigit() or len(text) > 9:
        raise WrongInput(f"{name} is {text!r}; it must be a number")
    return int(text)


def _runs(explorer: Explorer, query: Query) -> Answer:
    return explorer.runs(
        _chosen(query),
        query.get("column", []),
        _one(query, "sort", "run_id"),
        _one(query, "descending", "") == "yes",
        _number(query, "offset", 0),
        _number(query, "limit", 50),
    )


def _parallel(explorer: Explorer, query: Query) -> Answer:
    return explorer.parallel(
        _chosen(query), query.get("axis", []), _one(query, "colour", "learner")
    )


ANSWERS: dict[str, Callable[[Explorer, Query], Answer]] = {
    "stamp": lambda explorer, _: explorer.stamp(),
    "overview": lambda explorer, _: explorer.overview(),
    "summary": lambda explorer, query: explorer.summary(_chosen(query)),
    "runs": _runs,
    "parallel": _parallel,
    "curves": lambda explorer, query: explorer.curves(query.get("run", [])),
}
