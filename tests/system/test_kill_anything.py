"""Whatever of a sweep is killed, and whenever: the same command goes on, to the same tables, and
does nothing twice.
"""

import json
import os
import random
import shutil
import subprocess
import sys
import time
from contextlib import ExitStack

import numpy as np
import pyarrow.parquet as pq
import pytest

from koco_stream.engine.checkpoint import checkpoints_folder, read_checkpoint
from koco_stream.runs.planner import Limits
from storage.generated.generators import prepare_synthetic
from storage.preparing.prepare import prepare_file
from tests.helpers.disturbed import (
    ENDING,
    PARTS,
    Disk,
    DisturbedSweep,
    OwnCluster,
    copy_into,
    drawn,
    finished,
    prefect_server,
    wait_until,
)
from tests.helpers.sweeps import tables

ORDINARY = (10, 1, 37, 13, 9)  # of each kind one
TRIALS = [
    pytest.param(seed, marks=[] if seed in ORDINARY else [pytest.mark.soak]) for seed in range(40)
]
SPEC = """
name = "NAME"
[[dataset]]
name = "dense"
order = "shuffled"
order_seeds = 2
[[learner]]
name = "OjaSON"
sketch_size = [5, 20]
alpha = [0.5, 1, 2, 4]
[[learner]]
name = "FDSON"
sketch_size = [10, 20, 30]
alpha = [0.5, 1, 2, 4]
"""
MORE = """
[[learner]]
name = "AdaGrad"
step_size = { powers_of_two = [-9, -2] }
"""
ATTEMPTS = 3
COHORT_RUNS = 2


class Sweeps:
    """The undisturbed sweep, and what is needed to run it again."""

    def __init__(self, folder, address):
        self.folder = folder
        seconds = {"KOCO_TEST_RUNS": str(COHORT_RUNS), "KOCO_TEST_SECONDS": "0.05"}
        self.more = {**seconds, "PREFECT_API_URL": address, "PREFECT_HOME": str(folder / "prefect")}
        draw = np.random.default_rng(0)
        X = draw.standard_normal((24_000, 30))
        y = X @ draw.standard_normal(30) + draw.standard_normal(24_000)
        np.savetxt(folder / "dense.csv", np.column_stack([X, y]), fmt="%.4f", delimiter=",")
        self.empty = folder / "empty"
        prepare_file(self.empty, "dense", folder / "dense.csv", scale="minmax")
        for name, learners in (("whole", SPEC + MORE), ("part", SPEC)):
            (folder / f"{name}.toml").write_text(learners.replace("NAME", name))
        store = folder / "undisturbed"
        copy_into(store, self.empty)
        sweep = self.sweep(folder, store)
        assert sweep.status() == 0, sweep.said()
        self.wanted = tables(store)
        self.total = len(self.wanted[0])
        assert sweep.summary()["computed"] == self.total
        assert len(set(finished(store).values())) > PARTS  # cohorts

    def sweep(self, folder, store, name="whole", cluster=None):
        where = ["--cluster", cluster.address] if cluster else ["--workers", "2"]
        begun = DisturbedSweep(
            folder,
            [str(self.folder / f"{name}.toml"), "--store", str(store), *where],
            store,
            self.more,
        )
        begun.cluster = cluster
        return begun

    def check(self, store):
        """The store is what the undisturbed sweep leaves."""
        assert tables(store) == self.wanted
        for table, rows in zip(("runs", "curves"), self.wanted, strict=True):
            assert pq.read_table(store / "results" / table).num_rows == len(rows)
        assert list((store / "results" / "parts").glob("*.parquet")) == []
        assert list((store / "checkpoints").glob("*.koco")) == []


