"""The memory of states: what a learner states covers what they take; a dictionary that outgrows its
worker's memory ends its own run and no other; and a cohort pauses only if the disk has room.
"""

from types import SimpleNamespace

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings, strategies as st

from koco_stream import CONKONS, KONS, KORS, PKAWV, SketchedKONS
from koco_stream.engine import limits
from koco_stream.engine.cohort import run_cohort
from koco_stream.engine.limits import bytes_of, has_room
from koco_stream.engine.result_file import result_path
from koco_stream.learners import StreamSize
from koco_stream.runs.run import Cohort, Run
from koco_stream.streams.manifest import load_manifest
from koco_stream.streams.stream import Stream
from tests.helpers.sweeps import prepared


def clusters(seed, n, d=8):
    """Rows in a few clusters, with columns of unlike scale, in random order."""
    draw = np.random.default_rng(seed)
    centres = 3.0 * draw.standard_normal((6, d))
    return (centres[draw.integers(0, 6, n)] + draw.standard_normal((n, d))) * np.linspace(0.3, 2, d)


@pytest.mark.parametrize("learner", [KORS, CONKONS, KONS, SketchedKONS, PKAWV])
def test_stated_memory__covers_the_states(learner):
    """Also where nearly all rows join."""
    X = clusters(6, 700)
    q = learner.complete({"bandwidth": 0.1})
    model = learner(bandwidth=0.1).partial_fit(X, np.sign(X[:, 0]))
    size = StreamSize(*X.shape, float(X.shape[1]))
    floats = learner.floats(q, size) + learner.shared(q, size).floats
    assert bytes_of([SimpleNamespace(states=[model._state])]) <= 8 * floats


def test_cohort__pauses_if_the_disk_has_room_for_many_like_it(tmp_path, monkeypatch):
    model = KORS().partial_fit(clusters(6, 100))
    states = [SimpleNamespace(states=[model._state])]
    for free, pauses in ((100 * bytes_of(states), True), (90 * bytes_of(states), False)):
        monkeypatch.setattr(limits, "free_bytes", lambda _, free=free: free)
        assert has_room(str(tmp_path), states) is pauses
    assert has_room("s3://bucket/store", states)


@settings(max_examples=5, deadline=None)
@given(limit=st.integers(300, 2000))
def test_outgrown_memory__ends_the_largest_runs_and_no_other(store_for_all, limit):
    """A dictionary that does not fit fails with its size and the remedy; the numbers of the other
    runs are those that they have by themselves.
    """
    folder, stream = store_for_all
    given = [("CONKONS", {"bandwidth": 0.01}), ("OGD", {}), ("CONKONS", {"bandwidth": 50.0})]
    runs = tuple(Run.of(stream, learner, q, 0) for learner, q in given)
    rows = {}
    for cohort in (Cohort(stream, runs, 1.0, limit << 10), Cohort(stream, runs[1:], 1.0)):
        run_cohort(str(folder), "test", cohort, 64)
        path = result_path(folder, cohort)
        rows[len(cohort.runs)] = {
            row["run_id"]: row for row in pq.read_table(path.path).to_pylist()
        }
        path.remove()
    failed, *others = (rows[3][run.run_id] for run in runs)
    assert failed["status"] == "failed"
    assert "its dictionary had" in failed["error"]
    assert "larger bandwidth" in failed["error"]
    for row in others:
        assert row["status"] == "ok"
        assert row["mean_loss"] == rows[2][row["run_id"]]["mean_loss"]


@pytest.fixture(scope="module")
def store_for_all(tmp_path_factory):
    """A store with a regression set of 700 rows, for all examples."""
    X = clusters(8, 700)
    store = prepared(tmp_path_factory.mktemp("store"), "real", X, X.sum(1))
    return store, Stream("real", load_manifest(store, "real").dataset_hash)
