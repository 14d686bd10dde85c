"""The history of a stream's rows, and the kernel values of up to sixteen new rows with all of them.

A cohort computes them once. A tile (rows, 16) holds k(x_s, x_r) for all past rows s and a block's
rows r, which count as past too.
"""

from typing import NamedTuple

import numpy as np

from koco_stream.kernels.dictionary import Points, add_point, no_points, padded, panels
from koco_stream.kernels.kernel import Kernel, value_at_itself, values_of
from koco_stream.numerics.compiler import inlined, jit
from koco_stream.numerics.instructions.point_panels import BLOCK, accumulate, products
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
    if (room, entries) == (history.indptr.size - 1, history.indices.size):
        return history
    return history._replace(
        indptr=padded(history.indptr, room + 1),
        indices=padded(history.indices, entries),
        values=padded(history.values, entries),
    )


# All-zero `line_of` tables of returned blocks. Creating one takes O(d), which would dominate a call
# for a single row.
_free: list[Array] = []


def block_of(rows: Rows) -> Points:
    """An empty block for any sixteen consecutive rows of `rows`."""
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


def give_back(block: Points) -> None:
    """Return an empty block's feature table for reuse."""
    _free.append(block.line_of)


@jit
def clear_block(block: Points) -> None:
    """Empty a block, in time proportional to its non-zeros."""
    block.features[0, : block.used[()]] = 0.0
    block.holders[: block.used[()]] = 0
    for i in range(block.entries[()]):
        block.line_of[block.rows.indices[i]] = 0
    block.rows.begin[:] = block.rows.end[:] = 0
    block.used[()] = 1
    block.n[()] = block.entries[()] = 0


@inlined
def load_block(block: Points, history: History, rows: Rows, begin: int, learning: bool) -> None:
    """Load the rows from `begin` on into a block, and when learning into the history."""
    clear_block(block)
    for t in range(begin, min(begin + BLOCK, rows.indptr.size - 1)):
        idx, val = row(rows, t)
        even = odd = 0.0
        for i in range(0, idx.size, 2):
            even += np.float64(val[i]) * np.float64(val[i])
        for i in range(1, idx.size, 2):
            odd += np.float64(val[i]) * np.float64(val[i])
        add_point(block, t - begin, idx, val, even + odd, t)
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
    block: Points,
    rows: Rows,
    begin: int,
    learning: bool,
    first: int,
    tile: Array,
    own: Array,
    coefficients: Array,
    sums: Array,
) -> None:
    """Load a block's rows, compute their kernel values with the history, and the runs' sums over
    it.

    tile: k(x_s, x_r) for past rows s ≥ `first`. own (16,): k(x_r, x_r). sums (runs, 2, 16): Σ_s
    c_s·k(x_s, x_r) of the coefficients c, over even and odd s before the block.
    """
    known = int(history.n[()])
    load_block(block, history, rows, begin, learning)
    for r in range(BLOCK):
        own[r] = value_at_itself(kernel, block.rows.norms[r])
    sums[:] = 0.0
    n = int(history.n[()])
    for chunk in range(first, n, CHUNK):
        end = min(chunk + CHUNK, n)
        for s in range(chunk, end):
            lo, hi = history.indptr[s], history.indptr[s + 1]
            idx, val = history.indices[lo:hi], history.values[lo:hi]
            n2 = products(block.features, block.line_of, idx, val, BLOCK, tile[s], 0)
            # Of a row of the block, only the values with itself and those after it are used.
            values_of(kernel, block.rows, idx, val, n2, max(s - known, 0), BLOCK, tile[s])
        for i in range(coefficients.shape[0]):
            accumulate(tile, chunk, min(end, known), coefficients[i], 0, sums[i], 0)
