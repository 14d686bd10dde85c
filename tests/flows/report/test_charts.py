"""Charts: what is declared is drawn, whatever names and values it has; the front of costs."""

import json
import re
from html import unescape

import numpy as np
import pytest

from flows.charts import Chart, drawn
from flows.report.document import write_report
from flows.report.sections import FRONT, Sections
from tests.helpers.many_runs import put, run

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
