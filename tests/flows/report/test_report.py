"""The report: a page that needs nothing, can be read by everybody, and says what the tables say."""

import csv
import time
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from flows.pages import markdown_of
from flows.report.document import page_of, write_report
from koco_stream.streams.manifest import load_manifest
from storage.results import read_curves
from tests.helpers.examples import FORMULAS
from tests.helpers.many_runs import many_runs, put
from tests.helpers.memory import anonymous_peaks
from tests.helpers.pages import browser, look_at, opened


@pytest.fixture(scope="module")
def page(reported):
    return write_report(reported, "small").path


@pytest.fixture(scope="module")
def figures(reported):
    return {figure.title: figure for figure in page_of(reported, "small").figures}


@pytest.mark.system
def test_report__in_a_browser_is_whole_and_readable_for_everybody(page):
    assert page.read_text().count('class="chart"') >= 6
    look_at([page])


@pytest.mark.system
def test_report__sorts_by_the_keyboard_and_saves_no_formula_for_a_spreadsheet(tmp_path):
    rows = [
        {"dataset": text, "learner": text, "mean_loss": -1.0 - k} for k, text in enumerate(FORMULAS)
    ]
    put(tmp_path / "store", "theirs", None, rows)
    page = write_report(tmp_path / "store", "theirs").path
    losses = {}
    with browser() as started, opened(started, page) as (shown, complaints):
        shown.get_by_text("Best parameters", exact=True).click()
        table = shown.get_by_label("Best parameters", exact=True).locator("table")
        table.locator("th", has_text="mean loss").locator("button").focus()
        for direction in ("ascending", "descending"):
            shown.keyboard.press("Enter")
            assert table.locator(f"th[aria-sort={direction}]").count() == 1
            with shown.expect_download() as saved:
                shown.get_by_role("button", name="Save as CSV: Best parameters").click()
            saved.value.save_as(tmp_path / "best.csv")
            _, *cells = csv.reader((tmp_path / "best.csv").read_text("utf-8").splitlines())
            assert {row[0] for row in cells} == {f"'{text}" for text in FORMULAS}
            losses[direction] = [float(cell) for row in cells for cell in row if cell[:1] == "-"]
        assert complaints == []
    assert losses["ascending"] == losses["descending"][::-1] == sorted(losses["ascending"])


def test_sections__say_what_the_parquet_tables_say(reported, figures):
    means = {}
    for row in pq.read_table(reported / "results" / "runs").to_pylist():
        kind = (row["dataset"], row["learner"])
        means.setdefault(kind, {}).setdefault(row["params"], []).append(row)
    shown = {
        (row["dataset"].removesuffix(", shuffled"), row["learner"]): row
        for row in figures["Best parameters"].rows
    }
    assert shown.keys() == means.keys()
    for (dataset, learner), by_params in means.items():
        measure = "mean_loss" if dataset == "plain" else "error_rate"
        best = min(by_params.values(), key=lambda rows: np.mean([row[measure] for row in rows]))
        mine = shown[dataset, learner]
        assert mine["runs"] == len(best)
        for name in (measure, "mean_loss", "seconds"):
            mean = np.mean([row[name] for row in best])
            assert mine[name.replace("_", " ")] == pytest.approx(mean, rel=1e-11), name
    # the curve and the grid of one learner
    runs = [run for [run] in means["plain", "AdaGrad"].values()]
    best = min(runs, key=lambda run: run["mean_loss"])
    of_best = {
        point["t"]: point["cumulative_loss"] / point["t"]
        for point in read_curves(reported).to_pylist()
        if point["run_id"] == best["run_id"] and point["t"] >= 10
    }
    by_step = {run["step_size"]: run["mean_loss"] for run in runs}
    for title, series, expected in (
        ("Curves", "learner", of_best),
        ("Parameters", "line", by_step),
    ):
        [chart] = figures[title].charts
        drawn = [row for row in chart.rows if (row["stream"], row[series]) == ("plain", "AdaGrad")]
        assert {row[chart.x]: row[chart.y] for row in drawn} == pytest.approx(expected, rel=1e-11)
    windows = [row for row in figures["Windows"].charts[0].rows if row["stream"] == "plain"]
    assert {(row["metric"], row["last round"]) for row in windows} == {
        ("mean loss", t) for t in (100, 200, 300)
    }


def test_report__says_what_was_run_and_which_grid_to_widen(reported, page):
    both = (load_manifest(reported, "plain").dataset_hash[:12], "powers_of_two = [-6, 0]", "numpy")
    text, words = page.read_text(), page.with_suffix(".md").read_text()
    in_words = ("OGD step_size 1 (next: 2)", "AdaGrad: no theorem here is about it")
    assert [said for said in both if said not in text] == []
    assert [said for said in (*both, *in_words) if said not in words] == []


def test_report__markdown_has_tables_of_equal_rows_and_nothing_that_looks_like_html(page):
    lines = page.with_suffix(".md").read_text().replace("\\|", "").split("\n")
    pairs = [pair for pair in pairwise(lines) if all(line.startswith("|") for line in pair)]
    assert all(one.count("|") == other.count("|") for one, other in pairs)
    assert markdown_of("a|b <i>*c*</i>\nd") == "a\\|b &lt;i>\\*c\\*&lt;/i> d"


@pytest.mark.soak
def test_report__of_a_hundred_thousand_runs_takes_seconds_and_little_memory(tmp_path):
    store = many_runs(tmp_path / "store", 100_000)
    pa.default_memory_pool().release_unused()
    with anonymous_peaks() as peaks:
        begun = time.monotonic()
        written = write_report(store, "many").path
        took = time.monotonic() - begun
    assert took < 60
    assert max(peaks.values()) < 1e9
    assert written.stat().st_size < 5e6
