"""Progress of a sweep: what workers report, and the rounds that are left at the speed so far."""

import re
import tempfile
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flows.runtime.engine import Engine
from flows.sweeping.progress import ProgressLine
from flows.sweeping.status import StatusFile, statuses
from flows.sweeping.steps import dashboard_of
from flows.sweeping.watching import Tally
from koco_stream.engine import reporting
from koco_stream.engine.cohort import Receipt, run_cohort
from koco_stream.engine.reporting import Report
from koco_stream.runs.cost_model import DataSize
from koco_stream.runs.run import Cohort, Kept, Run
from koco_stream.streams.manifest import load_manifest
from koco_stream.streams.stream import Stream
from storage.store import open_store

SIZES = {"h": DataSize(10_000, 5, 50_000)}


def cohort_of(*step_sizes, begun=0):
    """A cohort of runs of `OGD`, which go on after the same rounds."""
    stream = Stream("a", "h")
    runs = tuple(Run.of(stream, "OGD", {"step_size": size}, 0) for size in step_sizes)
    kept = tuple(Kept(begun, "a checkpoint", run.run_id) for run in runs) if begun else ()
    return Cohort(stream, runs, 1.0, kept=kept)


def test_workers__report_rounds_within_a_cohort(small_store, monkeypatch):
    """A cohort tells how many rounds of its runs are done, in order."""
    monkeypatch.setattr(reporting, "EVERY", 0.0)
    heard = []
    monkeypatch.setattr(reporting, "listeners", [heard.append])
    manifest = load_manifest(small_store, "real")
    stream = Stream("real", manifest.dataset_hash)
    cohort = Cohort(stream, tuple(Run.of(stream, name, {}, 0) for name in ("OGD", "AdaGrad")), 1.0)
    run_cohort(str(small_store), "test", cohort, 100)
    rounds = [2 * manifest.n_rows * (k + 1) // 10 for k in range(10)]
    assert heard == [Report(cohort.cohort_id, done) for done in rounds]


def test_address_of_dasks_pages__is_said_only_if_they_can_be_drawn(monkeypatch, capsys):
    """Without bokeh they would only say that it is missing."""
    engine = Engine(client=SimpleNamespace(dashboard_link="http://127.0.0.1:1/status"), timings=[])
    there = {"bokeh": None}
    monkeypatch.setattr("flows.sweeping.steps.find_spec", there.get)
    assert dashboard_of(engine) is None
    there["bokeh"] = "a spec"
    assert dashboard_of(engine) == "http://127.0.0.1:1/status"
    assert dashboard_of(Engine(client=None, timings=[])) is None
    Tally("try").computing(None)
    assert "http" not in capsys.readouterr().err


@given(
    step=st.floats(0.1, 50.0),  # seconds for a hundredth of the first cohort
    done=st.integers(2, 99),
    begun=st.sampled_from([0, 4000]),
)
def test_time_left__is_that_of_the_planned_rounds_at_the_speed_of_the_last(step, done, begun):
    """Rounds count of cohorts under way; all of a cohort has ended with it, also if its runs
    diverged, and what was done before it went on is not planned.
    """
    now, store = [0.0], open_store(tempfile.mkdtemp())
    cohorts = [cohort_of(1.0, 2.0), cohort_of(3.0, begun=begun)]
    planned = 20_000, 10_000 - begun
    with Tally("try", [StatusFile(store)]) as tally:
        tally.live.get_time = lambda: now[0]
        tally.more(3, 0)
        tally.plan(cohorts, SIZES)
        assert tally.task.time_remaining is None
        for share in range(1, done + 1):
            now[0] = share * step
            tally.hear(Report(cohorts[0].cohort_id, 200 * share))
            tally.measure()
        speed = 200 / step
        assert tally.task.time_remaining == pytest.approx(
            (sum(planned) - 200 * done) / speed, abs=1.0
        )
        tally.watchers[0].second(tally)
        (status,) = statuses(store)
        assert status.seconds_left == tally.task.time_remaining
        assert status.rounds_per_second > 0
        tally.receive(Receipt(cohorts[0].cohort_id, 2, 2, 0, 10, 1.0))
        tally.measure()
        assert tally.task.remaining == planned[1]
        for part in (planned[1] // 4, planned[1] - planned[1] // 4):  # it was split
            tally.receive(Receipt("of a part", 1, 0, 0, part, 1.0))
        tally.measure()
        assert tally.task.time_remaining == 0.0


def test_log__has_runs_speed_and_time_left_in_a_line(capsys):
    """On no terminal: at the end, and once a minute."""
    line = ProgressLine()
    with Tally("try", [line]) as tally:
        tally.more(2, 0)
        tally.plan([cohort_of(1.0), cohort_of(2.0)], SIZES)
        tally.live.get_time = iter((0.0, 10.0, 20.0)).__next__
        for rounds in (1000, 2000):
            tally.hear(Report(cohort_of(1.0).cohort_id, rounds))
            tally.measure()
        line.line(tally)
        assert re.search(r"  0 of 2 runs, [\d,]+ rounds/s, 180 s left\n", capsys.readouterr().err)
        tally.receive(Receipt(cohort_of(1.0).cohort_id, 1, 1, 0, 10, 1.0))
        tally.receive(Receipt(cohort_of(2.0).cohort_id, 1, 0, 1, 10, 1.0))
        said = capsys.readouterr().err
        assert re.search(r"  2 of 2 runs, [\d,]+ rounds/s, 1 diverged, 1 failed\n", said)
