"""The report: a page that needs nothing, can be read by everybody, and says what the tables say."""

import csv
import time
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from flows.report.bounds import newton_bound, son_bound, why_not
from flows.report.document import page_of, write_report
from flows.report.pages import cell, markdown_of
from flows.report.rows import kernel_matrix
from flows.views.views import runs_of
from koco_stream import FDSON, ONS
from koco_stream.losses import curvature_of
from koco_stream.streams.manifest import load_manifest
from storage.results import read_curves
from tests.helpers.examples import FORMULAS
from tests.helpers.many_runs import many_runs, put
from tests.helpers.memory import anonymous_peaks
from tests.helpers.pages import browser, look_at, opened
from tests.helpers.swept import prepared, swept

SPEC = """
learner_seeds = 2
[[dataset]]
name = "plain"
[[dataset]]
name = "ill-conditioned"
n_rows = 600
n_features = 12
condition_number = 20.0
order = "shuffled"
order_seeds = 2
[[learner]]
name = "OjaSON"
sketch_size = [3, 6]
alpha = { powers_of_two = [-3, 3] }
[[learner]]
name = "AdaGrad"
step_size = [0.001, 0.002, 0.004]
[[learner]]
name = "ONS"
alpha = [0.5, 1.0]
[[learner]]
name = "FDSON"
sketch_size = 2
alpha = [0.5, 1.0]
[[learner]]
name = "PROSNKONS"
bandwidth = [0.5, 1.0]
"""


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """A store in which a small sweep has run: a regression set with an exact Newton step, a
    classification set in two orders.
    """
    folder = tmp_path_factory.mktemp("report")
    draw = np.random.default_rng(0)
    X = draw.random((500, 3)) / 2
    y = X @ [0.9, -0.4, 0.1] + 0.05 * draw.standard_normal(500)
    store = prepared(folder, "plain", X, y)
    swept(folder, SPEC, "small")
    return store


@pytest.fixture(scope="module")
def page(store):
    return write_report(store, "small").path


@pytest.mark.system
def test_report__in_a_browser_is_whole_and_readable_for_everybody(page):
    assert page.read_text().count('class="chart"') >= 7
    look_at([page])


@pytest.mark.system
def test_report__sorts_by_the_keyboard(page):
    with browser() as started, opened(started, page) as (shown, complaints):
        shown.get_by_text("Best parameters", exact=True).click()
        table = shown.get_by_label("Best parameters", exact=True).locator("table")
        header = table.locator("th", has_text="mean loss")
        header.locator("button").focus()
        for direction, sign in (("ascending", 1), ("descending", -1)):
            shown.keyboard.press("Enter")
            assert header.get_attribute("aria-sort") == direction
            losses = [
                float(row.locator("td").nth(6).get_attribute("data-v"))
                for row in table.locator("tbody tr").all()
            ]
            assert losses == sorted(losses, key=lambda loss, sign=sign: sign * loss)
        assert complaints == []


@pytest.mark.system
def test_report__saves_no_text_that_a_spreadsheet_takes_for_a_formula(tmp_path):
    rows = [{"dataset": text, "learner": text, "mean_loss": -1.0} for text in FORMULAS]
    put(tmp_path / "store", "theirs", None, rows)
    page = write_report(tmp_path / "store", "theirs").path
    with browser() as started, opened(started, page) as (shown, complaints):
        shown.get_by_text("Best parameters", exact=True).click()
        with shown.expect_download() as saved:
            shown.get_by_role("button", name="Save as CSV: Best parameters").click()
        saved.value.save_as(tmp_path / "best.csv")
        assert complaints == []
    _, *rows = csv.reader((tmp_path / "best.csv").read_text("utf-8").splitlines())
    assert {row[0] for row in rows} == {f"'{text}" for text in FORMULAS}
    assert {cell for row in rows for cell in row if cell[:1] == "-"} == {"-1.0"}


def figure_of(store, title):
    """A section of the report, and its rows as dictionaries."""
    [figure] = [one for one in page_of(store, "small").figures if one.title == title]
    return figure, [dict(zip(figure.columns, row, strict=True)) for row in figure.rows]


