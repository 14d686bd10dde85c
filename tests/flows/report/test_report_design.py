"""How a report is told: warnings once, streams in the order of numbers, one stream for data that
differ in their seed only, and no more digits or columns than say something.
"""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flows.report.content import Flag, merged_flags
from flows.report.document import page_of, write_report
from flows.report.pages import cell, text_of, without_empty
from flows.tables.parameters import sort_key
from tests.helpers.many_runs import put, run


@pytest.fixture
def report(tmp_path):
    """Write results as those of a sweep, and give its report."""

    def made(rows):
        put(tmp_path, "s", [row["run_id"] for row in rows], rows)
        write_report(tmp_path, "s")
        return page_of(tmp_path, "s"), (tmp_path / "reports" / "s.html").read_text()

    return made


def best_of(page):
    [figure] = [one for one in page.figures if one.title == "Best parameters"]
    return [dict(zip(figure.columns, row, strict=True)) for row in figure.rows]


def test_data_seeds__are_one_stream_over_all_of_which_is_averaged(report):
    names = [f"sea,n_rows={n},data_seed={k}" for n in (1000, 200, 50) for k in (1, 2, 3)]
    rows = [
        run(10 * k + seed, name, "AdaGrad", 0.1 * k, 0.01 * k, seed)
        for k, name in enumerate(names)
        for seed in (0, 1)
    ]
    found, _ = report(rows)
    titles = [f"sea,n_rows={n}, 3 data seeds, shuffled" for n in (50, 200, 1000)]
    assert [row[0] for row in found.rows] == titles
    assert [(row["dataset"], row["runs"], row["error rate"]) for row in best_of(found)] == [
        (title, 6, pytest.approx(mean))
        for title, mean in zip(titles, (0.07, 0.04, 0.01), strict=True)
    ]
    [data] = [one for one in found.figures if one.title == "What was run: data"]
    assert {row[0] for row in data.rows} == set(names)
    assert "9 datasets" in found.facts


def test_best_by_error_that_is_not_the_best_by_loss__is_noted(report):
    rows = [run(0, "a", "AdaGrad", 0.5, 0.1), run(1, "a", "OGD", 0.4, 0.2)]
    found, page = report(rows)
    words = "a, shuffled: the best by error rate is AdaGrad, by mean loss OGD"
    assert Flag(words) in found.flags
    assert words in page
    tied = [run(k, "a", name, 0.3, 0.2) for k, name in enumerate(("AdaGrad", "NAG"), 2)]
    found, _ = report([run(0, "a", "OGD", 0.3, 0.1), run(1, "a", "NORMA", 0.4, 0.1), *tied])
    assert not any("by mean loss" in flag.words for flag in found.flags)


def test_doubtful_rounds__are_told_once_with_the_learners(report):
    rows = [run(k, "a", "AdaGrad", 0.1 * k, 0.1, k, doubtful_rounds=k) for k in range(3)]
    rows.append(run(3, "a", "OGD", 0.5, 0.2, doubtful_rounds=0))
    _, page = report(rows)
    told = "Double precision cannot vouch for all rounds of 2 runs of AdaGrad "
    assert text_of(page).count(told) == 1


def test_warnings_of_a_kind__are_one_with_its_details_folded(report, tmp_path):
    found, page = report([run(k, f"set{k}", "AdaGrad", 0.95, 0.6) for k in range(12)])
    [flag] = found.flags
    assert flag.words == "No better than Constant: AdaGrad on 12 of 12"
    assert len(flag.details) == 12
    assert page.count(f"<details><summary>{flag.words}") == 1
    lines = (tmp_path / "reports" / "s.md").read_text().splitlines()
    at = lines.index(f"- {flag.words}:")
    assert lines[at + 1 : at + 13] == [f"  - {one}" for one in flag.details]
    assert merged_flags("all", ["one"]) == [Flag("one")]
    assert merged_flags("all", []) == []


def test_columns_without_a_value__are_left_out(report):
    _, page = report([run(0, "a", "AdaGrad", 0.5, 0.1)])
    best = re.search(r'aria-label="Best parameters">.*?</thead>', page, re.S)[0]
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


def test_missing_number__stands_in_the_column_of_numbers():
    assert cell(None, is_number=True) == '<td class="n" data-v="">–</td>'
