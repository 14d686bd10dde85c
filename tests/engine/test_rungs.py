"""Runs go on from the states that shorter runs have left, in whatever cohorts, to the bits of runs
from the first row; and what was done is not done again.
"""

from dataclasses import replace

import pytest

from flows.tables.tables import grouped
from koco_stream.engine.checkpoint import checkpoints_folder, paused_runs, remove_finished
from koco_stream.engine.cohort import run_cohort
from koco_stream.learners import LEARNERS
from koco_stream.runs.run import NO_PAUSE, Cohort, Measured, Run, without_repeats
from storage.store import open_store
from tests.helpers.examples import EXAMPLES
from tests.helpers.sweeps import results_of, stream_of, undisturbed

RUNGS = 30, 90, 270
MEASURE = Measured(("auc", "kappa"), 40, True)


def runs_on(store, learners, max_rows, measured=MEASURE, **stream):
    """The runs of these (learner, parameters, seed) on the sparse set cut at a rung."""
    order = {"order": "shuffled", "order_seed": 3, **stream}
    cut = stream_of(store, "sparse", max_rows=max_rows, **order)
    return tuple(
        without_repeats(
            [
                Run.of(cut, name, {**EXAMPLES[name], **more}, seed, measured)
                for name, more, seed in learners
            ]
        )
    )


def at_rung(store, runs, rung, cohorts=1):
    """Compute the runs at a rung in as many cohorts from each in which they have paused: their
    receipts, and the rows of all tables by run.
    """
    receipts, rows = [], {}
    for cohort in going_on(store, runs, rung):
        for k in range(min(cohorts, len(cohort.runs))):
            part = replace(cohort, runs=cohort.runs[k::cohorts])
            receipts.append(run_cohort(str(store), "try", part, 37))
            rows |= by_run(results_of(store, part))
    return receipts, rows


def going_on(store, runs, rung):
    """The runs at a rung in a cohort for each in which they have paused."""
    paused = paused_runs(store)
    before = RUNGS[rung - 1] if rung else 0
    mine = grouped(runs, lambda run: paused[run.until(before).run_id] if rung else NO_PAUSE)
    later = RUNGS[rung + 1 :]
    return [
        Cohort(runs[0].stream, tuple(of), len(of), later=later, pause=pause)
        for pause, of in mine.items()
    ]


def by_run(rows):
    return {row["run_id"]: row for row in rows}


def from_the_first_row(store, runs):
    """The same rows, computed without rungs."""
    return by_run(undisturbed(store, Cohort(runs[0].stream, tuple(runs), 1.0)))


@pytest.mark.parametrize("multiclass", [False, True], ids=["two classes", "all classes"])
@pytest.mark.parametrize(
    "name", ["Constant", "FDSON", "KONS", "CONKONS"]
)  # one of each kind of scan
def test_runs_that_go_on__are_those_from_the_first_row(name, multiclass, small_store):
    of = {"multiclass": "one-vs-rest"} if multiclass else {"positive_class": 2.0}
    measured = replace(MEASURE, metrics=("kappa",)) if multiclass else MEASURE
    more = ({}, 1), ({"fit_intercept": True}, 2), ({"clip": 0.5}, 1)
    learners = [(name, given, seed) for given, seed in more]
    for rung, rounds in enumerate(RUNGS):
        runs = runs_on(small_store, learners, rounds, measured, **of)
        receipts, rows = at_rung(small_store, runs, rung, cohorts=1 + rung % 2)
        assert rows == from_the_first_row(small_store, runs)
        before = RUNGS[rung - 1] if rung else 0
        assert sum(one.rounds for one in receipts) == len(runs) * (rounds - before)
    kept = checkpoints_folder(small_store).names()
    assert len(kept) == 1 + min(2, len(runs))  # one cohort, then two; the last rung has no pause
    for rounds in RUNGS:
        runs = runs_on(small_store, learners, rounds, measured, **of)
        remove_finished(small_store, set, {run.run_id for run in runs})
    assert checkpoints_folder(small_store).names() == []


def after_a_rung(store, learners):
    """A cohort of the runs at the second rung, from where those at the first have paused."""
    runs, longer = (runs_on(store, learners, rung, positive_class=1.0) for rung in RUNGS[:2])
    at_rung(store, runs, 0)
    (cohort,) = going_on(store, longer, 1)
    return cohort


@pytest.mark.parametrize("harm", ["altered", "removed", "of another ladder"])
def test_states_of_no_use__cost_time_and_nothing_else(harm, small_store):
    cohort = after_a_rung(small_store, [("OjaSON", {}, 1), ("CONKONS", {}, 2)])
    (file,) = checkpoints_folder(small_store).files(".koco")
    if harm == "altered":
        content = file.path.read_bytes()
        file.path.write_bytes(content[:200] + bytes([content[200] ^ 1]) + content[201:])
    elif harm == "removed":
        file.path.unlink()
    else:
        cohort = replace(cohort, later=(200, 300))
    receipt = run_cohort(str(small_store), "try", cohort)
    assert receipt.rounds == 2 * RUNGS[1]
    assert by_run(results_of(small_store, cohort)) == from_the_first_row(small_store, cohort.runs)


def test_failed_run__leaves_no_state(small_store, monkeypatch):
    """It begins again: what made it fail may be gone."""
    open_store(small_store)
    runs = runs_on(small_store, [("OGD", {}, None), ("AdaGrad", {}, None)], RUNGS[0])
    runs = tuple(replace(run, stream=replace(run.stream, positive_class=1.0)) for run in runs)

    def broken(*_):
        raise RuntimeError("no memory")

    with monkeypatch.context() as patched:
        patched.setattr(LEARNERS["AdaGrad"], "init", staticmethod(broken))
        at_rung(small_store, runs, 0)
    assert paused_runs(small_store).keys() == {runs[0].run_id}


def test_cohort_that_is_split__goes_on_from_the_states_of_its_own_runs(small_store):
    """As when the workers that computed it have died: each part has one run of the whole."""
    learners = [("OjaSON", {}, 1), ("CONKONS", {}, 2), ("AdaGrad", {}, None), ("OGD", {}, None)]
    cohort = after_a_rung(small_store, learners)
    parts = cohort.singles
    found = {}
    for part in parts:
        receipt = run_cohort(str(small_store), "try", part)
        assert receipt.rounds == len(part.runs) * (RUNGS[1] - RUNGS[0])
        found |= by_run(results_of(small_store, part))
    assert found == from_the_first_row(small_store, cohort.runs)
    assert sum(part.seconds for part in parts) == 4.0
