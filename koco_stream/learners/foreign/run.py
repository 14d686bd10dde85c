"""A foreign learner during one run: a process that answers blocks of rows, and ends with this one.

It works in any thread: nothing is done by signal handlers, and a wait for an answer has an end.
"""

import mmap
import os
import signal
import subprocess
import sys
import time
import weakref
from contextlib import ExitStack, suppress
from multiprocessing import Pipe
from threading import Thread
from typing import IO, Any, NamedTuple

import numpy as np

from koco_stream.errors import TimeLimit
from koco_stream.foreign_host import host
from koco_stream.io.files import canonical_json
from koco_stream.streams.rows import Rows, dense_rows
from koco_stream.types import Array

TAIL_BYTES = 4096  # what is kept of what the process writes
LAST_SECONDS = 1.0  # how long a process may take to end after it has closed its connection
# The thread pools of BLAS and OpenMP: a worker has one core, and so has what it starts. Sets of
# strings have the same order in every run.
SETTINGS = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "BLIS_NUM_THREADS": "1",
    "NUMEXPR_NUM_THREADS": "1",
    "PYTHONHASHSEED": "0",
}


class Params(NamedTuple):
    """A `ForeignLearner`, its constructor's arguments, and the most seconds of the run."""

    learner: Any
    arguments: dict[str, Any]
    time_limit: float


class ForeignRun:
    """A foreign learner during one run, in a process of its own.

    The process ends when a round fails, by `close`, or with this object. It cannot be saved: it has
    no arrays, unlike the states of our own learners. `seconds` is the time that the learner took,
    by its process's clock, `rounds` the rounds done, and `progress` (1,) the round that it is at.

    Parameters
    ----------
    params : Params
        The learner.
    n_features : int
        The number of features of its stream.
    seed : int
        The seed of its random numbers.
    dense : bool
        Whether its rows are given to it with all their features, zeros included.
    """

    def __init__(self, params: Params, n_features: int, seed: int, dense: bool) -> None:
        self.params, self.dense, self.rounds, self.seconds = params, dense, 0, 0.0
        self._connection, theirs = Pipe()
        with theirs, open(os.memfd_create("progress"), "wb") as progress:
            progress.truncate(8)
            self.progress = np.frombuffer(mmap.mmap(progress.fileno(), 8), np.int64)
            shared = theirs.fileno(), progress.fileno()
            self._process = subprocess.Popen(
                [sys.executable, "-uP", "-m", host.__name__, *map(str, shared)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                pass_fds=shared,
                # The process imports what this one can import.
                env={
                    **os.environ,
                    **SETTINGS,
                    "PYTHONPATH": ":".join(map(os.path.abspath, sys.path)),
                },
                # A terminal's signals are for the sweep; and the process can be killed with those
                # that it has started.
                start_new_session=True,
            )
        self.close = weakref.finalize(self, _kill, self._process)
        self._tail = bytearray()
        self._reader = Thread(
            target=_keep_tail, args=(self._process.stdout, self._tail), daemon=True
        )
        self._reader.start()
        self._connection.send_bytes(
            canonical_json(
                {
                    "target": params.learner.target,
                    "file": params.learner.file,
                    "arguments": params.arguments,
                    "n_features": n_features,
                    "seed": seed % 2**32,  # random_state and NumPy's generator take no larger ones
                    "dense": dense,
                }
            ).encode()
        )

    def _asdict(self) -> dict[str, Any]:
        return {}

    def advance(self, rows: Rows, labels: Array, predictions: Array) -> int:
        """Learn from a block of rows, filling `predictions` (n,); returns the rounds done.

        There are fewer rounds than rows only if a prediction was not finite; `predictions` then
        contains it, and the process has ended.

        Raises
        ------
        TimeLimit
            The run has reached its time limit.
        ChildProcessError
            The process ended by itself.
        RuntimeError
            The learner raised an exception, or an earlier block has failed.
        """
        if not self.close.alive:
            raise RuntimeError(f"{self.params.learner.__name__} has failed before, or was closed")
        first, last = rows.indptr[0], rows.indptr[-1]
        indices = rows.indices[first:last] if rows.index_stride else rows.indices
        block = rows._replace(
            indptr=rows.indptr - first, values=rows.values[first:last], indices=indices
        )
        if self.dense and rows.index_stride:
            block = dense_rows(block.to_scipy().toarray(), keep_zeros=True)
        with ExitStack() as unless_all_is_well:
            unless_all_is_well.callback(self.close)
            found = self._answer(block.indptr, labels, block.values, block.indices)
            predictions[: found.size] = found
            done = int(np.isfinite(found).sum())
            self.rounds += done
            if done == found.size:
                unless_all_is_well.pop_all()
        return done

    def _answer(self, *block: Array) -> Array:
        """The predictions for a block."""
        started_at = time.monotonic()
        name, limit = self.params.learner.__name__, self.params.time_limit
        try:
            host.send(self._connection, *block)
            while not self._connection.poll(0.1):
                if self._process.poll() is not None:  # what it has started may hold the connection
                    raise EOFError
                if self.seconds + time.monotonic() - started_at > limit:
                    self.seconds += time.monotonic() - started_at
                    raise TimeLimit(
                        f"{name} took longer than time_limit = {limit:g} s ({self._when()}); raise"
                        " time_limit in the sweep file, or learn from fewer rows by max_rows"
                        f"{self._last_words()}"
                    )
            found, seconds, error = host.receive(self._connection, 3)
        except (EOFError, ConnectionError):
            raise ChildProcessError(
                f"the process of {name} {self._how_it_ended()} ({self._when()}){self._last_words()}"
            ) from None
        if error:
            raise RuntimeError(f"{name}, {self._when()}: {error}")
        self.seconds += float(seconds)
        return found

    def _how_it_ended(self) -> str:
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(LAST_SECONDS)
        status = self._process.returncode
        self.close()
        self._reader.join(LAST_SECONDS)  # what it wrote last
        if status is None:
            return "closed its connection"
        if status >= 0:
            return f"ended with exit status {status}"
        names = {int(one): one.name for one in signal.Signals}  # without most real-time signals
        return f"was killed by {names.get(-status, f'signal {-status}')}" + (
            ", as happens when memory is short" * (status == -signal.SIGKILL)
        )

    def _when(self) -> str:
        return f"round {self.progress[0]}" if self.progress[0] else "before its first round"

    def _last_words(self) -> str:
        """The end of a message: what the process has written last, its standard output included."""
        lines = self._tail.decode(errors="replace").strip().splitlines()
        return "; it wrote last: " + "\n".join(lines[-3:]) if lines else ""


def _keep_tail(output: IO[bytes], tail: bytearray) -> None:
    """Read what the process writes to its end, and keep the last of it."""
    with output:
        while piece := os.read(output.fileno(), TAIL_BYTES):
            tail[:] = (tail + piece)[-TAIL_BYTES:]


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Kill a process with those that it has started, and wait for its end."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
