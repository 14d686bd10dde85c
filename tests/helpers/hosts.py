"""Hosts of a network on this machine: network namespaces, each with its own address, joined by veth
pairs and a bridge. Needs root.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

NETWORKS = [
    f"198.18.{number}" for number in range(256)
]  # the range that is set apart for tests of networks


def why_not() -> str | None:
    """Why this machine cannot have such hosts; None if it can."""
    if os.geteuid() != 0:
        return "needs root, to make network namespaces"
    if not shutil.which("ip") or not shutil.which("ss"):
        return "needs the commands ip and ss (Debian: iproute2)"
    tried = subprocess.run(["unshare", "--net", "true"], capture_output=True, text=True)
    return (
        None if tried.returncode == 0 else f"cannot make network namespaces: {tried.stderr.strip()}"
    )


class Hosts:
    """Hosts by name. This process is on the bridge, at `here`, and reaches them all."""

    def __init__(self, names: list[str]) -> None:
        self.tag = f"k{os.getpid()}"
        self.numbers = {name: number for number, name in enumerate(names, 1)}
        self.network = free_network()
        self.here = f"{self.network}.254"

    def address(self, name: str) -> str:
        """The host's address."""
        return f"{self.network}.{self.numbers[name]}"

    def inside(self, name: str) -> list[str]:
        """Words before a command that runs on the host."""
        return ["ip", "netns", "exec", self._space(name)]

    def cut(self, name: str) -> None:
        """Take the host's link away."""
        _ip("link", "set", self._link(name), "down")

    def mend(self, name: str) -> None:
        """Give the host's link back."""
        _ip("link", "set", self._link(name), "up")

    def make(self) -> None:
        """Make the bridge and all hosts."""
        _ip("link", "add", f"{self.tag}br", "type", "bridge")
        _ip("address", "add", f"{self.here}/24", "dev", f"{self.tag}br")
        _ip("link", "set", f"{self.tag}br", "up")
        for name in self.numbers:
            space = self._space(name)
            _ip("netns", "add", space)
            _ip(
                "link",
                "add",
                self._link(name),
                "type",
                "veth",
                "peer",
                "name",
                "eth0",
                "netns",
                space,
            )
            _ip("link", "set", self._link(name), "master", f"{self.tag}br", "up")
            _ip("-n", space, "address", "add", f"{self.address(name)}/24", "dev", "eth0")
            _ip("-n", space, "link", "set", "eth0", "up")
            _ip("-n", space, "link", "set", "lo", "up")

    def remove(self) -> None:
        """Remove what was made, as far as it was."""
        for name in self.numbers:
            _ip("netns", "delete", self._space(name), check=False)
            _ip("link", "delete", self._link(name), check=False)
        _ip("link", "delete", f"{self.tag}br", check=False)

    def _space(self, name: str) -> str:
        return f"{self.tag}-{name}"

    def _link(self, name: str) -> str:
        return f"{self.tag}v{self.numbers[name]}"


def free_network() -> str:
    """The first three numbers of addresses that no interface of this machine has: another run of
    the tests may have its own hosts. Each process looks from another place on, so that two that
    look at once hardly ever find the same.
    """
    used = _ip("-o", "-4", "address", "show")
    first = os.getpid() % len(NETWORKS)
    return next(
        network for network in NETWORKS[first:] + NETWORKS[:first] if f" {network}." not in used
    )


def remove_left() -> None:
    """Remove what killed runs of the tests have left: bridges, links and namespaces that bear the
    number of a process that is gone.
    """
    for kind in ("netns", "link"):
        for line in _ip("-o", kind, "show").splitlines():
            found = re.match(r"(?:\d+: )?(k(\d+)(?:br|v\d+|-\w+))\b", line)
            if found and not os.path.exists(f"/proc/{found[2]}"):
                _ip(kind, "delete", found[1], check=False)


@contextmanager
def hosts(*names: str) -> Iterator[Hosts]:
    """Hosts of these names, removed at the end."""
    remove_left()
    network = Hosts(list(names))
    try:
        network.make()
        yield network
    finally:
        network.remove()


def _ip(*words: str, check: bool = True) -> str:
    done = subprocess.run(["ip", *words], capture_output=True, text=True)
    if check and done.returncode:
        raise RuntimeError(f"ip {' '.join(words)}: {done.stderr.strip()}")
    return done.stdout
