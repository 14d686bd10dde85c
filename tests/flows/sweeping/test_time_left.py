"""The time left: it starts from the plan, follows what cohorts take, counts those under way, falls
to nothing, and a longer one has a reason.
"""

import threading
from dataclasses import replace
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster.local import local_cluster
from cluster.reporting import reports_to
from flows.runtime.engine import Engine
from flows.sweeping.progress import SweepProgress, statuses
from flows.sweeping.steps import dashboard_of
from flows.sweeping.time_left import LITTLE, TimeLeft
from koco_stream.engine import reporting
from koco_stream.engine.cohort import Receipt, run_cohort
from koco_stream.engine.reporting import Report
from koco_stream.learners import LEARNERS, Growth
from koco_stream.runs.cost_model import Costs, DataSize
from koco_stream.runs.run import Cohort, Run
from koco_stream.streams.manifest import load_manifest
from koco_stream.streams.stream import Stream
from storage.store import open_store

STREAM = Stream("a", "h")
COSTS = Costs({"h": DataSize(10_000, 5, 50_000)})


def cohorts_of(seconds, learner="OGD"):
    """A cohort of one run for each number of seconds."""
    return [
        Cohort(STREAM, (Run.of(STREAM, learner, {"step_size": 0.5 + k}, 0),), one)
        for k, one in enumerate(seconds)
    ]


def received(left, cohort, scan_seconds, beside=0.0):
    """A finished cohort: the seconds of its runs' rounds, and those besides."""
    seconds = scan_seconds + beside
    left.receive(Receipt(cohort.cohort_id, 1, 0, 0, 10_000, scan_seconds, seconds))


@given(
    planned=st.lists(st.floats(5, 20), min_size=2, max_size=6),
    slower=st.floats(0.2, 5),
    workers=st.integers(1, 3),
)
def test_time_left__is_the_plan_at_the_speed_that_was_measured(planned, slower, workers):
    """Without anything done it is that of the plan; as cohorts end, each slower by one factor, it
    comes to the true time of the others, and is 0 at the end.
    """
    cohorts = cohorts_of(planned)
    left = TimeLeft(cohorts, COSTS, workers)
    assert left.seconds() == pytest.approx(max(sum(planned) / workers, max(planned)))
    for k, cohort in enumerate(cohorts):
        assert cohort.seconds > left.little  # what loads little beside what it computes
        received(left, cohort, slower * cohort.seconds)
        doubt, others = LITTLE / (LITTLE + sum(planned[: k + 1]) / sum(planned)), []
        for other in cohorts[k + 1 :]:  # corrected by kind if any is done, by learner, by all
            kind = left.group_of(other).kind
            mine = sum(one.seconds for one in cohorts[: k + 1] if left.group_of(one).kind == kind)
            trust = 1.0 - doubt**2 * LITTLE / (LITTLE + mine / sum(planned))
            others.append((1.0 + trust * (slower - 1.0)) * other.seconds)
        found = max(sum(others) / workers, max(others, default=0.0))
        assert left.seconds() == pytest.approx(found, abs=1e-6)
    assert left.seconds() == pytest.approx(0.0, abs=1e-6)


def test_time_left__is_not_moved_by_a_little_work():
    """A worker's first cohort, if it is short, says nothing: its code was loaded. A second one that
    took five times as long says little about a long sweep.
    """
    cohorts = cohorts_of([0.2, 0.2, 100.0])
    left = TimeLeft(cohorts, COSTS, 1)
    received(left, cohorts[0], 5.0)
    assert left.seconds() == pytest.approx(100.2)
    received(left, cohorts[1], 1.0)
    assert 100.0 < left.seconds() < 200.0  # and not 500


def test_first_cohort_of_its_rows__takes_longer_and_so_will_others():
    """What is done once for rows and labels is expected again for each that is not yet begun, and
    for nothing else. A cohort that began before the first of its rows had ended waited as well.
    """
    cohorts, now = [], [0.0]
    for positive in (1.0, 2.0, 3.0):
        for seed in (1, 2, 3):
            stream = Stream("a", "h", "shuffled", seed, positive_class=positive)
            cohorts.append(Cohort(stream, (Run.of(stream, "OGD", {}, 0),), 10.0))
    left = TimeLeft(cohorts, COSTS, 1, clock=lambda: now[0])
    now[0] = 17.0
    received(left, cohorts[0], 10.0, beside=7.0)
    assert left.seconds() == pytest.approx(80.0 + 2 * 7.0)
    now[0] = 18.0
    received(left, cohorts[1], 10.0, beside=7.0)  # on another worker
    assert left.seconds() == pytest.approx(70.0 + 2 * 7.0)
    now[0] = 29.0
    received(left, cohorts[2], 10.0, beside=1.0)
    assert left.seconds() == pytest.approx(60.0 + 2 * 7.0 + 4 * 1.0)
    found = Receipt(cohorts[3].cohort_id, 1, 0, 0, 0, 0.0, 0.1, found=True)
    left.receive(found)
    assert left.seconds() == pytest.approx(50.0 + 7.0 + 4 * 1.0)


