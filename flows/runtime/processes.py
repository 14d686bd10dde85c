"""Processes and signals: what interrupts work and what does not, and which process ends with
which.
"""

import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

SERVER = "KOCO_SERVER_PROCESS"  # the number of the process that serves


LOOK_SECONDS = 0.2


@contextmanager
def shielded() -> Iterator[None]:
    """Processes and threads started within do not receive the terminal's Ctrl-C: the driver does,
    and ends them.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def interrupt(*_: object) -> None:
    """A termination is a Ctrl-C, also where a shell has started this in the background and made it
    deaf to that. For `signal.signal`.
    """
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.raise_signal(signal.SIGINT)


def end_with_driver(pid: int) -> None:
    """Have process `pid` end when this one does, however it does: a shell waits on a pipe that only
    this process holds open.
    """
    words = ["sh", "-c", 'read _; kill "$0" 2>/dev/null', str(pid)]
    _watchers.append(subprocess.Popen(words, stdin=subprocess.PIPE, start_new_session=True))


_watchers: list[subprocess.Popen[bytes]] = []


class OwnSession(subprocess.Popen[Any]):
    """A process that hears of nothing that a terminal, or a batch system, sends to the group of
    this one.
    """

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more, start_new_session=True)
        end_with_driver(self.pid)


def end_with_server() -> None:
    """End this process when the one that serves is gone. Nothing happens where none does."""
    if serving := os.environ.get(SERVER):
        threading.Thread(target=_watch, args=(int(serving),), daemon=True).start()


def _watch(serving: int) -> None:
    while os.getppid() == serving:
        time.sleep(LOOK_SECONDS)
    os.kill(os.getpid(), signal.SIGKILL)
