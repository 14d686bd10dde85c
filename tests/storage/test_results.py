"""The result tables: result files are moved into few files, whatever is cut and wherever, and every
run is there once with its own curve. What is damaged, of another format or crafted is refused with
its name and what to do, and never left out in silence.
"""

import tempfile
from collections import Counter

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from koco_stream.engine.result_file import result_files_folder
from koco_stream.io.table_file import read_table, write_tables
from koco_stream.runs.schemas import CURVES, result_schema, schema
from storage import collecting
from storage.collecting import collect
from storage.results import (
    file_name,
    finished_runs,
    read_curves,
    read_runs,
    result_files,
    table_files,
)
from storage.store import open_store
from tests.helpers.cut import cut_after

OK, FAILED = "ok", "failed"
LENGTH = {OK: 5, FAILED: 2}  # points of a curve: what has failed came less far


@pytest.fixture
def empty(tmp_path):
    return open_store(tmp_path / "store")


def put_result_file(store, name, runs):
    """A result file with these (run, status) in it. A run's numbers follow only from it, as those
    of a real one do.
    """
    rows = [
        {
            "run_id": f"{run:032x}",
            "dataset": f"d{run % 2}",
            "order": "as-stored",
            "learner": "OGD",
            "params": "{}",
            "status": status,
            "rounds": 9,
            "curve": [
                {"t": t, "cumulative_loss": run + t / 8, "mistakes": None, "dictionary_size": None}
                for t in range(1, LENGTH[status] + 1)
            ],
        }
        for run, status in runs
    ]
    file = result_files_folder(store) / f"{name}.parquet"
    write_tables([pa.Table.from_pylist(rows, result_schema())], file)


def expected(known):
    return sorted((f"{run:032x}", status) for run, status in known.items())


def check_read(store, known):
    """What is read is each run once, an ok row before a failed one, with the curve of that row."""
    runs = read_runs(store).select(["run_id", "status"]).to_pylist()
    assert sorted((row["run_id"], row["status"]) for row in runs) == expected(known)
    assert finished_runs(store) == {run for run, _ in expected(known)}
    assert finished_runs(store, True) >= {run for run, status in expected(known) if status == OK}
    curves = read_curves(store)
    assert curves.schema == schema(CURVES)
    assert Counter(curves.column("run_id").to_pylist()) == {
        run: LENGTH[status] for run, status in expected(known)
    }
    rows = curves.select(["run_id", "t", "cumulative_loss"]).to_pylist()
    assert all(row["cumulative_loss"] == int(row["run_id"], 16) + row["t"] / 8 for row in rows)
    assert len({(row["run_id"], row["t"]) for row in rows}) == len(rows)


def check_files(store, known):
    """The files themselves hold each run once, in few files; the curves' files are those of the
    runs'.
    """
    assert result_files(store) == []
    runs, curves = (
        {file.name: read_table(file) for file in table_files(store, name)}
        for name in ("runs", "curves")
    )
    assert [*runs] == [*curves] == [file_name(table) for table in runs.values()]
    assert len(runs) <= collecting.MANY_FILES + 1
    rows = pa.concat_tables(runs.values()).to_pylist() if runs else []
    assert sorted((row["run_id"], row["status"]) for row in rows) == expected(known)
    points = [run for table in curves.values() for run in table.column("run_id").to_pylist()]
    assert Counter(points) == {run: LENGTH[status] for run, status in expected(known)}


PART = st.dictionaries(st.integers(0, 11), st.sampled_from([OK, FAILED]), min_size=1, max_size=4)
NEVER = 10**6
CUT = st.just(NEVER) | st.integers(0, 12)  # changes of files after which collecting is killed
# runs that are tried again have their own curves wherever replacing the first ones was cut
AGAIN = [step for cut in range(8) for step in ({cut: OK}, cut)]


@settings(max_examples=8, deadline=None)
@given(st.lists(PART | CUT, min_size=2, max_size=10), st.sampled_from([0, 3, 100]))
@example([{1: FAILED, 2: OK}, NEVER, {1: FAILED, 2: FAILED}, NEVER], 0)
@example([dict.fromkeys(range(8), FAILED), NEVER, *AGAIN], 0)
@example([step for run in range(5) for step in ({run: OK}, NEVER)], 100)  # many files
def test_collect__cut_anywhere_loses_doubles_and_mixes_nothing(steps, full):
    known = {}
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(collecting, "MANY_FILES", 2)
        patch.setattr(collecting, "FULL_FILE", full or 1_000_000)
        store = open_store(f"{folder}/store")
        for number, step in enumerate(steps):
            if isinstance(step, dict):
                put_result_file(store, f"{number:032x}", step.items())
                known = {
                    **step,
                    **{
                        run: status
                        for run, status in known.items()
                        if status == OK or run not in step
                    },
                }
            else:
                with cut_after(step):
                    collect(store)
            check_read(store, known)
        collect(store)
        check_read(store, known)
        if full != 3:
            check_files(store, known)
        assert collect(store) == 0
        check_read(store, known)


def test_runs_whose_curves_another_collector_took_away__have_those_of_its_file(empty):
    put_result_file(empty, "a", [(1, OK), (2, FAILED)])
    collect(empty)
    (first,) = table_files(empty, "runs")
    content = first.read_bytes()
    put_result_file(empty, "b", [(2, OK), (3, OK)])
    collect(empty)
    # as one who is late writes it, where there is no lock
    first.write_bytes(content)
    check_read(empty, {1: OK, 2: OK, 3: OK})
    collect(empty)
    check_files(empty, {1: OK, 2: OK, 3: OK})
