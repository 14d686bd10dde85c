"""The scans: loops over the rows of a stream, compiled once per learner.

A loop calls a learner's functions through global names, which `jit_with` binds to them.
"""

import math
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import cache
from typing import Any, ClassVar

import numpy as np

from koco_stream.errors import warn, why_diverged
from koco_stream.learners.record import doubtful_rounds
from koco_stream.learners.spec import MOST_RIDGES, Spec
from koco_stream.numerics.by_reference import by_reference
from koco_stream.numerics.compiler import inlined, jit_with
from koco_stream.streams.rows import Rows, frozen, row
from koco_stream.types import Array

FIRST_ROWS = 1000  # whose length is looked at


def bound_later(*arguments: Any) -> Any:
    """A placeholder for a learner's function, until `jit_with` binds its name."""
    raise AssertionError("jit_with binds this name")


# step(params, state, idx, val, y), forward(params, state, idx, val), full(params, state, features)
step = forward = full = bound_later


def scan_rows(params: Any, state: Any, rows: Rows, labels: Array, predictions: Array) -> int:
    """Run a learner over rows in order, updating `state` and filling `predictions` (n,).

    Returns the rounds done: fewer than n if a prediction was not finite (that round is not counted)
    or if the state has no room for the next row, whose prediction is then 0.
    """
    p, s = by_reference(params), by_reference(state)
    for t in range(labels.size):
        if full(params, state, rows.indptr[t + 1] - rows.indptr[t]):
            predictions[t] = 0.0
            return t
        idx, val = row(rows, t)
        y_hat = step(p, s, idx, val, labels[t])
        predictions[t] = y_hat
        if not math.isfinite(y_hat):
            return t
    return labels.size


def predict_rows(params: Any, state: Any, rows: Rows, predictions: Array) -> None:
    """Fill `predictions` (n,) with the prediction for each row, as if it came in the next round.

    Predictions are truncated to [−C, C]. The state does not change.
    """
    p, s = by_reference(params), by_reference(state)
    for t in range(predictions.size):
        idx, val = row(rows, t)
        predictions[t] = min(max(forward(p, s, idx, val), -params.clip), params.clip)


def advance_each(
    learners: Sequence[Any],
    params: Sequence[Any],
    states: Sequence[Any],
    rows: Rows,
    labels: Array,
    predictions: Array,
) -> tuple[list[Any], list[int], dict[int, Exception]]:
    """Advance k states over a block of n rows, each to the bits that it would have by itself, with
    its own `labels` (k, n), filling `predictions` (k, n).

    Returns the new states, the rounds that each has done, fewer than n if a prediction was not
    finite, and by number what a state's learner has raised, which does not affect others.
    """
    labels = frozen(labels, np.float64)
    advanced = list(states)
    done = [0] * len(states)
    failures = dict[int, Exception]()
    for i, learner in enumerate(learners):
        try:
            advanced[i], done[i] = learner.advance(
                params[i], states[i], rows, labels[i], predictions[i]
            )
        except Exception as error:  # of this one
            failures[i] = error
    return advanced, done, failures


