"""How far a sweep is: its status, which the store has for `koco list`, and those who are told."""

import itertools
import os
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from contextvars import copy_context
from dataclasses import asdict, dataclass, field, fields, replace
from datetime import UTC, datetime
from typing import Any, Self

from pydantic import TypeAdapter

from flows.runtime.processes import locked, say, start_of
from flows.runtime.recording import artifact
from koco_stream.engine.cohort import Receipt
from koco_stream.engine.reporting import Report
from koco_stream.errors import WrongInput
from koco_stream.io.files import json_text
from koco_stream.io.paths import AnyPath, StorePath, store_path

SPEED_OF = 600.0  # seconds; the time left is by the speed of the last so many
SILENT_SECONDS = 60.0  # without updates for so long, a sweep on another machine counts as killed
# Lock of a store that a sweep holds while it says that it runs, and a removal as long as it lasts.
CLAIM = "sweeps"


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


@dataclass
class Status:
    """Progress of a sweep. A killed one is stored as running, but its process is gone."""

    sweep: str
    state: str = "running"
    runs: int = 0
    done: int = 0
    diverged: int = 0
    failed: int = 0
    stopped: int = 0
    rounds_per_second: float = 0.0
    seconds_left: float | None = None
    dashboard: str | None = None
    host: str = field(default_factory=socket.gethostname)
    process: int = field(default_factory=os.getpid)
    # when that process was, as `start_of` says
    started: int = field(default_factory=lambda: start_of(os.getpid()) or 0)
    started_at: str = field(default_factory=now)
    updated: str = field(default_factory=now)
    error: str | None = None


COLUMNS = tuple(field.name for field in fields(Status))


def statuses(store: AnyPath, sweep: str | None = None) -> Iterator[Status]:
    for file in (store_path(store) / "status").files(".json"):
        if sweep is None or file.name == f"{sweep}.json":
            with suppress(FileNotFoundError):  # removed meanwhile
                yield _status_in(file)


def _status_in(file: StorePath) -> Status:
    try:
        status = TypeAdapter(Status).validate_json(file.read_bytes())
        if status.state == "running" and is_dead(status):
            return replace(status, state="killed", dashboard=None, seconds_left=None)
        return status
    except (ValueError, TypeError) as error:
        raise WrongInput(
            f"{file} is damaged ({' '.join(str(error).split())[:200]}); remove it: it says only how"
            " far a sweep is"
        ) from None


def is_dead(status: Status) -> bool:
    if status.host == socket.gethostname():
        return start_of(status.process) != status.started
    silent = datetime.now(UTC) - datetime.fromisoformat(status.updated)
    return abs(silent.total_seconds()) > SILENT_SECONDS


def refuse_running(store: AnyPath, sweep: str | None = None) -> None:
    me = socket.gethostname(), os.getpid()
    for status in statuses(store, sweep):
        mine = sweep is not None and (status.host, status.process) == me
        if status.state == "running" and not mine:
            raise WrongInput(
                f"the sweep {status.sweep} is running on {store} (process {status.process} of"
                f" {status.host}); wait until it has ended (koco list sweeps), or stop it"
            )


def claim(store: AnyPath, status: Status) -> None:
    with locked(store, CLAIM, "waiting for koco store remove"):
        refuse_running(store, status.sweep)
        write_status(store, status)


def write_status(store: AnyPath, status: Status) -> None:
    """Write a status. A full disk is reported elsewhere: with results, or by the sweep's error."""
    file = store_path(store) / "status" / f"{status.sweep}.json"
    with nullcontext() if status.state == "done" else suppress(OSError):
        file.write_text(json_text(asdict(status)) + "\n")


Watcher = Callable[[Status], None]


