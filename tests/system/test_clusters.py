"""Clusters of several machines: hosts of their own joined by a network, workers that come and go,
and what listens where.
"""

import os
import random
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import time
from pathlib import Path

import pytest
from distributed import Client

from cluster.certificates import make_certificates
from cluster.commands import start_commands
from cluster.executors import run_on_dask
from koco_stream.engine.result_file import result_files_folder
from koco_stream.runs.planner import Limits, plan
from koco_stream.runs.run import Cohort, Run
from koco_stream.streams.manifest import load_manifest
from koco_stream.streams.stream import Stream
from storage.results import read_runs
from tests.helpers.dask_processes import processes
from tests.helpers.hosts import hosts, why_not
from tests.helpers.listening import family, listeners, loopback
from tests.helpers.project import ROOT, command, environment
from tests.helpers.sweeps import checked, compiled, run_here, tables, wide_store

SWEEP = """
name = "try"
[[dataset]]
name = "real"
order = "shuffled"
[[learner]]
name = "ONS"
alpha = [{alphas}]
[[learner]]
name = "OGD"
step_size = [0.1, 1, 10]
"""
STRANGER = ROOT / "tests" / "helpers" / "stranger.py"


def finished(store):
    return len(result_files_folder(store).names())


def wait_until(there, seconds, what):
    begun = time.monotonic()
    while not there():
        assert time.monotonic() - begun < seconds, what
        time.sleep(0.02)


def refused_without_certificate(address, port):
    """Whether a TLS listener ends the connection of whoever shows no certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    try:
        with (
            socket.create_connection((address, port), timeout=5) as plain,
            context.wrap_socket(plain) as wrapped,
        ):
            return wrapped.recv(1) == b""
    except ssl.SSLError as error:
        return "CERTIFICATE_REQUIRED" in str(error) or "HANDSHAKE_FAILURE" in str(error)


def on_three_hosts(tmp_path, rows, alphas, timeout, cut_seconds):
    """A sweep over TLS on a scheduler and two workers, each a host of its own: strangers are
    refused while it runs, one worker's link is cut for `cut_seconds`, then the other's for good.
    The tables are the local run's.
    """
    store, folder = wide_store(tmp_path, rows), tmp_path / "certificates"
    spec = tmp_path / "try.toml"
    spec.write_text(SWEEP.format(alphas=", ".join(str(k / 8) for k in range(1, alphas + 1))))
    reference = shutil.copytree(store, tmp_path / "reference")
    planned = checked(spec, reference)
    run_here(reference, plan(planned.runs, planned.sizes, Limits(2, 4 << 30)).cohorts)
    expected = tables(reference)
    short = {"DASK_DISTRIBUTED__COMM__TIMEOUTS__TCP": f"{timeout}s"}
    with hosts("s", "w1", "w2") as network, processes(tmp_path / "processes") as started:
        addresses = {name: network.address(name) for name in ("s", "w1", "w2")}
        named = [word for address in addresses.values() for word in ("--host", address)]
        printed = subprocess.run(
            command("cluster", "certificates", folder, *named),
            env=environment(),
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        commands = start_commands(folder, addresses["s"])
        assert all(command in printed for command in commands.values())
        pids = {
            "s": (
                started.start_line(
                    "scheduler", commands["scheduler"], network.inside("s"), **short
                ).pid
            )
        }
        started.wait_for("scheduler", "Scheduler at:")
        for name in ("w1", "w2"):
            line = (
                commands["worker"]
                .replace("WORKERS", "1")
                .replace("MEMORY", "1GB")
                .replace("ITS_ADDRESS", addresses[name])
            )
            pids[name] = started.start_line(name, line, network.inside(name), **short).pid
        for name in ("w1", "w2"):
            started.wait_for(name, "Registered to:")
        tls = []
        for name, address in addresses.items():
            found = listeners(family(pids[name]), network.inside(name))
            assert {a for a, _ in found if not loopback(a)} == {address}, found
            tls += [(a, port) for a, port in found if not loopback(a)]
        assert len(tls) == 5  # the scheduler, two workers and their nannies
        assert all(refused_without_certificate(*where) for where in tls)
        options = ["sweep", spec, "--store", store, "--cluster", f"tls://{addresses['s']}:8786"]
        options += ["--certificates", folder]
        sweep = subprocess.Popen(
            command(*options),
            env=environment(**short),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            wait_until(
                lambda: finished(store) > 2 or sweep.poll() is not None, 120, "the sweep begins"
            )
            make_certificates(tmp_path / "others", list(addresses.values()))
            strangers = []
            for where in ("s", "w1"):
                port = 8786 if where == "s" else next(p for a, p in tls if a == addresses["w1"])
                for scheme, more in (("tcp", []), ("tls", [str(tmp_path / "others")])):
                    wanted = tmp_path / f"written-{where}-{scheme}"
                    words = [
                        sys.executable,
                        str(STRANGER),
                        f"{scheme}://{addresses[where]}:{port}",
                        str(wanted),
                        *more,
                    ]
                    strangers.append(
                        (
                            wanted,
                            subprocess.Popen(
                                words, env=environment(), stdout=subprocess.PIPE, text=True
                            ),
                        )
                    )
            before = finished(store)
            network.cut("w1")
            time.sleep(cut_seconds)
            network.mend("w1")
            wait_until(
                lambda: finished(store) > before + 4 or sweep.poll() is not None,
                60 + timeout,
                "it goes on",
            )
            assert read_runs(store).num_rows < 0.9 * len(planned.runs), (
                "the sweep was almost over before the second link was cut"
            )
            network.cut("w2")
            out, err = sweep.communicate(timeout=600)
        finally:
            sweep.kill()
            sweep.communicate()
        for wanted, process in strangers:
            assert process.wait(60) == 0, process.stdout.read()
            process.stdout.close()
            assert not wanted.exists()
        logs = [started.log(name) for name in started.running]
    assert sweep.returncode == 0, err
    assert tables(store) == expected
    nothing_secret(folder, [out, err, *logs], store)


def nothing_secret(folder, texts, store):
    """No line of a key is in these texts, or in any file of the store or Prefect's home."""
    secrets = [
        line
        for key in folder.glob("*-key.pem")
        for line in key.read_text().splitlines()
        if not line.startswith("-----")
    ]
    assert len(secrets) >= 9
    home = os.path.join(os.environ["KOCO_CACHE"], "prefect")
    files = [path for top in (store, home) for path in Path(top).rglob("*") if path.is_file()]
    contents = [text.encode() for text in texts] + [path.read_bytes() for path in files]
    assert len(contents) > 6
    assert not any(secret.encode() in content for secret in secrets for content in contents)