class Algorithm(Spec):
    """A learner's algorithm as functions without `self`, and the methods that run them over rows.

    `init`, `step` and `forward` are described by `Learner`.
    """

    init: ClassVar[Callable[..., Any]]
    step: ClassVar[Callable[..., float]]
    forward: ClassVar[Callable[..., float]]
    advance_states = staticmethod(advance_each)

    @classmethod
    def initial_state(cls, params: Any, n_features: int, seed: int, dense: bool) -> Any:
        """The state before the first round of a stream, which has all features of a row if `dense`.

        Our own learners see only non-zeros, and `dense` makes no difference to them.
        """
        return cls.init(params, n_features, seed)

    @classmethod
    def clock(cls, state: Any) -> float:
        """Seconds on the clock by which the learner's scan is timed."""
        return time.perf_counter()

    @classmethod
    @cache
    def compiled(cls, loop: Any, *names: str) -> Callable[..., Any]:
        """Compile a loop over rows with the named functions of this class, under the name of the
        file that has its `step`: learners with the same step share it.
        """
        file = next(c for c in cls.__mro__ if "step" in vars(c)).__module__.rsplit(".", 1)[-1]
        # `init`: its file has the state, whose methods `step` may call; the cache's key covers it.
        own = {name: getattr(cls, name) for name in (*names, "init")}
        return jit_with(loop, f"{loop.__name__}_{file}", **own)

    @staticmethod
    @inlined
    def full(params: Any, state: Any, features: int) -> bool:
        """Whether the state lacks room for a row with `features` non-zeros."""
        return False

    @staticmethod
    def enlarge(params: Any, state: Any, features: int, /) -> Any:
        """The same state in larger arrays, with room for a row with `features` non-zeros."""
        return state

    @classmethod
    def advance(
        cls, params: Any, state: Any, rows: Rows, labels: Array, predictions: Array
    ) -> tuple[Any, int]:
        """Learn from a block of rows, filling `predictions` (n,); returns the new state and the
        rounds done, fewer than rows only if a prediction, which is the last, was not finite.
        """
        scan, done = cls.compiled(scan_rows, "step", "full"), 0
        while True:
            rest = rows._replace(indptr=rows.indptr[done:])
            done += scan(params, state, rest, labels[done:], predictions[done:])
            if done == labels.size or not math.isfinite(predictions[done]):
                return state, done
            state = cls.enlarge(params, state, int(rows.indptr[done + 1] - rows.indptr[done]))

    @classmethod
    def expect(cls, params: Any, state: Any, rows: Rows) -> Array:
        """The prediction (n,) for each row, as if it came in the next round.

        The state does not change.
        """
        predictions = np.empty(rows.n_rows)
        cls.compiled(predict_rows, "forward")(params, state, rows, predictions)
        return predictions


def learn_together(learners: Sequence[Any], rows: Rows, labels: Array, first_row: int = 0) -> Array:
    """Let started learners of one class and parameters learn from the rows, each with its own
    labels (K, n); returns their predictions (K, n).
    """
    with ExitStack() as locks:
        for learner in learners:
            locks.enter_context(learner._lock)
        predictions = np.empty(labels.shape)
        states, done, failures = learners[0].advance_states(
            [type(learner) for learner in learners],
            [learner._params for learner in learners],
            [learner._state for learner in learners],
            rows,
            labels,
            predictions,
        )
        least = min(done)
        for learner, state, rounds in zip(learners, states, done, strict=True):
            learner._state = state
            learner.rounds_ += rounds
            learner._diverged = not failures and least < rows.n_rows
        for failure in failures.values():
            raise failure
        if least < rows.n_rows:
            k = done.index(least)
            why = why_diverged(f"row {first_row + least}", predictions[k, least])
            raise FloatingPointError(f"{learners[k]!r} diverged: {why}")
        for learner in learners:
            warn_of_doubt(learner)
        return predictions


def warn_of_doubt(learner: Any) -> None:
    """Warn once if rounds are doubtful."""
    if not learner._doubted and (doubtful := doubtful_rounds([learner._state])):
        learner._doubted = True
        warn(
            f"double precision cannot vouch for six digits of the predictions of {doubtful} of"
            f" {learner.rounds_} rounds, because steps are so large; scale the features (koco"
            " prepare --scale), or take a larger alpha"
        )


def warn_of_long(learner: Any, rows: Rows) -> None:
    """Warn if the first rows are so long beside alpha that learning is likely poor."""
    n = min(rows.n_rows, FIRST_ROWS)
    values = rows.values[rows.indptr[0] : rows.indptr[n]].astype(np.float64)
    with np.errstate(over="ignore"):
        square = float(values @ values) / max(n, 1)
    if learner.overshoots(learner._public(), square):
        warn(
            f"the first rows have a mean square norm of {square:.3g}, more than {MOST_RIDGES:g}"
            f" times alpha = {learner.alpha:g}: steps are so large that learning is likely poor;"
            " scale the features (koco prepare --scale), or take a larger alpha"
        )
