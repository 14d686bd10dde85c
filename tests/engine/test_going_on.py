"""What is cut goes on to the same bits: a cohort from its last checkpoint, on any worker; runs from
the states that shorter ones have left, in whatever cohorts; a run that has reached its time limit,
with a larger one. What was done is not done again, and a checkpoint only ever saves time.
"""

import itertools
from dataclasses import replace

import pytest
from distributed import Client

from cluster.executors import Executor
from flows.tables.text import grouped
from koco_stream.engine.checkpoint import (
    checkpoint_of,
    checkpoints_folder,
    header_of,
    paused_runs,
    remove_finished,
    unfinished,
)
from koco_stream.engine.cohort import run_cohort
from koco_stream.engine.preemption import Preempted, requested
from koco_stream.engine.result_file import result_path
from koco_stream.io.array_file import opened_arrays
from koco_stream.learners import LEARNERS
from koco_stream.runs.run import NO_PAUSE, Cohort, Measured, Run, without_repeats
from koco_stream.streams.manifest import load_manifest
from storage.results import read_runs
from storage.store import open_store
from tests.helpers.dask_processes import processes
from tests.helpers.examples import EXAMPLES
from tests.helpers.sweeps import (
    all_classes,
    cohort_on,
    compiled,
    die_after,
    results_of,
    stream_of,
    undisturbed,
    wide_store,
)


def preempted_after(monkeypatch, store, cohort, looks, block_rows):
    """Run the cohort in a process that is told to stop before it looks for the `looks`-th time;
    returns the rounds that were saved.
    """
    found = itertools.chain([False] * (looks - 1), itertools.repeat(True))
    with monkeypatch.context() as patched:
        patched.setattr(requested, "is_set", lambda: next(found))
        with pytest.raises(Preempted):
            run_cohort(str(store), "try", cohort, block_rows)
    return header_of(checkpoint_of(store, cohort)).get("rounds")


def measured(store, learners, of, metric):
    """A cohort with a metric, windows and predictions; of the set of three classes, for all."""
    cohort = cohort_on(store, learners, of)
    cohort = all_classes(cohort) if of == "sparse" else cohort
    runs = tuple(replace(run, measured=Measured((metric,), 40, True)) for run in cohort.runs)
    return replace(cohort, runs=runs)


@pytest.mark.parametrize(
    ("name", "of", "metric"),  # one of each kind of scan
    [("FDSON", "real", "rmse"), ("KONS", "sparse", "kappa"), ("CONKONS", "real", "mae")],
)
def test_learner__goes_on_from_any_block(name, of, metric, small_store, monkeypatch):
    """With metrics, windows and predictions; of the set of three classes, for all of them."""
    learners = [(name, {}, 1), (name, {"fit_intercept": True}, 2)]
    cohort = measured(small_store, learners, of, metric)
    whole = undisturbed(small_store, cohort)
    assert preempted_after(monkeypatch, small_store, cohort, 1, 37) is None  # before it has begun
    assert preempted_after(monkeypatch, small_store, cohort, 3, 37) == 74
    second = preempted_after(monkeypatch, small_store, cohort, 2, 53)
    assert second == 127
    receipt = run_cohort(str(small_store), "try", cohort, 64)
    assert results_of(small_store, cohort) == whole
    assert receipt.rounds == sum(row["rounds"] for row in whole) - 2 * second
    assert checkpoints_folder(small_store).names() == []


def test_told_in_the_last_block__it_finishes(small_store, monkeypatch):
    cohort = cohort_on(small_store, [("OGD", {}, 1)])
    looks = iter([False, True])
    monkeypatch.setattr(requested, "is_set", lambda: next(looks))
    assert run_cohort(str(small_store), "try", cohort).rounds == 500


@pytest.mark.system
@pytest.mark.parametrize(
    "words",
    [(), ("--no-nanny", "--preload", "cluster.preemption")],
    ids=["with a nanny", "without a nanny"],
)
def test_sigterm__hands_the_cohort_over(words, tmp_path, monkeypatch):
    """The first worker is told when it is under way again after its first checkpoint and hands
    over; only then does another come.
    """
    rows = 24_000
    store = wide_store(tmp_path, rows)
    learners = [("ONS", {"alpha": (1 + k) / 8}, None) for k in range(400)]
    cohort = replace(cohort_on(store, learners, order="as-stored"), checkpoint_seconds=1.0)
    compiled(cohort.runs[:1], [load_manifest(store, "real")])
    checkpoint, receipts, handed_over = checkpoint_of(str(store), cohort), [], []
    later_polls = iter(range(10))  # a block takes less time than so many
    with processes(tmp_path / "processes") as started:
        address = started.scheduler()
        first = started.worker("first", address, *words)
        started.wait_for("first", "Registered to:")

        def poll_after(self, client, poll=Executor._poll):
            poll(self, client)
            if checkpoint.is_file() and next(later_polls, None) is None and not handed_over:
                handed_over.append(header_of(checkpoint)["rounds"])
                first.terminate()
                assert first.wait(30) == 0, started.log("first")
                handed_over.append(header_of(checkpoint)["rounds"])
                started.worker("second", address)

        monkeypatch.setattr(Executor, "_poll", poll_after)
        monkeypatch.setattr("cluster.executors.POLL_SECONDS", 0.02)
        with Client(address, set_as_default=False) as client:
            Executor(client, str(store), "try", receipts.append, 100).run([cohort])
    ((receipt,), (before, saved)) = receipts, handed_over
    assert 0 < before < saved < rows
    assert receipt.rounds == (rows - saved) * len(learners)  # nothing was done again
    assert read_runs(store).column("rounds").to_pylist() == [rows] * len(learners)
    assert checkpoints_folder(store).names() == []


