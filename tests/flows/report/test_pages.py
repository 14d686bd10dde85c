"""What pages are made of: cells and columns, which have no more digits than say something, and the
order of names.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flows.commands.data import labels_of
from flows.commands.sweep import in_words
from flows.pages import Figure, cell, columns_of, text_of
from flows.report.document import came_from
from flows.tables.parameters import sort_key
from storage.generated.generators import prepare_synthetic
from storage.preparing.prepare import prepare_file


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
    rows = [{"a": 1, "b": None, "c": "x"}, {"a": 2.5, "b": None, "c": None}]
    assert columns_of(rows) == {"a": True, "c": False}


def test_verdict__counts_the_claims_that_are_judged():
    claims = [{"holds": holds} for holds in (True, False, None)]
    assert Figure("", claims=claims, finding="It is so").verdict == "1 of 2 claims hold; It is so"
    assert Figure("", claims=claims[2:]).verdict == ""


@given(st.lists(st.integers(0, 10**6), min_size=1))
def test_texts_with_numbers__are_sorted_by_the_numbers(numbers):
    texts = [f"n_rows={n},k" for n in numbers]
    assert sorted(texts, key=sort_key) == [f"n_rows={n},k" for n in sorted(numbers)]
    mixed = ["b", "a10", "a9", 2, 1.5, "10", "9a"]
    assert sorted(mixed, key=sort_key) == [1.5, 2, "9a", "10", "a9", "a10", "b"]


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
    named = [came_from(manifest.source) for manifest in manifests]
    assert named == ["mails", "a.csv", "ill-conditioned"]
