"""The plan of a sweep: every run once, within all limits, the same each time, and workers that are
busy to the end.
"""

import heapq
import math
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, assume, given, settings, strategies as st

from koco_stream.learners import learner_named
from koco_stream.runs.cost_model import RUN_SECONDS, Costs, DataSize, Timing, pass_bytes, timing_key
from koco_stream.runs.planner import LONG, PASSES, SHORTEST, Limits, longest_of, plan
from koco_stream.runs.run import NO_PAUSE, Pause, Run, Rungs
from koco_stream.runs.schemas import curve_points
from koco_stream.streams.stream import Stream
from tests.helpers.examples import EXAMPLES

GENEROUS = 64 << 30
STREAM, USUAL = Stream("a", "h"), {"h": DataSize(200_000, 100, 4_000_000)}
LARGE = {"h": DataSize(20_000, 50, 1_000_000)}
LEARNERS = (
    "OGD",
    "AdaGrad",
    "OjaSON",
    "FDSON",
    "NORMA",
    "SketchedKONS",
    "KONS",
    "FOGD",
    "PROSNKONS",
)
ALONE = ("OGD", "AdaGrad", "OjaSON", "FOGD")  # share no kernel values
GRID = dict.fromkeys(("OGD", "AdaGrad", "NORMA", "FOGD"), "step_size")  # others: alpha


def runs_of(stream, learner, count, **more):
    grid = GRID.get(learner, "alpha")
    return [
        Run.of(stream, learner, {**EXAMPLES[learner], **more, grid: 0.5 + k}, 1)
        for k in range(count)
    ]


@st.composite
def sweeps(draw, learners=LEARNERS, least=1, most=40):
    """Runs of several learners on several streams, and the sizes of their datasets."""
    sizes, runs = {}, []
    for k in range(draw(st.integers(1, 3))):
        n, d = draw(st.integers(1, 30_000)), draw(st.integers(1, 2000))
        sizes[f"hash {k}"] = DataSize(
            n, d, n * draw(st.integers(0, d)), draw(st.sampled_from([0, 1 << 20]))
        )
        order = draw(st.sampled_from([("as-stored", None), ("shuffled", 1)]))
        most_rows = draw(st.sampled_from([None, 50]))
        stream = Stream(f"set {k}", f"hash {k}", *order, max_rows=most_rows)
        names = st.lists(st.sampled_from(learners), min_size=1, max_size=3, unique=True)
        for learner in draw(names):
            count, intercept = draw(st.integers(least, most)), draw(st.booleans())
            runs += runs_of(stream, learner, count, fit_intercept=intercept)
    return draw(st.permutations(runs)) if len(runs) < 60 else runs, sizes


def bytes_of(runs, sizes, worker_bytes=GENEROUS):
    """What a worker needs for these runs, added up from what their classes say."""
    stream = runs[0].stream
    size, held, total = sizes[stream.dataset_hash], Counter(), 0
    passing = sum(pass_bytes(stream, size).values())
    for run in runs:
        learner, seen = learner_named(run.learner), size.seen_by(run)
        shared = learner.shared(run.params, seen)
        floats = learner.floats(run.params, seen) + 4096 + 3 * curve_points(size.n_rows).size + 512
        room = worker_bytes - passing - 8 * shared.floats
        total += min(8 * floats, room) if learner.open_ended else 8 * floats
        held |= Counter({shared.key: shared.floats})
    return total + 8 * sum(held.values()) + passing


def timings_of(runs, seconds, rounds=100, power=1.0):
    """Timings of the runs by key: each took so many seconds for the first rounds."""
    return {timing_key(run): Timing(rounds, seconds, power) for run in runs}


