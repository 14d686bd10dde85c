"""The report: a page that needs nothing, can be read by everybody, and says what the tables say."""

import csv
import json
import math
import re
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flows.report.axes import Axis, tick_text
from flows.report.document import report_of, write_report
from flows.report.drawing import CHARACTER, LEFT, RIGHT, WIDTH, Series, plot, style_of
from flows.report.pages import cell, markdown_of
from flows.report.rows import kernel_matrix
from flows.report.sections.bounds import newton_bound, son_bound, why_not
from flows.report.sections.costs import front_of
from flows.report.sections.lines import READ, results_of
from flows.report.sections.steps import edges_of
from flows.results.tables import runs_of
from koco_stream import FDSON, ONS
from koco_stream.losses import curvature_of
from koco_stream.runs.schemas import CURVES, RUNS, schema
from koco_stream.streams.manifest import load_manifest
from storage.preparing.prepare import prepare_file
from storage.results import read_curves
from storage.store import open_store
from tests.helpers.browser import browser, look_at, opened
from tests.helpers.memory import AnonymousPeak
from tests.helpers.pages import tables_of
from tests.helpers.swept import swept

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
sketch_size = [0, 3]
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
    draw, where = np.random.default_rng(0), folder / "store"
    X = draw.random((500, 3)) / 2
    np.savetxt(
        folder / "plain.csv",
        np.column_stack([X, X @ [0.9, -0.4, 0.1] + 0.05 * draw.standard_normal(500)]),
        delimiter=",",
    )
    open_store(where)
    prepare_file(where, "plain", [folder / "plain.csv"], header=False)
    swept(folder, SPEC, "small")
    return where


def put(store, sweep, run_ids, rows, *figures):
    """A store in which a sweep of `run_ids` has run, with these rows of results and no curves."""
    open_store(store)
    for kind, columns, results in (("runs", RUNS, rows), ("curves", CURVES, [])) if rows else ():
        (store / "results" / kind).mkdir(parents=True)
        table = pa.Table.from_pylist(results, schema=schema(columns))
        pq.write_table(table, store / "results" / kind / "a.parquet")
    (store / "sweeps").mkdir(exist_ok=True)
    note = {"name": sweep, "file": "", "figures": list(figures), "run_ids": run_ids}
    (store / "sweeps" / f"{sweep}.json").write_text(json.dumps(note))


@pytest.fixture(scope="module")
def page(store):
    return write_report(store, "small").path


def test_report__in_a_browser_is_whole_and_readable_for_everybody(page):
    assert page.read_text().count("<svg") >= 10
    look_at([page])


