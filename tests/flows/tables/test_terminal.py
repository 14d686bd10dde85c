"""`koco results` in a terminal: what tells rows apart is shown, in lines that fit."""

import fcntl
import json
import os
import re
import struct
import termios
from decimal import Decimal

import pytest
from flows.tables.differences import differences_of_best, differences_of_configurations
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


def test_difference__joins_what_is_equal_and_says_what_has_changed(store, koco):
    """Every row of one sweep stands beside that of the other with the same values but the clip."""
    before, after = (
        {
            (row["dataset"], row["learner"], params.get("sketch_size"), params.get("alpha")): row
            for row in json.loads(koco("results", "--store", store, "--sweep", n, "--json").stdout)
            if (params := json.loads(row["params"]))
        }
        for n in ("before", "after")
    )
    words = ("--sweep", "before", "--diff", "after")
    rows = json.loads(koco("results", "--store", store, *words, "--json", status=0).stdout)
    assert len(rows) == len(before) == len(after)
    for row in rows:
        params = json.loads(row["params"])
        key = (row["dataset"], row["learner"], params.get("sketch_size"), params.get("alpha"))
        losses = [side.pop(key)["mean_loss_mean"] for side in (before, after)]
        assert [row["mean_loss_mean"], row["mean_loss_mean_other"]] == losses
        assert row["difference"] == pytest.approx(losses[1] - losses[0])
        said = row["changed"] or ""
        assert ("clip=1 -> 2" in said) == (row["learner"] == "OjaSON")
        assert ("curvature=0.125 -> 0.03125" in said) == (params.get("sketch_size") == 3)
    shown = koco("results", "--store", store, *words, status=0)
    assert max(map(len, shown.stdout.splitlines())) <= 100
    best = koco("results", "--store", store, *words, "--best", "--json", status=0).stdout
    assert sorted((row["dataset"], row["learner"]) for row in json.loads(best)) == [
        (dataset, learner) for dataset in ("first", "second") for learner in ("AdaGrad", "OjaSON")
    ]


def row_of(loss, hash="a", **params):
    stream = {"dataset": "d", "dataset_hash": hash, "order": "o"}
    whole = {"window_rows": None, "max_rows": None, "learner": "L"}
    return stream | whole | {"params": json.dumps(params), "mean_loss_mean": loss}


def test_difference__keeps_apart_what_one_sweep_has_several_of():
    # the clip alone tells rows of one side apart: it separates them
    found = differences_of_configurations(
        [row_of(0.5, clip=1), row_of(0.4, clip=2)], [row_of(0.3, clip=3)]
    )
    assert [(r["mean_loss_mean"], r["mean_loss_mean_other"], r["changed"]) for r in found] == [
        (0.5, None, None),
        (0.4, None, None),
        (None, 0.3, None),
    ]
    [found] = differences_of_configurations([row_of(0.5, clip=1)], [row_of(0.25, "b", clip=1)])
    assert (found["changed"], found["difference"]) == ("dataset_hash=a -> b", -0.25)
    [found] = differences_of_best([row_of(0.5, clip=1)], [row_of(0.25, "b", clip=3)])
    assert (found["params"], found["params_other"]) == ('{"clip": 1}', '{"clip": 3}')
    assert found["changed"] == "dataset_hash=a -> b"
