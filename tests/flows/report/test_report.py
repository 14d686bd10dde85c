"""The report: a page that needs nothing, can be read and asked by everybody, and says what the
tables say; regret beside its bound.
"""

import csv
import json
import time
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy.sparse import csr_array

from flows.pages import markdown_of
from flows.report.document import page_of, write_report
from flows.report.regret import bounds_of, why_not
from koco_stream import FDSON, ONS
from koco_stream.losses import curvature_of
from koco_stream.streams.manifest import load_manifest
from storage.results import read_curves
from tests.helpers.examples import FORMULAS
from tests.helpers.many_runs import many_runs, put
from tests.helpers.memory import anonymous_peaks
from tests.helpers.pages import browser, look_at, opened, unreadable, violations
from tests.helpers.sweeps import prepared, swept

LEARNERS = """
window = 100
[[learner]]
name = "AdaGrad"
step_size = { powers_of_two = [-6, 0] }
[[learner]]
name = "OGD"
step_size = { powers_of_two = [-6, 0] }
"""
CLASSES = """
[[dataset]]
name = "ill-conditioned"
n_rows = 300
condition_number = [1.0, 10.0]
order = "shuffled"
order_seeds = 2
"""
REAL = """
[[dataset]]
name = "plain"
"""


@pytest.fixture(scope="session")
def reported(tmp_path_factory):
    """A store with the sweep `tiny` of two datasets with classes in two orders, and the sweep
    `small` of these and a regression set.
    """
    folder = tmp_path_factory.mktemp("reported")
    draw = np.random.default_rng(0)
    X = draw.random((300, 3)) / 2
    store = prepared(folder, "plain", X, X @ [0.9, -0.4, 0.1] + 0.05 * draw.standard_normal(300))
    for name, datasets in (("tiny", CLASSES), ("small", CLASSES + REAL)):
        swept(folder, LEARNERS + datasets, name)
    return store


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
        for direction in ("ascending", "descending"):
            table.locator("th", has_text="mean loss").locator("button").focus()
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


@pytest.fixture(scope="module")
def tiny(reported):
    return write_report(reported, "tiny").path


@pytest.mark.system
def test_chart__shows_the_learner_and_the_stream_that_are_chosen_by_keyboard(tiny):
    with browser() as started, opened(started, tiny, 400) as (shown, complaints):
        shown.get_by_text("Curves", exact=True).click()
        assert unreadable(shown, 400) == []
        chart = shown.locator("details[open] .chart").first
        lines = chart.locator(".mark-line.role-mark path")
        before = lines.first.get_attribute("d")
        assert lines.count() == 2
        for label, key, expected in (("stream", "ArrowDown", 2), ("learner", "ArrowDown", 1)):
            chart.locator("label", has_text=label).locator("select").focus()
            shown.keyboard.press(key)
            assert lines.count() == expected, label
            assert lines.first.get_attribute("d") != before
        assert violations(shown) == []
        assert complaints == []


@pytest.mark.system
def test_pointer__shows_configuration_and_value_that_the_table_has_and_saves(tiny, tmp_path):
    with browser() as started, opened(started, tiny) as (shown, complaints):
        assert unreadable(shown, 1280) == []
        chart = shown.locator(".chart").first
        chart.scroll_into_view_if_needed()
        box = chart.locator(".mark-symbol.role-mark path").first.bounding_box()
        shown.mouse.move(box["x"] + 3, box["y"] + 3)
        tip = shown.locator("#vg-tooltip-element.visible")
        cells = (tip.locator(f"td.{name}").all_text_contents() for name in ("key", "value"))
        told = dict(zip(*cells, strict=True))
        shown.get_by_text("The numbers: The best of each learner").click()
        with shown.expect_download() as saved:
            shown.get_by_role("button", name="Save as CSV: Numbers: The best").click()
        saved.value.save_as(tmp_path / "best.csv")
        assert complaints == []
    _, *rows = csv.reader((tmp_path / "best.csv").read_text("utf-8").splitlines())
    assert sorted(row[1] for row in rows) == ["AdaGrad", "AdaGrad", "OGD", "OGD"]
    assert [told["stream"], told["learner"]] in [row[:2] for row in rows]
    assert "step_size=" in told["parameters"]
    assert float(told["error rate"]) > 0


@pytest.mark.system
def test_page_without_scripts__says_in_words_what_charts_show(tiny):
    with browser() as started:
        context = started.new_context(java_script_enabled=False)
        shown = context.new_page()
        shown.goto(tiny.absolute().as_uri())
        assert shown.get_by_text("the table has the best two").is_visible()
        assert shown.locator("main button, main select").count() == 0
        assert shown.locator("table[data-name=tiny-datasets] tbody tr:visible").count() == 2
        context.close()


