"""Progress of a sweep: what workers report, the rounds that are left at the speed so far, and what
is said of it.
"""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flows.sweeping.status import Tally, say_progress
from koco_stream.engine import reporting
from koco_stream.engine.cohort import Receipt, run_cohort
from koco_stream.engine.reporting import Report
from koco_stream.runs.run import Cohort, Run
from tests.helpers.sweeps import stream_of


def test_workers__report_rounds_within_a_cohort(small_store, monkeypatch):
    """A cohort tells how many rounds of its runs are done, in order."""
    monkeypatch.setattr(reporting, "EVERY", 0.0)
    heard = []
    monkeypatch.setattr(reporting, "listeners", [heard.append])
    stream = stream_of(small_store, "real")
    cohort = Cohort(stream, tuple(Run.of(stream, name, {}, 0) for name in ("OGD", "AdaGrad")), 1.0)
    run_cohort(str(small_store), "test", cohort, 100)
    assert heard == [Report(cohort.cohort_id, 2 * rounds) for rounds in range(50, 501, 50)]


@given(
    step=st.floats(0.1, 50.0),  # seconds for a hundredth of the first cohort
    done=st.integers(2, 99),
    rounds=st.sampled_from([6000, 10_000]),
)
def test_time_left__is_that_of_the_planned_rounds_at_the_speed_of_the_last(step, done, rounds):
    """Rounds count of cohorts under way; all of a cohort has ended with it, also if its runs
    diverged.
    """
    now, told = [0.0], []
    tally = Tally("try", [(1, told.append), (2, lambda status: told.append("second"))])
    tally.live.get_time = lambda: now[0]
    tally.more(3, 0)
    tally.plan({"first": 20_000, "second": rounds})
    assert tally.task.time_remaining is None
    for share in range(1, done + 1):
        now[0] = share * step
        tally.hear(Report("first", 200 * share))
        tally.tell(1)
    left = (20_000 + rounds - 200 * done) / (200 / step)
    assert tally.task.time_remaining == pytest.approx(left, abs=1.0)
    assert told == [tally.status] * done  # by whom that is heard every second
    assert tally.status.seconds_left == tally.task.time_remaining
    assert tally.status.rounds_per_second > 0
    tally.receive(Receipt("first", 2, 2, 0, 10, 1.0))
    tally.tell(2)
    assert told[-1] == "second"
    assert tally.task.remaining == rounds
    for part in (rounds // 4, rounds - rounds // 4):  # it was split
        tally.receive(Receipt("of a part", 1, 0, 0, part, 1.0))
    tally.tell(1)
    assert tally.task.time_remaining == 0.0


def test_log__has_runs_speed_and_time_left_in_a_line(capsys):
    tally = Tally("try")
    tally.more(2, 0)
    say_progress(tally.status)
    tally.plan({"first": 10_000, "second": 10_000})
    tally.live.get_time = iter((0.0, 10.0, 20.0, 30.0)).__next__
    for rounds in (1000, 2000):
        tally.hear(Report("first", rounds))
        tally.tell(1)
    say_progress(tally.status)
    said = capsys.readouterr().err
    assert re.search(r"compute\n  0 of 2 runs, [\d,]+ rounds/s, 180 s left\n$", said)
    with tally:
        tally.receive(Receipt("first", 1, 1, 0, 10, 1.0))
        tally.receive(Receipt("second", 1, 0, 1, 10, 1.0))
    say_progress(tally.status)
    said = capsys.readouterr().err
    assert re.search(r"^  2 of 2 runs, [\d,]+ rounds/s, 1 diverged, 1 failed\n$", said)
