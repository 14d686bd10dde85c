"""Statistics of columns over ranges of rows, the same for any division of the rows.

NaN is a missing value, of which no statistic takes notice. A `Matrix` function turns rows into the
matrix (n, k) of the k columns in question; it is sent to the workers with every range of rows.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial, reduce

import numpy as np

from koco_stream.types import Array
from storage.preparing.chunks import Cover, rows_of
from storage.preparing.shards import BLOCK
from storage.sources.source import ParallelMap, Piece

Matrix = Callable[[Piece], Array]
BITS = 8  # bits of a number that one pass of `medians` decides


@dataclass(frozen=True)
class Bounds:
    """Number of known values, and the smallest and largest of them, of each column: (k,) each.

    A column without a known value has infinite bounds.
    """

    n_known: Array
    low: Array
    high: Array

    @property
    def exponent(self) -> Array:
        """Exponents (k,) of 2 by which the absolute values of each column are divided to be <= 1.

        Sums of squares of the quotients neither overflow nor vanish, and the division is exact.
        """
        largest = np.maximum(np.abs(self.low), np.abs(self.high))
        return np.frexp(np.where(self.n_known > 0, largest, 0.0))[1]


def bounds(parallel_map: ParallelMap, covers: Sequence[Cover], matrix: Matrix) -> Bounds:
    """Bounds of the columns over the rows that `covers` located."""
    n_known, low, high = zip(*parallel_map(partial(_bounds_in, matrix), covers), strict=True)
    return Bounds(sum(n_known), reduce(np.minimum, low), reduce(np.maximum, high))


def _bounds_in(matrix: Matrix, cover: Cover) -> tuple[Array, Array, Array]:
    values = matrix(rows_of(cover))
    known = ~np.isnan(values)
    low = np.where(known, values, np.inf).min(axis=0, initial=np.inf)
    return known.sum(axis=0), low, np.where(known, values, -np.inf).max(axis=0, initial=-np.inf)


def means(
    parallel_map: ParallelMap,
    covers: Sequence[Cover],
    matrix: Matrix,
    over: Bounds,
    around: Array | None = None,
) -> Array:
    """Mean (k,) of each column, divided by 2 to the power of `over.exponent`.

    With `around` (k,), the mean of the squares of (quotient - around) instead. A column without a
    known value has the mean 0. Each range of rows begins at a multiple of `BLOCK`, so that blocks
    are summed, and their sums added, in the same order for any division.
    """
    total = np.zeros(over.low.size)
    for sums in parallel_map(partial(_block_sums, matrix, over.exponent, around), covers):
        total = reduce(np.add, sums, total)
    return total / np.maximum(over.n_known, 1)


def _block_sums(matrix: Matrix, exponent: Array, around: Array | None, cover: Cover) -> Array:
    values = np.ldexp(matrix(rows_of(cover)), -exponent)
    if around is not None:
        values = (values - around) ** 2
    return np.add.reduceat(
        np.where(np.isnan(values), 0.0, values), np.arange(0, len(values), BLOCK)
    )


def medians(
    parallel_map: ParallelMap, covers: Sequence[Cover], matrix: Matrix, n_known: Array
) -> Array:
    """Median (k,) of the `n_known` (k,) known values of each column; they must not be none.

    The two middle values are found bit by bit: each pass over the rows counts the values that agree
    in all bits found so far, by their next bits. So memory is bounded whatever the number of rows.
    """
    ranks = np.stack([(n_known - 1) // 2, n_known // 2])  # both middle values, from 0
    found = np.zeros(ranks.shape, np.uint64)
    for shift in range(64 - BITS, -1, -BITS):
        counts = sum(parallel_map(partial(_next_bits, matrix, found, shift), covers))
        up_to = np.cumsum(counts, axis=-1)
        bits = (up_to <= ranks[..., None]).sum(axis=-1)
        below = np.take_along_axis(up_to, np.maximum(bits - 1, 0)[..., None], axis=-1)[..., 0]
        ranks = ranks - np.where(bits > 0, below, 0)
        found = found << np.uint64(BITS) | bits.astype(np.uint64)
    negative = found < SIGN
    lower, upper = np.where(negative, ~found, found ^ SIGN).view(np.float64)
    return lower / 2 + upper / 2


SIGN = np.uint64(1 << 63)


def _next_bits(matrix: Matrix, found: Array, shift: int, cover: Cover) -> Array:
    """Count values by the `BITS` bits above `shift`, (2, k, 2^BITS).

    Only values whose higher bits are those `found` (2, k) are counted. The bits are those of an
    integer that increases with the number.
    """
    values = matrix(rows_of(cover))
    raw = np.ascontiguousarray(values).view(np.uint64)
    ordered = np.where(raw & SIGN, ~raw, raw ^ SIGN)
    bits = (ordered >> np.uint64(shift) & np.uint64(2**BITS - 1)).astype(np.int64)
    keys = bits + np.arange(values.shape[1]) * 2**BITS
    higher = ordered >> np.uint64(shift) >> np.uint64(BITS)
    return np.stack(
        [
            np.bincount(
                keys[(higher == prefix) & ~np.isnan(values)], minlength=values.shape[1] * 2**BITS
            ).reshape(-1, 2**BITS)
            for prefix in found
        ]
    )
