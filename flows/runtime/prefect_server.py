"""Prefect's settings and server, which must be configured before prefect is imported."""

import fcntl
import os
import secrets
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from flows.runtime.processes import end_with_driver
from koco_stream.io.cache import private_folder

START_SECONDS = 120.0  # longest wait for the server's first answer
ADDRESS, PASSWORD = "PREFECT_API_URL", "PREFECT_API_AUTH_STRING"  # of the server that is used


def configure_prefect(serving: bool = False) -> None:
    """Set Prefect's environment: home in the cache folder, no telemetry, quiet logs, the server.

    The server is that of PREFECT_API_URL, or that of `koco serve`, unless this process is `serving`
    itself. One that this process or its children start has a random password, which they know by
    their environment. Must be called before prefect is imported. Variables that the user has set
    stay.
    """
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
    """The Prefect server of `koco serve`, on the loopback interface, which ends with this process.

    It must be made after `configure_prefect` and before prefect is imported, which then uses it.
    Nothing is started if PREFECT_API_URL names another server. The server has its own session, so
    that signals from a terminal end the flows first, which can still report their state. This
    process keeps the port, so that nobody else can take the place of the server.

    Parameters
    ----------
    port : int
        Preferred port; another one is used if it is taken.
    """

    def __init__(self, port: int) -> None:
        self.process: subprocess.Popen[bytes] | None = None
        self.log = private_folder("prefect") / "server.log"
        if os.environ.get(ADDRESS):
            return
        try:
            self.socket = socket.create_server(("127.0.0.1", port))
        except OSError:
            self.socket = socket.create_server(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]
        self.pages = f"http://127.0.0.1:{self.port}"
        os.environ[ADDRESS] = f"{self.pages}/api"
        number = self.socket.fileno()
        with self.log.open("wb") as out:
            self.process = subprocess.Popen(
                [sys.executable, "-P", "-m", "flows.runtime.guarded", str(number)],
                pass_fds=[number],
                stdout=out,
                stderr=out,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )
        end_with_driver(self.process.pid)

    def wait(self) -> None:
        """Wait until the server answers. Raises `RuntimeError` if it ends, or takes too long."""
        until = time.monotonic() + START_SECONDS
        while self.process and not self._answers():
            self.check()
            if time.monotonic() > until:
                raise RuntimeError(f"Prefect's server did not start; see its log, {self.log}")
            time.sleep(0.1)

    def _answers(self) -> bool:
        import httpx  # which Prefect needs

        try:
            return httpx.get(f"{self.pages}/api/health", trust_env=False).status_code == 200
        except httpx.HTTPError:
            return False

    def check(self) -> None:
        """Raise `RuntimeError` if the server has ended."""
        if self.process and self.process.poll() is not None:
            raise RuntimeError(f"Prefect's server has ended; see its log, {self.log}")


@contextmanager
def announced(port: int) -> Iterator[Path]:
    """Context in which other processes of this user find the server at this port (`served`).

    Yields the file with its address and password, which this user alone can read.
    """
    file = _folder_of_served() / str(port)
    file.touch(0o600)
    with file.open("r+") as note:
        fcntl.flock(note, fcntl.LOCK_EX)
        note.truncate(0)
        note.writelines(f"{name}={os.environ[name]}\n" for name in (ADDRESS, PASSWORD))
        note.flush()
        yield file


def _folder_of_served() -> Path:
    return private_folder("prefect", "servers", socket.gethostname())


def served() -> dict[str, str]:
    """Address and password of the server that `koco serve` has, as Prefect's environment variables.

    Empty if there is none. While there is one, its process holds a lock on the file with them.
    """
    for path in sorted(_folder_of_served().iterdir()):
        with path.open() as file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return dict(line.split("=", 1) for line in file.read().splitlines())
    return {}
