"""The history of a stream's rows, and their kernel values with new ones.

Sixteen new rows at a time: a tile (rows, 16) holds k(x_s, x_r) for all past rows s and a panel's
rows r, which count as past too. A cohort computes it once. Or one new row that joins a dictionary:
it adds a coordinate in the span of the points to every past row, in O(t(J + s)) for t rows of s
non-zeros and J points.
"""

from typing import NamedTuple

import numpy as np

from koco_stream.kernels.dictionary import (
    FIRST_ROOM,
    Points,
    add_point,
    more_room,
    no_points,
    padded,
    panels,
)
from koco_stream.kernels.kernel import Kernel, Others, value_at_itself, values_of
from koco_stream.numerics.compiler import inlined, jit
from koco_stream.numerics.instructions.feature_rows import aligned_zeros
from koco_stream.numerics.instructions.point_panels import (
    BLOCK,
    accumulate,
    add_scaled,
    inner_products,
    panel_dot,
)
from koco_stream.streams.rows import Rows, row
from koco_stream.types import Array

CHUNK = 256  # past rows whose kernel values stay in the cache while all runs of a cohort use them


class History(NamedTuple):
    """The rows so far as sparse rows: n (), indptr (room + 1,), indices, values."""

    n: Array
    indptr: Array
    indices: Array
    values: Array


def no_rows() -> History:
    """An empty history."""
    return History(
        np.zeros((), np.int64), np.zeros(1, np.int64), np.zeros(0, np.int32), np.zeros(0)
    )


def with_room(history: History, rows: int, non_zeros: int) -> History:
    """The history with room for more rows and non-zeros; arrays at least double."""
    n = int(history.n)
    held = int(history.indptr[n])
    room, entries = history.indptr.size - 1, history.indices.size
    if n + rows > room:
        room = max(2 * room, n + rows)
    if held + non_zeros > entries:
        entries = max(2 * entries, held + non_zeros)
    return history._replace(
        indptr=padded(history.indptr, room + 1),
        indices=padded(history.indices, entries),
        values=padded(history.values, entries),
    )


# All-zero `line_of` tables of returned panels. Creating one takes O(d), which would dominate a call
# for a single row.
_free: list[Array] = []


def panel_of(rows: Rows) -> Points:
    """An empty panel for any sixteen consecutive rows of `rows`."""
    first = np.arange(0, rows.n_rows, BLOCK)
    non_zeros = rows.indptr[np.minimum(first + BLOCK, rows.n_rows)] - rows.indptr[first]
    lines = 1 + min(rows.n_features, int(non_zeros.max(initial=0)))
    try:
        line_of = _free.pop()
    except IndexError:
        line_of = np.zeros(0, np.int32)
    if line_of.size < rows.n_features:
        line_of = np.zeros(rows.n_features, np.int32)
    empty, entries = no_points(0, BLOCK), int(non_zeros.max(initial=0))
    held = empty.rows._replace(indices=np.zeros(entries, np.int32), values=np.zeros(entries))
    features, holders = panels(BLOCK, lines), np.zeros(lines, np.int32)
    return empty._replace(features=features, line_of=line_of, holders=holders, rows=held)


def give_back(panel: Points) -> None:
    """Return an empty panel's feature table for reuse."""
    _free.append(panel.line_of)


@jit
def clear_panel(panel: Points) -> None:
    """Empty a panel, in time proportional to its non-zeros."""
    panel.features[0, : panel.used[()]] = 0.0
    panel.holders[: panel.used[()]] = 0
    for i in range(panel.entries[()]):
        panel.line_of[panel.rows.indices[i]] = 0
    panel.rows.begin[:] = panel.rows.end[:] = 0
    panel.used[()] = 1
    panel.n[()] = panel.entries[()] = 0


@inlined
def load_panel(
    kernel: Kernel,
    panel: Points,
    history: History,
    rows: Rows,
    begin: int,
    learning: bool,
    own: Array,
) -> None:
    """Load the rows from `begin` on into a panel, and when learning into the history; k(x, x) of
    each into `own`.
    """
    clear_panel(panel)
    for t in range(begin, min(begin + BLOCK, rows.indptr.size - 1)):
        idx, val = row(rows, t)
        n2 = inner_products(panel.features, panel.line_of, idx, val, 0, own, 0)
        add_point(panel, t - begin, idx, val, n2, t)
        own[t - begin] = value_at_itself(kernel, n2)
        if learning:
            remember(history, idx, val)


@inlined
def remember(history: History, idx: Array, val: Array) -> None:
    """Append the row (idx, val) to the history."""
    n = history.n[()]
    start = history.indptr[n]
    for i in range(idx.size):
        history.indices[start + i] = idx[i]
        history.values[start + i] = val[i]
    history.indptr[n + 1] = start + idx.size
    history.n[()] = n + 1


