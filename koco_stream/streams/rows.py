"""Rows in canonical form, into which every input is converted before a learner sees it.

A canonical row is its non-zero values, sorted by feature, with duplicates summed. Zeros are dropped
from dense input too; a matrix without zeros is used as it is, with one common list of feature
numbers. All representations of one matrix therefore give bit-identical results.
"""

from typing import Any, NamedTuple

import numpy as np

from koco_stream.numerics.compiler import inlined, jit
from koco_stream.numerics.llvm.plain_rows import falls, plain_values
from koco_stream.types import Array

ROWS_AT_ONCE, VALUES_AT_ONCE = 512, 64  # of sparse, and of dense rows that are looked at together


class Rows(NamedTuple):
    """A block of n rows in canonical sparse form, or dense without zeros. All arrays are read-only.

    Row t has the values `values[indptr[t]:indptr[t+1]]` (float32 or float64). Its feature numbers
    are `indices[indptr[t]:indptr[t+1]]` (int32) if `index_stride` is 1, and all of `indices` if it
    is 0 (dense rows). If they are not `checked`, a row may have other feature numbers or values,
    which is to be found out where it is read.
    """

    indptr: Array
    indices: Array
    index_stride: int
    values: Array
    n_features: int
    checked: bool = True

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return int(self.indptr.size) - 1


@inlined
def row(rows: Rows, t: int) -> tuple[Array, Array]:
    """The feature numbers and values of row t. All dense rows share the same feature numbers."""
    lo, hi = rows.indptr[t], rows.indptr[t + 1]
    first = lo * rows.index_stride
    return rows.indices[first : first + hi - lo], rows.values[lo:hi]


@jit
def canonical(rows: Rows, first: int, last: int) -> bool:
    """Whether rows from `first` to before `last` have finite values without zeros, and increasing
    feature numbers that exist.
    """
    begin = rows.indptr[first]
    if not plain_values(rows.values[begin : rows.indptr[last]]):
        return False
    if rows.index_stride == 0:
        return True
    # Numbers may fall from a row to the next.
    left = falls(rows.indices[begin : rows.indptr[last]])
    for t in range(first, last):
        lo, hi = rows.indptr[t], rows.indptr[t + 1]
        if lo < hi:
            if rows.indices[lo] < 0 or rows.indices[hi - 1] >= rows.n_features:
                return False
            if lo > begin and rows.indices[lo] <= rows.indices[lo - 1]:
                left -= 1
    return left == 0


@inlined
def canonical_until(rows: Rows, t: int) -> int:
    """A row after t, before which rows from t on are canonical; t itself if row t is not.

    Several sparse rows are looked at before they are learnt from: looking at each between two
    rounds, the processor would begin the second later. Dense rows are quicker to look at, short
    ones together.
    """
    n, size = rows.indptr.size - 1, rows.indptr[t + 1] - rows.indptr[t]
    if rows.index_stride == 0:
        last = min(t + VALUES_AT_ONCE // (size + 1) + 1, n)
        if plain_values(rows.values[rows.indptr[t] : rows.indptr[last]]):
            return last
    else:
        last = min(t + ROWS_AT_ONCE, n)
        if canonical(rows, t, last):
            return last
    u = t
    while u < last and canonical(rows, u, u + 1):
        u += 1
    return u


@jit
def all_canonical(rows: Rows) -> bool:
    """Whether all rows are canonical."""
    t, n = 0, rows.indptr.size - 1
    while t < n:
        end = canonical_until(rows, t)
        if end == t:
            return False
        t = end
    return True


def frozen(array: Any, dtype: Any) -> Array:
    """A read-only, contiguous view of `array`; compiled functions then see a single array type."""
    view = np.ascontiguousarray(array, dtype=dtype).view()
    view.flags.writeable = False
    return view


def dense_rows(matrix: Array, keep_zeros: bool = False) -> Rows:
    """Canonical rows of a C-ordered float32 or float64 matrix (n, d).

    Zeros are dropped, unless `keep_zeros` is set.
    """
    n, d = matrix.shape
    if not keep_zeros and not matrix.all():
        kept = matrix != 0
        indptr = np.concatenate([[0], np.cumsum(kept.sum(axis=1))])
        return sparse_rows(indptr, np.nonzero(kept)[1], matrix[kept], d)
    return Rows(
        frozen(np.arange(0, (n + 1) * d, d) if d else np.zeros(n + 1), np.int64),
        frozen(np.arange(d), np.int32),
        0,
        frozen(matrix, matrix.dtype).reshape(-1),
        d,
    )


def sparse_rows(indptr: Any, indices: Any, values: Array, n_features: int) -> Rows:
    """Rows from CSR arrays that are canonical already: sorted, without duplicates and zeros."""
    return Rows(
        frozen(indptr, np.int64),
        frozen(indices, np.int32),
        1,
        frozen(values, values.dtype),
        n_features,
    )


def with_intercept(rows: Rows) -> Rows:
    """The rows with an additional feature, numbered d, whose value is 1 in every row."""
    n, d = rows.n_rows, rows.n_features
    if rows.index_stride == 0:
        ones = np.ones((n, 1), rows.values.dtype)
        return dense_rows(np.hstack([rows.values.reshape(n, d), ones]))
    ends, last = rows.indptr[1:], rows.indptr[-1]
    return sparse_rows(
        rows.indptr + np.arange(n + 1),
        np.insert(rows.indices[:last], ends, d),
        np.insert(rows.values[:last], ends, 1.0),
        d + 1,
    )
