"""Points that can leave a dictionary, at a cost of the non-zeros that they hold."""

from typing import NamedTuple

import numpy as np

from koco_stream.kernels.dictionary import Points, grown, hold, lacks_lines, lengthened
from koco_stream.numerics.compiler import inlined
from koco_stream.numerics.llvm.point_panels import BLOCK
from koco_stream.types import Array


class Holdings(NamedTuple):
    """What the lines hold; it is found from the points, so it is never saved.

    n (): the points of which it is known, or −1. points_of (lines,): how many points have a line's
    feature. free (lines,), n_free (): lines without any.
    """

    n: Array
    points_of: Array
    free: Array
    n_free: Array


def not_found() -> Holdings:
    """Unknown holdings."""
    none = np.zeros(0, np.int32)
    return Holdings(np.array(-1), none, none, np.array(0))


def with_room(points: Points, held: Holdings, s: int) -> tuple[Points, Holdings]:
    """The points and what they hold, with room for a row of s non-zeros."""
    if held.n[()] != points.n[()]:
        held = found(points)
    if lacks(points, held, s):
        points = grown(points, s, more_points=False)
    lines = points.features.shape[1]
    return points, held._replace(
        points_of=lengthened(held.points_of, lines), free=lengthened(held.free, lines)
    )


def found(points: Points) -> Holdings:
    """What the lines hold, by the points."""
    used = points.features[:, : int(points.used)]
    points_of = np.count_nonzero(used, axis=(0, 2)).astype(np.int32)
    free = np.flatnonzero(points_of[1:] == 0).astype(np.int32) + np.int32(1)
    return Holdings(points.n.copy(), points_of, free, np.array(free.size))


@inlined
def lacks(points: Points, held: Holdings, s: int) -> bool:
    """Whether s more features may lack room, some in free lines."""
    return lacks_lines(points, s - held.n_free[()], s)


@inlined
def must_be_found(points: Points, held: Holdings, s: int) -> bool:
    """Whether the holdings are unknown, or may lack room for s non-zeros."""
    return bool(held.n[()] != points.n[()] or lacks(points, held, s))


@inlined
def join(points: Points, held: Holdings, p: int, idx: Array, val: Array, n2: float, t: int) -> None:
    """Make the row (idx, val) of round t, ‖x‖² = n2, point p."""
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
    hold(points, p, idx, val, n2, t)
    if p == points.n[()]:
        points.n[()] = held.n[()] = p + 1


@inlined
def leave(points: Points, held: Holdings, p: int) -> None:
    """Take out what point p holds; another row must join in its place."""
    for i in range(points.rows.begin[p], points.rows.end[p]):
        j = points.rows.indices[i]
        line = points.line_of[j]
        points.features[p // BLOCK, line, p % BLOCK] = 0.0
        held.points_of[line] -= 1
        if held.points_of[line] == 0:
            points.line_of[j] = 0
            held.free[held.n_free[()]] = line
            held.n_free[()] += 1
