"""`koco results` in a terminal: what tells rows apart is shown, in lines that fit."""

import fcntl
import json
import os
import re
import struct
import termios
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flows.tables.text import laid_out, line_width, number_text, text_table
from tests.helpers.swept import prepared, swept

NAMES = st.from_regex(r"[a-z]{1,9}(_[a-z]{1,9}){0,3}", fullmatch=True)
WORDS = st.lists(st.from_regex(r"[a-z=0-9]{1,40}", fullmatch=True), max_size=4).map(" ".join)
VALUES = st.sampled_from(
    [
        st.one_of(st.none(), st.floats(allow_nan=False)),
        st.one_of(st.none(), st.integers(-(10**9), 10**9)),
        st.one_of(st.none(), WORDS),
    ]
)
SPEC = """
[[dataset]]
name = "first"
order = "shuffled"
order_seeds = 2
[[dataset]]
name = "second"
order = "shuffled"
order_seeds = 2
[[learner]]
name = "OjaSON"
sketch_size = [0, 3]
alpha = [0.5, 4]
clip = {clip}
[[learner]]
name = "AdaGrad"
step_size = 0.1
"""


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
    expected = text_table(columns[:kept], [row[:kept] for row in rows])
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
    lines = text_table(["x" * 30], [[value] for value in values]).splitlines()[1:]
    marks = {re.search(r"[.e]|$", line).start() for line in lines if "." in line}
    assert len(marks) <= 1


def test_line_width__is_that_of_the_terminal_or_a_hundred(tmp_path):
    ours, terminal = os.openpty()
    fcntl.ioctl(ours, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 73, 0, 0))
    with os.fdopen(terminal, "w") as stream, (tmp_path / "file").open("w") as file:
        assert line_width(stream) == 73
        assert line_width(file) == 100
    os.close(ours)


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """Two sweeps that differ in the clip of one learner only."""
    import numpy as np

    folder, draw = tmp_path_factory.mktemp("terminal"), np.random.default_rng(0)
    X = draw.standard_normal((200, 3))
    for name, largest in (("first", 3), ("second", 4)):
        prepared(folder, name, X, X.sum(1) / largest)
    swept(folder, SPEC.format(clip=1), "before")
    swept(folder, SPEC.format(clip=2), "after")
    return folder / "store"


def test_parameters__that_vary_are_shown_and_the_others_once(store, koco):
    done = koco("results", "--store", store, "--sweep", "after", status=0)
    assert max(map(len, [*done.stdout.splitlines(), *done.stderr.splitlines()])) <= 100
    rows = json.loads(koco("results", "--store", store, "--sweep", "after", "--json").stdout)
    lines = done.stdout.splitlines()[-len(rows) :]  # below the names, some of them in two lines
    for line, row in zip(lines, rows, strict=True):
        assert line.split()[:2] == [row["dataset"], row["learner"]]
        params = json.loads(row["params"])
        varied = [f"{name}={params[name]:g}" for name in ("alpha", "sketch_size") if name in params]
        assert re.findall(r"\S+=\S+", line) == varied
    for words in ("all rows: order=shuffled n_runs=2", "all rows of OjaSON: clip=2"):
        assert words in done.stderr.splitlines()
    assert len(rows) == 10
    assert "_hash" not in done.stdout  # each dataset has one
    assert "error_" not in done.stdout  # real labels have none
    single = koco("results", "--store", store, "--sweep", "after", "--runs", status=0)
    assert "order_seed" in single.stdout
    assert "status" not in single.stdout  # all are ok
    assert single.stdout.count("OjaSON") == 2 * 8


def test_difference__joins_what_is_equal(store, koco):
    """AdaGrad's rows stand beside each other; those of OjaSON do as the best, with their clips."""
    words = ("results", "--store", store, "--sweep", "before", "--diff", "after")
    rows = json.loads(koco(*words, "--json", status=0).stdout)
    assert len(rows) == 2 * (8 + 1) == 2 * (4 * 2 + 1)
    for row in rows:
        both = None not in (row["n_runs"], row["n_runs_other"])
        assert both == (row["learner"] == "AdaGrad") == (row["difference"] == 0.0)
    best = json.loads(koco(*words, "--best", "--json", status=0).stdout)
    assert sorted((row["dataset"], row["learner"]) for row in best) == [
        (dataset, learner) for dataset in ("first", "second") for learner in ("AdaGrad", "OjaSON")
    ]
    for row in best:
        clips = [json.loads(row[name])["clip"] for name in ("params", "params_other")]
        assert clips == ([1, 2] if row["learner"] == "OjaSON" else clips[:1] * 2)
        losses = row["mean_loss_mean_other"], row["mean_loss_mean"]
        assert row["difference"] == pytest.approx(losses[0] - losses[1])
    shown = koco(*words, status=0)
    assert max(map(len, shown.stdout.splitlines())) <= 100
