"""`koco list` and `koco store remove`: what goes is what was said, and nothing that others need
goes.
"""

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
from koco_stream.streams.manifest import load_manifest
from koco_stream.streams.shard_cache import copies_of
from storage.collecting import result_bytes
from storage.results import (
    read_curves,
    read_predictions,
    read_runs,
    read_windows,
    result_problems,
    table_files,
)
from storage.store import existing_store
from tests.helpers.cut import cut_after
from tests.helpers.refusal import refusal
from tests.helpers.sweeps import prepared, swept, written

SPEC = """
window = 50
keep_predictions = true
[[dataset]]
name = "{dataset}"
order = "shuffled"
order_seeds = 2
[[learner]]
name = "OGD"
step_size = {steps}
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A store with three datasets and three sweeps, two of which share runs."""
    folder, draw = tmp_path_factory.mktemp("house"), np.random.default_rng(0)
    X = draw.standard_normal((150, 3))
    for name, largest in (("plain", 3), ("other", 4), ("unused", 5)):
        prepared(folder, name, X, X.sum(1) / largest)
    swept(folder, SPEC.format(dataset="plain", steps="[0.1, 0.2, 0.3]"), "first")
    swept(folder, SPEC.format(dataset="plain", steps="[0.3, 0.4]"), "second")
    swept(folder, SPEC.format(dataset="other", steps=0.1), "third")
    return folder / "store"


@pytest.fixture
def store(made, tmp_path):
    """A copy of that store, which the test may change."""
    shutil.copytree(made, tmp_path / "store")
    return existing_store(tmp_path / "store")


@pytest.fixture
def removing(store, koco):
    """The command `koco store remove`."""
    return lambda *words, status=0: koco("store", "remove", *words, "--store", store, status=status)


def ids_of(store, *names):
    return {run_id for name in names for run_id in sweep_note(store, name)["run_ids"]}


def rows_of(store, run_ids):
    """All rows of these runs, in all tables, in an order of their own."""
    ids = sorted(run_ids)
    tables = [
        read_runs(store),
        read_curves(store),
        *(r(store, ids) for r in (read_windows, read_predictions)),
    ]
    rows = [[row for row in table.to_pylist() if row["run_id"] in run_ids] for table in tables]
    return [sorted(some, key=str) for some in rows]


def files_below(store):
    return {path: path.read_bytes() for path in store.path.rglob("*") if path.is_file()}


def test_sweep__goes_with_its_runs__but_for_those_of_another_sweep(store, removing):
    everything = files_below(store)
    dry = json.loads(removing("sweep", "first", "--dry-run", "--json").stdout)
    assert files_below(store) == everything
    done = json.loads(removing("sweep", "first", "--json").stdout)
    assert {**done, "removed": False} == dry
    assert (dry["runs"], dry["runs_kept"]) == (4, 2)
    assert set(read_runs(store).column("run_id").to_pylist()) == ids_of(store, "second", "third")
    assert "has no sweep 'first'" in removing("sweep", "first", status=2).stderr
    assert not [path for path in files_below(store) if "first" in path.name]
    assert "has no sweep" in removing("sweep", "../koco-store", status=2).stderr


def test_sweep__whose_removal_is_cut_anywhere_costs_no_other_run__and_the_next_completes_it(
    store, tmp_path
):
    others = ids_of(store, "second", "third")
    before, steps, ended = rows_of(store, others), 0, False
    assert all(before)
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
        names = [{file.name for file in table_files(again, one)} for one in ("runs", "curves")]
        assert names[0] == names[1]
        steps += 1
    assert steps > 8


def test_bytes__of_runs_are_those_of_the_files(store):
    everything = ids_of(store, "first", "second", "third")
    names = ("runs", "curves", "windows", "predictions")
    found = dict(result_bytes(store))
    assert {*found} == {file for name in names for file in table_files(store, name)}
    for file, sizes in found.items():
        [whole] = file.sizes()
        assert set(sizes) <= everything
        assert sum(sizes.values()) == pytest.approx(whole)


