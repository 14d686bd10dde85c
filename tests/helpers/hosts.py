"""Hosts of a network on this machine: network namespaces, each with its own address, joined by veth
pairs and a bridge. Needs root.
"""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

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
