"""Linear maps that are applied to a column only when it is next used.

At the end of epoch e every column x of a table (n_in numbers) is to become M_e x (n_out numbers;
the others become zero). Doing this for all columns at once would cost O(d). Instead each column
stores the epoch in which it was last updated. It is brought up to date by M_e and a product of the
first n_out columns Q of all later maps. No matrix is inverted. Products are computed on demand,
shared by all columns of the same age, and extended as epochs pass: within a block of 16 epochs from
each epoch to the block's end, and from each block over later blocks. A column therefore needs at
most four products of a small matrix and a vector, whatever its age. After 2,048 epochs all columns
are updated and the count restarts (docs/errata.md, S13).

Maps are stored transposed, by lines: line k is what input k adds to the outputs.
"""

from typing import Any, NamedTuple

import numpy as np

from koco_stream.numerics.compiler import inlined, jit
from koco_stream.numerics.llvm.feature_lines import aligned_zeros, combine
from koco_stream.types import Array

BLOCK = 16
PERIOD = 2048  # epochs


class Maps(NamedTuple):
    """The maps of past epochs, their products, and the epoch of each column.

    later: Q_e, the first n_out lines of M_e. maps: M_e times the later maps of its block. within:
    products from a block's start. across: products from a block's end over whole later blocks. Each
    is a flat array of lines.

    `*_to` (int64) is the epoch or block up to which (exclusive) a product is computed. epoch: ()
    the current one. touched: (d,) the epoch in which a column was last updated, −1 for never.
    scratch: (3·width,).
    """

    epoch: Array
    touched: Array
    later: Array
    maps: Array
    maps_to: Array
    within: Array
    within_to: Array
    across: Array
    across_to: Array
    scratch: Array


def empty_maps(n_columns: int, n_in: int, n_out: int, out_shape: tuple[int, ...]) -> Maps:
    """The initial `Maps`: no epoch has ended and no column was used."""
    width, blocks = len(out_shape), PERIOD // BLOCK

    def room(count: int, lines: int) -> Array:
        return aligned_zeros(count * lines, width).reshape(-1)

    return Maps(
        epoch=np.zeros((), np.int64),
        touched=np.full(n_columns, -1, np.int64),
        later=room(PERIOD, n_out),
        maps=room(PERIOD, n_in),
        maps_to=np.zeros(PERIOD, np.int64),
        within=room(blocks, n_out),
        within_to=np.zeros(blocks, np.int64),
        across=room(blocks, n_out),
        across_to=np.zeros(blocks, np.int64),
        scratch=np.zeros(3 * width),
    )


