"""A store in a folder and one in an object store: the same promises, kept by the same tests."""

import hashlib
import json
import re
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from threading import Event

import pyarrow as pa
import pyarrow.fs
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import flows
from cluster.clusters import local_cluster
from flows import cli
from flows.housekeeping import dataset_removal, sweep_removal, sweep_rows
from flows.preparing.preparation import verified
from koco_stream.errors import StoreUnavailable
from koco_stream.io.cache import private_folder
from koco_stream.io.paths import store_path
from koco_stream.io.table_file import read_table, write_tables
from koco_stream.streams.manifest import load_manifest
from koco_stream.streams.reader import StreamReader
from storage import collecting
from storage.preparing.prepare import map_on_dask, prepare_file
from storage.results import read_curves, read_runs, result_files, table_files
from storage.store import check_store, existing_store, open_store
from tests.helpers.project import environment
from tests.helpers.refusal import refusal
from tests.helpers.sweeps import (
    SWEEP,
    compiled,
    koco,
    plan_for,
    random_source,
    run_here,
    stream_of,
    tables,
)

BIG = 12 << 20  # more than one piece of an upload


@pytest.fixture(params=["folder", "s3"])
def somewhere(request, tmp_path):
    return store_path(
        tmp_path / "a" / "store"
        if request.param == "folder"
        else request.getfixturevalue("s3_store")
    )


@pytest.fixture
def s3_copy(small_store, s3_store):
    """The store of `small_store`, in the object store."""
    root = store_path(s3_store)
    pyarrow.fs.copy_files(str(small_store), root.key, destination_filesystem=root.filesystem)
    return s3_store


@pytest.fixture(params=["small_store", "s3_copy"])
def stored(request):
    """The same store, in a folder and in the object store."""
    return request.getfixturevalue(request.param)


@pytest.fixture(autouse=True)
def transfers():
    """Writing and reading leaves nothing in the cache folder."""
    yield
    assert list(private_folder("transfers").iterdir()) == []


def test_path__gives_back_what_was_written(somewhere, tmp_path):
    results, content = somewhere / "results", bytes(range(256))
    file, note = results / "runs" / "b.parquet", results / "note.json"
    table = pa.table({"run_id": ["x", "y"], "t": [1, 2]})
    write_tables([table], file)
    (tmp_path / "source").write_bytes(content)
    (somewhere / "results/runs/a.bin").put(tmp_path / "source")
    note.write_text("κ\n")
    assert file.read_table() == read_table(file) == table
    assert read_table(file, ["t"], ["y", "z"]) == table.select(["t"]).slice(1)
    assert (results / "runs" / "a.bin").read_bytes() == content
    assert (note.read_text(), note.sha256()) == ("κ\n", hashlib.sha256("κ\n".encode()).hexdigest())
    with file.local() as path:
        assert pq.read_table(path, memory_map=True) == table
    assert (tmp_path / "source").is_file()


def test_path__names_and_files_are_sorted_and_removing_takes_what_is_inside_and_nothing_else(
    somewhere,
):
    inside = somewhere / "x"
    (somewhere / "xy" / "c").write_text("xy/c")
    for name in ("b.parquet", "a.parquet", "c.json", "deep/d.parquet", "deeper/and/e.parquet"):
        (inside / name).write_text(name)
    assert inside.names() == ["a.parquet", "b.parquet", "c.json", "deep", "deeper"]
    found = [(file.name, file.read_text()) for file in inside.files(".parquet")]
    assert found == [(name, name) for name in ("a.parquet", "b.parquet")]
    assert [(inside / name).is_file() for name in ("deep", "deep/d.parquet")] == [False, True]
    assert str(store_path(str(inside))) == str(inside)
    (inside / "a.parquet").remove()
    assert inside.names() == ["b.parquet", "c.json", "deep", "deeper"]
    inside.remove_tree()
    assert (inside.names(), somewhere.names()) == ([], ["xy"])
    assert (somewhere / "xy" / "c").read_text() == "xy/c"


