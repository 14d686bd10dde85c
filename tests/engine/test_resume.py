"""A cohort that was cut, or whose worker was told to stop, goes on from its last checkpoint, on any
worker, to the same bits; a checkpoint only ever saves time.
"""

import itertools
from dataclasses import replace

import pytest
from distributed import Client

from cluster.executors import Executor
from koco_stream.engine.checkpoint import checkpoint_of, checkpoints_folder, header_of
from koco_stream.engine.cohort import run_cohort
from koco_stream.engine.preemption import Preempted, requested
from koco_stream.io.array_file import opened_arrays
from koco_stream.runs.run import Measured
from koco_stream.streams.manifest import load_manifest
from storage.results import read_runs
from tests.helpers.dask_processes import processes
from tests.helpers.sweeps import (
    all_classes,
    cohort_on,
    compiled,
    die_after,
    results_of,
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


@pytest.mark.parametrize("every", [0, 120])
@pytest.mark.parametrize(
    ("name", "of", "metric"),  # one of each kind of scan
    [("FDSON", "real", "rmse"), ("KONS", "sparse", "kappa"), ("CONKONS", "real", "mae")],
)
def test_learner__goes_on_from_any_block(name, of, metric, every, small_store, monkeypatch):
    """With metrics, windows and predictions; of the set of three classes, for all of them."""
    learners = [(name, {}, 1), (name, {"fit_intercept": True}, 2)]
    cohort = cohort_on(small_store, learners, every, of)
    if of == "sparse":
        cohort = all_classes(cohort)
    measured = Measured((metric,), 40, True)
    runs = tuple(replace(run, measured=measured) for run in cohort.runs)
    cohort = replace(cohort, runs=runs)
    whole = undisturbed(small_store, cohort)
    assert preempted_after(monkeypatch, small_store, cohort, 1, 37) is None  # before it has begun
    assert preempted_after(monkeypatch, small_store, cohort, 3, 37) == 74
    second = preempted_after(monkeypatch, small_store, cohort, 2, 53)
    assert second == (127 if every == 0 else 120)
    receipt = run_cohort(str(small_store), "try", cohort, 64)
    assert results_of(small_store, cohort) == whole
    assert receipt.rounds == sum(row["rounds"] for row in whole) - 2 * second
    assert checkpoints_folder(small_store).names() == []


def test_told_in_the_last_block__it_finishes(small_store, monkeypatch):
    cohort = cohort_on(small_store, [("OGD", {}, 1)], 0)
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
    """The first worker is told when it is under way again after its first checkpoint and hands over
    before its second would be; only then does another come.
    """
    rows, between = 24_000, 8_000
    store = wide_store(tmp_path, rows)
    learners = [("ONS", {"alpha": (1 + k) / 8}, None) for k in range(400)]
    cohort = cohort_on(store, learners, between, order="as-stored")
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
                first.terminate()
                assert first.wait(30) == 0, started.log("first")
                handed_over.append(header_of(checkpoint)["rounds"])
                started.worker("second", address)

        monkeypatch.setattr(Executor, "_poll", poll_after)
        monkeypatch.setattr("cluster.executors.POLL_SECONDS", 0.02)
        with Client(address, set_as_default=False) as client:
            Executor(client, str(store), "try", receipts.append, 100).run([cohort])
    ((receipt,), (saved,)) = receipts, handed_over
    assert between < saved < 2 * between
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
    cohort = cohort_on(small_store, learners, 100, order="as-stored")
    whole = undisturbed(small_store, cohort)
    assert "diverged" in {row["status"] for row in whole}
    die_after(monkeypatch, small_store, cohort, 3)
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
    cohort = cohort_on(small_store, [("OjaSON", {}, 1)], 100)
    die_after(monkeypatch, small_store, cohort, 2)
    content = checkpoint_of(small_store, cohort).read_bytes()
    checkpoint_of(small_store, cohort).remove()
    if code:
        monkeypatch.setattr("koco_stream.engine.checkpoint.code_hash", lambda: code)
    cohort = cohort_on(small_store, [(learner, {}, 1)], 100)
    whole = undisturbed(small_store, cohort)
    checkpoint_of(small_store, cohort).write_bytes(harmed(content))
    assert run_cohort(str(small_store), "try", cohort).rounds == 500
    assert results_of(small_store, cohort) == whole
