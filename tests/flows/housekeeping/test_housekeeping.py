"""`koco list` and `koco store remove`: what goes is what was said, and nothing that others need
goes. How far a sweep is: what workers report, the time that is left, and what is said of it.
"""

import json
import os
import shutil
import socket
import subprocess
import sys
from contextlib import suppress
from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta
from functools import partial

import numpy as np
import pytest
from hypothesis import given, strategies as st

from cluster.clusters import cluster_named
from flows.housekeeping import dataset_removal, sweep_removal
from flows.runtime.processes import locked, start_of
from flows.sweeping.status import (
    COLUMNS,
    Status,
    Tally,
    claim,
    say_progress,
    statuses,
    write_status,
)
from flows.tables.sweep_runs import sweep_note
from koco_stream.engine import reporting
from koco_stream.engine.cohort import Receipt, run_cohort
from koco_stream.engine.reporting import Report
from koco_stream.runs.run import Cohort, Run
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
from storage.store import existing_store, open_store
from tests.helpers.cut import cut_after
from tests.helpers.refusal import refusal
from tests.helpers.sweeps import prepared, stream_of, swept, written

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
    assert {**json.loads(removing("sweep", "first", "--json").stdout), "removed": False} == dry
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
    found = dict(result_bytes(store))
    assert {*found} == {
        file
        for name in ("runs", "curves", "windows", "predictions")
        for file in table_files(store, name)
    }
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
    koco(
        "prepare",
        "other",
        "--from",
        made.parent / "other.csv",
        "--no-header",
        "--store",
        store,
        status=0,
    )
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
    refusal(
        r"uses the datasets of .*; remove unused there", dataset_removal(str(night), "unused")[1]
    )
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


def status_of(sweep, **more):
    """What this process says of a sweep, or another one."""
    return Status(sweep, **{"runs": 10, "done": 4, "dashboard": "http://x", **more})


def dead_process():
    with subprocess.Popen([sys.executable, "-c", ""]) as done:
        return done.pid


def test_process_that_waits_to_be_reaped__has_ended():
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        os.waitid(os.P_PID, ended.pid, os.WEXITED | os.WNOWAIT)
        assert start_of(ended.pid) is None


def test_status__tells_running_from_killed(tmp_path, koco):
    store, dead = open_store(tmp_path / "store"), dead_process()
    old, ahead = (
        (datetime.now(UTC) + shift).isoformat(timespec="seconds")
        for shift in (timedelta(hours=-1), timedelta(days=400))
    )
    told = [
        status_of("ahead", host="another machine", updated=ahead),  # its clock was
        status_of("alive"),
        # after a restart of the machine or a container, ids are given again
        status_of("another's", started=start_of(os.getpid()) - 1),
        status_of("dead", process=dead),
        status_of("done", state="done", process=dead, dashboard=None, seconds_left=None),
        status_of("elsewhere", host="another machine"),
        status_of("silent", host="another machine", updated=old),
        status_of("stopped", state="stopped", process=dead),
    ]
    for status in told:
        (store / "status" / f"{status.sweep}.json").write_text(json.dumps(asdict(status)))
    found = list(statuses(store))
    states = {
        "ahead": "killed",
        "alive": "running",
        "another's": "killed",
        "dead": "killed",
        "done": "done",
        "elsewhere": "running",
        "silent": "killed",
        "stopped": "stopped",
    }
    assert {status.sweep: status.state for status in found} == states
    assert (found[1], found[3]) == (
        told[1],
        replace(told[3], state="killed", dashboard=None, seconds_left=None),
    )

    rows = json.loads(koco("list", "sweeps", "--store", store, "--json").stdout)
    assert all({*COLUMNS} <= {*row} for row in rows)
    assert {row["sweep"]: row["state"] for row in rows} == states
    lines = koco("list", "sweeps", "--store", store).stdout.splitlines()
    assert [line.split()[:4] for line in lines[::4]] == [
        ["sweep", "kind", "state", "runs"],
        ["dead", "sweep", "killed", "10"],
        ["stopped", "sweep", "stopped", "10"],
    ]


@pytest.mark.parametrize(
    ("error", "state", "said"),
    [
        (None, "done", None),
        (KeyboardInterrupt(), "stopped", None),
        (OSError("the disk is full"), "ended by an error", "the disk is full"),
    ],
)
def test_status__says_how_the_sweep_ended(error, state, said, tmp_path):
    store = open_store(tmp_path / "store")
    tally = Tally("try", [(1, partial(write_status, store))])
    claim(store, tally.status)
    with suppress(KeyboardInterrupt, OSError), tally:
        (status,) = statuses(store)
        assert (status.state, status.process, status.host) == (
            "running",
            os.getpid(),
            socket.gethostname(),
        )
        tally.more(5, 2)
        tally.computing("http://127.0.0.1:1/status")
        tally.receive(Receipt("of one", 2, 1, 1, 100, 0.5))
        tally.more(3, 0)
        if error:
            raise error
    (status,) = statuses(store)
    ended = replace(status, state=state, error=said, dashboard=None, seconds_left=None)
    assert status == replace(ended, runs=8, done=4, diverged=1, failed=1)
    assert status.rounds_per_second > 0


@pytest.mark.parametrize(
    ("name", "workers", "there"),
    [
        ("tcp://127.0.0.1:8786", 3, True),
        ("tcp://127.8.9.1:8786", 3, True),
        ("tcp://localhost:8786", 3, True),
        ("tcp://[::1]:8786", 3, True),
        ("local", 2, True),
        ("local", 0, False),  # this process
    ],
)
def test_cluster__on_the_loopback_interface_may_be_named(name, workers, there):
    assert (cluster_named(name, workers, 0) is not None) == there


