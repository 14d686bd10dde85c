"""Sweeps from Python: the same runs as by the command, from a file, a name or a dictionary."""

import re
import signal
import subprocess
import sys
import textwrap
import threading

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array

import flows
from flows.report.document import page_of
from flows.sweeping.file import read_sweep, sweep_called
from flows.sweeping.request import packaged
from storage.preparing.prepare import prepare_file
from tests.helpers.project import environment
from tests.helpers.refusal import refusal
from tests.helpers.sweeps import written

SPEC = {
    "name": "small",
    "dataset": [{"name": "real", "order": "shuffled", "order_seeds": range(2)}],
    "learner": [{"name": "OGD", "step_size": np.array([0.5, 0.25])}],
}
TOML = """
name = "small"
[[dataset]]
name = "real"
order = "shuffled"
order_seeds = [0, 1]
[[learner]]
name = "OGD"
step_size = [0.5, 0.25]
"""


def test_dictionary__gives_the_runs_of_the_file_and_a_result_that_shows_them(
    small_store, tmp_path, koco
):
    before = {n: signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)}
    threads = set(threading.enumerate())
    result = flows.sweep(SPEC, small_store, workers=0)
    assert {n: signal.getsignal(n) for n in before} == before
    assert {t for t in threading.enumerate() if not t.daemon} <= threads
    (tmp_path / "small.toml").write_text(TOML)
    done = koco("sweep", tmp_path / "small.toml", "--store", small_store, status=0)
    assert "nothing to compute" in done.stderr
    planned = koco("sweep", tmp_path / "small.toml", "--store", small_store, "--dry-run", status=0)
    assert not re.search(r": *$", planned.stdout, re.MULTILINE)
    assert len(result.to_pandas()) == result.runs.num_rows == 4
    assert set(result.curves["run_id"].to_pylist()) == set(result.runs["run_id"].to_pylist())
    assert result.report.is_file()
    again = flows.results(small_store, "small")
    assert re.search(r"4 of 4 runs(.|\n)*step_size=", str(again))
    assert max(map(len, str(again).splitlines()[1:])) <= 100
    assert "auc" not in str(again)
    shown = again._repr_html_()
    assert re.search(r"<style>(.|\n)*<svg(.|\n)*OGD", shown)
    assert page_of(small_store, "small", whole=False).finding in shown
    refusal("did you mean 'small'", flows.results, small_store, "smal")


def test_wrong_dictionary__names_the_key(small_store):
    for change, message in (
        ({"learner": [{"name": "OGD", "step_sise": 0.5}]}, "learner 1, step_sise.*'step_size'"),
        ({"learners": []}, "learners"),
        ({"dataset": [{"name": object()}]}, "use only numbers, texts and lists"),
    ):
        refusal(
            f"given as a dictionary.*{message}",
            flows.sweep,
            {**SPEC, **change},
            small_store,
            workers=0,
        )


def test_name__is_that_of_a_file_or_a_packaged_sweep_or_a_dataset_in_this_order(
    small_store, inside, koco
):
    prepare_file(small_store, "halving", inside / "real.csv", target="y")
    for name, file in packaged().items():
        assert sweep_called(name, small_store) == read_sweep(file)
        assert read_sweep(file).name == name
        assert name in koco("sweep", "--list", status=0).stdout
    assert sweep_called("real", small_store).name == "real"
    (inside / "small.toml").write_text(TOML)
    for name in ("reals", "search", "real.x"):
        (inside / name).write_text(TOML)
        assert sweep_called(name, small_store).name == "small"
    for wrong, near in (
        ("smal.toml", "small.toml"),
        ("ill-conditoned", "ill-conditioned"),
        ("spars", "sparse"),
    ):
        refusal(f"Did you mean '{near}'", flows.sweep, wrong, small_store, workers=0)


X, y = [[1, 2], [3, 4], [5, 7]], [0.5, 1.5, 2.5]


@pytest.mark.parametrize("data", [X, y, np.zeros(3), pd.Series(y), csr_array(X), 7])
def test_data_without_columns__are_refused_with_what_makes_some(data, tmp_path, capsys):
    refused = refusal(
        f"{type(data).__name__} is no data frame", flows.prepare, "mine", data, tmp_path / "store"
    )
    [remedy] = re.findall(r"labels y, (.*) makes one", refused)
    frame = eval(remedy, {"pandas": pd, "X": csr_array(X) if "spmatrix" in remedy else X, "y": y})
    found = flows.prepare("mine", frame, tmp_path / "store")
    assert (found.n_rows, found.n_features, found.task) == (3, 2, "regression")
    assert "reading" not in capsys.readouterr().err


def test_frames_of_polars__are_taken_and_a_column_alone_is_refused(tmp_path):
    pl = pytest.importorskip("polars")
    refusal("Series is no data frame", flows.prepare, "mine", pl.Series(y), tmp_path / "store")
    lazy = pl.DataFrame({"x": y, "y": y}).lazy()
    assert flows.prepare("mine", lazy, tmp_path / "store").n_rows == 3


@pytest.mark.long
def test_script_without_a_main_guard__is_refused_before_workers_start(tmp_path):
    script = written(
        tmp_path,
        textwrap.dedent(
            """
            import flows

            def main():
                flows.sweep({"name": "small"}, "store", workers=1)

            main()
            """
        ),
        "mine.py",
    )

    def said(*how, **given):
        return subprocess.run(
            [sys.executable, *how],
            env=environment(),
            capture_output=True,
            text=True,
            cwd=tmp_path,
            **given,
        ).stderr

    assert "mine.py, line 7: workers import this script again" in said(script)
    text = script.read_text()
    assert "<stdin>, line 7: workers import this script again, so put it in a file" in said(
        "-", input=text
    )
    assert not (tmp_path / "store").exists()
    script.write_text(text.replace("\nmain()", '\nif __name__ == "__main__":\n    main()'))
    assert "given as a dictionary, dataset" in said(script)  # what is wrong with the sweep
