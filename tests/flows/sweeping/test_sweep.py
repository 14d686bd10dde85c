"""A sweep from file to tables: the same numbers however it is run, none twice, none lost."""

import json
import os
import shutil
import signal
import subprocess
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from flows.housekeeping import dataset_removal
from flows.sweeping.status import statuses
from flows.views.views import Views
from koco_stream import OjaSON, WrongInput
from koco_stream.engine import reporting
from koco_stream.runs.schemas import curve_points
from koco_stream.streams.manifest import load_manifest
from storage import results
from storage.collecting import collect
from storage.preparing.prepare import prepare_file
from storage.results import finished_runs, read_curves, read_runs, result_files
from tests.helpers.project import command, environment, wait_until
from tests.helpers.sweeps import compiled, dense_rows, run_here, tables
from tests.helpers.swept import MINUTE, SWEEP, plan_for, swept


@pytest.fixture
def serial(small_store, tmp_path):
    """A store with the results of the serial executor, not collected yet."""
    todo, manifests = plan_for(small_store, tmp_path, 1)
    compiled(todo.runs, manifests.values())
    run_here(small_store, todo.cohorts)
    return small_store


def test_runs__equal_the_python_interface(serial):
    runs, curves = tables(serial)
    for row in runs:
        if row["learner"] != "OjaSON" or row["sketch_size"] != 3 or row["fit_intercept"]:
            continue
        given = (row[name] for name in ("dataset", "order", "order_seed", "positive_class"))
        X, y = dense_rows(serial, *given)
        model = OjaSON(3, row["alpha"], sketch_start="random", seed=row["learner_seed"])
        predictions = model.progressive(X, y)
        losses = (predictions - y) ** 2
        assert row["mean_loss"] == np.cumsum(losses)[-1] / len(X)
        least = np.linalg.lstsq(X, y, rcond=None)[0]
        assert row["regret"] == pytest.approx(losses.sum() - ((X @ least - y) ** 2).sum(), abs=1e-6)
        points = [c for c in curves if c["run_id"] == row["run_id"]]
        assert [p["t"] for p in points] == curve_points(len(X)).tolist()
        assert [p["cumulative_loss"] for p in points] == [
            np.cumsum(losses)[p["t"] - 1] for p in points
        ]
        if load_manifest(serial, row["dataset"]).task == "regression":
            assert row["error_rate"] is None
        else:
            assert row["error_rate"] == ((predictions >= 0) != (y > 0)).mean()


def test_reading__while_another_process_collects(serial, tmp_path, monkeypatch):
    reference = tables(serial)
    files = shutil.copytree(serial / "results" / "parts", tmp_path / "parts")
    reads = ((finished_runs, 0), (read_runs, 0), (read_curves, 1))
    for listing, (read, which) in product(("table_files", "result_files"), reads):
        shutil.rmtree(serial / "results")
        shutil.copytree(files, serial / "results" / "parts")
        listed = getattr(results, listing)

        def then_collected(*words, listed=listed):
            found = listed(*words)
            monkeypatch.undo()
            collect(serial)
            return found

        monkeypatch.setattr(results, listing, then_collected)
        assert len(read(serial)) == len(reference[which]), (listing, read)


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
    with pytest.raises(WrongInput, match="real"):
        run_here(small_store, todo.cohorts, block_rows=100)
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


def test_command_line__sweep_twice_results_report(koco, small_store, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "try.toml").write_text(SWEEP)
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
    assert sorted(p.name for p in tmp_path.iterdir()) == before


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
