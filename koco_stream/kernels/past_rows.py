"""The rows of a stream so far with their labels and their coordinates in the span of a dictionary.

A point that joins adds a coordinate to every past row, in O(t(J + s)) for t rows of s non-zeros and
J points.
"""

from typing import NamedTuple

import numpy as np

from koco_stream.kernels.dictionary import FIRST_ROOM, more_room, padded
from koco_stream.kernels.earlier_rows import History, no_rows, remember
from koco_stream.kernels.earlier_rows import with_room as rows_with_room
from koco_stream.kernels.kernel import Kernel, Others, values_of
from koco_stream.numerics.compiler import inlined, jit
from koco_stream.numerics.instructions.feature_rows import aligned_zeros
from koco_stream.numerics.instructions.point_panels import add_scaled, panel_dot
from koco_stream.types import Array


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
        history=rows_with_room(no_rows(), FIRST_ROOM, 0),
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
        history=rows_with_room(past.history, room - n, features),
        norms=padded(past.norms, room),
        labels=padded(past.labels, room),
        z=padded(past.z, room),
        coordinates=padded(past.coordinates, room, points),
    )


@jit
def kernel_values(past: PastRows, kernel: Kernel, idx: Array, val: Array, n2: float) -> None:
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
    squares = products = 0.0
    for s in range(past.history.n[()]):
        rest = past.z[s] - panel_dot(past.coordinates, s * width, c, 0, n)
        squares += rest * rest
        products += past.labels[s] * rest
    return squares, products


@inlined
def keep_new_coordinates(past: PastRows, n: int) -> None:
    """Keep z as coordinate n."""
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