@pytest.fixture(scope="module")
def sweeps(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sweeps")
    with prefect_server(folder) as address:
        yield Sweeps(folder, address)
    shutil.rmtree(folder)


def disk_or_skip(store, request):
    """A disk of its own at `store`; None if the test was run where one can be made, which is not
    here.
    """
    try:
        return Disk(store)
    except (OSError, subprocess.CalledProcessError):
        if (
            shutil.which("unshare") is None
            or subprocess.run(["unshare", "-Urm", "true"], capture_output=True).returncode
        ):
            pytest.skip("needs to mount a disk of its own: root, or unshare")
    words = [
        "unshare",
        "-Urm",
        sys.executable,
        "-m",
        "pytest",
        "-m",
        "soak or not soak",
        request.node.nodeid,
    ]
    done = subprocess.run(words, cwd=request.config.rootpath, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    return None


@pytest.mark.parametrize("seed", TRIALS)
def test_killed__the_same_command_goes_on_to_the_same_tables(seed, sweeps, tmp_path, request):
    blows, store, cluster, disk = drawn(seed), tmp_path / "store", None, None
    with ExitStack() as stack:
        if any(blow.kind == "disk" for blow in blows):
            disk = disk_or_skip(store, request)
            if disk is None:
                return
            stack.callback(disk.stop)
        copy_into(store, sweeps.empty)
        if any(blow.kind == "scheduler" for blow in blows):
            cluster = OwnCluster(tmp_path)
            stack.callback(cluster.stop)
        kept = {}
        for attempt in range(ATTEMPTS):
            sweep = sweeps.sweep(tmp_path, store, cluster=cluster)
            stack.callback(sweep.process.kill)
            blow = blows[attempt] if attempt < len(blows) else None
            if blow is not None:
                struck = sweep.reaches(blow)
                assert struck or attempt, (
                    sweep.said()
                )  # the second may come too late: little was left to do
                if struck:
                    sweep.strike(blow, disk)
                blow = blow if struck else None
            before, when = kept, sweep.lasted()
            if blow is not None and blow.kind not in ENDING:
                kept = finished(store)  # while the sweep goes on
                assert kept.items() >= before.items()
            status, said = sweep.status(), sweep.said()
            print(
                f"\n  {seed}: {blow.kind if blow else 'nothing'} after {when:.1f} s, ended"
                f" {sweep.lasted() - when:.1f} s later",
                end="",
            )
            assert "Traceback" not in said, said
            if blow is not None and blow.kind in ENDING and not (needless(blow) and status == 0):
                check_end(blow, status, said, store)
                if (
                    cluster and blow.kind != "disk"
                ):  # its workers would go on with what they are at, while it is being counted
                    cluster.stop()
                    cluster.start()
                sweep.wait_for_its_processes()
                if blow.kind == "disk":
                    disk.free()
                kept = finished(store)
                assert kept.items() >= before.items()
                print(f", {len(kept)} of {sweeps.total} runs kept", end="")
                continue
            assert status == 0, said
            sweep.wait_for_its_processes()
            assert sweep.summary()["runs"] == sweeps.total
            assert sweep.summary()["computed"] == sweeps.total - len(before)
            break
        sweeps.check(store)
        assert finished(store).items() >= kept.items()


def needless(blow):
    """Whether it takes away what the sweep may not need any more."""
    return blow.kind == "scheduler" and blow.phase == "collecting"


def check_end(blow, status, said, store):
    """It ended as it should, and said how to go on."""
    if blow.kind == "driver":
        assert status == -9
        return
    assert status == 1, said
    last = said.splitlines()[-1]
    assert "what was finished is kept" in last
    assert "To go on" in last
    assert "koco sweep" in last
    if blow.kind == "scheduler":
        assert "the scheduler is gone" in last or "does not answer" in last
        assert "start" in last
    else:
        assert str(store) in last
        assert "no room" in last
        assert "make room" in last


def test_two_sweeps_at_once__share_a_store(sweeps, tmp_path):
    store = tmp_path / "store"
    copy_into(store, sweeps.empty)
    both = [sweeps.sweep(tmp_path, store, name) for name in ("whole", "part")]
    for sweep in both:
        assert sweep.status() == 0, sweep.said()
    sweeps.check(store)


LONG = """
name = "long"
[[dataset]]
name = "dense-stream"
n_rows = ROWS
n_features = 2000
[[learner]]
name = "ONS"
"""


@pytest.mark.soak
def test_long_run_killed__goes_on_from_its_last_checkpoint(sweeps, tmp_path):
    minutes = float(os.environ.get("KOCO_SOAK_MINUTES", "10"))
    between = Limits.checkpoint_seconds * minutes / 10
    receipts = tmp_path / "receipts"
    more = {"KOCO_TEST_RECEIPTS": str(receipts), "KOCO_TEST_SECONDS": str(between)}
    more |= {name: value for name, value in sweeps.more.items() if name.startswith("PREFECT")}
    patience = 60 * (5 * minutes + 5)

    def begun(name, n_rows):
        (tmp_path / "long.toml").write_text(LONG.replace("ROWS", str(n_rows)))
        prepare_synthetic(tmp_path / name, "dense-stream", {"n_rows": n_rows, "n_features": 2000})
        return DisturbedSweep(
            tmp_path,
            [str(tmp_path / "long.toml"), "--store", str(tmp_path / name), "--workers", "1"],
            tmp_path / name,
            more,
        )

    def ended(sweep):
        assert sweep.status(patience) == 0, sweep.said()
        receipt = json.loads(receipts.read_text().splitlines()[-1])
        return receipt["rounds"], receipt["scan_seconds"]

    rounds, seconds = ended(begun("calibrating", 2_000))
    n_rows = int(60 * minutes * rounds / seconds)
    rounds, seconds = ended(begun("undisturbed", n_rows))
    assert rounds == n_rows
    store = tmp_path / "store"
    sweep = begun("store", n_rows)
    wait_until(lambda: sweep.computing() or sweep.process.poll() is not None, "it did not begin")
    first = time.time()
    time.sleep(random.Random(1).uniform(0.3, 0.7) * seconds)
    sweep.process.kill()
    killed = time.time()
    assert sweep.status() == -9
    sweep.wait_for_its_processes()
    (checkpoint,) = checkpoints_folder(store).files(".koco")
    saved, age = read_checkpoint(checkpoint)[0]["rounds"], killed - checkpoint.path.stat().st_mtime
    done, again = ended(begun("store", n_rows))
    print(
        f"\n  {n_rows:,} rounds in {seconds:.0f} s; killed {killed - first:.0f} s after the start,"
        f" {age:.1f} s after the last checkpoint, of {saved:,} rounds; {done:,} rounds more,"
        f" {again:.0f} s of scanning in all"
    )
    assert done == n_rows - saved
    assert age < 2 * between  # what it cost is estimated, and the machine may be busy
    assert tables(store) == tables(tmp_path / "undisturbed")
    assert checkpoints_folder(store).names() == []
