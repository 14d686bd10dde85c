"""Progress of a sweep, on stderr and in the store.

It is a live line on a terminal and a plain line a minute in a log. `koco status` reads the store.
"""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext, suppress
from dataclasses import asdict, dataclass, fields, replace
from datetime import UTC, datetime
from types import TracebackType
from typing import TYPE_CHECKING, Self

from pydantic import TypeAdapter
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from flows.runtime.console import say
from flows.runtime.processes import locked, start_of
from koco_stream.errors import WrongInput
from koco_stream.io.files import json_text
from koco_stream.io.paths import AnyPath, StorePath, store_path

if TYPE_CHECKING:
    # slow: they import the compiler
    from koco_stream.engine.cohort import Receipt
    from koco_stream.engine.reporting import Report
    from koco_stream.runs.cost_model import DataSize
    from koco_stream.runs.run import Cohort

LINE_EVERY = 60.0  # seconds between lines in a log
STATUS_EVERY = 1.0  # seconds between updates of the status in the store
SPEED_OF = 600.0  # seconds; the time left is by the speed of the last so many
SILENT_SECONDS = 60.0  # without updates for so long, a sweep on another machine counts as killed
# Lock of a store that a sweep holds while it says that it runs, and a removal as long as it lasts.
CLAIM = "sweeps"


@dataclass(frozen=True)
class Status:
    """Progress of a sweep, as stored for `koco status`.

    `state` is running, done, stopped (by Ctrl-C), ended by an error, or killed. A killed sweep is
    stored as running, but its process is gone.
    """

    sweep: str
    state: str = "running"
    runs: int = 0
    done: int = 0
    diverged: int = 0
    failed: int = 0
    rounds_per_second: float = 0.0
    seconds_left: float | None = None
    dashboard: str | None = None
    host: str = ""
    process: int = 0
    started: int = 0  # when that process was, as `start_of` says
    begun: str = ""
    updated: str = ""
    error: str | None = None


COLUMNS = tuple(field.name for field in fields(Status))


def statuses(store: AnyPath, sweep: str | None = None) -> Iterator[Status]:
    """Yield the last status of each sweep in the store, or of the one of this name.

    Raises `WrongInput` for a damaged file.
    """
    for file in (store_path(store) / "status").files(".json"):
        if sweep is None or file.name == f"{sweep}.json":
            with suppress(FileNotFoundError):  # removed meanwhile
                yield _status_in(file)


def _status_in(file: StorePath) -> Status:
    try:
        status = TypeAdapter(Status).validate_json(file.read_bytes())
        killed = status.state == "running" and is_dead(status)
    except (ValueError, TypeError) as error:
        raise WrongInput(
            f"{file} is damaged ({' '.join(str(error).split())[:200]}); remove it: it says only how"
            " far a sweep is"
        ) from None
    if killed:
        return replace(status, state="killed", dashboard=None, seconds_left=None)
    return status


def is_dead(status: Status) -> bool:
    """Whether the process that wrote a status is gone.

    A process on another machine counts as gone if its last update is more than `SILENT_SECONDS`
    away, into the past or, by a clock that was wrong, into the future.
    """
    if status.host == socket.gethostname():
        return start_of(status.process) != status.started
    silent = datetime.now(UTC) - datetime.fromisoformat(status.updated)
    return abs(silent.total_seconds()) > SILENT_SECONDS


def refuse_running(store: AnyPath, sweep: str | None = None) -> None:
    """Raise `WrongInput` if a sweep is running, or the one of this name in another process."""
    me = socket.gethostname(), os.getpid()
    for status in statuses(store, sweep):
        mine = sweep is not None and (status.host, status.process) == me
        if status.state == "running" and not mine:
            raise WrongInput(
                f"the sweep {status.sweep} is running on {store} (process {status.process} of"
                f" {status.host}); wait until it has ended (koco status), or stop it"
            )


