"""Sweeps in processes of their own, to which something happens at a chosen moment: who is killed,
which disk fills up, what is left; and a collection of result files that is cut.
"""

import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Self

import psutil

from storage.results import read_runs
from tests.helpers.dask_processes import Processes
from tests.helpers.listening import family, with_variable
from tests.helpers.project import ROOT, environment, free_ports, running, wait_until

KINDS = ("worker", "all workers", "scheduler", "driver", "disk")
ENDING = KINDS[2:]  # a sweep ends with these
# a scheduler of its own stays one, and else there is none to be killed
AGAIN = {"scheduler": ("scheduler", "driver")} | dict.fromkeys(
    ("driver", "disk"), ("worker", "all workers", "driver", "disk")
)
FILES = 24  # a sweep of these tests has more cohorts
LAST = {
    "computing": 0.5,
    "start-up": 3.0,
    "collecting": 0.03,
}  # seconds from the progress that is waited for, at most
WORKERS = 2
MARK = "KOCO_TEST_TRIAL"  # in the environment of a sweep's processes, however they are related


@dataclass(frozen=True)
class Blow:
    """What fails and when: in which phase, after how many result files, a fraction of `LAST` later;
    `choice` picks the worker.
    """

    kind: str
    phase: str
    files: int
    fraction: float
    choice: int

    @classmethod
    def drawn(cls, draw: random.Random, kind: str, files: int) -> Self:
        """A blow of this kind, before so many result files are there."""
        [phase] = draw.choices([*LAST], (0.7, 0.15, 0.15))
        return cls(kind, phase, draw.randrange(files), draw.random(), draw.randrange(WORKERS))


def drawn(seed: int) -> list[Blow]:
    """What happens in the trial of this seed: every fifth seed has the same kind; some trials that
    a blow ends get a second.
    """
    draw = random.Random(seed)
    kind = KINDS[seed % len(KINDS)]
    blows = [Blow.drawn(draw, kind, FILES)]
    if kind in ENDING and draw.random() < 0.42:
        blows.append(Blow.drawn(draw, draw.choice(AGAIN[kind]), 3))
    return blows


def finished(store: Path) -> dict[str, object]:
    """When each run of the store was finished."""
    return {row["run_id"]: row["finished_at"] for row in read_runs(store).to_pylist()}


@contextmanager
def prefect_server(folder: Path) -> Iterator[str]:
    """The address of a Prefect server, so that not every sweep needs its own."""
    [port] = free_ports(1)
    line = f"-m prefect server start --host 127.0.0.1 --port {port}"
    more = {
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "PREFECT_SERVER_SERVICES_SCHEDULER_ENABLED": "false",  # else it adds runs after a minute
        "DO_NOT_TRACK": "1",
        "PREFECT_HOME": str(folder / "prefect"),
    }
    with running(
        [sys.executable, *line.split()], folder / "prefect.log", partial(listens, port), **more
    ):
        yield f"http://127.0.0.1:{port}/api"


def listens(port: int) -> bool:
    """Whether somebody listens on this port."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


class OwnCluster(Processes):
    """A scheduler and workers in processes of their own, as a user would start them."""

    def begin(self) -> None:
        """Start them; `address` is the scheduler's."""
        self.address = self.scheduler()
        for number in range(WORKERS):
            self.worker(f"worker-{number}", self.address)


def is_own_disk(folder: Path, megabytes: int = 24) -> bool:
    """Make a file system of its own at `folder`; False if this user may not."""
    folder.mkdir(exist_ok=True)
    words = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", str(folder)]
    return subprocess.run(words, capture_output=True).returncode == 0


def fill(file: Path) -> None:
    """Take exactly what is left of a file system."""
    with file.open("wb", buffering=0) as filled, suppress(OSError):
        while True:
            filled.write(bytes(4096))


class DisturbedSweep:
    """One `koco sweep` in a session of its own, to which `blow` happens if it lasts long enough."""

    def __init__(
        self,
        folder: Path,
        words: Sequence[object],
        store: Path,
        more: dict[str, str],
        cluster: OwnCluster | None = None,
    ) -> None:
        self.store, self.files, self.curves = store, names(store, "parts"), names(store, "curves")
        self.mark = f"{folder.name}-{time.monotonic_ns()}"
        self.out, self.err = folder / f"{self.mark}.out", folder / f"{self.mark}.err"
        self.cluster = cluster
        short = [sys.executable, "-m", "tests.helpers.sweep_in_short_cohorts", "sweep", "--json"]
        with self.out.open("wb") as out, self.err.open("wb") as err:
            self.process = subprocess.Popen(
                [*short, *map(str, words)],
                env=environment(**{MARK: self.mark}, **more),
                cwd=ROOT,
                stdout=out,
                stderr=err,
                start_new_session=True,
            )

    def reaches(self, blow: Blow) -> bool:
        """Wait for the blow's moment; False if the sweep has ended before."""
        wait_until(
            lambda: self.process.poll() is not None or self._reached(blow),
            f"{blow} was not reached: {self.said()}",
        )
        until = time.monotonic() + LAST[blow.phase] * blow.fraction
        while time.monotonic() < until and self.process.poll() is None:
            pass
        return self.process.poll() is None

    def _reached(self, blow: Blow) -> bool:
        if "worker" in blow.kind and not self.workers():
            return False
        if blow.phase == "start-up":
            return True
        if blow.phase == "collecting":
            return bool(names(self.store, "curves") - self.curves)
        files = names(self.store, "parts") - self.files
        return len(files) >= blow.files and bool(files or "the workers compute" in self.said())

    def workers(self) -> list[int]:
        """The processes that run cohorts."""
        found = []
        own = self.cluster.running.values() if self.cluster else ()
        for pid in set().union(*(family(process.pid) for process in (self.process, *own))):
            with suppress(psutil.Error):
                if any("spawn_main" in word for word in psutil.Process(pid).cmdline()):
                    found.append(pid)
        return sorted(found)

    def strike(self, blow: Blow) -> None:
        """Let it happen."""
        if blow.kind == "disk":
            fill(self.store / "filled")
        elif blow.kind == "scheduler":
            assert self.cluster is not None
            self.cluster.running["scheduler"].kill()
        elif blow.kind == "driver":
            self.process.kill()
        else:
            workers = self.workers()
            if blow.kind == "worker":
                workers = [workers[blow.choice % len(workers)]]
            for worker in workers:
                with suppress(ProcessLookupError):
                    os.kill(worker, signal.SIGKILL)

    def said(self) -> str:
        """What it wrote to stderr."""
        return self.err.read_text()

    def summary(self) -> dict[str, object]:
        """What it printed at its end."""
        return json.loads(self.out.read_text())

    def wait_for_its_processes(self) -> None:
        """Until none is left; those of a killed sweep have to see it themselves."""
        wait_until(
            lambda: not with_variable(MARK, self.mark), "processes of the sweep are left", 30.0
        )


def names(store: Path, table: str) -> set[str]:
    """What is in one of the folders of results, unfinished files too for the tables."""
    return {
        path.name
        for path in (store / "results" / table).glob("*")
        if table != "parts" or not path.name.startswith(".")
    }
