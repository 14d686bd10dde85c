"""What a run's row says of the trivial learner is what a run of Constant comes to, to the bit."""

import numpy as np
import pytest

from koco_stream.engine.cohort import fail_cohort, run_cohort
from koco_stream.losses import LOSSES, OF_REAL_LABELS
from koco_stream.runs.run import Cohort, Run
from koco_stream.streams import reader as reading
from koco_stream.streams.manifest import load_manifest
from koco_stream.streams.reader import BlockLabels, StreamReader
from koco_stream.streams.rows import frozen
from koco_stream.streams.stream import sharding_of
from koco_stream.theory.baselines import result_on, trivial_result
from tests.helpers.sweeps import results_of, stream_of


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
    huge = BlockLabels(frozen([[1e200] * 5], np.float64))
    assert [result_on(blocks, "squared") for blocks in ([huge], [])] == [None, None]
