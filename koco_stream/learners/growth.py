"""How the dictionary of a kernel learner grows, as the planner expects or has measured it."""

from collections.abc import Callable
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from koco_stream.types import Array


class Sampling(NamedTuple):
    """What decides whether rows join a dictionary: p = min(factor·q/(ridge + q), 1), at least
    `floor`, where q is what the points so far do not explain of a row.

    kernel, bandwidth, degree, intercept: the kernel. factor: β(1 ± ε). most: the largest number of
    points, if there is one. of_gradients: whether q is weighted by the square of the loss's slope,
    which is smaller for rows that are predicted well. threshold: if it is given, a row joins if q
    is above this share of k(x, x), without a coin.
    """

    kernel: str
    bandwidth: float
    degree: int
    intercept: bool
    ridge: float
    factor: float
    floor: float = 0.0
    most: int | None = None
    of_gradients: bool = False
    threshold: float | None = None


class Growth(NamedTuple):
    """The number of points after some rounds, increasing; linear between them.

    The first of `rounds` is 0, the last one the end of the stream.
    """

    rounds: tuple[float, ...]
    points: tuple[float, ...]

    @staticmethod
    def measured(joined: Array, rounds: int) -> "Growth":
        """The growth of a dictionary whose points `joined` (J,) in these rounds, increasing."""
        at = np.unique(np.round(np.geomspace(1, max(rounds, 1), 16)))
        points = np.searchsorted(joined, at, side="right")
        return Growth((0.0, *at.tolist()), (0.0, *points.astype(float).tolist()))

    @staticmethod
    def assumed(rounds: int, points: float) -> "Growth":
        """A growth to this many points within the first tenth of the rounds."""
        return Growth((0.0, rounds / 10, float(rounds)), (0.0, points, points))

    @property
    def last(self) -> float:
        """The number of points at the end of the stream."""
        return self.points[-1]

    def up_to(self, most: int | None) -> "Growth":
        """The same growth, which ends at `most` points."""
        if most is None:
            return self
        return self._replace(points=tuple(min(J, float(most)) for J in self.points))

    def first(self, rounds: float) -> "Growth":
        """The same growth as far as a round, which is above 0."""
        before = [(t, J) for t, J in zip(self.rounds, self.points, strict=True) if t < rounds]
        at, points = zip(*before, strict=True)
        there = float(np.interp(rounds, self.rounds, self.points))
        return Growth((*at, float(rounds)), (*points, there))

    def a_round(self, cost: Callable[[Array], Array]) -> float:
        """The mean over the rounds of a cost that depends on the number of points (k,)."""
        return self._mean(cost, np.diff(self.rounds))

    def a_join(self, cost: Callable[[Array], Array]) -> float:
        """What rounds in which a point joins cost more, as a mean over all rounds."""
        return self._mean(cost, np.diff(self.points))

    def _mean(self, cost: Callable[[Array], Array], weights: Array) -> float:
        """Simpson's rule, which is exact for squares of the number of points."""
        ends = np.array(list(pairwise(self.points))).T
        low, high = ends
        sums = (cost(low) + 4.0 * cost((low + high) / 2.0) + cost(high)) / 6.0
        return float(sums @ weights) / max(self.rounds[-1], 1.0)
