"""Users' matrices, tables and labels of many kinds, turned into canonical rows, or refused."""

import re
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from koco_stream.errors import WrongInput, WrongType, refuse_first
from koco_stream.scikit_learn import feature_names, warn_of_column_vector
from koco_stream.streams.rows import Rows, canonical, dense_rows, frozen, sparse_rows
from koco_stream.types import Array

MOST_FEATURES = 2**31 - 1  # feature numbers are int32
TEXTS = "turn texts into numbers first, for example by pandas.get_dummies(X), or leave them out"
A_TIME = ", a time; turn it into numbers first, for example by .dt.day_of_year of its column"


def as_rows(X: Any, n_features: int | None = None, model: str = "the learner") -> Rows:
    """Convert any supported input (n, d) to canonical rows; what is sparse stays so."""
    if isinstance(X, Rows):
        rows, finite = X, True
    elif type(X).__module__.startswith("pyarrow."):
        rows, finite = _from_table(X)
    elif any(hasattr(X, one) for one in ("sparse", "to_scipy_sparse", "tocsr")):
        rows, finite = _from_sparse(X)
    else:
        rows, finite = _from_array(X)
    if n_features is not None and rows.n_features != n_features:
        raise WrongInput(
            f"X has {rows.n_features} features, but {model} is expecting {n_features} features as"
            " input"
        )
    if not finite and not np.isfinite(rows.values).all():
        first = int(np.flatnonzero(~np.isfinite(rows.values))[0])
        raise WrongInput(
            f"row {_row_of(first, rows.indptr)} of X holds {rows.values[first]} (NaN or inf);"
            " remove such rows or fill the values in"
        )
    return rows


def _row_of(value: int, indptr: Array) -> int:
    return int(np.searchsorted(indptr, value, side="right")) - 1


def label_vector(y: Any) -> Array:
    """Labels as a vector (n,), their type unchanged."""
    if y is None:
        raise WrongInput("requires y to be passed, but the target y is None")
    labels = _plain(y, "y")
    if labels.ndim == 2 and labels.shape[1] == 1:
        warn_of_column_vector()
        labels = labels[:, 0]
    if labels.ndim != 1:
        raise WrongInput(f"y must have one dimension, not {labels.ndim}")
    return labels


def as_labels(y: Any, n_rows: int) -> Array:
    """Finite labels (n,) as read-only float64."""
    labels = _numeric(
        label_vector(y), "y", "for classes, wrap the learner: koco_stream.Classifier(learner)"
    )
    if labels.size != n_rows:
        raise WrongInput(f"X has {n_rows} rows and y has {labels.size}; give one label a row")
    if not np.isfinite(labels).all():
        row = int(np.flatnonzero(~np.isfinite(labels))[0])
        raise WrongInput(f"y[{row}] is {labels[row]} (NaN or inf); remove the row")
    return frozen(labels, np.float64)


def _from_table(table: Any) -> tuple[Rows, bool]:
    from scipy.sparse import csr_matrix

    if isinstance(table, pa.RecordBatch):
        table = pa.Table.from_batches([table])
    if not isinstance(table, pa.Table):
        raise WrongType(f"X is a pyarrow {type(table).__name__}; give a table")
    if feature_names(table) is not None or not table.column_names:
        return _from_columns(table)
    sizes, values = _lists(table, "values")
    values, n = _numeric(values, "column 'values'"), sizes.size
    if "indices" not in table.column_names:
        d = int(sizes[0]) if n else getattr(table.schema.field("values").type, "list_size", 0)
        refuse_first(
            (
                True,
                f"row {row} has {sizes[row]} values and row 0 has {d}; sparse rows need a column"
                " 'indices' too",
            )
            for row in np.flatnonzero(sizes != d)
        )
        return _from_array(values.reshape(n, d))
    others, numbers = _lists(table, "indices")
    refuse_first(
        (True, f"row {row} has {sizes[row]} values and {others[row]} indices")
        for row in np.flatnonzero(sizes != others)
    )
    indptr = np.concatenate([[0], np.cumsum(sizes)])
    numbers, largest = _feature_numbers(numbers, indptr)
    d = largest + 1
    told = (table.schema.metadata or {}).get(b"n_features")
    if told is not None:
        if not told.isdigit() or int(told) <= largest:
            raise WrongInput(
                f"the table's metadata has n_features={told.decode(errors='replace')!r}, and its"
                f" largest feature is {largest}; give the number of features"
            )
        d = int(told)
    return _from_sparse(csr_matrix((values, numbers, indptr), (n, d)))


