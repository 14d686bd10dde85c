"""How a report is told: warnings once, streams in the order of numbers, one stream for data that
differ in their seed only, names where lines end, and no more digits or columns than say something.
"""

import re

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flows.report.axes import Axis
from flows.report.document import report_of, write_report
from flows.report.drawing import Flag, Series, merged_flags, plot
from flows.report.pages import cell, text_of, without_empty
from flows.report.sections.curves import touching_ends
from flows.report.sections.lines import READ, results_of
from flows.tables.data_seeds import data_seeds_together
from flows.tables.parameters import sort_key
from flows.results.views import runs_of
from koco_stream.runs.schemas import RUNS, schema
from tests.helpers.many_runs import put, run

LEGEND = "M 4.2 "  # where the first handle of a legend begins


@pytest.fixture
def report(tmp_path):
    """Write results as those of a sweep, and give its report."""

    def made(rows):
        put(tmp_path, "s", [row["run_id"] for row in rows], rows)
        write_report(tmp_path, "s")
        return report_of(tmp_path, "s"), (tmp_path / "reports" / "s.html").read_text()

    return made


def test_data_seeds__are_one_stream_over_all_of_which_is_averaged(report):
    names = [f"sea,n_rows={n},data_seed={k}" for n in (1000, 200, 50) for k in (1, 2, 3)]
    rows = [
        run(10 * k + seed, name, "AdaGrad", 0.1 * k, 0.01 * k, seed)
        for k, name in enumerate(names)
        for seed in (0, 1)
    ]
    found, _ = report(rows)
    titles = [f"sea,n_rows={n}, 3 data seeds, shuffled" for n in (50, 200, 1000)]
    assert [stream.title for stream, _ in found["sections"]] == titles
    ours = [row for row in found["best"] if row[1] == "AdaGrad"]
    assert [(row[0], row[3], row[4]) for row in ours] == [
        (titles[0], 6, pytest.approx(0.07)),
        (titles[1], 6, pytest.approx(0.04)),
        (titles[2], 6, pytest.approx(0.01)),
    ]
    constants = [row for row in found["best"] if row[1] == "Constant"]
    assert [row[0] for row in constants] == titles  # once a stream, whatever its seeds
    assert {row[0] for row in found["data"]} == set(names)
    assert "9 datasets" in found["overview"].facts


def test_datasets_with_one_data_seed__keep_their_names_and_identity():
    rows = [run(k, name, "AdaGrad", 1.0, 0.1) for k, name in enumerate(["sea", "sea,data_seed=2"])]
    table = pa.Table.from_pylist(rows, schema=schema(RUNS))
    alone = data_seeds_together(table.slice(1), ["sea,data_seed=2"])
    assert alone.column("dataset").to_pylist() == ["sea,data_seed=2"]
    assert alone.column("dataset_hash").to_pylist() == ["hash of sea,data_seed=2"]
    both = data_seeds_together(table, ["sea", "sea,data_seed=2"])
    assert both.column("dataset").to_pylist() == ["sea, 2 data seeds"] * 2
    assert both.column("dataset_hash").to_pylist() == [None, None]


def test_best_by_error_that_is_not_the_best_by_loss__is_noted(report):
    rows = [run(0, "a", "AdaGrad", 0.5, 0.1), run(1, "a", "OGD", 0.4, 0.2)]
    found, page = report(rows)
    words = "a, shuffled: the best by error rate is AdaGrad, by mean loss OGD"
    assert Flag(words, link="best") in found["overview"].warnings
    assert words in page


def test_best_by_error_that_is_the_best_by_loss__needs_no_note(report):
    tied = [run(k, "a", name, 0.3, 0.2) for k, name in enumerate(("AdaGrad", "NAG"), 2)]
    found, _ = report([run(0, "a", "OGD", 0.3, 0.1), run(1, "a", "NORMA", 0.4, 0.1), *tied])
    assert not any("by mean loss" in flag.words for flag in found["overview"].warnings)


def test_doubtful_rounds__are_told_once_with_the_learners(report):
    rows = [run(k, "a", "AdaGrad", 0.1 * k, 0.1, k, doubtful_rounds=k) for k in range(3)]
    rows.append(run(3, "a", "OGD", 0.5, 0.2, doubtful_rounds=0))
    _, page = report(rows)
    told = "Double precision cannot vouch for all rounds of 2 runs of AdaGrad "
    assert text_of(page).count(told) == 1


def test_warnings_of_a_kind__are_one_with_its_details_folded(report):
    rows = [run(k, f"set{k}", "AdaGrad", 0.95, 0.6) for k in range(12)]
    found, page = report(rows)
    [flag] = found["overview"].warnings
    assert flag.words == "No better than Constant: AdaGrad on 12 of 12"
    assert len(flag.details) == 12
    assert page.count(f"<details><summary>{flag.words}") == 1
    assert merged_flags("all", ["one"]) == [Flag("one")]
    assert merged_flags("all", []) == []


def test_columns_without_a_value__are_left_out(report):
    _, page = report([run(0, "a", "AdaGrad", 0.5, 0.1)])
    best = re.search(r'data-name="s-best">.*?</thead>', page, re.S)[0]
    headers = re.findall(r"<th[^>]*>([^<]*)", best)
    assert "dictionary" not in headers
    assert {"dataset", "learner", "mean loss", "seconds"} <= set(headers)
    shown = without_empty(["a", "b", "c"], [[1, None, "x"], [2.5, None, None]])
    assert shown == ([("a", True), ("c", False)], [[1, "x"], [2.5, None]])
    assert [name for name, _ in without_empty(["a"], []).columns] == ["a"]


