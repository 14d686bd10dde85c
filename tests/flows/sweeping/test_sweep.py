"""A sweep from file to tables: the same numbers whatever executes it (this process, workers of this
machine, a scheduler by its address), none twice, none lost; the same refusals. What its file asks
for, its tables have, also of learners that are not ours.
"""

import json
import os
import queue
import shutil
import signal
import subprocess
from functools import partial
from itertools import product
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from distributed import Client
from sklearn.metrics import roc_auc_score

from cluster.clusters import local_cluster
from cluster.executors import Executor
from cluster.reporting import reports_to
from flows.from_python import SweepResult
from flows.housekeeping import dataset_removal
from flows.sweeping import planning
from flows.sweeping.file import read_sweep
from flows.sweeping.launch import launch, run_sweep
from flows.sweeping.planning import dry_run_of
from flows.sweeping.request import SweepRequest
from flows.sweeping.status import statuses
from flows.views.views import Views
from koco_stream.engine import reporting
from koco_stream.engine.reporting import Report
from koco_stream.errors import LearnerChanged
from koco_stream.io.source_files import source_files
from koco_stream.learners import learner_called, learner_named
from koco_stream.learners.files import send
from koco_stream.runs.schemas import CURVES, RUNS
from koco_stream.streams.reader import StreamReader
from storage import results
from storage.collecting import collect
from storage.preparing.prepare import Preparing, map_on_dask, prepare_file, prepare_source
from storage.results import finished_runs, read_curves, read_runs, result_files
from storage.sources.reading import source_of
from storage.sources.source import Reading
from tests.helpers.project import ROOT, command, environment, wait_until
from tests.helpers.refusal import refusal
from tests.helpers.sweeps import (
    MINUTE,
    SWEEP,
    checked,
    compiled,
    dense_rows,
    plan_for,
    run_here,
    stream_of,
    swept,
    tables,
    written,
)


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
    assert {wanted[run_id]["dataset"] for run_id in wanted.keys() - found.keys()} == {"real"}


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
    heard = queue.SimpleQueue()
    with reports_to(client, heard.put):
        client.submit(report_once).result()
        assert heard.get(timeout=30) == Report("told", 1)


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


MEASURED = """
name = "measured"
metrics = ["auc", "kappa", "rmse"]
window = 250
keep_predictions = true
[[dataset]]
name = "sea"
n_rows = 2000
every = 800
[[dataset]]
name = "slice-like"
n_rows = 1000
[[learner]]
name = "OjaSON"
sketch_size = 3
alpha = [1.0, 10.0]
[[learner]]
name = "AdaGrad"
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder in which the sweep has run."""
    folder = tmp_path_factory.mktemp("measured")
    run_sweep(checked(written(folder, MEASURED, "measured.toml"), folder / "store"))
    return folder


def test_metrics__are_those_of_the_kept_predictions(folder):
    found = SweepResult(folder / "store", "measured")
    runs = {row["run_id"]: row for row in found.runs.to_pylist()}
    assert len(runs) == 6
    kept = found.predictions.to_pandas().groupby("run_id")["prediction"]
    windows = found.windows.to_pandas().groupby("run_id")
    assert found.best().column_names[-3:] == ["auc_mean", "kappa_mean", "rmse_mean"]
    for run_id, row in runs.items():
        y = StreamReader(folder / "store", stream_of(folder / "store", row["dataset"])).whole()[1]
        scores = kept.get_group(run_id).to_numpy()
        mine = windows.get_group(run_id)
        assert mine["last"].tolist() == list(range(250, y.size + 1, 250))
        if row["dataset"].startswith("sea"):
            second, wrong = slice(250, 500), (scores >= 0) != (y >= 0)
            areas = roc_auc_score(y, scores), roc_auc_score(y[second], scores[second])
            found = row["auc"], *mine[["auc", "error_rate"]].iloc[1]
            assert np.allclose(found, [*areas, wrong[second].mean()])
            assert row["rmse"] is None
        else:
            assert np.isclose(row["rmse"], np.sqrt(np.mean((y - scores) ** 2)))
            assert (row["auc"], row["kappa"]) == (None, None)


def test_tables__are_read_by_pandas_polars_and_duckdb(folder):
    pl = pytest.importorskip("polars", reason="needs Polars: pip install polars")
    for name, rows in (("windows", 3 * 8 + 3 * 4), ("predictions", 3 * 2000 + 3 * 1000)):
        path = folder / "store" / "results" / name
        assert len(pd.read_parquet(path)) == rows
        assert pl.scan_parquet(f"{path}/*.parquet").collect().height == rows
        assert duckdb.sql(f"SELECT count(*) FROM '{path}/*.parquet'").fetchall() == [(rows,)]


