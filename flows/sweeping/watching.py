"""How far a sweep is: what it counts of receipts and reports, and those who are told."""

import itertools
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from contextvars import copy_context
from typing import Any, Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from flows.runtime.artifacts import key
from flows.runtime.console import say
from flows.sweeping.status import Status, now
from koco_stream.engine.cohort import Receipt
from koco_stream.engine.reporting import Report

SPEED_OF = 600.0  # seconds; the time left is by the speed of the last so many
Watcher = Callable[[Status], None]


class Tally:
    """Context manager of a sweep, which counts its runs and rounds into its `status`.

    Each of the `watchers` is told the status every so many seconds, even while a long cohort sends
    no receipt, and at the end. The time left is rich's own: that of the planned rounds at the speed
    of the last ones. `live` is the line that a terminal shows.
    """

    def __init__(self, sweep: str, watchers: Sequence[tuple[int, Watcher]] = ()) -> None:
        self.status, self.watchers = Status(sweep), watchers
        self.over, self.lock = threading.Event(), threading.Lock()
        # in the context of this thread, where Prefect finds the flow run
        self.beating = threading.Thread(target=copy_context().run, args=(self._beat,), daemon=True)
        self.planned: dict[str, int] = {}  # rounds of cohorts that have not ended
        self.under_way: dict[str, int] = {}  # rounds that are done of them
        # rounds of cohorts that have ended; those that were planned, and those of them that ended
        self.rounds = self.total = self.completed = 0
        self.scan_seconds, self.begun = 0.0, time.monotonic()
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
        self.live.start()
        self.beating.start()
        return self

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        self.over.set()
        self.beating.join()
        self.live.stop()
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
        """Update the status, and tell the watchers whose time it is."""
        with self.lock:
            under_way = sum(self.under_way.values())
        status, elapsed = self.status, max(time.monotonic() - self.begun, 1e-9)
        status.rounds_per_second = (self.rounds + under_way) / elapsed
        done = self.completed + under_way
        self.live.update(self.task.id, total=self.total or None, completed=done, done=words(status))
        status.seconds_left = self.task.time_remaining if status.state == "running" else None
        status.updated = now()
        for every, watcher in self.watchers:
            if second % every == 0:
                watcher(status)

    def more(self, runs: int, there: int) -> None:
        """Add `runs` to the runs of the sweep, of which `there` are in the store already."""
        say(
            f"sweep {self.status.sweep}: {runs:,}{' more' if self.status.runs else ''} runs,"
            f" {there:,} already in the store, {runs - there:,} to compute"
        )
        self.status.runs += runs
        self.status.done += there

    def computing(self, dashboard: str | None) -> None:
        """Start the clock, as the workers are ready. Dask's pages are at `dashboard`, if any."""
        self.begun, self.status.dashboard = time.monotonic(), dashboard
        say(f"  the workers compute{f'; Dask: {dashboard}' if dashboard else ''}")

    def plan(self, rounds: Mapping[str, int]) -> None:
        """Add the rounds of cohorts that will be computed."""
        self.planned.update(rounds)
        self.total += sum(rounds.values())

    def hear(self, report: Report) -> None:
        """Note how far a cohort under way is."""
        with self.lock:
            self.under_way[report.cohort_id] = report.rounds

    def receive(self, receipt: Receipt) -> None:
        """Count the runs of a finished cohort."""
        with self.lock:
            self.under_way.pop(receipt.cohort_id, None)
        # a cohort that was not planned is a part of one that was split
        self.completed += self.planned.pop(receipt.cohort_id, receipt.rounds)
        self.rounds += receipt.rounds
        self.scan_seconds += receipt.scan_seconds
        self.status.done += receipt.runs
        self.status.diverged += receipt.diverged
        self.status.failed += receipt.failed


def words(status: Status) -> str:
    """Numbers of runs, the speed, and the runs that are not ok."""
    done = f"{status.done:,} of {status.runs:,} runs, {status.rounds_per_second:,.0f} rounds/s"
    counts = ("diverged", status.diverged), ("failed", status.failed)
    return done + "".join(f", {count:,} {name}" for name, count in counts if count)


def say_progress(status: Status) -> None:
    """Say how far a sweep is in a log; a terminal shows the live line."""
    if status.rounds_per_second and not Console(stderr=True).is_terminal:
        left = status.seconds_left
        say(f"  {words(status)}" + ("" if left is None else f", {left:,.0f} s left"))


def record_progress(status: Status) -> None:
    """Write the share of the runs that are done into Prefect's pages of this flow run."""
    from httpx import HTTPError
    from prefect.artifacts import create_progress_artifact

    with suppress(HTTPError):
        create_progress_artifact(
            100.0 * status.done / max(status.runs, 1), key=key(f"progress-{status.sweep}")
        )
