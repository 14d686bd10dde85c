"""Clusters of several machines: hosts of their own joined by a network, and what listens where."""

import os
import re
import shutil
import socket
import ssl
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest
from click.testing import CliRunner

from cluster.certificates import make_certificates, start_commands
from flows.cli import koco
from koco_stream.engine.result_file import result_files_folder
from koco_stream.runs.planner import Limits, plan
from storage.results import read_runs
from tests.helpers.dask_processes import processes
from tests.helpers.listening import family, listeners, loopback
from tests.helpers.project import begun, wait_until
from tests.helpers.sweeps import checked, run_here, tables, wide_store, written

# of the range that is set apart for tests of networks
NETWORKS = [f"198.18.{number}" for number in range(256)]


def why_not() -> str | None:
    """Why this machine cannot have such hosts; None if it can."""
    if os.geteuid() != 0:
        return "needs root, to make network namespaces"
    if not shutil.which("ip") or not shutil.which("ss"):
        return "needs iproute2: make test-packages"
    tried = subprocess.run(["unshare", "--net", "true"], capture_output=True, text=True)
    return (
        None if tried.returncode == 0 else f"cannot make network namespaces: {tried.stderr.strip()}"
    )


class Hosts:
    """Hosts by name. This process is on the bridge and reaches them all."""

    def __init__(self, names: list[str]) -> None:
        self.bridge, self.network = f"k{os.getpid()}br", free_network()
        self.spaces = {name: f"k{os.getpid()}-{name}" for name in names}
        self.links = {name: f"k{os.getpid()}v{number}" for number, name in enumerate(names, 1)}

    def address(self, name: str) -> str:
        """The host's address."""
        return f"{self.network}.{list(self.links).index(name) + 1}"

    def inside(self, name: str) -> list[str]:
        """Words before a command that runs on the host."""
        return ["ip", "netns", "exec", self.spaces[name]]

    def link(self, name: str, state: str) -> None:
        """Take the host's link away (down), or give it back (up)."""
        _ip(f"link set {self.links[name]} {state}")

    def make(self) -> None:
        """Make the bridge and all hosts."""
        lines = [
            f"link add {self.bridge} type bridge",
            f"address add {self.network}.254/24 dev {self.bridge}",
            f"link set {self.bridge} up",
        ]
        for name in self.links:
            space, link = self.spaces[name], self.links[name]
            lines += [
                f"netns add {space}",
                f"link add {link} type veth peer name eth0 netns {space}",
                f"link set {link} master {self.bridge} up",
                f"-n {space} address add {self.address(name)}/24 dev eth0",
                f"-n {space} link set eth0 up",
                f"-n {space} link set lo up",
            ]
        for line in lines:
            _ip(line)

    def remove(self) -> None:
        """Remove what was made, as far as it was."""
        for name in self.links:
            _ip(f"netns delete {self.spaces[name]}", check=False)
            _ip(f"link delete {self.links[name]}", check=False)
        _ip(f"link delete {self.bridge}", check=False)


def free_network() -> str:
    """The first three numbers of addresses that no interface of this machine has: another run of
    the tests may have its own hosts. Each process begins with another number, so that two that
    search at once hardly ever find the same.
    """
    used, first = _ip("-o -4 address show"), os.getpid() % len(NETWORKS)
    return next(
        network for network in NETWORKS[first:] + NETWORKS[:first] if f" {network}." not in used
    )


@contextmanager
def hosts(*names: str) -> Iterator[Hosts]:
    """Hosts of these names, removed at the end."""
    network = Hosts(list(names))
    try:
        network.make()
        yield network
    finally:
        network.remove()


def _ip(line: str, check: bool = True) -> str:
    done = subprocess.run(["ip", *line.split()], capture_output=True, text=True)
    if check and done.returncode:
        raise RuntimeError(f"ip {line}: {done.stderr.strip()}")
    return done.stdout


SWEEP = """
name = "try"
[[dataset]]
name = "real"
order = "shuffled"
[[learner]]
name = "ONS"
alpha = {alphas}
[[learner]]
name = "OGD"
step_size = [0.1, 1, 10]
"""
NAMES = ("s", "w1", "w2")
THREE_RUNS = """
name = "try"
[[dataset]]
name = "real"
[[learner]]
name = "ONS"
alpha = [1, 2, 3]
"""


