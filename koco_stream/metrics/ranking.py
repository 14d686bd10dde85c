"""The area under the ROC curve of kept scores, exact."""

import math

import numpy as np

from koco_stream.numerics.compiler import jit
from koco_stream.types import Array


def auc(scores: Array, is_positive: Array) -> float:
    """The area under the ROC curve of `scores` (n,), where `is_positive` (n,) are truth values.

    It is the share of pairs of a positive and a negative row in which the positive one has the
    larger score; equal scores count half. NaN if there is one class only.
    """
    positive, negative = np.sort(scores[is_positive]), np.sort(scores[~is_positive])
    pairs = positive.size * negative.size
    return float(wins(positive, negative)) / pairs if pairs else math.nan


@jit
def wins(positive: Array, negative: Array) -> float:
    """In how many pairs the positive score is larger, ties half; both vectors increase.

    The count is exact up to 2^52.
    """
    total, below, until = 0.0, 0, 0
    for i in range(positive.size):
        while below < negative.size and negative[below] < positive[i]:
            below += 1
        until = max(until, below)
        while until < negative.size and negative[until] == positive[i]:
            until += 1
        total += 0.5 * (below + until)
    return total