def test_report__best_parameters_are_those_of_the_parquet_tables(store):
    means = {}
    for row in pq.read_table(store / "results" / "runs").to_pylist():
        kind = (row["dataset"], row["learner"])
        means.setdefault(kind, {}).setdefault(row["params"], []).append(row)
    _, shown = figure_of(store, "Best parameters")
    assert len(shown) == len(means)
    for (dataset, learner), by_params in means.items():
        measure = "mean_loss" if dataset == "plain" else "error_rate"
        best = min(by_params.values(), key=lambda rows: np.mean([row[measure] for row in rows]))
        [mine] = [r for r in shown if r["learner"] == learner and r["dataset"].startswith(dataset)]
        assert mine["runs"] == len(best)
        for name in (measure, "mean_loss", "seconds"):
            mean = np.mean([row[name] for row in best])
            assert mine[name.replace("_", " ")] == pytest.approx(mean, rel=1e-11), name


def test_report__curves_and_steps_are_those_of_the_parquet_tables(store):
    plain = runs_of(store, "small").filter(pc.field("dataset") == "plain").to_pylist()
    adagrad = [row for row in plain if row["learner"] == "AdaGrad"]
    best = min(adagrad, key=lambda row: row["mean_loss"])
    expected = {
        point["t"]: point["cumulative_loss"] / point["t"]
        for point in read_curves(store).to_pylist()
        if point["run_id"] == best["run_id"] and point["t"] >= 10
    }
    curves, steps = (figure_of(store, title)[0].charts for title in ("Curves", "Parameters"))
    shown = {row[3]: row[4] for row in curves[0].rows if row[:2] == ["plain", "AdaGrad"]}
    assert shown == pytest.approx(expected, rel=1e-11)
    [of_steps] = [one for one in steps if one.title == "step_size"]
    shown = {row[2]: row[3] for row in of_steps.rows if row[:2] == ["plain", "AdaGrad"]}
    assert shown == pytest.approx(
        {row["step_size"]: row["mean_loss"] for row in adagrad}, rel=1e-11
    )


def test_report__says_what_was_run_and_which_grid_to_widen(page, store):
    both = (load_manifest(store, "plain").dataset_hash[:12], "powers_of_two = [-3, 3]", "numpy")
    in_words = (
        "AdaGrad step_size 0.004 (next: 0.008)",
        "Theorem 2 of Luo et al. (NIPS 2016)",
        "AdaGrad: it is not an online Newton step",
    )
    text, words = page.read_text(), page.with_suffix(".md").read_text()
    assert [said for said in both if said not in text] == []
    assert [said for said in (*both, *in_words) if said not in words] == []


def test_report__markdown_has_tables_of_equal_rows_and_nothing_that_looks_like_html(page):
    lines = page.with_suffix(".md").read_text().split("\n")
    for before, line in pairwise(lines):
        if before.startswith("| ") and line.startswith("|"):
            assert len(line.replace("\\|", "").split("|")) == len(
                before.replace("\\|", "").split("|")
            )
    assert markdown_of("a|b <i>*c*</i>\nd") == "a\\|b &lt;i>\\*c\\*&lt;/i> d"


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (0.123456789, '<td class="n" data-v="0.123456789">0.123</td>'),
        (1234567, '<td class="n" data-v="1234567">1,234,567</td>'),
        (None, '<td data-v="">–</td>'),
        ("<script>", "<td>&lt;script&gt;</td>"),
    ],
)
def test_cells__keep_the_whole_number_and_let_nothing_through(value, written):
    assert cell(value) == written


