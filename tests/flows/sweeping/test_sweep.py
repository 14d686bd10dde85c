"""A sweep from file to tables: the same numbers however it is run, none twice, none lost."""

import json
import os
import re
import shutil
import signal
import subprocess
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cluster.executors import run_on_dask, run_serially
from cluster.local import local_cluster
from flows.sweeping.progress import statuses
from flows.tables.tables import summary_of
from koco_stream import OjaSON
from koco_stream.runs.schemas import CURVES, RUNS, curve_points
from koco_stream.streams.manifest import load_manifest
from koco_stream.streams.reader import StreamReader
from koco_stream.streams.stream import Stream
from storage import results
from storage.collecting import collect
from storage.results import finished_runs, read_curves, read_runs, result_files
from tests.helpers.project import command, environment, wait_until
from tests.helpers.sweeps import compiled, run_here, tables
from tests.helpers.swept import MINUTE, SWEEP, koco, plan_for, swept


@pytest.fixture
def serial(small_store, tmp_path):
    """A store with the results of the serial executor, not collected yet."""
    todo, manifests = plan_for(small_store, tmp_path, 1)
    store = shutil.copytree(small_store, tmp_path / "serial")
    compiled(todo.runs, manifests.values())
    assert sum(r.runs for r in run_here(store, todo.cohorts)) == len(todo.runs)
    return store


@pytest.fixture
def reference(serial):
    return tables(serial)


def test_tables__do_not_depend_on_workers_cohorts_or_blocks(small_store, tmp_path, reference):
    for workers, block_rows, cohort_runs in (
        (0, 500, 1),
        (1, 64, 4096),
        (2, 4096, 1),
        (4, 100, 4096),
    ):
        store = str(shutil.copytree(small_store, tmp_path / f"dask{workers}"))
        todo, _ = plan_for(small_store, tmp_path, workers, cohort_runs)
        assert cohort_runs > 1 or len(todo.cohorts) == len(todo.runs)
        if workers:
            with local_cluster(workers) as client:
                run_on_dask(client, store, "try", todo.cohorts, lambda receipt: None, block_rows)
        else:
            run_serially(store, "try", todo.cohorts, lambda receipt: None, block_rows)
        assert tables(store) == reference
        assert collect(store) == len(todo.runs)
        assert tables(store) == reference
        for name, columns in (("runs", RUNS), ("curves", CURVES)):
            fields = pq.read_table(Path(store) / "results" / name).schema
            found = [(field.name, bool(field.metadata[b"meaning"])) for field in fields]
            assert found == [(column.name, True) for column in columns]


def test_runs__equal_the_python_interface(small_store, tmp_path, reference):
    for row in reference[0]:
        if row["learner"] != "OjaSON" or row["sketch_size"] != 3 or row["fit_intercept"]:
            continue
        stream = Stream(
            row["dataset"],
            row["dataset_hash"],
            row["order"],
            row["order_seed"],
            row["positive_class"],
        )
        block = StreamReader(small_store, stream).whole()
        rows = block.rows
        X = np.zeros((rows.n_rows, rows.n_features))
        for t in range(rows.n_rows):
            a, b = rows.indptr[t], rows.indptr[t + 1]
            X[t, rows.indices[a:b] if rows.index_stride else rows.indices] = rows.values[a:b]
        model = OjaSON(3, row["alpha"], sketch_start="random", seed=row["learner_seed"])
        predictions = model.progressive(X, block.labels)
        losses = (predictions - block.labels) ** 2
        assert row["mean_loss"] == np.cumsum(losses)[-1] / len(X)
        least = np.linalg.lstsq(X, block.labels, rcond=None)[0]
        assert row["regret"] == pytest.approx(
            losses.sum() - ((X @ least - block.labels) ** 2).sum(), abs=1e-6
        )
        points = [c for c in reference[1] if c["run_id"] == row["run_id"]]
        assert [p["t"] for p in points] == curve_points(len(X)).tolist()
        assert [p["cumulative_loss"] for p in points] == [
            np.cumsum(losses)[p["t"] - 1] for p in points
        ]
        if load_manifest(small_store, row["dataset"]).task == "regression":
            assert row["error_rate"] is None
        else:
            assert row["error_rate"] == ((predictions >= 0) != (block.labels > 0)).mean()


def test_reading__while_another_process_collects(serial, tmp_path, reference, monkeypatch):
    files = shutil.copytree(serial / "results" / "parts", tmp_path / "parts")
    for listing in ("table_files", "result_files"):
        for read in (finished_runs, read_runs, read_curves):
            shutil.rmtree(serial / "results")
            shutil.copytree(files, serial / "results" / "parts")
            listed = getattr(results, listing)

            def then_collected(*words, listed=listed):
                found = listed(*words)
                monkeypatch.undo()
                collect(serial)
                return found

            monkeypatch.setattr(results, listing, then_collected)
            expected = reference[1] if read is read_curves else reference[0]
            assert len(read(serial)) == len(expected), (listing, read)