def _from_columns(table: Any) -> tuple[Rows, bool]:
    stored = (table.schema.pandas_metadata or {}).get("index_columns", [])
    columns = []
    for name, column in zip(table.column_names, table.columns, strict=True):
        if name in stored or re.fullmatch(r"__index_level_\d+__", name):
            raise WrongInput(
                f"column {name!r} is the index of a data frame and no feature; leave it out:"
                f" table.drop_columns({name!r})"
            )
        _refuse_nulls(name, np.flatnonzero(column.is_null()))
        raw = column.to_numpy()
        if raw.dtype.kind == "O":
            raise WrongType(f"column {name!r} is {column.type}; turn it into numbers first")
        columns.append(_numeric(raw, f"column {name!r}"))
    return _from_array(np.column_stack(columns) if columns else np.zeros((table.num_rows, 0)))


def _lists(table: Any, name: str) -> tuple[Array, Array]:
    if table.column_names.count(name) != 1:
        raise WrongInput(
            f"an Arrow table with lists needs one column {name!r}, as prepared rows have; it has"
            f" {', '.join(table.column_names)}. Otherwise give a column of numbers a feature"
        )
    column = table.column(name)
    try:
        sizes = pc.list_value_length(column).fill_null(0).to_numpy().astype(np.int64)
        items = pc.list_flatten(column)
        raw = items.to_numpy()
    except pa.ArrowException as error:
        raise WrongType(
            f"column {name!r} is {column.type}, not a list of numbers: {error}"
        ) from None
    if raw.size and raw.dtype.kind not in "biuf" and not items.null_count:
        raise WrongType(f"column {name!r} is {column.type}, not a list of numbers")
    _refuse_nulls(name, np.flatnonzero(column.is_null()))
    without = np.flatnonzero(items.is_null())
    _refuse_nulls(name, np.searchsorted(np.cumsum(sizes), without, side="right"))
    return sizes, raw


def _refuse_nulls(name: str, rows: Array) -> None:
    refuse_first(
        (True, f"column {name!r} holds nulls, first in row {row}; remove such rows") for row in rows
    )


def _feature_numbers(numbers: Array, indptr: Array) -> tuple[Array, int]:
    if numbers.size and numbers.dtype.kind not in "iu":
        raise WrongType(
            f"column 'indices' holds {numbers.dtype}; feature numbers are integers: cast them to"
            " int32"
        )
    refuse_first(
        (
            True,
            f"row {_row_of(first, indptr)} names feature {numbers[first]}; features are numbered"
            f" from 0 to {MOST_FEATURES - 1}",
        )
        for first in np.flatnonzero((numbers < 0) | (numbers > MOST_FEATURES - 1)).tolist()
    )
    return numbers.astype(np.int64), int(numbers.max(initial=0)) if numbers.size else -1


def _numeric(array: Array, name: str, remedy: str = TEXTS) -> Array:
    if array.dtype == np.float32:
        return array
    why = {**dict.fromkeys("mM", A_TIME), **dict.fromkeys("SUT", f" and is not numeric: {remedy}")}
    if array.dtype.kind in why:
        raise WrongType(f"{name} has type {array.dtype}{why[array.dtype.kind]}")
    if array.dtype.kind == "c":
        raise WrongInput(
            f"Complex data not supported: {name} has type {array.dtype}; give real numbers"
        )
    try:
        return array.astype(np.float64, copy=False)
    except (TypeError, ValueError, OverflowError) as error:
        raise WrongType(
            f"{name} has type {array.dtype} and is not numeric: {error}; {remedy}"
        ) from None


