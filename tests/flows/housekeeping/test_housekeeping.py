"""`koco list` and `koco store remove`: what goes is what was said, and nothing that others need goes."""

import json
import os
import shutil
import socket
from dataclasses import asdict
from datetime import UTC, datetime

import numpy as np
import pytest

from flows.housekeeping import dataset_removal, sweep_removal
from flows.runtime.processes import locked, start_of
from flows.sweeping.status import Status
from flows.tables.sweep_runs import sweep_note
from koco_stream.errors import WrongInput
from koco_stream.streams.manifest import load_manifest
from koco_stream.streams.shard_cache import copies_of
from storage.collecting import result_bytes
from storage.results import (
    read_curves,
    read_predictions,
    read_runs,
    read_windows,
    result_files,
    table_files,
)
from storage.store import existing_store
from storage.verify import result_problems
from tests.helpers.cut import cut_after
from tests.helpers.swept import prepared, swept

SPEC = """
window = 50
keep_predictions = true
[[dataset]]
name = "plain"
order = "shuffled"
order_seeds = 2
[[learner]]
name = "OGD"
step_size = {steps}
"""
MORE = """
[[learner]]
name = "AdaGrad"
step_size = 0.1
"""
TABLES = (read_runs, read_curves, read_windows, read_predictions)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A store with two datasets and three sweeps, two of which share runs."""
    folder, draw = tmp_path_factory.mktemp("house"), np.random.default_rng(0)
    X = draw.standard_normal((150, 3))
    for name, largest in (("plain", 3), ("other", 4), ("unused", 5)):
        prepared(folder, name, X, X.sum(1) / largest)
    swept(folder, SPEC.format(steps="[0.1, 0.2, 0.3]"), "first")
    swept(folder, SPEC.format(steps="[0.3, 0.4]") + MORE, "second")
    swept(folder, SPEC.format(steps=0.1).replace("plain", "other"), "third")
    return folder / "store"


@pytest.fixture
def store(made, tmp_path):
    """A copy of that store, which the test may change."""
    shutil.copytree(made, tmp_path / "store")
    return existing_store(tmp_path / "store")


def ids_of(store, name):
    return set(sweep_note(store, name)["run_ids"])


def rows_of(store, run_ids):
    """All rows of these runs, in all tables, in an order of their own."""
    ids = sorted(run_ids)
    tables = [read(store) if read in TABLES[:2] else read(store, ids) for read in TABLES]
    return [
        sorted((row for row in table.to_pylist() if row["run_id"] in run_ids), key=str)
        for table in tables
    ]


def files_below(store):
    return {path: path.read_bytes() for path in store.path.rglob("*") if path.is_file()}


def test_sweep__goes_with_its_runs__but_for_those_of_another_sweep(store, koco):
    others = ids_of(store, "second") | ids_of(store, "third")
    going, shared = ids_of(store, "first") - others, ids_of(store, "first") & others
    assert (len(going), len(shared)) == (4, 2)
    before, everything = rows_of(store, others), files_below(store)
    dry = json.loads(
        koco("store", "remove", "sweep", "first", "--store", store, "--dry-run", "--json", status=0).stdout
    )
    assert files_below(store) == everything
    done = koco("store", "remove", "sweep", "first", "--store", store, "--json", status=0)
    assert {**json.loads(done.stdout), "removed": False} == dry
    assert (dry["runs"], dry["runs_kept"]) == (4, 2)
    assert rows_of(store, going) == [[], [], [], []]
    assert rows_of(store, others) == before
    assert all(before)
    assert result_problems(store) == []
    assert set(read_runs(store).column("run_id").to_pylist()) == others
    assert "did you mean" not in koco("results", "--store", store, "--sweep", "third").stderr
    gone = koco("store", "remove", "sweep", "first", "--store", store, status=2).stderr
    assert "store has no sweep 'first'" in gone
    assert not [path for path in files_below(store) if "first" in path.name]
    assert koco("store", "remove", "sweep", "../koco-store", "--store", store, status=2).exit_code == 2


def test_sweep__whose_removal_is_cut_anywhere_costs_no_other_run__and_the_next_completes_it(
    store, tmp_path
):
    others = ids_of(store, "second") | ids_of(store, "third")
    before, steps, ended = rows_of(store, others), 0, False
    while not ended:
        again = existing_store(shutil.copytree(store.path, tmp_path / f"cut {steps}"))
        with cut_after(steps):
            sweep_removal(str(again), "first")[1]()
            ended = True
        assert rows_of(again, others) == before, steps
        if not ended:
            sweep_removal(str(again), "first")[1]()
        assert rows_of(again, others) == before, steps
        assert set(read_runs(again).column("run_id").to_pylist()) == others
        assert result_problems(again) == []
        assert {file.name for file in table_files(again, "curves")} == {
            file.name for file in table_files(again, "runs")
        }
        steps += 1
    assert steps > 8


def test_bytes__of_runs_are_those_of_the_files(store):
    """The shares of a table's runs are the whole file; of windows and predictions less."""
    everything = ids_of(store, "first") | ids_of(store, "second") | ids_of(store, "third")
    found = list(result_bytes(store))
    tables = [*result_files(store)]
    tables += [
        file
        for name in ("runs", "curves", "windows", "predictions")
        for file in table_files(store, name)
    ]
    assert {file for file, _ in found} == set(tables)
    for file, sizes in found:
        [whole] = file.sizes()
        assert set(sizes) <= everything
        assert 0 < sum(sizes.values()) <= whole * (1 + 1e-12)


