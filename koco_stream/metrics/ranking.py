"""The exact area under the ROC curve of kept scores."""

import math

import numpy as np

from koco_stream.numerics.compiler import jit
from koco_stream.types import Array

# Of kept scores: the positive and the negative ones so far, and as many as before this window.
POSITIVE, NEGATIVE, POSITIVE_BEFORE, NEGATIVE_BEFORE, COUNTS = range(5)


@jit
def keep_scores(
    scores: Array, labels: Array, first: int, last: int, kept: Array, counts: Array
) -> None:
    """Keep scores, positive ones from the front of `kept`, others from its end."""
    positive = counts[POSITIVE]
    negative = counts[NEGATIVE]
    for t in range(first, last):
        if labels[t] > 0.0:
            kept[positive] = scores[t]
            positive += 1
        else:
            negative += 1
            kept[kept.size - negative] = scores[t]
    counts[POSITIVE], counts[NEGATIVE] = positive, negative


def auc(positive: Array, negative: Array) -> float:
    """The share of pairs in which the positive row has the larger score; ties count half."""
    pairs = positive.size * negative.size
    return float(wins(np.sort(positive), np.sort(negative))) / pairs if pairs else math.nan


def auc_of_window(kept: Array, counts: Array) -> float:
    """The AUC of the scores since the last window."""
    p, n, p_before, n_before = counts.tolist()
    counts[POSITIVE_BEFORE], counts[NEGATIVE_BEFORE] = p, n
    return auc(kept[p_before:p], kept[kept.size - n : kept.size - n_before])


def auc_of_segment(kept: Array, counts: Array) -> float:
    """The AUC of all kept scores, which are dropped."""
    p = counts[POSITIVE]
    n = counts[NEGATIVE]
    counts[:] = 0
    return auc(kept[:p], kept[kept.size - n :])


@jit
def wins(positive: Array, negative: Array) -> float:
    """In how many pairs of increasing vectors the positive score is larger."""
    total = 0.0
    below = 0
    until = 0
    for i in range(positive.size):
        while below < negative.size and negative[below] < positive[i]:
            below += 1
        until = max(until, below)
        while until < negative.size and negative[until] == positive[i]:
            until += 1
        total += 0.5 * (below + until)
    return total
