"""Prefect's settings, which must be made before prefect is imported, and its servers."""

import atexit
import fcntl
import os
import secrets
import socket
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterable, Iterator
from concurrent.futures import wait
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import psutil

from flows.runtime.processes import end_with_driver, in_background
from koco_stream.io.cache import private_folder
from koco_stream.io.files import locked

STOP_SECONDS = 30  # in which a server ends; a page that is open may hold it for one
START_TRIES = 120  # requests of a second each until a server that starts has to answer
ADDRESS, PASSWORD = "PREFECT_API_URL", "PREFECT_API_AUTH_STRING"  # of the server that is used
# Prefect's variable for the addresses of pages; what the user names there is added to its own.
ORIGINS = "PREFECT_SERVER_CORS_ALLOWED_ORIGINS"
NAMES = ("127.0.0.1", "localhost", "[::1]")
REFUSED = f"refused: this is no address of this server; {ORIGINS} names further ones\n"
# Prefect's embedded server has no pages. It starts slowly on a busy machine. Of its few services
# these two would act on the flow runs of others that have the same database.
EMBEDDED = {
    "PREFECT_SERVER_EPHEMERAL_ENABLED": "true",
    "PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS": "120",
    "PREFECT_SERVER_CORS_ALLOWED_ORIGINS": "http://127.0.0.1",
    "PREFECT_SERVER_SERVICES_EVENT_PERSISTER_ENABLED": "false",
    "PREFECT_SERVER_SERVICES_TRIGGERS_ENABLED": "false",
}


def configure_prefect(serving: bool = False) -> None:
    """Set Prefect's environment: home in the cache folder, no telemetry, quiet logs, the server."""
    if find_spec("prefect") is None:
        raise ModuleNotFoundError("there is no prefect", name="prefect")
    settings = {
        "PREFECT_HOME": str(private_folder("prefect")),
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "DO_NOT_TRACK": "1",
        "PREFECT_LOGGING_LEVEL": "CRITICAL",
        "PREFECT_SERVER_LOGGING_LEVEL": "ERROR",
        "PREFECT_LOGGING_TO_API_WHEN_MISSING_FLOW": "ignore",
        "PREFECT_SERVER_API_AUTH_STRING": f"koco:{secrets.token_urlsafe()}",
        "PREFECT_SERVER_CSRF_PROTECTION_ENABLED": "true",
    }
    for name, value in settings.items():
        os.environ[name] = os.environ.get(name) or value  # an empty variable says nothing
    if not os.environ.get(ADDRESS):
        os.environ.pop(ADDRESS, None)
        os.environ[PASSWORD] = os.environ["PREFECT_SERVER_API_AUTH_STRING"]
        os.environ.update({} if serving else served())


class PrefectServer:
    """The server of `koco serve`, on the loopback interface, which ends with this process.

    Its session is its own, so that flows can report their state after Ctrl-C.
    """

    def __init__(self, port: int) -> None:
        try:
            self.socket = socket.create_server(("127.0.0.1", port))
        except OSError:
            self.socket = socket.create_server(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]
        os.environ[ADDRESS] = f"http://127.0.0.1:{self.port}/api"
        self.log = private_folder("prefect") / "server.log"
        with self.log.open("wb") as out:
            self.process = subprocess.Popen(
                [
                    sys.executable,
                    "-P",
                    "-m",
                    "flows.runtime.prefect_server",
                    str(self.socket.fileno()),
                ],
                pass_fds=[self.socket.fileno()],
                stdout=out,
                stderr=out,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )
        atexit.register(self.socket.close)
        atexit.register(self.process.wait, STOP_SECONDS)
        end_with_driver(self.process.pid)

    def wait(self) -> None:
        import httpx  # which Prefect needs

        for _ in range(START_TRIES):
            self.check()
            with suppress(httpx.HTTPError):
                httpx.get(
                    f"{os.environ[ADDRESS]}/health", timeout=1.0, trust_env=False
                ).raise_for_status()
                return
        raise RuntimeError(f"Prefect's server did not start; see its log, {self.log}")

    def check(self) -> None:
        if not goes_on(self.process):
            raise RuntimeError(
                f"Prefect's server has ended or was stopped; see its log, {self.log}"
            )


def goes_on(process: subprocess.Popen[Any]) -> bool:
    return process.poll() is None and psutil.Process(process.pid).status() != psutil.STATUS_STOPPED


def start_embedded() -> str:
    """Start Prefect's own server, which ends with this process and is not hit by Ctrl-C."""
    os.environ.update({**EMBEDDED, **os.environ})
    # its import, which takes seconds, reads the settings
    from prefect.server.api.server import SubprocessASGIServer

    server = SubprocessASGIServer()
    started = in_background(server.start)
    while wait([started], timeout=0.2).not_done:
        if server.server_process and not goes_on(server.server_process):
            server.server_process.kill()
            raise RuntimeError("Prefect's server was killed or stopped while it started")
    started.result()
    end_with_driver(server.server_process.pid)
    return server.api_url


@contextmanager
def announced(port: int) -> Iterator[Path]:
    file = _folder_of_served() / str(port)
    file.touch(0o600)
    with locked(file):
        file.write_text("".join(f"{name}={os.environ[name]}\n" for name in (ADDRESS, PASSWORD)))
        yield file


def _folder_of_served() -> Path:
    return private_folder("prefect", "servers", socket.gethostname())


def served() -> dict[str, str]:
    for path in sorted(_folder_of_served().iterdir()):
        with path.open() as file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return dict(line.split("=", 1) for line in file.read().splitlines())
    return {}


Application = Callable[..., Awaitable[None]]


def guarded(application: Application, origins: Iterable[str]) -> Application:
    """An ASGI application that gets only requests for one of its origins, from its own pages."""
    ours = {origin.lower().encode() for origin in origins if "://" in origin}
    our_hosts = {origin.partition(b"://")[2] for origin in ours}

    async def answer(scope: Any, receive: Any, send: Any) -> None:
        from starlette.responses import PlainTextResponse  # which Prefect needs

        given = [(name.lower(), value.lower()) for name, value in scope.get("headers", ())]
        hosts = {value for name, value in given if name == b"host"}
        pages = {value for name, value in given if name == b"origin"}
        allowed = bool(hosts) and hosts <= our_hosts and pages <= ours
        serves = allowed or scope["type"] == "lifespan"
        await (application if serves else PlainTextResponse(REFUSED, 403))(scope, receive, send)

    return answer


def main() -> None:
    listening = socket.socket(fileno=int(sys.argv[1]))
    _, port = listening.getsockname()
    named = [origin.strip(" /") for origin in os.environ.get(ORIGINS, "").split(",")]
    origins = [*(f"http://{name}:{port}" for name in NAMES), *filter(None, named)]
    os.environ[ORIGINS] = ",".join(origins)
    # imported here, because prefect reads its settings when it is imported
    import uvicorn
    from prefect.server.api.server import create_app

    uvicorn.Server(
        uvicorn.Config(
            guarded(create_app(final=True), origins), log_level="error", timeout_graceful_shutdown=1
        )
    ).run([listening])


if __name__ == "__main__":
    main()