SIGMA = curvature_of("squared", 1.0)
PARAMS = {
    **{"loss": "squared", "clip": 1.0, "alpha": 0.5, "curvature": SIGMA},
    "curvature_schedule": "constant",
}


def rows_and_labels():
    draw = np.random.default_rng(2)
    X = draw.uniform(-0.5, 0.5, (400, 8)) * 1.5 ** -np.arange(8)
    return X, np.clip(X @ draw.standard_normal(8) + 0.1 * draw.standard_normal(400), -1, 1)


@pytest.mark.parametrize(
    ("learner", "model", "more"),
    [
        ("KONS", ONS, {}),
        ("KONS", ONS, {"fit_intercept": True}),
        ("ONS", ONS, {"fit_intercept": True}),
        ("ONS", ONS, {"curvature": 1.0}),
        ("ONS", ONS, {"curvature_schedule": "decreasing"}),
        ("FDSON", FDSON, {"sketch_size": 3, "fit_intercept": True}),
    ],
)
def test_bound__is_above_the_regret_and_a_curvature_s_excess_grows(learner, model, more):
    X, y = rows_and_labels()
    losses = np.cumsum((model(alpha=0.5, **more).progressive(X, y) - y) ** 2)
    found = bounds_of(csr_array(X), y, learner, PARAMS | more, [20, 400])
    assert all(losses[t - 1] - competitor <= bound for t, competitor, bound in found)
    if "curvature" in more:
        assert found[1][2] - found[0][2] > 2 * 16 * (1.0 - SIGMA) * 380
    assert bounds_of(csr_array(X), 2 * y / np.abs(y).max(), learner, PARAMS | more, [20]) is None


WHOLE = {"datasets": 1, "order": "as-stored", "max_rows": None, "multiclass": None, "rounds": 400}


@pytest.mark.parametrize(
    ("learner", "row", "params", "said"),
    [
        ("OGD", {}, {}, "no theorem here"),
        ("KONS", {}, {"curvature": 1.0}, "above the loss's"),
        ("ONS", {"rounds": 2001}, {}, "2,001 rounds"),
        ("ONS", {"datasets": 2}, {}, "several data seeds"),
        ("ONS", {"order": "shuffled", "max_rows": 9}, {}, "from seed to seed"),
        ("OjaSON", {}, {}, "no theorem here"),
        ("FDSON", {}, {"diagonal": True}, "diagonal"),
        ("FDSON", {}, {"curvature_schedule": "decreasing"}, "constant"),
        ("FDSON", {}, {}, ""),
    ],
)
def test_bound__that_there_is_not_has_its_reason(learner, row, params, said):
    found = why_not(WHOLE | row | {"learner": learner}, PARAMS | params, True)
    assert said in found
    assert bool(found) == bool(said)


def test_section__has_bounds_of_what_the_store_has_and_reasons_for_the_rest(tmp_path):
    X, y = rows_and_labels()
    store = prepared(tmp_path, "plain", X, y)
    shared = {"dataset": "plain", "dataset_hash": load_manifest(store, "plain").dataset_hash}
    shared |= {"rounds": 400, "loss": "squared", "mean_loss": 0.1, "regret": 7.0}
    given = {"ONS": PARAMS, "FDSON": PARAMS | {"sketch_size": 2}, "OjaSON": PARAMS}
    rows = [
        {**shared, "learner": learner, "params": json.dumps(params), "curve": curve}
        for learner, params in given.items()
        for curve in [[{"t": t, "cumulative_loss": t / 10} for t in (10, 20, 50, 100, 400)]]
    ]
    rows.append({**rows[0], "dataset": "gone", "dataset_hash": "gone"})
    put(store, "s", None, rows)
    [figure] = [one for one in page_of(store, "s").figures if one.title == "Regret"]
    bounds = {f"{row['learner']}, bound": row["bound"] for row in figure.rows if row["bound"]}
    [chart] = figure.charts
    last = {row["learner"]: row["regret"] for row in chart.rows if row["round t"] == 400}
    assert bounds.items() <= last.items()
    assert last.keys() == {*bounds, "ONS", "FDSON"}
    assert {row["round t"] for row in chart.rows} == {10, 400}
    said = (
        "Theorem 2 of Luo",
        "Theorem 3 of Luo",
        "OjaSON: no theorem here",
        "no longer in the store",
    )
    assert [words for words in said if words not in figure.note] == []
