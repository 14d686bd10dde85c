"""Results made elsewhere stand beside ours, marked as such; they are never taken for ours, imported
twice, or imported in part.
"""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from flows.report.document import write_report
from flows.tables.sweep_runs import runs_of
from flows.tables.tables import best_of
from koco_stream import WrongInput
from storage.importing import import_results
from storage.results import finished_runs
from storage.store import open_store
from storage.verify import result_problems

ROWS = [
    {"dataset": "a", "learner": "Other", "mean_loss": 0.5, "error_rate": 0.2, "depth": 3},
    {"dataset": "a", "learner": "Other", "mean_loss": 0.4, "error_rate": 0.1, "depth": 5},
    {"dataset": "a", "learner": "ONS", "mean_loss": 0.3, "error_rate": None, "alpha": 2.0},
]


@pytest.fixture
def written(tmp_path):
    """Write rows to a Parquet file."""

    def write(rows):
        pq.write_table(pa.Table.from_pylist(rows), tmp_path / "theirs.parquet")
        return tmp_path / "theirs.parquet"

    return write


def test_imported_rows__are_in_the_tables_and_reports_once(written, tmp_path, koco):
    store = tmp_path / "store"
    columns = {key: None for row in ROWS for key in row}
    file = written([{**columns, **row} for row in ROWS])
    assert import_results(store, file, "theirs") == (3, 3)
    assert import_results(store, file, "theirs") == (0, 3)
    runs = runs_of(store, "theirs").to_pylist()
    assert {row["numbers"] for row in runs} == {"imported"}
    others = [json.loads(row["params"]) for row in runs if row["learner"] == "Other"]
    assert sorted(params["depth"] for params in others) == [3, 5]
    [ons] = [row for row in runs if row["learner"] == "ONS"]
    assert json.loads(ons["params"])["loss"] == "squared"
    assert ons["alpha"] == 2.0
    best = {row["learner"]: row["mean_loss_mean"] for row in best_of(runs_of(store, "theirs"))}
    assert best == {"Other": 0.4, "ONS": 0.3}
    assert result_problems(store) == []
    assert "Other" in write_report(store, "theirs").path.read_text()
    shown = koco("results", "--store", store, "--import", file, "--best", status=0)
    assert "0 of 3 rows are new, as sweep theirs" in shown.stderr
    assert "depth=5" in shown.stdout
    koco("remove", "sweep", "theirs", "--store", store, status=0)
    assert finished_runs(store) == set()


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([{"dataset": "a", "learner": "x"}], "needs one column 'mean_loss'"),
        ([{"dataset": "a", "learner": "x", "mean_los": 1.0}], "did you mean 'mean_los'"),
        ([{**ROWS[0], "run_id": "x"}], "column 'run_id' is the store's own; leave it out"),
        ([{**ROWS[0], "params": "x"}], "give each parameter a column"),
        ([{**ROWS[0], "mean_loss": "x"}], "column 'mean_loss' is string, but it must be double"),
        ([ROWS[0], {**ROWS[0], "learner": None}], "row 2: learner is missing; fill it in"),
        ([{**ROWS[0], "mean_loss": None}, ROWS[0]], "row 1: mean_loss is missing; fill it in"),
        ([{**ROWS[0], "status": "fine"}], "row 1: status is 'fine'; it is one of ok, diverged"),
        ([{**ROWS[0], "depth": [1]}], r"row 1: parameter depth is \[1\]; give a number or a text"),
        (
            [{**ROWS[0], "learner": "a\x1b[2J"}],
            r"row 1: learner is 'a\\x1b\[2J'; leave its control",
        ),
        ([{**ROWS[0], "learner": "ONS"}], "row 1: ONS has no parameter 'depth'"),
    ],
)
def test_wrong_file__is_refused_and_nothing_imported(rows, message, written, tmp_path):
    with pytest.raises(WrongInput, match=message):
        import_results(tmp_path / "store", written(rows), "theirs")
    assert finished_runs(tmp_path / "store") == set()


def test_name_of_a_sweep_that_has_run__is_refused(written, tmp_path):
    open_store(tmp_path / "store")
    (tmp_path / "store" / "sweeps").mkdir(exist_ok=True)
    (tmp_path / "store" / "sweeps" / "own.json").write_text('{"name": "own", "run_ids": []}')
    with pytest.raises(WrongInput, match="choose another name with --sweep"):
        import_results(tmp_path / "store", written(ROWS[:1]), "own")
    with pytest.raises(WrongInput, match="cannot be a sweep's name"):
        import_results(tmp_path / "store", written(ROWS[:1]), "../x")
    (tmp_path / "theirs.parquet").write_text("x")
    with pytest.raises(WrongInput, match="cannot be read as Parquet"):
        import_results(tmp_path / "store", tmp_path / "theirs.parquet", "theirs")


@pytest.mark.parametrize("text", ["", "{", "[]", '{"imported": true}', '{"run_ids": 5}'])
def test_damaged_entry_of_the_sweep__is_named_and_nothing_imported(text, written, tmp_path, koco):
    entry = tmp_path / "store" / "sweeps" / "theirs.json"
    open_store(tmp_path / "store")
    entry.parent.mkdir(exist_ok=True)
    entry.write_text(text)
    words = ("results", "--store", tmp_path / "store", "--import", written(ROWS[:1]))
    assert f"{entry} is damaged" in " ".join(koco(*words, status=2).stderr.split())
    assert finished_runs(tmp_path / "store") == set()
    assert entry.read_text() == text
