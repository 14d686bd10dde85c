"""Sweeps in processes of their own, to which something happens at a chosen moment: who is killed,
which disk fills up, what is left; and a collection of parts that is cut.
"""

import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import psutil
import pytest

from storage import collecting
from storage.collecting import collect
from storage.results import read_runs
from tests.helpers.dask_processes import Processes
from tests.helpers.project import ROOT, environment, free_port

KINDS = ("worker", "all workers", "scheduler", "driver", "disk")
ENDING = KINDS[2:]  # a sweep ends with these
PHASES = ("computing", "start-up", "collecting")
PARTS = 24  # a sweep of these tests has more cohorts
LAST = {
    "computing": 0.5,
    "start-up": 3.0,
    "collecting": 0.03,
}  # seconds from the progress that is waited for, at most
WORKERS = 2
PATIENCE = 600.0  # seconds, on a machine that does other things too
MARK = "KOCO_TEST_TRIAL"  # in the environment of a sweep's processes, however they are related


@dataclass(frozen=True)
class Blow:
    """What fails and when: in which phase, after how many parts, a fraction of `LAST` later;
    `choice` picks the worker.
    """

    kind: str
    phase: str
    parts: int
    fraction: float
    choice: int


def drawn(seed: int) -> list[Blow]:
    """What happens in the trial of this seed: every fifth seed has the same kind; some trials that
    a blow ends get a second.
    """
    draw = random.Random(seed)
    kind = KINDS[seed % len(KINDS)]
    blows = [blow(draw, kind, PARTS)]
    if kind in ENDING and draw.random() < 0.42:
        # a scheduler of its own stays one, and else there is none to be killed
        again = draw.choice(
            ("scheduler", "driver")
            if kind == "scheduler"
            else ("worker", "all workers", "driver", "disk")
        )
        blows.append(blow(draw, again, 3))
    return blows


def blow(draw: random.Random, kind: str, parts: int) -> Blow:
    """A blow of this kind, before so many parts are there."""
    return Blow(
        kind,
        draw.choices(PHASES, (0.7, 0.15, 0.15))[0],
        draw.randrange(parts),
        draw.random(),
        draw.randrange(WORKERS),
    )


def finished(store: Path) -> dict[str, object]:
    """When each run of the store was finished."""
    runs = read_runs(store)
    return dict(
        zip(runs.column("run_id").to_pylist(), runs.column("finished_at").to_pylist(), strict=True)
    )


def wait_until(so: Callable[[], object], what: str, patience: float = PATIENCE) -> None:
    """Look again and again. Fails if it takes too long."""
    until = time.monotonic() + patience
    while not so():
        assert time.monotonic() < until, what
        time.sleep(0.003)


def ended(process: subprocess.Popen[bytes]) -> None:
    """End a process and those it started in its session."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


@contextmanager
def prefect_server(folder: Path) -> Iterator[str]:
    """The address of a Prefect server, so that not every sweep needs its own."""
    port = free_port()
    words = [
        sys.executable,
        "-m",
        "prefect",
        "server",
        "start",
        "--host",
        "127.0.0.1",
        "--port",
        str(port),
    ]
    quiet = {
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "PREFECT_SERVER_SERVICES_SCHEDULER_ENABLED": "false",  # else it adds runs after a minute
        "DO_NOT_TRACK": "1",
        "PREFECT_HOME": str(folder / "prefect"),
    }
    with (folder / "prefect.log").open("wb") as log:
        server = subprocess.Popen(
            words, env=environment(**quiet), stdout=log, stderr=log, start_new_session=True
        )
        try:
            wait_until(partial(listens, port), "Prefect's server did not start")
            yield f"http://127.0.0.1:{port}/api"
        finally:
            ended(server)


def listens(port: int) -> bool:
    """Whether somebody listens on this port."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


class OwnCluster:
    """A scheduler and workers in processes of their own, as a user would start them."""

    def __init__(self, folder: Path) -> None:
        self.processes = Processes(folder / "cluster", {"OMP_NUM_THREADS": "1"})
        self.start()

    def start(self) -> None:
        """Start them; `address` is the scheduler's."""
        self.address = self.processes.scheduler()
        self.scheduler = self.processes.running["scheduler"]
        self.workers = [
            self.processes.worker(f"worker-{number}", self.address) for number in range(WORKERS)
        ]

    def stop(self) -> None:
        """End all of them."""
        self.processes.close()


class Disk:
    """A file system of its own at `folder`, which can be filled."""

    def __init__(self, folder: Path, megabytes: int = 24) -> None:
        self.folder = folder
        folder.mkdir(exist_ok=True)
        subprocess.run(
            ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", str(folder)],
            check=True,
            capture_output=True,
        )

    def fill(self) -> None:
        """Take exactly what is left."""
        with (self.folder / "filled").open("wb", buffering=0) as file, suppress(OSError):
            while True:
                file.write(bytes(4096))

    def free(self) -> None:
        """Give it back."""
        (self.folder / "filled").unlink()

    def stop(self) -> None:
        """Unmount it."""
        subprocess.run(["umount", "--lazy", str(self.folder)], check=True)