def test_path__what_is_not_there(somewhere):
    nothing = somewhere / "x" / "nothing"
    assert not nothing.is_file()
    assert nothing.names() == []
    nothing.remove()
    nothing.remove_tree()
    for read in (nothing.read_bytes, nothing.read_text, nothing.read_table, nothing.sha256):
        refusal(None, read, by=FileNotFoundError)
    with pytest.raises(FileNotFoundError), nothing.local() as path:
        path.read_bytes()


@pytest.mark.parametrize("there", [True, False])
def test_writing__that_fails_leaves_what_was_there(somewhere, there):
    file = somewhere / "x" / "file"
    if there:
        file.write_text("before")
    with pytest.raises(KeyboardInterrupt):  # noqa: PT012
        with file.written() as temporary:
            temporary.write_bytes(b"x" * BIG)
            raise KeyboardInterrupt
    assert [found.read_text() for found in (somewhere / "x").files("")] == ["before"] * there


def test_writing__that_cannot_be_completed_is_said(s3_store):
    file = store_path("s3://no-such-bucket-here/store/x")
    refusal("there is no such bucket", file.write_text, "is one put", by=StoreUnavailable)


def test_reading__an_object_that_is_replaced_meanwhile_gives_the_new_one(s3_store):
    file = store_path(s3_store) / "x" / "file"
    file.write_bytes(b"short")
    times = []

    def read(handle):
        times.append(handle.size())
        if len(times) == 1:
            file.write_bytes(b"much longer")
        return handle.read()

    assert file.reading(read) == b"much longer"
    assert times == [5, 11]
    refusal(
        "it changed each of",
        file.reading,
        lambda handle: file.write_bytes(b"x" * (handle.size() + 1)),
        by=StoreUnavailable,
    )


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("http://host/store", "http://"),
        ("s3://", "s3://BUCKET/PREFIX"),
        ("s3://b", "s3://BUCKET/PREFIX"),
        ("s3://bucket//store", "empty names"),
        ("s3://bucket/a/../store", "empty names"),
        ("s3://key:geheim@bucket/store", "credentials"),  # which are not repeated
        ("s3://bucket/store?region=x", "without ?"),
        ("gs://bucket/store#1", "without ?"),
    ],
)
def test_address__that_is_no_store_s_is_refused(address, said):
    assert "geheim" not in refusal(re.escape(said), store_path, address)


def test_store__is_opened_once_and_nothing_else_is_taken_for_one(somewhere):
    assert not check_store(somewhere)
    refusal(f"there is no store at {somewhere};", existing_store, str(somewhere))
    assert str(open_store(str(somewhere))) == str(somewhere)
    assert existing_store(str(somewhere)).names() == ["koco-store.json"]


def in_the_bucket(store):
    """The names of all objects below a store."""
    root = store_path(store)
    found = root.filesystem.get_file_info(pyarrow.fs.FileSelector(root.key, recursive=True))
    return sorted(info.path.partition("/store/")[2] for info in found if info.is_file)


def names_of(manifest):
    """The names of all objects of a store with this dataset only."""
    files = [f"datasets/x/{file.path}" for file in manifest.shards]
    return sorted(["koco-store.json", "datasets/x/manifest.json", *files])


def assert_whole(store):
    assert [row["state"] for row in verified(store, [])] == ["ok", "ok"]


