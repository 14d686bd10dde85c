"""Rows in canonical form, into which every input is converted before a learner sees it.

A canonical row is its non-zero values, sorted by feature, with duplicates summed. Zeros are dropped
from dense input too; a matrix without zeros is used as it is, with one common list of feature
numbers. All representations of one matrix therefore give bit-identical results.
"""

from typing import Any, NamedTuple

import numpy as np

from koco_stream.errors import WrongInput, WrongType
from koco_stream.numerics.compiler import inlined
from koco_stream.scikit_learn import warn_of_column_vector
from koco_stream.types import Array


class Rows(NamedTuple):
    """A block of n rows in canonical sparse form, or dense without zeros. All arrays are read-only.

    Row t has the values `values[indptr[t]:indptr[t+1]]` (float32 or float64). Its feature numbers
    are `indices[indptr[t]:indptr[t+1]]` (int32) if `index_stride` is 1, and all of `indices` if it
    is 0 (dense rows).
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


@inlined
def row(rows: Rows, t: int) -> tuple[Array, Array]:
    """The feature numbers and values of row t. All dense rows share the same feature numbers."""
    lo, hi = rows.indptr[t], rows.indptr[t + 1]
    first = lo * rows.index_stride
    return rows.indices[first : first + hi - lo], rows.values[lo:hi]


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


def as_rows(X: Any, n_features: int | None = None, model: str = "the learner") -> Rows:
    """Convert any supported input to canonical rows.

    Parameters
    ----------
    X : array-like, (n, d)
        A NumPy array, any SciPy sparse matrix, `sparse.COO` or `sparse.GCXS`, an Arrow table of
        prepared rows, or `Rows`.
    n_features : int, optional
        The number of features that X must have.
    model : str
        What has learnt from that number of features, for the message.

    Raises
    ------
    WrongInput
        X is not two-dimensional or not numeric, holds NaN or infinity (the row is named), or has
        another number of features.
    """
    if isinstance(X, Rows):
        rows = X
    elif type(X).__module__.startswith("pyarrow."):
        rows = _from_table(X)
    elif hasattr(X, "to_scipy_sparse") or hasattr(X, "tocsr"):
        rows = _from_sparse(X)
    else:
        rows = _from_array(X)
    if n_features is not None and rows.n_features != n_features:
        raise WrongInput(
            f"X has {rows.n_features} features, but {model} is expecting {n_features} features as"
            " input"
        )
    if not np.isfinite(rows.values).all():
        first = int(np.flatnonzero(~np.isfinite(rows.values))[0])
        row = int(np.searchsorted(rows.indptr, first, side="right")) - 1
        raise WrongInput(
            f"row {row} of X holds {rows.values[first]} (NaN or inf); remove such rows or fill the"
            " values in"
        )
    return rows


def label_vector(y: Any) -> Array:
    """Labels as a one-dimensional array (n,), their type unchanged.

    Raises `WrongInput` if `y` is None or has more dimensions.
    """
    if y is None:
        raise WrongInput("requires y to be passed, but the target y is None")
    labels = np.asarray(y)
    if labels.ndim == 2 and labels.shape[1] == 1:
        warn_of_column_vector()
        labels = labels[:, 0]
    if labels.ndim != 1:
        raise WrongInput(f"y must have one dimension, not {labels.ndim}")
    return labels


def as_labels(y: Any, n_rows: int) -> Array:
    """Labels (n,) as read-only float64. Raises `WrongInput` for another length, NaN or infinity."""
    labels = _numeric(label_vector(y), "y")
    if labels.size != n_rows:
        raise WrongInput(f"X has {n_rows} rows and y has {labels.size}; give one label a row")
    if not np.isfinite(labels).all():
        row = int(np.flatnonzero(~np.isfinite(labels))[0])
        raise WrongInput(f"y[{row}] is {labels[row]} (NaN or inf); remove the row")
    return frozen(labels, np.float64)


def _from_table(table: Any) -> Rows:
    """Canonical rows of an Arrow table with columns `indices` and `values`, or `values` only."""
    import pyarrow as pa
    from scipy.sparse import csr_matrix

    def column(name: str) -> Any:
        if name not in table.column_names:
            raise WrongInput(
                f"an Arrow table of prepared rows needs a column {name!r}; it has"
                f" {', '.join(table.column_names)}"
            )
        array = table.column(name).combine_chunks()
        if array.null_count or array.flatten().null_count:
            raise WrongInput(f"column {name!r} holds nulls; remove those rows")
        return array

    values = column("values")
    flat = values.flatten().to_numpy(zero_copy_only=False)
    if pa.types.is_fixed_size_list(values.type):
        return dense_rows(_numeric(flat, "values").reshape(len(values), values.type.list_size))
    indices = column("indices")
    sizes, others = (np.diff(a.offsets.to_numpy()) for a in (values, indices))
    if (sizes != others).any():
        row = int(np.flatnonzero(sizes != others)[0])
        raise WrongInput(f"row {row} has {sizes[row]} values and {others[row]} indices")
    numbers = indices.flatten().to_numpy(zero_copy_only=False)
    metadata = table.schema.metadata or {}
    n_features = int(metadata.get(b"n_features", int(numbers.max(initial=-1)) + 1))
    indptr = np.concatenate([[0], np.cumsum(sizes)])
    return _from_sparse(csr_matrix((flat, numbers, indptr), shape=(len(values), n_features)))


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


def _numeric(array: Array, name: str) -> Array:
    """The array as float32 if it is float32, else as float64."""
    if array.dtype == np.float32:
        return array
    if array.dtype.kind == "c":
        raise WrongInput(
            f"Complex data not supported: {name} has type {array.dtype}; give real numbers"
        )
    try:
        return array.astype(np.float64, copy=False)
    except (TypeError, ValueError, OverflowError) as error:
        raise WrongType(
            f"{name} has type {array.dtype} and is not numeric: {error}; turn it into numbers first"
        ) from None


def _from_array(X: Any) -> Rows:
    array = np.asarray(X)
    if array.ndim != 2:
        raise WrongInput(
            f"X must have two dimensions, (rows, features), not {array.ndim}. Reshape your data"
            " with X.reshape(1, -1) if it is one row"
        )
    if array.shape[1] == 0:
        raise WrongInput(f"0 feature(s) (shape={array.shape}) while a minimum of 1 is required.")
    return dense_rows(np.ascontiguousarray(_numeric(array, "X")))


def _from_sparse(X: Any) -> Rows:
    if X.ndim != 2:
        raise WrongInput(f"X must have two dimensions, (rows, features), not {X.ndim}")
    csr = (X.to_scipy_sparse() if hasattr(X, "to_scipy_sparse") else X).tocsr()
    if csr.indices.size and (csr.indices.min() < 0 or csr.indices.max() >= csr.shape[1]):
        raise WrongInput(
            f"X names features from {csr.indices.min()} to {csr.indices.max()}, but it has features"
            f" 0 to {csr.shape[1] - 1} only"
        )
    values = _numeric(csr.data, "X")
    if not csr.has_canonical_format or values is not csr.data or (values == 0).any():
        csr = csr.copy()  # the caller's matrix must not change
        csr.data = values.copy()
        csr.has_sorted_indices = csr.has_canonical_format = False
        csr.sum_duplicates()
        csr.eliminate_zeros()
    if csr.shape[1] > np.iinfo(np.int32).max:
        raise WrongInput(
            f"X has {csr.shape[1]} features; at most 2147483647 are supported, hash them to fewer"
        )
    return sparse_rows(csr.indptr, csr.indices, csr.data, int(csr.shape[1]))
