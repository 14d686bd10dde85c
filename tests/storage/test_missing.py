"""Missing values of tables: what is filled in is what NumPy says of the known values, whatever the
cuts, the layout and the format; nothing looks beyond the first rows if told so.
"""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from koco_stream import WrongInput
from storage.preparing.prepare import Preparing, prepare_file, prepare_source
from storage.sources.reading import source_of
from storage.sources.source import Reading
from tests.helpers.sweeps import dense_rows

MARKS = ["", "?", "NA", "nan", "NULL", "n/a", " ? "]
number = st.one_of(
    st.sampled_from([0.0, -0.0, 1.0, -2.5, 1e150, -1e150, 5e-324, 0.1]),
    st.floats(-1e6, 1e6).map(lambda value: round(value, 3)),
)


def filled(X, first):
    """The means of the first rows filled in, literally."""
    holes = np.isnan(X).any(axis=0)
    known = X[:first]
    with np.errstate(over="ignore"):
        values = [np.mean(column[~np.isnan(column)] / 4) * 4 for column in known.T[holes]]
    Y = X.copy()
    Y[:, holes] = np.where(np.isnan(X[:, holes]), values, X[:, holes])
    return Y


def written(folder, X, y, colours, form, mark):
    """A table with a text column and missing values, as CSV or Parquet."""
    path = folder / f"a.{form}"
    if form == "parquet":
        columns = {f"x{j}": pa.array(column, from_pandas=True) for j, column in enumerate(X.T)}
        columns |= {"colour": pa.array(colours)} if colours else {}
        pq.write_table(pa.table({**columns, "y": y}), path, row_group_size=3)
        return path
    names = [f"x{j}" for j in range(X.shape[1])] + ["colour"] * bool(colours) + ["y"]
    lines = [",".join(names)]
    for k, row in enumerate(X.tolist()):
        fields = [mark if value != value else repr(value) for value in row]
        lines.append(",".join([*fields, *([colours[k]] if colours else []), repr(y[k])]))
    path.write_text("\n".join(lines) + "\n")
    return path


@settings(max_examples=25, deadline=None)
@given(data=st.data(), missing=st.sampled_from(["mean", "drop"]))
def test_missing_values__are_treated_as_numpy_would(data, missing, tmp_path_factory):
    n = data.draw(st.integers(2, 30))
    d = data.draw(st.integers(1, 3))
    draw = np.random.default_rng(data.draw(st.integers(0, 10**6)))
    values = np.array(data.draw(st.lists(number, min_size=4, max_size=9)))
    X = draw.choice(values, (n, d))
    X[draw.random((n, d)) < 0.3] = np.nan
    first = None if missing == "drop" else data.draw(st.one_of(st.none(), st.integers(1, n)))
    X[0] = 3.0  # each column has a known value in the first rows, and one row is whole
    y = draw.integers(0, 2, n).astype(float).tolist()
    words = data.draw(st.sampled_from([[], ["red"], ["red", "blue", "?"], list("abcdefgh")]))
    colours = draw.choice(words, n).tolist() if words else []
    if colours:
        colours[0] = words[0]
    form = data.draw(st.sampled_from(["csv", "parquet"]))
    folder = tmp_path_factory.mktemp("missing")
    path = written(folder, X, y, colours, form, data.draw(st.sampled_from(MARKS)))
    found = set()
    for block_bytes in (1, 1 << 24):
        reading = Reading(missing=missing, one_hot=bool(colours), target="y")
        how = Preparing(scale_rows=first, values_per_shard=data.draw(st.integers(1, 99)))
        source = source_of([path], reading, block_bytes)
        manifest = prepare_source(folder / "store", "x", source, how)
        found.add((manifest.dataset_hash, str(manifest.transformations)))
    assert len(found) == 1
    rows, labels = dense_rows(folder / "store")
    met = sorted(set(colours))
    one_hot = np.array([[colour == text for text in met] for colour in colours])
    whole = ~np.isnan(X).any(axis=1) if missing == "drop" else np.ones(n, bool)
    Y = X[whole] if missing == "drop" else filled(X, first)
    middle = one_hot[whole] if colours else np.zeros((whole.sum(), 0))
    literal = np.hstack([Y, middle])
    np.testing.assert_allclose(rows, literal, rtol=1e-12, atol=1e-12 * np.abs(values).max())
    assert labels.tolist() == np.array(y)[whole].tolist()
    assert manifest.layout == ("dense" if 2 * d >= d + len(met) else "sparse")


def test_dropped_rows_and_filled_values__are_told_in_the_manifest(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("a b;c;y\n1;?;0\n2;5;1\n;7;1\n4;9;?\n")
    manifest = prepare_file(tmp_path / "store", "x", path, missing="drop")
    assert manifest.transformations == ["rows with missing values left out: 3"]
    assert manifest.n_rows == 1
    path.write_text("a b;c;y\n1;?;0\n2;5;1\n;7;1\n4;9;0\n")
    manifest = prepare_file(tmp_path / "store", "x", path, missing="mean")
    assert manifest.feature_names == ["a b", "c"]
    assert manifest.transformations[0] == (
        "missing values filled in with the mean of the feature:"
        " a b (1 by 2.3333333333333335), c (1 by 7.0)"
    )
    path.write_text("1,2\n3,4\n")
    manifest = prepare_file(tmp_path / "store", "x", path, missing="mean")
    assert manifest.transformations == ["no value is missing"]


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("1,?,0\n?,3,1\n", {"missing": "drop"}, "each of the 2 rows has a missing value; leave"),
        (
            "1,?,0\n?,3,1\n",
            {"missing": "drop", "scale": "minmax", "scale_rows": 1},
            "each of the 2 rows has a missing value; leave",
        ),
        ("1,inf,0\n2,3,1\n", {"one_hot": True}, "line 1: column 2 is 'inf', not a finite number"),
        (
            "a,b,y\n1,?,0\n2,?,1\n",
            {"missing": "mean"},
            "column 'b' has no value in the 2 rows .*; leave it out with --drop b",
        ),
        (
            "a,b,y\n1,?,0\n2,3,1\n",
            {"missing": "mean", "scale_rows": 1},
            "column 'b' has no value in the 1 rows",
        ),
        ("1,2,?\n", {"missing": "mean", "header": False}, "is '\\?'.*--missing drop"),
        ("1,2\n", {"missing": "zero"}, "--missing zero is not one of mean, drop"),
        ("1 1:1\n", {"missing": "mean"}, "--missing is for the columns of a CSV file"),
        ("1,2\n3,4\n", {"scale_rows": 1}, "--scale none is computed from no other rows"),
        ("1,2\n3,4\n", {"scale_rows": 3, "scale": "minmax"}, "there are only 2 rows; give at most"),
        (
            "1,2.5\n3,2.5\n4,3\n",
            {"scale_rows": 2, "scale": "minmax"},
            "--scale-rows 2: the target has only one value",
        ),
    ],
)
def test_what_cannot_be_filled_in__is_refused(text, options, message, tmp_path):
    (tmp_path / "a.txt").write_text(text)
    with pytest.raises(WrongInput, match=message):
        prepare_file(tmp_path / "store", "x", tmp_path / "a.txt", **options)