def maps_floats(n_columns: int, n_in: int, n_out: int, width: int) -> int:
    """The size of a `Maps` in 8-byte numbers."""
    return n_columns + PERIOD * (n_in + n_out) * width + 2 * (PERIOD // BLOCK) * n_out * width


@inlined
def refresh(M: Maps, table: Array, j: int, n_in: int, n_out: int, out_shape: Any) -> None:
    """Bring column j, which is line j of `table`, up to date."""
    now, last, width = M.epoch[()], M.touched[j], len(out_shape)
    M.touched[j] = now
    if last < 0 or last == now:
        return
    block, current = last // BLOCK, (now - 1) // BLOCK
    end = min((block + 1) * BLOCK, now)
    if M.maps_to[last] < end:
        _follow(M, M.maps, last * n_in * width, n_in, M.maps_to[last], end, n_out, out_shape)
        M.maps_to[last] = end
    offset, line, at = last * n_in * width, j * table.shape[1], 0
    combine(M.maps, out_shape, n_out, offset, table, line, M.scratch, at)
    for k in range(n_out, n_in):
        if table[j, k] != 0.0:  # few are, since a feature is in few rows of an epoch
            combine(M.maps, out_shape, 1, offset + k * width, table, line + k, M.scratch, 2 * width)
            for i in range(width):
                M.scratch[at + i] += M.scratch[2 * width + i]
            table[j, k] = 0.0
    if current > block:
        if current > block + 1:
            if M.across_to[block] < current:
                _prolong_across(M, block, current, n_out, out_shape)
            at = _apply(M, M.across, block, at, n_out, out_shape)
        if M.within_to[current] < now:
            _prolong_within(M, current, now, n_out, out_shape)
        at = _apply(M, M.within, current, at, n_out, out_shape)
    for k in range(n_out):
        table[j, k] = M.scratch[at + k]


@inlined
def _apply(M: Maps, products: Array, number: int, at: int, n_out: int, out_shape: Any) -> int:
    """Apply a product of maps to the vector at scratch[at:]; returns the result's offset."""
    width = len(out_shape)
    to = width - at  # the other of the two buffers
    combine(products, out_shape, n_out, number * n_out * width, M.scratch, at, M.scratch, to)
    return to


@jit
def end_epoch(M: Maps, table: Array, n_in: int, n_out: int, out_shape: Any) -> bool:
    """Begin the next epoch, after the caller has written this epoch's map to `maps`.

    At the end of a period every column, which is a line of `table`, is brought up to date and all
    maps are discarded. Returns whether that was done.
    """
    epoch, width = M.epoch[()], len(out_shape)
    for k in range(n_out * width):
        M.later[epoch * n_out * width + k] = M.maps[epoch * n_in * width + k]
    M.maps_to[epoch] = epoch + 1
    block = epoch // BLOCK
    if epoch % BLOCK == 0:
        M.within_to[block] = epoch
        M.across_to[block] = block + 1
    M.epoch[()] = epoch + 1
    if epoch + 1 < PERIOD:
        return False
    for j in range(M.touched.size):
        refresh(M, table, j, n_in, n_out, out_shape)
        if M.touched[j] >= 0:
            M.touched[j] = 0
    M.epoch[()] = 0
    return True


@jit
def _follow(
    M: Maps,
    products: Array,
    offset: int,
    lines: int,
    start: int,
    end: int,
    n_out: int,
    out_shape: Any,
) -> None:
    """Extend the product at products[offset:], of `lines` lines, by Q_start, …, Q_{end−1}."""
    width = len(out_shape)
    for e in range(start, end):
        _multiply(M, products, offset, lines, M.later, e * n_out * width, n_out, out_shape)


@jit
def _prolong_within(M: Maps, block: int, end: int, n_out: int, out_shape: Any) -> None:
    """Extend within[block] to Q_{end−1} ⋯ Q_start, where `start` is the block's first epoch."""
    width, start = len(out_shape), block * BLOCK
    offset = block * n_out * width
    if M.within_to[block] == start:
        for k in range(n_out * width):
            M.within[offset + k] = M.later[start * n_out * width + k]
        M.within_to[block] = start + 1
    _follow(M, M.within, offset, n_out, M.within_to[block], end, n_out, out_shape)
    M.within_to[block] = max(M.within_to[block], end)


@jit
def _prolong_across(M: Maps, block: int, current: int, n_out: int, out_shape: Any) -> None:
    """Extend across[block] to the product of the whole blocks block + 1 to current − 1."""
    width = len(out_shape)
    offset = block * n_out * width
    for b in range(M.across_to[block], current):
        _prolong_within(M, b, (b + 1) * BLOCK, n_out, out_shape)
        if b == block + 1:
            for k in range(n_out * width):
                M.across[offset + k] = M.within[b * n_out * width + k]
        else:
            _multiply(M, M.across, offset, n_out, M.within, b * n_out * width, n_out, out_shape)
    M.across_to[block] = max(M.across_to[block], current)


@jit
def _multiply(
    M: Maps,
    products: Array,
    offset: int,
    lines: int,
    later: Array,
    at: int,
    n_out: int,
    out_shape: Any,
) -> None:
    """Extend the product at products[offset:] by the map at later[at:], line by line."""
    width = len(out_shape)
    for k in range(lines):
        combine(later, out_shape, n_out, at, products, offset + k * width, M.scratch, 2 * width)
        for i in range(width):
            products[offset + k * width + i] = M.scratch[2 * width + i]
