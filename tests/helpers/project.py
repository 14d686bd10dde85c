"""Where this project is, and what processes need that run its code."""

import os
import socket
import sys
from contextlib import ExitStack
from pathlib import Path

ROOT = Path(__file__).parents[2]
SWEEPS = ROOT / "flows" / "sweeps"


def environment(**more: str) -> dict[str, str]:
    """This process's environment, for a process that imports from this project's folder."""
    return {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", **more}


def command(*words: object) -> list[str]:
    """The command line `koco WORDS` of this project."""
    return [sys.executable, "-m", "flows.cli", *map(str, words)]


def free_ports(n: int) -> list[int]:
    """Ports of the loopback interface that nobody listens on, all different."""
    with ExitStack() as stack:
        return [
            stack.enter_context(socket.create_server(("127.0.0.1", 0))).getsockname()[1]
            for _ in range(n)
        ]


def free_port() -> int:
    """A port of the loopback interface that nobody listens on."""
    return free_ports(1)[0]
