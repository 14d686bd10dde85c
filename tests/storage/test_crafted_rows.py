"""Tables of runs whose rows lack something: every reader refuses them with the file and the column,
and with what to do.
"""

import json
import re

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flows
from koco_stream.errors import WrongInput
from koco_stream.io.table_file import read_table, write_tables
from koco_stream.runs.row_checks import NEEDED, check_rows
from koco_stream.runs.schemas import RUNS
from storage.results import table_files
from storage.verify import result_problems
from tests.helpers.in_process import strict

COMMANDS = (
    *(("results",), ("results", "--runs"), ("results", "--sweep", "first", "--best")),
    ("results", "--sweep", "first", "--diff", "second"),
    *(("compare", "first"), ("report", "first")),
)
TEXTS = sorted(name for name in NEEDED if name in {column.name for column in RUNS})
JSON = st.text(alphabet='{}[]":, \\0123456789.eE+-truefalsenull\n', max_size=12)
WORDS = st.text(st.characters(codec="utf-8"), max_size=5)
VALUES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | WORDS


def altered(swept_store, name, column):
    """Write another column of this name into the table of runs; returns its file."""
    (file,) = table_files(swept_store, "runs")
    table = read_table(file)
    place = table.schema.get_field_index(name)
    write_tables([table.set_column(place, name, column)], file)
    return str(file)


def not_utf8(n):
    return pa.Array.from_buffers(pa.string(), n, pa.array([b"\xff"] * n).buffers())


@pytest.mark.parametrize("name", TEXTS)
def test_row__that_lacks_a_text__is_refused_by_every_reader(name, swept_once, swept_store, koco):
    file = altered(swept_store, name, pa.array([None, "x"], pa.string()))
    sweep = ("sweep", swept_once / "second.toml")
    for words in (*COMMANDS, sweep):
        said = koco(*words, "--store", swept_store, status=2).stderr
        assert f"{file} cannot be read (a row has no {name}); remove it" in " ".join(said.split())
    with pytest.raises(WrongInput, match=f"a row has no {name}"):
        flows.results(swept_store, "first").runs  # noqa: B018
    assert any(f"a row has no {name}" in problem for problem in result_problems(swept_store))


@pytest.mark.parametrize(
    ("name", "column", "said"),
    [
        *(
            ("params", pa.array(["{}", text]), "params of a row are not an object in JSON")
            for text in ("", "{", "[1]", "null", "1e400", "{'a': 1}", "[" * 9999)
        ),
        ("params", pa.array([1, 2]), "column params is int64, and string is needed"),
        ("status", pa.array(["ok", "fine"]), "a row has status 'fine'"),
        ("dataset", not_utf8(2), "column dataset has a text that is not UTF-8"),
        (
            "finished_at",
            pa.array([0, 2**62]).cast(pa.timestamp("us", "UTC")),
            "column finished_at has a time outside the years 1 to 9999",
        ),
        ("error", not_utf8(2), "column error has a text that is not UTF-8"),
        ("mean_loss", pa.array(["x", "y"]), "column mean_loss: Failed to parse string"),
        ("rounds", pa.array([[1], [2]]), "column rounds: Unsupported cast"),
    ],
)
def test_row__with_another_value__is_refused_with_the_column(name, column, said, swept_store, koco):
    file = altered(swept_store, name, column)
    printed = koco("results", "--runs", "--store", swept_store, status=2).stderr
    assert f"{file} cannot be read ({said}" in " ".join(printed.split())


@pytest.mark.parametrize("value", [None, float("nan"), float("inf"), -1.0])
def test_results__that_are_no_results__are_shown_or_refused(value, swept_store, koco):
    for name in ("mean_loss", "error_rate", "seconds", "constant_mean_loss"):
        altered(swept_store, name, pa.array([value, 0.5], pa.float64()))
    for words in (*COMMANDS, ("list", "sweeps")):
        missing = value is None and words[0] == "compare"
        form = () if words[0] == "report" else ("--json",)
        said = koco(*words, "--store", swept_store, *form, status=2 if missing else 0).stdout
        if form and not missing:
            strict(said)


def test_sweep__of_which_no_run_is_there__is_shown_as_such(swept_store, koco):
    entry = swept_store / "sweeps" / "first.json"
    entry.write_text(json.dumps({**json.loads(entry.read_text()), "run_ids": ["none"]}))
    said = koco("results", "--sweep", "first", "--best", "--store", swept_store, status=0).stderr
    assert "no run has finished" in said


EVIL = "<script>alert(1)</script>\"'><img src=x>\x07\x1b[31m\u202e=1+1 {{7*7}} </style>"


def test_texts__of_a_crafted_table__reach_no_terminal_or_page_as_they_are(swept_store, koco):
    for name in ("learner", "dataset", "error", "host", "computed_by"):
        altered(swept_store, name, pa.array([EVIL, f"{EVIL}2"], pa.string()))
    altered(swept_store, "params", pa.array([json.dumps({EVIL: text}) for text in (EVIL, "x")]))
    for words in (*COMMANDS, ("results", "--csv", "--runs"), ("list", "sweeps")):
        done = koco(*words, "--store", swept_store)
        assert done.exit_code in (0, 2)
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", done.output), words
    for ending in ("html", "md"):
        page = (swept_store / "reports" / f"first.{ending}").read_text()
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", page)
        assert "<script>alert" not in page
        assert "<img src=x" not in page


def refused(text):
    try:
        check_rows(pa.table({"params": pa.array([text], pa.string())}))
    except pa.ArrowInvalid:
        return True
    return False


@given(
    JSON
    | JSON.map(lambda text: f'{{"a":{text}}}')
    | st.dictionaries(WORDS, VALUES, max_size=3).map(json.dumps)
    | VALUES.map(json.dumps)
)
def test_params__are_refused_unless_python_reads_an_object(text):
    try:
        is_object = isinstance(json.loads(text), dict)
    except ValueError:
        is_object = False
    assert refused(text) != is_object
