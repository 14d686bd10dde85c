"""The report: a page that needs nothing, can be read and asked by everybody, and says what the
tables say: first what happened, how sure that is, what failed, what to run next. Charts; regret
beside its bound.
"""

import csv
import json
import re
import time
from html import unescape
from itertools import pairwise

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from scipy.sparse import csr_array

from flows.charts import Chart, drawn
from flows.pages import markdown_of
from flows.report.document import page_of, write_index, write_report
from flows.report.overview import is_sure, what_to_run_next
from flows.report.regret import bounds_of, why_not
from flows.report.sections import FRONT, Sections
from flows.tables.sweep_runs import DECISIONS, write_decisions
from koco_stream import FDSON, ONS
from koco_stream.losses import curvature_of
from koco_stream.streams.manifest import load_manifest
from storage.results import read_curves
from storage.store import open_store
from tests.helpers.examples import FORMULAS
from tests.helpers.many_runs import many_runs, put, run
from tests.helpers.memory import anonymous_peaks
from tests.helpers.pages import SIZES, browser, look_at, opened, unreadable, violations
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
    runs = pd.read_parquet(reported / "results" / "runs")
    shown = pd.DataFrame(figures["Best parameters"].rows)
    shown["dataset"] = shown["dataset"].str.removesuffix(", shuffled")
    columns = ["error_rate", "mean_loss", "seconds", "runs"]
    of_each = runs.assign(runs=1).groupby(["dataset", "learner", "params"])
    means = of_each[columns[:3]].mean().join(of_each["runs"].sum())
    means["merit"] = means["error_rate"].fillna(means["mean_loss"])
    best = means.sort_values("merit").groupby(["dataset", "learner"]).first()
    found = shown.set_index(["dataset", "learner"]).sort_index()
    found = found.rename(columns=lambda name: name.replace(" ", "_"))[columns].astype(float)
    pd.testing.assert_frame_equal(found, best[columns].astype(float), rtol=1e-11)
    # the curve and the grid of one learner
    runs = runs.query("dataset == 'plain' and learner == 'AdaGrad'").to_dict("records")
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
    for end, own in (
        (".md", ("OGD step_size 1 (next: 2)", "AdaGrad: no theorem here is about it")),
        (".html", ("<title>Sweep small", "default-src 'none'")),
    ):
        text = page.with_suffix(end).read_text()
        assert [said for said in (*both, *own) if said not in text] == []


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


NOTHING = {"mean_loss": None, "error_rate": None}


@pytest.fixture
def screen(tmp_path):
    """The page of a sweep with these results, of which so many are missing."""

    def made(rows, missing=0, datasets=()):
        ids = [row["run_id"] for row in rows] + [f"missing {k}" for k in range(missing)]
        put(tmp_path, "s", ids, rows, datasets={f"hash of {name}": name for name in datasets})
        return page_of(tmp_path, "s")

    return made


def two_learners(n_datasets, orders=2):
    """AdaGrad is better than OGD everywhere, but for the last dataset."""
    for k in range(n_datasets):
        for j, (learner, error) in enumerate((("AdaGrad", 0.1), ("OGD", 0.2))):
            for seed in range(orders):
                worse = 0.15 if learner == "AdaGrad" and k == n_datasets - 1 else 0.0
                error_rate = error + worse + 0.001 * k
                yield run(
                    100 * k + 10 * j + seed, f"set{k}", learner, 0.3 + error_rate, error_rate, seed
                )


def test_sentence__has_the_numbers_of_the_figure_and_of_the_line_of_its_dataset(screen):
    found = screen(list(two_learners(8, orders=6)))
    assert found.facts[:4] == ["2 learners", "8 datasets", "6 shuffled orders", "96 runs"]
    assert found.finding == (
        "AdaGrad is the best of 2 learners on 7 of 8 datasets, OGD on 1: on set0, shuffled,"
        " AdaGrad errs on 10 %, OGD 20 %, Constant 50 %."
    )
    [chart] = found.charts
    drawn = {row["learner"]: row["error rate"] for row in chart.rows[:2]}
    assert (chart.rows[0]["stream"], drawn) == ("set0, shuffled", {"AdaGrad": 0.1, "OGD": 0.2})
    assert [row["best"] for row in found.rows] == ["AdaGrad"] * 7 + ["OGD"]
    line = found.rows[0]
    assert (line["error rate"], line["its error rate"], line["Constant"]) == (0.1, 0.2, 0.5)
    assert line["is it sure"] == "yes: by 0.1 to 0.1, best in 6 of 6"
    assert found.note.startswith("AdaGrad is better than OGD: it wins on 7 of 8 blocks")
    assert list(found.flags) == []


