"""Records: any run is computed again from the file, in an empty store; a number that is altered by
one unit in its last place is found; elsewhere the digits of the rule hold, and no others.
"""

import math
import re

import pyarrow as pa
import pytest
from scipy.stats import hypergeom

from flows.record import ABOUT, check_record, least_found, write_record
from flows.tables.differences import differences
from koco_stream.io.paths import store_path
from koco_stream.io.table_file import read_table, write_tables
from tests.helpers.in_process import command, strict
from tests.helpers.refusal import refusal
from tests.helpers.sweeps import prepared, swept

SPEC = """
window = 150
metrics = ["auc", "rmse"]
[[dataset]]
name = "hyperplane"
n_rows = 400
n_features = 5
order = "shuffled-in-windows"
window_rows = 100
[[dataset]]
name = "mine"
max_rows = 50
[[learner]]
name = "OjaSON"
alpha = [0.5, 2.0]
[[learner]]
name = "OGD"
step_size = 1e200
"""


@pytest.fixture
def record(tmp_path):
    rows = [[k % 7 / 7.0, k % 3 / 3.0] for k in range(60)]
    store = prepared(tmp_path, "mine", rows, list(map(sum, rows)))
    assert swept(tmp_path, SPEC, "s").num_rows == 6
    assert write_record(store, "s", f"{tmp_path}/s.parquet") == 6
    return tmp_path / "s.parquet"


def rewritten(record, change):
    """Write the record again, with hashes, after a change to its rows; gives its first Oja-SON on
    the generated stream.
    """
    table = read_table(store_path(record))
    rows = table.to_pylist()
    (row, *_) = (r for r in rows if (r["learner"], r["dataset"][:5]) == ("OjaSON", "hyper"))
    change(row)
    about = {ABOUT: table.schema.metadata[ABOUT].decode()}
    write_tables([pa.Table.from_pylist(rows, table.schema)], store_path(record), about)
    return row


def place(row, column):
    """The row or what is nested in it, and the name there, of a column such as curve.3.mistakes."""
    name, _, inside = column.partition(".")
    number, _, key = inside.partition(".")
    return (row[name][int(number) - 1], key) if inside else (row, name)


@pytest.mark.parametrize(
    "column",
    [
        *("mean_loss", "auc", "alpha", "rounds", "curve.3.cumulative_loss", "curve.3.mistakes"),
        *("windows.2.mean_loss", "windows.3.auc"),
    ],
)
def test_cell__that_is_altered_by_one_unit_in_the_last_place__is_found(record, tmp_path, column):
    def alter(row):
        of, name = place(row, column)
        true.append(of[name])
        of[name] = of[name] + 1 if isinstance(of[name], int) else math.nextafter(of[name], 9.0)

    true = []
    row = rewritten(record, alter)
    words = ("check", record, "--store", tmp_path / "empty", "--cell", row["run_id"])
    of, name = place(row, column)
    said = f"{row['run_id']} {column}: {of[name]!r} in the record, {true[0]!r} computed"
    assert said in command(*words, status=1).stdout.splitlines()
    (one,) = strict(command(*words, "--json", status=1).stdout)["differences"]
    assert (one["column"], one["recorded"], one["computed"]) == (column, of[name], *true)


def test_sample__of_all_runs__is_equal_to_the_bit_and_says_what_it_could_not_check(record):
    store, empty = record.parent / "store", record.parent / "empty"
    every = check_record(str(record), str(store), 99, 1, None)
    assert (every["differences"], every["to_the_bit"], every["found_from"]) == ([], 6, 1)
    done = command("check", record, "--store", empty, status=0)
    assert "3 runs checked, 3 of them to the bit; if 1 of the 3 runs (33.3%) were" in done.stdout
    assert f"3 of 6 runs need datasets that {empty} does not have" in done.stdout
    assert done.stderr.count("no differences") == 3


def test_versions__that_are_others__leave_six_digits(record):
    def change(row):
        row.update(version="koco_stream 0.0", mean_loss=row["mean_loss"] * (1 + 1e-7))

    row = rewritten(record, change)
    words = (str(record), str(record.parent / "empty"), 1, 1, row["run_id"])
    done = check_record(*words)
    assert (done["differences"], done["to_the_bit"], done["found_from"]) == ([], 0, None)
    rewritten(record, lambda row: row.update(rmse=1.0, mean_loss=row["mean_loss"] * (1 + 1e-5)))
    assert {one["column"] for one in check_record(*words)["differences"]} == {"mean_loss", "rmse"}


@pytest.mark.parametrize(
    ("column", "kept", "near", "far"),
    [
        ("mistakes", 100, 104, 105),
        ("error_rate", 0.1, 0.1 + 1e-4 * 0.999, 0.1 + 1.1e-4),
        ("auc", 0.9, 0.9009, 0.902),
        ("regret", 1e-9, 0.019, 0.021),
        ("mean_loss", 0.5, 0.5 * (1 + 9e-7), 0.5 * (1 - 2e-6)),
        ("mean_loss", math.inf, math.inf, 1.0),
        ("mean_loss", math.nan, math.nan, 1.0),
        ("error", "round 7 is 1.25", "round 7 is 1.26", None),
        ("learner", "OGD", "OGD", "ONS"),
    ],
)
def test_digits__that_hold_elsewhere(column, kept, near, far):
    row = {"rounds": 40_000, "mean_loss": 0.5, column: kept}
    for found, expected in ((near, []), (far, [(column, kept, far)])):
        assert [*differences(row, {**row, column: found}, [column], False)] == expected


def test_least_found__is_the_hypergeometric_distribution_s():
    for checked, among in ((20, 3060), (3, 10), (7, 7), (1, 1)):
        n = least_found(checked, among)
        first, before = (hypergeom(among, k, checked).sf(0) for k in (n, n - 1))
        assert first >= 0.95 > before


def test_file__that_is_cut_or_altered_or_no_record__is_refused(record, tmp_path):
    whole, run_id = record.read_bytes(), read_table(store_path(record))["run_id"][0].as_py()
    for cell, said in (("x", "has no run x"), (run_id[:-1], f"did you mean '{run_id}'")):
        refusal(said, check_record, str(record), str(tmp_path), 1, 1, cell)
    for content in (whole[:-9], whole[:99] + b"!" + whole[100:], b""):
        record.write_bytes(content)
        said = command("check", record, status=2).stderr
        assert re.search(rf"{record} cannot be read \(.+\); use another copy", said)
    write_tables([pa.table({"run_id": ["x"]})], store_path(record))
    assert "is no record" in command("check", record, status=2).stderr