def test_report__shows_windows_and_where_the_stream_changes(folder):
    page = (folder / "store" / "reports" / "measured.html").read_text()
    better = ("auc (higher is better)", "kappa (higher is better)", "rmse (lower is better)")
    told = ("Metrics over windows", *better, "At vertical lines the stream changes", ">auc<")
    assert [words for words in told if words not in page] == []


def test_dry_run__says_how_large_results_are(folder, tmp_path):
    found = dry_run_of(SweepRequest(str(written(tmp_path, MEASURED)), str(tmp_path / "store")))
    real = sum(path.stat().st_size for path in (folder / "store" / "results").rglob("*.parquet"))
    assert 0.5 < found["disk of the results in bytes"] / real < 2.0
    assert (
        found["runs"]
        == found["to compute"]
        == SweepResult(folder / "store", "measured").runs.num_rows
    )


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('"auc", ', '"acu", ', "line 3, metrics: no metric is called 'acu'; did you mean 'auc'"),
        ("window = 250", "window = 0", "window"),
        (
            '[[dataset]]\nname = "slice-like"\nn_rows = 1000\n',
            "",
            "the metric rmse is for regression, and the sweep has no such dataset",
        ),
        ("window = 250", "window = 2000000", "window: .*less than or equal to 1048576"),
    ],
)
def test_wrong_key__is_refused_with_the_remedy(old, new, said, tmp_path):
    refusal(said, checked, written(tmp_path, MEASURED.replace(old, new)), tmp_path / "store")


FOREIGN = """
class Mean:
    def __init__(self, shift=0.0, slow=0.0):
        self.shift, self.slow, self.total, self.n = shift, slow, 0.0, 0

    def predict_one(self, x):
        return self.shift + (self.total / self.n if self.n else 0.0)

    def learn_one(self, x, y):
        if self.slow:
            import time
            while self.n == 100:
                time.sleep(self.slow)
        self.total, self.n = self.total + y, self.n + 1


class Broken(Mean):
    def learn_one(self, x, y):
        super().learn_one(x, y)
        if self.n == 50:
            raise KeyError("nothing here")
"""
OWN = """
name = "own"
time_limit = 1.5
[[dataset]]
name = "ill-conditioned"
n_rows = 600
[[learner]]
name = "sub/nlms.py:NLMS"
step_size = [0.1, 0.5]
[[learner]]
name = "mine.py:Mean"
shift = [0.0, 0.5]
[[learner]]
name = "mine.py:Broken"
[[learner]]
name = "mine.py:Mean"
slow = 0.01
[[learner]]
name = "AdaGrad"
"""


@pytest.fixture
def spec(tmp_path):
    """A sweep file, with learners' files beside it, one of them in a folder."""
    (tmp_path / "sub").mkdir()
    shutil.copy(ROOT / "examples" / "nlms.py", tmp_path / "sub")
    (tmp_path / "mine.py").write_text(FOREIGN)
    return written(tmp_path, OWN)


def swept_rows(spec):
    """The rows of the sweep's runs, computed in this process, by learner and parameters."""
    run_sweep(checked(spec, spec.parent / "store"))
    rows = read_runs(spec.parent / "store").to_pylist()
    return {(row["learner"], row["params"], row["learner_code"]): row for row in rows}


def test_rows__stand_beside_ours_until_a_file_changes_and_failures_are_theirs_alone(spec):
    before = swept_rows(spec)
    found = {key[:2]: row for key, row in before.items()}
    learner = learner_named(learner_called("sub/nlms.py:NLMS", spec.parent))
    X, y = dense_rows(spec.parent / "store", "ill-conditioned,n_rows=600")
    mine = {
        row["step_size"]: (row["status"], row["numbers"], row["mean_loss"])
        for (name, _), row in found.items()
        if name == "nlms.py:NLMS"
    }
    losses = {step: (learner(step).progressive(X, y) - y) ** 2 for step in (0.1, 0.5)}
    assert mine == {step: ("ok", "own", np.cumsum(of)[-1] / 600) for step, of in losses.items()}
    for shift in (0.0, 0.5):
        row = found["mine.py:Mean", json.dumps({"shift": shift}, separators=(",", ":"))]
        assert (row["numbers"], row["status"], row["rounds"]) == ("foreign", "ok", 600)
        assert (row["seconds"] > 0.0, len(row["learner_code"])) == (True, 16)
    ended = {row["status"]: (key[0], row["error"]) for key, row in found.items() if row["error"]}
    assert {status: name for status, (name, _) in ended.items()} == {
        "failed": "mine.py:Broken",
        "stopped": "mine.py:Mean",
    }
    assert [said in ended["failed"][1] for said in ("round 50", "nothing here")] == [True] * 2
    assert "took longer than time_limit = 1.5 s (round 101)" in ended["stopped"][1]
    assert not checked(spec, spec.parent / "store").next_to_compute()
    text = OWN.replace("time_limit = 1.5", 'time_limit = "00:00:09"')
    (again,) = checked(
        written(spec.parent, text, "longer.toml"), spec.parent / "store"
    ).next_to_compute()
    assert [row["status"] for row in before.values() if row["run_id"] == again.run_id] == [
        "stopped"
    ]
    file = spec.parent / "sub" / "nlms.py"
    file.write_text(file.read_text().replace("if n2 == 0.0:", "if n2 <= 0.0:"))
    new = {key[:2]: row for key, row in swept_rows(spec).items() if key not in before}
    assert [key[0] for key in new] == ["nlms.py:NLMS"] * 2
    assert all(row["mean_loss"] == found[key]["mean_loss"] for key, row in new.items())


