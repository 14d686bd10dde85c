"""The first screen of a report: what was compared, who won, what failed, and what to run next."""

import json
import re

import pytest

from flows.report.document import report_of, write_report
from flows.tables.decisions import DECISIONS, write_decisions
from storage.store import open_store
from tests.helpers.many_runs import put, run
from tests.helpers.pages import SIZES, browser, look_at, opened


@pytest.fixture
def overview(tmp_path):
    """The first screen of a sweep with these results, and of which so many are missing."""

    def made(rows, missing=0, datasets=()):
        ids = [row["run_id"] for row in rows] + [f"missing {k}" for k in range(missing)]
        put(tmp_path, "s", ids, rows)
        note = tmp_path / "sweeps" / "s.json"
        named = {"datasets": {name: name for name in datasets}}
        note.write_text(json.dumps({**json.loads(note.read_text()), **named}))
        write_report(tmp_path, "s")
        return report_of(tmp_path, "s")["overview"]

    return made


def params(step):
    return json.dumps({"step_size": step})


def two_learners(n_datasets):
    """AdaGrad is better than OGD everywhere, but for the last dataset; each has two orders."""
    for k in range(n_datasets):
        for j, (learner, error) in enumerate((("AdaGrad", 0.1), ("OGD", 0.2))):
            for seed in (0, 1):
                worse = 0.15 if learner == "AdaGrad" and k == n_datasets - 1 else 0.0
                number = 100 * k + 10 * j + seed
                error_rate = error + worse + 0.001 * k
                yield run(number, f"set{k}", learner, 0.3 + error_rate, error_rate, seed)


def test_two_learners_and_many_blocks__are_told_apart_with_ranks_and_a_diagram(overview):
    found = overview(list(two_learners(8)))
    assert found.facts[:4] == ["2 learners", "8 datasets", "2 shuffled orders", "32 runs, all ok"]
    assert found.conclusion.startswith("AdaGrad is better than OGD: it wins on 7 of 8 blocks")
    assert found.columns[:3] == ["learner", "mean rank", "µs a round"]
    assert [row[:2] for row in found.rows] == [
        ["AdaGrad", pytest.approx(9 / 8)],
        ["OGD", pytest.approx(15 / 8)],
    ]
    assert all(row[2] > 0 for row in found.rows)
    assert [row[found.columns.index("first on")] for row in found.rows] == [7, 1]
    assert "to" in found.rows[1][4]
    assert [row[-1] for row in found.rows] == ["8 of 8"] * 2
    assert found.notes[0].endswith("; OGD on set7.")
    assert found.picture.svg.startswith("<svg")
    assert found.warnings == []
    assert found.chosen == ""  # there was no choice


def with_grids(rows):
    """Runs, and the same with another step."""
    return [
        *rows,
        *({**row, "run_id": f"more {k}", "params": params(0.9)} for k, row in enumerate(rows)),
    ]


def test_choice_by_the_rounds_that_are_judged__is_said_with_the_command_for_another(
    overview, tmp_path
):
    found = overview(with_grids(list(two_learners(2))))
    assert found.picture is None  # of so few blocks
    assert "by the same rounds on which they are judged" in found.chosen
    assert "favours learners with larger grids" in found.chosen
    assert found.other_choice == "koco compare s --select first-half"
    page = (tmp_path / "reports" / "s.html").read_text()
    assert f"<code>{found.other_choice}</code>" in page
    assert f"`{found.other_choice}`" in (tmp_path / "reports" / "s.md").read_text()


def test_one_stream__has_its_errors_instead_of_ranks(overview):
    found = overview(list(two_learners(1)))
    assert found.columns[1] == "error rate"
    assert [row[:2] for row in found.rows] == [["OGD", 0.2], ["AdaGrad", pytest.approx(0.25)]]


def test_one_learner__has_a_row_for_each_stream(overview):
    rows = [run(k, f"set{k}", "AdaGrad", 0.5, 0.1) for k in range(11)]
    found = overview(rows)
    assert found.conclusion == (
        "AdaGrad alone was run, so there is nothing to compare. It is better than Constant on 11"
        " of 11 streams."
    )
    stream, learner, error, microseconds, *others = found.rows[0]
    assert [stream, learner, error, *others] == [
        *("set0, shuffled", "AdaGrad", 0.1),
        *(None, 0.5, True),
    ]
    assert microseconds > 0
    assert len(found.rows) == 8
    assert found.notes == ["The table has the first 8 of 11 streams."]


def test_streams__without_a_result_are_counted_and_named(overview):
    rows = [run(k, f"set{k}", "AdaGrad", 0.5, 0.1) for k in range(4)]
    rows[1] |= {"status": "diverged", "mean_loss": None, "error_rate": None}
    rows[2] |= {"constant_mean_loss": None, "constant_error_rate": None}
    found = overview(rows, missing=2, datasets=["set0", "set1", "set2", "set9"])
    assert found.notes == ["No run has ended well on 1 of 4 streams: set1, shuffled."]
    assert found.conclusion.endswith("better than Constant on 2 of 2 streams, 2 not known.")
    assert found.warnings[0].words == "2 of 6 runs are not computed yet, and none on set9"


