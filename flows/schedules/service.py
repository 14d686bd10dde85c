"""koco serve: nightly sweeps at planned times, until it is stopped.

What is done when, and why it is done once, is in `flows.schedules.deployments`; here is what it
takes: the locks, Prefect's server, the signals.
"""

import asyncio
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

import httpx

from flows.runtime.console import say
from flows.runtime.locks import locked
from flows.runtime.prefect_server import configure_prefect
from flows.runtime.processes import SERVER, end_with_driver, interrupt, shielded
from flows.schedules.file import check_crons, read_schedules
from koco_stream.io.cache import private_folder
from storage.store import open_store

PORT = 4200  # Prefect's usual one; another, if it is taken
START_SECONDS = 120.0
ENDED = 30.0  # seconds for the server to end by itself


def serve_schedules(file: Path, store: str) -> None:
    """Serve the schedules of a file until this process is stopped. Raises `WrongInput` as
    `read_schedules` does, `RuntimeError` if another process serves one of the stores, or if
    Prefect's server does not start or ends.
    """
    configure_prefect()
    os.environ[SERVER] = str(os.getpid())
    schedules = read_schedules(file, store)
    port = None if os.environ.get("PREFECT_API_URL") else free_port()
    if port:
        os.environ["PREFECT_API_URL"] = (
            f"http://127.0.0.1:{port}/api"  # prefect reads it when it is imported
        )
    check_crons(schedules)
    with ExitStack() as stack:
        for path in sorted({schedule.store for schedule in schedules}):
            open_store(path)
            try:
                stack.enter_context(locked(path, "serve", None))
            except BlockingIOError:
                raise RuntimeError(f"another koco serve serves {path}; stop it first") from None
        server = stack.enter_context(own_server(port)) if port else None
        if port:
            say(f"Prefect's pages: http://127.0.0.1:{port}")
        signal.signal(signal.SIGTERM, interrupt)
        from flows.schedules.deployments import (
            serve,
        )  # only now: it imports prefect, which reads its settings then

        asyncio.run(serve(schedules, partial(_check, server), interrupt))


def free_port() -> int:
    """Prefect's usual port, or a free one."""
    for port in (PORT, 0):
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return int(probe.getsockname()[1])
    raise AssertionError


@contextmanager
def own_server(port: int) -> Iterator[subprocess.Popen[bytes]]:
    """Prefect's server on the loopback interface, ended at the end, and when this process is
    killed. Raises `RuntimeError` if it does not start.
    """
    log = private_folder("prefect") / "server.log"
    words = [
        sys.executable,
        "-m",
        "prefect",
        "server",
        "start",
        "--host",
        "127.0.0.1",
        "--port",
        str(port),
    ]
    with log.open("wb") as out, shielded():
        server = subprocess.Popen(words, stdout=out, stderr=out, stdin=subprocess.DEVNULL)
        end_with_driver(server.pid)
    try:
        until = time.monotonic() + START_SECONDS
        while not _answers(port):
            if server.poll() is not None or time.monotonic() > until:
                raise RuntimeError(f"Prefect's server did not start; what it said is in {log}")
            time.sleep(0.1)
        yield server
    finally:
        server.terminate()
        try:
            server.wait(ENDED)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()


def _answers(port: int) -> bool:
    try:
        return httpx.get(f"http://127.0.0.1:{port}/api/health", trust_env=False).status_code == 200
    except httpx.HTTPError:
        return False


def _check(server: subprocess.Popen[bytes] | None) -> None:
    """Raise `RuntimeError` if the server that was started here has ended."""
    if server is not None and server.poll() is not None:
        raise RuntimeError(
            "Prefect's server has ended; what it said is in"
            f" {private_folder('prefect') / 'server.log'}"
        )
