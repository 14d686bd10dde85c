"""Messages and progress on stderr: a live line on a terminal, plain lines in a log."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
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


_listeners: list[Callable[[str], None]] = []


def say(message: str) -> None:
    """Print a line on stderr, and pass it on to `heard_by`."""
    print(wrapped(message), file=sys.stderr, flush=True)
    note(message)


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


def note(message: str) -> None:
    """Pass a line on to `heard_by` without printing it, where a terminal shows it otherwise."""
    for listen in _listeners:
        listen(message)


@contextmanager
def heard_by(listen: Callable[[str], None]) -> Iterator[None]:
    """Context in which `listen` is called with each line, in the thread that says it."""
    _listeners.append(listen)
    try:
        yield
    finally:
        _listeners.remove(listen)


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