@pytest.mark.parametrize(
    ("firsts", "said"),
    [
        (["A", "B"], "A and B tie, each the best of 2 learners on 1 of 2 datasets: on"),
        (
            ["B", "A", "B", "A", "C"],
            "A and B tie, each the best of 3 learners on 2 of 5 datasets, C",
        ),
        (
            ["A", "B", "C", "D", "E"],
            "A, B, C and 2 more tie, each the best of 5 learners on 1 of 5",
        ),
    ],
)
def test_learners_that_tie__are_said_to(firsts, said, screen):
    rows = [
        run(10 * k + j, f"set{k}", name, 0.5, 0.1 if name == first else 0.2)
        for k, first in enumerate(firsts)
        for j, name in enumerate(sorted({*firsts}))
    ]
    assert screen(rows).finding.startswith(said)


@pytest.mark.parametrize(
    ("mine", "theirs", "said"),
    [
        ([0.1], [0.2], "one order: not known"),
        ([0.1, 0.1], [0.1, 0.1], "equal"),
        ([0.1, 0.1, 0.1], [0.2, 0.2, 0.2], "likely: by 0.1 to 0.1, best in 3 of 3, too few"),
        ([0.1] * 6, [0.05, 0.2, 0.05, 0.2, 0.05, 0.21], "no: by "),
        ([0.1] * 6, [0.2] * 6, "yes: by 0.1 to 0.1, best in 6 of 6"),
        ([0.1] * 6, [0.2] * 5 + [0.09], "likely: by "),
    ],
)
def test_line__says_how_sure_the_best_is(mine, theirs, said):
    runs = [
        {"data": "a", "learner": name, "order_seed": k, "score": score}
        for name, scores in (("AdaGrad", mine), ("OGD", theirs))
        for k, score in enumerate(scores)
    ]
    assert is_sure(runs, "AdaGrad", "OGD").startswith(said)


def test_losses__are_told_with_the_curves_of_the_dataset_that_is_named(screen):
    found = screen(
        [{**one, "error_rate": None, "constant_error_rate": None} for one in two_learners(3)]
    )
    assert (
        ": on set0, shuffled, AdaGrad has the mean loss 0.4, OGD 0.5, Constant 0.9."
        in found.finding
    )
    assert found.charts[0].rows[0]["stream"] == "set0, shuffled"
    assert found.charts[0].picks == ["stream"]


def test_one_learner__is_told_beside_constant(screen):
    found = screen([run(k, f"set{k}", "AdaGrad", 0.5, 0.1) for k in range(11)])
    assert found.finding == (
        "AdaGrad alone was run, better than Constant on 11 of 11: on set0, shuffled, AdaGrad errs"
        " on 10 %, Constant 50 %."
    )
    assert len(found.rows) == 11
    found = screen(
        [run(0, "set0", "AdaGrad", 0.5, 0.1), run(99, "set0", "KONS", 0.2, 0.1, status="stopped")]
    )
    assert found.finding.startswith("AdaGrad alone ended well, better than Constant on 1 of 1: on")


def test_failures__are_counted_and_named(screen, tmp_path):
    rows = list(two_learners(9))
    rows[0] |= {**NOTHING, "status": "failed", "error": "no memory"}
    rows[2] |= {**NOTHING, "status": "diverged", "error": "round 7"}
    rows = [{**row, "doubtful_rounds": k % 2} for k, row in enumerate(rows)]
    found = screen(rows, missing=2, datasets=["set0", "set99"])
    assert "36 of 38 runs" in found.facts
    *said, doubtful = found.flags
    assert said == [
        "2 of 38 runs are not computed yet, and none on set99",
        "1 run diverged",
        "1 run failed",
    ]
    assert "cannot vouch for all rounds of 18 runs of AdaGrad and OGD " in doubtful
    assert found.rows[0]["best"] == "no run has ended well"
    sections = {figure.title: figure.rows for figure in found.figures}
    assert [row["error"] for row in sections["Runs that are not ok"]] == ["no memory", "round 7"]
    assert sections["What was run: data"][0]["source"] == "not in the store"
    assert "not in the store" in write_report(tmp_path, "s").read_text()


