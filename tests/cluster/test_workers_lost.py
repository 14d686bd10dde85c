"""Workers die: of a run that takes more memory than they have, or for no fault of any run."""

import os
import signal
import threading

import dask
import numpy as np
import pytest
from distributed import Client, LocalCluster

from cluster.executors import run_on_dask
from cluster.local import environment_kept
from cluster.settings import SETTINGS
from koco_stream.engine.result_file import result_files_folder
from koco_stream.runs.run import Cohort, Run
from koco_stream.streams.manifest import load_manifest
from koco_stream.streams.stream import Stream
from storage.preparing.prepare import prepare_file
from storage.results import read_runs

SMALL, LARGE = 1, 60  # the sketch's rows: of two million features sixty take a gigabyte


@pytest.fixture
def client():
    with (
        environment_kept(),
        dask.config.set(SETTINGS),
        LocalCluster(
            n_workers=1,
            threads_per_worker=1,
            host="127.0.0.1",
            dashboard_address="127.0.0.1:0",
            memory_limit="900MB",
            silence_logs=50,
        ) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        yield client


@pytest.fixture
def wide_store(tmp_path):
    draw = np.random.default_rng(0)
    lines = [
        f"{2 * draw.integers(2) - 1} "
        + " ".join(f"{j}:1" for j in np.unique(draw.integers(1, 2_000_000, 9)))
        for _ in range(40)
    ]
    (tmp_path / "wide.svm").write_text("\n".join(lines) + "\n")
    prepare_file(tmp_path / "store", "wide", tmp_path / "wide.svm", n_features=2_000_000)
    return str(tmp_path / "store")


def cohort_of(store, *learners):
    stream = Stream("wide", load_manifest(store, "wide").dataset_hash)
    return Cohort(
        stream,
        tuple(
            Run.of(stream, "OjaSON", {"sketch_start": "random", **params}, 1) for params in learners
        ),
        1.0,
    )


def test_run_that_kills_its_worker__is_found_and_marked(client, wide_store):
    cohort = cohort_of(wide_store, {"sketch_size": SMALL}, {"sketch_size": LARGE})
    receipts = []
    run_on_dask(client, wide_store, "try", [cohort], receipts.append)
    rows = {row["sketch_size"]: row for row in read_runs(wide_store).to_pylist()}
    assert rows[SMALL]["status"] == "ok"
    assert rows[LARGE]["status"] == "failed"
    assert "its worker died" in rows[LARGE]["error"]
    assert sum(receipt.runs for receipt in receipts) == 2


def test_worker_killed_once__is_not_the_run_s_fault(client, wide_store):
    cohorts = [
        cohort_of(wide_store, {"sketch_size": SMALL, "alpha": float(alpha)})
        for alpha in range(1, 7)
    ]
    killed = threading.Event()

    def kill_once(receipt):
        if not killed.is_set():
            killed.set()
            for worker in client.cluster.workers.values():
                os.kill(worker.pid, signal.SIGKILL)

    run_on_dask(client, wide_store, "try", cohorts, kill_once)
    assert {row["status"] for row in read_runs(wide_store).to_pylist()} == {"ok"}
    assert result_files_folder(wide_store).names() == sorted(
        f"{cohort.cohort_id}.parquet" for cohort in cohorts
    )