@given(st.lists(st.integers(0, 10**6), min_size=1))
def test_texts_with_numbers__are_sorted_by_the_numbers(numbers):
    texts = [f"n_rows={n},k" for n in numbers]
    assert sorted(texts, key=sort_key) == [f"n_rows={n},k" for n in sorted(numbers)]
    mixed = ["b", "a10", "a9", 2, 1.5, "10", "9a"]
    assert sorted(mixed, key=sort_key) == [1.5, 2, "9a", "10", "a9", "a10", "b"]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.123456, "0.123"),
        (1234.56, "1,235"),
        (1e-7, "1.00e−07"),
        (-3.7e-5, "−0.000037"),
        (-0.0281, "−0.0281"),
        (2.0, "2.00"),
        (0.0, "0"),
        (100.0, "100"),
        (999.7, "1,000"),
        (-3, "−3"),
        (12345678.0, "1.23e+07"),
        (1234567, "1,234,567"),
        (True, "yes"),
        (None, "–"),
    ],
)
def test_numbers__have_three_digits(value, text):
    assert text_of(value) == text


def test_names__stand_at_the_ends_of_lines_that_are_apart_and_else_below():
    x, y = Axis("t", log=True), Axis("error", low=0.0)
    apart = [Series("one", [1, 10], [0.5, 0.1]), Series("two", [1, 10], [0.5, 0.4])]
    close = [Series("one", [1, 10], [0.5, 0.4]), Series("two", [1, 10], [0.5, 0.401])]
    at_ends, below = (plot(each, None, x, y, "alt", wide=True).svg for each in (apart, close))
    assert LEGEND not in at_ends
    assert LEGEND in below
    for drawn in (at_ends, below):
        assert all(drawn.count(f">{name}</text>") == 1 for name in ("one", "two"))
    assert 'viewBox="0 0 960' in at_ends
    assert LEGEND in plot(apart, None, x, y, "alt").svg


def test_axis__begins_at_zero_unless_the_lines_lie_close_together():
    axis = Axis("error", low=0.0)
    assert axis.zoomed([0.1, 0.5]).low == 0.0
    assert axis.zoomed([0.4, 0.5]).low is None
    assert axis.zoomed([]).low == axis.zoomed([float("nan")]).low == 0.0
    assert Axis("loss", log=True).zoomed([4.0, 5.0]) == Axis("loss", log=True)


def test_lines__have_the_names_of_the_best_table_in_all_plots(report, tmp_path):
    params = '{"loss": "squared", "clip": 1.0}'
    sizes = [run(k, "a", "OjaSON", 0.5, 0.01 * k, sketch_size=k, params=params) for k in (2, 10)]
    found, _ = report([*sizes, run(20, "a", "AdaGrad", 0.5, 0.4)])
    names = {row[1] for row in found["best"]} - {"Constant"}
    assert names == {"OjaSON m = 2", "OjaSON m = 10", "AdaGrad"}
    styles = results_of(runs_of(tmp_path, "s", READ)).styles
    assert names == set(styles)
    assert len(set(styles.values())) == 3


def test_markdown__has_a_line_for_each_warning_and_detail(report, tmp_path):
    found, _ = report([run(k, f"set{k}", "AdaGrad", 0.95, 0.6) for k in range(3)])
    lines = (tmp_path / "reports" / "s.md").read_text().splitlines()
    [flag] = found["overview"].warnings
    at = lines.index(f"- {flag.words}:")
    assert lines[at + 1 : at + 4] == [f"  - {one}" for one in flag.details]


def test_newer_code__replaces_the_older_of_its_data_seed_only():
    seeds = ["sea,data_seed=1", "sea,data_seed=2", "sea,data_seed=2"]
    versions, losses = (1, 1, 2), (0.1, 9.0, 0.3)
    rows = [
        run(k, name, "AdaGrad", loss, loss, numbers_version=version)
        for k, (name, version, loss) in enumerate(zip(seeds, versions, losses, strict=True))
    ]
    [stream] = results_of(pa.Table.from_pylist(rows, schema=schema(RUNS)).select(READ)).streams
    [(_, best)] = stream.best_lines
    assert best.n_runs == 2
    assert best.means["mean_loss"] == pytest.approx(0.2)
    assert sorted(stream.identities) == [f"hash of {name}" for name in seeds[:2]]


def test_wide_plot__has_a_narrow_twin_of_the_same_words_and_other_ids():
    series = [Series("one", [1, 10], [0.5, 0.1], [0.4, 0.1], [0.6, 0.2])]
    drawn = plot(series, None, Axis("t", log=True), Axis("error", low=0.0), "alt", wide=True)
    assert 'viewBox="0 0 480' in drawn.narrow
    ids, others = (set(re.findall(r' id="([^"]*)"', svg)) for svg in (drawn.svg, drawn.narrow))
    assert ids
    assert not ids & others
    assert plot(series, None, Axis("t"), Axis("error"), "alt").narrow == ""


def test_missing_number__stands_in_the_column_of_numbers():
    assert cell(None, is_number=True) == '<td class="n" data-v="">–</td>'


def test_lines_that_end_on_each_other__are_enlarged_over_their_last_rounds():
    t = [10.0, 100.0, 1000.0, 3000.0]
    best, close, far = (
        Series(name, t, [0.6, 0.4, 0.3, end], [0.1] * 4, [0.7] * 4)
        for name, end in (("best", 0.25), ("close", 0.26), ("far", 0.5))
    )
    near = touching_ends([best, far, close])
    assert [one.name for one in near] == ["best", "close"]
    for one in near:
        assert (one.x, len(one.y), len(one.low), len(one.high)) == (t[1:], 3, 3, 3)
    assert touching_ends([best, far]) == touching_ends([best]) == []
    assert touching_ends([best, Series("same", t, best.y)]) == []  # no scale would part them
    assert touching_ends([Series("lost", t, [float("nan")] * 4)]) == []
