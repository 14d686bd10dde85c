"""A sweep from file to tables: the same numbers whatever executes it (this process, workers of this
machine, a scheduler by its address), none twice, none lost; the same refusals.
"""

import json
import os
import shutil
import signal
import subprocess
import threading
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from distributed import Client

from cluster.clusters import local_cluster
from cluster.executors import Executor
from cluster.reporting import reports_to
from flows.housekeeping import dataset_removal
from flows.sweeping.launch import launch
from flows.sweeping.request import SweepRequest
from flows.sweeping.status import statuses
from flows.views.views import Views
from koco_stream.engine import reporting
from koco_stream.engine.reporting import Report
from koco_stream.runs.schemas import CURVES, RUNS
from storage import results
from storage.collecting import collect
from storage.preparing.prepare import Preparing, map_on_dask, prepare_file, prepare_source
from storage.results import finished_runs, read_curves, read_runs, result_files
from storage.sources.reading import source_of
from storage.sources.source import Reading
from tests.helpers.project import command, environment, wait_until
from tests.helpers.refusal import refusal
from tests.helpers.sweeps import MINUTE, SWEEP, compiled, plan_for, run_here, swept, tables, written


def test_reading__while_another_process_collects(small_store, reference, tmp_path, monkeypatch):
    files = tmp_path / "serial" / "results" / "parts"
    reads = ((finished_runs, 0), (read_runs, 0), (read_curves, 1))
    for listing, (read, which) in product(("table_files", "result_files"), reads):
        shutil.rmtree(small_store / "results", ignore_errors=True)
        shutil.copytree(files, small_store / "results" / "parts")
        listed = getattr(results, listing)

        def then_collected(*words, listed=listed):
            found = listed(*words)
            monkeypatch.undo()
            collect(small_store)
            return found

        monkeypatch.setattr(results, listing, then_collected)
        assert len(read(small_store)) == len(reference[which]), (listing, read)


@pytest.mark.parametrize("how", ["replaced", "removed"])
def test_dataset__that_changes_while_it_is_swept__ends_its_own_runs_and_no_number_is_of_both(
    how, small_store, tmp_path, monkeypatch
):
    todo, manifests = plan_for(small_store, tmp_path, 1, 1)
    compiled(todo.runs, manifests.values())
    reference = shutil.copytree(small_store, tmp_path / "reference")
    run_here(reference, todo.cohorts)
    wanted = {row["run_id"]: row for row in tables(reference)[0]}
    (tmp_path / "other.csv").write_text("a,b\n1,2\n3,4\n")

    ids = {one.cohort_id for one in todo.cohorts if one.stream.dataset == "real"}

    def change(report):
        if report.cohort_id in ids:
            listeners.clear()
            if how == "removed":
                dataset_removal(str(small_store), "real")[1]()
            else:
                prepare_file(small_store, "real", tmp_path / "other.csv")

    listeners = [change]
    monkeypatch.setattr(reporting, "EVERY", 0.0)
    monkeypatch.setattr(reporting, "listeners", listeners)
    refusal("real", run_here, small_store, todo.cohorts, block_rows=100)
    found = {row["run_id"]: row for row in tables(small_store)[0]}
    assert found.items() <= wanted.items()
    left = {wanted[run_id]["dataset"] for run_id in wanted.keys() - found.keys()}
    assert left == {"real"}


def test_summary__keeps_streams_apart(small_store, tmp_path):
    """They are of one dataset, which several tables have."""
    windows = 'order = "shuffled-in-windows"'
    ways = ("", 'order = "shuffled"', "max_rows = 100", "max_rows = 200", windows)
    tables = (
        f'[[dataset]]\nname = "real"\n{way}\n' for way in (*ways, f"{windows}\nwindow_rows = 9")
    )
    swept(tmp_path, "".join(tables) + '[[learner]]\nname = "OGD"')
    found = [
        (row["order"], row["window_rows"], row["max_rows"], row["n_runs"])
        for row in Views(small_store).rows("FROM configurations")
    ]
    assert found == [
        ("as-stored", None, None, 1),
        ("as-stored", None, 100, 1),
        ("as-stored", None, 200, 1),
        ("shuffled", None, None, 1),
        ("shuffled-in-windows", 9, None, 1),
        ("shuffled-in-windows", 500, None, 1),
    ]


