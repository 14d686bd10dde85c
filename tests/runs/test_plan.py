"""The plan of a sweep: every run once, within all limits, the same each time, and workers that are
busy to the end.
"""

import heapq
import math
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from koco_stream.learners import Cost, StreamSize, learner_named
from koco_stream.runs.cost_model import (
    RUN_SECONDS,
    SAVED_BYTES_PER_SECOND,
    TRUSTED,
    Costs,
    DataSize,
    Timing,
    factors_of,
    pass_bytes,
)
from koco_stream.runs.planner import (
    LONG,
    OUTWEIGHS,
    PASSES,
    SAVING_SHARE,
    SHORTEST,
    Limits,
    longest_of,
    plan,
)
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
ALONE = ("OGD", "AdaGrad", "OjaSON", "FOGD", "PROSNKONS")  # share no kernel values
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


def bytes_of(runs, sizes):
    """What a worker needs for these runs, added up from what their classes say."""
    stream = runs[0].stream
    size, shared, floats = sizes[stream.dataset_hash], Counter(), 0
    for run in runs:
        cost = learner_named(run.learner).cost(run.params, size.seen_by(run))
        floats += cost.floats + 4096 + 3 * curve_points(size.n_rows).size + 512
        if cost.shared:
            shared |= Counter({cost.shared.key: cost.shared.floats})
    return 8 * (floats + sum(shared.values())) + sum(pass_bytes(stream, size).values())


@settings(max_examples=60, deadline=None)
@given(sweeps(), st.data())
def test_plan__has_every_run_once_within_all_limits_and_is_the_same_each_time(sweep, data):
    runs, sizes = sweep
    factors = data.draw(st.dictionaries(st.sampled_from(LEARNERS), st.floats(0.05, 20.0)))
    largest = max(bytes_of([run], sizes) for run in runs)
    limits = Limits(
        data.draw(st.integers(1, 9)),
        data.draw(st.integers(largest, 4 * largest)),
        data.draw(st.floats(1e-3, 100.0)),
        data.draw(st.floats(1e-3, 100.0)),
        data.draw(st.integers(1, 30)),
    )
    same = [run for run in runs if run.stream == runs[0].stream]
    begun = [
        tuple(run.run_id for run in same[:k])
        for k in data.draw(st.lists(st.integers(0, 3), max_size=2))
    ]
    todo = plan(runs, sizes, limits, begun, factors)
    assert sorted(run.run_id for run in todo.runs) == sorted(run.run_id for run in runs)
    kept = {
        ids
        for ids in begun
        if ids
        and bytes_of([run for run in same if run.run_id in ids], sizes) <= limits.worker_bytes
    }
    found = {tuple(run.run_id for run in cohort.runs): cohort for cohort in todo.cohorts}
    assert not kept or kept & set(found)
    for ids, cohort in found.items():
        assert {run.stream for run in cohort.runs} == {cohort.stream}
        assert len(cohort.runs) <= limits.cohort_runs or ids in begun
        assert bytes_of(cohort.runs, sizes) <= limits.worker_bytes
    assert sum(todo.memory.values()) == max(bytes_of(cohort.runs, sizes) for cohort in todo.cohorts)
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
        begun,
        dict(reversed(factors.items())),
    )
    assert again == todo
    for cohort in todo.cohorts:
        states = bytes_of(cohort.runs, sizes) - sum(
            pass_bytes(cohort.stream, sizes[cohort.stream.dataset_hash]).values()
        )
        between = max(limits.checkpoint_seconds, states / SAVED_BYTES_PER_SECOND / SAVING_SHARE)
        assert (cohort.checkpoint_rounds > 0) == (cohort.seconds > between)
        if cohort.checkpoint_rounds:
            rounds = sizes[cohort.stream.dataset_hash].rounds(cohort.stream)
            assert cohort.seconds * (cohort.checkpoint_rounds + 1) > rounds * between * (1 - 1e-9)


@settings(max_examples=20, deadline=None)
@given(sweeps(most=5))
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
    st.sampled_from([30.0, 1000.0, 30_000.0]),
)
def test_workers__are_busy_to_the_end_and_passes_few(sweep, workers, slowness):
    runs, sizes = sweep
    factors = dict.fromkeys(LEARNERS, slowness)
    costs = Costs(sizes, factors)
    each = [(costs.of(run), costs.reading(run.stream)) for run in runs]
    latest = (
        max(SHORTEST, PASSES * reading, (OUTWEIGHS + 1) * cost.shared_seconds + cost.seconds)
        for cost, reading in each
    )
    assume(sum(cost.seconds for cost, _ in each) / workers > 20 * max(latest))
    todo = plan(runs, sizes, Limits(workers, GENEROUS, cohort_seconds=1e9), factors=factors)
    assert busy(todo, workers) >= 0.9
    short = [
        cohort
        for cohort in todo.cohorts
        if cohort.seconds < SHORTEST or cohort.seconds < PASSES * costs.reading(cohort.stream)
    ]
    assert len(short) <= len({run.stream for run in runs})  # what is left over of each stream