def test_prepare__into_an_object_store_makes_what_a_folder_would_hold(s3_store, tmp_path):
    source, folder = random_source(tmp_path / "a.svm", 1), tmp_path / "folder"
    how = {"scale": "unit-mean-square"}
    options = {**how, "values_per_shard": 500}
    with local_cluster(1) as client:
        there = prepare_file(
            s3_store, "x", source, parallel_map=partial(map_on_dask, client), **options
        )
    assert prepare_file(folder, "x", source, **options) == there
    assert len(there.shards) > 3
    assert_whole(s3_store)
    assert in_the_bucket(s3_store) == names_of(there)
    for name in names_of(there)[:-1]:  # not what says when the store was made
        assert (store_path(s3_store) / name).read_bytes() == (folder / name).read_bytes()
    again = prepare_file(s3_store, "x", source, values_per_shard=700, **how)
    assert again.dataset_hash == there.dataset_hash
    assert in_the_bucket(s3_store) == names_of(again)
    assert list(private_folder("preparing").iterdir()) == []


@pytest.mark.parametrize("puts", [0, 3, 5])  # five shards, then the manifest
def test_prepare__into_an_object_store_killed_in_mid_upload_keeps_the_old_and_then_completes(
    s3_store, tmp_path, puts
):
    old, new = random_source(tmp_path / "old.svm", 1), random_source(tmp_path / "new.svm", 2)
    before = prepare_file(s3_store, "x", old, values_per_shard=400)
    code = f"""
import os, signal, sys
from pathlib import Path
from koco_stream.io.paths import ObjectPath
from storage.preparing.prepare import prepare_file
put, left = ObjectPath.put, [{puts}]
def killed(self, path):
    if not left[0]:
        os.kill(os.getpid(), signal.SIGKILL)
    left[0] -= 1
    put(self, path)
ObjectPath.put = killed
prepare_file({s3_store!r}, "x", Path({str(new)!r}), values_per_shard=400)
"""
    ended = subprocess.run(
        [sys.executable, "-c", code],
        env=environment(KOCO_CACHE=str(tmp_path / "cache")),
        capture_output=True,
        text=True,
    )
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    assert load_manifest(s3_store, "x") == before
    assert_whole(s3_store)
    after = prepare_file(s3_store, "x", new, values_per_shard=400)
    assert after.dataset_hash != before.dataset_hash
    assert_whole(s3_store)
    assert in_the_bucket(s3_store) == names_of(after)


def test_dataset__whose_shard_was_altered_is_refused_and_a_store_out_of_reach_is_not_blamed_on_it(
    s3_copy, monkeypatch
):
    stream, first = stream_of(s3_copy, "real"), load_manifest(s3_copy, "real").shards[0]
    shard = store_path(s3_copy) / "datasets" / "real" / first.path
    shutil.rmtree(private_folder("datasets"))
    shard.write_bytes(shard.read_bytes()[:-1] + b"x")
    reader = StreamReader(s3_copy, stream)  # shards are looked at when they are read
    refusal(r"s3://.*altered or damaged; prepare the dataset again", reader.whole)
    shard.remove()
    refusal("prepare the dataset again", StreamReader(s3_copy, stream).whole)
    reader = StreamReader(s3_copy, stream)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wrong")
    refusal("access is refused", reader.whole, by=StoreUnavailable)


def without_the_last(planned, store):
    """Run all cohorts but the last; the plan, the tables of all, and what runs the last."""
    todo, reference = planned
    run_here(store, todo.cohorts[:-1])
    return todo, reference, partial(run_here, store, todo.cohorts[-1:])


@pytest.fixture
def planned(small_store, tmp_path):
    """The plan of a sweep, compiled, and its tables as a folder has them."""
    todo, manifests = plan_for(small_store, tmp_path, 2)
    assert len(todo.cohorts) > 2
    compiled(todo.runs, manifests.values())
    store = shutil.copytree(small_store, tmp_path / "reference")
    run_here(store, todo.cohorts)
    return todo, tables(store)


def check_collected(store, reference, once=("runs", "curves")):
    """All is collected, and no row of the tables that are to be there `once` is in two files."""
    assert tables(store) == reference
    assert result_files(store) == []
    for name, table in zip(("runs", "curves"), reference, strict=True):
        rows = sum(read_table(file, ["run_id"]).num_rows for file in table_files(store, name))
        assert rows == len(table) or name not in once, name


