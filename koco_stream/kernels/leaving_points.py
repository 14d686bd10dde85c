"""Points that can leave a dictionary, at a cost of the non-zeros that they hold.

When the last point that has a feature leaves, the feature's line becomes free. A dictionary with a
budget of points therefore needs lines only for what its points hold, however many features occur.
"""

from typing import NamedTuple

import numpy as np

from koco_stream.kernels.dictionary import Points, grown, lengthened
from koco_stream.numerics.compiler import inlined
from koco_stream.numerics.llvm.point_panels import BLOCK
from koco_stream.types import Array

FIRST_LENGTH = 16


class Holdings(NamedTuple):
    """What each point holds. It is found from the points, so it is never saved.

    n (): the number of points of which it is known, −1 before it is found. sizes (B,), features (B,
    longest): the non-zeros of each point. points_of (lines,): how many points have the feature of a
    line. free (lines,), n_free (): the lines below `used` that no point has.
    """

    n: Array
    sizes: Array
    features: Array
    points_of: Array
    free: Array
    n_free: Array


def not_found() -> Holdings:
    """Nothing is known of the points yet."""
    none = np.zeros(0, np.int32)
    return Holdings(np.array(-1), none, np.zeros((0, 0), np.int32), none, none, np.array(0))


def with_room(points: Points, held: Holdings, budget: int, s: int) -> tuple[Points, Holdings]:
    """The same points and what they hold, with room for a row of s non-zeros."""
    if held.n[()] != points.n[()]:
        held = found(points, budget)
    if lacks(points, points.used[()] - held.n_free[()], s):
        points = grown(points, s, more_points=False)
    lines, longest = points.features.shape[1], held.features.shape[1]
    while longest < s:
        longest *= 2
    return points, held._replace(
        features=lengthened(held.features, longest),
        points_of=lengthened(held.points_of, lines),
        free=lengthened(held.free, lines),
    )


def found(points: Points, budget: int) -> Holdings:
    """What the points hold, as their table says: at the start, and after a restart."""
    n, used, lines = int(points.n), int(points.used), points.features.shape[1]
    features = np.flatnonzero(points.line_of) if used > 1 else np.zeros(0, np.int64)
    feature_of = np.zeros(used, np.int32)
    feature_of[points.line_of[features]] = features
    rows = points.features[:, :used].swapaxes(1, 2).reshape(-1, used)[:n]
    points_of = np.count_nonzero(rows, axis=0)
    free = np.flatnonzero(points_of[1:] == 0) + 1
    # Earlier versions have left lines to features that no point has any more.
    points.line_of[features[points_of[points.line_of[features]] == 0]] = 0
    sizes = np.count_nonzero(rows, axis=1)
    held = Holdings(
        n=np.array(n),
        sizes=lengthened(sizes.astype(np.int32), budget),
        features=np.zeros((budget, max(sizes.max(initial=0), FIRST_LENGTH)), np.int32),
        points_of=lengthened(points_of.astype(np.int32), lines),
        free=lengthened(free.astype(np.int32), lines),
        n_free=np.array(free.size),
    )
    for p, row in enumerate(rows):
        held.features[p, : sizes[p]] = feature_of[np.flatnonzero(row)]
    return held


@inlined
def lacks(points: Points, taken: int, s: int) -> bool:
    """Whether there may be too few lines for s more features if so many lines are taken.

    There are enough if every feature has a line.
    """
    lines = points.features.shape[1]
    return bool(taken + s > lines and lines <= points.line_of.size)


@inlined
def must_be_found(points: Points, held: Holdings, s: int) -> bool:
    """Whether what points hold is not known, or may lack room for a row of s non-zeros."""
    return bool(
        held.n[()] != points.n[()]
        or s > held.features.shape[1]
        or lacks(points, points.used[()] - held.n_free[()], s)
    )


@inlined
def join(points: Points, held: Holdings, p: int, idx: Array, val: Array, n2: float, t: int) -> None:
    """Make the row (idx, val) of round t, with square norm n2, point p. There must be room."""
    for i in range(idx.size):
        j = idx[i]
        line = points.line_of[j]
        if line == 0:
            if held.n_free[()] > 0:
                held.n_free[()] -= 1
                line = held.free[held.n_free[()]]
            else:
                line = points.used[()]
                points.used[()] = line + 1
            points.line_of[j] = line
        points.features[p // BLOCK, line, p % BLOCK] = val[i]
        held.points_of[line] += 1
        held.features[p, i] = j
    held.sizes[p] = idx.size
    points.norms[p] = n2
    points.rounds[p] = t
    if p == points.n[()]:
        points.n[()] = held.n[()] = p + 1


@inlined
def leave(points: Points, held: Holdings, p: int) -> None:
    """Take out what point p holds; another row must join in its place."""
    for i in range(held.sizes[p]):
        j = held.features[p, i]
        line = points.line_of[j]
        points.features[p // BLOCK, line, p % BLOCK] = 0.0
        held.points_of[line] -= 1
        if held.points_of[line] == 0:
            points.line_of[j] = 0
            held.free[held.n_free[()]] = line
            held.n_free[()] += 1
