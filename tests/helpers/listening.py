"""Which processes belong to one another, and what each listens on (`ss`)."""

import re
import subprocess
from collections.abc import Sequence

import psutil


def family(pid: int) -> set[int]:
    """The process and all that it has started, directly or not."""
    try:
        return {pid, *(child.pid for child in psutil.Process(pid).children(recursive=True))}
    except psutil.NoSuchProcess:
        return set()


def with_variable(name: str, value: str) -> set[int]:
    """The processes with this variable in their environment, however they are related."""
    # of another user's processes the environment is not shown
    every = psutil.process_iter(["pid", "environ"])
    return {one.pid for one in every if (one.info["environ"] or {}).get(name) == value}


def listeners(pids: set[int], prefix: Sequence[str] = ()) -> set[tuple[str, int]]:
    """The addresses and ports on which these processes listen; `prefix` are words before the
    command.
    """
    printed = subprocess.run(
        [*prefix, "ss", "-Hltnp"], capture_output=True, text=True, check=True
    ).stdout
    found = set()
    for line in printed.splitlines():
        if {int(pid) for pid in re.findall(r"pid=(\d+)", line)} & pids:
            address, _, port = line.split()[3].rpartition(":")
            found.add((address.strip("[]").partition("%")[0], int(port)))
    return found


def loopback(address: str) -> bool:
    """Whether an address, as ss prints it, is of the loopback interface."""
    return address.startswith("127.") or address in ("::1", "::ffff:127.0.0.1")