def test_sweep__on_an_object_store_half_done_goes_on_and_leaves_the_same_tables(
    s3_copy, planned, tmp_path
):
    todo, reference = planned
    run_here(s3_copy, todo.cohorts[:2])
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    (folder / "try.toml").write_text(SWEEP)
    swept = koco("sweep", "try.toml", "--store", s3_copy, "--json", "--workers", "1", cwd=folder)
    # no complaint of pyarrow's at a process's end
    assert (swept.returncode, "S3" in swept.stderr) == (0, False), swept.stderr
    summary = json.loads(swept.stdout)
    left = sum(len(cohort.runs) for cohort in todo.cohorts[2:])
    assert (summary["runs"], summary["computed"]) == (len(todo.runs), left)
    check_collected(s3_copy, reference)
    assert summary["report"] == f"{s3_copy}/reports/try.html"
    assert "<title>Sweep try" in store_path(summary["report"]).read_text()
    listed = koco("results", "--store", s3_copy, "--sweep", "try", "--runs", "--json", cwd=folder)
    assert {row["run_id"] for row in json.loads(listed.stdout)} == {run.run_id for run in todo.runs}
    again = CliRunner().invoke(cli.koco, ["report", "try", "--store", f"{s3_copy}/"])
    assert (again.exit_code, again.stdout) == (0, summary["report"] + "\n")
    planned_again = CliRunner().invoke(
        cli.koco, ["sweep", str(folder / "try.toml"), "--store", s3_copy, "--dry-run", "--json"]
    )
    assert json.loads(planned_again.stdout)["to compute"] == 0
    assert list(folder.iterdir()) == [folder / "try.toml"]


@pytest.mark.parametrize("moment", ["before curves", "before runs", "after runs"])
@pytest.mark.parametrize("meanwhile", ["another collects", "a result file comes", "both"])
def test_collect__without_a_lock_loses_no_run_and_no_curve_of_what_happens_meanwhile(
    s3_copy, planned, monkeypatch, moment, meanwhile
):
    _, reference, run_the_last = without_the_last(planned, s3_copy)
    write = collecting.write_tables

    def happen():
        monkeypatch.setattr(collecting, "write_tables", write)
        if meanwhile != "another collects":
            run_the_last()
        if meanwhile != "a result file comes":
            collecting.collect(s3_copy)

    def interrupted(table, file):
        if moment == f"before {file.address.split('/')[-2]}":
            happen()
        write(table, file)
        if moment == "after runs" and "/runs/" in file.address:
            happen()

    monkeypatch.setattr(collecting, "write_tables", interrupted)
    collecting.collect(s3_copy)
    if meanwhile == "another collects":
        run_the_last()
    assert tables(s3_copy) == reference
    collecting.collect(s3_copy)
    # where both happen, result files may be collected twice, by two into other files
    check_collected(s3_copy, reference, once=() if meanwhile == "both" else ("runs", "curves"))


def test_collect__leaves_the_curves_of_another_that_has_not_written_its_runs_yet(
    s3_copy, planned, monkeypatch
):
    todo, reference, run_the_last = without_the_last(planned, s3_copy)
    write = collecting.write_tables
    waiting, go_on = Event(), Event()

    def slow(table, file):
        if "/runs/" in file.address:
            waiting.set()
            assert go_on.wait(60)
        write(table, file)

    def then_another_begins(table, file):
        write(table, file)
        if "/runs/" in file.address:
            run_the_last()
            monkeypatch.setattr(collecting, "write_tables", slow)
            others.append(pool.submit(collecting.collect, s3_copy))
            assert waiting.wait(60)

    others = []
    monkeypatch.setattr(collecting, "write_tables", then_another_begins)
    with ThreadPoolExecutor(1) as pool:
        try:
            collecting.collect(s3_copy)
        finally:
            go_on.set()
        assert others[0].result() == len(todo.cohorts[-1].runs)
    check_collected(s3_copy, reference, once=("curves",))


