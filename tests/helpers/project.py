"""The folder of this project, processes that run its code, and programs that serve."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

ROOT = Path(__file__).parents[2]
SWEEPS = ROOT / "flows" / "sweeps"
PATIENCE = 600.0  # seconds, on a machine that does other things too
Found = TypeVar("Found")


def environment(**more: str) -> dict[str, str]:
    """This process's environment, for a process that imports from this project's folder."""
    return {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", **more}


def command(*words: object) -> list[str]:
    """The command line `koco WORDS` of this project."""
    return [sys.executable, "-m", "flows", *map(str, words)]


def free_ports(n: int) -> list[int]:
    """Ports of the loopback interface that nobody listens on, all different."""
    with ExitStack() as stack:
        return [
            stack.enter_context(socket.create_server(("127.0.0.1", 0))).getsockname()[1]
            for _ in range(n)
        ]


@contextmanager
def begun(*words: object, **more: str) -> Iterator[subprocess.Popen[str]]:
    """`koco WORDS` in a process of its own, what it says to be read; interrupted if the block
    leaves before it has ended.
    """
    process = subprocess.Popen(
        command(*words),
        env=environment(**more),
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            end(process, signal.SIGINT, 60.0)
            process.communicate()


def wait_until(
    so: Callable[[], Found], what: str, patience: float = PATIENCE, between: float = 0.003
) -> Found:
    """Look again and again until it is so; what it was then. Fails if it takes too long."""
    until = time.monotonic() + patience
    while not (found := so()):
        assert time.monotonic() < until, what
        time.sleep(between)
    return found


def wait_ready(process: subprocess.Popen[bytes], log: Path, ready: Callable[[], object]) -> None:
    """Wait until a program is ready. Raises `RuntimeError` if it ends before, or takes a minute."""
    until = time.monotonic() + 60.0
    while not ready():
        if process.poll() is not None or time.monotonic() > until:
            raise RuntimeError(f"{process.args}: {log.read_text(errors='replace')[-3000:]}")
        time.sleep(0.05)


def end(process: subprocess.Popen[Any], by: int = signal.SIGKILL, patience: float = 10.0) -> None:
    """End a process by this signal, and what it leaves in its session by SIGKILL."""
    process.send_signal(by)
    with suppress(subprocess.TimeoutExpired):
        process.wait(patience)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


@contextmanager
def running(
    words: Sequence[object],
    log: Path,
    ready: Callable[[], object],
    by: int = signal.SIGKILL,
    **more: str,
) -> Iterator[None]:
    """A program in a session of its own, from when it is ready until it is ended by this signal.
    Raises `RuntimeError` if it ends before, or takes long.
    """
    with log.open("wb") as out:
        process = subprocess.Popen(
            list(map(str, words)),
            env=environment(**more),
            cwd=log.parent,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        wait_ready(process, log, ready)
        yield
    finally:
        end(process, by)
