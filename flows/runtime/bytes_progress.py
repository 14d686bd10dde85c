"""Progress of a file on stderr: a live line on a terminal, plain lines in a log."""

import time

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)

from flows.runtime.console import say

PLAIN_EVERY = 10.0  # seconds between lines in a log


class BytesProgress(Progress):
    """Context manager that shows progress on stderr: bytes and rows, speed, and time left."""

    def __init__(self, what: str) -> None:
        console = Console(stderr=True)
        super().__init__(
            TextColumn("{task.description}"),
            BarColumn(),
            DownloadColumn(),
            TransferSpeedColumn(),
            TextColumn("{task.fields[rows]}"),
            TimeRemainingColumn(),
            console=console,
            disable=not console.is_terminal,
        )
        self.what, self.task = what, self.add_task(what, total=None, rows="")
        self.last = time.monotonic()

    def step(self, what: str, done: int, total: int | None, rows: int = 0) -> None:
        """Update the progress of a step called `what`.

        `done` of `total` bytes (None if unknown) and `rows` rows are processed.
        """
        if what != self.what:
            self.what = what
            self.reset(self.task, description=what)
        row_text = f"{rows:,} rows" if rows else ""
        self.update(self.task, completed=done, total=total, rows=row_text)
        if self.disable and time.monotonic() - self.last > PLAIN_EVERY:
            say(
                f"  {what}: {done:,} of {f'{total:,}' if total else 'unknown'}"
                f" bytes{', ' + row_text if row_text else ''}"
            )
            self.last = time.monotonic()
