"""Runs of a first-order learner lie side by side in a cohort, and nothing that a user sees is other
than if each had been computed by itself.
"""

import json
from dataclasses import replace

import numpy as np
import pytest

from koco_stream.engine import cohort as engine
from koco_stream.engine.checkpoint import Saved, checkpoint_of
from koco_stream.engine.cohort import run_cohort
from koco_stream.engine.groups import groups_of, lay_side_by_side, turn_bytes
from koco_stream.engine.warm_up import Needed, load, needed
from koco_stream.learners import LEARNERS, several
from koco_stream.learners.shared_lines import Place, scan_lines
from koco_stream.runs.cost_model import RUN_SECONDS, Costs, DataSize
from koco_stream.runs.run import Cohort, Run, RunState, Seen
from koco_stream.streams.manifest import load_manifest
from koco_stream.streams.stream import Stream
from tests.engine.test_rungs import RUNGS, at_rung, from_the_first_row, runs_on
from tests.helpers.sweeps import cohort_on, die_after, results_of, sizes_of, undisturbed

STEPS = [2.0 ** (k - 6) for k in range(13)]  # eight, four, and one that is left over
WILD = {"clip": 1e300, "step_size": 1e9, "projection": "prediction"}  # it diverges
GRIDS = {
    "AdaGrad": [{"step_size": step, "loss": "half_squared"} for step in STEPS],
    "OGD": [
        WILD,
        *({"step_size": step, "projection": "prediction"} for step in STEPS[:5]),
        *({"step_size": step, "fit_intercept": True} for step in STEPS[:9]),
        *({"step_size": s, "step_schedule": k} for s in STEPS[5:7] for k in ("sqrt", "linear")),
    ],
}


@pytest.fixture
def tables(monkeypatch):
    """The numbers of states of each table that was advanced over a block."""
    sizes, advance = [], several.advance_table

    def counted(learner, params, states, numbers, *more):
        sizes.append(len(numbers))
        return advance(learner, params, states, numbers, *more)

    monkeypatch.setattr(several, "advance_table", counted)
    return sizes


def grid(store, learner, every=0, **more):
    """A cohort of the learner's grid."""
    return cohort_on(store, [(learner, one, 1) for one in GRIDS[learner]], every, **more)


def singly(store, cohort):
    """The rows of the runs, each computed in a cohort of its own."""
    return [
        row for run in cohort.runs for row in undisturbed(store, Cohort(cohort.stream, (run,), 1.0))
    ]


@pytest.mark.parametrize("learner", GRIDS)
def test_runs_side_by_side__have_the_rows_of_runs_alone(learner, small_store, tables):
    cohort = grid(small_store, learner)
    alone = singly(small_store, cohort)
    assert tables == []
    run_cohort(str(small_store), "try", cohort, 64)
    assert results_of(small_store, cohort) == alone
    assert {"AdaGrad": {8, 4}, "OGD": {3, 4, 8}}[learner] == set(tables)  # three after one stopped
    assert ("diverged" in {row["status"] for row in alone}) == (learner == "OGD")


@pytest.mark.parametrize("learner", GRIDS)
def test_checkpoint__has_the_arrays_of_runs_alone_and_any_cut_gives_the_same_bits(
    learner, small_store, monkeypatch, tables
):
    cohort = grid(small_store, learner, 120)
    alone = singly(small_store, cohort)
    die_after(monkeypatch, small_store, cohort, 2)
    assert tables
    together = Saved.read(checkpoint_of(small_store, cohort)).arrays
    for k, run in enumerate(cohort.runs):
        one = Cohort(cohort.stream, (run,), 1.0, 120)
        die_after(monkeypatch, small_store, one, 2)
        own = Saved.read(checkpoint_of(small_store, one)).arrays
        for name, array in own.items():
            mine = together[f"{k}{name[1:]}"]
            assert (mine.shape, mine.tobytes()) == (array.shape, array.tobytes()), name
    assert run_cohort(str(small_store), "try", cohort, 37).rounds > 0
    assert results_of(small_store, cohort) == alone


@pytest.mark.parametrize("learner", GRIDS)
def test_all_classes__lie_side_by_side_with_those_of_other_runs(learner, small_store, tables):
    """Three classes are too few for a table: each class of several runs is in one."""
    of = grid(small_store, learner, name="sparse")
    stream = replace(of.stream, multiclass="one-vs-rest")
    cohort = Cohort(stream, tuple(replace(run, stream=stream) for run in of.runs), 1.0)
    alone = singly(small_store, cohort)
    assert tables == []
    run_cohort(str(small_store), "try", cohort, 100)
    assert results_of(small_store, cohort) == alone
    assert {4, 8} <= set(tables)


def test_states_of_a_cohort__go_on_in_other_company(small_store, tables):
    """Twelve at first, then three cohorts of four, then a few: side by side or not."""
    learners = [("AdaGrad", {"step_size": step}, None) for step in STEPS[:12]]
    for rung, (count, cohorts) in enumerate(((12, 1), (12, 3), (3, 1))):
        runs = runs_on(small_store, learners[:count], RUNGS[rung], positive_class=1.0)
        before = len(tables)
        _, rows = at_rung(small_store, runs, rung, cohorts)
        assert (len(tables) > before) == (count > 3)
        assert rows == from_the_first_row(small_store, runs)


