"""A sweep from file to tables: the same numbers however it is run, none twice, none lost."""

import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cluster.executors import run_on_dask, run_serially
from cluster.local import local_cluster
from flows.results.tables import summary_of
from flows.sweep.progress import statuses
from koco_stream import OjaSON
from koco_stream.runs.cost_model import DataSize
from koco_stream.runs.planner import Limits, plan
from koco_stream.runs.schemas import CURVES, RUNS, curve_points
from storage import results
from storage.collecting import collect
from storage.results import finished_runs, read_curves, read_runs, result_files
from storage.verify import result_problems
from tests.helpers.project import command, environment
from tests.helpers.small_sweep import SWEEP, koco, plan_for
from tests.helpers.sweeps import checked, compiled, run_here, tables


def copy_of(store, place):
    shutil.copytree(store, place)
    return str(place)


@pytest.fixture
def reference(small_store, tmp_path):
    """The tables of the serial executor."""
    todo, manifests = plan_for(small_store, tmp_path, 1)
    store = copy_of(small_store, tmp_path / "serial")
    compiled(todo.runs, manifests.values())
    receipts = run_here(store, todo.cohorts)
    assert sum(r.runs for r in receipts) == len(todo.runs)
    return tables(store)


def test_tables__do_not_depend_on_workers_cohorts_or_blocks(small_store, tmp_path, reference):
    for workers, block_rows, cohort_runs in (
        (0, 500, 1),
        (1, 64, 4096),
        (2, 4096, 1),
        (4, 100, 4096),
    ):
        store = copy_of(small_store, tmp_path / f"dask{workers}")
        todo, _ = plan_for(small_store, tmp_path, workers, cohort_runs)
        assert cohort_runs > 1 or len(todo.cohorts) == len(todo.runs)
        if workers:
            with local_cluster(workers) as client:
                run_on_dask(client, store, "try", todo.cohorts, lambda receipt: None, block_rows)
        else:
            run_serially(store, "try", todo.cohorts, lambda receipt: None, block_rows)
        before = tables(store)
        assert before == reference
        assert collect(store) == len(todo.runs)
        assert tables(store) == reference
        for name, columns in (("runs", RUNS), ("curves", CURVES)):
            table = pq.read_table(Path(store) / "results" / name)
            assert table.column_names == [c.name for c in columns]
            assert all(table.schema.field(c.name).metadata[b"meaning"] for c in columns)


def test_runs__equal_the_python_interface(small_store, tmp_path, reference):
    from koco_stream.streams.manifest import load_manifest
    from koco_stream.streams.reader import StreamReader
    from koco_stream.streams.stream import Stream

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


def test_reading__while_another_process_collects(small_store, tmp_path, reference, monkeypatch):
    todo, _ = plan_for(small_store, tmp_path, 1)
    run_here(small_store, todo.cohorts)
    (tmp_path / "parts").mkdir()
    for path in result_files(small_store):
        shutil.copy(path, tmp_path / "parts")
    for listing in ("table_files", "result_files"):
        for read in (finished_runs, read_runs, read_curves):
            shutil.rmtree(Path(small_store) / "results")
            shutil.copytree(tmp_path / "parts", Path(small_store) / "results" / "parts")
            listed = getattr(results, listing)

            def then_collected(*words, listed=listed):
                found = listed(*words)
                monkeypatch.undo()
                collect(small_store)
                return found

            monkeypatch.setattr(results, listing, then_collected)
            rows = read(small_store)
            assert len(rows) == (len(reference[1]) if read is read_curves else len(reference[0]))


def test_results__of_an_older_version_have_nulls_where_it_had_no_column(
    small_store, tmp_path, reference
):
    todo, _ = plan_for(small_store, tmp_path, 1)
    run_here(small_store, todo.cohorts)
    for path in result_files(small_store):
        pq.write_table(pq.read_table(path).drop_columns("max_rows"), path)
    assert tables(small_store) == reference
    collect(small_store)
    assert tables(small_store) == reference


WINDOWS = 'order = "shuffled-in-windows"'


