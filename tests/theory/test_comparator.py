"""The best linear predictor in hindsight, against NumPy's least squares."""

import tracemalloc

import numpy as np
import pytest

from flows.report.rows import rows_of_stream
from koco_stream.streams.manifest import load_manifest
from koco_stream.streams.reader import StreamReader
from koco_stream.streams.stream import sharding_of
from koco_stream.theory.baselines import comparator_of, least_squares
from storage.preparing.prepare import Preparing, prepare_source
from tests.helpers.sweeps import stream_of
from tests.helpers.tables import table_of


def assert_least(found, store, stream, intercept):
    """`found` is NumPy's least squares of this stream's rows."""
    sparse, y = rows_of_stream(store, stream)
    X = np.hstack([sparse.toarray(), np.full((len(y), int(intercept)), 1.0)])
    scale = np.abs(X).max(0)
    predictions = X / scale @ np.linalg.lstsq(X / scale, y, rcond=None)[0]
    assert found.loss == pytest.approx(((predictions - y) ** 2).sum(), rel=1e-9)
    assert found.largest == pytest.approx(np.abs(predictions).max(), rel=1e-5)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize(("name", "positive"), [("sparse", 1.0), ("real", None)])
def test_least_squares__equals_numpy(small_store, name, positive, intercept):
    stream = stream_of(small_store, name, positive_class=positive)
    assert_least(
        least_squares(StreamReader(small_store, stream), intercept), small_store, stream, intercept
    )


def test_least_squares__streams_the_rows_whatever_their_scales_and_shards(tmp_path):
    # Dense rows with zeros, of very different scales, and labels that are not linear in them.
    draw = np.random.default_rng(0)
    X = draw.standard_normal((20_000, 40)) * np.geomspace(1e-3, 1e3, 40)
    X[draw.random(X.shape) < 0.2] = 0.0
    table, readers = table_of(X, np.sin(X[:, 0] * 1e3) + X[:, 1]), []
    for shards in (1, 5):
        store, options = tmp_path / str(shards), Preparing(values_per_shard=X.size // shards)
        assert len(prepare_source(store, "a", table, options).shards) == shards
        readers.append(StreamReader(store, stream_of(store, "a")))
    least_squares(readers[0], True)  # compiled, and the copies made
    tracemalloc.start()
    one = least_squares(readers[0], True)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < X.nbytes / 10
    assert one == least_squares(readers[1], True)
    assert_least(one, tmp_path / "1", stream_of(tmp_path / "1", "a"), True)


def test_comparator__is_the_same_for_every_order_but_not_for_part_of_the_rows(small_store):
    sharding = sharding_of(load_manifest(small_store, "real"))
    streams = {
        "one order": ("shuffled", 0, {}),
        "another": ("shuffled", 1, {}),
        "windows": ("shuffled-in-windows", 0, {"window_rows": 9, "sharding": sharding}),
        "cut": ("shuffled", 0, {"max_rows": 100}),
    }
    found = {}
    for name, (order, seed, more) in streams.items():
        stream = stream_of(small_store, "real", order, seed, **more)
        found[name] = comparator_of(StreamReader(small_store, stream), False)
    assert_least(found.pop("cut"), small_store, stream, False)
    assert found == dict.fromkeys(found, found["one order"])
