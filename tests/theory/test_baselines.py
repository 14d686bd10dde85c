"""What a run is compared with: the best linear predictor in hindsight, against NumPy's least
squares, and the trivial learner, which a run's row says as a run of Constant has it, to the bit.
"""

import tracemalloc

import numpy as np
import pytest

from flows.report.rows import rows_of_stream
from koco_stream.engine.cohort import fail_cohort, run_cohort
from koco_stream.losses import LOSSES, OF_REAL_LABELS
from koco_stream.runs.run import Cohort, Run
from koco_stream.streams import reader as reading
from koco_stream.streams.manifest import load_manifest
from koco_stream.streams.reader import BlockLabels, StreamReader
from koco_stream.streams.rows import frozen
from koco_stream.streams.stream import sharding_of
from koco_stream.theory.baselines import comparator_of, least_squares, result_on, trivial_result
from storage.preparing.prepare import Preparing, prepare_source
from tests.helpers.sweeps import results_of, stream_of
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


def streams_of(store, name, **more):
    """The dataset as stored, shuffled, and in windows, where it is cut."""
    windows = {"window_rows": 64, "sharding": sharding_of(load_manifest(store, name))}
    yield stream_of(store, name, **more)
    yield stream_of(store, name, "shuffled", 3, **more)
    yield stream_of(store, name, "shuffled-in-windows", 3, max_rows=123, **windows, **more)


def results_on(store, stream, given):
    """The rows of a cohort of (learner, parameters)."""
    cohort = Cohort(stream, tuple(Run.of(stream, *one, 1) for one in given), 1.0)
    run_cohort(str(store), "try", cohort, 50)
    return results_of(store, cohort), cohort


@pytest.mark.parametrize(
    ("name", "more", "losses"),
    [
        ("sparse", {"positive_class": 1.0}, tuple(LOSSES)),
        ("sparse", {"positive_class": 3.0}, ("squared",)),
        ("real", {}, OF_REAL_LABELS),
    ],
)
def test_row_of_every_run__says_what_a_run_of_constant_comes_to(
    name, more, losses, small_store, monkeypatch
):
    monkeypatch.setattr(reading, "LABEL_ROWS", 100)
    given = [(learner, {"loss": loss}) for learner in ("Constant", "OGD") for loss in losses]
    for stream in streams_of(small_store, name, **more):
        rows, _ = results_on(small_store, stream, given)
        constants = rows[: len(losses)]
        for row, constant in zip(rows, constants * 2, strict=True):
            assert row["constant_mean_loss"] == constant["mean_loss"]
            assert row["constant_error_rate"] == constant["error_rate"]
        assert {row["error_rate"] is None for row in constants} == {name == "real"}


def test_run_that_ends_early__has_that_of_the_whole_stream_and_one_never_begun_has_none(
    small_store,
):
    given = [("OGD", {"step_size": 1e300, "clip": 1e300}), ("Constant", {})]
    (ended, constant), cohort = results_on(small_store, stream_of(small_store, "real"), given)
    assert (ended["status"], ended["rounds"] < constant["rounds"]) == ("diverged", True)
    assert ended["constant_mean_loss"] == constant["mean_loss"]
    fail_cohort(str(small_store), "try", cohort, "no such luck")
    assert [row["constant_mean_loss"] for row in results_of(small_store, cohort)] == [None, None]


def test_result__is_found_once_for_a_stream_and_loss_unless_labels_overflow(
    small_store, monkeypatch
):
    reader = StreamReader(small_store, stream_of(small_store, "real", "shuffled", 5))
    for function in ("dense_rows", "sparse_rows"):  # no row is put together
        monkeypatch.delattr(reading, function)
    first = trivial_result(reader, "squared")
    monkeypatch.delattr(StreamReader, "labels")
    assert trivial_result(reader, "squared") == first
    huge = BlockLabels(frozen([[1e200] * 5], np.float64), np.ones(5, np.int64))
    assert [result_on(blocks, "squared") for blocks in ([huge], [])] == [None, None]
