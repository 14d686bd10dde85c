"""Whatever of a sweep or a preparation is killed, and whenever: the same command goes on, to the
same tables, and does nothing twice.
"""

import os
import random
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from contextlib import ExitStack
from dataclasses import replace
from itertools import count, product
from resource import RLIMIT_FSIZE, setrlimit

import numpy as np
import psutil
import pyarrow.parquet as pq
import pytest

from koco_stream.streams.manifest import load_manifest
from storage.dataset import dataset_problems
from storage.preparing.prepare import prepare_file
from storage.store import staging_folder
from tests.helpers.disturbed import (
    ENDING,
    FILES,
    Blow,
    DisturbedSweep,
    OwnCluster,
    drawn,
    finished,
    is_own_disk,
    prefect_server,
)
from tests.helpers.project import PATIENCE, command, environment, wait_until
from tests.helpers.sweeps import random_source, tables

ORDINARY = (10, 1, 37, 13, 9)  # of each kind one
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
SHORT = {"KOCO_TEST_RUNS": "2", "KOCO_TEST_SECONDS": "0.05"}  # cohorts, and between checkpoints


class Sweeps:
    """The undisturbed sweep, and what is needed to run it again."""

    def __init__(self, folder):
        self.folder = folder
        draw = np.random.default_rng(0)
        X = draw.standard_normal((24_000, 30))
        y = X @ draw.standard_normal(30) + draw.standard_normal(24_000)
        np.savetxt(folder / "dense.csv", np.column_stack([X, y]), fmt="%.4f", delimiter=",")
        self.empty = folder / "empty"
        prepare_file(self.empty, "dense", folder / "dense.csv", scale="minmax")
        for name, learners in (("whole", SPEC + MORE), ("some", SPEC)):
            (folder / f"{name}.toml").write_text(learners.replace("NAME", name))
        store = shutil.copytree(self.empty, folder / "undisturbed")
        sweep = self.sweep(folder, store)
        assert sweep.process.wait(PATIENCE) == 0, sweep.said()
        self.wanted = tables(store)
        self.total = len(self.wanted[0])
        assert sweep.summary()["computed"] == self.total
        assert len(set(finished(store).values())) > FILES  # cohorts

    def sweep(self, folder, store, name="whole", cluster=None, prefect=None):
        where = ["--cluster", cluster.address] if cluster else ["--workers", "2"]
        if prefect:
            where += ["--prefect"]
        words = [self.folder / f"{name}.toml", "--store", store, *where]
        return DisturbedSweep(folder, words, store, SHORT | (prefect or {}), cluster)

    def check(self, store):
        """The store is what the undisturbed sweep leaves."""
        assert tables(store) == self.wanted
        for table, rows in zip(("runs", "curves"), self.wanted, strict=True):
            assert pq.read_table(store / "results" / table).num_rows == len(rows)
        assert [*store.glob("results/parts/*.parquet"), *store.glob("checkpoints/*.koco")] == []