@settings(max_examples=60, deadline=None)
@given(sweeps(), st.data())
def test_plan__has_every_run_once_within_all_limits_and_is_the_same_each_time(sweep, data):
    runs, sizes = sweep
    keys = sorted({timing_key(run) for run in runs})
    timings = {key: Timing(100, data.draw(st.floats(1e-6, 1e-2))) for key in keys}
    bounded = [bytes_of([run], sizes) for run in runs if not run.learner_class.open_ended]
    largest = max([1 << 33, *bounded])
    limits = Limits(
        data.draw(st.integers(1, 9)),
        data.draw(st.integers(largest, 4 * largest)),
        data.draw(st.floats(1e-3, 100.0)),
        data.draw(st.floats(1e-3, 100.0)),
        data.draw(st.integers(1, 30)),
    )

    def needs(some):
        return bytes_of(some, sizes, limits.worker_bytes)

    same = [run for run in runs if run.stream == runs[0].stream]
    saved = [
        tuple(run.run_id for run in same[:k])
        for k in data.draw(st.lists(st.integers(0, 3), max_size=2))
    ]
    todo = plan(runs, sizes, limits, saved, timings)
    assert sorted(run.run_id for run in todo.runs) == sorted(run.run_id for run in runs)
    together = {
        ids
        for ids in saved
        if ids and needs([run for run in same if run.run_id in ids]) <= limits.worker_bytes
    }
    found = {tuple(run.run_id for run in cohort.runs): cohort for cohort in todo.cohorts}
    assert not together or together & set(found)
    for ids, cohort in found.items():
        assert {run.stream for run in cohort.runs} == {cohort.stream}
        assert len(cohort.runs) <= limits.cohort_runs or ids in saved
        assert needs(cohort.runs) <= limits.worker_bytes
        assert cohort.checkpoint_seconds == limits.checkpoint_seconds
    assert sum(todo.memory.values()) == max(needs(cohort.runs) for cohort in todo.cohorts)
    # a cohort of each learner with a first run in one, and then the longest first; one learner may
    # come last
    longest = longest_of(todo.taken)
    first = [one for one in todo.cohorts if all(run.learner != longest for run in one.runs)]
    last = todo.cohorts[len(first) :]
    assert todo.cohorts[: len(first)] == tuple(first)
    early = len({cohort.runs[0].learner for cohort in first})
    assert len({cohort.runs[0].learner for cohort in first[:early]}) == early
    for part in (first[early:], last):
        seconds = [cohort.seconds for cohort in part]
        assert seconds == sorted(seconds, reverse=True)
    again = plan(
        [replace(run, params=dict(reversed(run.params.items()))) for run in runs],
        dict(reversed(sizes.items())),
        limits,
        saved,
        dict(reversed(timings.items())),
    )
    assert again == todo


@settings(max_examples=20, deadline=None)
@given(sweeps(learners=("OGD", "AdaGrad", "OjaSON", "FDSON", "NORMA", "FOGD"), most=5))
def test_run_that_does_not_fit__is_refused_with_the_sum(sweep):
    runs, sizes = sweep
    largest = max(bytes_of([run], sizes) for run in runs)
    plan(runs, sizes, Limits(1, largest, cohort_runs=1))
    too_large = [run for run in runs if bytes_of([run], sizes) == largest]
    needs = (
        f"needs {largest >> 20} MiB on a worker, and a worker has {(largest - 1) >> 20} MiB; use"
    )
    with pytest.raises(MemoryError, match=needs):
        plan(too_large, sizes, Limits(1, largest - 1))


@pytest.mark.parametrize("learner", ["KONS", "PROSNKONS"])
def test_run_whose_rows_decide_on_its_memory__has_all_of_a_worker(learner):
    """It may need less, and is not refused; alone, no other run can take the room it needs."""
    todo = plan(runs_of(STREAM, learner, 3), USUAL, Limits(1, 4 << 30))
    assert [len(cohort.runs) for cohort in todo.cohorts] == [1, 1, 1]
    assert sum(todo.memory.values()) == 4 << 30
    short = Stream("a", "h", max_rows=200)
    assert len(plan(runs_of(short, learner, 3), USUAL, Limits(1, 4 << 30)).cohorts) == 1


def busy(todo, workers):
    """The share of the time in which workers are busy, until the last cohort ends, if each takes
    the next one as soon as it is free.
    """
    free = [0.0] * workers
    for cohort in todo.cohorts:
        heapq.heappush(free, heapq.heappop(free) + cohort.seconds)
    return todo.seconds / workers / max(free)


@settings(
    max_examples=12,
    deadline=None,
    suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow],
)
@given(
    sweeps(learners=(*ALONE, "NORMA"), least=200, most=400),
    st.integers(1, 8),
    st.sampled_from([1e-3, 0.03, 1.0]),
)
def test_workers__are_busy_to_the_end_and_passes_few(sweep, workers, slowness):
    runs, sizes = sweep
    timings = {
        timing_key(run): Timing(1000, slowness * (1 + 4 * (run.learner == "NORMA"))) for run in runs
    }
    costs = Costs(sizes, timings)
    each = [(costs.of(run), costs.reading(run.stream)) for run in runs]
    latest = (max(SHORTEST, PASSES * reading, cost.seconds) for cost, reading in each)
    assume(sum(cost.seconds for cost, _ in each) / workers > 20 * max(latest))
    todo = plan(runs, sizes, Limits(workers, GENEROUS, cohort_seconds=1e9), timings=timings)
    assert busy(todo, workers) >= 0.9
    short = [
        cohort
        for cohort in todo.cohorts
        if cohort.seconds < SHORTEST or cohort.seconds < PASSES * costs.reading(cohort.stream)
    ]
    assert len(short) <= len({run.stream for run in runs})  # what is left over of each stream


