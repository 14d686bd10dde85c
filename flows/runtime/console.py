"""Messages and progress on stderr: a live line on a terminal, plain lines in a log."""

import sys
import time
from textwrap import TextWrapper
from typing import TextIO

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)

PLAIN_EVERY = 10.0  # seconds between lines in a log
WIDTH = 100  # columns of a line


def say(message: str) -> None:
    """Print a line on stderr."""
    print(wrapped(message), file=sys.stderr, flush=True)


def wrapped(message: str, stream: TextIO | None = None) -> str:
    """The message in lines of at most `WIDTH` columns, further lines of a sentence indented.

    In a log, which is searched, the first line stays one; those after it are a list. `stream` is
    where it goes, by default stderr.

    Control characters, such as a file's name may have, become spaces: a terminal acts on them.
    """
    message = "".join(one if one.isprintable() or one == "\n" else " " for one in message)
    indented = len(message) - len(message.lstrip())
    wrap = TextWrapper(
        WIDTH,
        break_on_hyphens=False,
        break_long_words=False,
        subsequent_indent=" " * (indented + 4),
    )
    first, *lines = message.split("\n")
    kept = [first] if not (stream or sys.stderr).isatty() else wrap.wrap(first) or [first]
    return "\n".join([*kept, *("\n".join(wrap.wrap(line)) for line in lines)])


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