def test_dataset__that_a_sweep_uses_is_refused__and_one_that_none_uses_goes(store, koco):
    done = koco("store", "remove", "dataset", "plain", "--store", store, status=2)
    assert "used by first, second" in done.stderr
    assert "koco store remove sweep first and koco store remove sweep second" in done.stderr
    for name in ("first", "second"):
        koco("store", "remove", "sweep", name, "--store", store, status=0)
    told, _ = dataset_removal(str(store), "plain")
    folder, copies = store.path / "datasets" / "plain", copies_of(load_manifest(store, "plain"))
    files = [*(path for path in folder.rglob("*") if path.is_file()), *copies]
    assert copies
    assert told == {"files": len(files), "bytes": sum(f.stat().st_size for f in files)}
    koco("store", "remove", "dataset", "plain", "--store", store, status=0)
    assert not folder.exists()
    assert not any(path.exists() for path in copies)
    assert not (store.path / ".staging").exists()
    rest = [
        row["name"]
        for row in json.loads(koco("list", "datasets", "--store", store, "--json").stdout)
        if row["prepared"] == "yes"
    ]
    assert rest == ["other", "unused"]
    assert "did you mean" in koco("store", "remove", "dataset", "othr", "--store", store, status=2).stderr


def test_dataset__that_is_removed_by_force_leaves_the_results__and_comes_back_the_same(
    store, koco, made
):
    before, identity = rows_of(store, ids_of(store, "third")), load_manifest(store, "other")
    koco("store", "remove", "dataset", "other", "--store", store, "--force", status=0)
    assert rows_of(store, ids_of(store, "third")) == before
    koco("report", "third", "--store", store, status=0)
    source = made.parent / "other.csv"
    koco("prepare", "other", "--from", source, "--no-header", "--store", store, status=0)
    assert load_manifest(store, "other").dataset_hash == identity.dataset_hash


@pytest.mark.parametrize("words", [("sweep", "third"), ("dataset", "unused")], ids=" ".join)
def test_nothing_is_removed__while_a_sweep_or_a_night_is_under_way(store, koco, words):
    now = datetime.now(UTC).isoformat(timespec="seconds")
    me, host = os.getpid(), socket.gethostname()
    running = Status("busy", host=host, process=me, started=start_of(me), updated=now)
    file = store / "status" / "busy.json"
    file.write_text(json.dumps(asdict(running)))
    everything = files_below(store)
    done = koco("store", "remove", *words, "--store", store, status=2)
    assert "the sweep busy is running" in done.stderr
    koco("store", "remove", *words, "--store", store, "--dry-run", status=0)
    assert files_below(store) == everything
    file.remove()
    with locked(store, "nightly", None):
        done = koco("store", "remove", *words, "--store", store, status=2)
    assert "a nightly run is under way" in done.stderr
    del everything[file.path]
    assert files_below(store) == {**everything, store.path / "nightly.lock": b""}
    koco("store", "remove", *words, "--store", store, status=0)


def test_dataset__is_not_removed_from_a_store_that_borrows_it(store, koco):
    night = store / "nights" / "n"
    (night / "koco-store.json").write_text('{"format": 1}\n')
    (night / "koco-datasets.txt").write_text(f"{store}\n")
    with pytest.raises(WrongInput, match=r"uses the datasets of .*; remove unused there"):
        dataset_removal(str(night), "unused")[1]()
    assert load_manifest(store, "unused")


def test_list__has_what_a_loop_over_the_runs_gives(store, koco):
    rows = json.loads(koco("list", "sweeps", "--store", store, "--json", status=0).stdout)
    runs = {row["run_id"]: row for row in read_runs(store).to_pylist()}
    assert [row["sweep"] for row in rows] == ["first", "second", "third"]
    for row in rows:
        ids = ids_of(store, row["sweep"])
        assert (row["kind"], row["runs"], row["done"]) == ("sweep", len(ids), len(ids))
        assert row["ended"] == str(max(runs[run_id]["finished_at"] for run_id in ids))
        assert (row["diverged"], row["failed"]) == (0, 0)
    # what removing the last sweep frees is what it takes: no other has its runs
    told, _ = sweep_removal(str(store), "third")
    assert abs(told["bytes"] - rows[-1]["bytes"]) <= 1
    lines = koco("list", "sweeps", "--store", store, status=0).stdout.splitlines()
    assert [line.split()[0] for line in lines] == ["sweep", "first", "second", "third"]