def test_nothing_better_than_constant__is_the_first_thing_said(screen):
    rows = [run(k, f"set{k}", name, 0.95, 0.6) for k, name in enumerate(("AdaGrad", "OGD"))]
    found = screen([*rows, run(9, "set0", "OGD", 1.0, 0.7)])
    assert found.finding.startswith("No learner is better than Constant on any stream.")
    [words] = found.flags
    assert words.startswith("No better than Constant: OGD on 2 of 2, AdaGrad on 1 of 1 (see")


def test_no_runs__are_a_page_too(screen, tmp_path):
    assert (
        screen([], missing=3).finding == "No configuration has ended well in all of its runs yet."
    )
    assert write_report(tmp_path, "s").is_file()


GRIDS = {
    "AdaGrad": ((0.1, 0.2, 0.4), (3, 2, 1), "AdaGrad step_size 0.4 (next: 0.8)"),
    "NAG": ((0.1, 0.2, 0.4), (1, 2, 3), "NAG step_size 0.1 (next: 0.05)"),
    "OGD": ((-1.0, 0.5, 2.0), (3, 2, 1), "OGD step_size 2 (next: 8)"),
    "a": ((0.1, 0.2, 0.4), (2, 1, 3), ""),
    "b": ((0.1, 0.2, 0.4), (2, 1, 1), ""),  # a value inside is as good
    "c": ((0.1, 0.2, 0.4), (3, 2, None), ""),  # the value beyond was tried, and diverged
    "d": ((0.1, 0.4), (2, 1), ""),  # a grid without inner values
    "SAdaGrad": ((0.0, 0.5, 1.0), (1, 2, 3), ""),  # the learner allows none below
}


def test_next_run__widens_grids_whose_best_value_is_at_an_edge(tmp_path):
    rows = [
        run(k, f"set{k}", learner, error, error, params=json.dumps({"step_size": step}))
        | ({} if error else {"status": "diverged", **NOTHING})
        for learner, (steps, errors, _) in GRIDS.items()
        for step, error in zip(steps, errors, strict=True)
        for k in range(2)
    ]
    put(tmp_path, "s", None, [{**row, "run_id": f"{k:032d}"} for k, row in enumerate(rows)])
    found = what_to_run_next(Sections(tmp_path, "s"))
    said = [words for *_, words in GRIDS.values() if words]
    assert found.endswith(f"beyond: {'; '.join(f'{one} on 2 of 2 streams' for one in said)}.")


def test_halving__is_told_from_its_last_rung_alone(screen, tmp_path):
    rows = [
        run(100 * k + 10 * j + rung, f"set{k}", learner, loss, loss, max_rows=rows)
        for k in range(2)
        for j, learner in enumerate(("AdaGrad", "OGD"))
        for rung, (rows, loss) in enumerate(((5, 0.4 - 0.1 * j), (None, 0.1 + 0.1 * j)))
    ]
    open_store(tmp_path)
    decided = {
        **dict.fromkeys(DECISIONS.names),
        **{"rung": 1, "rounds": 5, "dataset": "set0", "order": "shuffled", "rank": 1},
        **{"learner": "AdaGrad", "params": "{}", "n_runs": 1, "goes_on": True},
    }
    (tmp_path / "results" / "halving").mkdir(parents=True)
    write_decisions(tmp_path, "s", [decided, decided | {"rank": 2, "goes_on": False}])
    found = screen(rows)
    assert [[*row.values()][:3] for row in found.rows] == [
        [f"set{k}, shuffled", "AdaGrad", 0.1] for k in (0, 1)
    ]
    [section] = [one for one in found.figures if one.title == "Halving and races"]
    assert [[*row.values()][:6] for row in section.rows] == [
        ["set0, shuffled", "AdaGrad", 1, 5, 2, 1]
    ]


def test_index__has_a_line_a_sweep_and_a_link_to_its_page(tmp_path):
    for name, error in (("s", 0.1), ("t", 0.2)):
        put(tmp_path, name, None, [run(0, "a", "AdaGrad", error, error)])
    write_report(tmp_path, "s")
    page = write_index(tmp_path).read_text()
    assert page.count("AdaGrad alone was run") == 2
    assert '<a href="s.html">' in page
    assert "t.html" not in page


