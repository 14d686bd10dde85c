"""A cohort that was cut goes on from its last checkpoint, on any worker, to the same bits; a
checkpoint only ever saves time.
"""

import os
import signal
import subprocess
import sys

import numpy as np
import pytest

import koco_stream.engine.cohort
from koco_stream.engine.checkpoint import (
    checkpoint_of,
    checkpoints_folder,
    read_checkpoint,
    unfinished,
)
from koco_stream.engine.cohort import run_cohort
from koco_stream.learners import LEARNERS
from koco_stream.runs.cost_model import DataSize
from koco_stream.runs.planner import Limits, plan
from koco_stream.streams.manifest import load_manifest
from tests.helpers.cohorts import cohort_on, part, undisturbed


class Cut(BaseException):
    pass


def run_and_cut(monkeypatch, store, cohort, saves):
    """Run the cohort in a process that dies after so many checkpoints: here by an exception that
    nothing catches. At which rounds they were.
    """
    save, done = koco_stream.engine.cohort.save_cohort, []

    def saved(where, rounds, members):
        save(where, rounds, members)
        done.append(rounds)
        if len(done) == saves:
            raise Cut

    with monkeypatch.context() as patched:
        patched.setattr(koco_stream.engine.cohort, "save_cohort", saved)
        with pytest.raises(Cut):
            run_cohort(str(store), "try", cohort)
    return done


@pytest.mark.parametrize("name", sorted(LEARNERS))
def test_every_learner__goes_on_to_the_same_bits(name, small_store, monkeypatch):
    cohort = cohort_on(small_store, [(name, {}, 1), (name, {"fit_intercept": True}, 2)], 120)
    whole = undisturbed(small_store, cohort)
    assert run_and_cut(monkeypatch, small_store, cohort, 1) == [120]
    assert run_and_cut(monkeypatch, small_store, cohort, 2) == [240, 360]
    receipt = run_cohort(str(small_store), "try", cohort, 37)
    assert part(small_store, cohort) == whole
    assert receipt.rounds == sum(row["rounds"] for row in whole) - 2 * 360
    assert checkpoints_folder(small_store).names() == []


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
    run_and_cut(monkeypatch, small_store, cohort, 3)
    header, arrays = read_checkpoint(checkpoint_of(small_store, cohort))
    assert header["rounds"] == 300
    assert (
        sum(name.endswith("history.values") for name in arrays) == 1
    )  # the rows seen are there once
    run_cohort(str(small_store), "try", cohort)
    assert part(small_store, cohort) == whole


@pytest.mark.parametrize("wrong", ["cut", "altered", "other code", "other runs"])
def test_checkpoint_that_does_not_fit__is_begun_again(wrong, small_store, monkeypatch):
    cohort = cohort_on(small_store, [("OjaSON", {}, 1)], 100)
    whole = undisturbed(small_store, cohort)
    run_and_cut(monkeypatch, small_store, cohort, 2)
    where = checkpoint_of(small_store, cohort)
    content = where.read_bytes()
    if wrong == "cut":
        where.write_bytes(content[:-7])
    elif wrong == "altered":
        where.write_bytes(content[:200] + bytes([content[200] ^ 1]) + content[201:])
    elif wrong == "other code":
        monkeypatch.setattr("koco_stream.engine.checkpoint.code_hash", lambda: "of another version")
    else:
        other = cohort_on(small_store, [("AdaGrad", {}, 1)], 100)
        checkpoint_of(small_store, other).write_bytes(content)
        cohort = other
        whole = undisturbed(small_store, cohort)
    receipt = run_cohort(str(small_store), "try", cohort)
    assert receipt.rounds == 500
    assert part(small_store, cohort) == whole


def test_plan__keeps_cohorts_that_were_begun(small_store, monkeypatch):
    cohort = cohort_on(small_store, [("OjaSON", {"alpha": float(a)}, 1) for a in range(1, 9)], 100)
    size = {cohort.stream.dataset_hash: DataSize.of(load_manifest(small_store, "real"))}
    run_and_cut(monkeypatch, small_store, cohort, 1)
    more = list(
        cohort_on(
            small_store, [("AdaGrad", {"step_size": float(s)}, 1) for s in range(1, 9)], 100
        ).runs
    )
    found = plan(
        [*more, *cohort.runs],
        size,
        Limits(2, 4 << 30, cohort_seconds=1e-4, checkpoint_seconds=1e-5),
        unfinished(small_store),
    )
    assert cohort.cohort_id in {one.cohort_id for one in found.cohorts}
    assert sorted(run.run_id for run in found.runs) == sorted(
        run.run_id for run in [*more, *cohort.runs]
    )
    without = plan(
        [*more, *cohort.runs[1:]], size, Limits(2, 4 << 30), unfinished(small_store)
    )  # one of its runs is in the store
    assert sorted(run.run_id for run in without.runs) == sorted(
        run.run_id for run in [*more, *cohort.runs[1:]]
    )
    assert all(one.checkpoint_rounds == 0 for one in without.cohorts)  # too short to need any


KILLED = """
import os, signal, sys
import koco_stream.engine.cohort
from tests.helpers.cohorts import cohort_on
save, done = koco_stream.engine.cohort.save_cohort, []
def saved(where, rounds, members):
    if len(done) == int(sys.argv[2]):
        os.kill(os.getpid(), signal.SIGKILL)
    save(where, rounds, members)
    done.append(rounds)
koco_stream.engine.cohort.save_cohort = saved
cohort = cohort_on(sys.argv[1], [("FDSON", {}, 1)], 50)
koco_stream.engine.cohort.run_cohort(sys.argv[1], "try", cohort)
"""


def test_killed_process__another_goes_on(small_store):
    cohort = cohort_on(small_store, [("FDSON", {}, 1)], 50)
    whole = undisturbed(small_store, cohort)
    words = [sys.executable, "-c", KILLED, str(small_store), "4"]
    assert (
        subprocess.run(
            words, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        ).returncode
        == -signal.SIGKILL
    )
    receipt = run_cohort(str(small_store), "try", cohort)
    assert receipt.rounds == 500 - 4 * 50
    assert part(small_store, cohort) == whole
    assert np.isclose(sum(row["rounds"] for row in whole), 500)
