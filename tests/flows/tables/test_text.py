"""What is shown: tables and messages in lines that fit, numbers to the digits that say something,
the order of names.
"""

import re
from decimal import Decimal
from types import SimpleNamespace

import pytest
from hypothesis import given, strategies as st

from flows.commands.data import labels_of
from flows.commands.sweep import in_words
from flows.pages import Figure, cell, columns_of, text_of
from flows.report.document import came_from
from flows.runtime.processes import WIDTH, wrapped
from flows.tables.parameters import sort_key
from flows.tables.text import laid_out, number_text
from storage.generated.generators import prepare_synthetic
from storage.preparing.prepare import prepare_file

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
    return columns, draw(st.lists(st.tuples(*[draw(VALUES) for _ in columns]), max_size=4))


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


@pytest.mark.parametrize(
    ("words_for", "given", "expected"),
    [
        # numbers have three digits
        *(
            (text_of, (value,), text)
            for value, text in (
                (0.123456, "0.123"),
                (1234.56, "1235"),
                (1e-7, "1.00e−07"),
                (-3.7e-5, "−3.70e−05"),
                (-0.0281, "−0.0281"),
                (2.0, "2"),
                (0.0, "0"),
                (999.7, "1000"),
                (-3, "−3"),
                (12345678.0, "1.23e+07"),
                (1234567, "1,234,567"),
                (True, "yes"),
                (None, "–"),
            )
        ),
        # cells keep the whole number and let nothing through
        *(
            (cell, given, written)
            for given, written in (
                ((0.123456789,), '<td class="n" data-v="0.123456789">0.123</td>'),
                ((12,), '<td class="n">12</td>'),
                ((None,), '<td data-v="">–</td>'),
                ((None, True), '<td class="n" data-v="">–</td>'),
                ((False,), '<td class="no">no</td>'),
                (("<a>_b",), "<td>&lt;a&gt;_<wbr>b</td>"),
            )
        ),
        # words on the screen stay short and have commas
        (labels_of, ([],), "real targets"),
        (labels_of, ([-1.0, 1.0],), "labels -1, 1"),
        (labels_of, ([float(k) for k in range(1, 106)],), "105 classes, labels 1 to 105"),
        (
            in_words,
            ({"block": 1327104, "order": [2.5, "shuffled"]},),
            "block 1,327,104, order 2.5; shuffled",
        ),
    ],
)
def test_values__in_words(words_for, given, expected):
    assert words_for(*given) == expected


def test_columns__that_say_nothing_are_left_out():
    assert columns_of([{"a": 1, "b": None, "c": "x"}, {"a": 2.5, "b": None, "c": None}]) == {
        "a": True,
        "c": False,
    }


def test_verdict__counts_the_claims_that_are_judged():
    claims = [{"holds": holds} for holds in (True, False, None)]
    assert Figure("", claims=claims, finding="It is so").verdict == "1 of 2 claims hold; It is so"
    assert Figure("", claims=claims[2:]).verdict == ""


@given(st.lists(st.integers(0, 10**6), min_size=1))
def test_texts_with_numbers__are_sorted_by_the_numbers(numbers):
    assert sorted([f"n_rows={n},k" for n in numbers], key=sort_key) == [
        f"n_rows={n},k" for n in sorted(numbers)
    ]
    assert sorted(["b", "a10", "a9", 2, 1.5, "10", "9a"], key=sort_key) == [
        1.5,
        2,
        "9a",
        "10",
        "a9",
        "a10",
        "b",
    ]


def test_source__of_every_kind_has_a_name(tmp_path):
    store, mail, table = tmp_path / "store", tmp_path / "mails" / "cats" / "1", tmp_path / "a.csv"
    mail.parent.mkdir(parents=True)
    mail.write_text("the cat sat")
    table.write_text("x,y\n1,2\n3,4\n")
    manifests = (
        prepare_file(store, "mails", tmp_path / "mails", format="documents"),
        prepare_file(store, "a", table),
        prepare_synthetic(store, "ill-conditioned", {"n_rows": 9}),
    )
    assert [came_from(manifest.source) for manifest in manifests] == [
        "mails",
        "a.csv",
        "ill-conditioned",
    ]


TERMINAL, LOG = (SimpleNamespace(isatty=lambda said=said: said) for said in (True, False))


@given(
    words=st.lists(st.text("abc-:/", min_size=1, max_size=120), min_size=1, max_size=60),
    indent=st.sampled_from(["", "  "]),
)
def test_message__on_a_terminal_has_its_words_in_lines_that_fit__and_in_a_log_is_one_line(
    words, indent
):
    text = indent + " ".join(words)
    shown, (first, *listed) = wrapped(text, TERMINAL), wrapped(f"{text}\n  {text}", LOG).split("\n")
    assert first == text
    assert shown.startswith(indent)
    for lines in (shown.split("\n"), listed):
        assert " ".join(lines).split() == words
        assert all(len(line) <= WIDTH or len(line.split()) == 1 for line in lines)


@given(text=st.text())
def test_message__has_no_character_that_a_terminal_acts_on(text):
    for stream in (TERMINAL, LOG):
        assert all(one.isprintable() for one in wrapped(text, stream).replace("\n", ""))
