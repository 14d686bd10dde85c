"""Reports of a cohort that is being computed: how much of it is done, at most once a second.

A cohort may take minutes, and its receipt comes when it ends. Whoever wants to know more adds a
function to `listeners`: the process that runs a sweep, or a Dask worker, which passes reports on.
"""

import time
from collections.abc import Callable
from typing import NamedTuple

EVERY = 1.0  # seconds between reports


class Report(NamedTuple):
    """A cohort under way, and the rounds that its runs have done in this process."""

    cohort_id: str
    rounds: int


listeners: list[Callable[[Report], None]] = []


class Reporter:
    """Reports the progress of one cohort to all listeners.

    Parameters
    ----------
    cohort_id : str
        The cohort.
    begun : int
        The rounds of its stream that were done before.
    """

    def __init__(self, cohort_id: str, begun: int) -> None:
        self.cohort_id, self.begun, self.last = cohort_id, begun, time.monotonic()

    def tell(self, done: float, runs: int) -> None:
        """Report, unless that was done within the last second.

        `done` are the rounds of the stream that `runs` runs have done, a part of a block included.
        """
        now = time.monotonic()
        if now - self.last < EVERY or not listeners:
            return
        self.last = now
        report = Report(self.cohort_id, int((done - self.begun) * runs))
        for listener in listeners:
            listener(report)