@jit
def fill_tile(
    kernel: Kernel,
    history: History,
    panel: Points,
    rows: Rows,
    begin: int,
    learning: bool,
    first: int,
    tile: Array,
    own: Array,
    coefficients: Array,
    sums: Array,
) -> None:
    """Load a panel's rows, compute their kernel values with the history, and the runs' sums over
    it.

    tile: k(x_s, x_r) for past rows s ≥ `first`. own (16,): k(x_r, x_r). sums (runs, 2, 16): Σ_s
    c_s·k(x_s, x_r) of the coefficients c, over even and odd s before the panel.
    """
    known = int(history.n[()])
    load_panel(kernel, panel, history, rows, begin, learning, own)
    for i in range(coefficients.shape[0]):
        for r in range(BLOCK):
            sums[i, 0, r] = sums[i, 1, r] = 0.0
    n = int(history.n[()])
    for chunk in range(first, n, CHUNK):
        end = min(chunk + CHUNK, n)
        for s in range(chunk, end):
            lo, hi = history.indptr[s], history.indptr[s + 1]
            idx, val = history.indices[lo:hi], history.values[lo:hi]
            n2 = inner_products(panel.features, panel.line_of, idx, val, BLOCK, tile[s], 0)
            # Of a row of the panel, only the values with itself and those after it are used.
            values_of(kernel, panel.rows, idx, val, n2, max(s - known, 0), BLOCK, tile[s])
        for i in range(coefficients.shape[0]):
            accumulate(tile, chunk, min(end, known), coefficients[i], 0, sums[i], 0)


class PastRows(NamedTuple):
    """The past rows of a stream.

    norms, labels (room,): ‖x_s‖², y_s. coordinates (room, room of points): φ̃_s. z (room,), x (d,):
    scratch.
    """

    history: History
    norms: Array
    labels: Array
    z: Array
    coordinates: Array
    x: Array


def no_past(d: int) -> PastRows:
    """No rows yet, of d features."""
    return PastRows(
        history=with_room(no_rows(), FIRST_ROOM, 0),
        norms=np.zeros(FIRST_ROOM),
        labels=np.zeros(FIRST_ROOM),
        z=np.zeros(FIRST_ROOM),
        coordinates=aligned_zeros(FIRST_ROOM, FIRST_ROOM),
        x=np.zeros(d),
    )


@inlined
def lacks_past(past: PastRows, features: int) -> bool:
    """Whether a row with `features` non-zeros lacks room."""
    n = int(past.history.n[()])
    return bool(
        n == past.norms.size or past.history.indptr[n] + features > past.history.indices.size
    )


def more_past(past: PastRows, features: int, points: int) -> PastRows:
    """The rows with room for another of `features` non-zeros, and for `points` points."""
    n, room = int(past.history.n), past.norms.size
    if n == room:
        room = more_room(room)
    return past._replace(
        history=with_room(past.history, room - n, features),
        norms=padded(past.norms, room),
        labels=padded(past.labels, room),
        z=padded(past.z, room),
        coordinates=padded(past.coordinates, room, points),
    )


@jit
def values_with_past(past: PastRows, kernel: Kernel, idx: Array, val: Array, n2: float) -> None:
    """z_s ← k(x, x_s) of x = (idx, val), ‖x‖² = n2, with each past row."""
    rows = past.history
    for i in range(idx.size):
        past.x[idx[i]] = val[i]
    for s in range(rows.n[()]):
        first, end = rows.indptr[s], rows.indptr[s + 1]
        even = odd = 0.0  # as ‖x‖² is added, so that equal rows have a distance of 0
        for i in range(first, end, 2):
            even += past.x[rows.indices[i]] * rows.values[i]
        for i in range(first + 1, end, 2):
            odd += past.x[rows.indices[i]] * rows.values[i]
        past.z[s] = even + odd
    for i in range(idx.size):
        past.x[idx[i]] = 0.0
    others = Others(rows.indptr, rows.indptr[1:], rows.indices, rows.values, past.norms)
    values_of(kernel, others, idx, val, n2, 0, rows.n[()], past.z)


@jit
def new_coordinates(past: PastRows, phi: Array, n: int, pivot: float, sums: Array) -> None:
    """The coordinate z_s that a new point adds to each past row, from the kernel values in z.

    `phi` (n,) are the point's other coordinates and `pivot` its last; `sums` (room,) becomes Σ_s
    z_s φ̃_s.
    """
    width = past.coordinates.shape[1]
    sums[:] = 0.0
    for s in range(past.history.n[()]):
        z = (past.z[s] - panel_dot(past.coordinates, s * width, phi, 0, n)) / pivot
        add_scaled(z, past.coordinates, s * width, sums, 0, n)
        past.z[s] = z


@jit
def unexplained(past: PastRows, c: Array, n: int) -> tuple[float, float]:
    """Σ_s r_s² and Σ_s y_s r_s for r_s = z_s − cᵀφ̃_s."""
    width = past.coordinates.shape[1]
    squares = along = 0.0
    for s in range(past.history.n[()]):
        rest = past.z[s] - panel_dot(past.coordinates, s * width, c, 0, n)
        squares += rest * rest
        along += past.labels[s] * rest
    return squares, along


@inlined
def store_new_coordinates(past: PastRows, n: int) -> None:
    """Store z as coordinate n."""
    for s in range(past.history.n[()]):
        past.coordinates[s, n] = past.z[s]


@inlined
def append(past: PastRows, idx: Array, val: Array, n2: float, phi: Array, n: int, y: float) -> None:
    """Append the row (idx, val) with its norm, its n coordinates φ̃ and its label."""
    t = past.history.n[()]
    past.norms[t] = n2
    past.labels[t] = y
    for j in range(n):
        past.coordinates[t, j] = phi[j]
    remember(past.history, idx, val)
