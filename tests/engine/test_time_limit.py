"""A run that reaches its time limit is stopped, with what it had done; the others of its cohort go
on as if it had not been there, and it goes on from there, to the same bits, with a larger limit.
"""

import itertools
from dataclasses import replace

import pytest

from koco_stream.engine.checkpoint import checkpoints_folder, unfinished
from koco_stream.engine.cohort import run_cohort
from koco_stream.engine.result_file import result_path
from koco_stream.learners import LEARNERS
from koco_stream.runs.run import Measured
from tests.helpers.sweeps import all_classes, cohort_on, die_after, results_of, undisturbed


@pytest.fixture
def slow(monkeypatch):
    """Have the blocks of some learners take a second each, and those of others no time."""
    seconds = itertools.count()

    def of(*names):
        for name in LEARNERS:
            clock = (lambda _: float(next(seconds))) if name in names else (lambda _: 0.0)
            monkeypatch.setattr(LEARNERS[name], "clock", staticmethod(clock))

    return of


def swept(store, cohort, time_limit, block_rows=37):
    """The cohort's rows with this limit, and its receipt."""
    receipt = run_cohort(str(store), "try", replace(cohort, time_limit=time_limit), block_rows)
    return results_of(store, cohort), receipt


@pytest.mark.parametrize("every", [0, 100])
@pytest.mark.parametrize(
    ("name", "of", "metric"),  # one of each kind of scan
    [("FDSON", "real", "rmse"), ("KONS", "sparse", "kappa"), ("CONKONS", "real", "mae")],
)
def test_stopped_run__goes_on_with_a_larger_limit_to_the_same_bits(
    name, of, metric, every, small_store, slow
):
    cohort = cohort_on(small_store, [(name, {}, 1)], every, of)
    if of == "sparse":
        cohort = all_classes(cohort)
    runs = tuple(replace(run, measured=Measured((metric,), 40, True)) for run in cohort.runs)
    cohort = replace(cohort, runs=runs)
    whole = undisturbed(small_store, cohort)
    slow(name)
    for limit in (2, 5):
        ((row,), receipt) = swept(small_store, cohort, limit)
        assert (row["status"], row["windows"], row["predictions"]) == ("stopped", [], [])
        assert f"time_limit = {limit} s was reached after {row['rounds']} rounds" in row["error"]
        assert 0 < row["rounds"] < whole[0]["rounds"]
        assert (receipt.stopped, receipt.failed, receipt.diverged) == (1, 0, 0)
        assert unfinished(small_store) == [(cohort.runs[0].run_id,)]
    rows, receipt = swept(small_store, cohort, None, 64)
    assert rows == whole
    assert receipt.rounds == whole[0]["rounds"] - row["rounds"]
    assert checkpoints_folder(small_store).names() == []


LEARNERS_OF_A_COHORT = [
    ("KONS", {}, 1),
    ("KONS", {"alpha": 3.0}, 1),
    ("SketchedKONS", {"beta": 2.0}, 1),
    ("OGD", {}, 1),
    ("CONKONS", {}, 1),
]


@pytest.mark.parametrize("killed", [False, True], ids=["in one go", "killed later"])
@pytest.mark.parametrize("kept", [("OGD", "CONKONS"), ("OGD",)])
def test_others_of_its_cohort__go_on_and_those_that_share_work_stay_together(
    kept, killed, small_store, slow, monkeypatch
):
    """They are saved when they are stopped, since what they share would go on without them."""
    cohort = cohort_on(small_store, LEARNERS_OF_A_COHORT, 100, order="as-stored")
    whole = undisturbed(small_store, cohort)
    slow(*{name for name, *_ in LEARNERS_OF_A_COHORT}.difference(kept))
    limited = replace(cohort, time_limit=0.9)
    if killed:
        die_after(monkeypatch, small_store, limited, 3)
    run_cohort(str(small_store), "try", limited, 37)
    rows = results_of(small_store, cohort)
    for row, expected in zip(rows, whole, strict=True):
        assert row == expected if row["learner"] in kept else row["status"] == "stopped"
    stopped = [run for run in cohort.runs if run.learner not in kept]
    parts = [ids for ids in unfinished(small_store) if len(ids) < len(cohort.runs)]
    kernel = tuple(run.run_id for run in stopped if run.learner.endswith("KONS"))[:3]
    assert sorted(parts) == sorted({kernel, *((one.run_id,) for one in stopped[3:])})
    for ids in parts:
        runs = tuple(run for run in cohort.runs if run.run_id in ids)
        assert run_cohort(str(small_store), "try", replace(cohort, runs=runs), 53).stopped == 0
        found = results_of(small_store, replace(cohort, runs=runs))
        assert found == [row for row in whole if row["run_id"] in ids]
    assert checkpoints_folder(small_store).names() == []


def test_runs_that_are_stopped_at_different_times__leave_no_other_checkpoint(small_store, slow):
    cohort = cohort_on(
        small_store, [("FDSON", {}, 1), ("KONS", {}, 1), ("KONS", {"alpha": 3.0}, 1)], 74
    )
    slow("FDSON", "KONS")
    rows, receipt = swept(small_store, cohort, 1.0)
    assert [row["rounds"] for row in rows] == [37, 74, 74]
    assert receipt.stopped == 3
    first, *others = (run.run_id for run in cohort.runs)
    assert sorted(unfinished(small_store), key=len) == [(first,), tuple(others)]


def test_result_that_is_there__is_not_computed_again(small_store, slow):
    cohort = replace(cohort_on(small_store, [("OGD", {}, 1)], 100), time_limit=2.0)
    slow("OGD")
    receipts = [run_cohort(str(small_store), "try", cohort, 37) for _ in range(2)]
    assert [one.stopped for one in receipts] == [1, 1]
    assert [one.rounds for one in receipts] == [74, 0]
    assert len(unfinished(small_store)) == 1
    assert result_path(small_store, cohort).is_file()


def test_run_that_ends_with_its_limit__is_ok(small_store, slow):
    cohort = cohort_on(small_store, [("OGD", {}, 1)])
    slow("OGD")
    ((row,), _) = swept(small_store, cohort, 1.0, 500)
    assert (row["status"], row["rounds"]) == ("ok", 500)
