"""The planner's dictionaries: their sizes, from a few rows, are those that runs have; their memory
covers what states take; those that take most rows are named with the remedy; and a dictionary that
outgrows its worker's memory ends its own run and no other.
"""

from types import SimpleNamespace

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from koco_stream import CONKONS, KORS, PKAWV, SketchedKONS
from koco_stream.engine.cohort import run_cohort
from koco_stream.engine.limits import bytes_of
from koco_stream.engine.result_file import result_path
from koco_stream.learners import Growth, StreamSize
from koco_stream.runs.cost_model import DataSize
from koco_stream.runs.dictionary_sample import DictionarySample, large_dictionaries, with_growths
from koco_stream.runs.planner import Limits, plan
from koco_stream.runs.run import Cohort, Run
from koco_stream.streams.manifest import load_manifest
from koco_stream.streams.stream import Stream
from tests.helpers.sweeps import prepared

N = 1500


def clusters(seed, n=N, d=8):
    """Rows in a few clusters, with columns of unlike scale, in random order."""
    draw = np.random.default_rng(seed)
    centres = 3.0 * draw.standard_normal((6, d))
    return (centres[draw.integers(0, 6, n)] + draw.standard_normal((n, d))) * np.linspace(0.3, 2, d)


@given(
    points=st.lists(st.integers(0, 400), min_size=2, max_size=6).map(sorted),
    squares=st.floats(0, 3),
    per_point=st.floats(0, 50),
)
def test_means__are_those_of_each_round_and_each_point(points, squares, per_point):
    """The means over a growth are the sums over its rounds, one by one, up to their number."""
    rounds = np.arange(len(points)) * 5000.0
    growth = Growth(tuple(rounds), (0.0, *map(float, points[1:])))
    J = np.interp(np.arange(0.5, rounds[-1]), rounds, growth.points)

    def cost(n):
        return 7.0 + per_point * n + squares * n**2

    assert growth.a_round(cost) == pytest.approx(cost(J).mean(), rel=1e-4, abs=1e-6)
    each = sum(cost(j + 0.5) for j in range(points[-1])) / rounds[-1]
    assert growth.a_join(cost) == pytest.approx(each, rel=1e-3, abs=1e-6)


@pytest.mark.parametrize("bandwidth", [0.1, 0.6, 1.5, 4.0, 20.0])
@pytest.mark.parametrize("ridge", [0.2, 1.0])
def test_expected_points__are_those_that_kors_takes(bandwidth, ridge):
    """From bandwidths that are far too small to far too large, the expected size is within a
    quarter of the size of a run, or a few points.
    """
    X = clusters(5)
    given = {"bandwidth": bandwidth, "ridge": ridge}
    expected = DictionarySample(X, N).growth(KORS.sampling(KORS.complete(given))).last
    taken = KORS(**given).partial_fit(X).dictionary_.size
    assert expected == pytest.approx(taken, rel=0.25, abs=10)


@pytest.mark.parametrize("learner", [CONKONS, SketchedKONS, PKAWV])
@pytest.mark.parametrize("bandwidth", [0.3, 3.0])
def test_planned_memory__covers_the_states(learner, bandwidth):
    """The memory that is planned from the estimate is at least what a run's state takes."""
    X = clusters(6)
    y = np.sign(X[:, 0])
    q = learner.complete({"bandwidth": bandwidth})
    growth = DictionarySample(X, N).growth(learner.sampling(q))
    model = learner(bandwidth=bandwidth).partial_fit(X, y)
    cost = learner.cost(q, StreamSize(N, X.shape[1], float(X.shape[1]), growth))

    assert bytes_of([SimpleNamespace(states=[model._state])]) <= 8 * (
        cost.floats + cost.shared.floats
    )


@pytest.fixture
def store(small_store):
    """The store, and a stream of its regression set."""
    manifest = load_manifest(small_store, "real")
    return small_store, manifest, Stream("real", manifest.dataset_hash)


def test_large_dictionary__is_named_with_its_remedy(store, monkeypatch):
    """A bandwidth at which most rows join is named before the sweep, with the rows' distance."""
    folder, manifest, stream = store
    runs = [Run.of(stream, "CONKONS", {"bandwidth": width}, 0) for width in (0.01, 3.0)]
    monkeypatch.setattr("koco_stream.runs.dictionary_sample.LARGE_POINTS", 100)
    sizes = with_growths(folder, {manifest.dataset_hash: DataSize.of(manifest)}, runs)
    (warning,) = large_dictionaries(runs, sizes)
    distance = sizes[manifest.dataset_hash].median_distance
    assert warning.startswith("CONKONS on real with bandwidth 0.01: about 3")
    assert f"two rows are {distance:.3g} apart" in warning
    assert "BKONS" in warning
    assert large_dictionaries(runs[1:], sizes) == []
    monkeypatch.setattr("koco_stream.runs.dictionary_sample.LARGE_POINTS", 0)
    monkeypatch.setattr("koco_stream.runs.dictionary_sample.LARGE_SHARE", 0.0)
    (warning,) = large_dictionaries(runs[1:], sizes)
    assert "a larger ridge makes it smaller" in warning  # its bandwidth is not what is too small


def test_unprepared_dataset__is_planned_without_an_estimate(small_store):
    """A dataset that is generated when the sweep begins has no rows to look at yet."""
    sizes = {"h": DataSize(5000, 10, 50_000)}
    runs = [Run.of(Stream("missing", "h"), "CONKONS", {}, 0)]
    assert with_growths(small_store, sizes, runs) == sizes
    assert sizes["h"].seen_by(runs[0]).growth is None
    assert plan(runs, sizes, Limits(1, 8 << 30)).seconds > 0


@pytest.mark.parametrize(
    ("rows", "why"),
    [([[1, 2]], "no row before another"), ([[1e150, 1]] * 9, "kernel values overflow")],
)
def test_estimate__that_fails__warns_and_plans_as_if_all_rows_joined(rows, why, tmp_path):
    store = prepared(tmp_path, "odd", rows, np.ones(len(rows)))
    manifest = load_manifest(store, "odd")
    stream, size = Stream("odd", manifest.dataset_hash), DataSize.of(manifest)
    given = {"kernel": "polynomial", "degree": 4}
    runs = [Run.of(stream, "KORS", {**given, "max_dictionary": most}, 0) for most in (None, 1)]
    with pytest.warns(UserWarning, match=f"dictionaries grow on odd cannot be estimated .*{why}"):
        sizes = with_growths(store, {stream.dataset_hash: size}, runs)
    found = [sizes[stream.dataset_hash].seen_by(run).growth for run in runs]
    assert [growth.points for growth in found] == [(0.0, len(rows)), (0.0, 1.0)]
    assert large_dictionaries(runs, sizes) == []
    assert len(plan(runs, sizes, Limits(1, 8 << 30)).runs) == 2


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
    for cohort in (Cohort(stream, runs, 1.0, 0, limit << 10), Cohort(stream, runs[1:], 1.0)):
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
