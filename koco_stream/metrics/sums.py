"""What metrics are made of, summed round by round: confusion matrices, errors, log loss."""

import math

import numpy as np

from koco_stream.losses import loss_value
from koco_stream.numerics.compiler import jit
from koco_stream.types import Array

# What the labels are: real numbers, −1 and +1, or classes of which each has a score.
REAL, TWO, MANY = range(3)
# A vector of sums: rounds; losses; mistakes; log losses; absolute and squared errors; the labels'
# mean and the sum of their squared differences from it.
ROUNDS, LOSS, MISTAKES, LOG_LOSS, ABSOLUTE, SQUARED, MEAN, SPREAD, SIZE = range(9)


@jit
def add_rounds(
    kind: int,
    loss: int,
    with_loss: bool,
    with_log_loss: bool,
    predictions: Array,
    learnt: Array,
    numbers: Array,
    first: int,
    last: int,
    sums: Array,
    confusion: Array,
) -> None:
    """Add rounds `first` to `last` of a block to `sums` (SIZE,) and `confusion` (K, K).

    `predictions` and `learnt` are (1, n), or (K, n) for `MANY`.
    """
    for t in range(first, last):
        sums[ROUNDS] += 1.0
        if kind == MANY:
            classes = predictions.shape[0]
            best = 0
            total = 0.0
            for k in range(classes):
                if with_loss:
                    total += loss_value(loss, predictions[k, t], learnt[k, t])
                if predictions[k, t] > predictions[best, t]:
                    best = k
            sums[LOSS] += total / classes
            sums[MISTAKES] += best != numbers[t]
            confusion[numbers[t], best] += 1
            if with_log_loss:
                exponentials = 0.0
                for k in range(classes):
                    exponentials += math.exp(predictions[k, t] - predictions[best, t])
                own = predictions[numbers[t], t] - predictions[best, t]
                sums[LOG_LOSS] += math.log(exponentials) - own
            continue
        y_hat = predictions[0, t]
        y = learnt[0, t]
        if with_loss:
            sums[LOSS] += loss_value(loss, y_hat, y)
        if kind == TWO:
            own = int(y >= 0.0)
            predicted = int(y_hat >= 0.0)
            sums[MISTAKES] += own != predicted
            confusion[own, predicted] += 1
            if with_log_loss:  # log(1 + exp(−z)) = log(1 + exp(−|z|)) + max(−z, 0), with z = yŷ
                z = y * y_hat
                sums[LOG_LOSS] += max(-z, 0.0) + math.log(1.0 + math.exp(-abs(z)))
        else:
            error = y_hat - y
            sums[ABSOLUTE] += abs(error)
            sums[SQUARED] += error * error
            before = y - sums[MEAN]
            sums[MEAN] += before / sums[ROUNDS]
            sums[SPREAD] += before * (y - sums[MEAN])


