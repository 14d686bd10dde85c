"""Missing values: replaced by means, left out, or refused."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import given, settings
from hypothesis import strategies as st

from storage.preparing.prepare import Preparing, prepare_source
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
    columns = {f"x{j}": column.tolist() for j, column in enumerate(X.T)}
    columns |= {"colour": colours} if colours else {}
    if form == "parquet":
        arrays = {name: pa.array(column, from_pandas=True) for name, column in columns.items()}
        pq.write_table(pa.table({**arrays, "y": y}), path, row_group_size=3)
    else:
        rows = zip(*columns.values(), y, strict=True)
        lines = [",".join(mark if v != v else str(v) for v in row) for row in rows]
        path.write_text("\n".join([",".join([*columns, "y"]), *lines]) + "\n")
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
    one_hot = np.array([[colour == text for text in met] for colour in colours or [""] * n])
    whole = ~np.isnan(X).any(axis=1) if missing == "drop" else np.ones(n, bool)
    literal = np.hstack([X if missing == "drop" else filled(X, first), one_hot])[whole]
    np.testing.assert_allclose(rows, literal, rtol=1e-12, atol=1e-12 * np.abs(values).max())
    assert labels.tolist() == np.array(y)[whole].tolist()
    assert manifest.layout == ("dense" if 2 * d >= d + len(met) else "sparse")
