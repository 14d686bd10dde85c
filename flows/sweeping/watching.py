"""How far a sweep is: what it counts of receipts and reports, and what those hear who watch it."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from flows.runtime.console import say

if TYPE_CHECKING:
    from koco_stream.engine.cohort import Receipt
    from koco_stream.engine.reporting import Report
    from koco_stream.runs.cost_model import DataSize
    from koco_stream.runs.run import Cohort

EVERY = 1.0  # seconds between what watchers hear while no receipt comes
SPEED_OF = 600.0  # seconds; the time left is by the speed of the last so many


class Watcher:
    """What follows a sweep; each one overrides what it needs. Errors end the sweep."""

    def begin(self, tally: Tally) -> None:
        """The sweep begins."""

    def received(self, tally: Tally) -> None:
        """A cohort has ended, and its receipt is counted."""

    def second(self, tally: Tally) -> None:
        """A second has passed; called in a thread."""

    def end(self, tally: Tally, error: BaseException | None) -> None:
        """The sweep has ended, by `error` if that is one."""


class Tally:
    """Context manager of a sweep, which counts its runs and rounds, and tells the watchers.

    The watcher that hears first ends last. The time left is rich's own: that of the planned rounds
    at the speed of the last ones. `live` is the line that a terminal shows.
    """

    def __init__(self, sweep: str, watchers: Sequence[Watcher] = ()) -> None:
        self.sweep, self.watchers = sweep, watchers
        self.over = threading.Event()
        self.beating = threading.Thread(target=self._beat, daemon=True)
        self.dashboard: str | None = None  # the address of Dask's pages
        self.runs = self.done = self.diverged = self.failed = 0
        self.cohorts = self.rounds = 0
        self.scan_seconds, self.begun = 0.0, time.monotonic()
        self.planned: dict[str, int] = {}  # rounds of cohorts that have not ended
        self.rounds_under_way: dict[str, int] = {}  # by cohort
        self.total = self.completed = 0  # planned rounds, and those of cohorts that have ended
        self.lock = threading.Lock()
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
        for watcher in self.watchers:
            watcher.begin(self)
        self.beating.start()
        return self

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        self.over.set()
        self.beating.join()
        self.measure()
        for watcher in reversed(self.watchers):
            watcher.end(self, error)

    def _beat(self) -> None:
        """Tell the watchers, even while a long cohort sends no receipt."""
        while not self.over.wait(EVERY):
            self.measure()
            for watcher in self.watchers:
                watcher.second(self)

    def more(self, runs: int, there: int) -> None:
        """Add `runs` to the runs of the sweep, of which `there` are in the store already."""
        say(
            f"sweep {self.sweep}: {runs:,}{' more' if self.runs else ''} runs, {there:,} already in"
            f" the store, {runs - there:,} to compute"
        )
        self.runs += runs
        self.done += there

    def computing(self, dashboard: str | None) -> None:
        """Start the clock, as the workers are ready. Dask's pages are at `dashboard`, if any."""
        self.begun, self.dashboard = time.monotonic(), dashboard
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
        """Count the runs of a finished cohort, and tell the watchers."""
        with self.lock:
            self.rounds_under_way.pop(receipt.cohort_id, None)
            # a cohort that was not planned is a part of one that was split
            self.completed += self.planned.pop(receipt.cohort_id, receipt.rounds)
            self.done += receipt.runs
            self.diverged += receipt.diverged
            self.failed += receipt.failed
            self.cohorts += 1
            self.rounds += receipt.rounds
            self.scan_seconds += receipt.scan_seconds
        for watcher in self.watchers:
            watcher.received(self)

    def pace(self) -> float:
        """Rounds per second."""
        elapsed = max(time.monotonic() - self.begun, 1e-9)
        with self.lock:
            return (self.rounds + sum(self.rounds_under_way.values())) / elapsed

    @property
    def seconds_left(self) -> float | None:
        """The time left; None if it is not known yet."""
        return self.task.time_remaining

    def measure(self) -> None:
        """Pass the rounds that are done on to rich, which measures the speed."""
        with self.lock:
            rounds = self.completed + sum(self.rounds_under_way.values())
        self.live.update(
            self.task.id, total=self.total or None, completed=rounds, done=self.in_words()
        )

    def in_words(self) -> str:
        """Numbers of runs, the speed, and the runs that are not ok."""
        counts = ("diverged", self.diverged), ("failed", self.failed)
        not_ok = "".join(f", {count:,} {status}" for status, count in counts if count)
        return f"{self.done:,} of {self.runs:,} runs, {self.pace():,.0f} rounds/s{not_ok}"