class SweepProgress:
    """Context manager that counts the receipts of a sweep and shows its progress.

    It shows the number of finished runs, rounds per second, runs that diverged or failed, and the
    time left, which is that of the planned rounds at the speed of the last ones: on stderr, and in
    the store for `koco status`. `show` is called with the share of the runs that are done, after
    each cohort. Entering it raises `WrongInput` if another process runs the sweep.
    """

    def __init__(
        self, store: AnyPath, sweep: str, show: Callable[[float], None] = lambda share: None
    ) -> None:
        self.show = show
        self.file = store_path(store) / "status" / f"{sweep}.json"
        self.store, host, me = store, socket.gethostname(), os.getpid()
        started = start_of(me) or 0
        self.status = Status(sweep, host=host, process=me, started=started, begun=now())
        self.cohorts, self.computed, self.rounds, self.scan_seconds = 0, 0, 0, 0.0
        self.planned: dict[str, int] = {}  # rounds of cohorts that have not ended
        self.rounds_under_way: dict[str, int] = {}  # by cohort
        self.total = self.completed = 0  # planned rounds, and those of cohorts that have ended
        self.lock = threading.Lock()
        self.begun = self.last_line = time.monotonic()
        self.over = threading.Event()
        self.beating = threading.Thread(target=self._beat, daemon=True)
        console = Console(stderr=True)
        self.live = Progress(
            TextColumn("runs"),
            BarColumn(),
            TextColumn("{task.fields[done]}"),
            TimeRemainingColumn(),
            console=console,
            disable=not console.is_terminal,
            speed_estimate_period=SPEED_OF,
        )
        self.live.add_task("runs", total=None, done="")
        (self.task,) = self.live.tasks

    def __enter__(self) -> Self:
        with locked(self.store, CLAIM, "waiting for koco remove"):
            refuse_running(self.store, self.status.sweep)
            self._tell()
        self.live.start()
        self.beating.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.over.set()
        self.beating.join()
        self._update()
        self.live.stop()
        self.status = replace(self.status, dashboard=None, state="done")
        if isinstance(error, Exception):
            self.status = replace(self.status, state="ended by an error", error=str(error))
        elif error is not None:  # Ctrl-C, SIGTERM
            self.status = replace(self.status, state="stopped")
        # on a full disk, the error that ended the sweep is raised, not that of the status
        with nullcontext() if error is None else suppress(OSError):
            self._tell()

    def more(self, runs: int, there: int) -> None:
        """Add `runs` to the runs of the sweep, of which `there` are in the store already."""
        again = " more" if self.status.runs else ""
        self.status = replace(
            self.status, runs=self.status.runs + runs, done=self.status.done + there
        )
        say(
            f"sweep {self.status.sweep}: {runs:,}{again} runs, {there:,} already in the store,"
            f" {runs - there:,} to compute"
        )

    def computing(self, dashboard: str | None) -> None:
        """Start the clock, as the workers are ready.

        `dashboard` is the address of Dask's pages, if there are any.
        """
        self.begun, self.status = time.monotonic(), replace(self.status, dashboard=dashboard)
        say(f"  the workers compute{f'; Dask: {dashboard}' if dashboard else ''}")

    def plan(self, cohorts: Sequence[Cohort], sizes: dict[str, DataSize]) -> None:
        """Add the rounds of cohorts that will be computed on datasets of these sizes."""
        with self.lock:
            for cohort in cohorts:
                rounds = sizes[cohort.stream.dataset_hash].rounds(cohort.stream) - cohort.begun
                self.planned[cohort.cohort_id] = len(cohort.runs) * rounds
                self.total += self.planned[cohort.cohort_id]

    def hear(self, report: Report) -> None:
        """Note how far a cohort under way is."""
        with self.lock:
            self.rounds_under_way[report.cohort_id] = report.rounds

    def receive(self, receipt: Receipt) -> None:
        """Count the runs of a finished cohort."""
        with self.lock:
            self.rounds_under_way.pop(receipt.cohort_id, None)
            # a cohort that was not planned is a part of one that was split
            self.completed += self.planned.pop(receipt.cohort_id, receipt.rounds)
        self.status = replace(
            self.status,
            done=self.status.done + receipt.runs,
            diverged=self.status.diverged + receipt.diverged,
            failed=self.status.failed + receipt.failed,
        )
        self.cohorts += 1
        self.computed += receipt.runs
        self.rounds += receipt.rounds
        self.scan_seconds += receipt.scan_seconds
        self.show(self.status.done / self.status.runs)
        if self.status.done == self.status.runs:
            self._line()

    def _beat(self) -> None:
        """Update the status regularly in a thread, even while a long cohort sends no receipt."""
        while not self.over.wait(STATUS_EVERY):
            self._update()
            with suppress(OSError):  # a full disk is reported when results are written
                self._tell()
            if time.monotonic() - self.last_line > LINE_EVERY:
                self._line()

    def _line(self) -> None:
        """Say a line of progress, but on a terminal, which shows the live line."""
        self.last_line = time.monotonic()
        left = self.task.time_remaining if self.status.done < self.status.runs else None
        if self.live.disable:
            say(f"  {self._done()}" + ("" if left is None else f", {left:,.0f} s left"))

    def _update(self) -> None:
        """Show what is done."""
        with self.lock:
            under_way = sum(self.rounds_under_way.values())
        rounds, total = self.completed + under_way, self.total or None
        self.live.update(self.task.id, total=total, completed=rounds, done=self._done())

    def _pace(self) -> float:
        """Rounds per second."""
        elapsed = max(time.monotonic() - self.begun, 1e-9)
        with self.lock:
            return (self.rounds + sum(self.rounds_under_way.values())) / elapsed

    def _done(self) -> str:
        """Numbers of runs, the speed, and the runs that are not ok, in words."""
        counts = ("diverged", self.status.diverged), ("failed", self.status.failed)
        not_ok = "".join(f", {count:,} {status}" for status, count in counts if count)
        done, runs = self.status.done, self.status.runs
        return f"{done:,} of {runs:,} runs, {self._pace():,.0f} rounds/s{not_ok}"

    def _tell(self) -> None:
        """Write the status, with the present speed, into the store."""
        status = replace(
            self.status,
            rounds_per_second=self._pace(),
            seconds_left=self.task.time_remaining if self.status.state == "running" else None,
            updated=now(),
        )
        self.file.write_text(json_text(asdict(status)) + "\n")


def now() -> str:
    """The current time in the format of `Status`."""
    return datetime.now(UTC).isoformat(timespec="seconds")
