"""A foreign learner during one run: its process, and what is said when that fails."""

import time
from typing import Any, NamedTuple

import numpy as np

from koco_stream.errors import TimeLimit
from koco_stream.learners.foreign.child import Child, Ended
from koco_stream.streams.rows import Rows
from koco_stream.types import Array


class Params(NamedTuple):
    """What the process of a run needs to know.

    target: the class. arguments: of its constructor. time_limit: the most seconds of the run.
    file: that of the target's module, or an empty text for one of an installed package.
    """

    name: str
    target: str
    arguments: dict[str, Any]
    time_limit: float
    file: str = ""


class ForeignRun:
    """A foreign learner during one run, in a process that starts with the first rows.

    The process ends when a round fails, by `close`, or with this object. It cannot be saved: it has
    no arrays, unlike the states of our own learners. `seconds` is the time that the learner took,
    by its process's clock, and `rounds` the rounds done.

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

    _fields = ()

    def __init__(self, params: Params, n_features: int, seed: int, dense: bool) -> None:
        self.params, self.n_features, self.seed, self.dense = params, n_features, seed, dense
        self.rounds, self.seconds = 0, 0.0
        self._child: Child | None = None
        self._is_closed = False

    def _asdict(self) -> dict[str, Any]:
        return {}

    def close(self) -> None:
        """End the process. No more rows can be learnt."""
        self._is_closed = True
        if self._child is not None:
            self._child.close()

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
        if labels.size == 0:
            return 0
        if self._is_closed:
            raise RuntimeError(f"{self.params.name} has failed before, or was closed")
        of_run = {"seed": self.seed, "n_features": self.n_features, "dense": self.dense}
        try:
            if self._child is None:
                self._child = Child()
                self._ask(self._child, {**self.params._asdict(), **of_run}, [])
            sparse = {"sparse": bool(rows.index_stride)}
            found = self._ask(self._child, sparse, _arrays(rows, labels))
        except BaseException:
            self.close()
            raise
        predictions[: found.size] = found
        done = int(found.size)
        if not np.isfinite(found[-1]):
            done -= 1
            self.close()
        self.rounds += done
        return done

    def _ask(self, child: Child, header: dict[str, Any], arrays: list[Array]) -> Array:
        """Send a request, and return the array in its answer."""
        started_at = time.monotonic()
        try:
            answer, found = child.answer(header, arrays, self.params.time_limit - self.seconds)
            if "error" in answer:
                raise RuntimeError(f"{self.params.name}, {_when(child)}: {answer['error']}")
        except TimeoutError:
            self.seconds += time.monotonic() - started_at
            raise TimeLimit(
                f"{self.params.name} took longer than time_limit = {self.params.time_limit:g} s"
                f" ({_when(child)}); raise time_limit in the sweep file, or learn from fewer rows"
                f" by max_rows{_said(child)}"
            ) from None
        except Ended as ended:
            out_of_memory = ", as happens when memory is short" if "SIGKILL" in str(ended) else ""
            raise ChildProcessError(
                f"the process of {self.params.name} {ended}{out_of_memory}"
                f" ({_when(child)}){_said(child)}"
            ) from None
        self.seconds += answer["seconds"]
        return found[0]


def _arrays(rows: Rows, labels: Array) -> list[Array]:
    """A block's arrays. Those with the longest numbers come first, so that all are aligned."""
    first, last = rows.indptr[0], rows.indptr[-1]
    indices = rows.indices[first:last] if rows.index_stride else rows.indices[:0]
    return [rows.indptr - first, labels, rows.values[first:last], indices]


def _when(child: Child) -> str:
    return f"round {child.progress}" if child.progress else "before its first round"


def _said(child: Child) -> str:
    """The end of a message: what the process has written last."""
    return f"; it wrote last: {child.last_words}" if child.last_words else ""
