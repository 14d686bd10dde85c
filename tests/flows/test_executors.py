"""Whatever executes — this process, workers of this machine, a scheduler by its address — leaves
the same tables and datasets, and refuses the same.
"""

import os
import shutil
import threading
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from distributed import Client

from cluster.clusters import local_cluster
from cluster.executors import Executor
from cluster.reporting import reports_to
from flows.sweeping.launch import launch
from flows.sweeping.request import SweepRequest
from koco_stream import WrongInput
from koco_stream.engine import reporting
from koco_stream.engine.reporting import Report
from koco_stream.runs.schemas import CURVES, RUNS
from storage.collecting import collect
from storage.preparing.prepare import Preparing, map_on_dask, prepare_source
from storage.sources.reading import source_of
from storage.sources.source import Reading
from tests.helpers.sweeps import compiled, run_here, tables
from tests.helpers.swept import SWEEP, plan_for


@pytest.fixture(scope="module")
def client():
    """A client of two workers of this machine."""
    with local_cluster(2) as client:
        yield client


@pytest.fixture
def reference(small_store, tmp_path):
    """The tables of the sweep in one cohort a stream, run in this process."""
    todo, manifests = plan_for(small_store, tmp_path, 1)
    store = shutil.copytree(small_store, tmp_path / "serial")
    compiled(todo.runs, manifests.values())
    run_here(store, todo.cohorts)
    return tables(store)


def test_tables__do_not_depend_on_the_executor_nor_on_workers_cohorts_and_blocks(
    client, small_store, tmp_path, reference
):
    for where, workers, block_rows, cohort_runs in (
        (None, 0, 500, 1),
        (client, 1, 64, 4096),
        (client, 2, 4096, 1),
        (client, 4, 100, 4096),
    ):
        store = str(shutil.copytree(small_store, tmp_path / f"planned for {workers}"))
        todo, _ = plan_for(small_store, tmp_path, workers, cohort_runs)
        assert cohort_runs > 1 or len(todo.cohorts) == len(todo.runs)
        Executor(where, store, "try", lambda receipt: None, block_rows).run(todo.cohorts)
        assert tables(store) == reference
        assert collect(store) == len(todo.runs)
        assert tables(store) == reference
        for name, columns in (("runs", RUNS), ("curves", CURVES)):
            fields = pq.read_table(Path(store) / "results" / name).schema
            found = [(field.name, bool(field.metadata[b"meaning"])) for field in fields]
            assert found == [(column.name, True) for column in columns]


def test_scheduler_by_its_address__is_sent_the_library_s_functions_alone(
    client, small_store, tmp_path, reference, monkeypatch
):
    sent, arguments = [], set()
    for name in ("submit", "run", "run_on_scheduler", "map"):
        call = getattr(Client, name)

        def noted(self, function, *args, call=call, **kwargs):
            sent.append(function.__module__.split(".")[0])
            arguments.update(type(each).__module__.split(".")[0] for each in args)
            return call(self, function, *args, **kwargs)

        monkeypatch.setattr(Client, name, noted)
    (tmp_path / "try.toml").write_text(SWEEP)
    where = (str(tmp_path / "try.toml"), str(small_store), 0, client.scheduler.address)
    assert launch(SweepRequest(*where))["statuses"] == {"ok": len(reference[0])}
    assert tables(small_store) == reference
    assert len(sent) >= 3  # the preflight, the executor's question to the workers, a cohort
    assert set(sent) == {"koco_stream"}
    assert arguments <= {"builtins", "koco_stream"}


def report_once():
    """In a worker: a report, as a cohort of it would tell."""
    for listener in reporting.listeners:
        listener(Report("told", 1))


def test_workers_of_this_machine__report_to_the_sweep(client):
    """They preload what passes their reports on: without it the bar stands for a long cohort."""
    heard, arrived = [], threading.Event()

    def hear(report):
        heard.append(report.cohort_id)
        arrived.set()

    with reports_to(client, hear):
        client.submit(report_once).result()
        assert arrived.wait(30)
    assert heard == ["told"]


def lines(n):
    draw = np.random.default_rng(3)
    for t in range(n):
        features = np.sort(draw.choice(60, draw.integers(0, 9), replace=False)) + 1
        yield f"{t % 3} " + " ".join(f"{j}:{draw.random():.3g}" for j in features) + "\n"


@pytest.mark.parametrize("scale", ["none", "minmax", "tf-idf", "unit-mean-square"])
def test_preparing__gives_the_same_bytes(scale, client, tmp_path):
    (tmp_path / "a.svm").write_text("".join(lines(700)))
    source = source_of([tmp_path / "a.svm"], Reading(), block_bytes=900)
    manifests = []
    for name, how in (("one", map), ("two", partial(map_on_dask, client))):
        options = Preparing(scale=scale, values_per_shard=400, parallel_map=how)
        manifests.append(prepare_source(tmp_path / name, "x", source, options))
    assert manifests[0] == manifests[1]
    assert len(manifests[0].shards) > 5


def test_preparing__names_the_first_wrong_line_once(client, tmp_path, capfd):
    text = list(lines(400))
    text[150], text[300] = "1 3:x\n", "1 4:y\n"
    (tmp_path / "a.svm").write_text("".join(text))
    source = source_of([tmp_path / "a.svm"], Reading(), block_bytes=500)
    for how in (map, partial(map_on_dask, client)):
        with pytest.raises(
            WrongInput, match=r"a\.svm, line 151, column 5: the value of feature 3 is 'x'"
        ):
            prepare_source(tmp_path / "store", "x", source, Preparing(parallel_map=how))
        assert not (tmp_path / "store").exists()
    assert "Traceback" not in capfd.readouterr().err  # from the workers


@pytest.mark.long
def test_work_that_no_worker_survives__is_an_error_of_the_environment(client):
    with pytest.raises(OSError, match="killed at the same chunk"):
        list(map_on_dask(client, os._exit, [1]))