def test_report__sorts_by_the_keyboard_and_saves_what_parquet_has(page, store, tmp_path):
    with browser() as started, opened(started, page) as (shown, complaints):
        table = shown.locator("table[data-name=small-best]")
        header = table.locator("th", has_text="mean loss")
        header.locator("button").focus()
        for direction, sign in (("ascending", 1), ("descending", -1)):
            shown.keyboard.press("Enter")
            assert header.get_attribute("aria-sort") == direction
            column = 6
            losses = [
                float(row.locator("td").nth(column).get_attribute("data-v"))
                for row in table.locator("tbody tr").all()
            ]
            assert losses == sorted(losses, key=lambda loss, sign=sign: sign * loss)
        with shown.expect_download() as saved:
            shown.get_by_role("button", name="Save as CSV: Best parameters").click()
        saved.value.save_as(tmp_path / "best.csv")
        assert complaints == []
    with (tmp_path / "best.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.reader(file))
    assert rows[0][:4] == ["dataset", "learner", "parameters", "runs"]
    assert len(rows) == 1 + 2 * 6
    best = pc.min(
        runs_of(store, "small").filter(pc.field("dataset") == "plain").column("mean_loss")
    ).as_py()
    assert min(float(row[6]) for row in rows[1:] if row[0] == "plain") == best


def test_report__best_parameters_are_those_of_the_parquet_tables(page, store):
    runs = pa.concat_tables(
        [pq.read_table(file) for file in sorted((store / "results" / "runs").glob("*.parquet"))]
    )
    means = {}
    for row in runs.to_pylist():
        kind = (row["dataset"], row["learner"], row["sketch_size"])
        means.setdefault(kind, {}).setdefault(row["params"], []).append(row)
    shown = tables_of(page)["small-best"]
    assert len(shown) == len(means)
    for (dataset, learner, size), by_params in means.items():
        column = "error_rate" if dataset != "plain" else "mean_loss"
        best = min(by_params.values(), key=lambda rows: np.mean([row[column] for row in rows]))
        mine = [
            r
            for r in shown
            if r["learner"] == learner
            and r["dataset"].startswith(dataset)
            and (size is None or f"sketch_size={size}" in r["parameters"])
        ]
        assert len(mine) == 1
        assert float(mine[0]["mean loss"]) == pytest.approx(
            np.mean([row["mean_loss"] for row in best]), rel=1e-14
        )
        assert float(mine[0]["seconds"]) == pytest.approx(
            np.mean([row["seconds"] for row in best]), rel=1e-12
        )
        assert mine[0]["runs"] == str(len(best))
        if column == "error_rate":
            assert float(mine[0]["error rate"]) == pytest.approx(
                np.mean([row["error_rate"] for row in best]), rel=1e-14
            )


def test_report__curves_and_steps_are_those_of_the_parquet_tables(page, store):
    tables = tables_of(page)
    runs = runs_of(store, "small").filter(pc.field("dataset") == "plain")
    curves = read_curves(store).to_pylist()
    losses = {}
    for row in runs.to_pylist():
        if row["learner"] == "AdaGrad":
            losses[row["run_id"]] = (row["mean_loss"], row["step_size"])
    sections = report_of(store, "small")["sections"]
    anchor = next(stream.anchor for stream, _ in sections if stream.title == "plain")
    best = min(losses, key=lambda run_id: losses[run_id][0])
    expected = {
        point["t"]: point["cumulative_loss"] / point["t"]
        for point in curves
        if point["run_id"] == best and point["t"] >= 10
    }
    assert {int(row["t"]): float(row["AdaGrad"]) for row in tables[f"{anchor}-1"]} == expected
    by_step = {
        float(r["value"]): float(r["mean loss"])
        for r in tables[f"{anchor}-2"]
        if r["line"] == "AdaGrad"
    }
    assert by_step == {step: loss for loss, step in losses.values()}


def test_report__says_what_was_run_and_flags_an_optimum_on_the_edge(page, store):
    text, words = page.read_text(), page.with_suffix(".md").read_text()
    for shown in (text, words):
        assert load_manifest(store, "plain").dataset_hash[:12] in shown
        assert "powers_of_two = [-3, 3]" in shown
        assert "numpy" in shown
    assert (
        "AdaGrad: the best step_size, 0.004, is the largest of its grid (0.001 to 0.004): the"
        " optimum may lie beyond" in words
    )
    edges = {
        row["dataset"]: row["on the edge"]
        for row in tables_of(page)["small-best"]
        if row["learner"] == "AdaGrad"
    }
    assert edges["plain"] == "step_size (largest)"
    assert "Theorem 2 of Luo et al. (NIPS 2016)" in words
    assert "AdaGrad: it is not an online Newton step" in words


def test_report__markdown_has_tables_of_equal_rows_and_nothing_that_looks_like_html(page):
    lines = page.with_suffix(".md").read_text().split("\n")
    for before, line in pairwise(lines):
        if before.startswith("| ") and line.startswith("|"):
            assert len(line.replace("\\|", "").split("|")) == len(
                before.replace("\\|", "").split("|")
            )
    assert markdown_of("a|b <i>*c*</i>\nd") == "a\\|b &lt;i>\\*c\\*&lt;/i> d"


def test_cells__keep_the_whole_number_and_let_nothing_through():
    assert cell(0.123456789) == '<td class="n" data-v="0.123456789">0.12346</td>'
    assert cell(1234567) == '<td class="n" data-v="1234567">1,234,567</td>'
    assert cell(None) == '<td data-v="">–</td>'
    assert cell("<script>") == "<td>&lt;script&gt;</td>"


def test_report__of_runs_that_are_not_ok_or_not_there_yet(store, tmp_path):
    runs = runs_of(store, "small").to_pylist()
    for row in runs:
        if row["learner"] == "AdaGrad":
            row.update(
                status="diverged", error="at round 7", mean_loss=None, error_rate=None, regret=None
            )
    other = tmp_path / "store"
    put(other, "small", [row["run_id"] for row in runs], runs[1:])
    report = report_of(other, "small")
    assert report["flags"][0] == f"1 of {len(runs)} runs are not there yet"
    assert any(flag.endswith("runs diverged") for flag in report["flags"])
    assert {row[1] for row in report["best"]} == {"OjaSON", "ONS", "FDSON", "PROSNKONS"}
    assert report["not_ok"][0][1:] == ["AdaGrad", report["not_ok"][0][2], "diverged", "at round 7"]
    assert report["data"][0][4] == "no longer in the store"
    assert "no longer in the store" in write_report(other, "small").path.read_text()


def test_report__of_no_runs_at_all_is_a_page(store, tmp_path):
    put(tmp_path / "store", "none", ["x"], [], "son-figure-1")
    assert "0 of 1 runs on 0 datasets" in write_report(tmp_path / "store", "none").path.read_text()


def test_curves__of_some_runs_are_those_of_all(store):
    every = read_curves(store)
    some = pc.unique(every.column("run_id")).to_pylist()[3:6]
    expected = every.filter(pc.is_in(every.column("run_id"), pa.array(some)))
    found = read_curves(store, some)
    by = [("run_id", "ascending"), ("t", "ascending")]
    assert found.sort_by(by).equals(expected.sort_by(by))
    assert read_curves(store, []).num_rows == 0


def test_edges__a_value_inside_that_is_as_good_is_no_edge(store):
    runs = runs_of(store, "small", READ)
    adagrad = runs.filter((pc.field("learner") == "AdaGrad") & (pc.field("dataset") == "plain"))
    (line,) = results_of(adagrad).streams[0].lines
    assert edges_of(line) == {"step_size": "largest"}
    level = adagrad.set_column(
        adagrad.column_names.index("mean_loss"), "mean_loss", pa.array([0.5] * 3)
    )
    assert edges_of(results_of(level).streams[0].lines[0]) == {}
    beyond = adagrad.set_column(
        adagrad.column_names.index("status"), "status", pa.array(["ok", "ok", "diverged"])
    )
    smaller = results_of(beyond).streams[0].lines[0]
    assert smaller.best.planned == 1
    # the middle value is the best that ended well, and the one beyond it was tried
    assert edges_of(smaller) == {}


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=30))
def test_front__is_what_nothing_beats(points):
    found = {points[k] for k in front_of(points)}
    beaten = {p for p in points if any(q[0] <= p[0] and q[1] <= p[1] and q != p for q in points)}
    assert found == set(points) - beaten