def test_summary__keeps_streams_apart(small_store, tmp_path):
    windows = 'order = "shuffled-in-windows"'
    for name, more in (
        ("a", ""),
        ("b", 'order = "shuffled"'),
        ("c", "max_rows = 100"),
        ("d", "max_rows = 200"),
        ("e", windows),
        ("f", f"{windows}\nwindow_rows = 9"),
    ):
        swept(tmp_path, f'[[dataset]]\nname = "real"\n{more}\n[[learner]]\nname = "OGD"', name)
    runs = read_runs(small_store)
    found = [
        (row["order"], row["window_rows"], row["max_rows"], row["n_runs"])
        for row in summary_of(runs)
    ]
    assert found == [
        ("as-stored", None, None, 1),
        ("as-stored", None, 100, 1),
        ("as-stored", None, 200, 1),
        ("shuffled", None, None, 1),
        ("shuffled-in-windows", 9, None, 1),
        ("shuffled-in-windows", 500, None, 1),
    ]
    other = [{**row, "dataset_hash": "other"} for row in runs.to_pylist()]
    both = pa.concat_tables([runs, pa.Table.from_pylist(other, runs.schema)])
    assert len(summary_of(both)) == 12


def test_command_line__sweep_twice_results_report(small_store, tmp_path):
    (tmp_path / "try.toml").write_text(SWEEP)
    store = ("--store", small_store)
    planned = json.loads(
        koco("sweep", "try.toml", *store, "--dry-run", "--json", cwd=tmp_path).stdout
    )
    first = koco("sweep", "try.toml", *store, "--json", "--workers", "2", cwd=tmp_path, status=0)
    summary = json.loads(first.stdout)
    assert summary["runs"] == summary["computed"] == planned["runs"] == planned["to compute"]
    page = Path(summary["report"]).read_text()
    assert "<title>Sweep “try”" in page
    elsewhere = set(re.findall(r"[\w.+-]+://[^/\s\"'<>]*", page))
    assert elsewhere <= {"http://www.w3.org", "http://purl.org", "http://creativecommons.org"}
    again = koco("sweep", "try.toml", *store, "--json", "--workers", "2", cwd=tmp_path)
    assert json.loads(again.stdout)["computed"] == 0
    assert "nothing to compute" in again.stderr
    for word in ("try.toml", "tri"):
        koco("report", word, *store, cwd=tmp_path, status=2)


def test_command_line__wrong_input_ends_with_2_and_writes_nothing(koco, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.toml").write_text(SWEEP.replace("AdaGrad", "AdaGard"))
    (tmp_path / "b.toml").write_text(SWEEP)
    (tmp_path / "c.toml").write_text(MINUTE)
    (tmp_path / "bad.csv").write_text("1,2\n1\n")
    before = sorted(p.name for p in tmp_path.iterdir())
    for words, message in (
        (("sweep", "a.toml"), "did you mean 'AdaGrad'"),
        (("sweep", "b.toml"), "koco prepare sparse --from"),
        (("sweep", "c.toml", "--cluster", "tcp://10.0.0.1:8786"), "not on the loopback interface"),
        (("sweep", "none.toml"), "no such sweep file"),
        (("prepare", "x", "--from", "bad.csv"), "bad.csv, line 2"),
        (("prepare", "x", "--from", "none.csv"), "no such file"),
        (("prepare", "../x", "--from", "bad.csv"), "cannot be a dataset's name"),
        (("results",), "there is no store"),
        (("swep",), "swep"),
    ):
        done = koco(*words, status=2)
        assert message in done.stderr, words
        assert "Traceback" not in done.stderr
    assert sorted(p.name for p in tmp_path.iterdir()) == before


def test_command_line__says_what_is_wrong_as_a_process_too(tmp_path):
    (tmp_path / "a.toml").write_text(SWEEP.replace("AdaGrad", "AdaGard"))
    done = koco("sweep", "a.toml", cwd=tmp_path, status=2)
    assert "did you mean 'AdaGrad'" in done.stderr
    assert "Traceback" not in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["a.toml"]


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("", ["KOCO_CACHE", "--store"]),
        *((name, ["Example:"]) for name in ("prepare", "sweep", "results", "report", "datasets")),
    ],
)
def test_help__has_an_example_and_names_what_is_written(command, said, tmp_path):
    done = koco(*command.split(), "--help", cwd=tmp_path, status=0)
    assert [word for word in said if word not in done.stdout] == []


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
    (tmp_path / "s.toml").write_text(MINUTE)
    begun = subprocess.Popen(
        command("sweep", tmp_path / "s.toml", "--store", tmp_path / "store", "--workers", 1),
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
