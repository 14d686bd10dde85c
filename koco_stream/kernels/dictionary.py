"""The points of a dictionary, stored so that kernel values with all of them vectorise.

Compiled code stops before a round that lacks room, and `grown` doubles the arrays.
"""

from typing import NamedTuple

import numpy as np

from koco_stream.kernels.kernel import Kernel, Others, value_at_itself, values_of
from koco_stream.numerics.compiler import inlined
from koco_stream.numerics.llvm.feature_lines import aligned_zeros
from koco_stream.numerics.llvm.point_panels import BLOCK, products, room_for
from koco_stream.types import Array

# Room grows from n to 2n + 16. The number of panels stays odd, so that the lines of a panel do not
# all map to the same cache sets.
FIRST_ROOM = 3 * BLOCK


class Points(NamedTuple):
    """The points of a dictionary, in panels of 16 points.

    `n` () is the number of points. `features` (panels, lines, 16): a line holds one feature of 16
    points; `used` () lines are in use, and line 0 is zeros. `line_of` (d,) int32 is each feature's
    line, or 0. `rows` are the points as rows, with `entries` () feature numbers. `rounds` (room,)
    are those in which they joined.
    """

    n: Array
    used: Array
    features: Array
    line_of: Array
    rows: Others
    entries: Array
    rounds: Array


def no_points(d: int, room: int = FIRST_ROOM) -> Points:
    """An empty dictionary for rows with d features."""
    entries = room * min(d, 64)
    return Points(
        n=np.zeros((), np.int64),
        used=np.ones((), np.int64),
        features=panels(room, min(d + 1, 64)),
        line_of=np.zeros(d, np.int32),
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


def enlarged(table: Array, room: int, lines: int) -> Array:
    """A panel table padded to this capacity, or itself."""
    if table.shape[:2] == (room // BLOCK, lines):
        return table
    new = panels(room, lines)
    new[: table.shape[0], : table.shape[1]] = table
    return new


def lengthened(vectors: Array, room: int) -> Array:
    """Vectors (..., room) padded to this capacity, or themselves."""
    if vectors.shape[-1] == room:
        return vectors
    new = np.zeros((*vectors.shape[:-1], room), vectors.dtype)
    new[..., : vectors.shape[-1]] = vectors
    return new


def grown(points: Points, s: int, more_points: bool = True) -> Points:
    """The points with room for s more features and, with `more_points`, another point."""
    rows, room, lines = points.rows, points.rounds.size, points.features.shape[1]
    if more_points and points.n[()] == room:
        room = more_room(room)
    while points.used[()] + s > lines <= points.line_of.size:
        lines = min(2 * lines, points.line_of.size + 1)
    if points.entries[()] + s > rows.indices.size:
        points = without_gaps(points, s)
        rows = points.rows
    return points._replace(
        features=enlarged(points.features, room, lines),
        rows=rows._replace(
            begin=lengthened(rows.begin, room),
            end=lengthened(rows.end, room),
            norms=lengthened(rows.norms, room),
        ),
        rounds=lengthened(points.rounds, room),
    )


def without_gaps(points: Points, s: int) -> Points:
    """The points with rows behind each other, and room for a row of s non-zeros.

    The room never shrinks, so a saved state has at least a new one's.
    """
    rows, sizes = points.rows, points.rows.end - points.rows.begin
    places = [np.arange(*ends) for ends in zip(rows.begin, rows.end, strict=True)]
    kept, end = np.concatenate(places), np.cumsum(sizes)
    room = max(kept.size + max(kept.size, BLOCK * s), rows.indices.size)
    return points._replace(
        rows=rows._replace(
            begin=end - sizes,
            end=end,
            indices=lengthened(rows.indices[kept], room),
            values=lengthened(rows.values[kept], room),
        ),
        entries=np.array(kept.size),
    )


@inlined
def lacks_room(points: Points, s: int) -> bool:
    """Whether a point with s features may lack room."""
    return bool(points.n[()] == points.rounds.size or lacks_lines(points, s, s))


@inlined
def lacks_lines(points: Points, more: int, s: int) -> bool:
    """Whether `more` lines, or a row of s non-zeros, may lack room."""
    lines = points.features.shape[1]
    too_few = points.used[()] + more > lines and lines <= points.line_of.size
    return bool(too_few or points.entries[()] + s > points.rows.indices.size)


@inlined
def kernel_row(
    kernel: Kernel, points: Points, idx: Array, val: Array, k: Array
) -> tuple[float, float]:
    """k[p] ← k(x, x_p), (room,), for x = (idx, val); returns k(x, x) and ‖x‖²."""
    n = int(points.n[()])
    n2 = products(points.features, points.line_of, idx, val, n, k, 0)
    values_of(kernel, points.rows, idx, val, n2, 0, n, k)
    for p in range(n, BLOCK * ((n + BLOCK - 1) // BLOCK)):
        k[p] = 0.0
    return value_at_itself(kernel, n2), n2


@inlined
def add_point(points: Points, idx: Array, val: Array, n2: float, t: int) -> None:
    """Append the row (idx, val) of round t, ‖x‖² = n2, as the next point."""
    p = int(points.n[()])
    for i in range(idx.size):
        line = points.line_of[idx[i]]
        if line == 0:
            line = points.used[()]
            points.line_of[idx[i]] = line
            points.used[()] = line + 1
        points.features[p // BLOCK, line, p % BLOCK] = val[i]
    hold(points, p, idx, val, n2, t)
    points.n[()] = p + 1


@inlined
def hold(points: Points, p: int, idx: Array, val: Array, n2: float, t: int) -> None:
    """Keep the row (idx, val) of round t, ‖x‖² = n2, as point p's."""
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


def points_floats(n: int, lines: int, d: int, s: float) -> int:
    """The size of n points in 8-byte numbers."""
    return room_for(n) * (lines + 4) + int(3.0 * n * s) + d // 2 + 2