def refused(address, port, certificates=None):
    """Whether a TLS listener ends the connection of who shows no certificate, or the client's."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    if certificates:
        context.load_cert_chain(certificates / "client.pem", certificates / "client-key.pem")
    try:
        with (
            socket.create_connection((address, port), timeout=5) as plain,
            context.wrap_socket(plain) as wrapped,
        ):
            return wrapped.recv(1) == b""
    except ssl.SSLError as error:
        return bool(re.search("CERTIFICATE_REQUIRED|HANDSHAKE_FAILURE|UNKNOWN_CA", str(error)))


def cluster_on(network, started, commands, short):
    """A scheduler and two workers started by these commands, each a host of its own. The addresses
    on which they listen for others, with their ports.
    """
    worker = commands["worker"].replace("WORKERS", "1").replace("MEMORY", "1GB")
    found = set()
    for name in NAMES:
        line, said = worker.replace("ITS_ADDRESS", network.address(name)), "Registered to:"
        if name == "s":
            line, said = commands["scheduler"], "Scheduler at:"
        process = started.start_line(name, line, network.inside(name), **short)
        started.wait_for(name, said)
        here = listeners(family(process.pid), network.inside(name))
        found |= {(where, port) for where, port in here if not loopback(where)}
    assert {address for address, _ in found} == set(map(network.address, NAMES))
    assert len(found) == 5  # the scheduler, two workers and their nannies
    return found


def nothing_secret(folder, texts, store):
    """No line of a key is in these texts, or in any file of the store or Prefect's home."""
    keys = [line for key in folder.glob("*-key.pem") for line in key.read_text().splitlines()]
    secrets = [line.encode() for line in keys if not line.startswith("-----")]
    assert len(secrets) >= 9
    contents = [text.encode() for text in texts]
    for top in (store, Path(os.environ["KOCO_CACHE"], "prefect")):
        contents += [path.read_bytes() for path in top.rglob("*") if path.is_file()]
    assert len(contents) > 6
    assert not any(secret in content for secret in secrets for content in contents)


@pytest.mark.skipif(why_not() is not None, reason=str(why_not()))
@pytest.mark.parametrize(
    ("rows", "alphas", "timeout", "cut_seconds"),
    [
        pytest.param(100_000, 300, 12, 5, id="cut for 5 s"),
        pytest.param(100_000, 2000, 60, 30, id="cut for 30 s", marks=pytest.mark.soak),
    ],
)
def test_three_hosts_over_tls(rows, alphas, timeout, cut_seconds, tmp_path):
    """A sweep over TLS on a scheduler and two workers, each a host of its own, which refuse
    strangers: one worker's link is cut for `cut_seconds`, then the other's for good. The tables are
    the local run's.
    """
    store, folder = wide_store(tmp_path, rows), tmp_path / "certificates"
    spec = written(tmp_path, SWEEP.format(alphas=[k / 8 for k in range(1, alphas + 1)]))
    reference = shutil.copytree(store, tmp_path / "reference")
    sweep = checked(spec, reference)
    run_here(reference, plan(sweep.runs, sweep.sizes, Limits(2, 4 << 30)).cohorts)
    short = {"DASK_DISTRIBUTED__COMM__TIMEOUTS__TCP": f"{timeout}s"}
    with hosts(*NAMES) as network, processes(tmp_path / "processes") as started:
        addresses = [network.address(name) for name in NAMES]
        named = [word for address in addresses for word in ("--host", address)]
        made = CliRunner().invoke(koco, ["cluster", "certificates", str(folder), *named])
        commands = start_commands(folder, addresses[0])
        assert [line for line in commands.values() if line not in made.stdout] == []
        make_certificates(tmp_path / "others", addresses)
        for where in cluster_on(network, started, commands, short):
            assert refused(*where), where
            assert refused(*where, tmp_path / "others"), where
        where = ["--cluster", f"tls://{addresses[0]}:8786", "--certificates", folder]
        with begun("sweep", spec, "--store", store, *where, **short) as process:

            def has_more_than(count):
                return len(result_files_folder(store).names()) > count or process.poll() is not None

            wait_until(partial(has_more_than, 2), "it does not begin", 120)
            before = len(result_files_folder(store).names())
            network.link("w1", "down")
            time.sleep(cut_seconds)
            network.link("w1", "up")
            wait_until(partial(has_more_than, before + 4), "it does not go on", 60 + timeout)
            runs = read_runs(store).num_rows
            assert runs < 0.9 * len(sweep.runs), "it was almost over before the second link was cut"
            network.link("w2", "down")
            out, err = process.communicate(timeout=600)
        logs = [started.log(name) for name in NAMES]
    assert process.returncode == 0, err
    assert tables(store) == tables(reference)
    nothing_secret(folder, [out, err, *logs], store)


@pytest.mark.skipif(shutil.which("ss") is None, reason="needs the command ss (Debian: iproute2)")
def test_local_sweep__listens_on_loopback_only(small_store, tmp_path):
    spec = written(tmp_path, THREE_RUNS)
    seen = set()
    with begun("sweep", spec, "--store", small_store, "--workers", 2) as sweep:
        while sweep.poll() is None:
            seen |= listeners(family(sweep.pid))
            time.sleep(0.05)
        _, err = sweep.communicate()
    assert sweep.returncode == 0, err
    assert len(seen) >= 4  # the scheduler and its page, two workers
    assert [address for address, _ in seen if not loopback(address)] == []
