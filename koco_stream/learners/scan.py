"""The scans: the only loops over time in the project, compiled once for each learner.

They take a learner's own functions by name: `jit_with` binds the names to them.
"""

import math
from collections.abc import Callable
from functools import cache
from typing import Any, ClassVar

import numpy as np

from koco_stream.learners.spec import Spec
from koco_stream.losses import loss_value
from koco_stream.numerics.compiler import inlined, jit, jit_with
from koco_stream.streams.rows import Rows
from koco_stream.types import Array


def bound_later(*arguments: Any) -> Any:
    """Stands for a function of the learner's class until `jit_with` binds its name."""
    raise AssertionError("jit_with binds this name")


# step(params, state, idx, val, y), forward(params, state, idx, val), full(params, state, features),
# embed(params, state, idx, val, out)
step = forward = full = embed = bound_later


def scan_rows(params: Any, state: Any, rows: Rows, labels: Array, predictions: Array) -> int:
    """Run the learner over rows, in order, updating `state` and filling `predictions` (n,).

    Returns the number of rounds done: n, or fewer if a prediction was not finite (that round is the
    last, and not counted). If the state lacks room for row t, it stops before it and returns
    −1 − t.
    """
    for t in range(labels.size):
        features = rows.indptr[t + 1] - rows.indptr[t]
        if full(params, state, features):
            return -1 - t
        idx, val = row(rows, t)
        y_hat = step(params, state, idx, val, labels[t])
        predictions[t] = y_hat
        if not math.isfinite(y_hat):
            return t
    return labels.size


def predict_rows(params: Any, state: Any, rows: Rows, predictions: Array) -> None:
    """Fill `predictions` (n,) with what the learner would predict next for each row.

    They are held within [−C, C]. Nothing is learnt.
    """
    for t in range(predictions.size):
        idx, val = row(rows, t)
        y_hat = forward(params, state, idx, val)
        predictions[t] = min(max(y_hat, -params.clip), params.clip)


def embed_rows(params: Any, state: Any, rows: Rows, features: Array) -> None:
    """Fill `features` (n, r) with those in which a kernel learner is linear; nothing is learnt."""
    for t in range(features.shape[0]):
        idx, val = row(rows, t)
        embed(params, state, idx, val, features[t])


@inlined
def row(rows: Rows, t: int) -> tuple[Array, Array]:
    """Row t: its features and their values. Dense rows all have the same features."""
    lo, hi = rows.indptr[t], rows.indptr[t + 1]
    first = lo * rows.index_stride
    return rows.indices[first : first + hi - lo], rows.values[lo:hi]


class Algorithm(Spec):
    """What a run of a learner is made of: functions without `self`, and how rows go through them.

    `init`, `step` and `forward` are what `Learner` says of them.
    """

    init: ClassVar[Callable[..., Any]]
    step: ClassVar[Callable[..., float]]
    forward: ClassVar[Callable[..., float]]
    grows: ClassVar[bool] = False

    @classmethod
    @cache
    def compiled(cls, loop: Any, *names: str) -> Callable[..., Any]:
        """A loop over rows, compiled with these functions of the class.

        It is called as the file is that has the learner's step: learners with one step share it.
        """
        file = next(c for c in cls.__mro__ if "step" in vars(c)).__module__.rsplit(".", 1)[-1]
        own = {name: getattr(cls, name) for name in names}
        return jit_with(loop, f"{loop.__name__}_{file}", **own)

    @staticmethod
    @inlined
    def full(params: Any, state: Any, features: int) -> bool:
        """Whether the state lacks room for a row with so many features."""
        return False

    @staticmethod
    def enlarge(params: Any, state: Any, features: int, /) -> Any:
        """The same state with room for a row with so many features."""
        return state

    @staticmethod
    def joined(state: Any, /) -> Array | None:
        """The rounds in which points joined that stay in the dictionary, increasing, if any do."""
        return None

    @classmethod
    def advance(
        cls, params: Any, state: Any, rows: Rows, labels: Array, predictions: Array
    ) -> tuple[Any, int]:
        """Learn from a block of rows, filling `predictions` (n,): the state and the rounds done.

        Fewer rounds than rows are done only if a prediction was not finite; it is then in
        `predictions`.
        """
        scan, done = cls.compiled(scan_rows, "step", "full"), 0
        while True:
            rest = rows._replace(indptr=rows.indptr[done:])
            ended = scan(params, state, rest, labels[done:], predictions[done:])
            if ended >= 0:
                return state, done + ended
            done += -1 - ended
            features = int(rows.indptr[done + 1] - rows.indptr[done])
            state = cls.enlarge(params, state, features)

    @classmethod
    def expect(cls, params: Any, state: Any, rows: Rows) -> Array:
        """What the learner would predict next for each row, (n,). Nothing is learnt."""
        predictions = np.empty(rows.n_rows)
        cls.compiled(predict_rows, "forward")(params, state, rows, predictions)
        return predictions


@jit
def tally(
    loss: int,
    predictions: Array,
    labels: Array,
    done: int,
    totals: Array,
    points: Array,
    at: int,
    curve: Array,
) -> int:
    """Add a block's losses and mistakes to the running totals, one round after the other.

    `totals` (3,) is rounds, cumulative loss, mistakes (sign(ŷ) ≠ sign(y), with sign(0) = +1 as in
    the SON paper). Each time the rounds reach one of `points` (increasing; the next is number
    `at`), the totals are copied to that line of `curve` (k, 3). Returns the next `at`.
    """
    rounds, cumulative, mistakes, t = totals[0], totals[1], int(totals[2]), 0
    while t < done:
        until = min(done, t + int(points[at] - rounds)) if at < points.size else done
        rounds += until - t
        while t < until:  # nothing but this is done in every round
            cumulative += loss_value(loss, predictions[t], labels[t])
            if (predictions[t] >= 0.0) != (labels[t] >= 0.0):
                mistakes += 1
            t += 1
        if at < points.size and rounds == points[at]:
            curve[at, 0], curve[at, 1], curve[at, 2] = rounds, cumulative, mistakes
            at += 1
    totals[0], totals[1], totals[2] = rounds, cumulative, mistakes
    return at