@pytest.mark.parametrize("what", ["the file", "the store's copy"])
def test_file_changed_while_the_sweep_runs__is_refused_by_name(spec, what, monkeypatch):
    store = spec.parent / "store"
    sweep, run = checked(spec, store), planning.run_cohorts
    (code,) = {one.files[0].code for one in sweep.runs if one.learner.startswith("nlms")}

    def changed_before_the_cohorts_run(*given):
        send(str(store), code)
        if what == "the file":
            with (spec.parent / "sub" / "nlms.py").open("a") as file:
                file.write("# another\n")
        else:
            monkeypatch.setattr(planning, "send", lambda *_: None)
            note = store / "learners" / f"{code}.json"
            note.write_text(note.read_text().replace("n2 == 0.0", "n2 <= 1.0"))
        run(*given)

    monkeypatch.setattr(planning, "run_cohorts", changed_before_the_cohorts_run)
    refusal(r"nlms\.py:NLMS was changed while its sweep ran", run_sweep, sweep, by=LearnerChanged)


def test_source__is_the_file_and_what_it_imports_beside_it(tmp_path):
    for name, text in {
        "a.py": "import b, numpy\ndef f():\n    from pack.c import g\n",
        "b.py": "import a\n",
        "other.py": "",
        "pack/__init__.py": "from . import d\n",
        "pack/c.py": "from .d import h\nfrom .. import e\n",
        "pack/d.py": "",
        "pack/unused.py": "",
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    assert list(source_files(tmp_path / "a.py")) == [
        "a.py",
        "b.py",
        "pack/__init__.py",
        "pack/c.py",
        "pack/d.py",
    ]


def test_helper_beside_the_file__is_part_of_its_identity(tmp_path):
    (tmp_path / "helped.py").write_text(
        "from rates_of_this_test import RATE\nfrom koco_stream import OGD\n"
        "class Mine(OGD):\n    rate = RATE\n"
    )
    codes = set()
    for rate in (0.1, 0.1, 0.2):
        (tmp_path / "rates_of_this_test.py").write_text(f"RATE = {rate}\n")
        codes.add(learner_called("helped.py:Mine", tmp_path))
    assert len(codes) == 2


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("shift = [0.0, 0.5]", "shfit = 1", "line 12, .*no argument 'shfit'; did you mean 'shift'"),
        ('mine.py:Mean"\nshift', 'mine.py:Meen"\nshift', "no class 'Meen'; did you mean 'Mean'"),
        ("slow = 0.01", "time_limit = 9", "time_limit is for all runs; give it above the first"),
    ],
)
def test_wrong_argument__is_refused_before_the_sweep_starts(spec, old, new, said):
    refusal(said, read_sweep, written(spec.parent, OWN.replace(old, new)))


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("none.py:A", "", "there is no file .*none.py; .*relative to the sweep file"),
        ("l.py:Nlsm", "class NLMS: pass", "no class 'Nlsm'; did you mean 'NLMS'"),
        ("l.py:A", "class A", "l.py:1: .*not Python"),
        ("l.py:A", "import nothing_of_this_name", "cannot be imported: ModuleNotFoundError"),
        ("l.py:A", "class A: pass", "learn_one"),
        ("l.py:A", "class A: pass", "partial_fit"),
        ("nothing_of_this_name.x:A", "", "is not installed; pip install nothing_of_this_name"),
        ("AdaGard", "", r"did you mean 'AdaGrad'\? \(a learner in a file is named 'file.py:Class'"),
    ],
)
def test_wrong_name__is_refused_with_its_line_and_the_remedy(tmp_path, name, text, said):
    (tmp_path / "l.py").write_text(text)
    (tmp_path / "s.toml").write_text(OWN.replace("sub/nlms.py:NLMS", name))
    refusal(rf"s.toml, line 8, learner 1, name: .*{said}", read_sweep, tmp_path / "s.toml")
