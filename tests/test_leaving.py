"""A worker that is told to leave saves its cohort after the current block, and another goes on from there, to the same bits."""

import os
import signal
import time
from dataclasses import replace

import pytest
from dask_processes import processes
from distributed import Client

import koco_stream.run
from cluster.executors import run_on_dask
from koco_stream import leaving
from koco_stream.costs import DataSize
from koco_stream.learners import LEARNERS
from koco_stream.manifest import load_manifest
from koco_stream.resume import checkpoint_of, checkpoints_folder, read_checkpoint
from koco_stream.run import run_cohort
from koco_stream.runs import Cohort, Run, Stream
from koco_stream.warm import needed, warm
from storage.results import read_runs
from tests.test_clusters import wide_store
from tests.test_resume import cohort_on, part


def leave_after(monkeypatch, store, cohort, looks, block_rows):
    """Run the cohort in a process that is told to leave before it looks for the `looks`-th time; returns the rounds that were saved."""
    seen = []

    def asked():
        seen.append(0)
        return len(seen) >= looks

    with monkeypatch.context() as patched:
        patched.setattr(koco_stream.run, "asked", asked)
        with pytest.raises(leaving.Preempted):
            run_cohort(str(store), "try", cohort, block_rows)
    return read_checkpoint(checkpoint_of(store, cohort))[0].get("rounds")


@pytest.mark.parametrize("every", [0, 120])
@pytest.mark.parametrize("name", sorted(LEARNERS))
def test_every_learner__goes_on_from_any_block(name, every, small_store, monkeypatch):
    cohort = cohort_on(small_store, [(name, {}, 1), (name, {"fit_intercept": True}, 2)], every)
    run_cohort(str(small_store), "try", replace(cohort, checkpoint_rounds=0))
    whole = part(small_store, cohort)
    assert leave_after(monkeypatch, small_store, cohort, 1, 37) is None  # before it has begun
    first = leave_after(monkeypatch, small_store, cohort, 3, 37)
    assert first == 74
    second = leave_after(monkeypatch, small_store, cohort, 2, 53)
    assert second == (127 if every == 0 else 120)
    receipt = run_cohort(str(small_store), "try", cohort, 64)
    assert part(small_store, cohort) == whole
    assert receipt.rounds == sum(row["rounds"] for row in whole) - 2 * second
    assert checkpoints_folder(small_store).names() == []


def test_told_in_the_last_block__it_finishes(small_store, monkeypatch):
    cohort = cohort_on(small_store, [("OGD", {}, 1)], 0)
    looks = iter([False, True])
    monkeypatch.setattr(koco_stream.run, "asked", lambda: next(looks))
    assert run_cohort(str(small_store), "try", cohort).rounds == 500


@pytest.mark.parametrize("nanny", [True, False])
def test_sigterm__hands_the_cohort_over(nanny, tmp_path):
    store = wide_store(tmp_path, 6000)
    stream = Stream("real", load_manifest(store, "real").dataset_hash)
    cohort = Cohort(stream, tuple(Run.of(stream, "ONS", {"alpha": (1 + k) / 8}, None) for k in range(400)), 1.0)
    manifest = load_manifest(store, "real")
    warm(needed(cohort.runs[:1], {manifest.dataset_hash: manifest.value_type}, {manifest.dataset_hash: DataSize.of(manifest)}))
    receipts, preload = [], ("--preload", "cluster.preemption")
    with processes(tmp_path / "processes") as started:
        address = started.scheduler()
        started.worker("first", address, *(() if nanny else ("--no-nanny", *preload)))
        started.wait_for("first", "Registered to:")

        class Told:
            """Tells the first worker to leave once the cohort runs there; it is looked at by the executor's own loop."""

            done = False

        def look_after(self, look=run_on_dask.__globals__["OnDask"]._look_after):
            look(self)
            if self.under_way and not Told.done and any(self.client.processing().values()):
                time.sleep(1.5)
                Told.done = True
                os.kill(started.running["first"].pid, signal.SIGTERM)
                started.worker("second", address)

        with Client(address, set_as_default=False) as client, pytest.MonkeyPatch.context() as patched:
            patched.setattr(run_on_dask.__globals__["OnDask"], "_look_after", look_after)
            run_on_dask(client, str(store), "try", [cohort], receipts.append, 100)
            begun = time.monotonic()
            assert started.running["first"].wait(30) == 0, started.log("first")
        print(f"{receipts}; the first worker's process ended {time.monotonic() - begun:.1f} s after the last receipt")
    (receipt,) = receipts
    assert 0 < receipt.rounds <= 6000 * 400  # fewer, where the first had begun before it was told
    assert read_runs(store).column("rounds").to_pylist() == [6000] * 400
    assert checkpoints_folder(store).names() == []