@given(st.floats(1e-12, 1e12), st.floats(0.1, 12.0), st.booleans())
def test_axes__have_a_few_ticks_whose_labels_do_not_touch(low, decades, log):
    high = low * 10**decades
    ticks = [
        tick
        for tick in Axis("x", log).locator(low, high).tick_values(low, high)
        if low <= tick <= high
    ]
    assert 2 <= len(ticks) <= 8
    texts = [tick_text(tick) for tick in ticks]
    assert len(set(texts)) == len(texts)
    places = [
        math.log10(tick / low) / decades if log else (tick - low) / (high - low) for tick in ticks
    ]
    across = (WIDTH - LEFT - RIGHT) / CHARACTER  # in characters
    for k, (here, there) in enumerate(pairwise(places)):
        assert (there - here) * across > (len(texts[k]) + len(texts[k + 1])) / 2


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (0.05, "0.05"), (20000, "20,000"), (1e6, "10⁶"), (2e-7, "2·10⁻⁷"), (-3, "−3")],
)
def test_ticks__are_written_as_people_do(value, text):
    assert tick_text(value) == text


def test_plots__are_xml_and_leave_out_what_an_axis_cannot_show():
    series = [
        Series("a < b", [1, 10, 100], [0.5, math.nan, -1.0], [0.1] * 3, [0.9] * 3, ringed=[0, 1]),
        Series("none", [], []),
    ]
    drawing = plot(
        series,
        {one.name: style_of(k) for k, one in enumerate(series)},
        Axis("t", True),
        Axis("e & f", True),
        'says "it"',
    )
    root = ElementTree.fromstring(drawing.svg)
    assert root.attrib["aria-label"] == 'says "it"'
    assert "a < b" in "".join(root.itertext())
    assert "nan" not in drawing.svg
    assert ElementTree.fromstring(plot([], {}, Axis("x"), Axis("y", True), "").svg) is not None
    # begin at zero, and have room for ticks
    for values in ([0.0, 0.0], [0.5, 0.5], [0.1, 9.0], []):
        shown = plot(
            [Series("a", values, values)], {"a": style_of(0)}, Axis("t"), Axis("e", low=0.0), ""
        ).svg
        ticks = re.findall(r"text-anchor: end[^>]*>([^<]*)<", shown)
        assert ticks[0] == "0"
        assert 3 <= len(ticks) <= 7
    assert len({style_of(k) for k in range(49)}) == 49