def _plain(given: Any, name: str) -> Array:
    if np.ma.isMaskedArray(given) and np.ma.is_masked(given):
        where = tuple(int(k) for k in np.argwhere(np.ma.getmaskarray(given))[0])
        raise WrongInput(
            f"{name} is masked at {where if len(where) > 1 else where[0]}; remove such rows or fill"
            " the values in"
        )
    try:
        return np.asarray(given)
    except ValueError as error:
        raise WrongInput(f"{name} is not an array of numbers: {error}") from None


def _from_array(X: Any) -> tuple[Rows, bool]:
    array = _plain(X, "X")
    for name in getattr(X, "columns", ()):  # so that it is named; Polars makes numbers of times
        _numeric(_plain(X[name], "X"), f"column {name!r} of X")
    if array.ndim != 2:
        raise WrongInput(
            f"X must have two dimensions, (rows, features), not {array.ndim}. Reshape your data"
            " with X.reshape(1, -1) if it is one row"
        )
    if array.shape[1] == 0:
        raise WrongInput(f"0 feature(s) (shape={array.shape}) while a minimum of 1 is required.")
    matrix = np.ascontiguousarray(_numeric(array, "X"))
    plain = canonical(dense_rows(matrix, keep_zeros=True))  # then it has no zeros to drop
    return dense_rows(matrix, keep_zeros=plain), plain


def _from_sparse(X: Any) -> tuple[Rows, bool]:
    from scipy.sparse import csr_array

    fills = {getattr(one, "fill_value", 0) for one in (X, *getattr(X, "dtypes", ()))} - {0}
    refuse_first(
        [
            (X.ndim != 2, f"X must have two dimensions, (rows, features), not {X.ndim}"),
            *(
                (True, f"X has the fill value {fill}; values that are not stored must be 0")
                for fill in fills
            ),
        ]
    )
    if hasattr(X, "sparse"):  # a data frame of pandas, all of whose columns are sparse
        X = X.sparse.to_coo()
    csr = (X.to_scipy_sparse() if hasattr(X, "to_scipy_sparse") else X).tocsr()
    n, d = csr.shape
    # compared one by one: differences might not fit their type
    decreases = (csr.indptr[1:] < csr.indptr[:-1]).any()
    refuse_first(
        [
            (
                csr.data.shape != csr.indices.shape or len(csr.indptr) != n + 1,
                f"X has {csr.data.size} values, {csr.indices.size} indices and an indptr of size"
                f" {len(csr.indptr)}; give an index for each value, and for {n} rows an indptr of"
                f" size {n + 1}",
            ),
            (
                csr.indptr[:1].any() or (csr.indptr > csr.indices.size).any() or decreases,
                "the indptr of X does not increase from 0 to the number of its values",
            ),
            (
                d > MOST_FEATURES,
                f"X has {d} features; at most {MOST_FEATURES} are supported, hash them to fewer",
            ),
        ]
    )
    used = slice(csr.indptr[-1])  # there may be room behind the last row
    numbers, values = csr.indices[used], _numeric(csr.data[used], "X")
    rows = sparse_rows(csr.indptr, numbers, values, d)
    plain, wider = canonical(rows), numbers.dtype != np.int32  # those may have become others
    if (wider or not plain) and numbers.size and (numbers.min() < 0 or numbers.max() >= d):
        raise WrongInput(
            f"X names features from {numbers.min()} to {numbers.max()}, but it has features 0 to"
            f" {d - 1} only"
        )
    if plain:
        return rows, True
    # the caller's matrix must not change
    csr = csr_array((values.copy(), numbers.copy(), csr.indptr.copy()), csr.shape)
    csr.sum_duplicates()
    csr.eliminate_zeros()
    return sparse_rows(csr.indptr, csr.indices, csr.data, d), False
