"""What metrics are made of, summed round by round: confusion matrices, errors, log loss.

The sums of a window end with the window, and are then added to those of the run. So they depend on
the rounds and on the window's length, and not on the blocks in which rounds come.
"""

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
def softplus(z: float) -> float:
    """log(1 + exp(z)), without overflow."""
    return math.log1p(math.exp(-abs(z))) + max(z, 0.0)


@jit
def add_rounds(
    kind: int,
    loss: int,
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

    `predictions` and `learnt` are (1, n), or (K, n) for `MANY`; then `numbers` (n,) are the rows'
    classes, counted from 0. Row i of `confusion` counts the rows of class i by their predicted
    class.
    """
    for t in range(first, last):
        sums[ROUNDS] += 1.0
        if kind == MANY:
            classes, best, total = predictions.shape[0], 0, 0.0
            for k in range(classes):
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
        y_hat, y = predictions[0, t], learnt[0, t]
        sums[LOSS] += loss_value(loss, y_hat, y)
        if kind == TWO:
            own, predicted = int(y >= 0.0), int(y_hat >= 0.0)
            sums[MISTAKES] += own != predicted
            confusion[own, predicted] += 1
            if with_log_loss:
                sums[LOG_LOSS] += softplus(-y * y_hat)
        else:
            error = y_hat - y
            sums[ABSOLUTE] += abs(error)
            sums[SQUARED] += error * error
            before = y - sums[MEAN]
            sums[MEAN] += before / sums[ROUNDS]
            sums[SPREAD] += before * (y - sums[MEAN])


@jit
def merge(sums: Array, confusion: Array, into: Array, confusion_into: Array) -> None:
    """Add the sums of a window to those of the run, and begin the next window."""
    rounds, more = into[ROUNDS], sums[ROUNDS]
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


def metrics_of(kind: int, sums: Array, confusion: Array) -> dict[str, float]:
    """The metrics that follow from sums (SIZE,) and a confusion matrix (K, K), by name.

    One that is not defined is NaN; so are all without a round.
    """
    rounds = sums[ROUNDS]
    if rounds == 0.0:
        return {}
    found = {"mean_loss": sums[LOSS] / rounds}
    if kind == REAL:
        found["mae"] = sums[ABSOLUTE] / rounds
        found["rmse"] = math.sqrt(sums[SQUARED] / rounds)
        found["r2"] = _determination(rounds, sums[SQUARED], sums[SPREAD])
        return {name: float(value) for name, value in found.items()}
    found["error_rate"] = sums[MISTAKES] / rounds
    found["log_loss"] = sums[LOG_LOSS] / rounds
    hits = np.diag(confusion).astype(float)
    own, predicted = confusion.sum(1).astype(float), confusion.sum(0).astype(float)
    found["balanced_accuracy"] = (hits[own > 0] / own[own > 0]).mean()
    both = own + predicted
    if kind == TWO:
        found["f1"] = 2.0 * hits[1] / both[1] if both[1] else 0.0
    else:
        found["f1"] = (2.0 * hits[both > 0] / both[both > 0]).mean()
    by_chance = (own * predicted).sum() / (rounds * rounds)
    agreement = hits.sum() / rounds
    found["kappa"] = (agreement - by_chance) / (1.0 - by_chance) if by_chance < 1.0 else math.nan
    return {name: float(value) for name, value in found.items()}


def _determination(rounds: float, squared: float, spread: float) -> float:
    """R², which for labels that are all equal is 1 if all errors are 0, and else 0."""
    if rounds < 2.0:
        return math.nan
    if spread == 0.0:
        return 1.0 if squared == 0.0 else 0.0
    return 1.0 - squared / spread
