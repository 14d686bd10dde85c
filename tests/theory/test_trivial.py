"""What a run's row says of the trivial learner is what a run of Constant comes to, to the bit."""

from dataclasses import replace

import numpy as np
import pytest

from koco_stream.engine.cohort import fail_cohort, run_cohort
from koco_stream.losses import LOSSES, OF_REAL_LABELS
from koco_stream.runs.run import Cohort, Run
from koco_stream.streams import reader as reading
from koco_stream.streams.manifest import load_manifest
from koco_stream.streams.reader import BlockLabels, StreamReader
from koco_stream.streams.stream import sharding_of
from koco_stream.theory.baselines import result_on, trivial_result
from tests.helpers.sweeps import results_of, stream_of


def streams_of(store, name, **more):
    """The dataset in every order, whole and cut."""
    sharding = sharding_of(load_manifest(store, name))
    orders = [
        {"order": "as-stored"},
        {"order": "shuffled", "order_seed": 3},
        {"order": "shuffled-in-windows", "order_seed": 3, "window_rows": 64, "sharding": sharding},
    ]
    whole = [stream_of(store, name, **order, **more) for order in orders]
    return [*whole, *(replace(stream, max_rows=123) for stream in whole)]


@pytest.mark.parametrize(
    ("name", "more", "losses"),
    [
        ("sparse", {"positive_class": 1.0}, tuple(LOSSES)),
        ("sparse", {"positive_class": 3.0}, tuple(LOSSES)),
        ("real", {}, OF_REAL_LABELS),
    ],
)
def test_row_of_every_run__says_what_a_run_of_constant_comes_to(name, more, losses, small_store):
    for stream in streams_of(small_store, name, **more):
        cohort = Cohort(
            stream,
            tuple(
                Run.of(stream, learner, {"loss": loss}, 1)
                for learner in ("Constant", "OGD")
                for loss in losses
            ),
            1.0,
        )
        run_cohort(str(small_store), "try", cohort, 50)
        rows = results_of(small_store, cohort)
        constants, others = rows[: len(losses)], rows[len(losses) :]
        for row, constant in zip((*constants, *others), constants * 2, strict=True):
            assert row["constant_mean_loss"] == constant["mean_loss"]
            assert row["constant_error_rate"] == constant["error_rate"]
        assert {row["error_rate"] is None for row in constants} == {name == "real"}


def test_run_that_ends_early__has_that_of_the_whole_stream_and_one_never_begun_has_none(
    small_store,
):
    stream = stream_of(small_store, "real")
    given = [("OGD", {"step_size": 1e300, "clip": 1e300}), ("Constant", {})]
    cohort = Cohort(stream, tuple(Run.of(stream, *one, 1) for one in given), 1.0)
    run_cohort(str(small_store), "try", cohort)
    ended, constant = results_of(small_store, cohort)
    assert ended["status"] == "diverged"
    assert ended["rounds"] < constant["rounds"]
    assert ended["constant_mean_loss"] == constant["mean_loss"]
    fail_cohort(str(small_store), "try", cohort, "no such luck")
    assert [row["constant_mean_loss"] for row in results_of(small_store, cohort)] == [None, None]


@pytest.mark.parametrize("name", ["sparse", "real"])
def test_labels__are_those_of_the_stream_s_blocks_and_no_row_is_put_together(
    name, small_store, monkeypatch
):
    monkeypatch.setattr(reading, "LABEL_ROWS", 100)
    for stream in streams_of(small_store, name):
        expected = [block.labels for block in StreamReader(small_store, stream).blocks(77)]
        with monkeypatch.context() as patched:
            for function in ("dense_rows", "sparse_rows"):
                patched.delattr(reading, function)
            found = [labels.learnt[0] for labels in StreamReader(small_store, stream).labels()]
        assert len(found) > 1
        assert max(labels.size for labels in found) == 100
        assert np.concatenate(found).tobytes() == np.concatenate(expected).tobytes()


def test_result__is_found_once_for_a_stream_and_loss(small_store, monkeypatch):
    reader = StreamReader(small_store, stream_of(small_store, "real", "shuffled", 5))
    first = trivial_result(reader, "squared")
    monkeypatch.delattr(StreamReader, "labels")
    assert trivial_result(reader, "squared") == first


def test_labels_that_overflow__have_no_result():
    labels = np.full(5, 1e200)
    labels.flags.writeable = False
    assert result_on([BlockLabels(labels.reshape(1, -1))], "squared") is None
    assert result_on([], "squared") is None
