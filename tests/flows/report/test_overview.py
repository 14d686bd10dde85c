"""The first screen of a report: what happened, how sure that is, what failed, what to run next.
Charts: what is declared is drawn, whatever names and values it has; the front of costs.
"""

import json
import re
from html import unescape

import numpy as np
import pytest

from flows.charts import Chart, drawn
from flows.report.document import page_of, write_index, write_report
from flows.report.overview import is_sure, what_to_run_next
from flows.report.sections import FRONT, Sections
from flows.tables.sweep_runs import DECISIONS, write_decisions
from storage.store import open_store
from tests.helpers.many_runs import put, run
from tests.helpers.pages import SIZES, browser, look_at, opened

NOTHING = {"mean_loss": None, "error_rate": None}


@pytest.fixture
def screen(tmp_path):
    """The page of a sweep with these results, of which so many are missing."""

    def made(rows, missing=0, datasets=()):
        ids = [row["run_id"] for row in rows] + [f"missing {k}" for k in range(missing)]
        put(tmp_path, "s", ids, rows)
        note = tmp_path / "sweeps" / "s.json"
        named = {"datasets": {f"hash of {name}": name for name in datasets}}
        note.write_text(json.dumps({**json.loads(note.read_text()), **named}))
        return page_of(tmp_path, "s")

    return made


def two_learners(n_datasets, orders=2):
    """AdaGrad is better than OGD everywhere, but for the last dataset."""
    for k in range(n_datasets):
        for j, (learner, error) in enumerate((("AdaGrad", 0.1), ("OGD", 0.2))):
            for seed in range(orders):
                worse = 0.15 if learner == "AdaGrad" and k == n_datasets - 1 else 0.0
                error_rate = error + worse + 0.001 * k
                number = 100 * k + 10 * j + seed
                yield run(number, f"set{k}", learner, 0.3 + error_rate, error_rate, seed)


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
    rows = [{**one, "error_rate": None, "constant_error_rate": None} for one in two_learners(3)]
    found = screen(rows)
    words = ": on set0, shuffled, AdaGrad has the mean loss 0.4, OGD 0.5, Constant 0.9."
    assert words in found.finding
    assert found.charts[0].rows[0]["stream"] == "set0, shuffled"
    assert found.charts[0].picks == ["stream"]


def test_one_learner__is_told_beside_constant(screen):
    found = screen([run(k, f"set{k}", "AdaGrad", 0.5, 0.1) for k in range(11)])
    assert found.finding == (
        "AdaGrad alone was run, better than Constant on 11 of 11: on set0, shuffled, AdaGrad errs"
        " on 10 %, Constant 50 %."
    )
    assert len(found.rows) == 11
    stopped = run(99, "set0", "KONS", 0.2, 0.1, status="stopped")
    found = screen([run(0, "set0", "AdaGrad", 0.5, 0.1), stopped])
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
    said = "No configuration has ended well in all of its runs yet."
    assert screen([], missing=3).finding == said
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
    decided = {name: None for name in DECISIONS.names}
    decided |= {"rung": 1, "rounds": 5, "dataset": "set0", "order": "shuffled", "rank": 1}
    decided |= {"learner": "AdaGrad", "params": "{}", "n_runs": 1, "goes_on": True}
    (tmp_path / "results" / "halving").mkdir(parents=True)
    write_decisions(tmp_path, "s", [decided, decided | {"rank": 2, "goes_on": False}])
    found = screen(rows)
    assert [[*row.values()][:3] for row in found.rows] == [
        [f"set{k}, shuffled", "AdaGrad", 0.1] for k in (0, 1)
    ]
    [section] = [one for one in found.figures if one.title == "Successive halving"]
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
    front = {(row["stream"], round(row["value"] / 1e5, 9), row["merit"]) for row in found}
    assert front == expected


def test_figures__are_written_in_both_kinds(tmp_path):
    rows = [
        run(k, f"set{k % 2}", "OGD", 0.5, 0.1, params=f'{{"step_size": {1 + k // 2}.0}}')
        for k in range(4)
    ]
    put(tmp_path, "s", None, rows)
    write_report(tmp_path, "s", tmp_path / "drawn")
    svg, png = ({one.stem for one in (tmp_path / "drawn").glob(f"*.{k}")} for k in ("svg", "png"))
    names = {"s-the-best-of-each-learner", "s-step_size-set0-shuffled", "s-step_size-set1-shuffled"}
    assert svg == png >= names
    assert "".join(svg).isascii()
