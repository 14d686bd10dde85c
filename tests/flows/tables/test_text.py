"""Tables as text: numbers to the digits that they have room for, in lines that fit."""

import re
from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st

from flows.tables.text import laid_out, number_text

NAMES = st.from_regex(r"[a-z]{1,9}(_[a-z]{1,9}){0,3}", fullmatch=True)
WORDS = st.lists(st.from_regex(r"[a-z=0-9,]{1,40}", fullmatch=True), max_size=4).map(" ".join)
VALUES = st.sampled_from(
    [
        st.one_of(st.none(), st.floats(allow_nan=False)),
        st.one_of(st.none(), st.integers(-(10**9), 10**9)),
        st.one_of(st.none(), WORDS),
    ]
)


@st.composite
def tables(draw):
    columns = draw(st.lists(NAMES, min_size=1, max_size=8, unique=True))
    kinds = [draw(VALUES) for _ in columns]
    return columns, draw(st.lists(st.tuples(*kinds), max_size=4))


@given(tables(), st.integers(30, 120))
def test_table__has_no_line_that_is_longer_than_the_width__and_loses_no_text(table, width):
    """Whatever has no room is named; what is shown is all there, read line after line."""
    columns, rows = table
    text, left_out = laid_out(columns, rows, width)
    assert max(map(len, text.splitlines()), default=0) <= width
    kept = len(columns) - len(left_out)
    assert kept >= 1
    assert left_out == columns[kept:]
    expected, none = laid_out(columns[:kept], [row[:kept] for row in rows])
    assert (none, expected.count("\n")) == ([], len(rows))
    assert sorted(re.sub(r"\s", "", text)) == sorted(re.sub(r"\s", "", expected))


@given(st.floats(allow_nan=False, allow_infinity=False), st.integers(2, 5))
def test_number__is_the_nearest_with_so_many_digits(value, digits):
    """At most half a unit of the last digit is lost, and digits before the point are never cut."""
    text = number_text(value, digits)
    if value:
        unit = Decimal(10) ** (Decimal(value).adjusted() - digits + 1)
        assert abs(Decimal(text) - Decimal(value)) <= unit / 2
    else:
        assert text in ("0", "-0")
    assert len(text) <= 7 + digits


@given(st.lists(st.one_of(st.none(), st.floats(-1e5, 1e5), st.integers(0, 9)), min_size=1))
def test_numbers__have_their_points_one_below_the_other(values):
    lines = laid_out(["x" * 30], [[value] for value in values])[0].splitlines()[1:]
    assert len({re.search(r"[.e]|$", line).start() for line in lines if "." in line}) <= 1
