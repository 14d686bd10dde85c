"""What a run's result is held against: the best linear predictor in hindsight, and `Constant`."""

import math
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from koco_stream.io.cache import computed_once
from koco_stream.learners.constant import Constant
from koco_stream.losses import LOSSES
from koco_stream.metrics.tally import losses_and_classes, tally
from koco_stream.numerics.compiler import jit
from koco_stream.numerics.linear_algebra import row_dot
from koco_stream.streams.reader import Block, BlockLabels, StreamReader
from koco_stream.streams.rows import Rows, row, sparse_rows
from koco_stream.streams.stream import AS_STORED, Stream
from koco_stream.types import Array

STEPS = 500
FEWEST_STEPS = 20
VALUES = 2_000_000_000  # the most values read in all steps
SLOW_STEPS = 10
SLOW = 1e-7
HELD_BYTES = 24 << 20  # rows that are copied in their order are copied once if all take less
TOLERANCE = 1e-9  # of the scaled gradient's norm, relative to its start


class Comparator(NamedTuple):
    """The least-squares loss Σ (wᵀx_t − y_t)² and the largest |wᵀx_t|."""

    loss: float
    largest: float


def comparator_of(reader: StreamReader, fit_intercept: bool) -> Comparator | None:
    """A stream's cached comparator; None if it takes too many steps."""
    found = computed_once(
        "comparators",
        {**as_summed(reader.stream).identity(), "intercept": fit_intercept, "version": 5},
        partial(least_squares, reader, fit_intercept),
    )
    return found and Comparator(*found)


def as_summed(stream: Stream) -> Stream:
    """The stream in stored order, unless it has only some of the rows."""
    whole = replace(stream, order=AS_STORED, order_seed=None, window_rows=None, sharding=None)
    return whole if stream.max_rows is None else stream