def test_failures__are_counted_and_named(overview, tmp_path):
    nothing = dict.fromkeys(("mean_loss", "error_rate"))
    rows = list(two_learners(9))
    rows[0] |= {**nothing, "status": "failed", "error": "no memory"}
    rows[3] |= {**nothing, "status": "diverged", "error": "round 7"}
    found = overview(rows, missing=2)
    assert "36 of 38 runs: 1 diverged, 1 failed, 34 ok" in found.facts
    assert [(flag.words, flag.link) for flag in found.warnings[:3]] == [
        ("2 of 38 runs are not computed yet", ""),
        ("1 run diverged", "not-ok"),
        ("1 run failed", "not-ok"),
    ]
    page = (tmp_path / "reports" / "s.html").read_text()
    assert '<a href="#not-ok">1 run failed</a>' in page
    assert 'id="not-ok"' in page


def test_nothing_better_than_constant__is_the_first_thing_said(overview):
    rows = [run(k, f"set{k}", name, 0.95, 0.6) for k, name in enumerate(("AdaGrad", "OGD"))]
    found = overview([*rows, *(run(9 - k, f"set{k}", "OGD", 1.0, 0.7) for k in (0,))])
    assert found.conclusion.startswith("No learner is better than Constant on any stream.")
    assert found.warnings[0].words == "No better than Constant: OGD on 2 of 2, AdaGrad on 1 of 1"


def test_no_runs__are_a_first_screen_too(overview):
    found = overview([], missing=3)
    assert found.conclusion == "No run has ended well yet."
    assert found.next_run == ""


@pytest.mark.parametrize(
    ("steps", "errors", "said"),
    [
        ((0.1, 0.2, 0.4), (3, 2, 1), "AdaGrad step_size 0.4 (next: 0.8)"),
        ((0.1, 0.2, 0.4), (1, 2, 3), "AdaGrad step_size 0.1 (next: 0.05)"),
        ((-1.0, 0.5, 2.0), (3, 2, 1), "AdaGrad step_size 2 (next: 8)"),
        ((0.1, 0.2, 0.4), (2, 1, 3), ""),
        ((0.1, 0.2, 0.4), (2, 1, 1), ""),  # a value inside is as good
        ((0.1, 0.2, 0.4), (3, 2, None), ""),  # the value beyond was tried, and diverged
        ((0.1, 0.4), (2, 1), ""),  # a grid without inner values
        ((0.0, 0.5, 1.0), (1, 2, 3), ""),  # the learner allows none below
    ],
)
def test_next_run__widens_grids_whose_best_value_is_at_an_edge(steps, errors, said, overview):
    rows = [
        run(10 * k + j, f"set{k}", "AdaGrad", error, error, params=params(step))
        | ({} if error else {"status": "diverged", "mean_loss": None, "error_rate": None})
        for k in range(2)
        for j, (step, error) in enumerate(zip(steps, errors, strict=True))
    ]
    found = overview(rows).next_run
    assert re.findall(r"beyond: (.*) on 2 of 2 streams\. Add", found) == ([said] if said else [])


def test_halving__is_told_from_its_last_rung_alone(overview, tmp_path):
    rows = [
        run(100 * k + 10 * j + rung, f"set{k}", learner, loss, loss, max_rows=rows)
        for k in range(2)
        for j, learner in enumerate(("AdaGrad", "OGD"))
        for rung, (rows, loss) in enumerate(((5, 0.4 - 0.1 * j), (None, 0.1 + 0.1 * j)))
    ]
    open_store(tmp_path)
    decided = {name: None for name in DECISIONS.names}
    decided |= {"rung": 1, "rounds": 5, "dataset": "set0", "order": "shuffled", "rank": 1}
    decided |= {"learner": "AdaGrad", "params": "{}", "n_runs": 1, "goes_on": True}
    (tmp_path / "results" / "halving").mkdir(parents=True)
    write_decisions(tmp_path, "s", [decided])
    found = overview(rows)
    assert [row[:2] for row in found.rows] == [["AdaGrad", 1.0], ["OGD", 2.0]]
    assert found.notes == ["AdaGrad is the best on all 2."]


@pytest.mark.system
def test_first_screen__is_seen_without_scrolling_and_readable_for_everybody(tmp_path):
    rows = list(two_learners(9))
    rows[0] |= {"status": "failed", "error": "no memory", "mean_loss": None, "error_rate": None}
    put(tmp_path, "s", [row["run_id"] for row in rows], rows)
    page = write_report(tmp_path, "s").path
    look_at([page], SIZES)
    with browser() as started, opened(started, page) as (shown, complaints):
        for what in ("h1", ".facts", "#overview", ".plain", ".first svg", ".first .flags"):
            box = shown.locator(what).first.bounding_box()
            assert box["y"] >= 0, what
            assert box["y"] + box["height"] <= 800, what
        assert complaints == []
        for width, scheme in SIZES:  # the table of learners, with its cost, is not cut
            with opened(started, page, width, scheme) as (shown, _):
                cut = "(one) => one.parentElement.scrollWidth > one.parentElement.clientWidth"
                assert not shown.locator(".plain").evaluate(cut), width
                assert shown.get_by_text("µs a round").first.is_visible()
