"""Linear maps that are applied to a column only when it is next used.

At the end of epoch e every column x (n_in numbers) of a table becomes M_e x (n_out numbers, then
zeros). That would cost O(d), so a column, a row of the table, ends with 1 plus the epoch of its
last update, or 0 if it is unused. It is updated by M_e and a product of Q, the first n_out columns
of each later map. Columns share these products within and across blocks of 16 epochs
(docs/errata.md, S13). Row k of a stored map is for input k, and as long as `shape`.
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


class Maps(NamedTuple):
    """The maps of a period's epochs, their products, and which columns were used.

    epoch: () the current one. n_used: () how many columns were used: the first of used, (d,). maps:
    (P, n_in, W) M_e times the later maps of its block, up to epoch maps_to, (P,). later: (P, n_out,
    W) Q_e. within, across: (P/16, n_out, W) products from a block's start, up to epoch within_to,
    and over the whole blocks after it, up to block across_to. scratch: (3, W).
    """

    epoch: Array
    n_used: Array
    used: Array
    maps: Array
    maps_to: Array
    later: Array
    within: Array
    within_to: Array
    across: Array
    across_to: Array
    scratch: Array


def empty_maps(d: int, n_in: int, n_out: int, shape: tuple[int, ...], period: int) -> Maps:
    """The initial `Maps` of d columns; `period` is a multiple of `BLOCK` epochs."""
    W, blocks = len(shape), period // BLOCK
    return Maps(
        epoch=np.zeros((), np.int64),
        n_used=np.zeros((), np.int64),
        used=np.zeros(d, np.int32),
        maps=aligned_zeros(period * n_in, W).reshape(period, n_in, W),
        maps_to=np.zeros(period, np.int64),
        later=aligned_zeros(period * n_out, W).reshape(period, n_out, W),
        within=aligned_zeros(blocks * n_out, W).reshape(blocks, n_out, W),
        within_to=np.zeros(blocks, np.int64),
        across=aligned_zeros(blocks * n_out, W).reshape(blocks, n_out, W),
        across_to=np.zeros(blocks, np.int64),
        scratch=aligned_zeros(3, W),
    )


def maps_floats(d: int, n_in: int, n_out: int, width: int, period: int) -> int:
    """The size in 8-byte numbers."""
    matrices = period * (n_in + n_out) + 2 * (period // BLOCK) * n_out
    return d // 2 + 2 * period + matrices * width


@inlined
def current_epoch(M: Maps) -> int:
    """The last number of columns that are up to date."""
    return int(M.epoch[()] + 1)


@inlined
def scatter_columns(
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
    now, n_used = current_epoch(M), M.n_used[()]
    if n_used + idx.size < M.used.size:
        M.n_used[()] = scatter_first(
            table, shape, idx, val, coefficients, now, M.used, np.int64(n_used)
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
    M.used[M.n_used[()]] = j
    M.n_used[()] += 1


@jit
def refresh(M: Maps, table: Array, j: int, shape: Any) -> None:
    """Bring column j up to date."""
    now, age = M.epoch[()], table.shape[1] - 1
    n_in, n_out = M.maps.shape[1], M.later.shape[1]
    if table[j, age] == 0.0:
        first_use(M, table, j)
        table[j, age] = now + 1
    last = int(table[j, age]) - 1
    table[j, age] = now + 1
    if last == now:
        return
    block, current = last // BLOCK, (now - 1) // BLOCK
    end, x = min((block + 1) * BLOCK, now), row_at(M.scratch, 0, shape)
    # A call that has nothing to do would take longer than all the rest.
    if M.maps_to[last] < end:
        prolong(M, M.maps, M.maps_to, last, M.later, end, shape)
    combine(row_at(M.maps, last * n_in, shape), n_in, table[j], x, shape)
    for k in range(n_out, n_in):
        table[j, k] = 0.0
    if current > block + 1:
        if M.across_to[block] < current:
            prolong_across(M, block, current, shape)
        out = row_at(M.scratch, 1, shape)
        combine(row_at(M.across, block * n_out, shape), n_out, x, out, shape)
        x = out
    if current > block:
        if M.within_to[current] < now:
            prolong(M, M.within, M.within_to, current, M.later, now, shape)
        out = row_at(M.scratch, 2, shape)
        combine(row_at(M.within, current * n_out, shape), n_out, x, out, shape)
        x = out
    for k in range(n_out):
        table[j, k] = x[k]


@jit
def refresh_used(M: Maps, table: Array, shape: Any) -> None:
    """Bring every used column up to date."""
    for i in range(M.n_used[()]):
        refresh(M, table, np.int64(M.used[i]), shape)


@inlined
def end_epoch(M: Maps, table: Array, shape: Any) -> bool:
    """Begin the next epoch, after the caller has written this one's map, `maps[epoch]`.

    Returns whether a period ended, with all used columns up to date.
    """
    epoch = M.epoch[()]
    block = epoch // BLOCK
    copy(M.maps[epoch], M.later[epoch])
    M.maps_to[epoch] = epoch + 1
    if epoch % BLOCK == 0:
        copy(M.maps[epoch], M.within[block])
        M.within_to[block], M.across_to[block] = epoch + 1, block + 1
    M.epoch[()] = epoch + 1
    if epoch + 1 < M.maps.shape[0]:
        return False
    refresh_used(M, table, shape)
    for i in range(M.n_used[()]):
        table[M.used[i], table.shape[1] - 1] = 1.0
    M.epoch[()] = 0
    return True


@jit
def prolong(M: Maps, found: Array, to: Array, at: int, later: Array, end: int, shape: Any) -> None:
    """Multiply one of the products by the later maps up to `end`."""
    rows, n_out, out = found.shape[1], later.shape[1], row_at(M.scratch, 2, shape)
    for e in range(to[at], end):
        for k in range(rows):
            row = row_at(found, at * rows + k, shape)
            combine(row_at(later, e * n_out, shape), n_out, row, out, shape)
            for i in range(len(shape)):
                row[i] = out[i]
    to[at] = max(to[at], end)


@jit
def prolong_across(M: Maps, block: int, current: int, shape: Any) -> None:
    """Multiply the product over the blocks after this one by those before `current`."""
    for b in range(M.across_to[block], current):
        prolong(M, M.within, M.within_to, b, M.later, (b + 1) * BLOCK, shape)
    if M.across_to[block] == block + 1:
        copy(M.within[block + 1], M.across[block])
        M.across_to[block] = block + 2
    prolong(M, M.across, M.across_to, block, M.within, current, shape)


@inlined
def copy(matrix: Array, out: Array) -> None:
    """out ← the first rows of a matrix."""
    for k in range(out.shape[0]):
        for i in range(out.shape[1]):
            out[k, i] = matrix[k, i]
