"""Messages on stderr, signals, work in the background, processes that end with others, locks."""

import atexit
import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager
from pathlib import Path
from textwrap import TextWrapper
from typing import Any, TextIO, TypeVar

from koco_stream.io import files
from koco_stream.io.cache import private_folder

WIDTH = 100  # columns of a line
T = TypeVar("T")
SERVER = "KOCO_SERVER_PROCESS"  # environment variable of what koco serve has started
PARENT_DEATH_SIGNAL = 1  # Linux's PR_SET_PDEATHSIG


def say(message: str) -> None:
    print(wrapped(message), file=sys.stderr, flush=True)


def wrapped(message: str, stream: TextIO | None = None) -> str:
    """The message in lines of at most `WIDTH` columns; in a log its first line stays one."""
    message = "".join(one if one.isprintable() or one == "\n" else " " for one in message)
    indented = len(message) - len(message.lstrip())
    wrap = TextWrapper(
        WIDTH,
        break_on_hyphens=False,
        break_long_words=False,
        subsequent_indent=" " * (indented + 4),
    )
    first, *lines = message.split("\n")
    kept = [first] if not (stream or sys.stderr).isatty() else wrap.wrap(first) or [first]
    return "\n".join([*kept, *("\n".join(wrap.wrap(line)) for line in lines)])


@contextmanager
def shielded() -> Iterator[None]:
    """Context in which processes and threads are started that do not receive Ctrl-C."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def in_background(work: Callable[[], T]) -> Future[T]:
    """The result of `work` in a thread; what it starts does not receive Ctrl-C."""
    future = Future[T]()
    with shielded():
        threading.Thread(target=come_to, args=(future, work), daemon=True).start()
    return future


def come_to(future: Future[T], work: Callable[[], T]) -> None:
    try:
        future.set_result(work())
    except BaseException as error:  # raised where the result is asked for
        future.set_exception(error)


def seconds_since_start() -> float:
    """Seconds since this process was started, by a clock that does not jump."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) - (
        (start_of(os.getpid()) or 0) / os.sysconf("SC_CLK_TCK")
    )


def start_of(pid: int) -> int | None:
    """When process `pid` was started, in the kernel's ticks; None if it has ended."""
    try:
        after_name = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return None if after_name[0] in "ZX" else int(after_name[19])


def interrupt(*_: object) -> None:
    """Signal handler that treats a termination like Ctrl-C, even if a shell has SIGINT ignored."""
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.raise_signal(signal.SIGINT)


def end_with_driver(pid: int) -> None:
    """Make process `pid` end when this process ends, in any way."""
    watcher = subprocess.Popen(
        ["sh", "-c", 'read _; kill "$0" && kill -CONT "$0"', str(pid)],
        stdin=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    atexit.register(watcher.communicate)  # keeps the pipe open until this process ends


def end_with_server() -> None:
    """Let the kernel kill this process when `koco serve`, which has started it, ends."""
    if SERVER in os.environ:
        ctypes.CDLL(None).prctl(PARENT_DEATH_SIGNAL, signal.SIGKILL)


@contextmanager
def locked(store: Any, name: str, busy: str | Exception) -> Iterator[None]:
    """Hold a named lock of a store. If another process has it, raise `busy`, or say it and wait.

    For an object store it holds for this machine only.
    """
    from koco_stream.io.paths import store_path  # slow: it imports Arrow

    root = store_path(store)
    file = (
        root.path / f"{name}.lock"
        if root.is_local
        else private_folder("locks") / f"{files.text_hash(str(root))}-{name}.lock"
    )
    with ExitStack() as stack:
        try:
            stack.enter_context(files.locked(file, wait=False))
        except BlockingIOError:
            if isinstance(busy, Exception):
                raise busy from None
            say(busy)
            stack.enter_context(files.locked(file))
        yield
