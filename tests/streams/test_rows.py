"""Rows as they come from Python: whatever the container and the types, the canonical rows are those
of the plain float64 matrix, or the message says what is wrong with which row.
"""

from datetime import datetime
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import scipy.sparse
import sparse
from hypothesis import given, settings, strategies as st

from koco_stream.streams.inputs import as_labels, as_rows
from tests.helpers.refusal import refusal

D = 9
INDEX_TYPES = [pa.int8(), pa.uint8(), pa.int16(), pa.uint16(), pa.int32(), pa.uint32()]
VALUE_TYPES = [pa.float64(), pa.float32(), pa.float16(), pa.int8(), pa.uint64()]


def same(found, matrix):
    """Whether canonical rows are those of a float64 matrix."""
    made = found.to_scipy().toarray()
    np.testing.assert_array_equal(made.astype(np.float64), matrix, strict=True)
    assert (found.values != 0).all()


def arranged(column, how):
    """A column in another arrangement of memory, with the same values."""
    n = len(column)
    if how == "sliced":
        return pa.concat_arrays([column, column]).slice(n, n)
    if how == "chunked":
        return pa.chunked_array([column.slice(0, n // 2), column.slice(n // 2)], column.type)
    return column


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_arrow_tables__of_any_types_are_the_plain_rows(data):
    n = data.draw(st.integers(1, 6))
    lists = data.draw(st.sampled_from([pa.list_, pa.large_list]))
    value_type, index_type = (data.draw(st.sampled_from(t)) for t in (VALUE_TYPES, INDEX_TYPES))
    draw = np.random.default_rng(data.draw(st.integers(0, 10**6)))
    rows = []
    matrix = np.zeros((n, D))
    for t in range(n):
        features = draw.integers(0, D, draw.integers(0, 6)).tolist()  # unsorted, some twice
        values = draw.integers(0, 5, len(features)).tolist()
        for j, value in zip(features, values, strict=True):
            matrix[t, j] += value
        rows.append((features, values))
    values = pa.array(
        [np.array(values, value_type.to_pandas_dtype()) for _, values in rows], lists(value_type)
    )
    indices = pa.array([features for features, _ in rows], lists(index_type))
    how = data.draw(st.sampled_from(["plain", "sliced", "chunked"]))
    table = pa.table({"indices": arranged(indices, how), "values": arranged(values, how)})
    table = table.replace_schema_metadata({"n_features": str(D)})
    same(as_rows(table), matrix)
    if how != "chunked":
        same(as_rows(table.to_batches()[0]), matrix)
    fixed = pa.FixedSizeListArray.from_arrays(pa.array(matrix.ravel().astype(np.int16)), D)
    same(as_rows(pa.table({"values": arranged(fixed, how)})), matrix)
    columns = {f"x{j}": pa.array(matrix[:, j]).cast(value_type) for j in range(D)}
    same(as_rows(pa.table({name: arranged(one, how) for name, one in columns.items()})), matrix)


def test_dictionary_encoded_items_and_fixed_lists_with_features__are_read():
    values = pa.array([[1.0, 2.0], [3.0, 1.0]])
    coded = pa.ListArray.from_arrays(values.offsets, values.flatten().dictionary_encode())
    indices = pa.FixedSizeListArray.from_arrays(pa.array([2, 0, 1, 2], pa.uint64()), 2)
    same(
        as_rows(pa.table({"values": coded, "indices": indices})), np.array([[2.0, 0, 1], [0, 3, 1]])
    )


@settings(max_examples=60, deadline=None)
@given(
    kind=st.sampled_from(
        ["?", "i1", "u8", "<f2", ">f2", ">f4", ">f8", "<f8", "longdouble", "O", ">i4"]
    ),
    seed=st.integers(0, 10**6),
    data=st.data(),
)
def test_arrays__of_any_type_and_order_are_the_plain_rows(kind, seed, data):
    matrix = np.random.default_rng(seed).integers(0, 2, (6, 8)).astype(np.float64)
    given_as = matrix.astype(kind)
    cut = data.draw(st.sampled_from([np.s_[:, :], np.s_[::2, ::-1], np.s_[::-1, 1::3]]))
    order = data.draw(st.sampled_from(["C", "F"]))
    same(as_rows(np.asarray(given_as, order=order)[cut]), matrix[cut])
    same(as_rows(np.ma.masked_array(given_as)[cut]), matrix[cut])
    if kind not in ("O", "<f2", ">f2", "longdouble"):
        form = data.draw(st.sampled_from(["csr", "csc", "coo", "lil", "dok", "bsr", "dia"]))
        stored = scipy.sparse.coo_array(matrix).asformat(form)
        same(as_rows(stored.astype(np.dtype(kind).newbyteorder("="))), matrix)
    same(as_rows(sparse.COO.from_numpy(matrix)[cut]), matrix[cut])


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_column_of_a_frame_that_is_not_numeric__is_named(library):
    frame = pytest.importorskip(library).DataFrame
    for values, message in (
        (["r", "b"], r"column 'c' of X .* turn texts into numbers first, .* pandas\.get_dummies"),
        ([datetime(2024, 1, 1)] * 2, "column 'c' of X .* a time; turn it .* by .dt.day_of_year"),
    ):
        refusal(message, as_rows, frame({"a": [1.0, 2.0], "c": values}))
    texts = pd.DataFrame({"a": [1.0, 2.0], "c": ["r", "b"], "d": [True, False]})
    same(as_rows(pd.get_dummies(texts)), np.array([[1.0, 1, 0, 1], [2, 0, 1, 0]]))


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (["r", "b"], r"y has .* koco_stream\.Classifier\(learner\)"),
        (pd.Series(["r", "b"]), r"y has .* koco_stream\.Classifier\(learner\)"),
        (np.ma.masked_array([1.0, 2.0], [False, True]), "y is masked at 1; remove"),
    ],
)
def test_labels_that_are_classes_or_masked__are_refused(y, message):
    refusal(message, as_labels, y, 2)


def changed(**arrays):
    """The CSR matrix of the identity, with other arrays in it."""
    matrix = scipy.sparse.csr_array(np.eye(3))
    vars(matrix).update(arrays)
    return matrix


@pytest.mark.parametrize(
    ("X", "message"),
    [
        *(
            (pa.table(columns), message)
            for columns, message in (
                ({"indices": [[0]]}, "needs one column 'values', as .* has indices"),
                (
                    {"values": [1.0], "indices": [[0]]},
                    "column 'values' is double, not a list of numbers",
                ),
                ({"values": [["a"]]}, "column 'values' is list<.*string>, not a list of numbers"),
                (
                    {"values": [[1.0], None], "indices": [[0], [1]]},
                    "'values' holds nulls, first in row 1",
                ),
                ({"values": [[1.0], [2, None]], "indices": [[0], [1, 2]]}, "nulls, first in row 1"),
                (
                    {"values": [[None]], "indices": [[0]]},
                    "column 'values' holds nulls, first in row 0",
                ),
                ({"values": [None], "indices": [[0]]}, "'values' is null, not a list|holds nulls"),
                ({"a": [1.0, None]}, "column 'a' holds nulls, first in row 1; remove such rows"),
                ({"a": ["1.0"]}, "column 'a' is string; turn it into numbers first"),
                ({"a": [Decimal(1)]}, r"column 'a' is decimal128\(1, 0\); turn it into numbers"),
                ({"values": [[Decimal(1)]]}, "'values' is list<.*decimal.*, not a list of num"),
                (
                    {"a": [1.0], "__index_level_0__": [3]},
                    r"no feature; .*drop_columns\('__index_level_0__'",
                ),
                ({}, "0 feature"),
                (
                    {"values": [[1.0]], "indices": [[0.5]]},
                    "'indices' holds float64; feature numbers",
                ),
                (
                    {"values": [[1.0]], "indices": [[True]]},
                    "column 'indices' holds bool; feature numbers",
                ),
                (
                    {"values": [[1.0]], "indices": [[-1]]},
                    "row 0 names feature -1; features are numbered",
                ),
                (
                    {"values": [[1.0]], "indices": [[2**31]]},
                    "row 0 names feature 2147483648; features",
                ),
                (
                    {
                        "values": [[], [1.0]],
                        "indices": pa.array([[], [2**64 - 1]], pa.list_(pa.uint64())),
                    },
                    "row 1 names feature 18446744073709551615; features",
                ),
                ({"values": [[1.0]], "indices": [[1, 2]]}, "row 0 has 1 values and 2 indices"),
                (
                    {"values": [[1.0], [1.0, 2.0]]},
                    "row 1 has 2 values and row 0 has 1; sparse rows need",
                ),
                ({"values": [[float("nan")]], "indices": [[0]]}, "row 0 of X holds nan"),
                ({"values": [[]]}, "0 feature"),
            )
        ),
        *(
            (
                pa.table({"values": [[1.0]], "indices": [[2]]}, metadata={"n_features": told}),
                "largest feature is 2; give the number of features",
            )
            for told in ("x", "-1", "2", "3.0", "")
        ),
        (pa.chunked_array([[[1.0]]]), "X is a pyarrow ChunkedArray; give a table"),
        (np.ma.masked_array([[1.0, 2.0]], [[False, True]]), r"X is masked at \(0, 1\); remove"),
        ([[1.0], [1.0, 2.0]], "X is not an array of numbers"),
        (np.array([["2020-01-01"]], "M8[D]"), "X has type datetime64.*a time"),
        (np.array([[1 + 1j]]), "Complex data not supported"),
        (np.array([[None]]), "row 0 of X holds nan"),
        (sparse.COO.from_numpy(np.ones((2, 2)), fill_value=1.0), "X has the fill value 1.0"),
        (np.array([["a"]]), "not numeric"),
        ([["1", "2"]], "not numeric: turn texts into numbers first"),
        (np.array([[b"1"]]), "not numeric: turn texts into numbers first"),
        *(
            (changed(indptr=np.array(ends, np.int32)), "the indptr of X does not increase")
            for ends in ([0, 2, 1, 3], [0, 4, 2, 3], [1, 2, 3, 3], [0, 2, 3, 4], [0, -1, 2, 3])
        ),
        *(
            (changed(**cut), r"X has . values, . indices and an indptr of size")
            for cut in (
                {"indptr": np.int32([0, 1, 2])},
                {"indices": np.int32([0, 1])},
                {"data": np.ones(2)},
            )
        ),
    ],
)
def test_what_is_no_matrix__is_refused(X, message):
    refusal(message, as_rows, X)


def test_room_behind_the_last_row__is_not_read():
    more = {"indices": np.int32([0, 1, 2, -7]), "data": np.array([1.0, 1.0, 1.0, np.nan])}
    same(as_rows(changed(**more)), np.eye(3))


PLACE, BLOCK = 8, 64  # where a compiler may begin anew
LONG = 2 * BLOCK + 5  # values: some blocks, and what is left


def long_matrix(cuts, index_type=np.int32):
    """A CSR matrix of `LONG` ones, whose rows end where `cuts` say, with features from 0 on."""
    ends = np.array([0, *cuts, LONG], index_type)
    matrix = scipy.sparse.csr_array((ends.size - 1, LONG))
    matrix.indptr, matrix.data = ends, np.ones(LONG)
    matrix.indices = np.concatenate([np.arange(n, dtype=index_type) for n in np.diff(ends)])
    return matrix


@pytest.mark.parametrize("index_type", [np.int32, np.int64])
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_canonical_input__is_not_copied(kind, index_type):
    values = np.linspace(1.0, 2.0, LONG).astype(kind)
    for width in (1, LONG):
        assert np.shares_memory(as_rows(values.reshape(-1, width)).values, values)
    matrix = long_matrix([0, 3, BLOCK, BLOCK + 1, LONG], index_type)
    matrix.data = values
    found = as_rows(matrix)
    assert np.shares_memory(found.values, values)
    assert np.shares_memory(found.indices, matrix.indices) == (index_type == np.int32)
    for name in ("indptr", "indices"):
        np.testing.assert_array_equal(getattr(found, name), getattr(matrix, name))


CHANGES = {
    "zero": None,
    "nan": "row {row} of X holds nan",
    "-inf": "row {row} of X holds -inf",
    "swapped": None,
    "twice": None,
    "below": f"X names features from -1 to .*, but it has features 0 to {LONG - 1} only",
    # from 1 if the only 0 was changed
    "above": f"X names features from [01] to {LONG}, but it has features 0 to {LONG - 1} only",
}


@settings(max_examples=100, deadline=None)
@given(
    what=st.sampled_from(sorted(CHANGES)),
    at=st.integers(0, LONG - 2)
    | st.sampled_from([PLACE - 1, PLACE, BLOCK - 1, BLOCK, 2 * BLOCK - 1, 2 * BLOCK, LONG - 2]),
    cuts=st.sets(st.integers(1, LONG - 1), max_size=40),
    index_type=st.sampled_from([np.int32, np.int64]),
)
def test_one_other_number_in_a_long_matrix__is_found(what, at, cuts, index_type):
    matrix = long_matrix(sorted(cuts - {at + 1}), index_type)  # at and at + 1 are in one row
    row = int(np.searchsorted(matrix.indptr, at, side="right")) - 1
    numbers, values = matrix.indices, matrix.data
    if what in ("zero", "nan", "-inf"):
        values[at] = 0.0 if what == "zero" else float(what)
    elif what == "swapped":
        values[at], numbers[[at, at + 1]] = 2.0, numbers[[at + 1, at]]
    else:
        numbers[at] = {"twice": numbers[at + 1], "below": -1, "above": LONG}[what]
    arrays = (matrix.indptr, numbers, values)
    before = [array.copy() for array in arrays]
    if CHANGES[what]:
        refusal(CHANGES[what].format(row=row), as_rows, matrix)
    else:
        found = as_rows(matrix)
        made = found.to_scipy()
        assert made.has_canonical_format
        assert found.values.all()
        assert (made != matrix.copy()).nnz == 0
    for array, old in zip(arrays, before, strict=True):
        np.testing.assert_array_equal(array, old)


@pytest.mark.parametrize("spoilt", ["swapped", "twice"])
def test_flags_that_are_no_longer_true__are_not_believed(spoilt):
    """SciPy keeps what it has found of a matrix, whatever is written into its arrays since."""
    matrix = scipy.sparse.csr_array(np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]))
    assert matrix.has_canonical_format
    matrix.indices[:2] = [1, 0] if spoilt == "swapped" else [1, 1]
    first = [2.0, 1.0, 3.0] if spoilt == "swapped" else [0.0, 3.0, 3.0]
    same(as_rows(matrix), np.array([first, [4.0, 5.0, 6.0]]))


def test_sparse_data_frame__stays_sparse():
    n, d = 50, 20_000
    matrix = scipy.sparse.random_array((n, d), density=1e-3, rng=0)
    found = as_rows(pd.DataFrame.sparse.from_spmatrix(matrix.tocsc()))
    assert found.values.size == matrix.nnz
    same(found, matrix.toarray())
    filled = pd.DataFrame({"a": pd.arrays.SparseArray([1.0, 2.0], fill_value=1.0)})
    refusal(r"fill value 1\.0; values that are not stored must be 0", as_rows, filled)