def test_collect__by_several_at_once_and_readers_meanwhile_see_each_run_once(stored, planned):
    todo, reference = planned
    run_here(stored, todo.cohorts)
    with ThreadPoolExecutor(5) as pool:
        at_once = [pool.submit(collecting.collect, stored) for _ in range(3)]
        runs, curves = pool.submit(read_runs, stored), pool.submit(read_curves, stored)
    added = sum(each.result() for each in at_once)
    assert added == len(todo.runs) or "://" in str(stored)  # an object store has no lock
    known = [row["run_id"] for row in reference[0]]
    assert sorted(runs.result().column("run_id").to_pylist()) == known
    assert curves.result().num_rows == len(reference[1])
    check_collected(stored, reference, once=())


@pytest.mark.parametrize(
    ("variables", "store", "said"),
    [
        (
            {},
            "s3://no-such-bucket-here/store",
            "there is no such bucket; create it, or choose another --store",
        ),
        (
            {"AWS_SECRET_ACCESS_KEY": "wrong"},
            None,
            "access is refused; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
        ),
        (
            {"AWS_ACCESS_KEY_ID": None, "AWS_SECRET_ACCESS_KEY": None},
            None,
            "access is refused; set AWS_ACCESS_KEY_ID",
        ),
        (
            {"AWS_ENDPOINT_URL": "http://127.0.0.1:1"},
            None,
            "no answer from http://127.0.0.1:1; check the network, AWS_ENDPOINT_URL",
        ),
    ],
)
@pytest.mark.parametrize("command", ["results", "list", "sweep"])
def test_store_out_of_reach__ends_with_1_and_one_line_that_names_it(
    s3_store, tmp_path, monkeypatch, variables, store, said, command
):
    monkeypatch.setenv("HOME", str(tmp_path))  # no credentials of whoever runs the tests
    for name, value in variables.items():
        monkeypatch.delenv(name) if value is None else monkeypatch.setenv(name, value)
    sweep = 'name = "s"\n[[dataset]]\nname = "ill-conditioned"\n[[learner]]\nname = "OGD"'
    (tmp_path / "s.toml").write_text(sweep)
    begun, store = time.monotonic(), store or s3_store
    words = ["sweep", str(tmp_path / "s.toml"), "--dry-run"] if command == "sweep" else [command]
    done = CliRunner().invoke(cli.koco, [*words, "--store", store])
    assert (done.exit_code, done.stdout, done.stderr.count("\n")) == (1, "", 1), done.output
    assert [text for text in (store, said) if text not in done.stderr] == []
    assert time.monotonic() - begun < 30
    assert list(tmp_path.iterdir()) == [tmp_path / "s.toml"]


def test_sweeps_and_datasets__are_listed_and_removed(s3_copy):
    """What goes takes nothing of another sweep along."""
    root = store_path(s3_copy)
    for name, steps in (("first", [0.1, 0.2]), ("second", [0.2, 0.4])):
        spec = {"name": name, "dataset": [{"name": "real"}], "window": 100}
        flows.sweep({**spec, "learner": [{"name": "OGD", "step_size": steps}]}, s3_copy, workers=0)
    assert [row["done"] for row in sweep_rows(root)] == [2, 2]
    kept = flows.results(s3_copy, "second").windows
    sweep_removal(s3_copy, "first")[1]()
    assert [row["sweep"] for row in sweep_rows(root)] == ["second"]
    assert read_runs(root).num_rows == 2
    assert flows.results(s3_copy, "second").windows == kept
    dataset_removal(s3_copy, "sparse")[1]()
    assert sum((root / "datasets" / "sparse").sizes()) == 0  # some servers keep an empty name
    assert_whole(s3_copy)