REACHED = r"not on the loopback interface: .* execute whatever is sent to their scheduler.*use tls://.*--insecure"
NONE = r"no cluster is called .*; give local, or a scheduler's address such as tls://HOST:8786"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        *(
            (f"tcp://{host}:8786", REACHED)
            for host in (
                "10.0.0.1",
                "0.0.0.0",
                "[::]",
                "[fe80::1]",
                "[2001:db8::1]",
                "example.org",
                "localhost.example.org",
                "127.1",
                "1",
            )
        ),
        *(
            (name, NONE)
            for name in (
                "",
                "Local",
                "loca",
                "127.0.0.1:8786",
                "tcp://127.0.0.1",
                "tcp://::1:8786",
                "tcp://127.0.0.1:8786\n",
            )
        ),
        ("tcp://127.0.0.1:99999", "a port is at most 65535"),
    ],
)
def test_cluster__that_others_can_reach_or_that_is_none_is_refused_with_the_reason(name, said):
    refusal(said, cluster_named, name, 3, 0)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "null",
        "\udcff".encode("utf-8", "surrogateescape").decode("latin-1"),
        "{}",
        '{"sweep": 5}',
        '{"sweep": "s", "process": "x"}',
        '{"sweep": "s", "runs": 1e400}',
        '{"sweep": "s", "state": "running", "host": "another", "updated": "yesterday"}',
        '{"sweep": "s", "state": "running", "host": "another", "updated": "2026-01-01T00:00:00"}',
    ],
)
def test_status__that_is_damaged__is_named(text, tmp_path, koco):
    store = open_store(tmp_path / "store")
    file = written(store / "status", text, "s.json")
    done = koco("list", "sweeps", "--store", store, status=2)
    assert f"{file} is damaged" in done.stderr
    assert "remove it" in done.stderr


def test_sweep__that_another_process_runs__is_refused_before_anything_starts(tmp_path, koco):
    store = open_store(tmp_path / "store")
    spec = written(
        tmp_path,
        'name = "s"\n[[dataset]]\nname = "ill-conditioned"\nn_rows = 100\n'
        '[[learner]]\nname = "OGD"\n',
        "s.toml",
    )
    other = replace(status_of("s", process=os.getppid()), started=start_of(os.getppid()))
    file = store / "status" / "s.json"
    text = json.dumps(asdict(other))
    file.write_text(text)
    done = koco("sweep", spec, "--store", store, status=2)
    assert f"the sweep s is running on {store} (process {os.getppid()} of" in done.stderr
    assert (file.read_text(), (store / "datasets").names()) == (text, [])
    # as if it had begun after the check: whoever says second that it runs is refused
    refusal("the sweep s is running", claim, store, Status("s"))
    assert file.read_text() == text
    file.write_text(json.dumps(asdict(replace(other, process=dead_process()))))
    koco("sweep", spec, "--store", store, status=0)


def test_workers__report_rounds_within_a_cohort(small_store, monkeypatch):
    """A cohort tells how many rounds of its runs are done, in order."""
    monkeypatch.setattr(reporting, "EVERY", 0.0)
    heard = []
    monkeypatch.setattr(reporting, "listeners", [heard.append])
    stream = stream_of(small_store, "real")
    cohort = Cohort(stream, tuple(Run.of(stream, name, {}, 0) for name in ("OGD", "AdaGrad")), 1.0)
    run_cohort(str(small_store), "test", cohort, 100)
    assert heard == [Report(cohort.cohort_id, 2 * rounds) for rounds in range(50, 501, 50)]


@given(
    step=st.floats(0.1, 50.0),  # seconds for a hundredth of the first cohort
    done=st.integers(2, 99),
    rounds=st.sampled_from([6000, 10_000]),
)
def test_time_left__is_that_of_the_planned_rounds_at_the_speed_of_the_last(step, done, rounds):
    """Rounds count of cohorts under way; all of a cohort has ended with it, also if its runs
    diverged.
    """
    now, told = [0.0], []
    tally = Tally("try", [(1, told.append), (2, lambda status: told.append("second"))])
    tally.live.get_time = lambda: now[0]
    tally.more(3, 0)
    tally.plan({"first": 20_000, "second": rounds})
    assert tally.task.time_remaining is None
    for share in range(1, done + 1):
        now[0] = share * step
        tally.hear(Report("first", 200 * share))
        tally.tell(1)
    assert tally.task.time_remaining == pytest.approx(
        (20_000 + rounds - 200 * done) / (200 / step), abs=1.0
    )
    assert told == [tally.status] * done  # by whom that is heard every second
    assert tally.status.seconds_left == tally.task.time_remaining
    assert tally.status.rounds_per_second > 0
    tally.receive(Receipt("first", 2, 2, 0, 10, 1.0))
    tally.tell(2)
    assert told[-1] == "second"
    assert tally.task.remaining == rounds
    for part in (rounds // 4, rounds - rounds // 4):  # it was split
        tally.receive(Receipt("of a part", 1, 0, 0, part, 1.0))
    tally.tell(1)
    assert tally.task.time_remaining == 0.0


@pytest.mark.parametrize(
    ("told", "said"),
    [
        ({}, ""),  # nothing is known yet
        (
            {"rounds_per_second": 1234.5, "seconds_left": 179.6},
            "  0 of 2 runs, 1,234 rounds/s, 180 s left\n",
        ),
        (
            {"done": 2, "rounds_per_second": 10.0, "diverged": 1, "failed": 1},
            "  2 of 2 runs, 10 rounds/s, 1 diverged, 1 failed\n",
        ),
    ],
)
def test_log__has_runs_speed_and_time_left_in_a_line(told, said, capsys):
    say_progress(Status("try", runs=2, **told))
    assert capsys.readouterr().err == said
