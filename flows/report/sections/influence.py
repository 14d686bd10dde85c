"""How much a parameter matters: the share of the variance of the error's rank that it explains."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
from scipy.stats import rankdata

T = TypeVar("T")
PARTS = 6  # most parts into which the values of a parameter are put


def parts_of(items: Sequence[T], most: int) -> list[Sequence[T]]:
    """Items in at most so many parts of consecutive ones, of equal size but for one."""
    count = min(most, len(items))
    ends = [round(k * len(items) / count) for k in range(count + 1)] if count else []
    return [items[a:b] for a, b in pairwise(ends)]


def influence(values: Sequence[Any], errors: Sequence[float]) -> float:
    """Share of the variance of the errors' ranks between the parts of a parameter's values.

    `values` and `errors` have one of each configuration; values are numbers or texts. Each value is
    a part of its own; more than `PARTS` of them are put into that many parts of about as many
    configurations. The share is corrected for the number of parts (ε² of Kelley), so that chance
    alone has none on average; it is 0 at least.
    """
    ranks = rankdata(errors)
    n, groups = len(ranks), _groups(values)
    k = groups.max() + 1
    total = ((ranks - ranks.mean()) ** 2).sum()
    if n <= k or total == 0.0:
        return 0.0
    sizes = np.bincount(groups)
    means = np.bincount(groups, ranks) / sizes
    within = ((ranks - means[groups]) ** 2).sum()
    return float(max(0.0, 1.0 - within / (n - k) / (total / (n - 1))))


def _groups(values: Sequence[Any]) -> np.ndarray:
    """The number of the part of each value."""
    distinct = sorted(set(values), key=lambda value: (isinstance(value, str), value))
    number = {value: k for k, value in enumerate(distinct)}
    places = np.array([number[value] for value in values])
    if len(distinct) <= PARTS:
        return places
    # equal values stay together: each goes where its middle one in sorted order belongs
    middle = (
        np.searchsorted(np.sort(places), places, "left")
        + np.searchsorted(np.sort(places), places, "right")
    ) / 2.0
    parts = np.minimum((PARTS * middle / len(places)).astype(int), PARTS - 1)
    return np.unique(parts, return_inverse=True)[1]
