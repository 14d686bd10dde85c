"""A process that answers frames, and ends with this one.

It works in any thread: nothing is done by signal handlers, and every wait has an end.
"""

import mmap
import os
import selectors
import signal
import subprocess
import sys
import time
import weakref
from contextlib import suppress
from typing import Any

from koco_stream.foreign_host.frames import answer_in
from koco_stream.types import Array

MODULE = "koco_stream.foreign_host.host"
TAIL_BYTES = 4096  # what is kept of what the process writes to its standard error
CHUNK = 1 << 20
LOOK_SECONDS = 1.0  # how often a process that says nothing is looked at
LAST_SECONDS = 1.0  # how long a process may take to end after it has closed its output
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
    """A process that answers frames. It is killed by `close`, or with this object.

    `progress` is the number that the process keeps of what it is at; it can be read at any time.
    """

    def __init__(self) -> None:
        # The process imports what this one can import. Its sets of strings have the same order in
        # every run.
        path = os.pathsep.join(os.path.abspath(folder) for folder in sys.path)
        more = {"PYTHONPATH": path, "PYTHONHASHSEED": "0"}
        file = os.memfd_create("progress")
        try:
            os.ftruncate(file, 8)
            self._shared = mmap.mmap(file, 8)
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", MODULE, str(file)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                pass_fds=[file],
                env={**os.environ, **ONE_THREAD, **more},
                # A terminal's signals are for the sweep; and the process can be killed with those
                # that it has started.
                start_new_session=True,
            )
        finally:
            os.close(file)
        self._tail = bytearray()
        self._end = weakref.finalize(self, _kill, self._process)
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            os.set_blocking(pipe.fileno(), False)  # type: ignore[union-attr]

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

    def answer(
        self, request: list[memoryview], seconds: float
    ) -> tuple[dict[str, Any], list[Array]]:
        """Send a frame and return the frame that answers it.

        Raises `TimeoutError` if that takes longer than `seconds`, and `Ended` if the process ends
        before.
        """
        process, received, until = self._process, bytearray(), time.monotonic() + seconds
        unsent = [piece for piece in request if piece.nbytes]
        with selectors.DefaultSelector() as ready:
            ready.register(process.stdin, selectors.EVENT_WRITE)  # type: ignore[arg-type]
            ready.register(process.stdout, selectors.EVENT_READ)  # type: ignore[arg-type]
            ready.register(process.stderr, selectors.EVENT_READ)  # type: ignore[arg-type]
            while (found := answer_in(received)) is None:
                left = until - time.monotonic()
                if left <= 0.0:
                    raise TimeoutError
                events = ready.select(min(left, LOOK_SECONDS))
                if not events and self._has_exited():
                    raise Ended(self._how_it_ended())  # what it has started holds its pipes open
                for key, _ in events:
                    if key.fileobj is process.stdin:
                        _send(key.fd, unsent)
                        if not unsent:
                            ready.unregister(process.stdin)
                    elif not (piece := os.read(key.fd, CHUNK)):
                        if key.fileobj is process.stdout:
                            raise Ended(self._how_it_ended())
                        ready.unregister(key.fileobj)
                    elif key.fileobj is process.stdout:
                        received += piece
                    else:
                        self._tail = (self._tail + piece)[-TAIL_BYTES:]
        return found

    def _has_exited(self) -> bool:
        # The process is not reaped here, so that its number cannot become another's.
        how = os.WEXITED | os.WNOHANG | os.WNOWAIT
        return os.waitid(os.P_PID, self._process.pid, how) is not None

    def _how_it_ended(self) -> str:
        until = time.monotonic() + LAST_SECONDS
        while not (exited := self._has_exited()) and time.monotonic() < until:
            time.sleep(0.01)
        with suppress(BlockingIOError):  # what it wrote last
            while piece := os.read(self._process.stderr.fileno(), CHUNK):  # type: ignore[union-attr]
                self._tail = (self._tail + piece)[-TAIL_BYTES:]
        self.close()
        status = self._process.returncode
        if not exited:
            return "closed its output"
        if status >= 0:
            return f"ended with exit status {status}"
        try:
            return f"was killed by {signal.Signals(-status).name}"
        except ValueError:  # a real-time signal
            return f"was killed by signal {-status}"


def _send(pipe: int, unsent: list[memoryview]) -> None:
    """Write what the pipe takes, and remove it from `unsent`."""
    try:
        written = os.write(pipe, unsent[0][:CHUNK])
    except BrokenPipeError:  # how the process ended is seen at its output
        unsent.clear()
        return
    unsent[0] = unsent[0][written:]
    if not unsent[0].nbytes:
        del unsent[0]


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Kill a process with those that it has started, and wait for its end."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    for pipe in (process.stdin, process.stdout, process.stderr):
        pipe.close()  # type: ignore[union-attr]
