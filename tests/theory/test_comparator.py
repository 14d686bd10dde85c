"""The best linear predictor in hindsight, against NumPy's least squares."""

import tracemalloc

import numpy as np
import pytest

from flows.report.rows import matrix_of
from koco_stream.streams.manifest import load_manifest
from koco_stream.streams.reader import StreamReader
from koco_stream.streams.stream import Stream, sharding_of
from koco_stream.theory.comparator import comparator_of, least_squares
from storage.preparing.prepare import Preparing, prepare_source
from tests.helpers.tables import table_of


def dense(reader):
    block = reader.whole()
    return matrix_of(block.rows).toarray(), block.labels


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize(("name", "positive"), [("sparse", 1.0), ("real", None)])
def test_least_squares__equals_numpy(small_store, name, positive, intercept):
    reader = StreamReader(
        small_store,
        Stream(name, load_manifest(small_store, name).dataset_hash, positive_class=positive),
    )
    X, y = dense(reader)
    if intercept:
        X = np.hstack([X, np.ones((len(X), 1))])
    w = np.linalg.lstsq(X, y, rcond=None)[0]
    found = least_squares(reader, intercept)
    assert found.loss == pytest.approx(((X @ w - y) ** 2).sum(), rel=1e-9)
    assert found.largest == pytest.approx(np.abs(X @ w).max(), rel=1e-5)


def wide_table(n=20_000, d=40, seed=0):
    """Dense rows with zeros, of very different scales, and labels that are not linear in them."""
    draw = np.random.default_rng(seed)
    X = np.where(
        draw.random((n, d)) < 0.2, 0.0, draw.standard_normal((n, d)) * np.geomspace(1e-3, 1e3, d)
    )
    y = np.sin(X[:, 0] * 1e3) + X[:, 1]
    return table_of(X, y), X, y


def test_least_squares__streams_the_rows_whatever_their_scales_and_shards(tmp_path):
    table, X, y = wide_table()
    readers = []
    for shards in (1, 5):
        manifest = prepare_source(
            tmp_path / str(shards), "a", table, Preparing(values_per_shard=X.size // shards)
        )
        assert len(manifest.shards) == shards
        readers.append(StreamReader(tmp_path / str(shards), Stream("a", manifest.dataset_hash)))
    least_squares(readers[0], True)  # compiled, and the copies made
    tracemalloc.start()
    one = least_squares(readers[0], True)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < X.nbytes / 10
    assert one == least_squares(readers[1], True)
    widened = np.hstack([X, np.ones((len(X), 1))])
    w = np.linalg.lstsq(widened / np.abs(widened).max(0), y, rcond=None)[0] / np.abs(widened).max(0)
    assert one.loss == pytest.approx(((widened @ w - y) ** 2).sum(), rel=1e-9)


def test_comparator__is_the_same_for_every_order_but_not_for_part_of_the_rows(small_store):
    identity = load_manifest(small_store, "real").dataset_hash
    readers = [
        StreamReader(small_store, Stream("real", identity, "shuffled", seed)) for seed in (0, 1)
    ]
    windows = Stream(
        "real",
        identity,
        "shuffled-in-windows",
        0,
        window_rows=9,
        sharding=sharding_of(load_manifest(small_store, "real")),
    )
    assert (
        comparator_of(readers[0], False)
        == comparator_of(readers[1], False)
        == comparator_of(StreamReader(small_store, windows), False)
    )
    part = StreamReader(small_store, Stream("real", identity, "shuffled", 0, max_rows=100))
    X, y = dense(part)
    w = np.linalg.lstsq(X, y, rcond=None)[0]
    assert comparator_of(part, False).loss == pytest.approx(((X @ w - y) ** 2).sum(), rel=1e-9)