def test_report__of_runs_that_are_not_ok_or_not_there_yet(store, tmp_path):
    diverged = {"status": "diverged", "error": "at round 7"}
    diverged |= dict.fromkeys(("mean_loss", "error_rate", "regret"))
    runs = [
        {**row, **diverged} if row["learner"] == "AdaGrad" else row
        for row in runs_of(store, "small").to_pylist()
    ]
    other = tmp_path / "store"
    put(other, "small", [row["run_id"] for row in runs], runs[1:])
    page = page_of(other, "small")
    assert page.flags[0].words == f"1 of {len(runs)} runs are not computed yet"
    assert any(flag.words.endswith("runs diverged") for flag in page.flags)
    of = {figure.title: figure for figure in page.figures}
    assert {row[1] for row in of["Best parameters"].rows} == {"OjaSON", "ONS", "FDSON", "PROSNKONS"}
    first = of["Runs that are not ok"].rows[0]
    assert first[1:] == ["AdaGrad", first[2], "diverged", "at round 7"]
    assert of["What was run: data"].rows[0][4] == "not in the store"
    assert "not in the store" in write_report(other, "small").path.read_text()


SIGMA = curvature_of("squared", 1.0)
PARAMS = {
    "loss": "squared",
    "clip": 1.0,
    "alpha": 0.5,
    "curvature": SIGMA,
    "curvature_schedule": "constant",
}


def rows_and_labels():
    draw = np.random.default_rng(2)
    X = draw.uniform(-0.5, 0.5, (400, 8)) * 1.5 ** -np.arange(8)
    return X, np.clip(X @ draw.standard_normal(8) + 0.1 * draw.standard_normal(400), -1, 1)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize(
    ("learner", "model", "more"),
    [
        ("KONS", ONS, {}),
        ("ONS", ONS, {}),
        ("ONS", ONS, {"curvature": 1.0}),
        ("ONS", ONS, {"curvature_schedule": "decreasing"}),
        ("FDSON", FDSON, {"sketch_size": 3}),
    ],
)
def test_bound__is_above_the_regret_and_a_curvature_s_excess_grows(learner, model, more, intercept):
    X, y = rows_and_labels()
    params = {**PARAMS, "fit_intercept": intercept, **more}
    assert why_not(learner, params, 400) is None
    losses = np.cumsum(
        (model(alpha=0.5, fit_intercept=intercept, **more).progressive(X, y) - y) ** 2
    )
    bound = (
        newton_bound(kernel_matrix(X, params), y, params, [20, 400])
        if learner == "KONS"
        else son_bound(X, y, learner, params, [20, 400])
    )
    for t, competitor, most in zip(bound.t, bound.competitor, bound.bound, strict=True):
        assert losses[t - 1] - competitor <= most
    if "curvature" in more:
        assert bound.bound[1] - bound.bound[0] > 2 * 16 * (1.0 - SIGMA) * 380


@pytest.mark.parametrize(
    ("learner", "more", "rounds", "said"),
    [
        ("OGD", {}, 400, "not an online Newton step"),
        ("KONS", {"curvature": 1.0}, 400, "above the loss's"),
        ("KONS", {}, 2001, "2,001 rounds"),
        ("OjaSON", {}, 400, "no bound is known"),
        ("RPSON", {}, 400, "random projections"),
        ("FDSON", {"diagonal": True}, 400, "diagonal"),
        ("FDSON", {"curvature_schedule": "decreasing"}, 400, "constant"),
        ("ONS", {}, 2001, "2,001 rounds"),
    ],
)
def test_bound__that_there_is_not_has_its_reason(learner, more, rounds, said):
    assert said in why_not(learner, {**PARAMS, **more}, rounds)


def test_regret_section__has_the_bounds_of_son_s_learners_and_says_why_oja_has_none(store):
    figure, _ = figure_of(store, "Regret")
    plain = [row for row in figure.rows if row[0] == "plain"]
    for _, name, *_, regret, bound in plain:
        assert (bound is not None) == (name in ("ONS", "FDSON")), name
        assert bound is None or regret <= bound, name
    assert {"ONS", "FDSON", "ONS, bound", "FDSON, bound"} == {
        row[1] for row in figure.charts[0].rows
    }
    for said in ("Theorem 2 of Luo", "Theorem 3 of Luo", "no bound is known for Oja's sketch"):
        assert said in figure.note


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
