"""The best linear predictor in hindsight, against NumPy's least squares."""

import numpy as np
import pytest

from koco_stream.comparator import comparator_of, least_squares
from koco_stream.manifest import load_manifest
from koco_stream.runs import Stream
from koco_stream.stream import StreamReader


def matrix_of(reader):
    X, y = [], []
    for block in reader.blocks():
        rows = block.rows
        for t in range(rows.n_rows):
            line = np.zeros(rows.n_features)
            a, b = rows.indptr[t], rows.indptr[t + 1]
            line[rows.indices[a:b] if rows.index_stride else rows.indices] = rows.values[a:b]
            X.append(line)
        y.append(block.labels)
    return np.array(X), np.concatenate(y)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize(("name", "positive"), [("sparse", 1.0), ("real", None)])
def test_least_squares__equals_numpy(small_store, name, positive, intercept):
    reader = StreamReader(small_store, Stream(name, load_manifest(small_store, name).dataset_hash, positive_class=positive))
    X, y = matrix_of(reader)
    if intercept:
        X = np.hstack([X, np.ones((len(X), 1))])
    w = np.linalg.lstsq(X, y, rcond=None)[0]
    found = least_squares(reader, intercept)
    assert found.loss == pytest.approx(((X @ w - y) ** 2).sum(), rel=1e-9)
    assert found.largest == pytest.approx(np.abs(X @ w).max(), rel=1e-5)


def test_comparator__is_the_same_for_every_order_but_not_for_part_of_the_rows(small_store):
    identity = load_manifest(small_store, "real").dataset_hash
    readers = [StreamReader(small_store, Stream("real", identity, "shuffled", seed)) for seed in (0, 1)]
    assert comparator_of(readers[0], False) == comparator_of(readers[1], False)
    part = StreamReader(small_store, Stream("real", identity, "shuffled", 0, max_rows=100))
    X, y = matrix_of(part)
    w = np.linalg.lstsq(X, y, rcond=None)[0]
    assert comparator_of(part, False).loss == pytest.approx(((X @ w - y) ** 2).sum(), rel=1e-9)
