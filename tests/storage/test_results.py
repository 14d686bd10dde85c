"""The result tables: result files are moved into few files, whatever is cut and wherever, and every
run is there once with its own curve. What is damaged, of another format or crafted is refused with
its name and what to do, and never left out in silence.
"""

import tempfile
from collections import Counter
from datetime import UTC, datetime

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
    seconds_of_stopped,
    table_files,
)
from storage.store import open_store
from tests.helpers.cut import cut_after

OK, FAILED, STOPPED = "ok", "failed", "stopped"
LENGTH = {OK: 90, FAILED: 2, STOPPED: 3}  # points of a curve: what is not ok came less far


def length(status, number):
    """The points of a run's curve in the result file of this number: of one that was stopped, more
    than before.
    """
    return LENGTH[status] + number * (status == STOPPED)


@pytest.fixture
def empty(tmp_path):
    return open_store(tmp_path / "store")


def put_result_file(store, number, runs):
    """A result file with these (run, status) in it, later than those of smaller numbers. A run's
    numbers follow only from it, as those of a real one do.
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
                for t in range(1, length(status, number) + 1)
            ],
            "finished_at": datetime.fromtimestamp(number, UTC),
        }
        for run, status in runs
    ]
    file = result_files_folder(store) / f"{number:032x}.parquet"
    write_tables([pa.Table.from_pylist(rows, result_schema())], file)


def expected(known):
    return sorted((f"{run:032x}", status) for run, (status, _) in known.items())


def points(known):
    return {f"{run:032x}": length(*of_run) for run, of_run in known.items()}


def check_read(store, known):
    """What is read is each run once, an ok row before others and else the latest, with the curve of
    that row.
    """
    runs = read_runs(store).select(["run_id", "status"]).to_pylist()
    assert sorted((row["run_id"], row["status"]) for row in runs) == expected(known)
    assert finished_runs(store) == {run for run, status in expected(known) if status != STOPPED}
    assert {*seconds_of_stopped(store)} == {run for run, of in expected(known) if of == STOPPED}
    assert finished_runs(store, True) >= {run for run, status in expected(known) if status == OK}
    curves = read_curves(store)
    assert curves.schema == schema(CURVES)
    assert Counter(curves.column("run_id").to_pylist()) == points(known)
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
    found = [run for table in curves.values() for run in table.column("run_id").to_pylist()]
    assert Counter(found) == points(known)


NEVER = 10**6
CUT = st.just(NEVER) | st.integers(0, 12)  # changes of files after which collecting is killed
# runs that are tried again have their own curves wherever replacing the first ones was cut
AGAIN = [step for cut in range(8) for step in ({cut: OK}, cut)]


@settings(max_examples=8, deadline=None)
@given(
    st.lists(
        st.dictionaries(
            st.integers(0, 11), st.sampled_from([OK, FAILED, STOPPED]), min_size=1, max_size=4
        )
        | CUT,
        min_size=2,
        max_size=10,
    ),
    st.sampled_from([0, 3, 100]),
)
@example([{1: FAILED, 2: OK}, NEVER, {1: FAILED, 2: FAILED}, NEVER], 0)
@example([dict.fromkeys(range(8), FAILED), NEVER, *AGAIN], 0)
@example([{1: STOPPED, 2: OK}, NEVER, {1: STOPPED}, 1, {1: FAILED}, 2, {1: STOPPED}, NEVER], 0)
@example([step for run in range(5) for step in ({run: OK}, NEVER)], 100)  # many files
def test_collect__cut_anywhere_loses_doubles_and_mixes_nothing(steps, full):
    known = {}
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(collecting, "MANY_FILES", 2)
        patch.setattr(collecting, "FULL_FILE", full or 1_000_000)
        store = open_store(f"{folder}/store")
        for number, step in enumerate(steps):
            if isinstance(step, dict):
                put_result_file(store, number, step.items())
                done = [run for run, (status, _) in known.items() if status == OK]
                known |= {run: (of, number) for run, of in step.items() if run not in done}
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
    put_result_file(empty, 1, [(1, OK), (2, FAILED)])
    collect(empty)
    (first,) = table_files(empty, "runs")
    content = first.read_bytes()
    put_result_file(empty, 2, [(2, OK), (3, OK)])
    collect(empty)
    # as one who is late writes it, where there is no lock
    first.write_bytes(content)
    known = {1: (OK, 1), 2: (OK, 2), 3: (OK, 2)}
    check_read(empty, known)
    collect(empty)
    check_files(empty, known)
