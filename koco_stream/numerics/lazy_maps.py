"""Linear maps that are applied to a column only when it is next used.

At the end of epoch e every column x (n_in numbers) of a table becomes M_e x (n_out numbers, then
zeros). That would cost O(d), so a column, a line of the table, ends with 1 plus the epoch of its
last update, or 0 if it is unused. It is updated by M_e and a product of Q, the first n_out columns
of each later map. Columns share these products within and across blocks of 16 epochs
(docs/errata.md, S13). Line k of a stored map is for input k.
"""

from typing import Any, NamedTuple

import numpy as np

from koco_stream.numerics.compiler import inlined, jit
from koco_stream.numerics.instructions.feature_rows import (
    aligned_zeros,
    combine,
    row_at,
    scatter,
    scatter_first,
)
from koco_stream.types import Array

BLOCK = 16  # epochs
# In `Maps.counts`: the current epoch, how many columns were used, the epochs of a period. Then, for
# each epoch and for each block twice, the epoch or block up to which a product is computed.
EPOCH, USED, PERIOD, FIRST = range(4)


class Maps(NamedTuple):
    """The maps of past epochs, their products, and which columns were used.

    counts: int64, see above. used: (d,) int32, the columns by first use. lines: the parts of
    `Layout`.
    """

    counts: Array
    used: Array
    lines: Array


class Layout(NamedTuple):
    """Where the parts of a `Maps` begin.

    In `lines`: `later`, Q_e; `maps`, M_e times the later maps of its block; `within`, products from
    a block's start; `across`, products over the whole blocks after it. In `counts`: up to which
    epoch or block they are computed.
    """

    later: int
    maps: int
    within: int
    across: int
    scratch: int
    end: int
    maps_to: int
    within_to: int
    across_to: int


@inlined
def layout(period: int, n_in: int, n_out: int, width: int) -> Layout:
    """The layout for columns of n_in numbers, which maps turn into n_out."""
    blocks = period // BLOCK
    maps = period * n_out * width
    within = maps + period * n_in * width
    across = within + blocks * n_out * width
    scratch = across + blocks * n_out * width
    return Layout(
        0, maps, within, across, scratch, scratch + 3 * width,
        FIRST, FIRST + period, FIRST + period + blocks,
    )  # fmt: skip


