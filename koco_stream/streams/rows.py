"""Rows in canonical form, into which every input is converted before a learner sees it."""

import math
from typing import Any, NamedTuple

import numpy as np

from koco_stream.numerics.compiler import inlined, jit
from koco_stream.types import Array

ROWS_AT_ONCE = 64  # whose feature numbers fit into the processor's nearest cache


class Rows(NamedTuple):
    """A block of n canonical rows; all arrays are read-only.

    Row t has `values[indptr[t]:indptr[t+1]]` at that part of `indices` (int32), or at all of
    `indices` if `index_stride` is 0 (dense rows).
    """

    indptr: Array
    indices: Array
    index_stride: int
    values: Array
    n_features: int

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return int(self.indptr.size) - 1

    def to_scipy(self) -> Any:
        """The rows as a `scipy.sparse.csr_array` (n, d)."""
        from scipy.sparse import csr_array

        indices = self.indices if self.index_stride else np.tile(self.indices, self.n_rows)
        return csr_array((self.values, indices, self.indptr), (self.n_rows, self.n_features))


@inlined
def row(rows: Rows, t: int) -> tuple[Array, Array]:
    """The feature numbers and values of row t."""
    lo, hi = rows.indptr[t], rows.indptr[t + 1]
    first = lo * rows.index_stride
    return rows.indices[first : first + hi - lo], rows.values[lo:hi]


def canonical(rows: Rows) -> bool:
    """Whether all values are finite and not 0, and each row's feature numbers increase."""
    bits = rows.values.view(f"u{rows.values.itemsize}")
    infinity = np.array(math.inf, rows.values.dtype).view(bits.dtype)
    without_sign = np.uint64(2 ** (8 * bits.itemsize - 1) - 1)
    least, largest = extremes(bits[rows.indptr[0] : rows.indptr[-1]], without_sign)
    return bool(least > 0 and largest < infinity and (rows.index_stride == 0 or increasing(rows)))


@jit
def extremes(bits: Array, mask: Any) -> tuple[Any, Any]:
    """The least and the largest of the masked integers."""
    least, largest = mask, mask - mask
    for i in range(bits.size):
        size = bits[i] & mask
        least, largest = min(least, size), max(largest, size)
    return least, largest


@jit
def increasing(rows: Rows) -> bool:
    """Whether each row's feature numbers exist and increase."""
    n, wrong = rows.indptr.size - 1, np.int64(0)
    for first in range(0, n, ROWS_AT_ONCE):
        last = min(first + ROWS_AT_ONCE, n)
        begin = rows.indptr[first]
        numbers = rows.indices[begin : rows.indptr[last]]
        for i in range(1, numbers.size):
            wrong += numbers[i] <= numbers[i - 1]
        for t in range(first, last):
            lo, hi = rows.indptr[t] - begin, rows.indptr[t + 1] - begin
            if lo < hi:
                wrong += (numbers[lo] < 0) + (numbers[hi - 1] >= rows.n_features)
                wrong -= lo > 0 and numbers[lo] <= numbers[lo - 1]  # these are of two rows
    return bool(wrong == 0)


def frozen(array: Any, dtype: Any) -> Array:
    """A read-only, contiguous view, for compiled functions to see one array type."""
    view = np.ascontiguousarray(array, dtype=dtype).view()
    view.flags.writeable = False
    return view


def dense_rows(matrix: Array, keep_zeros: bool = False) -> Rows:
    """Rows of a C-ordered matrix (n, d), canonical unless `keep_zeros` is set."""
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
    """Rows of canonical CSR arrays."""
    return Rows(
        frozen(indptr, np.int64),
        frozen(indices, np.int32),
        1,
        frozen(values, values.dtype),
        n_features,
    )


def with_intercept(rows: Rows) -> Rows:
    """The rows with another feature, d, that is always 1."""
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
