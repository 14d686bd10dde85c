"""Processes: what interrupts work and what does not, which process ends with which, and locks on a
store that only one of them holds.
"""

import atexit
import fcntl
import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from flows.runtime.console import say
from koco_stream.io.cache import private_folder
from koco_stream.io.files import text_hash
from koco_stream.io.paths import AnyPath, LocalPath, store_path

SERVER = "KOCO_SERVER_PROCESS"  # the number of the process that serves
WATCH_SECONDS = 0.2


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
    """Handle a termination as a Ctrl-C, also where a shell has started this in the background and
    made it deaf to that.
    """
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.raise_signal(signal.SIGINT)


def end_with_driver(pid: int) -> None:
    """Have process `pid` end when this one does, however it does: a shell waits on a pipe that only
    this process holds open.
    """
    words = ["sh", "-c", 'read _; kill "$0" 2>/dev/null', str(pid)]
    watcher = subprocess.Popen(words, stdin=subprocess.PIPE, start_new_session=True)
    atexit.register(watcher.communicate)  # until then it holds the pipe


def end_with_server() -> None:
    """End this process when the one that serves is gone. Nothing happens where none does."""
    if serving := os.environ.get(SERVER):
        threading.Thread(target=_watch, args=(int(serving),), daemon=True).start()


def _watch(serving: int) -> None:
    while os.getppid() == serving:
        time.sleep(WATCH_SECONDS)
    os.kill(os.getpid(), signal.SIGKILL)


@contextmanager
def locked(store: AnyPath, name: str, waiting: str | None) -> Iterator[None]:
    """Hold the store's lock of this name: that of a folder is in it, that of an object store, which
    has none, in this machine's cache folder. If another process has it: say `waiting` and wait, or,
    if that is None, raise `BlockingIOError`.
    """
    root = store_path(store)
    file = (
        root.path / f"{name}.lock"
        if isinstance(root, LocalPath)
        else private_folder("locks") / f"{text_hash(str(root))}-{name}.lock"
    )
    with file.open("a") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if waiting is None:
                raise
            say(waiting)
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