class DisturbedSweep:
    """One `koco sweep` in a session of its own, to which `blow` happens if it lasts long enough."""

    def __init__(self, folder: Path, words: list[str], store: Path, more: dict[str, str]) -> None:
        self.store, self.before = store, (names(store, "parts"), names(store, "curves"))
        self.mark = f"{folder.name}-{time.monotonic_ns()}"
        self.out, self.err = folder / f"{self.mark}.out", folder / f"{self.mark}.err"
        self.cluster: OwnCluster | None = None
        self.begun = time.monotonic()
        with self.out.open("wb") as out, self.err.open("wb") as err:
            command = [
                sys.executable,
                "-m",
                "tests.helpers.sweep_in_short_cohorts",
                "sweep",
                *words,
                "--json",
            ]
            given = environment(**{MARK: self.mark}, **more)
            self.process = subprocess.Popen(
                command, env=given, cwd=ROOT, stdout=out, stderr=err, start_new_session=True
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
        parts, curves = (
            now - before
            for now, before in zip(
                (names(self.store, "parts"), names(self.store, "curves")), self.before, strict=True
            )
        )
        if blow.phase == "start-up":
            return "worker" not in blow.kind or bool(self.workers())
        if "worker" in blow.kind and not self.workers():
            return False
        return (
            bool(curves)
            if blow.phase == "collecting"
            else len(parts) >= blow.parts and bool(parts or self.computing())
        )

    def computing(self) -> bool:
        """Whether cohorts are being run."""
        return "what the workers do" in self.said()

    def workers(self) -> list[int]:
        """The processes that run cohorts."""
        above = [self.process, *(self.cluster.workers if self.cluster else ())]
        found = []
        for process in above:
            with suppress(psutil.Error):
                for child in psutil.Process(process.pid).children(recursive=True):
                    with suppress(psutil.Error):
                        if any("spawn_main" in word for word in child.cmdline()):
                            found.append(child.pid)
        return sorted(found)

    def strike(self, blow: Blow, disk: Disk | None) -> None:
        """Let it happen."""
        if blow.kind == "disk":
            assert disk is not None
            disk.fill()
        elif blow.kind == "scheduler":
            assert self.cluster is not None
            self.cluster.scheduler.kill()
        elif blow.kind == "driver":
            self.process.kill()
        else:
            workers = self.workers()
            for worker in (
                workers if blow.kind == "all workers" else workers[blow.choice % len(workers) :][:1]
            ):
                with suppress(ProcessLookupError):
                    os.kill(worker, signal.SIGKILL)

    def status(self, patience: float = PATIENCE) -> int:
        """Its exit status, when it has ended."""
        return self.process.wait(timeout=patience)

    def lasted(self) -> float:
        """Seconds since it was begun."""
        return time.monotonic() - self.begun

    def said(self) -> str:
        """What it wrote to stderr."""
        return self.err.read_text()

    def summary(self) -> dict[str, object]:
        """What it printed at its end."""
        return json.loads(self.out.read_text())

    def processes(self) -> list[int]:
        """All processes that belong to it."""
        found = []
        for process in Path("/proc").iterdir():
            with suppress(OSError):
                if process.name.isdigit() and f"{MARK}={self.mark}".encode() in (
                    process / "environ"
                ).read_bytes().split(b"\0"):
                    found.append(int(process.name))
        return found

    def wait_for_its_processes(self) -> None:
        """Until none is left; those of a killed sweep have to see it themselves."""
        wait_until(lambda: not self.processes(), "processes of the sweep are left", 30.0)


def names(store: Path, table: str) -> set[str]:
    """What is in one of the folders of results, unfinished files too for the tables."""
    with suppress(FileNotFoundError):
        return {
            path.name
            for path in (store / "results" / table).iterdir()
            if table != "parts" or not path.name.startswith(".")
        }
    return set()


def copy_into(store: Path, source: Path) -> None:
    """Put a copy of the store `source` into the folder `store`."""
    shutil.copytree(source, store, dirs_exist_ok=True)


def collect_cut_at_runs(store, monkeypatch):
    """Collect the parts of a store, and be killed where the table `runs` is to be written, after
    the curves.
    """
    write = collecting.write_tables

    def killed_at_runs(table, file):
        if "/runs/" in str(file):
            raise KeyboardInterrupt
        write(table, file)

    with monkeypatch.context() as patched:
        patched.setattr(collecting, "write_tables", killed_at_runs)
        with pytest.raises(KeyboardInterrupt):
            collect(store)