@jit
def add_block(
    kind: int,
    loss: int,
    with_log_loss: bool,
    predictions: Array,
    learnt: Array,
    numbers: Array,
    rounds: int,
    window: int,
    sums: Array,
    confusion: Array,
    into: Array,
    confusion_into: Array,
    windows: Array,
) -> None:
    """Add a block that begins after `rounds` rounds; `windows` (w, …) are filled as they end."""
    first = 0
    done = predictions.shape[1]
    while first < done:
        last = done if window == 0 else min(done, first + window - (rounds + first) % window)
        add_rounds(
            kind,
            loss,
            window > 0,  # the loss of the run is summed elsewhere
            with_log_loss,
            predictions,
            learnt,
            numbers,
            first,
            last,
            sums,
            confusion,
        )
        first = last
        if window > 0 and (rounds + first) % window == 0:
            metrics_into(kind, sums, confusion, windows[(rounds + first) // window - 1])
            merge(sums, confusion, into, confusion_into)


@jit
def merge(sums: Array, confusion: Array, into: Array, confusion_into: Array) -> None:
    """Add a window's sums to the run's, and begin the next window."""
    rounds = into[ROUNDS]
    more = sums[ROUNDS]
    if more == 0.0:
        return
    apart = sums[MEAN] - into[MEAN]
    mean = into[MEAN] + apart * more / (rounds + more)
    spread = into[SPREAD] + sums[SPREAD] + apart * apart * rounds * more / (rounds + more)
    for i in range(MEAN):
        into[i] += sums[i]
    into[MEAN], into[SPREAD] = mean, spread
    for i in range(SIZE):
        sums[i] = 0.0
    for i in range(confusion.shape[0]):
        for k in range(confusion.shape[1]):
            confusion_into[i, k] += confusion[i, k]
            confusion[i, k] = 0


@jit
def metrics_into(kind: int, sums: Array, confusion: Array, out: Array) -> None:
    """Fill `out`, in the order of `WINDOWED`, from sums and confusion, or with NaN."""
    rounds = sums[ROUNDS]
    for i in range(out.size):
        out[i] = math.nan
    if rounds == 0.0:
        return
    out[0] = sums[LOSS] / rounds
    if kind == REAL:
        out[7], out[8] = sums[ABSOLUTE] / rounds, math.sqrt(sums[SQUARED] / rounds)
        if rounds >= 2.0:
            constant = 1.0 if sums[SQUARED] == 0.0 else 0.0
            out[9] = 1.0 - sums[SQUARED] / sums[SPREAD] if sums[SPREAD] > 0.0 else constant
        return
    recalls = 0.0
    occurring = 0
    f1 = 0.0
    named = 0
    by_chance = 0.0
    hits = 0.0
    for k in range(confusion.shape[0]):
        own = 0.0
        predicted = 0.0
        for i in range(confusion.shape[0]):
            own += confusion[k, i]
            predicted += confusion[i, k]
        hit = float(confusion[k, k])
        hits += hit
        by_chance += own * predicted
        if own > 0.0:
            recalls += hit / own
            occurring += 1
        if kind == TWO:
            f1 = 2.0 * hit / (own + predicted) if own + predicted > 0.0 else 0.0
            named = 1  # of the label +1 only, which is the last
        elif own + predicted > 0.0:
            f1 += 2.0 * hit / (own + predicted)
            named += 1
    out[1] = sums[MISTAKES] / rounds
    out[3], out[4] = recalls / occurring, f1 / named
    by_chance /= rounds * rounds
    if by_chance < 1.0:
        out[5] = (hits / rounds - by_chance) / (1.0 - by_chance)
    out[6] = sums[LOG_LOSS] / rounds


# Of kept scores: the positive and the negative ones so far, and as many as before this window.
POSITIVE, NEGATIVE, POSITIVE_BEFORE, NEGATIVE_BEFORE, COUNTS = range(5)


def keep_scores(scores: Array, labels: Array, kept: Array, counts: Array) -> None:
    """Keep scores (n,), positive ones from the front of `kept`, others from its end."""
    p, n = counts[POSITIVE], kept.size - counts[NEGATIVE]
    positive, negative = scores[labels > 0.0], scores[labels <= 0.0][::-1]
    kept[p : p + positive.size] = positive
    kept[n - negative.size : n] = negative
    counts[: NEGATIVE + 1] += (positive.size, negative.size)


def auc(positive: Array, negative: Array) -> float:
    """The share of pairs in which the positive row has the larger score; ties count half."""
    pairs = positive.size * negative.size
    negative = np.sort(negative)
    less, no_more = (negative.searchsorted(np.sort(positive), side) for side in ("left", "right"))
    return float(0.5 * (less.sum() + no_more.sum())) / pairs if pairs else math.nan


def auc_of_window(kept: Array, counts: Array) -> float:
    """The AUC of the scores since the last window."""
    p, n, p_before, n_before = counts.tolist()
    counts[POSITIVE_BEFORE], counts[NEGATIVE_BEFORE] = p, n
    return auc(kept[p_before:p], kept[kept.size - n : kept.size - n_before])


def auc_of_segment(kept: Array, counts: Array) -> float:
    """The AUC of all kept scores, which are dropped."""
    p, n = counts[POSITIVE], counts[NEGATIVE]
    counts[:] = 0
    return auc(kept[:p], kept[kept.size - n :])
