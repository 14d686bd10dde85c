"""Points of a stream that are sampled with weights, and the triangular system that they give.

With D the diagonal matrix of the points' scales, LLᵀ = DKD + αI. A point that joins adds a row to
L, so no matrix is ever factored again. A round's kernel values k stand in a tile (see
koco_stream.kernels.earlier_rows). L is read from memory once for all rows of a tile, for the points
that were there before them; a round adds the points that have joined since, in the same order of
sums.
"""

import math
from typing import NamedTuple

import numpy as np

from koco_stream.kernels.dictionary import FIRST_ROOM, more_room, padded, panels
from koco_stream.learners.kernel.base import append_row
from koco_stream.numerics.compiler import inlined, jit
from koco_stream.numerics.instructions.point_panels import (
    BLOCK,
    panel_dot,
    substitute,
    substitute_tile,
)
from koco_stream.types import Array

K, V, S, B = range(4)  # lines of `a`: Dk and v = L⁻¹Dk of this round; what learners keep of points
FEWEST = 4  # rows of a tile for which reading L once for all is faster than for each


class Sketch(NamedTuple):
    """Sampled points.

    n: () points. rows (room,): their row numbers. scales (room,): the diagonal of D. L (panels,
    room, 16), by columns. a (4, room): see above. Of the present tile, known: () the number of
    points before it, or 0 if nothing is computed for all its rows; ahead (room, 16): v of its rows
    with these points.
    """

    n: Array
    rows: Array
    scales: Array
    L: Array
    a: Array
    known: Array
    ahead: Array


def no_points() -> Sketch:
    """A sketch without points."""
    return Sketch(
        n=np.zeros((), np.int64),
        rows=np.zeros(FIRST_ROOM, np.int64),
        scales=np.zeros(FIRST_ROOM),
        L=panels(FIRST_ROOM, FIRST_ROOM),
        a=np.zeros((4, FIRST_ROOM)),
        known=np.zeros((), np.int64),
        ahead=np.zeros((FIRST_ROOM, BLOCK)),
    )


def with_room(d: Sketch) -> Sketch:
    """The same points with room for those that join from one more tile."""
    room = d.rows.size
    if d.n[()] + BLOCK <= room:
        return d
    room = more_room(room)
    return d._replace(
        rows=padded(d.rows, room),
        scales=padded(d.scales, room),
        L=padded(d.L, room // BLOCK, room, BLOCK),
        a=padded(d.a, 4, room),
        ahead=padded(d.ahead, room, BLOCK),
    )


@jit
def look_ahead(d: Sketch, tile: Array, rows: int) -> None:
    """Solve Lv = Dk for all rows of a tile, of which there are `rows`, with the points so far."""
    n = int(d.n[()])
    d.known[()] = n if rows >= FEWEST else 0
    if d.known[()] > 0:
        for p in range(n):
            for r in range(BLOCK):
                d.ahead[p, r] = d.scales[p] * tile[d.rows[p], r]
        substitute_tile(d.L, n, d.ahead)


@jit
def solve(d: Sketch, tile: Array, r: int, k_tt: float) -> float:
    """Solve Lv = Dk for row r of the tile. Returns k(x, x) − ‖v‖² = α·φᵀÃ⁻¹φ.

    Leaves v in the scratch.
    """
    n, known, k, v = int(d.n[()]), int(d.known[()]), d.a[K], d.a[V]
    whole = known - known % BLOCK  # points join the next panel
    for p in range(whole):
        v[p] = d.ahead[p, r]
    for p in range(whole, n):
        k[p] = d.scales[p] * tile[d.rows[p], r]
    substitute(d.L, whole, n, k, v)
    return k_tt - panel_dot(v, 0, v, 0, n)


@inlined
def add_point(d: Sketch, t: int, scale: float, alpha: float, q: float) -> float:
    """Add the row of round t, for which `solve` has just given q. Returns the pivot of L."""
    n = int(d.n[()])
    pivot = math.sqrt(scale * scale * q + alpha)
    append_row(d.L, n, d.a[V], scale, pivot)
    d.rows[n] = t - 1
    d.scales[n] = scale
    d.n[()] = n + 1
    return pivot