def test_command_line__sweep_twice_results_report(koco, small_store, inside):
    (inside / "try.toml").write_text(SWEEP)
    sweep, store = ("sweep", "try.toml", "--json"), ("--store", small_store)
    planned = json.loads(koco(*sweep, *store, "--dry-run", status=0).stdout)
    summary = json.loads(koco(*sweep, *store, status=0).stdout)
    assert summary["runs"] == summary["computed"] == planned["runs"] == planned["to compute"]
    page = Path(summary["report"]).read_text()
    assert "<title>Sweep try" in page
    assert "default-src 'none'" in page
    again = koco(*sweep, *store, status=0)
    assert json.loads(again.stdout)["computed"] == 0
    assert "nothing to compute" in again.stderr
    for word in ("try.toml", "tri"):
        koco("report", word, *store, status=2)


def test_command_line__wrong_input_ends_with_2_and_writes_nothing(koco, inside):
    (inside / "a.toml").write_text(SWEEP.replace("AdaGrad", "AdaGard"))
    (inside / "b.toml").write_text(SWEEP)
    (inside / "c.toml").write_text(MINUTE)
    (inside / "bad.csv").write_text("1,2\n1\n")
    before = sorted(p.name for p in inside.iterdir())
    for words, message in (
        (("sweep", "a.toml"), "did you mean 'AdaGrad'"),
        (("sweep", "b.toml"), "koco prepare sparse --from"),
        (("sweep", "c.toml", "--cluster", "tcp://10.0.0.1:8786"), "not on the loopback interface"),
        (("sweep", "none.toml"), "no sweep file, packaged sweep or dataset"),
        (("prepare", "x", "--from", "bad.csv"), "bad.csv, line 2"),
        (("prepare", "x", "--from", "none.csv"), "no such file"),
        (("prepare", "../x", "--from", "bad.csv"), "cannot be a dataset's name"),
        (("results",), "there is no store"),
        (("swep",), "swep"),
    ):
        done = koco(*words, status=2)
        assert message in done.stderr, words
        assert "Traceback" not in done.stderr
    assert sorted(p.name for p in inside.iterdir()) == before


@pytest.mark.system
@pytest.mark.parametrize(
    "interrupt",
    [
        # a terminal sends it to all processes of the group
        pytest.param(lambda pid: os.killpg(pid, signal.SIGINT), id="Ctrl-C"),
        # as a batch system does
        pytest.param(lambda pid: os.killpg(pid, signal.SIGTERM), id="end-of-job"),
        pytest.param(lambda pid: os.kill(pid, signal.SIGTERM), id="kill", marks=pytest.mark.soak),
    ],
)
def test_interrupted_sweep__ends_at_once_and_leaves_no_process(interrupt, tmp_path):
    begun = subprocess.Popen(
        command(
            "sweep",
            written(tmp_path, MINUTE, "s.toml"),
            "--store",
            tmp_path / "store",
            "--workers",
            1,
        ),
        env=environment(),
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    wait_until(
        lambda: begun.poll() is not None or result_files(tmp_path / "store"), "nothing is computed"
    )
    interrupt(begun.pid)
    said = begun.communicate(timeout=300)[1]  # ends when no process has stderr open: none is left
    assert begun.returncode == 1, said
    assert "koco: stopped; finished work is kept" in said
    assert "Traceback" not in said
    assert [one.state for one in statuses(tmp_path / "store")] == ["stopped"]


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
    where = (
        str(written(tmp_path, SWEEP, "try.toml")),
        str(small_store),
        0,
        client.scheduler.address,
    )
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
    source = source_of(
        [written(tmp_path, "".join(lines(700)), "a.svm")], Reading(), block_bytes=900
    )
    manifests = []
    for name, how in (("one", map), ("two", partial(map_on_dask, client))):
        options = Preparing(scale=scale, values_per_shard=400, parallel_map=how)
        manifests.append(prepare_source(tmp_path / name, "x", source, options))
    assert manifests[0] == manifests[1]
    assert len(manifests[0].shards) > 5


def test_preparing__names_the_first_wrong_line_once(client, tmp_path, capfd):
    text = list(lines(400))
    text[150], text[300] = "1 3:x\n", "1 4:y\n"
    source = source_of([written(tmp_path, "".join(text), "a.svm")], Reading(), block_bytes=500)
    for how in (map, partial(map_on_dask, client)):
        refusal(
            r"a\.svm, line 151, column 5: the value of feature 3 is 'x'",
            prepare_source,
            tmp_path / "store",
            "x",
            source,
            Preparing(parallel_map=how),
        )
        assert not (tmp_path / "store").exists()
    assert "Traceback" not in capfd.readouterr().err  # from the workers


@pytest.mark.long
def test_work_that_no_worker_survives__is_an_error_of_the_environment(client):
    refusal("killed at the same chunk", list, map_on_dask(client, os._exit, [1]), by=OSError)