def test_first_cohort_of_its_rows__says_while_it_is_under_way_what_others_will_take():
    """Before any cohort has ended, the copy of the rows of one tells what those of others take: by
    its report, and by its silence after it should have ended.
    """
    now, cohorts = [0.0], []
    for seed in (1, 2, 3):
        stream = Stream("a", "h", positive_class=float(seed))
        cohorts.append(Cohort(stream, (Run.of(stream, "OGD", {}, 0),), 10.0))
    left = TimeLeft(cohorts, COSTS, 1, clock=lambda: now[0])
    now[0] = 20.0
    left.hear(Report(cohorts[0].cohort_id, 0.5, 0.0, 5000, 5.0, 20.0))
    assert left.seconds() == pytest.approx(5.0 + 2 * (10.0 + 15.0))
    now[0] = 31.0
    assert left.seconds() == pytest.approx(0.0 + 2 * (10.0 + 15.0 + 6.0))


def test_reading_of_the_rows__is_seen_between_two_reports():
    """What a cohort under way takes besides its rounds is expected of others on the same rows."""
    cohorts = cohorts_of([10.0, 10.0, 10.0])
    left = TimeLeft(cohorts, COSTS, 1, clock=lambda: 0.0)
    left.hear(Report(cohorts[0].cohort_id, 0.2, 0.0, 2000, 2.0, 22.0))
    left.hear(Report(cohorts[0].cohort_id, 0.7, 0.0, 7000, 7.0, 28.0))
    assert left.reading() == pytest.approx(2.0)
    assert left.seconds() == pytest.approx(3.0 + 2 * (10.0 + 2.0))


def test_cohort_under_way__counts_for_what_it_has_done_and_how_fast():
    """Half a cohort that took as long as was planned for all of it doubles what is left."""
    (cohort,) = cohorts_of([100.0])
    left = TimeLeft([cohort], COSTS, 2)
    left.hear(Report(cohort.cohort_id, 0.5, 0.0, 5000, 100.0))
    assert left.seconds() == pytest.approx(100.0, rel=0.01)
    assert left.reason().startswith("OGD takes 1.9 times as long")
    left.hear(Report("of another sweep", 0.5, 0.0, 5000, 100.0))
    assert left.seconds() == pytest.approx(100.0, rel=0.01)


def test_cohort_under_way__goes_on_between_its_reports():
    """A long block gives no news for many seconds, in which time passes all the same."""
    now = [0.0]
    (cohort,) = cohorts_of([100.0])
    left = TimeLeft([cohort], COSTS, 2, clock=lambda: now[0])
    left.hear(Report(cohort.cohort_id, 0.5, 0.0, 5000, 50.0))
    assert left.seconds() == pytest.approx(50.0)
    now[0] = 30.0
    assert left.seconds() == pytest.approx(20.0)
    now[0] = 60.0
    assert left.seconds() == 0.0


def test_resumed_cohort__is_not_taken_for_a_fast_one():
    """Rounds that were done before it was resumed took none of its seconds."""
    (cohort,) = cohorts_of([100.0])
    left = TimeLeft([cohort], COSTS, 1)
    left.hear(Report(cohort.cohort_id, 0.75, 0.5, 2500, 25.0))
    assert left.seconds() == pytest.approx(25.0, rel=0.01)
    received(left, cohort, 50.0)
    assert left.finished[left.group_of(cohort)] == (50.0, 50.0)


def test_runs_in_another_order__take_as_long_as_in_the_first():
    """A cohort that ends at once since its runs diverge says that they will in another order, more
    than that others are faster.
    """
    cohorts = cohorts_of([100.0, 100.0, 100.0])
    again = Cohort(replace(STREAM, order="shuffled", order_seed=2), cohorts[0].runs, 100.0)
    left = TimeLeft([*cohorts, again], COSTS, 1)
    received(left, cohorts[0], 1.0)
    received(left, cohorts[1], 200.0)
    factors = left.factors()
    assert factors[left.group_of(again)] == pytest.approx(0.01, abs=0.05)
    assert factors[left.group_of(cohorts[2])] == pytest.approx(1.0, abs=0.05)