@given(
    st.sampled_from(LEARNERS),
    st.floats(0.001, 1000.0),
    st.lists(st.integers(1, 10**6), min_size=1, max_size=5),
)
def test_factors__are_those_that_timings_were_made_with(learner, factor, rounds):
    timings = []
    (run,) = runs_of(STREAM, learner, 1)
    for n in rounds:
        cost = Costs({"h": DataSize(n, 100, 10 * n)}, {learner: factor}).of(run)
        seconds = cost.seconds - RUN_SECONDS + cost.shared_seconds
        timings.append(Timing(learner, run.params, StreamSize(n, 100, 10.0), seconds))
    expected = min(max(factor, TRUSTED[0]), TRUSTED[1])
    assert factors_of(timings) == {learner: pytest.approx(expected, rel=1e-3)}
    without_rows = [timing._replace(stream=StreamSize(0, 100, 10.0)) for timing in timings]
    assert factors_of([]) == factors_of(without_rows) == {}


def test_shared_work__is_that_of_the_run_that_needs_most_of_it():
    stream, size = STREAM, LARGE
    runs = [
        *runs_of(stream, "NORMA", 2, budget=1, bandwidth=3.0),
        *runs_of(stream, "SketchedKONS", 2, bandwidth=3.0),
    ]
    orders = [[run.run_id for run in order] for order in (runs, runs[::-1])]
    seconds = [plan(runs, size, Limits(1, GENEROUS), [ids]).seconds for ids in orders]
    assert seconds[0] == pytest.approx(seconds[1])
    assert seconds[0] > max(Costs(size).of(run).shared_seconds for run in runs)


@given(sweeps(), st.data())
def test_plan__of_runs_that_go_on_has_the_rest_of_each(sweep, data):
    """Runs of a cohort have paused together; a run is planned with what it has left."""
    runs, sizes = sweep
    whole, paused = Costs(sizes), {}
    for run in runs:
        rounds = sizes[run.stream.dataset_hash].rounds(run.stream)
        begun = data.draw(st.sampled_from([0, rounds // 3]))
        if begun:
            paused[run.run_id] = Pause(begun, data.draw(st.sampled_from("ab")))
    later = {run.stream: (40_000,) for run in runs[:1]}
    todo = plan(runs, sizes, Limits(2, 1 << 40), rungs=Rungs(later, paused))
    assert sorted(run.run_id for run in todo.runs) == sorted(run.run_id for run in runs)
    for cohort in todo.cohorts:
        assert {paused.get(run.run_id, NO_PAUSE) for run in cohort.runs} == {cohort.pause}
        assert cohort.later == later.get(cohort.stream, ())
    for run in runs:
        rounds = sizes[run.stream.dataset_hash].rounds(run.stream)
        begun = paused.get(run.run_id, NO_PAUSE).rounds
        rest = 1.0 - (whole.work_done(run, begun / rounds) if begun else 0.0)
        found, expected = todo.costs.of(run), whole.of(run)
        assert found.seconds == pytest.approx(rest * expected.seconds)
        assert (found.bytes, found.key) == (expected.bytes, expected.key)


@given(sweeps(), st.none() | st.integers(0, 10**9))
def test_cohorts_that_pause__have_room(sweep, room):
    """A full disk would end the sweep, so states never take more than their room."""
    runs, sizes = sweep
    later = {run.stream: (40_000,) for run in runs}
    todo = plan(runs, sizes, Limits(2, 1 << 40, paused_bytes=room), rungs=Rungs(later, {}))
    states = [
        bytes_of(cohort.runs, sizes)
        - sum(pass_bytes(cohort.stream, sizes[cohort.stream.dataset_hash]).values())
        for cohort in todo.cohorts
    ]
    kept = [n for n, cohort in zip(states, todo.cohorts, strict=True) if cohort.later]
    assert sum(kept) <= (math.inf if room is None else room)
    if sum(states) <= (math.inf if room is None else room):
        assert kept == states


def test_learner__that_takes_more_than_all_others_comes_last_and_alone():
    """Also where its few runs would fill up a cohort of others, which would wait for them."""
    runs = [*runs_of(STREAM, "OGD", 20), *runs_of(STREAM, "KONS", 2), *runs_of(STREAM, "NORMA", 3)]
    todo = plan(runs, LARGE, Limits(2, 1 << 50))
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
        plan(runs, LARGE, Limits(1, 1 << 50, time_limit=limit)) for limit in (None, 3.0)
    )
    assert whole.seconds > bounded.seconds == 6.0
    assert {cohort.time_limit for cohort in bounded.cohorts} == {3.0}


@pytest.mark.parametrize("cost", [lambda *_: 1 / 0, lambda *_: Cost(math.nan, 1.0)])
def test_cost__that_a_learner_cannot_say__is_all_of_a_workers_memory(cost, monkeypatch):
    monkeypatch.setattr(learner_named("OGD"), "cost", cost)
    with pytest.warns(UserWarning, match="the cost of OGD cannot be estimated"):
        cohorts = plan(runs_of(STREAM, "OGD", 2), USUAL, Limits(1, GENEROUS)).cohorts
    assert [len(cohort.runs) for cohort in cohorts] == [1, 1]
    with pytest.warns(UserWarning, match="the cost of OGD"):
        assert factors_of([Timing("OGD", {}, StreamSize(100, 6, 6.0), 1e-3)]) == {"OGD": 1.0}
