"""Records: any run is computed again from the file, in an empty store; a number that is altered by
one unit in its last place is found; elsewhere the digits of the rule hold, and no others.
"""

from math import inf, nan, nextafter

import pyarrow as pa
import pytest

from flows.record import ABOUT, check_record, least_found, write_record
from flows.report.papers.benchmark import KEPT
from flows.tables.differences import differences
from koco_stream.io.paths import store_path
from koco_stream.io.table_file import read_table, write_tables
from tests.helpers.in_process import command, strict
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
    store = prepared(tmp_path, "mine", [[k % 7 / 7.0, 1.0] for k in range(60)], [0.5, 1.5] * 30)
    assert len(swept(tmp_path, SPEC, "s")) == write_record(store, "s", f"{tmp_path}/s.parquet") == 6
    return tmp_path / "s.parquet"


@pytest.mark.parametrize(
    ("version", "left", "to_the_bit"),
    [
        ({}, {"mean_loss", "auc", "alpha", "curve.3.cumulative_loss", "windows.2.last"}, 1),
        ({"version": "koco_stream 0.0"}, {"windows.2.last"}, 0),
    ],
)
def test_cell__every_number_that_is_altered_by_one_unit_is_found(record, version, left, to_the_bit):
    table = read_table(store_path(record))
    rows = table.to_pylist()
    row = next(one for one in rows if one["learner"] == "OjaSON" and one["dataset"] != "mine")
    for of, name in (
        (row, "mean_loss"),
        (row, "auc"),
        (row, "alpha"),
        (row["curve"][2], "cumulative_loss"),
    ):
        of[name] = nextafter(of[name], 9e9)
    row["windows"][1]["last"] += 1
    write_tables(
        [pa.Table.from_pylist([one | version for one in rows], table.schema)],
        store_path(record),
        {ABOUT: table.schema.metadata[ABOUT].decode()},
    )
    words = ("check", record, "--cell", row["run_id"], "--store", record.parent / "empty")
    *lines, finding = command(*words, status=1).stdout.splitlines()
    assert {line.split()[1][:-1] for line in lines} == left
    assert f"{row['run_id']} windows.2.last: 301 in the record, 300 computed" in lines
    assert finding == (
        f"1 runs checked, {to_the_bit} of them to the bit; 3 of 6 runs need datasets that"
        f" {words[-1]} does not have with the same rows (koco prepare makes them): mine"
    )


def test_sample__of_all_runs__is_equal_to_the_bit(record):
    words = ("--store", record.parent / "store", "--seed", 7, "--json")
    assert strict(command("check", record, *words, status=0).stdout) == {
        "finding": "6 runs checked, 6 of them to the bit; if 1 of the 6 runs (16.7%) were false,"
        " one of them would be found with 95 % (--seed 7)",
        **{"runs": 6, "runs_here": 6, "checked": 6, "to_the_bit": 6, "seed": 7, "found_from": 1},
        "differences": [],
    }


@pytest.mark.parametrize(
    ("column", "kept", "near", "far"),
    [
        ("mistakes", 100, 104, 105),
        ("error_rate", 0.1, 0.1 + 1e-4 * 0.999, 0.1 + 1.1e-4),
        ("auc", 0.9, 0.9009, 0.902),
        ("regret", 1e-9, 0.019, 0.021),
        ("mean_loss", 0.5, 0.5 * (1 + 9e-7), 0.5 * (1 - 2e-6)),
        ("mean_loss", inf, inf, 1.0),
        ("mean_loss", nan, nan, 1.0),
        ("error", "round 7 is 1.25", "round 7 is 1.26", None),
        ("learner", "OGD", "OGD", "ONS"),
    ],
)
def test_digits__that_hold_elsewhere(column, kept, near, far):
    row = {"rounds": 40_000, "mean_loss": 0.5, column: kept}
    for found, expected in ((near, []), (far, [(column, kept, far)])):
        assert [*differences(row, {**row, column: found}, [column], False)] == expected


def test_least_found__is_the_share_that_a_draw_with_replacement_nearly_has():
    assert [least_found(*one) for one in ((20, 10**6), (18, 20), (19, 20))] == [
        pytest.approx(10**6 * (1 - 0.05 ** (1 / 20)), rel=1e-4),
        2,
        1,
    ]


@pytest.mark.parametrize(
    ("cut", "said"),
    [
        (lambda whole: whole, "has no run x"),
        (lambda whole: whole[:-9], "; use another copy"),
        (lambda whole: whole[:99] + b"!" + whole[100:], "; use another copy"),
        (lambda whole: b"", "; use another copy"),
    ],
)
def test_file__that_is_cut_or_altered_or_no_record__is_refused(record, cut, said):
    record.write_bytes(cut(record.read_bytes()))
    assert said in command("check", record, "--cell", "x", status=2).stderr
    for runs in (record.parent / "store" / "results" / "runs").iterdir():
        assert "is no record" in command("check", runs, status=2).stderr


def test_record_of_the_benchmark__five_runs_that_need_no_download_come_out_again(tmp_path):
    done = check_record(str(KEPT.with_name("record.parquet")), str(tmp_path / "store"), 5, 0, None)
    assert (done["checked"], done["differences"]) == (5, [])
