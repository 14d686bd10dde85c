"""Prefect's settings and server, which must be configured before prefect is imported."""

import atexit
import fcntl
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx

from flows.runtime.processes import end_with_driver
from koco_stream.io.cache import private_folder

if TYPE_CHECKING:
    from prefect.states import State

START_SECONDS = 120.0  # longest wait for the server's first answer
END_SECONDS = 30.0  # longest wait for its end before it is killed
WRITTEN_WITHIN = 60.0  # longest wait from the end of a flow run to the last event that is written
ADDRESS, PASSWORD = "PREFECT_API_URL", "PREFECT_API_AUTH_STRING"  # of the server that is used
# What the server of a single flow run does not do: it would act on the runs of others that have the
# same database. It does write the task runs, which come to it as events.
SERVICES = (
    *("CANCELLATION_CLEANUP", "CLEANUP_RECONCILER", "EVENT_PERSISTER", "FOREMAN"),
    *("LATE_RUNS", "PAUSE_EXPIRATIONS", "REPOSSESSOR", "SCHEDULER", "TRIGGERS"),
)


def configure_prefect() -> None:
    """Set Prefect's environment: home in the cache folder, no telemetry, quiet logs.

    A server that this process or its children start has a random password, which they know by their
    environment. Must be called before prefect is imported. Variables that the user has set stay.
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


class PrefectServer:
    """A Prefect server on the loopback interface that ends with this process.

    It must be made after `configure_prefect` and before prefect is imported, which then uses it. If
    PREFECT_API_URL names another server, or `koco serve` has one, none is started.

    Parameters
    ----------
    port : int or None
        Preferred port of the server of `koco serve`; another one is used if it is taken. None for
        the server of one flow run.
    """

    def __init__(self, port: int | None = None) -> None:
        self.process: subprocess.Popen[bytes] | None = None
        self.socket: socket.socket | None = None
        self.log = private_folder("prefect") / "server.log"
        if port is None and not os.environ.get(ADDRESS):
            os.environ.update(served())
        if not os.environ.get(ADDRESS):  # an empty variable names no server
            self.socket = listening(port or 0)
            self.port = self.socket.getsockname()[1]
            self.pages = f"http://127.0.0.1:{self.port}"
            os.environ[ADDRESS] = f"{self.pages}/api"
            os.environ[PASSWORD] = os.environ["PREFECT_SERVER_API_AUTH_STRING"]

    def start_for_one_flow(self) -> None:
        """Start the server for a flow run of this process: without pages and schedules."""
        for name in ("UI", *(f"SERVICES_{service}" for service in SERVICES)):
            os.environ.setdefault(f"PREFECT_SERVER_{name}_ENABLED", "false")
        self.start()
        if self.socket:  # when the server is gone, requests fail at once
            self.socket.close()

    def start(self) -> None:
        """Start the server.

        Nothing happens if PREFECT_API_URL names another server. The server has its own session, so
        that signals from a terminal or batch system end the flow first, which can still report its
        state. This process keeps the port, so that nobody else can take the place of the server.
        """
        if self.socket is None:
            return
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
        # prefect is imported later, so its own exit handlers run before this one
        atexit.register(_end, self.process)

    def wait(self, patience: float = START_SECONDS) -> None:
        """Wait until the server answers.

        Raises `RuntimeError` if it ends or takes longer than `patience` seconds.
        """
        until = time.monotonic() + patience
        while self.process and not self._answers():
            if self.process.poll() is not None or time.monotonic() > until:
                raise RuntimeError(f"Prefect's server did not start; see its log, {self.log}")
            time.sleep(0.1)

    def wait_until_written(self, tasks: "Sequence[State[Any]]") -> None:
        """Wait until the server, which ends with this process, has these final states of tasks.

        They reach it as events, some time after a task has ended.
        """
        if self.process is None:
            return
        from prefect.client.orchestration import get_client
        from prefect.exceptions import ObjectNotFound

        until = time.monotonic() + WRITTEN_WITHIN
        with get_client(sync_client=True) as client:
            for ended in tasks:
                written = None
                while (written is None or not written.is_final()) and time.monotonic() < until:
                    with suppress(ObjectNotFound):
                        written = client.read_task_run(ended.state_details.task_run_id).state
                    time.sleep(0.1)

    def _answers(self) -> bool:
        try:
            return httpx.get(f"{self.pages}/api/health", trust_env=False).status_code == 200
        except httpx.HTTPError:
            return False

    @contextmanager
    def announced(self) -> Iterator[Path]:
        """Context in which other processes of this user find this server (`served`).

        Yields the file with its address and password, which this user alone can read.
        """
        file = _folder_of_served() / str(self.port)
        file.touch(0o600)
        with file.open("r+") as note:
            fcntl.flock(note, fcntl.LOCK_EX)
            note.truncate(0)
            note.writelines(f"{name}={os.environ[name]}\n" for name in (ADDRESS, PASSWORD))
            note.flush()
            yield file

    def check(self) -> None:
        """Raise `RuntimeError` if the server has ended."""
        if self.process and self.process.poll() is not None:
            raise RuntimeError(f"Prefect's server has ended; see its log, {self.log}")


def listening(wished: int) -> socket.socket:
    """A socket that listens on the loopback interface, at the port `wished` if it is free."""
    try:
        return socket.create_server(("127.0.0.1", wished))
    except OSError:
        return socket.create_server(("127.0.0.1", 0))


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


def _end(server: subprocess.Popen[bytes]) -> None:
    server.terminate()
    server.send_signal(signal.SIGCONT)  # a stopped process would not see its end
    try:
        server.wait(END_SECONDS)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()