class Tally:
    """Context manager that counts a sweep's runs and rounds into its `status`."""

    def __init__(self, sweep: str, watchers: Sequence[tuple[int, Watcher]] = ()) -> None:
        # slow: they would take a refusal's time
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        self.status, self.watchers = Status(sweep), watchers
        self.over, self.lock = threading.Event(), threading.Lock()
        # in the context of this thread, where Prefect finds the flow run
        self.beating = threading.Thread(target=copy_context().run, args=(self._beat,), daemon=True)
        self.planned: dict[str, int] = {}  # rounds of cohorts that have not ended
        self.under_way: dict[str, int] = {}  # rounds that are done of them
        # rounds of cohorts that have ended; those that were planned, and those of them that ended
        self.rounds = self.total = self.completed = 0
        self.scan_seconds, self.computing_since = 0.0, time.monotonic()
        self.live = Progress(
            TextColumn("runs"),
            BarColumn(),
            TextColumn("{task.fields[done]}"),
            TimeRemainingColumn(),
            console=Console(stderr=True),
            disable=not sys.stderr.isatty(),
            speed_estimate_period=SPEED_OF,
        )
        self.live.add_task("runs", total=None, done="")
        (self.task,) = self.live.tasks

    def __enter__(self) -> Self:
        self.live.start()
        self.beating.start()
        return self

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        self.over.set()
        self.beating.join()
        state = "ended by an error" if isinstance(error, Exception) else "stopped"
        self.status.state = state if error else "done"
        self.status.error = str(error) if isinstance(error, Exception) else None
        self.status.dashboard = None
        self.tell(0)

    def _beat(self) -> None:
        for second in itertools.count(1):
            if self.over.wait(1.0):
                return
            self.tell(second)

    def tell(self, second: int) -> None:
        with self.lock:
            under_way = sum(self.under_way.values())
            rounds = self.rounds + under_way
            completed = self.completed + under_way
        self.status.rounds_per_second = rounds / max(time.monotonic() - self.computing_since, 1e-9)
        self.live.update(
            self.task.id, total=self.total or None, completed=completed, done=words(self.status)
        )
        if self.status.state != "running":
            self.live.stop()
        self.status.seconds_left = (
            self.task.time_remaining if self.status.state == "running" else None
        )
        self.status.updated = now()
        for every, watcher in self.watchers:
            if second % every == 0:
                watcher(self.status)

    def more(self, runs: int, there: int) -> None:
        say(
            f"sweep {self.status.sweep}: {runs:,}{' more' if self.status.runs else ''} runs,"
            f" {there:,} already in the store, {runs - there:,} to compute"
        )
        self.status.runs += runs
        self.status.done += there

    def computing(self, dashboard: str | None) -> None:
        self.computing_since, self.status.dashboard = time.monotonic(), dashboard
        say(
            "  the workers compute"
            f"{f'; Dask (koco-stream[dashboard]): {dashboard}' if dashboard else ''}"
        )

    def plan(self, rounds: Mapping[str, int]) -> None:
        self.planned.update(rounds)
        self.total += sum(rounds.values())

    def hear(self, report: Report) -> None:
        with self.lock:
            self.under_way[report.cohort_id] = report.rounds

    def receive(self, receipt: Receipt) -> None:
        with self.lock:
            self.under_way.pop(receipt.cohort_id, None)
            # a cohort that was not planned is a part of one that was split
            self.completed += self.planned.pop(receipt.cohort_id, receipt.rounds)
            self.rounds += receipt.rounds
        self.scan_seconds += receipt.scan_seconds
        self.status.done += receipt.runs
        self.status.diverged += receipt.diverged
        self.status.failed += receipt.failed
        self.status.stopped += receipt.stopped


def words(status: Status) -> str:
    done = f"{status.done:,} of {status.runs:,} runs, {status.rounds_per_second:,.0f} rounds/s"
    counts = {name: getattr(status, name) for name in ("diverged", "failed", "stopped")}
    return done + "".join(f", {count:,} {name}" for name, count in counts.items() if count)


def say_progress(status: Status) -> None:
    left = "" if status.seconds_left is None else f", {status.seconds_left:,.0f} s left"
    if status.rounds_per_second and not sys.stderr.isatty():
        say(f"  {words(status)}{left}")


def record_progress(status: Status) -> None:
    percent = 100.0 * status.done / max(status.runs, 1)
    artifact("progress", f"progress-{status.sweep}", lambda: percent)
