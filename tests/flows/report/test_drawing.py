"""The drawings of a report: its axes, its plots, and the front of what nothing beats."""

import math
import re
import xml.etree.ElementTree as ElementTree
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flows.report.axes import Axis, tick_text
from flows.report.drawing import CHARACTER, LEFT_MARGIN, RIGHT_MARGIN, WIDTH, Series, plot, style_of
from flows.report.sections.costs import front_of


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=30))
def test_front__is_what_nothing_beats(points):
    found = {points[k] for k in front_of(points)}
    beaten = {p for p in points if any(q[0] <= p[0] and q[1] <= p[1] and q != p for q in points)}
    assert found == set(points) - beaten


@settings(deadline=None)  # the first example imports matplotlib
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
    positions = [
        math.log10(tick / low) / decades if log else (tick - low) / (high - low) for tick in ticks
    ]
    across = (WIDTH - LEFT_MARGIN - RIGHT_MARGIN) / CHARACTER  # in characters
    for k, (here, there) in enumerate(pairwise(positions)):
        assert (there - here) * across > (len(texts[k]) + len(texts[k + 1])) / 2


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (0.05, "0.05"), (20000, "20,000"), (1e6, "10⁶"), (2e-7, "2·10⁻⁷"), (-3, "−3")],
)
def test_ticks__are_written_as_people_do(value, text):
    assert tick_text(value) == text


def drawn(series, x, y, alt=""):
    return plot(series, {one.name: style_of(k) for k, one in enumerate(series)}, x, y, alt).svg


def test_plots__are_xml_and_leave_out_what_an_axis_cannot_show():
    series = [
        Series("a < b", [1, 10, 100], [0.5, math.nan, -1.0], [0.1] * 3, [0.9] * 3, ringed=[0, 1]),
        Series("none", [], []),
    ]
    svg = drawn(series, Axis("t", True), Axis("e & f", True), 'says "it"')
    root = ElementTree.fromstring(svg)
    assert root.attrib["aria-label"] == 'says "it"'
    assert "a < b" in "".join(root.itertext())
    assert "nan" not in svg
    assert ElementTree.fromstring(drawn([], Axis("x"), Axis("y", True))) is not None
    assert len({style_of(k) for k in range(49)}) == 49


@pytest.mark.parametrize("values", [[0.0, 0.0], [0.5, 0.5], [0.1, 9.0], []])
def test_plots__that_begin_at_zero_say_so_and_have_room_for_ticks(values):
    shown = drawn([Series("a", values, values)], Axis("t"), Axis("e", low=0.0))
    ticks = re.findall(r"text-anchor: end[^>]*>([^<]*)<", shown)
    assert ticks[0] == "0"
    assert 3 <= len(ticks) <= 7


def test_plots__share_no_id_on_a_page_and_are_the_same_when_drawn_again():
    series = [
        Series(name, [1, 10, 100], [0.5, 0.4, 0.3], [0.1] * 3, [0.9] * 3, ringed=[0])
        for name in "abc"
    ]
    first, again, second = (
        drawn(series, Axis("t", True), Axis("e"), alt) for alt in ("first", "first", "second")
    )
    assert again == first
    ids = [re.findall(r' id="([^"]*)"', svg) for svg in (first, second)]
    assert ids[0]
    assert len({*ids[0], *ids[1]}) == len(ids[0]) + len(ids[1])
    for svg, own in zip((first, second), ids, strict=True):
        used = re.findall(r'href="#([^"]*)"', svg) + re.findall(r"url\(#([^)]*)\)", svg)
        assert set(used) == set(own)
        # a colour stands only behind the page's own, for where there is no page
        assert not re.findall(r"(?<!,)#[0-9a-f]{6}\b", svg)
        assert "<script" not in svg
        assert "font-family" not in svg.partition(">")[2]