@pytest.mark.system
def test_first_screen__is_seen_without_scrolling_and_readable_for_everybody(tmp_path):
    rows = list(two_learners(4))
    rows[0] |= {"status": "failed", "error": "no memory", **NOTHING}
    put(tmp_path, "s", [row["run_id"] for row in rows], rows)
    page = write_report(tmp_path, "s").path
    look_at([page], SIZES)
    with browser() as started, opened(started, page) as (shown, complaints):
        for what in (".facts", "h1", ".chart", ".flags", "table"):
            box = shown.locator(what).first.bounding_box()
            assert box["y"] >= 0, what
            assert box["y"] + box["height"] <= 900, what
        assert complaints == []


NAMES = ("a.b", "it's [0]", 'q"<script>', "plain")


def chart(**how):
    rows = [
        {
            **{"its stream": stream, "learner's": learner, "t.x": x, "y[0]": y, "least": y / 2},
            "largest": None if k else 2 * y,
        }
        for stream in ("s < 1", "s & 2")
        for k, learner in enumerate(NAMES)
        for x, y in ((1, 0.5), (10, 0.25 + k))
    ]
    axes = {"x": "t.x", "y": "y[0]", "picks": ["its stream"], **how}
    return Chart("A title", "In words", rows, series="learner's", **axes)


@pytest.mark.parametrize(
    "how",
    [
        {"band": ("least", "largest"), "log": "xy"},
        {"mark": "point", "joined": ["plain"], "marks": [{"its stream": "s < 1", "t.x": 3}]},
        {"mark": "point", "diagonal": True, "log": "xy"},
        {"mark": "point", "y": "its stream", "picks": (), "band": ("least", "largest")},
    ],
)
def test_chart__is_a_file_for_each_pick_with_all_names(how):
    one = chart(**how)
    files = list(one.files())
    assert [words for words, _ in files] == (["s < 1", "s & 2"] if one.picks else [""])
    for _, spec in files:
        svg = unescape(drawn(spec))
        assert [word in svg for word in (*NAMES, "var(", "NaN")] == [True] * 4 + [False] * 2
    assert drawn(files[0][1], "png")[:4] == b"\x89PNG"


def test_chart__on_a_page_is_data_and_names_fields_by_place():
    text = chart().on_page()
    spec, columns, rows = json.loads(text)
    assert [dict(zip(columns, row, strict=True)) for row in rows] == chart().rows
    assert set(re.findall(r'<|"field": ?"(\w+)"', text)) <= {f"c{k}" for k in range(6)}
    assert [one["bind"]["options"][0] for one in spec["params"]] == ["s < 1", "all"]


def test_front__has_what_nothing_is_better_than_in_both(tmp_path):
    draw, rows, expected = np.random.default_rng(0), [], set()
    for name in "abcdefghij":
        points = (draw.integers(1, 5, (draw.integers(2, 9), 2)) / 10).tolist()
        rows += [
            run(len(rows) + k, name, "AdaGrad", loss, loss, seconds=cost, params=f'{{"c": {k}}}')
            for k, (cost, loss) in enumerate(points)
        ]
        expected |= {
            (f"{name}, shuffled", cost, loss)
            for cost, loss in points
            if not any(c <= cost and e <= loss and (c, e) != (cost, loss) for c, e in points)
        }
    put(tmp_path, "s", None, rows)
    found = [row for row in Sections(tmp_path, "s").rows("cost_points") if row["learner"] == FRONT]
    assert {
        (row["stream"], round(row["value"] / 1e5, 9), row["merit"]) for row in found
    } == expected


def test_figures__are_written_in_both_kinds(tmp_path):
    rows = [
        run(k, f"set{k % 2}", "OGD", 0.5, 0.1, params=f'{{"step_size": {1 + k // 2}.0}}')
        for k in range(4)
    ]
    put(tmp_path, "s", None, rows)
    write_report(tmp_path, "s", tmp_path / "drawn")
    svg, png = ({one.stem for one in (tmp_path / "drawn").glob(f"*.{k}")} for k in ("svg", "png"))
    assert (
        svg
        == png
        >= {"s-the-best-of-each-learner", "s-step_size-set0-shuffled", "s-step_size-set1-shuffled"}
    )
    assert "".join(svg).isascii()