@pytest.fixture(scope="module")
def sweeps(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sweeps")
    yield Sweeps(folder)
    shutil.rmtree(folder)


@pytest.mark.parametrize(
    "seed",
    [
        pytest.param(seed, marks=[] if seed in ORDINARY else [pytest.mark.soak])
        for seed in range(40)
    ],
)
def test_killed__the_same_command_goes_on_to_the_same_tables(seed, sweeps, tmp_path):
    blows, store, cluster = drawn(seed), tmp_path / "store", None
    kinds = {blow.kind for blow in blows}
    with ExitStack() as stack:
        if "disk" in kinds:
            assert is_own_disk(store) or pytest.skip("needs to mount a disk of its own: root")
            stack.callback(subprocess.run, ["umount", "--lazy", store], check=True)
        shutil.copytree(sweeps.empty, store, dirs_exist_ok=True)
        if "scheduler" in kinds:
            cluster = OwnCluster(tmp_path / "cluster")
            stack.callback(cluster.close)
            cluster.begin()
        kept = {}
        for blow in (*blows, None):
            sweep = sweeps.sweep(tmp_path, store, cluster=cluster)
            stack.callback(sweep.process.kill)
            struck = blow is not None and sweep.reaches(blow)
            # the second may come too late: little was left to do
            assert struck or blow is not blows[0], sweep.said()
            if struck:
                sweep.strike(blow)
            before = kept
            if struck and blow.kind not in ENDING:
                kept = finished(store)  # while the sweep goes on
                assert kept.items() >= before.items()
            status, said = sweep.process.wait(PATIENCE), sweep.said()
            assert "Traceback" not in said, said
            if not struck or blow.kind not in ENDING or (needless(blow) and status == 0):
                break
            check_end(blow, status, said, store)
            if cluster and blow.kind != "disk":
                cluster.close()  # its workers would go on, while what is done is counted
                cluster.begin()
            sweep.wait_for_its_processes()
            if blow.kind == "disk":
                (store / "filled").unlink()
            kept = finished(store)
            assert kept.items() >= before.items()
        assert status == 0, said
        sweep.wait_for_its_processes()
        told = sweep.summary()
        # none is lost and none is done twice, whoever was killed while it went on
        assert (told["runs"], told["computed"]) == (sweeps.total, sweeps.total - len(before))
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
    wanted = ["finished work is kept", "To continue", "koco sweep"]
    if blow.kind == "scheduler":
        wanted += ["the scheduler is gone|does not answer", "start"]
    else:
        wanted += [re.escape(str(store)), "no disk space", "free some space"]
    assert [words for words in wanted if not re.search(words, last)] == [], last


@pytest.mark.parametrize(
    "seed", [seed if seed < 2 else pytest.param(seed, marks=pytest.mark.soak) for seed in range(8)]
)
def test_nanny_killed__its_worker_ends_and_the_sweep_has_the_same_tables(seed, sweeps, tmp_path):
    """The parent of a worker: in a cluster of its own it is a process, `dask worker`. Another one
    joins.
    """
    store, draw = shutil.copytree(sweeps.empty, tmp_path / "store"), random.Random(seed)
    blow = replace(Blow.drawn(draw, "nanny", FILES // 2), phase="computing")
    cluster = OwnCluster(tmp_path / "cluster")
    with ExitStack() as stack:
        stack.callback(cluster.close)
        cluster.begin()
        sweep = sweeps.sweep(tmp_path, store, cluster=cluster)
        stack.callback(sweep.process.kill)
        assert sweep.reaches(blow), sweep.said()
        nanny = cluster.running[f"worker-{blow.choice}"]
        children = psutil.Process(nanny.pid).children(recursive=True)
        assert children
        nanny.kill()
        cluster.worker("another", cluster.address)
        assert sweep.process.wait(PATIENCE) == 0, sweep.said()
        assert "Traceback" not in sweep.said()
        wait_until(lambda: psutil.wait_procs(children, 0.1)[1] == [], "its worker is left", 30.0)
        sweep.wait_for_its_processes()
    sweeps.check(store)


def servers_of(home):
    """The processes of Prefect's server with this home."""
    words = {"prefect", "uvicorn"}  # one of them is in the server's command line
    return [
        one
        for one in psutil.process_iter(["environ", "cmdline"])
        if (one.info["environ"] or {}).get("PREFECT_HOME") == str(home)
        and words & {*(one.info["cmdline"] or ())}
    ]


@pytest.mark.parametrize(
    ("how", "seed"),
    [
        ("SIGKILL", 0),
        ("SIGSTOP", 1),
        *(
            pytest.param(how, seed, marks=pytest.mark.soak)
            for how, seed in product(("SIGKILL", "SIGSTOP"), range(2, 10))
        ),
    ],
)
def test_prefect_s_server_gone__the_sweep_ends_as_if_nothing_had_happened(
    how, seed, sweeps, tmp_path
):
    """For even seeds the sweep's own server, for odd ones one that was there before."""
    store, draw = shutil.copytree(sweeps.empty, tmp_path / "store"), random.Random(f"{how} {seed}")
    home = {"PREFECT_HOME": str(tmp_path / "prefect"), "PREFECT_API_URL": ""}
    with ExitStack() as stack:
        if seed % 2:
            home["PREFECT_API_URL"] = stack.enter_context(prefect_server(tmp_path))
        sweep = sweeps.sweep(tmp_path, store, prefect=home)
        stack.callback(sweep.process.kill)
        wait_until(lambda: servers_of(tmp_path / "prefect"), "Prefect does not start")
        assert sweep.reaches(Blow.drawn(draw, how, FILES)), sweep.said()
        for server in servers_of(tmp_path / "prefect"):
            server.send_signal(signal.Signals[how])
        assert sweep.process.wait(PATIENCE) == 0, sweep.said()
        assert "Traceback" not in sweep.said()
        # beside the page of the flow run, which is named while the server still answers
        assert len(re.findall("^Prefect", sweep.said(), re.M)) <= 1, sweep.said()
        assert sweep.summary()["report"]
        sweep.wait_for_its_processes()
    sweeps.check(store)


def test_sweeps_at_once__share_a_store_and_of_two_that_are_the_same_one_is_refused(
    sweeps, tmp_path
):
    store = shutil.copytree(sweeps.empty, tmp_path / "store")
    names = ("whole", "whole", "some")
    whole, again, some = (sweeps.sweep(tmp_path, store, name) for name in names)
    statuses = sorted(sweep.process.wait(PATIENCE) for sweep in (whole, again))
    assert (some.process.wait(PATIENCE), statuses[0]) == (0, 0), some.said()
    said = whole.said() + again.said()
    assert statuses[1] == 0 or (statuses[1], "the sweep whole is running on" in said) == (2, True)
    sweeps.check(store)


def killed(store, source, at):
    """Prepare in another process that is killed before its change number `at`, never for 0."""
    words = [sys.executable, "-m", "tests.helpers.prepare_until_killed", store, source, str(at)]
    return subprocess.run(words, env=environment(), capture_output=True, text=True)


@pytest.mark.parametrize("moments", [5, pytest.param(30, marks=pytest.mark.soak)])
def test_killed_at_any_moment__leaves_the_old_dataset_or_the_new_one(moments, tmp_path):
    old, new = random_source(tmp_path / "old.svm", 1), random_source(tmp_path / "new.svm", 2)
    hashes = [
        prepare_file(tmp_path / "other", "x", source, scale="unit-rows").dataset_hash
        for source in (old, new)
    ]
    store = tmp_path / "first" / "store"
    prepare_file(store, "x", old, scale="unit-rows", values_per_shard=500)
    changes = int(killed(store, new, 0).stdout)
    assert changes > 20
    left = set()
    for seed in range(moments):
        store = tmp_path / f"seed-{seed}" / "store"
        prepare_file(store, "x", old, scale="unit-rows", values_per_shard=500)
        ended = killed(store, new, int(np.random.default_rng([seed, 5]).integers(1, changes + 1)))
        assert ended.returncode == -signal.SIGKILL, ended.stderr
        assert dataset_problems(store, "x") == []
        left.add(load_manifest(store, "x").dataset_hash)
        again = prepare_file(store, "x", new, scale="unit-rows", values_per_shard=300)
        assert again.dataset_hash == hashes[1]
        assert dataset_problems(store, "x") == []
        assert not (store / ".staging").exists()
    assert left <= set(hashes)
    assert moments < 30 or len(left) == 2  # killed before it was published and after


def test_stopped_by_hand_with_workers__says_so_in_one_line_and_leaves_nothing(tmp_path):
    rows = (b"%d %d:%d\n" % (t % 2, 1 + t % 50, t % 97) for t in range(50_000))
    (tmp_path / "a.svm").write_bytes(b"".join(rows) * 200)
    code = "import flows.cli, flows.preparing.preparation as p; p.LARGE = 0; flows.cli.main()"
    files = ["--from", tmp_path / "a.svm", "--store", tmp_path / "s"]
    words = [sys.executable, "-c", code, "prepare", "x", "--workers", "2", *files]
    begun = subprocess.Popen(words, stderr=subprocess.PIPE, text=True, start_new_session=True)
    while begun.poll() is None and not list(tmp_path.glob("s/.staging/*/scratch/chunk-*")):
        time.sleep(0.02)
    os.killpg(begun.pid, signal.SIGINT)  # as a terminal does: to all processes of the group
    said = begun.communicate(timeout=300)[1]  # ends when no process has stderr open: none is left
    assert begun.returncode == 1, said
    assert re.fullmatch("reading .*\nkoco: stopped.*", "\n".join(said.splitlines())), said
    assert not (tmp_path / "s").exists()


def test_staging_folder__goes_while_workers_still_write_in_it(tmp_path):
    writing = threading.Event()

    def write(folder):
        for number in count():
            try:
                (folder / f"chunk-{number}").touch()
            except FileNotFoundError:
                return
            writing.set()

    for _ in range(5):
        with staging_folder(tmp_path / "store") as folder:
            writer = threading.Thread(target=write, args=(folder,))
            writer.start()
            assert writing.wait(60)
        writer.join(60)
        assert not writer.is_alive()
        assert not (tmp_path / "store").exists()
        writing.clear()


def test_no_room__is_said_and_leaves_the_store_as_it_was(tmp_path):
    source, store = random_source(tmp_path / "a.svm", 1), tmp_path / "store"
    before = prepare_file(store, "x", source)
    source.write_text(source.read_text() * 200)
    done = subprocess.run(
        command("prepare", "x", "--replace", "--from", source, "--store", store, "--workers", 0),
        env=environment(),
        stderr=subprocess.PIPE,
        text=True,
        # of a file: what a full disk is, for one process
        preexec_fn=lambda: setrlimit(RLIMIT_FSIZE, (500_000, 500_000)),
    )
    assert done.returncode == 1
    assert f"no disk space to prepare x in {store}" in done.stderr.splitlines()[-1]
    assert load_manifest(store, "x") == before
    assert dataset_problems(store, "x") == []
    assert not (store / ".staging").exists()
