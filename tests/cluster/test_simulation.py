"""The simulator: laws that any cluster obeys, and cases that can be worked out by hand."""

import math
from dataclasses import replace
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster.simulation import Machines, simulate
from koco_stream.runs.run import Cohort, Run
from koco_stream.streams.stream import Stream

STREAM = Stream("a", "b")
FREE = {"message_seconds": 0.0, "byte_seconds": 0.0, "loading_seconds": 0.0}


def cohort(seconds, every=0):
    return Cohort(STREAM, (Run(STREAM, "OGD", {"step_size": seconds}, None),), seconds, every)


def run(seconds, machines, every=0):
    cohorts = [cohort(s, every) for s in sorted(seconds, reverse=True)]
    return SimpleNamespace(**simulate(cohorts, [100] * len(cohorts), machines))


@given(
    seconds=st.lists(st.floats(0.01, 100.0), min_size=1, max_size=60), workers=st.integers(1, 12)
)
def test_wall__lies_between_the_bounds_of_list_scheduling(seconds, workers):
    found = run(seconds, Machines(workers, **FREE))
    least = max(max(seconds), sum(seconds) / workers)
    assert least * (1 - 1e-9) <= found.wall <= (sum(seconds) / workers + max(seconds)) * (1 + 1e-9)
    assert found.efficiency == pytest.approx(sum(seconds) / (workers * found.wall))


@given(workers=st.integers(1, 50), seed=st.integers(0, 100))
def test_same_seed__same_prediction(workers, seed):
    machines = Machines(workers, deaths_an_hour=20.0, seed=seed)
    assert run([30.0] * 40, machines) == run([30.0] * 40, machines)


def test_scheduler__is_the_limit_when_messages_take_longer_than_the_work():
    found = run([0.001] * 1000, Machines(100, **{**FREE, "message_seconds": 0.01}))
    assert found.wall == pytest.approx(1000 * 2 * 0.01, rel=0.01)  # there and back
    assert found.scheduler == pytest.approx(1.0, abs=0.01)


def test_shared_cores__slow_all_down():
    assert run([1.0] * 8, Machines(4, cores=2, **FREE)).wall == pytest.approx(4.0)


def test_loading__is_paid_once_by_each_worker_and_by_one_that_was_away_again():
    loading = Machines(4, **{**FREE, "loading_seconds": 0.5})
    assert run([1.0] * 8, loading).wall == pytest.approx(2.5)
    away = {**FREE, "deaths_an_hour": 20.0, "away_seconds": 1.0, "seed": 3}
    short, long = (
        run([600.0], Machines(1, **{**away, "loading_seconds": s}), every=1) for s in (0.0, 100.0)
    )
    assert long.wall > short.wall + 2 * 100.0


def test_checkpoints__bound_what_a_death_costs():
    machines = Machines(1, deaths_an_hour=60.0, away_seconds=1.0, seed=3, **FREE)
    kept = run([600.0], machines, every=1)  # a checkpoint each six seconds
    assert kept.deaths > 3
    assert kept.wall <= 600.0 + kept.deaths * (6.0 + 1.0) + 1e-6
    assert 600.0 <= run([600.0], replace(machines, deaths_an_hour=2.0)).wall < math.inf