def test_plots__share_no_id_on_a_page_and_are_the_same_when_drawn_again():
    def drawn(alt):
        series = [
            Series(name, [1, 10, 100], [0.5, 0.4, 0.3], [0.1] * 3, [0.9] * 3, ringed=[0])
            for name in "abc"
        ]
        return plot(
            series,
            {one.name: style_of(k) for k, one in enumerate(series)},
            Axis("t", True),
            Axis("e"),
            alt,
        ).svg

    first, second = drawn("first"), drawn("second")
    assert drawn("first") == first
    ids = [re.findall(r' id="([^"]*)"', svg) for svg in (first, second)]
    assert ids[0]
    assert len({*ids[0], *ids[1]}) == len(ids[0]) + len(ids[1])
    for svg, own in zip((first, second), ids, strict=True):
        assert set(re.findall(r'href="#([^"]*)"', svg)) | set(
            re.findall(r"url\(#([^)]*)\)", svg)
        ) == set(own)
        # a colour stands only behind the page's own, for where there is no page
        assert not re.findall(r"(?<!,)#[0-9a-f]{6}\b", svg)
        assert "<script" not in svg
        assert "font-family" not in svg.partition(">")[2]


def test_drawing__is_imported_by_what_draws_alone():
    code = (
        "import sys, flows.cli, flows.report.document, flows.sweep.steps;"
        " sys.exit('matplotlib' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
    code = (
        "import sys, flows.report.drawing as d; d.plot([], {}, d.Axis('x'), d.Axis('y'), '');"
        " sys.exit('matplotlib.pyplot' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_bound__is_above_the_regret_of_online_newton_and_does_not_depend_on_the_rows_scale():
    draw = np.random.default_rng(1)
    X = draw.uniform(-0.5, 0.5, (400, 3))
    y = np.clip(X @ [1.0, -0.5, 0.2] + 0.1 * draw.standard_normal(400), -1, 1)
    params = {
        "loss": "squared",
        "clip": 1.0,
        "alpha": 0.5,
        "curvature": curvature_of("squared", 1.0),
        "curvature_schedule": "constant",
    }
    losses = np.cumsum((ONS(0.5).progressive(X, y) - y) ** 2)
    bound = newton_bound(kernel_matrix(X, params), y, params, [20, 400])
    for t, competitor, most in zip(bound.t, bound.competitor, bound.bound, strict=True):
        assert losses[t - 1] - competitor <= most
    wide = newton_bound(kernel_matrix(10 * X, params), y, {**params, "alpha": 50.0}, [20, 400])
    larger = newton_bound(kernel_matrix(5 * X, params), y, {**params, "alpha": 12.5}, [20, 400])
    np.testing.assert_allclose(wide.bound, larger.bound, rtol=1e-9)
    assert why_not("KONS", params, 400) is None
    assert "not an online Newton step" in why_not("OGD", params, 400)
    assert "above the loss's" in why_not("KONS", {**params, "curvature": 1.0}, 400)
    assert "2,001 rounds" in why_not("KONS", params, 2001)


@pytest.mark.parametrize("intercept", [False, True])
def test_bound__of_son_s_learners_is_above_their_regret_and_a_curvature_s_excess_grows(intercept):
    draw = np.random.default_rng(2)
    X = draw.uniform(-0.5, 0.5, (400, 8)) * 1.5 ** -np.arange(8)
    y = np.clip(X @ draw.standard_normal(8) + 0.1 * draw.standard_normal(400), -1, 1)
    sigma = curvature_of("squared", 1.0)
    params = {
        "loss": "squared",
        "clip": 1.0,
        "alpha": 0.5,
        "curvature": sigma,
        "curvature_schedule": "constant",
        "fit_intercept": intercept,
    }
    rounds = [20, 400]
    for learner, model, more in (
        ("ONS", ONS(0.5, fit_intercept=intercept), {}),
        ("ONS", ONS(0.5, fit_intercept=intercept, curvature=1.0), {"curvature": 1.0}),
        (
            "ONS",
            ONS(0.5, fit_intercept=intercept, curvature_schedule="decreasing"),
            {"curvature_schedule": "decreasing"},
        ),
        ("FDSON", FDSON(3, alpha=0.5, fit_intercept=intercept), {"sketch_size": 3}),
    ):
        assert why_not(learner, {**params, **more}, 400) is None
        losses = np.cumsum((model.progressive(X, y) - y) ** 2)
        bound = son_bound(X, y, learner, {**params, **more}, rounds)
        for t, competitor, most in zip(bound.t, bound.competitor, bound.bound, strict=True):
            assert losses[t - 1] - competitor <= most
        if "curvature" in more:
            assert bound.bound[1] - bound.bound[0] > 2 * 16 * (1.0 - sigma) * 380
    wide, narrow = (
        son_bound(X, y, "FDSON", {**params, "sketch_size": m}, [400]).bound[0] for m in (9, 1)
    )
    assert wide < narrow  # nothing is lost by a sketch that holds all directions
    assert "no bound is known" in why_not("OjaSON", params, 400)
    assert "random projections" in why_not("RPSON", params, 400)
    assert "diagonal" in why_not("FDSON", {**params, "diagonal": True}, 400)
    assert "constant" in why_not("FDSON", {**params, "curvature_schedule": "decreasing"}, 400)
    assert "2,001 rounds" in why_not("ONS", params, 2001)


def test_regret_section__has_the_bounds_of_son_s_learners_and_says_why_oja_has_none(store):
    report = report_of(store, "small")
    [figures] = [one for stream, one in report["sections"] if stream.title.startswith("plain")]
    [figure] = [one for one in figures if one.title == "Regret"]
    told = {row[0]: row for row in figure.rows}
    for name, row in told.items():
        assert (row[-1] is not None) == (name.startswith("ONS") or name.startswith("FDSON"))
        if row[-1] is not None:
            assert row[-2] <= row[-1]
    assert any(name.startswith("FDSON") for name in told)
    for said in ("Theorem 2 of Luo", "Theorem 3 of Luo", "no bound is known for Oja's sketch"):
        assert said in figure.note


@pytest.mark.soak
def test_report__of_a_hundred_thousand_runs_takes_seconds_and_little_memory(tmp_path):
    store = tmp_path / "store"
    open_store(store)
    draw = np.random.default_rng(0)
    n_seeds, steps, t = (
        10,
        [2.0**k for k in range(-10, 10)],
        [round(10 ** (k / 8)) for k in range(41)],
    )
    runs, curves = [], []
    for dataset in range(50):
        for learner in range(10):
            for step in steps:
                params = json.dumps(
                    {"clip": 1.0, "fit_intercept": False, "loss": "squared", "step_size": step}
                )
                for seed in range(n_seeds):
                    loss = float(abs(np.log2(step)) / 20 + learner / 50 + 0.01 * draw.random())
                    runs.append(
                        {
                            "run_id": f"{len(runs):032x}",
                            "dataset": f"d{dataset}",
                            "dataset_hash": f"{dataset:064x}",
                            "order": "shuffled",
                            "order_seed": seed,
                            "learner": ["OGD", "AdaGrad"][learner % 2],
                            "sketch_size": learner // 2,
                            "params": params,
                            "numbers_version": 1,
                            "status": "ok",
                            "rounds": t[-1],
                            "mean_loss": loss,
                            "error_rate": loss,
                            "seconds": 0.1,
                            "host": "a",
                            "version": "b",
                        }
                    )
    ids = [row["run_id"] for row in runs]
    put(store, "many", ids, runs)
    with pq.ParquetWriter(store / "results" / "curves" / "a.parquet", schema(CURVES)) as writer:
        for k in range(0, len(runs), 10_000):
            some = np.array(ids[k : k + 10_000])
            rows = pa.table(
                {
                    "run_id": pa.array(np.repeat(some, len(t))),
                    "t": pa.array(np.tile(t, len(some))),
                    "cumulative_loss": pa.array(np.tile(np.array(t, float), len(some))),
                    "mistakes": pa.array(np.tile(t, len(some))),
                    "dictionary_size": pa.nulls(len(some) * len(t), pa.int64()),
                },
                schema(CURVES),
            )
            writer.write_table(rows)
    del runs, curves, ids
    pa.default_memory_pool().release_unused()
    with AnonymousPeak() as memory:
        begun = time.monotonic()
        written = write_report(store, "many").path
        took = time.monotonic() - begun
    print(
        f"100,000 runs: {took:.1f} s, {max(memory.peaks.values()) / 1e6:.0f} MB, a page of"
        f" {written.stat().st_size / 1e6:.1f} MB"
    )
    assert took < 30
    assert max(memory.peaks.values()) < 1e9
    assert written.stat().st_size < 6e6
