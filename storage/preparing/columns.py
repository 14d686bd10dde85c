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

        Sums of the quotients do not overflow, and the division is exact.
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
    parallel_map: ParallelMap, covers: Sequence[Cover], matrix: Matrix, over: Bounds
) -> Array:
    """Mean (k,) of each column, divided by 2 to the power of `over.exponent`.

    A column without a known value has the mean 0. Each range of rows begins at a multiple of
    `BLOCK`, so that blocks are summed, and their sums added, in the same order for any division.
    """
    total = np.zeros(over.low.size)
    for sums in parallel_map(partial(_block_sums, matrix, over.exponent), covers):
        total = reduce(np.add, sums, total)
    return total / np.maximum(over.n_known, 1)


def _block_sums(matrix: Matrix, exponent: Array, cover: Cover) -> Array:
    values = np.ldexp(matrix(rows_of(cover)), -exponent)
    return np.add.reduceat(
        np.where(np.isnan(values), 0.0, values), np.arange(0, len(values), BLOCK)
    )