def empty_maps(
    n_columns: int, n_in: int, n_out: int, out_shape: tuple[int, ...], period: int
) -> Maps:
    """The initial `Maps`; `period` is a multiple of `BLOCK` epochs."""
    counts = np.zeros(FIRST + period + 2 * (period // BLOCK), np.int64)
    counts[PERIOD] = period
    size = layout(period, n_in, n_out, len(out_shape)).end
    return Maps(counts, np.zeros(n_columns, np.int32), aligned_zeros(1, size).reshape(-1))


def maps_floats(n_columns: int, n_in: int, n_out: int, width: int, period: int) -> int:
    """The size in 8-byte numbers."""
    return n_columns // 2 + 2 * period + layout(period, n_in, n_out, width).end


@inlined
def map_at(M: Maps, n_in: int, n_out: int, width: int) -> int:
    """Where the caller writes this epoch's map in `lines`."""
    at = layout(M.counts[PERIOD], n_in, n_out, width)
    return int(at.maps + M.counts[EPOCH] * n_in * width)


@inlined
def current_epoch(M: Maps) -> int:
    """The last number of lines that are up to date."""
    return int(M.counts[EPOCH] + 1)


@inlined
def scatter_lines(
    M: Maps, table: Array, shape: Any, idx: Array, val: Array, coefficients: Array, new: Any
) -> None:
    """`scatter` to columns that are up to date, or may be unused if `new` is not 0."""
    if new == 0:
        scatter(table, shape, idx, val, coefficients)
    else:
        scatter_first_time(M, table, shape, idx, val, coefficients)


@jit
def scatter_first_time(
    M: Maps, table: Array, shape: Any, idx: Array, val: Array, coefficients: Array
) -> None:
    """`scatter` to columns that may be unused."""
    now, used = current_epoch(M), M.counts[USED]
    if used + idx.size < M.used.size:
        M.counts[USED] = scatter_first(
            table, shape, idx, val, coefficients, now, M.used, np.int64(used)
        )
        return
    for i in range(idx.size):
        if table[idx[i], table.shape[1] - 1] == 0.0:
            first_use(M, table, np.int64(idx[i]))
            table[idx[i], table.shape[1] - 1] = now
    scatter(table, shape, idx, val, coefficients)


@inlined
def is_current(M: Maps, table: Array, j: int) -> bool:
    """Whether column j is used and up to date."""
    return bool(table[j, table.shape[1] - 1] == current_epoch(M))


@jit
def first_use(M: Maps, table: Array, j: int) -> None:
    """Note that column j is in use from the period's start."""
    table[j, table.shape[1] - 1] = 1.0
    M.used[M.counts[USED]] = j
    M.counts[USED] += 1


@jit
def refresh(M: Maps, table: Array, j: int, n_in: int, n_out: int, out_shape: Any) -> None:
    """Bring column j up to date."""
    now, width, age = M.counts[EPOCH], len(out_shape), table.shape[1] - 1
    if table[j, age] == 0.0:
        first_use(M, table, j)
        table[j, age] = now + 1
    last = int(table[j, age]) - 1
    table[j, age] = now + 1
    if last == now:
        return
    at = layout(M.counts[PERIOD], n_in, n_out, width)
    block, current = last // BLOCK, (now - 1) // BLOCK
    end = min((block + 1) * BLOCK, now)
    own, here = at.maps + last * n_in * width, at.scratch
    if M.counts[at.maps_to + last] < end:
        for e in range(M.counts[at.maps_to + last], end):
            _multiply(M, own, n_in, at.later + e * n_out * width, n_out, at.scratch, out_shape)
        M.counts[at.maps_to + last] = end
    combine(
        row_at(M.lines, own, out_shape), n_in, table[j], row_at(M.lines, here, out_shape), out_shape
    )
    for k in range(n_out, n_in):
        table[j, k] = 0.0
    if current > block + 1:
        if M.counts[at.across_to + block] < current:
            _prolong_across(M, block, current, at, n_out, out_shape)
        product = at.across + block * n_out * width
        _combine(M, n_out, product, here, here + width, out_shape)
        here += width
    if current > block:
        if M.counts[at.within_to + current] < now:
            _prolong_within(M, current, now, at, n_out, out_shape)
        product, there = at.within + current * n_out * width, at.scratch + 2 * width
        _combine(M, n_out, product, here, there, out_shape)
        here = there
    for k in range(n_out):
        table[j, k] = M.lines[here + k]


@jit
def refresh_used(M: Maps, table: Array, n_in: int, n_out: int, out_shape: Any) -> None:
    """Bring every used column up to date."""
    for i in range(M.counts[USED]):
        refresh(M, table, np.int64(M.used[i]), n_in, n_out, out_shape)


@jit
def end_epoch(M: Maps, table: Array, n_in: int, n_out: int, out_shape: Any) -> bool:
    """Begin the next epoch, after the caller has written this one's map.

    Returns whether a period ended, with all used columns up to date.
    """
    epoch, width = M.counts[EPOCH], len(out_shape)
    at = layout(M.counts[PERIOD], n_in, n_out, width)
    for k in range(n_out * width):
        M.lines[at.later + epoch * n_out * width + k] = M.lines[at.maps + epoch * n_in * width + k]
    M.counts[at.maps_to + epoch] = epoch + 1
    block = epoch // BLOCK
    if epoch % BLOCK == 0:
        M.counts[at.within_to + block] = epoch
        M.counts[at.across_to + block] = block + 1
    M.counts[EPOCH] = epoch + 1
    if epoch + 1 < M.counts[PERIOD]:
        return False
    refresh_used(M, table, n_in, n_out, out_shape)
    for i in range(M.counts[USED]):
        table[M.used[i], table.shape[1] - 1] = 1.0
    M.counts[EPOCH] = 0
    return True


@jit
def _prolong_within(M: Maps, block: int, end: int, at: Layout, n_out: int, out_shape: Any) -> None:
    lines = n_out * len(out_shape)
    start, own, to = block * BLOCK, at.within + block * lines, at.within_to + block
    if M.counts[to] == start:
        for k in range(lines):
            M.lines[own + k] = M.lines[at.later + start * lines + k]
        M.counts[to] = start + 1
    for e in range(M.counts[to], end):
        _multiply(M, own, n_out, at.later + e * lines, n_out, at.scratch, out_shape)
    M.counts[to] = max(M.counts[to], end)


@jit
def _prolong_across(
    M: Maps, block: int, current: int, at: Layout, n_out: int, out_shape: Any
) -> None:
    lines = n_out * len(out_shape)
    own, to = at.across + block * lines, at.across_to + block
    for b in range(M.counts[to], current):
        _prolong_within(M, b, (b + 1) * BLOCK, at, n_out, out_shape)
        if b == block + 1:
            for k in range(lines):
                M.lines[own + k] = M.lines[at.within + b * lines + k]
        else:
            _multiply(M, own, n_out, at.within + b * lines, n_out, at.scratch, out_shape)
    M.counts[to] = max(M.counts[to], current)


@jit
def _multiply(
    M: Maps, product: int, lines: int, later: int, n_out: int, scratch: int, out_shape: Any
) -> None:
    width = len(out_shape)
    for k in range(lines):
        line, out = product + k * width, scratch + 2 * width
        _combine(M, n_out, later, line, out, out_shape)
        for i in range(width):
            M.lines[line + i] = M.lines[out + i]


@inlined
def _combine(M: Maps, n: int, matrix: int, factors: int, out: int, shape: Any) -> None:
    lines = M.lines
    combine(
        row_at(lines, matrix, shape),
        n,
        row_at(lines, factors, shape),
        row_at(lines, out, shape),
        shape,
    )
