"""The rows that a learner has seen, and the kernel values of sixteen new ones with all of them.

Learners whose prediction needs k(x_s, x_t) for past rows s share this work: the kernel values
depend on the stream and the kernel alone, so a cohort computes them once. A tile (rows, 16) holds
k(x_s, x_r) for past rows s and the rows r of a block of at most sixteen, the rows of the block
among the past ones. Computing rows side by side changes no number: each value and each sum has its
own order.
"""

from typing import NamedTuple

import numpy as np

from koco_stream.kernels.dictionary import Points, add_point, lengthened, no_points, panels
from koco_stream.kernels.kernel import Kernel, value_at_itself, values_of
from koco_stream.numerics.compiler import jit
from koco_stream.numerics.llvm.point_panels import BLOCK, accumulate, products
from koco_stream.streams.rows import Rows
from koco_stream.types import Array

CHUNK = 256  # past rows whose kernel values stay near while all runs of a cohort use them


class History(NamedTuple):
    """n: () rows. indptr (room + 1,), indices, values: the rows, sparse. norms (room,): their
    ‖x‖².
    """

    n: Array
    indptr: Array
    indices: Array
    values: Array
    norms: Array


def no_rows() -> History:
    """Nothing seen yet."""
    return History(
        np.zeros((), np.int64),
        np.zeros(1, np.int64),
        np.zeros(0, np.int32),
        np.zeros(0),
        np.zeros(0),
    )


def with_room(history: History, rows: int, non_zeros: int) -> History:
    """The same rows with room for so many more: arrays double."""
    n = int(history.n)
    held = int(history.indptr[n])
    room, places = history.norms.size, history.indices.size
    if n + rows > room:
        room = max(2 * room, n + rows)
    if held + non_zeros > places:
        places = max(2 * places, held + non_zeros)
    if (room, places) == (history.norms.size, history.indices.size):
        return history
    return history._replace(
        indptr=lengthened(history.indptr, room + 1),
        indices=lengthened(history.indices, places),
        values=lengthened(history.values, places),
        norms=lengthened(history.norms, room),
    )


# Tables `line_of` of blocks that are given back, all zero: to make one takes O(d), which a call for
# one row would feel.
_free: list[Array] = []


def block_of(rows: Rows) -> Points:
    """An empty block with room for any sixteen of these rows that follow each other."""
    first = np.arange(0, rows.n_rows, BLOCK)
    non_zeros = rows.indptr[np.minimum(first + BLOCK, rows.n_rows)] - rows.indptr[first]
    lines = 1 + min(rows.n_features, int(non_zeros.max(initial=0)))
    try:
        line_of = _free.pop()
    except IndexError:
        line_of = np.zeros(0, np.int32)
    if line_of.size < rows.n_features:
        line_of = np.zeros(rows.n_features, np.int32)
    return no_points(0, BLOCK)._replace(features=panels(BLOCK, lines), line_of=line_of)


def give_back(block: Points) -> None:
    """Keep the table of a block that is empty and of no more use. One that never comes back, after
    an error, is not missed.
    """
    _free.append(block.line_of)


@jit
def clear_block(block: Points, rows: Rows) -> None:
    """Empty a block of some of these rows. Only what they wrote is cleared: O(their non-zeros),
    whatever d is.
    """
    block.features[0, : block.used[()]] = 0.0
    for r in range(block.n[()]):
        lo, hi = rows.indptr[block.rounds[r]], rows.indptr[block.rounds[r] + 1]
        for i in range(hi - lo):
            block.line_of[rows.indices[lo * rows.index_stride + i]] = 0
    block.used[()] = 1
    block.n[()] = 0


@jit
def load_block(block: Points, rows: Rows, first: int, end: int) -> None:
    """The rows first to end − 1 become the block, which is empty."""
    for row in range(first, end):
        lo, hi = rows.indptr[row], rows.indptr[row + 1]
        at = lo * rows.index_stride
        even = odd = 0.0
        for i in range(lo, hi):
            v = np.float64(rows.values[i])
            if (i - lo) % 2 == 0:
                even += v * v
            else:
                odd += v * v
        idx, val = rows.indices[at : at + hi - lo], rows.values[lo:hi]
        add_point(block, idx, val, even + odd, row)


@jit
def remember(history: History, rows: Rows, block: Points) -> None:
    """Append the rows of a block of these to the history. There must be room."""
    for r in range(block.n[()]):
        row, n = block.rounds[r], history.n[()]
        lo, place = rows.indptr[row], history.indptr[n]
        for i in range(lo, rows.indptr[row + 1]):
            history.indices[place] = rows.indices[i if rows.index_stride == 1 else i - lo]
            history.values[place] = rows.values[i]
            place += 1
        history.indptr[n + 1] = place
        history.norms[n] = block.norms[r]
        history.n[()] = n + 1


@jit
def fill_tile(
    kernel: Kernel,
    history: History,
    block: Points,
    first: int,
    known: int,
    tile: Array,
    own: Array,
    coefficients: Array,
    sums: Array,
) -> None:
    """tile[s] ← k(x_s, x_r) for the rows s ≥ first of the history and all r of the block; own[r] ←
    k(x_r, x_r).

    `coefficients` (runs, room) are the c_s of the cohort's runs for s < known: sums[i, s mod 2, r]
    ← Σ_s c_s·k(x_s, x_r), (runs, 2, 16), even and odd s apart, in order.
    """
    for r in range(BLOCK):
        own[r] = value_at_itself(kernel, block.norms[r])
    sums[:] = 0.0
    rows = int(history.n[()])
    for chunk in range(first, rows, CHUNK):
        end = min(chunk + CHUNK, rows)
        for s in range(chunk, end):
            lo, hi = history.indptr[s], history.indptr[s + 1]
            idx, val = history.indices[lo:hi], history.values[lo:hi]
            n2 = products(block.features, block.line_of, idx, val, BLOCK, tile[s], 0)
            values_of(kernel, block.norms, n2, BLOCK, tile[s])
        for i in range(coefficients.shape[0]):
            accumulate(tile, chunk, min(end, known), coefficients[i], 0, sums[i], 0)