def test_dataset__that_a_sweep_uses_is_refused__and_one_that_none_uses_goes(store, koco, removing):
    said = removing("dataset", "plain", status=2).stderr
    assert "used by first, second" in said
    assert "koco store remove sweep first and koco store remove sweep second" in said
    for name in ("first", "second"):
        removing("sweep", name)
    told, _ = dataset_removal(str(store), "plain")
    folder, copies = store.path / "datasets" / "plain", copies_of(load_manifest(store, "plain"))
    files = [*(path for path in folder.rglob("*") if path.is_file()), *copies]
    assert copies
    assert told == {"files": len(files), "bytes": sum(f.stat().st_size for f in files)}
    removing("dataset", "plain")
    assert [path for path in (folder, *copies, store.path / ".staging") if path.exists()] == []
    rows = json.loads(koco("list", "datasets", "--store", store, "--json").stdout)
    assert [row["name"] for row in rows if row["prepared"] == "yes"] == ["other", "unused"]
    assert "did you mean" in removing("dataset", "othr", status=2).stderr


def test_dataset__that_is_removed_by_force_leaves_the_results__and_comes_back_the_same(
    store, koco, made, removing
):
    before, identity = rows_of(store, ids_of(store, "third")), load_manifest(store, "other")
    removing("dataset", "other", "--force")
    assert rows_of(store, ids_of(store, "third")) == before
    koco("report", "third", "--store", store, status=0)
    source = made.parent / "other.csv"
    koco("prepare", "other", "--from", source, "--no-header", "--store", store, status=0)
    assert load_manifest(store, "other").dataset_hash == identity.dataset_hash


@pytest.mark.parametrize("words", [("sweep", "third"), ("dataset", "unused")], ids=" ".join)
def test_nothing_is_removed__while_a_sweep_or_a_night_is_under_way(store, removing, words):
    now, me = datetime.now(UTC).isoformat(timespec="seconds"), os.getpid()
    told = Status("busy", host=socket.gethostname(), process=me, started=start_of(me), updated=now)
    file = written(store / "status", json.dumps(asdict(told)), "busy.json")
    everything = files_below(store)
    assert "the sweep busy is running" in removing(*words, status=2).stderr
    removing(*words, "--dry-run")
    with locked(store, "nightly", ""):
        assert "a nightly run is under way" in removing(*words, status=2).stderr
    locks = {store.path / f"{name}.lock": b"" for name in ("nightly", "sweeps")}
    assert files_below(store) == {**everything, **locks}
    file.remove()
    removing(*words)


def test_dataset__is_not_removed_from_a_store_that_borrows_it(store, koco):
    night = store / "nights" / "n"
    (night / "koco-store.json").write_text('{"format": 1}\n')
    (night / "koco-datasets.txt").write_text(f"{store}\n")
    remove = dataset_removal(str(night), "unused")[1]
    refusal(r"uses the datasets of .*; remove unused there", remove)
    assert load_manifest(store, "unused")


def test_list__has_what_a_loop_over_the_runs_gives(store, koco):
    rows = json.loads(koco("list", "sweeps", "--store", store, "--json", status=0).stdout)
    assert [row["sweep"] for row in rows] == ["first", "second", "third"]
    for row in rows:
        runs = [
            one
            for one in read_runs(store).to_pylist()
            if one["run_id"] in ids_of(store, row["sweep"])
        ]
        counts = {"runs": len(runs), "done": len(runs), "diverged": 0, "failed": 0, "kind": "sweep"}
        assert {name: row[name] for name in counts} == counts
        assert row["ended"] == str(max(one["finished_at"] for one in runs))
    # what removing the last sweep frees is what it takes: no other has its runs
    assert abs(sweep_removal(str(store), "third")[0]["bytes"] - rows[-1]["bytes"]) <= 1


def test_list__has_learners_and_datasets_too__also_without_a_store(store, koco, tmp_path):
    for place, sweeps in ((store, 3), (tmp_path / "none", 0)):
        found = json.loads(koco("list", "--store", place, "--json", status=0).stdout)
        assert {"OGD", "KONS"} < {row["learner"] for row in found["learners"]}
        assert {"a9a", "ill-conditioned"} < {row["name"] for row in found["datasets"]}
        assert len(found["sweeps"]) == sweeps
        lines = koco("list", "--store", place, status=0).stdout.splitlines()
        assert [line.split()[0] for line in lines[len(lines) - sweeps :]] == [
            "first",
            "second",
            "third",
        ][:sweeps]
    assert "there is no store" in koco("list", "sweeps", "--store", tmp_path / "x", status=2).stderr