def test_verify__names_the_tables_of_results_that_were_altered(small_store, tmp_path, reference):
    store = Path(copy_of(small_store, tmp_path / "verified"))
    todo, _ = plan_for(small_store, tmp_path, 1)
    run_here(store, todo.cohorts[:1])
    collect(store)
    run_here(store, todo.cohorts[1:])
    assert result_problems(store) == []
    files = sorted((store / "results").rglob("*.parquet"))
    assert {path.parent.name for path in files} == {"runs", "curves", "parts"}
    for path in files:
        whole, table, noticed = path.read_bytes(), pq.read_table(path), 0
        end = len(whole) - 8 - int.from_bytes(whole[-8:-4], "little")  # of the pages
        places = range(4, end, max(end // 50, 1))
        for place in places:
            path.write_bytes(whole[:place] + bytes([whole[place] ^ 16]) + whole[place + 1 :])
            found = any(str(path) in problem for problem in result_problems(store))
            # a page's header says more than is needed to read it
            assert found or pq.read_table(path).equals(table), (path, place)
            noticed += found
        assert noticed > len(places) / 4
        path.write_bytes(whole)
    (curves,) = (store / "results" / "curves").iterdir()
    curves.unlink()
    (problem,) = result_problems(store)
    assert "the curves of its runs are missing" in problem


def test_summary__keeps_streams_apart(small_store, tmp_path):
    for name, more in (
        ("a", ""),
        ("b", 'order = "shuffled"'),
        ("c", "max_rows = 100"),
        ("d", "max_rows = 200"),
        ("e", WINDOWS),
        ("f", f"{WINDOWS}\nwindow_rows = 9"),
    ):
        spec = tmp_path / f"{name}.toml"
        spec.write_text(
            f'name = "{name}"\n[[dataset]]\nname = "real"\n{more}\n[[learner]]\nname = "OGD"'
        )
        runs = checked(spec, small_store).runs
        run_serially(
            str(small_store),
            name,
            plan(
                runs, {runs[0].stream.dataset_hash: DataSize(500, 6, 3000)}, Limits(1, 4 << 30)
            ).cohorts,
            print,
        )
    found = [
        (row["order"], row["window_rows"], row["max_rows"], row["n_runs"])
        for row in summary_of(read_runs(small_store))
    ]
    stored = [
        ("as-stored", None, None, 1),
        ("as-stored", None, 100, 1),
        ("as-stored", None, 200, 1),
    ]
    assert found == [
        *stored,
        ("shuffled", None, None, 1),
        ("shuffled-in-windows", 9, None, 1),
        ("shuffled-in-windows", 500, None, 1),
    ]
    again = read_runs(small_store)
    other = again.set_column(
        again.column_names.index("dataset_hash"),
        "dataset_hash",
        pa.array(["other"] * again.num_rows),
    )
    assert len(summary_of(pa.concat_tables([again, other.cast(again.schema)]))) == 12


def test_diverging_run__is_a_row_and_leaves_its_cohort_alone(small_store, tmp_path):
    spec = tmp_path / "d.toml"
    spec.write_text(
        'name = "d"\n[[dataset]]\nname = "real"\n[[learner]]\nname = "OGD"\nclip = 1e300\nstep_size'
        " = [0.01, 1e9]"
    )
    runs = checked(spec, small_store).runs
    todo = plan(runs, {runs[0].stream.dataset_hash: DataSize(500, 6, 3000)}, Limits(1, 4 << 30))
    assert len(todo.cohorts) == 1
    run_serially(str(small_store), "d", todo.cohorts, lambda receipt: None)
    rows = {row["step_size"]: row for row in read_runs(small_store).to_pylist()}
    assert rows[0.01]["status"] == "ok"
    assert rows[0.01]["rounds"] == 500
    assert rows[1e9]["status"] == "diverged"
    assert rows[1e9]["rounds"] < 500
    assert "round" in rows[1e9]["error"]


def test_command_line__sweep_twice_results_report(small_store, tmp_path):
    (tmp_path / "try.toml").write_text(SWEEP)
    store = ("--store", small_store)
    planned = json.loads(
        koco("sweep", "try.toml", *store, "--dry-run", "--json", cwd=tmp_path).stdout
    )
    first = koco("sweep", "try.toml", *store, "--json", "--workers", "2", cwd=tmp_path)
    assert first.returncode == 0, first.stderr
    summary = json.loads(first.stdout)
    assert summary["runs"] == summary["computed"] == planned["runs"] == planned["to compute"]
    page = Path(summary["report"]).read_text()
    assert "<title>Sweep “try”" in page
    assert "://" not in page.replace("http://www.w3.org", "").replace(
        "http://purl.org", ""
    ).replace("http://creativecommons.org", "")
    again = koco("sweep", "try.toml", *store, "--json", "--workers", "2", cwd=tmp_path)
    assert json.loads(again.stdout)["computed"] == 0
    assert "nothing to compute" in again.stderr
    listed = json.loads(koco("results", *store, "--runs", "--json", cwd=tmp_path).stdout)
    table = pq.read_table(Path(small_store) / "results" / "runs").to_pylist()
    assert len(listed) == len(table) == planned["runs"]
    assert {row["run_id"]: row["mean_loss"] for row in listed} == {
        row["run_id"]: row["mean_loss"] for row in table
    }
    curves = pq.read_table(Path(small_store) / "results" / "curves")
    assert set(curves.column("run_id").to_pylist()) == {row["run_id"] for row in table}
    best = json.loads(koco("results", *store, "--sweep", "try", "--json", cwd=tmp_path).stdout)
    assert sum(row["n_runs"] for row in best) == planned["runs"]
    assert koco("results", *store, "--csv", cwd=tmp_path).stdout.count("\n") == len(best) + 1
    for word in ("try.toml", "tri"):
        assert koco("report", word, *store, cwd=tmp_path).returncode == 2


def test_command_line__wrong_input_ends_with_2_and_writes_nothing(tmp_path):
    (tmp_path / "a.toml").write_text(SWEEP.replace("AdaGrad", "AdaGard"))
    (tmp_path / "b.toml").write_text(SWEEP)
    (tmp_path / "bad.csv").write_text("1,2\n1\n")
    before = sorted(p.name for p in tmp_path.iterdir())
    for words, message in (
        (("sweep", "a.toml"), "did you mean 'AdaGrad'"),
        (("sweep", "b.toml"), "koco prepare sparse --from"),
        (("sweep", "none.toml"), "no such sweep file"),
        (("prepare", "x", "--from", "bad.csv"), "bad.csv, line 2"),
        (("prepare", "x", "--from", "none.csv"), "no such file"),
        (("prepare", "../x", "--from", "bad.csv"), "cannot be a dataset's name"),
        (("results",), "there is no store"),
        (("swep",), "swep"),
    ):
        done = koco(*words, cwd=tmp_path)
        assert done.returncode == 2, (words, done.stderr)
        assert message in done.stderr
        assert "Traceback" not in done.stderr
    assert sorted(p.name for p in tmp_path.iterdir()) == before


@pytest.mark.parametrize("command", ["", "prepare", "sweep", "results", "report", "datasets"])
def test_help__has_an_example_and_names_what_is_written(command, tmp_path):
    done = koco(*command.split(), "--help", cwd=tmp_path)
    assert done.returncode == 0
    assert ("Example:" in done.stdout) == bool(command)
    if not command:
        assert "KOCO_CACHE" in done.stdout
        assert "--store" in done.stdout


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
    spec = 'name="s"\n[[dataset]]\nname="ill-conditioned"\n[[learner]]\nname="OjaSON"\n'
    spec += "alpha={powers_of_two=[-200,200]}\n"
    # a minute's work, so that it is interrupted in the middle on any machine
    spec += "clip=[1,2,3,4,5,6,7,8]\nsketch_rate=[1,2,3,4]"
    (tmp_path / "s.toml").write_text(spec)
    words = command("sweep", tmp_path / "s.toml", "--store", tmp_path / "store", "--workers", 1)
    begun = subprocess.Popen(
        words, env=environment(), stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    while begun.poll() is None and not result_files(tmp_path / "store"):
        time.sleep(0.05)
    interrupt(begun.pid)
    said = begun.communicate(timeout=300)[1]  # ends when no process has stderr open: none is left
    assert begun.returncode == 1, said
    assert "koco: stopped; what was finished is kept" in said
    assert "Traceback" not in said
    assert [one.state for one in statuses(tmp_path / "store")] == ["stopped"]