@pytest.mark.skipif(why_not() is not None, reason=str(why_not()))
def test_three_hosts_over_tls(tmp_path):
    on_three_hosts(tmp_path, rows=40_000, alphas=300, timeout=12, cut_seconds=5)


@pytest.mark.soak
@pytest.mark.skipif(why_not() is not None, reason=str(why_not()))
def test_three_hosts_over_tls__a_link_cut_for_30_s(tmp_path):
    on_three_hosts(tmp_path, rows=100_000, alphas=2000, timeout=60, cut_seconds=30)


@pytest.mark.skipif(shutil.which("ss") is None, reason="needs the command ss (Debian: iproute2)")
def test_local_sweep__listens_on_loopback_only(small_store, tmp_path):
    spec = tmp_path / "try.toml"
    spec.write_text(
        'name = "try"\n[[dataset]]\nname = "real"\n[[learner]]\nname = "ONS"\nalpha = [1, 2, 3]\n'
    )
    words = command("sweep", spec, "--store", small_store, "--workers", 2)
    sweep = subprocess.Popen(
        words, env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    seen = set()
    while sweep.poll() is None:
        seen |= listeners(family(sweep.pid))
        time.sleep(0.05)
    err = sweep.communicate()[1]
    assert sweep.returncode == 0, err
    assert len(seen) >= 4  # the scheduler and its page, two workers
    assert {address for address, _ in seen if not loopback(address)} == set()


def trial(tmp_path, store, expected, cohorts, seed):
    """Workers join, are told to leave and are killed, at moments by progress that the seed draws;
    the tables stay the same.
    """
    draw = random.Random(seed)
    here = shutil.copytree(store, tmp_path / f"store{seed}")
    moments = sorted(draw.sample(range(1, len(cohorts) - 2), 6))
    told = []
    with processes(tmp_path / f"processes{seed}") as started:
        address = started.scheduler()
        names = [f"w{k}" for k in range(60)]
        alive = [names.pop(0), names.pop(0)]
        for name in alive:
            started.worker(name, address)

        def act():
            what = draw.choice(["join", "leave", "kill"])
            if what != "join":
                name = alive.pop(draw.randrange(len(alive)))
                if what == "kill":
                    started.kill(name)
                else:
                    os.kill(started.running[name].pid, signal.SIGTERM)
            if what == "join" or len(alive) < 2:
                alive.append(names.pop(0))
                started.worker(alive[-1], address)
            told.append(what)

        def on_receipt(receipt):
            done.append(receipt)
            while moments and len(done) >= moments[0]:
                moments.pop(0)
                act()

        done = []
        with Client(address, set_as_default=False) as client:
            client.wait_for_workers(1, timeout=60)
            run_on_dask(client, str(here), "try", cohorts, on_receipt, 200)
        assert sum(receipt.runs for receipt in done) == len(expected[0])
        assert tables(here) == expected
    shutil.rmtree(here)
    return told


@pytest.fixture(scope="module")
def many_cohorts(tmp_path_factory):
    """A store, cohorts on it, and their tables by the serial executor."""
    tmp_path = tmp_path_factory.mktemp("many")
    store = wide_store(tmp_path, 6000)
    stream = Stream("real", load_manifest(store, "real").dataset_hash, "shuffled", 1)
    runs = [
        [
            *(Run.of(stream, "ONS", {"alpha": (1 + k + 24 * j) / 8}, None) for j in range(6)),
            Run.of(stream, "OGD", {"step_size": 0.1 + k}, None),
        ]
        for k in range(24)
    ]
    cohorts = [Cohort(stream, tuple(few), 1.0, (0, 1700)[k % 2]) for k, few in enumerate(runs)]
    reference = shutil.copytree(store, tmp_path / "reference")
    compiled([run for few in runs for run in few], [load_manifest(store, "real")])
    run_here(reference, cohorts)
    return store, tables(reference), cohorts


@pytest.mark.parametrize(
    "seed", [pytest.param(seed, marks=() if seed < 3 else pytest.mark.soak) for seed in range(20)]
)
def test_workers_come_and_go(seed, many_cohorts, tmp_path):
    store, expected, cohorts = many_cohorts
    assert len(trial(tmp_path, store, expected, cohorts, seed)) == 6
