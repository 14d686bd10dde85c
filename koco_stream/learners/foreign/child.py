"""A process that answers messages, and ends with this one.

It works in any thread: nothing is done by signal handlers, and a wait for an answer has an end.
"""

import mmap
import os
import signal
import subprocess
import sys
import threading
import weakref
from contextlib import suppress
from multiprocessing import Pipe
from multiprocessing.connection import wait
from typing import IO, Any

from koco_stream.foreign_host.frames import Message, receive, send
from koco_stream.types import Array

MODULE = "koco_stream.foreign_host.host"
TAIL_BYTES = 4096  # what is kept of what the process writes
CHUNK = 1 << 20
MOST_SECONDS = 1e6  # that a wait can take
LAST_SECONDS = 1.0  # how long a process may take to end after it has closed its connection
# The thread pools of BLAS and OpenMP. A worker has one core, and so has what it starts.
ONE_THREAD = dict.fromkeys(
    [
        "OMP_NUM_THREADS",
        "OPENBLAS_NUM_THREADS",
        "MKL_NUM_THREADS",
        "BLIS_NUM_THREADS",
        "NUMEXPR_NUM_THREADS",
    ],
    "1",
)


class Ended(Exception):
    """The process ended without an answer; the text says how."""


class Child:
    """A process that answers messages. It is killed by `close`, or with this object.

    `progress` is the number that the process keeps of what it is at; it can be read at any time.
    """

    def __init__(self) -> None:
        # The process imports what this one can import. Its sets of strings have the same order in
        # every run.
        path = os.pathsep.join(os.path.abspath(folder) for folder in sys.path)
        more = {"PYTHONPATH": path, "PYTHONHASHSEED": "0"}
        self._connection, theirs = Pipe()
        numbers = os.memfd_create("progress"), theirs.fileno()
        try:
            os.ftruncate(numbers[0], 8)
            self._shared = mmap.mmap(numbers[0], 8)
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", MODULE, *map(str, numbers)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                pass_fds=numbers,
                env={**os.environ, **ONE_THREAD, **more},
                # A terminal's signals are for the sweep; and the process can be killed with those
                # that it has started.
                start_new_session=True,
            )
        finally:
            os.close(numbers[0])
            theirs.close()
        self._exit = os.pidfd_open(self._process.pid)  # can be read when the process has ended
        self._end = weakref.finalize(self, _kill, self._process, self._exit)
        self._tail = bytearray()
        self._reader = threading.Thread(
            target=_keep_tail, args=(self._process.stdout, self._tail), daemon=True
        )
        self._reader.start()

    @property
    def progress(self) -> int:
        """The number that the process keeps."""
        return int.from_bytes(self._shared[:8], sys.byteorder)

    @property
    def last_words(self) -> str:
        """The last lines that the process has written, its standard output's included."""
        lines = bytes(self._tail).decode(errors="replace").strip().splitlines()
        return "\n".join(lines[-3:])

    def close(self) -> None:
        """Kill the process if it runs, and wait for its end."""
        self._end()

    def answer(self, header: dict[str, Any], arrays: list[Array], seconds: float) -> Message:
        """Send a message and return the one that answers it.

        Raises `TimeoutError` if that takes longer than `seconds`, and `Ended` if the process ends
        before.
        """
        try:
            send(self._connection, header, arrays)
            # what the process has started may hold its connection open
            if not wait([self._connection, self._exit], min(seconds, MOST_SECONDS)):
                raise TimeoutError
            if self._connection.poll():
                return receive(self._connection)
        except (EOFError, ConnectionError):
            pass  # how the process has ended is told below
        raise Ended(self._how_it_ended())

    def _how_it_ended(self) -> str:
        exited = wait([self._exit], LAST_SECONDS)
        self.close()
        self._reader.join(LAST_SECONDS)  # what it wrote last
        status = self._process.returncode
        if not exited:
            return "closed its connection"
        if status >= 0:
            return f"ended with exit status {status}"
        names = {int(one): one.name for one in signal.Signals}  # without most real-time signals
        return f"was killed by {names.get(-status, f'signal {-status}')}"


def _keep_tail(output: IO[bytes], tail: bytearray) -> None:
    """Read what the process writes to its end, and keep the last of it."""
    with output:
        while piece := os.read(output.fileno(), CHUNK):
            tail[:] = (tail + piece)[-TAIL_BYTES:]


def _kill(process: subprocess.Popen[bytes], exit_number: int) -> None:
    """Kill a process with those that it has started, and wait for its end."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    os.close(exit_number)