def test_scan_of_a_table_that_raises__ends_its_runs_and_no_others(small_store, monkeypatch):
    cohort = grid(small_store, "AdaGrad")
    alone = singly(small_store, cohort)
    advance = several.advance_table

    def raising(learner, params, states, numbers, *more):
        if len(numbers) == 4:
            raise RuntimeError("no such luck")
        return advance(learner, params, states, numbers, *more)

    monkeypatch.setattr(several, "advance_table", raising)
    assert run_cohort(str(small_store), "try", cohort).failed == 4
    rows = results_of(small_store, cohort)
    assert [row["error"] for row in rows[8:12]] == ["RuntimeError: no such luck"] * 4
    assert rows[:8] + rows[12:] == alone[:8] + alone[12:]


def test_seconds__are_equal_shares_of_a_table(small_store, monkeypatch):
    shared = []
    count = engine.commit
    monkeypatch.setattr(
        engine,
        "commit",
        lambda *words: (shared.extend(one.seconds for one in words[-1]), count(*words)),
    )
    run_cohort(str(small_store), "try", grid(small_store, "AdaGrad"))
    assert len(set(shared[:8])) == len(set(shared[8:12])) == 1
    assert min(shared) > 0.0


def started(learner, n, classes=(), multiclass=None, **more):
    """Runs of the learner before the first round, laid side by side."""
    stream = Stream("a", "h", multiclass=multiclass)
    runs = [Run.of(stream, learner, {"step_size": 1.0 + k, **more}, 1) for k in range(n)]
    seen = Seen(9, 10, classes=classes)
    states = [RunState.start(run, seen, np.zeros(0)) for run in runs]
    lay_side_by_side(states)
    return states


@pytest.mark.parametrize("classes", [1, 3, 4, 20])
@pytest.mark.parametrize("n", [1, 3, 4, 13])
def test_groups__hold_all_states_of_their_runs_and_tables_are_of_one_group(n, classes):
    named = tuple(float(c) for c in range(classes))
    how = {"classes": named, "multiclass": "one-vs-rest"} if classes > 1 else {}
    states = started("OGD", n, **how)
    groups = [group for _, group in groups_of(states)]
    assert sorted(id(one) for group in groups for one in group) == sorted(map(id, states))
    owners, laid = {}, 0
    for g, group in enumerate(groups):
        for one in group:
            for place in map(Place.of, one.states):
                if place is not None:
                    laid += 1
                    assert owners.setdefault(id(place.room), g) == g
    in_tables = classes // 4 * 4 * n if classes > 3 else n // 4 * 4 * classes
    assert laid == in_tables
    bytes_alone = 8 * 9
    assert {turn_bytes(one) // bytes_alone for one in states} <= {1, 4, 8}


def test_learners_rows_with_and_without_an_intercept__lie_in_tables_of_their_own():
    states = [*started("OGD", 4), *started("OGD", 4, fit_intercept=True), *started("AdaGrad", 4)]
    lay_side_by_side(states)
    groups = groups_of(states)
    assert [(i, len(group)) for i, group in groups] == [(False, 4), (True, 4), (False, 4)]


def test_plan__knows_what_sharing_saves_and_asks_for_no_more_memory_of_states():
    size = DataSize(20_000, 1000, 2_000_000)
    for name in GRIDS:
        learner = LEARNERS[name]
        runs = [Run.of(Stream("a", "h"), name, {"step_size": 1.0 + k}, 1) for k in range(64)]
        costs = [Costs({"h": size}).of(run) for run in runs]
        alone = costs[0].seconds + costs[0].shared_seconds
        together = sum(cost.seconds for cost in costs) + costs[0].shared_seconds
        assert 0.4 * 64 * alone < together < 0.7 * 64 * alone
        assert costs[0].seconds > RUN_SECONDS
        assert len({cost.key for cost in costs}) == 1
        cost = learner.cost(learner.complete({}), size.seen_by(runs[0]))
        (array,) = learner.init(learner.to_params(learner.complete({})), 1000, 0)
        assert array.size <= cost.floats


@pytest.mark.parametrize("count", [3, 4, 13])
def test_what_a_cohort_needs__is_compiled_before_it(count, small_store, tables):
    """Workers would otherwise compile it, each by itself."""
    cohort = grid(small_store, "AdaGrad")
    cohort = replace(cohort, runs=cohort.runs[:count])
    manifest = load_manifest(small_store, "real")
    kinds = {manifest.dataset_hash: manifest.value_type}
    (kind,) = needed(cohort.runs, kinds, sizes_of([manifest]))
    assert tuple(kind.widths) == {3: (), 4: (4,), 13: (8, 4)}[count]
    assert Needed(*json.loads(json.dumps(kind))).specialization == kind.specialization
    load([kind])
    assert tuple(tables) == tuple(kind.widths)
    scan = LEARNERS["AdaGrad"].compiled(scan_lines, "lines")
    before = set(scan.signatures)
    run_cohort(str(small_store), "try", cohort)
    assert set(scan.signatures) == before
