"""The points of a dictionary, stored so that kernel values with all of them vectorise.

Compiled code stops before a round that lacks room, and `grown` doubles the arrays. A point can
leave, at a cost of its non-zeros, and another one join in its place.
"""

import math
from typing import NamedTuple

import numpy as np

from koco_stream.kernels.kernel import Kernel, Others, value_at_itself, values_of
from koco_stream.numerics.compiler import inlined, jit
from koco_stream.numerics.instructions.feature_rows import aligned_zeros
from koco_stream.numerics.instructions.point_panels import BLOCK, inner_products, room_for
from koco_stream.types import Array

# Room grows from n to 2n + 16. The number of panels stays odd, so that the lines of a panel do not
# all map to the same cache sets.
FIRST_ROOM = 3 * BLOCK


class Points(NamedTuple):
    """The points of a dictionary, in panels of 16 points.

    `n` () is the number of points. `features` (panels, lines, 16): a line holds one feature of 16
    points; `used` () lines have been in use, and line 0 is zeros. `line_of` (d,) int32 is each
    feature's line, or 0. `holders` (lines,) is how many points have a line's feature; the first
    `n_free` () of `free` (lines,) are lines that none has any more. `rows` are the points as rows,
    with `entries` () feature numbers. `rounds` (room,) are those in which they joined.
    """

    n: Array
    used: Array
    features: Array
    line_of: Array
    holders: Array
    free: Array
    n_free: Array
    rows: Others
    entries: Array
    rounds: Array


def no_points(d: int, room: int = FIRST_ROOM) -> Points:
    """An empty dictionary for rows with d features."""
    entries, lines = room * min(d, 64), min(d + 1, 64)
    return Points(
        n=np.zeros((), np.int64),
        used=np.ones((), np.int64),
        features=panels(room, lines),
        line_of=np.zeros(d, np.int32),
        holders=np.zeros(lines, np.int32),
        free=np.zeros(lines, np.int32),
        n_free=np.zeros((), np.int64),
        rows=Others(
            begin=np.zeros(room, np.int64),
            end=np.zeros(room, np.int64),
            indices=np.zeros(entries, np.int32),
            values=np.zeros(entries),
            norms=np.zeros(room),
        ),
        entries=np.zeros((), np.int64),
        rounds=np.zeros(room, np.int64),
    )


def panels(room: int, lines: int) -> Array:
    """A zero table (room/16, lines, 16), aligned to cache lines."""
    return aligned_zeros(room, lines).reshape(room // BLOCK, lines, BLOCK)


def more_room(room: int) -> int:
    """The next capacity: a little more than double, an odd number of panels."""
    return 2 * room + BLOCK


def padded(array: Array, *shape: int) -> Array:
    """The array padded with zeros to this shape, or itself; aligned to cache lines."""
    if array.shape == shape:
        return array
    new = aligned_zeros(1, math.prod(shape), array.dtype).reshape(shape)
    new[tuple(map(slice, array.shape))] = array
    return new


def grown(points: Points, s: int, more_points: bool = True) -> Points:
    """The points with room for s more features and, with `more_points`, another point."""
    room, lines = points.rounds.size, points.features.shape[1]
    if more_points and points.n[()] == room:
        room = more_room(room)
    while points.used[()] - points.n_free[()] + s > lines <= points.line_of.size:
        lines = min(2 * lines, points.line_of.size + 1)
    if points.entries[()] + s > points.rows.indices.size:
        points = without_gaps(points, s)
    rows = points.rows
    return points._replace(
        features=padded(points.features, room // BLOCK, lines, BLOCK),
        holders=padded(points.holders, lines),
        free=padded(points.free, lines),
        rows=rows._replace(
            begin=padded(rows.begin, room),
            end=padded(rows.end, room),
            norms=padded(rows.norms, room),
        ),
        rounds=padded(points.rounds, room),
    )


def without_gaps(points: Points, s: int) -> Points:
    """The points with rows behind each other, and room for a row of s non-zeros.

    The room never shrinks, so a saved state has at least a new one's.
    """
    rows, sizes = points.rows, points.rows.end - points.rows.begin
    places = [np.arange(*ends) for ends in zip(rows.begin, rows.end, strict=True)]
    used, end = np.concatenate(places), np.cumsum(sizes)
    room = max(used.size + max(used.size, BLOCK * s), rows.indices.size)
    return points._replace(
        rows=rows._replace(
            begin=end - sizes,
            end=end,
            indices=padded(rows.indices[used], room),
            values=padded(rows.values[used], room),
        ),
        entries=np.array(used.size),
    )


@inlined
def lacks_room(points: Points, s: int) -> bool:
    """Whether another point, of s features, may lack room."""
    return bool(points.n[()] == points.rounds.size or lacks_lines(points, s))


@inlined
def lacks_lines(points: Points, s: int) -> bool:
    """Whether a row of s features may lack room, as one more point or in the place of one."""
    lines = points.features.shape[1]
    too_few = points.used[()] - points.n_free[()] + s > lines and lines <= points.line_of.size
    return bool(too_few or points.entries[()] + s > points.rows.indices.size)


@jit
def kernel_row(
    kernel: Kernel, points: Points, idx: Array, val: Array, k: Array
) -> tuple[float, float]:
    """k[p] ← k(x, x_p), (room,), for x = (idx, val); returns k(x, x) and ‖x‖²."""
    n = int(points.n[()])
    n2 = inner_products(points.features, points.line_of, idx, val, n, k, 0)
    values_of(kernel, points.rows, idx, val, n2, 0, n, k)
    for p in range(n, BLOCK * ((n + BLOCK - 1) // BLOCK)):
        k[p] = 0.0
    return value_at_itself(kernel, n2), n2


@jit
def add_point(points: Points, p: int, idx: Array, val: Array, n2: float, t: int) -> None:
    """Make the row (idx, val) of round t, ‖x‖² = n2, point p: the next, or one that left."""
    for i in range(idx.size):
        line = points.line_of[idx[i]]
        if line == 0:
            line = line_for(points)
            points.line_of[idx[i]] = line
        points.features[p // BLOCK, line, p % BLOCK] = val[i]
        points.holders[line] += 1
    rows = points.rows
    begin = rows.begin[p]
    if rows.end[p] - begin < idx.size:  # it does not fit where the row of this point was
        begin = points.entries[()]
        points.entries[()] = begin + idx.size
    for i in range(idx.size):
        rows.indices[begin + i] = idx[i]
        rows.values[begin + i] = val[i]
    rows.begin[p], rows.end[p], rows.norms[p] = begin, begin + idx.size, n2
    points.rounds[p] = t
    points.n[()] = max(points.n[()], p + 1)


@inlined
def line_for(points: Points) -> int:
    """A line for a feature that no point has: a free one, or the next."""
    if points.n_free[()] > 0:
        points.n_free[()] -= 1
        return int(points.free[points.n_free[()]])
    points.used[()] += 1
    return int(points.used[()]) - 1


@inlined
def leave(points: Points, p: int) -> None:
    """Take out what point p has; another row must join in its place."""
    for i in range(points.rows.begin[p], points.rows.end[p]):
        j = points.rows.indices[i]
        line = points.line_of[j]
        points.features[p // BLOCK, line, p % BLOCK] = 0.0
        points.holders[line] -= 1
        if points.holders[line] == 0:
            points.line_of[j] = 0
            points.free[points.n_free[()]] = line
            points.n_free[()] += 1


def points_floats(n: int, lines: int, d: int, s: float) -> int:
    """The size of n points in 8-byte numbers."""
    return room_for(n) * (lines + 4) + int(3.0 * n * s) + d // 2 + 2
