"""Prefect's server is killed, or stands still, while a sweep runs: the sweep ends as if nothing had
happened, and says one line. The trials beyond the first ones are for `make soak`.
"""

import json
import os
import random
import signal
import time
from contextlib import ExitStack, suppress

import psutil
import pytest

from tests.helpers.disturbed import MARK, DisturbedSweep, prefect_server
from tests.helpers.listening import with_variable
from tests.helpers.project import PATIENCE, wait_until
from tests.helpers.sweeps import tables
from tests.helpers.swept import koco

ORDINARY = {("killed", 0), ("stopped", 1)}
TRIALS = [
    pytest.param(
        how, seed, id=f"{how}-{seed}", marks=[] if (how, seed) in ORDINARY else [pytest.mark.soak]
    )
    for how in ("killed", "stopped")
    for seed in range(10)
]
BLOWS = {"killed": signal.SIGKILL, "stopped": signal.SIGSTOP}
SWEEP = """
name = "s"
[[dataset]]
name = "dense-stream"
n_rows = 100_000
n_features = 100
order = "shuffled"
order_seeds = 2
[[learner]]
name = "OjaSON"
sketch_size = [10, 20]
alpha = [0.5, 1, 2, 4]
"""


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """The tables of the sweep, and its seconds when it is recorded by a server that answers."""
    folder = tmp_path_factory.mktemp("undisturbed")
    (folder / "s.toml").write_text(SWEEP)
    home = {"PREFECT_HOME": str(folder / "prefect")}
    seconds = []
    for _ in range(2):  # the first one compiles
        begun = time.monotonic()
        store = folder / f"store-{len(seconds)}"
        koco("sweep", folder / "s.toml", "--store", store, "--workers", "1", cwd=folder, **home)
        seconds.append(time.monotonic() - begun)
    return tables(store), seconds[-1]


def servers_of(home):
    """The processes of Prefect's server with this home."""
    every = [one.info for one in psutil.process_iter(["pid", "environ", "cmdline"])]
    mine = [one for one in every if (one["environ"] or {}).get("PREFECT_HOME") == home]
    words = {"prefect", "uvicorn"}  # one of them is in the server's command line
    return [one["pid"] for one in mine if words & {*(one["cmdline"] or ())}]


@pytest.mark.parametrize(("how", "seed"), TRIALS)
def test_server_gone__the_sweep_ends_as_if_nothing_had_happened(how, seed, undisturbed, tmp_path):
    draw = random.Random(f"{how} {seed}")
    configured, moment = bool(seed % 2), draw.random()
    expected, usual = undisturbed
    (tmp_path / "s.toml").write_text(SWEEP)
    home, store = str(tmp_path / "prefect"), tmp_path / "store"
    with ExitStack() as stack:
        more = {"PREFECT_HOME": home, "PREFECT_API_URL": ""}
        if configured:
            more["PREFECT_API_URL"] = stack.enter_context(prefect_server(tmp_path))
        begun = time.monotonic()
        words = [tmp_path / "s.toml", "--store", store, "--workers", "1", "--prefect"]
        sweep = DisturbedSweep(tmp_path, words, store, more)
        wait_until(
            lambda: sweep.process.poll() is not None or servers_of(home), "Prefect does not start"
        )
        until = begun + moment * usual
        while time.monotonic() < until and sweep.process.poll() is None:
            pass
        struck = servers_of(home)
        for pid in struck:
            with suppress(ProcessLookupError):
                os.kill(pid, BLOWS[how])
        stack.callback(lambda: [_end(pid) for pid in struck])
        status, took = sweep.process.wait(PATIENCE), time.monotonic() - begun
        print(
            f"{how} at {moment:.2f}, {'configured' if configured else 'own'} server,"
            f" {len(struck)} processes struck: status {status}, {took:.1f} s for {usual:.1f} s"
        )
        # beside the page of the flow run, which is named while the server still answers
        said = [line for line in sweep.said().splitlines() if line.startswith("Prefect")]
        assert status == 0, sweep.said()
        assert "Traceback" not in sweep.said()
        assert len(said) <= 1, said
        assert json.loads(sweep.out.read_text())["report"]
        assert tables(store) == expected
        wait_until(lambda: not with_variable(MARK, sweep.mark), "a process of the sweep is left")


def _end(pid):
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
