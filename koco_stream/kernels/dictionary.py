"""The points of a dictionary, stored so that kernel values with all of them vectorise.

Memory is proportional to the number of points times the number of features in use, even if d is
large. A feature of a row that no point has costs only one read. If there is no room for another
point, the compiled code stops before the round, and `grown` doubles the arrays.
"""

from typing import NamedTuple

import numpy as np

from koco_stream.kernels.kernel import Kernel, value_at_itself, values_of
from koco_stream.numerics.compiler import inlined
from koco_stream.numerics.llvm.feature_lines import aligned_zeros
from koco_stream.numerics.llvm.point_panels import BLOCK, products, room_for
from koco_stream.types import Array

# Room grows from n to 2n + 16. The number of panels stays odd, so that the lines of a panel do not
# all map to the same cache sets.
FIRST_ROOM = 3 * BLOCK


class Points(NamedTuple):
    """The points of a dictionary, in panels of 16 points.

    `n` () is the number of points and `used` () the number of lines in use, of which line 0 is all
    zeros. `features` (panels, lines, 16): line l of panel p holds one feature of 16 points.
    `line_of` (d,) int32 is the line of each feature, 0 if no point has it. `norms` (room,) are
    ‖x_p‖², and `rounds` (room,) the rounds in which the points joined.
    """

    n: Array
    used: Array
    features: Array
    line_of: Array
    norms: Array
    rounds: Array


def no_points(d: int, room: int = FIRST_ROOM) -> Points:
    """An empty dictionary for rows with d features."""
    return Points(
        n=np.zeros((), np.int64),
        used=np.ones((), np.int64),
        features=panels(room, min(d + 1, 64)),
        line_of=np.zeros(d, np.int32),
        norms=np.zeros(room),
        rounds=np.zeros(room, np.int64),
    )


def panels(room: int, lines: int) -> Array:
    """A zero float64 table (room/16, lines, 16), aligned to the processor's cache lines."""
    return aligned_zeros(room, lines).reshape(room // BLOCK, lines, BLOCK)


def more_room(room: int) -> int:
    """The next larger capacity: a little more than double, and an odd number of panels."""
    return 2 * room + BLOCK


def enlarged(table: Array, room: int, lines: int) -> Array:
    """A copy of a panel table with larger capacity for points and lines, padded with zeros."""
    new = panels(room, lines)
    new[: table.shape[0], : table.shape[1]] = table
    return new


def lengthened(vectors: Array, room: int) -> Array:
    """A copy of vectors (..., room) with larger capacity, padded with zeros."""
    new = np.zeros((*vectors.shape[:-1], room), vectors.dtype)
    new[..., : vectors.shape[-1]] = vectors
    return new


def grown(points: Points, s: int, more_points: bool = True) -> Points:
    """The same points with lines for s more features and, with `more_points`, for one more
    point.
    """
    room, lines = points.norms.size, points.features.shape[1]
    if more_points and points.n[()] == room:
        room = more_room(room)
    while points.used[()] + s > lines <= points.line_of.size:
        lines = min(2 * lines, points.line_of.size + 1)
    return points._replace(
        features=enlarged(points.features, room, lines),
        norms=lengthened(points.norms, room),
        rounds=lengthened(points.rounds, room),
    )


@inlined
def lacks_room(points: Points, s: int) -> bool:
    """Whether there may be no room for one more point with s features."""
    return bool(points.n[()] == points.norms.size or lacks_lines(points, s))


@inlined
def lacks_lines(points: Points, s: int) -> bool:
    """Whether there may be too few lines for s more features.

    There are enough if every feature has a line.
    """
    lines = points.features.shape[1]
    return bool(points.used[()] + s > lines and lines <= points.line_of.size)


@inlined
def kernel_row(
    kernel: Kernel, points: Points, idx: Array, val: Array, k: Array
) -> tuple[float, float]:
    """Compute k[p] = k(x, x_p), (room,), for the row x = (idx, val). Returns k(x, x) and ‖x‖²."""
    n = int(points.n[()])
    n2 = products(points.features, points.line_of, idx, val, n, k, 0)
    values_of(kernel, points.norms, n2, n, k)
    for p in range(n, BLOCK * ((n + BLOCK - 1) // BLOCK)):
        k[p] = 0.0
    return value_at_itself(kernel, n2), n2


@inlined
def add_point(points: Points, idx: Array, val: Array, n2: float, t: int) -> None:
    """Append the row (idx, val) of round t, with square norm n2, as the next point.

    There must be room.
    """
    p = int(points.n[()])
    for i in range(idx.size):
        line = points.line_of[idx[i]]
        if line == 0:
            line = points.used[()]
            points.line_of[idx[i]] = line
            points.used[()] = line + 1
        points.features[p // BLOCK, line, p % BLOCK] = val[i]
    points.norms[p] = n2
    points.rounds[p] = t
    points.n[()] = p + 1


def points_floats(n: int, lines: int, d: int) -> int:
    """The size of a dictionary of n points with this many features in use, in 8-byte numbers."""
    return room_for(n) * (lines + 2) + d // 2 + 2