@pytest.mark.parametrize("name", ["CONKONS", "PROSNKONS", "KORS", "SketchedKONS"])
@given(points=st.floats(0, 3000), share=st.floats(0.001, 1))
def test_work__of_a_growing_dictionary_comes_late(name, points, share):
    """Half the rounds are less than half the work while points join; the parts add up."""
    growth = Growth((0.0, 1e4), (0.0, points))
    sampled = LEARNERS[name].sampling(LEARNERS[name]().get_params())
    sizes = {"h": DataSize(10_000, 5, 50_000, growths={(sampled, 10_000): growth})}
    runs = [Run.of(STREAM, name, {}, 0)]
    done = Costs(sizes).work_done(runs, share)
    assert 0.0 < done <= share + 1e-3
    assert Costs(sizes).work_done(runs, 1.0) == pytest.approx(1.0)
    if points > 1000:
        assert Costs(sizes).work_done(runs, 0.5) < 0.35


def test_workers_of_this_machine__report_to_the_sweep():
    """They preload what passes their reports on: without it the bar stands for a long cohort."""
    heard, arrived = [], threading.Event()

    def hear(report):
        heard.append(report)
        arrived.set()

    with local_cluster(1) as client, reports_to(client, hear):
        client.submit(report_once).result()
        assert arrived.wait(30)
    assert [report.cohort_id for report in heard] == ["told"]


def report_once():
    """In a worker: a report, as a cohort of it would tell."""
    for listener in reporting.listeners:
        listener(Report("told", 0.5, 0.0, 1, 1.0))


def test_workers__report_rounds_within_a_cohort(small_store, monkeypatch):
    """A cohort tells how many of its rounds are done, in order, and no more often than it may."""
    monkeypatch.setattr(reporting, "EVERY", 0.0)
    heard = []
    monkeypatch.setattr(reporting, "listeners", [heard.append])
    manifest = load_manifest(small_store, "real")
    stream = Stream("real", manifest.dataset_hash)
    cohort = Cohort(stream, tuple(Run.of(stream, name, {}, 0) for name in ("OGD", "AdaGrad")), 1.0)
    run_cohort(str(small_store), "test", cohort, 100)
    shares = [report.share for report in heard]
    assert shares == pytest.approx([(k + 1) / 10 for k in range(10)])
    assert heard[-1].rounds == 2 * manifest.n_rows
    assert {report.cohort_id for report in heard} == {cohort.cohort_id}


def test_address_of_dasks_pages__is_said_only_if_they_can_be_drawn(tmp_path, monkeypatch, capsys):
    """Without bokeh they would only say that it is missing."""
    engine = Engine(client=SimpleNamespace(dashboard_link="http://127.0.0.1:1/status"), timings=[])
    there = {"bokeh": None}
    monkeypatch.setattr("flows.sweeping.steps.find_spec", there.get)
    assert dashboard_of(engine) is None
    there["bokeh"] = "a spec"
    assert dashboard_of(engine) == "http://127.0.0.1:1/status"
    assert dashboard_of(Engine(client=None, timings=[])) is None
    with SweepProgress(open_store(tmp_path / "store"), "try") as progress:
        progress.computing(None)
        assert "http" not in capsys.readouterr().err


def test_shown_time__falls_and_rises_only_with_a_reason(tmp_path, capsys):
    """A clearly longer estimate is shown with the learner that is slower; a little longer one is
    not shown at all.
    """
    store = open_store(tmp_path / "store")
    cohorts = cohorts_of([100.0, 100.0])
    with SweepProgress(store, "try") as progress:
        progress.more(2, 0)
        progress.time_left = TimeLeft(cohorts, COSTS, 1)
        progress._update()
        assert progress._left() == pytest.approx(200.0, abs=1.0)
        progress.hear(Report(cohorts[0].cohort_id, 0.1, 0.0, 1000, 10.5))
        progress._update()
        before = progress._left()
        assert before <= 200.0
        assert " left, not " not in capsys.readouterr().err
        progress.hear(Report(cohorts[0].cohort_id, 0.2, 0.0, 2000, 80.0))
        progress._update()
        said = capsys.readouterr().err
        assert " left, not " in said
        assert "OGD takes 3." in said
        assert progress._left() > 1.5 * before
        progress._tell()
        (status,) = statuses(store)
        assert status.seconds_left == pytest.approx(progress._left(), abs=1.0)
        assert status.rounds_per_second > 0
        for cohort in cohorts:
            progress.receive(Receipt(cohort.cohort_id, 1, 0, 0, 10_000, 100.0, 100.0))
        progress._update()
        assert progress._left() == pytest.approx(0.0, abs=0.1)
