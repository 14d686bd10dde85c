"""Reports of a cohort that is being computed: how much of it is done, at most once a second.

A cohort may take minutes, and its receipt comes when it ends. Whoever wants to know more adds a
function to `listeners`: the process that runs a sweep, or a Dask worker, which passes reports on.
"""

import time
from collections.abc import Callable
from typing import NamedTuple

EVERY = 1.0  # seconds between reports


class Report(NamedTuple):
    """A cohort under way: the share of its rounds done (also before it was resumed), and the rounds
    of its runs, the seconds of their scans, and all seconds, since this process began with it, at
    the share `begun`.
    """

    cohort_id: str
    share: float
    begun: float
    rounds: int
    seconds: float
    elapsed: float = 0.0


listeners: list[Callable[[Report], None]] = []


class Reporter:
    """Reports the progress of one cohort to all listeners.

    Parameters
    ----------
    cohort_id : str
        The cohort.
    n_rounds, begun : int
        The rounds of its stream, and those that were done before.
    spent : float
        The seconds of these.
    """

    def __init__(self, cohort_id: str, n_rounds: int, begun: int, spent: float = 0.0) -> None:
        self.cohort_id, self.n_rounds = cohort_id, max(n_rounds, 1)
        self.begun, self.spent = begun, spent
        self.started = self.last = time.monotonic()

    def tell(self, done: float, runs: int, seconds: float) -> None:
        """Report, unless that was done within the last second.

        `done` are the rounds of the stream that `runs` runs have done, a part of a block included.
        `seconds` are those of all their scans: the first block of a stream may wait for a copy of
        its shard, which says nothing about the others.
        """
        now = time.monotonic()
        if now - self.last < EVERY or not listeners:
            return
        self.last = now
        rounds = int((done - self.begun) * runs)
        share, begun = done / self.n_rounds, self.begun / self.n_rounds
        scanned, elapsed = seconds - self.spent, now - self.started
        report = Report(self.cohort_id, share, begun, rounds, scanned, elapsed)
        for listener in listeners:
            listener(report)