def least_squares(reader: StreamReader, fit_intercept: bool) -> Comparator | None:
    """Solve the least-squares problem over a stream by conjugate gradients."""
    manifest = reader.manifest
    reader = StreamReader(reader.store, as_summed(reader.stream))
    blocks = blocks_of(reader)
    scale = square_columns(blocks, manifest.n_features, fit_intercept)
    w = np.zeros(scale.size)
    gradient, loss, largest = normal_sums(blocks, fit_intercept, w, against_labels=True)
    zero_loss = loss
    settled = False
    norm2 = first = scaled_norm2(gradient, scale)
    # More data get fewer steps, so that the time stays a small share of a sweep.
    n_values = manifest.n_values * reader.n_rows // max(manifest.n_rows, 1)
    steps_left = min(STEPS, max(FEWEST_STEPS, VALUES // max(n_values, 1)))
    while norm2 > TOLERANCE**2 * first and not settled:
        before = norm2
        direction = gradient / scale
        gains = list[float]()
        while norm2 > TOLERANCE**2 * first and not settled:
            if steps_left == 0:
                return None
            steps_left -= 1
            image, curvature, _ = normal_sums(blocks, fit_intercept, direction, False)
            if curvature == 0.0:
                break
            step = norm2 / curvature
            w += step * direction
            gradient -= step * image
            gains.append(step * norm2)
            settled = len(gains) >= SLOW_STEPS and sum(gains[-SLOW_STEPS:]) < SLOW * zero_loss
            last = norm2
            norm2 = scaled_norm2(gradient, scale)
            direction = gradient / scale + (norm2 / last) * direction
        gradient, loss, largest = normal_sums(blocks, fit_intercept, w, against_labels=True)
        norm2 = scaled_norm2(gradient, scale)
        if norm2 > 0.25 * before:
            break  # limited by rounding
    return Comparator(loss, largest) if math.isfinite(loss + largest) else None


Blocks = Callable[[], Iterable[Block]]


def blocks_of(reader: StreamReader) -> Blocks:
    """A function that gives a stream's blocks, kept if they are few and in another order."""
    read = partial(reader.blocks, zeros=True)
    bytes_of_row = 16 + 12 * reader.manifest.n_values / max(reader.manifest.n_rows, 1)
    few = reader.order is not None and reader.n_rows * bytes_of_row <= HELD_BYTES
    return partial(iter, list(read())) if few else read


def normal_sums(
    blocks: Blocks, fit_intercept: bool, w: Array, against_labels: bool
) -> tuple[Array, float, float]:
    """One pass over the rows: Xᵀr (d,), ‖r‖² and the largest |wᵀx_t|."""
    out = np.zeros(w.size)
    totals = np.zeros(2)
    for rows, labels in blocks():
        normal_rows(rows, labels, fit_intercept, against_labels, w, out, totals)
    return out, float(totals[0]), float(totals[1])


def square_columns(blocks: Blocks, n_features: int, fit_intercept: bool) -> Array:
    """Σ_t x_tj² for each feature, (d,); 1 for a feature that no row has."""
    out = np.zeros(n_features + fit_intercept)
    for rows, labels in blocks():
        add_squares(rows, out)
        out[n_features:] += labels.size  # the intercept's, if there is one
    return np.where(out == 0.0, 1.0, out)


@jit
def add_squares(rows: Rows, out: Array) -> None:
    """Add Σ_t x_tj² to out[j] for each feature j."""
    for t in range(rows.indptr.size - 1):
        idx, val = row(rows, t)
        for i in range(idx.size):
            out[idx[i]] += np.float64(val[i]) * np.float64(val[i])


@jit
def normal_rows(
    rows: Rows,
    labels: Array,
    intercept: bool,
    against_labels: bool,
    w: Array,
    out: Array,
    totals: Array,
) -> None:
    """Add Xᵀr to `out` and ‖r‖² to totals[0]; totals[1] becomes the largest |Xw|."""
    for t in range(labels.size):
        idx, val = row(rows, t)
        product = row_dot(w, idx, val)
        if intercept:
            product += w[-1]
        totals[1] = max(totals[1], abs(product))
        r = labels[t] - product if against_labels else product
        totals[0] += r * r
        for i in range(idx.size):
            out[idx[i]] += np.float64(val[i]) * r
        if intercept:
            out[-1] += r


def scaled_norm2(gradient: Array, scale: Array) -> float:
    """Σ_j g_j²/s_j, summed in order."""
    return float(np.cumsum(gradient * gradient / scale)[-1:].sum())


class TrivialResult(NamedTuple):
    """`Constant`'s mean loss and mistakes over rounds."""

    mean_loss: float
    error_rate: float


def trivial_result(reader: StreamReader, loss: str) -> TrivialResult | None:
    """A stream's cached result of `Constant`; None if it diverges."""
    found = computed_once(
        "trivial",
        {"of": reader.stream.identity(), "loss": loss, "version": Constant.numbers_version},
        lambda: result_on(reader.labels(), loss),
    )
    return found and TrivialResult(*found)


def result_on(blocks: Iterable[BlockLabels], loss: str) -> TrivialResult | None:
    """The result of `Constant` on blocks of labels."""
    params = Constant.to_params(Constant.complete({"loss": loss}))
    states: list[Any] = []  # one for each class that is learnt
    totals = np.zeros(3)
    rounds = 0
    kept = totals, np.zeros(0), 0, np.zeros((0, 3))
    for labels in blocks:
        predictions: Array = np.empty(labels.learnt.shape)
        done = predictions.shape[1]
        rows = sparse_rows(np.zeros(done + 1, np.int64), np.zeros(0, np.int32), np.zeros(0), 0)
        states = states or [Constant.init(params, 0, 0) for _ in predictions]
        rounds += done
        for k, (state, learnt) in enumerate(zip(states, labels.learnt, strict=True)):
            states[k], known = Constant.advance(params, state, rows, learnt, predictions[k])
            done = min(done, known)
        found = losses_and_classes(LOSSES[loss], predictions, labels.learnt, done)
        tally(*found, labels.numbers, *kept)
    n, cumulative, mistakes = totals.tolist()
    known = n == rounds > 0 and math.isfinite(cumulative)  # otherwise it has diverged
    return TrivialResult(cumulative / n, mistakes / n) if known else None