@given(st.floats(1e-6, 1e3), st.integers(1, 10**6), st.floats(1.0, 3.0))
def test_time__is_what_was_measured_and_grows_as_it_did(seconds, rounds, power):
    (run,) = runs_of(STREAM, "KONS", 1)
    timing = timings_of([run], seconds, rounds, power)
    size = {"h": DataSize(rounds, 100, 10 * rounds)}
    assert Costs(size, timing).of(run).seconds == pytest.approx(RUN_SECONDS + seconds)
    twice = {"h": DataSize(2 * rounds, 100, 20 * rounds)}
    expected = RUN_SECONDS + 2**power * seconds
    assert Costs(twice, timing).of(run).seconds == pytest.approx(expected)


def test_shared_memory__is_that_of_the_run_that_needs_most_of_it():
    runs = [
        *runs_of(STREAM, "NORMA", 2, budget=1, bandwidth=3.0),
        *runs_of(STREAM, "NORMA", 2, budget=9, bandwidth=3.0),
    ]
    orders = [[run.run_id for run in order] for order in (runs, runs[::-1])]
    found = [sum(plan(runs, LARGE, Limits(1, GENEROUS), [ids]).memory.values()) for ids in orders]
    assert found == [bytes_of(runs, LARGE)] * 2


@given(sweeps(), st.data())
def test_plan__of_runs_that_go_on_has_the_rest_of_each(sweep, data):
    """Runs of a cohort have paused together; a run is planned with what it has left."""
    runs, sizes = sweep
    timings = timings_of(runs, 0.1, power=2.0)
    whole, paused = Costs(sizes, timings, 1 << 40), {}
    for run in runs:
        rounds = sizes[run.stream.dataset_hash].rounds(run.stream)
        done = data.draw(st.sampled_from([0, rounds // 3]))
        if done:
            paused[run.run_id] = Pause(done, data.draw(st.sampled_from("ab")))
    later = {run.stream: (40_000,) for run in runs[:1]}
    todo = plan(runs, sizes, Limits(2, 1 << 40), timings=timings, rungs=Rungs(later, paused))
    assert sorted(run.run_id for run in todo.runs) == sorted(run.run_id for run in runs)
    for cohort in todo.cohorts:
        assert {paused.get(run.run_id, NO_PAUSE) for run in cohort.runs} == {cohort.pause}
        assert cohort.later == later.get(cohort.stream, ())
    for run in runs:
        rounds = sizes[run.stream.dataset_hash].rounds(run.stream)
        done = paused.get(run.run_id, NO_PAUSE).rounds
        found, expected = todo.costs.of(run), whole.of(run)
        rest = expected.seconds - 0.1 * (done / 100) ** 2
        assert found.seconds == pytest.approx(rest)
        assert (found.bytes, found.key) == (expected.bytes, expected.key)


def test_learner__that_takes_more_than_all_others_comes_last_and_alone():
    """Also where its few runs would fill up a cohort of others, which would wait for them."""
    runs = [*runs_of(STREAM, "OGD", 20), *runs_of(STREAM, "KONS", 2), *runs_of(STREAM, "NORMA", 3)]
    timings = timings_of(runs, 1e-4) | timings_of(runs_of(STREAM, "KONS", 1), 1e-2, power=3.0)
    todo = plan(runs, LARGE, Limits(2, 1 << 50), timings=timings)
    assert longest_of(todo.taken) == "KONS"
    learners = [{run.learner for run in cohort.runs} for cohort in todo.cohorts]
    assert learners[-1] == {"KONS"}
    assert [of for of in learners if "KONS" in of] == learners[learners.index({"KONS"}) :]
    assert longest_of({"KONS": 1e9}) is None  # there are no others
    assert longest_of({}) is None
    assert longest_of({"KONS": LONG, "OGD": 1.0}) is None
    assert longest_of({"KONS": 11 * LONG, "OGD": 6 * LONG, "NORMA": 6 * LONG}) is None


def test_time_limit__bounds_what_is_expected_of_a_cohort():
    runs = runs_of(STREAM, "KONS", 2)
    whole, bounded = (
        plan(runs, LARGE, Limits(1, 1 << 50, time_limit=limit), timings=timings_of(runs, 0.1))
        for limit in (None, 3.0)
    )
    assert whole.seconds > bounded.seconds == 6.0
    assert {cohort.time_limit for cohort in bounded.cohorts} == {3.0}


@pytest.mark.parametrize("floats", [lambda *_: 1 / 0, lambda *_: math.nan])
def test_memory__that_a_learner_cannot_say__is_all_of_a_workers(floats, monkeypatch):
    monkeypatch.setattr(learner_named("OGD"), "floats", floats)
    with pytest.warns(UserWarning, match="the memory of OGD cannot be estimated"):
        cohorts = plan(runs_of(STREAM, "OGD", 2), USUAL, Limits(1, GENEROUS)).cohorts
    assert [len(cohort.runs) for cohort in cohorts] == [1, 1]
