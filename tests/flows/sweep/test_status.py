"""What sweeps say of themselves in the store, and which clusters a user may name."""

import json
import os
import socket
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from cluster.clusters import cluster_named
from flows.sweep.progress import COLUMNS, Status, SweepProgress, statuses, tell
from koco_stream import WrongInput
from koco_stream.engine.cohort import Receipt
from storage.store import open_store


def status_of(sweep, **more):
    now = datetime.now(UTC).isoformat(timespec="seconds")
    common = dict(
        runs=10,
        done=4,
        diverged=1,
        failed=0,
        rounds_per_second=1e6,
        seconds_left=3.0,
        dashboard="http://127.0.0.1:1/status",
    )
    return Status(
        sweep,
        **{
            "state": "running",
            **common,
            "host": socket.gethostname(),
            "process": os.getpid(),
            "begun": now,
            "updated": now,
            **more,
        },
    )


def dead_process():
    done = subprocess.Popen([sys.executable, "-c", ""])
    done.wait()
    return done.pid


def test_status__tells_running_from_killed(tmp_path, koco):
    store = open_store(tmp_path / "store")
    old = (datetime.now(UTC) - timedelta(hours=1)).isoformat(timespec="seconds")
    told = [
        status_of("alive"),
        status_of("dead", process=dead_process()),
        status_of("done", state="done", process=dead_process(), dashboard=None, seconds_left=None),
        status_of("elsewhere", host="another machine"),
        status_of("silent", host="another machine", updated=old),
        status_of("stopped", state="stopped", process=dead_process()),
    ]
    for status in told:
        tell(store, status)
    states = {status.sweep: status.state for status in statuses(store)}
    expected = ["running", "killed", "done", "running", "killed", "stopped"]
    assert states == dict(
        zip(("alive", "dead", "done", "elsewhere", "silent", "stopped"), expected, strict=True)
    )
    assert next(statuses(store)) == told[0]
    killed = replace(told[1], state="killed", dashboard=None, seconds_left=None)
    assert list(statuses(store))[1] == killed

    rows = json.loads(koco("status", "--store", store, "--json").stdout)
    assert [tuple(row) for row in rows] == [COLUMNS] * 6
    assert [row["state"] for row in rows] == expected
    lines = koco("status", "--store", store).stdout.splitlines()
    assert len(lines) == 7
    assert lines[0].split()[:4] == ["sweep", "state", "runs", "done"]
    assert lines[2].split()[:4] == ["dead", "killed", "10", "4"]
    missing = koco("status", "--store", tmp_path / "none")
    assert (missing.exit_code, "there is no store" in missing.stderr) == (2, True)


@pytest.mark.parametrize(
    ("error", "state", "said"),
    [
        (None, "done", None),
        (KeyboardInterrupt(), "stopped", None),
        (OSError("the disk is full"), "ended by an error", "the disk is full"),
    ],
)
def test_progress__leaves_in_the_store_how_the_sweep_ended(error, state, said, tmp_path):
    store = open_store(tmp_path / "store")
    try:
        with SweepProgress(store, "try") as progress:
            (status,) = statuses(store)
            assert (status.state, status.process, status.host) == (
                "running",
                os.getpid(),
                socket.gethostname(),
            )
            progress.more(5, 2)
            progress.computing("http://127.0.0.1:1/status")
            progress.receive(Receipt("of one", 2, 1, 1, 100, 0.5, 0.6))
            progress.more(3, 0)
            if error:
                raise error
    except (KeyboardInterrupt, OSError):
        pass
    (status,) = statuses(store)
    assert (status.state, status.error, status.dashboard, status.seconds_left) == (
        state,
        said,
        None,
        None,
    )
    assert (status.runs, status.done, status.diverged, status.failed) == (8, 4, 1, 1)
    assert status.rounds_per_second > 0


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.9.1", "localhost", "[::1]"])
def test_cluster__on_the_loopback_interface_may_be_named(host):
    assert cluster_named(f"tcp://{host}:8786", 3, 0) is not None


OTHERS = ("10.0.0.1", "0.0.0.0", "[::]", "[fe80::1]", "[2001:db8::1]", "example.org")
OTHERS += ("localhost.example.org", "127.1", "1")
REACHED = r"not on the loopback interface: .* is executed by its workers.*use tls://.*--insecure"
UNKNOWN = ("", "Local", "loca", "127.0.0.1:8786", "tcp://127.0.0.1", "tcp://::1:8786")
UNKNOWN += ("tcp://127.0.0.1:8786\n",)
NONE = r"no cluster is called .*; give local, or a scheduler's address such as tls://HOST:8786"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        *((f"tcp://{host}:8786", REACHED) for host in OTHERS),
        *((name, NONE) for name in UNKNOWN),
        ("tcp://127.0.0.1:99999", "a port is at most 65535"),
    ],
)
def test_cluster__that_others_can_reach_or_that_is_none_is_refused_with_the_reason(name, said):
    with pytest.raises(WrongInput, match=said):
        cluster_named(name, 3, 0)


def test_cluster__local_is_this_process_where_there_are_no_workers():
    assert cluster_named("local", 0, 0) is None
    assert cluster_named("local", 2, 0) is not None


def test_command_line__refuses_a_cluster_before_anything_starts(small_store, tmp_path, koco):
    (tmp_path / "try.toml").write_text(
        'name = "try"\n[[dataset]]\nname = "real"\n[[learner]]\nname = "OGD"\n'
    )
    done = koco(
        "sweep", tmp_path / "try.toml", "--store", small_store, "--cluster", "tcp://10.0.0.1:8786"
    )
    assert done.exit_code == 2
    assert "not on the loopback interface" in done.stderr
    assert list(statuses(small_store)) == []
