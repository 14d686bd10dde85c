"""Progress of long work: a live line on a terminal, a plain line now and then in a log. Always on stderr."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

from koco_stream.run import Receipt

PLAIN_EVERY = 10.0  # seconds


def say(message: str) -> None:
    """A line on stderr."""
    print(message, file=sys.stderr, flush=True)


class SweepProgress:
    """Counts receipts: runs done of total, rounds per second, runs that were not ok, time left."""

    def __init__(self, total: int) -> None:
        self.total, self.done, self.rounds, self.not_ok, self.scan_seconds = total, 0, 0, 0, 0.0
        self.begun = self.last = time.monotonic()
        console = Console(stderr=True)
        self.live = Progress(
            TextColumn("runs"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[speed]}"),
            TimeRemainingColumn(),
            console=console,
            disable=not console.is_terminal,
        )
        self.task = self.live.add_task("runs", total=total, speed="")

    def __enter__(self) -> Self:
        self.live.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.live.stop()

    def receive(self, receipt: Receipt) -> None:
        """Note a finished cohort."""
        self.done += receipt.runs
        self.rounds += receipt.rounds
        self.not_ok += receipt.not_ok
        self.scan_seconds += receipt.scan_seconds
        now = time.monotonic()
        speed = f"{self.rounds / max(now - self.begun, 1e-9):,.0f} rounds/s"
        if self.not_ok:
            speed += f", {self.not_ok} not ok"
        self.live.update(self.task, completed=self.done, speed=speed)
        if self.live.disable and (now - self.last > PLAIN_EVERY or self.done == self.total):
            left = (now - self.begun) * (self.total - self.done) / max(self.done, 1)
            say(f"  {self.done:,} of {self.total:,} runs, {speed}, about {left:.0f} s left")
            self.last = now


class BytesProgress:
    """Counts bytes, and rows where there are any: what is being done, how much of it is done, how fast, time left."""

    def __init__(self, what: str) -> None:
        self.what = what
        console = Console(stderr=True)
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            DownloadColumn(),
            TransferSpeedColumn(),
            TextColumn("{task.fields[rows]}"),
            TimeRemainingColumn(),
        )
        self.live = Progress(*columns, console=console, disable=not console.is_terminal)
        self.task = self.live.add_task(what, total=None, rows="")
        self.last = time.monotonic()

    def __enter__(self) -> Self:
        self.live.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.live.stop()

    def __call__(self, done: int, total: int | None) -> None:
        """Note how many bytes there are, of how many if that is known."""
        self.step(self.what, done, total)

    def step(self, what: str, done: int, total: int | None, rows: int = 0) -> None:
        """Note how many bytes of a step of the work are done, of how many if that is known, and how many rows."""
        if what != self.what:
            self.what = what
            self.live.reset(self.task, description=what)
        said = f"{rows:,} rows" if rows else ""
        self.live.update(self.task, completed=done, total=total, rows=said)
        if self.live.disable and time.monotonic() - self.last > PLAIN_EVERY:
            say(f"  {what}: {done:,} of {f'{total:,}' if total else 'unknown'} bytes{', ' + said if said else ''}")
            self.last = time.monotonic()
