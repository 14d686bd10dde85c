"""How everything here is timed: one core, contestants in turn (A B A B …), medians."""

import os
import time
from collections.abc import Callable
from statistics import median
from typing import NamedTuple


class Time(NamedTuple):
    """µs a round: the median over the repetitions, the least and the greatest."""

    us: float
    least: float
    greatest: float

    @property
    def per_second(self) -> float:
        """Rounds per second."""
        return 1e6 / self.us


def pin() -> str:
    """Keep this process, and the threads it starts, on the last core it may use. Returns what was
    done, in words.
    """
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
        os.environ[name] = "1"
    if not hasattr(os, "sched_setaffinity"):
        return "not pinned: this system cannot"
    core = max(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {core})
    return f"pinned to core {core}"


def seconds(work: Callable[[], object]) -> float:
    """The time that `work` takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def in_turn(contestants: dict[str, Callable[[], float]], repetitions: int) -> dict[str, Time]:
    """Each contestant returns µs a round for one repetition, whatever it does before and after
    unmeasured.

    All run once to warm up (compilation is not measured), then `repetitions` times in turn.
    """
    taken: dict[str, list[float]] = {name: [] for name in contestants}
    for repetition in range(repetitions + 1):
        for name, once in contestants.items():
            us = once()
            if repetition:
                taken[name].append(us)
    return {name: Time(median(us), min(us), max(us)) for name, us in taken.items()}
