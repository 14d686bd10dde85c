"""The scan: the only loop over time in the project, compiled once for each learner."""

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from koco_stream.losses import loss_value
from koco_stream.numerics.compiler import jit, jit_with
from koco_stream.streams.rows import Rows
from koco_stream.types import Array


def step(params: Any, state: Any, idx: Array, val: Array, y: float) -> float:
    """Stands for a learner's step; `scan_of` binds the name to one."""
    raise AssertionError("scan_of binds this name")


def full(params: Any, state: Any, features: int) -> bool:
    """Stands for a learner's `full`; `scan_of` binds the name to one."""
    raise AssertionError("scan_of binds this name")


def scan_rows(
    params: Any,
    state: Any,
    indptr: Array,
    indices: Array,
    index_stride: int,
    values: Array,
    labels: Array,
    predictions: Array,
) -> int:
    """Run the learner over the rows of a block, in order, updating `state` and filling
    `predictions` (n,).

    Returns the number of rounds done: n, or fewer if a prediction was not finite (that round is the
    last, and not counted). If the state lacks room for row t, it stops before it and returns −1 −
    t. `index_stride` is 1 for sparse rows, 0 for dense ones, which all share the same `indices`.
    """
    for t in range(labels.size):
        lo, hi = indptr[t], indptr[t + 1]
        first = lo * index_stride
        if full(params, state, hi - lo):
            return -1 - t
        y_hat = step(params, state, indices[first : first + hi - lo], values[lo:hi], labels[t])
        predictions[t] = y_hat
        if not math.isfinite(y_hat):
            return t
    return labels.size


def forward(params: Any, state: Any, idx: Array, val: Array) -> float:
    """Stands for a learner's `forward`; `predictions_of` binds the name to one."""
    raise AssertionError("predictions_of binds this name")


def predict_rows(
    params: Any,
    state: Any,
    indptr: Array,
    indices: Array,
    index_stride: int,
    values: Array,
    predictions: Array,
) -> None:
    """Fill `predictions` (n,) with what the learner would predict next for each row, held within
    [−C, C]; learns nothing.
    """
    for t in range(predictions.size):
        lo, hi = indptr[t], indptr[t + 1]
        first = lo * index_stride
        y_hat = forward(params, state, indices[first : first + hi - lo], values[lo:hi])
        predictions[t] = min(max(y_hat, -params.clip), params.clip)


def code_name(learner: type) -> str:
    """The name of the file that has the learner's step: what is compiled of it is called so."""
    return next(c for c in learner.__mro__ if "step" in vars(c)).__module__.rsplit(".", 1)[-1]


@cache
def predictions_of(learner: Any) -> Callable[..., None]:
    """The prediction without learning of a learner's class."""
    return jit_with(predict_rows, f"predict_{code_name(learner)}", forward=learner.forward)


@cache
def scan_of(learner: Any) -> Callable[..., int]:
    """The scan of a learner's class. Learners with one step share what is compiled."""
    name = f"scan_{code_name(learner)}"
    return jit_with(scan_rows, name, step=learner.step, full=learner.full)


def expect(learner: Any, params: Any, state: Any, rows: Rows) -> Array:
    """What a learner would predict next for each row, (n,). Nothing is learnt."""
    predictions = np.empty(rows.n_rows)
    predictions_of(learner)(
        params, state, rows.indptr, rows.indices, rows.index_stride, rows.values, predictions
    )
    return predictions


def advance(
    learner: Any, params: Any, state: Any, rows: Rows, labels: Array, predictions: Array
) -> tuple[Any, int]:
    """Run a learner over a block of rows, giving its state more room where it needs it: (the state,
    the rounds done).

    Fewer rounds than rows are done only if a prediction was not finite; it is then in
    `predictions`, which is (n,).
    """
    scan, done = scan_of(learner), 0
    while True:
        ended = scan(
            params,
            state,
            rows.indptr[done:],
            rows.indices,
            rows.index_stride,
            rows.values,
            labels[done:],
            predictions[done:],
        )
        if ended >= 0:
            return state, done + ended
        done += -1 - ended
        features = int(rows.indptr[done + 1] - rows.indptr[done])
        state = learner.enlarge(params, state, features)


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
