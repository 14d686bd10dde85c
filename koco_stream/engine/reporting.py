"""Reports of how much of a cohort is done, at most once a second, to all `listeners`."""

import time
from collections.abc import Callable
from typing import NamedTuple

EVERY = 1.0  # seconds between reports


class Report(NamedTuple):
    """A cohort under way, and its runs' rounds in this process."""

    cohort_id: str
    rounds: int


listeners: list[Callable[[Report], None]] = []


class Reporter:
    """Reports a cohort's progress after the `first` rounds of its stream."""

    def __init__(self, cohort_id: str, first: int) -> None:
        self.cohort_id, self.first, self.last = cohort_id, first, time.monotonic()

    def tell(self, done: float, runs: int) -> None:
        """Report that `runs` runs have done `done` rounds, unless the last report is too recent."""
        now = time.monotonic()
        if now - self.last < EVERY or not listeners:
            return
        self.last = now
        report = Report(self.cohort_id, int((done - self.first) * runs))
        for listener in listeners:
            listener(report)
