"""Runs that are read again and again while others write: always the store's, and each file once."""

import tempfile

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from koco_stream.io.paths import StorePath
from storage.collecting import collect, compact
from storage.following import Followed
from storage.results import read_runs
from storage.store import open_store
from tests.helpers.many_runs import drawn_runs, many_runs, put_collected, put_result_file

RUNS = drawn_runs(12, "s", np.random.default_rng(1))
SOME = st.tuples(st.integers(0, 11), st.integers(1, 5))
WRITING = st.one_of(
    st.tuples(st.sampled_from(["result", "collected"]), SOME),
    st.tuples(st.sampled_from(["collect", "compact"]), st.just((0, 0))),
)


def do(store, step, what):
    """One thing that another process may do."""
    kind, (first, n) = what
    if kind == "result":
        put_result_file(store, f"cohort-{step}", RUNS.slice(first, n))
    elif kind == "collected":
        put_collected(store, RUNS.slice(first, n))
    else:
        (collect if kind == "collect" else compact)(store)


@settings(max_examples=25, deadline=None)
@given(steps=st.lists(WRITING, max_size=6))
def test_snapshot__has_the_runs_that_reading_all_finds(steps):
    with tempfile.TemporaryDirectory() as folder:
        store = open_store(f"{folder}/store")
        followed = Followed(store)
        for step, what in enumerate(steps):
            do(store, step, what)
            found = followed.snapshot()
            there = read_runs(store).sort_by("run_id")
            assert found.runs.drop_columns("file").sort_by("run_id").equals(there)
            ids = there.column("run_id").to_pylist()
            where = found.files_of([*ids, "no run"])
            assert sorted(run for runs in where.values() for run in runs) == ids
            for file, runs in where.items():
                assert set(runs) <= set(file.read_table(["run_id"]).column(0).to_pylist())


def test_snapshot__reads_what_is_new_and_nothing_else(tmp_path, monkeypatch):
    store = many_runs(tmp_path / "store", 40)
    read, plain = [], StorePath.read_table

    def counted(path, *given, **more):
        read.append(path.name)
        return plain(path, *given, **more)

    monkeypatch.setattr(StorePath, "read_table", counted)
    followed = Followed(store)
    first = followed.snapshot()
    assert len(read) == 4
    assert followed.snapshot() is first
    put_result_file(store, "new", RUNS)
    assert followed.snapshot().runs.num_rows == 52
    assert read[4:] == ["new.parquet"]


def test_snapshot__leaves_out_a_damaged_result_file_until_it_is_whole(tmp_path):
    store = open_store(tmp_path / "store")
    put_result_file(store, "one", RUNS)
    file = store / "results" / "parts" / "one.parquet"
    whole = file.read_bytes()
    file.write_bytes(whole[: len(whole) // 2])
    followed = Followed(store)
    assert followed.snapshot().runs.num_rows == 0
    file.write_bytes(whole)
    assert followed.snapshot().runs.num_rows == 12
