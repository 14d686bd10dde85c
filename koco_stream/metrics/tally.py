"""Loss, class and mistakes of each round, and their sums over a run."""

import numpy as np

from koco_stream.losses import loss_value
from koco_stream.numerics.compiler import jit
from koco_stream.types import Array


def losses_and_classes(
    loss: int, predictions: Array, learnt: Array, done: int
) -> tuple[Array, Array]:
    """The loss of each of the first `done` rounds, and the number of the predicted class.

    `predictions` and `learnt` are (1, n), where 1 is the number of a prediction that is not
    negative, as in the SON paper; or (K, n), where each class is learnt against the rest: the loss
    is the mean over the classes, and the first of the largest predictions wins.
    """
    losses, predicted = np.zeros(done), np.zeros(done, np.int64)
    fill(loss, predictions, learnt, losses, predicted)
    return losses, predicted


@jit
def fill(loss: int, predictions: Array, learnt: Array, losses: Array, predicted: Array) -> None:
    """Fill `losses` (n,), which are 0, and `predicted` (n,)."""
    classes = predictions.shape[0]
    for t in range(losses.size):
        best = 0
        for k in range(classes):
            losses[t] += loss_value(loss, predictions[k, t], learnt[k, t])
            if predictions[k, t] > predictions[best, t]:
                best = k
        losses[t] /= classes
        predicted[t] = best if classes > 1 else int(predictions[0, t] >= 0.0)


@jit
def tally(
    losses: Array,
    predicted: Array,
    numbers: Array,
    totals: Array,
    points: Array,
    at: int,
    curve: Array,
) -> int:
    """Add losses (n,), and mistakes where class `numbers` differ, to a run's totals and curve.

    `totals` (3,) are the rounds, the cumulative loss, and the mistakes. At the rounds `points`
    (k,), increasing, of which `at` is the number of the next, they are copied to `curve` (k, 3).
    Returns the next `at`.
    """
    rounds, cumulative, mistakes = totals[0], totals[1], totals[2]
    for t in range(losses.size):
        rounds += 1.0
        cumulative += losses[t]
        mistakes += predicted[t] != numbers[t]
        if at < points.size and rounds == points[at]:
            curve[at, 0], curve[at, 1], curve[at, 2] = rounds, cumulative, mistakes
            at += 1
    totals[0], totals[1], totals[2] = rounds, cumulative, mistakes
    return at