def test_runs_that_share_kernel_values__and_one_that_diverged(small_store, monkeypatch):
    learners = [
        ("KONS", {}, 1),
        ("SketchedKONS", {"beta": 2.0}, 1),
        ("SketchedKONS", {}, 2),
        ("OGD", {"clip": 1e300, "step_size": 1e9}, 1),
    ]
    cohort = cohort_on(small_store, learners, order="as-stored")
    whole = undisturbed(small_store, cohort)
    assert "diverged" in {row["status"] for row in whole}
    die_after(monkeypatch, small_store, cohort, 3, 100)
    with opened_arrays(checkpoint_of(small_store, cohort)) as (header, arrays):
        assert header["rounds"] == 300
        rows = {arrays.place(name) for name in arrays if name.endswith("history.values")}
    assert len(rows) == 1  # the rows seen are there once
    assert run_cohort(str(small_store), "try", cohort).rounds == 3 * (500 - 300)
    assert results_of(small_store, cohort) == whole


@pytest.mark.parametrize(
    ("harmed", "code", "learner"),
    [
        pytest.param(lambda content: content[:-7], None, "OjaSON", id="cut"),
        pytest.param(lambda content: b"", None, "OjaSON", id="empty"),
        pytest.param(
            lambda content: content[:200] + bytes([content[200] ^ 1]) + content[201:],
            None,
            "OjaSON",
            id="altered",
        ),
        pytest.param(bytes, "of another version", "OjaSON", id="other code"),
        pytest.param(bytes, None, "AdaGrad", id="other runs"),
    ],
)
def test_checkpoint_that_does_not_fit__is_begun_again(
    harmed, code, learner, small_store, monkeypatch
):
    cohort = cohort_on(small_store, [("OjaSON", {}, 1)])
    die_after(monkeypatch, small_store, cohort, 2, 100)
    content = checkpoint_of(small_store, cohort).read_bytes()
    checkpoint_of(small_store, cohort).remove()
    if code:
        monkeypatch.setattr("koco_stream.engine.checkpoint.code_hash", lambda: code)
    cohort = cohort_on(small_store, [(learner, {}, 1)])
    whole = undisturbed(small_store, cohort)
    checkpoint_of(small_store, cohort).write_bytes(harmed(content))
    assert run_cohort(str(small_store), "try", cohort).rounds == 500
    assert results_of(small_store, cohort) == whole


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
    assert run_cohort(str(small_store), "try", cohort).rounds == 2 * RUNGS[1]
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


@pytest.mark.parametrize(
    ("name", "of", "metric"),  # one of each kind of scan
    [("FDSON", "real", "rmse"), ("KONS", "sparse", "kappa"), ("CONKONS", "real", "mae")],
)
def test_stopped_run__goes_on_with_a_larger_limit_to_the_same_bits(
    name, of, metric, small_store, slow
):
    cohort = measured(small_store, [(name, {}, 1)], of, metric)
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
    cohort = cohort_on(small_store, LEARNERS_OF_A_COHORT, order="as-stored")
    whole = undisturbed(small_store, cohort)
    slow(*{name for name, *_ in LEARNERS_OF_A_COHORT}.difference(kept))
    limited = replace(cohort, time_limit=0.9)
    if killed:
        die_after(monkeypatch, small_store, limited, 3, 37)
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
    learners = [("FDSON", {}, 1), ("KONS", {}, 1), ("KONS", {"alpha": 3.0}, 1)]
    cohort = cohort_on(small_store, learners)
    slow("FDSON", "KONS")
    rows, receipt = swept(small_store, cohort, 1.0)
    assert [row["rounds"] for row in rows] == [37, 74, 74]
    assert receipt.stopped == 3
    first, *others = (run.run_id for run in cohort.runs)
    assert sorted(unfinished(small_store), key=len) == [(first,), tuple(others)]


def test_result_that_is_there__is_not_computed_again(small_store, slow):
    cohort = replace(cohort_on(small_store, [("OGD", {}, 1)]), time_limit=2.0)
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
