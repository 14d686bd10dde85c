"""The critical-difference diagram: everything in it, within its width, and nothing on a name."""

import re
import xml.etree.ElementTree as ET
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from flows.comparing import diagram
from flows.scores.statistics import groups_of_equals

NAMES = ("Oja", "SketchedKONS", "river.linear_model:PAClassifier", "a<b&c", "N")


@st.composite
def ranked(draw):
    """Learners with mean ranks that learners can have, a critical difference, and the groups."""
    k = draw(st.integers(2, 12))
    orders = draw(st.lists(st.permutations(range(1, k + 1)), min_size=1, max_size=4))
    ranks = sorted(sum(column) / len(orders) for column in zip(*orders, strict=True))
    names = [f"{draw(st.sampled_from(NAMES))}{number}" for number in range(k)]
    critical = draw(st.floats(0.1, 2.0 * k))
    return names, ranks, critical, groups_of_equals(ranks, critical)


def attributes(svg, tag):
    root = ET.fromstring(svg)
    return root, [one for one in root.iter() if one.tag.endswith("}" + tag)]


@given(ranked())
def test_diagram__has_every_learner_and_group_within_its_width(given_):
    names, ranks, critical, groups = given_
    picture = diagram.critical_difference_diagram(names, ranks, critical, groups)
    for svg, width in ((picture.svg, diagram.WIDE), (picture.narrow, diagram.NARROW)):
        root, circles = attributes(svg, "circle")
        height = float(root.get("viewBox").split()[3])
        xs = [float(one.get("cx")) for one in circles]
        assert len(xs) == len(names)
        assert xs == sorted(xs)
        _, lines = attributes(svg, "line")
        bars = [one for one in lines if "vermilion" in one.get("stroke")]
        for bar, group in zip(bars, groups, strict=True):
            x1, x2 = float(bar.get("x1")), float(bar.get("x2"))
            inside = {number for number, x in enumerate(xs) if x1 <= x <= x2}
            assert set(group) <= inside
        # bars of different groups do not touch
        spans = [tuple(float(bar.get(name)) for name in ("y1", "x1", "x2")) for bar in bars]
        spans.sort()
        for (y, _, end), (below, start, _) in pairwise(spans):
            assert below > y or start >= end + diagram.APART - 0.2  # seen as two
        for one in lines:
            for name in ("x1", "x2"):
                assert 0 <= float(one.get(name)) <= width
            assert 0 <= float(one.get("y1")) <= height


@given(ranked())
def test_diagram__names_stand_apart_from_each_other_and_from_the_lines(given_):
    names, ranks, critical, groups = given_
    picture = diagram.critical_difference_diagram(names, ranks, critical, groups)
    for svg, width in ((picture.svg, diagram.WIDE), (picture.narrow, diagram.NARROW)):
        root, paths = attributes(svg, "path")
        height = float(root.get("viewBox").split()[3])
        stems = [
            tuple(map(float, re.findall(r"[\d.]+", one.get("d")))) for one in paths
        ]  # x, top, bottom, end
        _, texts = attributes(svg, "text")
        shown = texts[-len(names) :]
        rows = set()
        for text, (_, _, bottom, end) in zip(shown, stems, strict=True):
            x, y = float(text.get("x")), float(text.get("y"))
            length = diagram.CHARACTER * len(text.text)
            left = x if text.get("text-anchor") == "start" else x - length
            assert 0 <= left
            assert left + length <= width
            assert y < height
            assert not left < end < left + length  # its own line
            assert abs(y - 5 - bottom) < 0.2
            for other, top, lowest, _ in stems:  # the lines down of the others
                assert not (left < other < left + length and top < y - 8 < lowest)
            rows.add((round(y, 1), text.get("text-anchor")))
        assert len(rows) == len(names)


def test_diagram__says_in_words_what_it_shows():
    picture = diagram.critical_difference_diagram(["a", "b", "c"], [1.0, 2.2, 2.8], 1.1, [[1, 2]])
    assert picture.alt == (
        "Mean ranks, the best first: a 1.00, b 2.20, c 2.80. The critical difference is 1.10. Not"
        " told apart by it: b, c."
    )
    assert picture.alt in picture.svg
    assert "currentColor" in picture.svg  # so that it is seen on dark pages too
    apart = diagram.critical_difference_diagram(["a", "b"], [1.0, 2.0], 0.5, [])
    assert "It tells all of them apart." in apart.alt
    none = diagram.critical_difference_diagram(["a", "b"], [1.0, 2.0], None, [])
    assert "too few blocks" in none.alt
    assert "critical difference 0" not in none.svg


def test_name__is_whole_where_there_is_room_before_its_line():
    names = ["KONS", "SketchedKONS", *(f"L{n}" for n in range(14))]
    ranks = [2.3, 4.4, *(5.0 + 0.7 * n for n in range(14))]
    picture = diagram.critical_difference_diagram(names, ranks, 3.0, [])
    assert ">SketchedKONS<" in picture.narrow
    long = diagram.critical_difference_diagram(["a" * 90, "b" * 90], [1.0, 2.0], None, [])
    assert long.narrow.count("…<") == 2
