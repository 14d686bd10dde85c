"""Metrics, windows and predictions of a sweep: what its file asks for, its tables have."""

import duckdb
import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import roc_auc_score

from flows.from_python import results
from flows.sweeping.launch import run_sweep
from flows.sweeping.planning import dry_run_of
from flows.sweeping.request import SweepRequest
from koco_stream.streams.reader import StreamReader
from tests.helpers.refusal import refusal
from tests.helpers.sweeps import checked, stream_of, written

SWEEP = """
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
    run_sweep(checked(written(folder, SWEEP, "measured.toml"), folder / "store"))
    return folder


def test_metrics__are_those_of_the_kept_predictions(folder):
    found = results(folder / "store", "measured")
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
        right = (scores >= 0) == (y >= 0)
        if row["dataset"].startswith("sea"):
            assert np.isclose(row["auc"], roc_auc_score(y, scores))
            assert np.isclose(mine["auc"].iloc[1], roc_auc_score(y[250:500], scores[250:500]))
            assert np.isclose(mine["error_rate"].iloc[1], 1 - right[250:500].mean())
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
    assert page.count("Metrics over windows") >= 2
    for words in ("auc (higher is better)", "kappa (higher is better)", "rmse (lower is better)"):
        assert words in page
    assert "At vertical lines the stream changes" in page
    assert ">auc<" in page


def test_dry_run__says_how_large_results_are(folder, tmp_path):
    found = dry_run_of(SweepRequest(str(written(tmp_path, SWEEP)), str(tmp_path / "store")))
    real = sum(path.stat().st_size for path in (folder / "store" / "results").rglob("*.parquet"))
    assert 0.5 < found["disk of the results in bytes"] / real < 2.0


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
    spec = written(tmp_path, SWEEP.replace(old, new))
    refusal(said, checked, spec, tmp_path / "store")
