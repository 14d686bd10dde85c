"""Progress of a sweep on stderr: a live line on a terminal, a plain line a minute in a log."""

import time

from flows.runtime.console import say
from flows.sweeping.watching import Tally, Watcher

LINE_EVERY = 60.0  # seconds between lines in a log


class ProgressLine(Watcher):
    """Shows finished runs, rounds per second, runs that are not ok, and the time left."""

    def __init__(self) -> None:
        self.last = time.monotonic()

    def begin(self, tally: Tally) -> None:
        """Show the live line."""
        tally.live.start()

    def received(self, tally: Tally) -> None:
        """Say in a log that all runs are done."""
        if tally.done == tally.runs:
            self.line(tally)

    def second(self, tally: Tally) -> None:
        """Say a line in a log, once a minute."""
        if time.monotonic() - self.last > LINE_EVERY:
            self.line(tally)

    def end(self, tally: Tally, error: BaseException | None) -> None:
        """Take the live line away."""
        tally.live.stop()

    def line(self, tally: Tally) -> None:
        """Say a line, but not on a terminal, which shows the live one."""
        self.last = time.monotonic()
        left = tally.seconds_left if tally.done < tally.runs else None
        if tally.live.disable:
            say(f"  {tally.in_words()}" + ("" if left is None else f", {left:,.0f} s left"))
