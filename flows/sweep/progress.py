"""Progress of long work: a live line on a terminal, a plain line now and then in a log. Always on
stderr.
"""

import os
import socket
import threading
import time
from contextlib import nullcontext, suppress
from datetime import UTC, datetime
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from flows.runtime.console import say
from flows.sweep.status import Status, tell
from koco_stream.engine.cohort import Receipt
from koco_stream.io.paths import AnyPath

LINE_EVERY = 60.0  # seconds: of a sweep, in a log
STATUS_EVERY = 3.0  # seconds: of what `koco status` reads


class SweepProgress:
    """Counts receipts: runs done of total, rounds per second, runs that were not ok, time left.

    On a terminal it is a live line, in a log a line a minute; `koco status` shows the same from the
    store.
    """

    def __init__(self, store: AnyPath, sweep: str) -> None:
        self.store, self.sweep, self.total, self.done, self.computed = store, sweep, 0, 0, 0
        self.rounds, self.diverged, self.failed, self.scan_seconds = 0, 0, 0, 0.0
        self.dashboard: str | None = None
        self.begun = self.last_line = time.monotonic()
        self.over, self.beating = (
            threading.Event(),
            threading.Thread(target=self._beat, daemon=True),
        )
        self.started_at = datetime.now(UTC)
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
        self.task = self.live.add_task("runs", total=None, speed="")

    def __enter__(self) -> Self:
        self.live.start()
        self._tell("running")
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
        self.live.stop()
        ended = (
            "done"
            if error is None
            else "ended by an error"
            if isinstance(error, Exception)
            else "stopped"
        )  # Ctrl-C, SIGTERM
        with (
            nullcontext() if error is None else suppress(OSError)
        ):  # on a full disk, what ended the sweep is to be heard
            self._tell(ended, None if error is None or ended == "stopped" else str(error))

    def more(self, runs: int, there: int) -> None:
        """So many more runs are wanted, some of which the store has already."""
        again = " more" if self.total else ""
        self.total += runs
        self.done += there
        self.live.update(self.task, total=self.total, completed=self.done)
        say(
            f"sweep {self.sweep}: {runs:,}{again} runs, {there:,} in the store already,"
            f" {runs - there:,} to compute"
        )

    def computing(self, dashboard: str | None) -> None:
        """The workers are ready: from now on runs are computed. `dashboard` is the address of
        Dask's page.
        """
        self.begun, self.dashboard = time.monotonic(), dashboard
        if dashboard:
            say(f"  what the workers do: {dashboard}")

    def receive(self, receipt: Receipt) -> None:
        """Note a finished cohort."""
        self.done += receipt.runs
        self.computed += receipt.runs
        self.rounds += receipt.rounds
        self.diverged += receipt.diverged
        self.failed += receipt.failed
        self.scan_seconds += receipt.scan_seconds
        self.live.update(self.task, completed=self.done, speed=self._speed(time.monotonic()))
        if self.done == self.total:
            self._line()

    def _beat(self) -> None:
        """In a thread of its own: a long cohort gives no receipt for long, and the sweep lives all
        the same.
        """
        while not self.over.wait(STATUS_EVERY):
            with suppress(OSError):  # a full disk is met, and said, by who writes results
                self._tell("running")
            if time.monotonic() - self.last_line > LINE_EVERY:
                self._line()

    def _line(self) -> None:
        if self.live.disable:
            now = self.last_line = time.monotonic()
            left = f"about {self._left(now):.0f} s left" if self.computed else "none finished yet"
            say(f"  {self.done:,} of {self.total:,} runs, {self._speed(now)}, {left}")

    def _speed(self, now: float) -> str:
        speed = f"{self.rounds / max(now - self.begun, 1e-9):,.0f} rounds/s"
        not_ok = [
            f", {count:,} {status}"
            for count, status in ((self.diverged, "diverged"), (self.failed, "failed"))
            if count
        ]
        return speed + "".join(not_ok)

    def _left(self, now: float) -> float:
        return (now - self.begun) * (self.total - self.done) / max(self.computed, 1)

    def _tell(self, state: str, error: str | None = None) -> None:
        now = time.monotonic()
        tell(
            self.store,
            Status(
                sweep=self.sweep,
                state=state,
                runs=self.total,
                done=self.done,
                diverged=self.diverged,
                failed=self.failed,
                rounds_per_second=self.rounds / max(now - self.begun, 1e-9),
                seconds_left=self._left(now) if self.computed and state == "running" else None,
                dashboard=self.dashboard if state == "running" else None,
                host=socket.gethostname(),
                process=os.getpid(),
                begun=self.started_at.isoformat(timespec="seconds"),
                updated=datetime.now(UTC).isoformat(timespec="seconds"),
                error=error,
            ),
        )
