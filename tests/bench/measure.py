"""How everything here is timed and shown: one core, contestants in turn (A B A B …), medians; plain
text tables.
"""

import os
import time
from collections.abc import Callable, Sequence
from functools import partial
from statistics import median, quantiles
from typing import Any, NamedTuple

# The quartiles of undisturbed repetitions are not farther apart than this share of their median.
SPREAD = 0.25
# The largest spread of what was timed, by the group that `group_begun` was told last
spreads: dict[str, float] = {}


def group_begun(name: str) -> None:
    """What is timed from now on belongs to this group of the benchmark."""
    spreads.setdefault(name, 0.0)
    spreads[name] = spreads.pop(name)  # the last one is the current


def noted(taken: Sequence[float]) -> float:
    """The median of the repetitions of one contestant, whose spread is noted for its group."""
    low, middle, high = quantiles(taken, n=4) if len(taken) > 1 else [taken[0]] * 3
    if spreads:
        group = next(reversed(spreads))
        spreads[group] = max(spreads[group], (high - low) / middle)
    return median(taken)


class Time(NamedTuple):
    """µs a round: the median over the repetitions, the least and the greatest."""

    us: float
    least: float
    greatest: float

    @property
    def columns(self) -> tuple[float, str]:
        """The median, and the others in words: two columns of a table."""
        return self.us, f"{self.least:.3g} to {self.greatest:.3g}"


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


def in_turn(
    contestants: dict[str, Callable[[], float]], repetitions: int, warm: bool = False
) -> dict[str, Time]:
    """Each contestant returns µs a round for one repetition, whatever it does before and after
    unmeasured.

    All run once to warm up (compilation is not measured), unless they are `warm`, then
    `repetitions` times in turn.
    """
    taken: dict[str, list[float]] = {name: [] for name in contestants}
    for repetition in range(warm, repetitions + 1):
        for name, once in contestants.items():
            us = once()
            if repetition:
                taken[name].append(us)
    return {name: Time(noted(us), min(us), max(us)) for name, us in taken.items()}


def results_in_turn(
    works: dict[str, Callable[[], Any]], repetitions: int, warm: bool = False
) -> tuple[dict[str, Any], dict[str, Time]]:
    """What each of these returns, and the seconds that it takes, as `in_turn`."""
    results = dict[str, Any]()

    def timed(name: str) -> float:
        def work() -> None:
            results[name] = works[name]()

        return seconds(work)

    return results, in_turn({name: partial(timed, name) for name in works}, repetitions, warm)


def show(
    title: str, columns: Sequence[str], lines: Sequence[Sequence[object]], *notes: str
) -> None:
    """Print a table: the first column to the left, the others to the right, then the notes."""
    cells = [list(columns), *[[text(value) for value in line] for line in lines]]
    widths = [max(len(line[k]) for line in cells) for k in range(len(columns))]
    print(f"\n{title}")
    for number, line in enumerate(cells):
        print(
            "  "
            + "  ".join(
                c.ljust(w) if k == 0 else c.rjust(w)
                for k, (c, w) in enumerate(zip(line, widths, strict=True))
            ).rstrip()
        )
        if number == 0:
            print("  " + "  ".join("-" * w for w in widths))
    for note in notes:
        print(f"  {note}")
    print(end="", flush=True)


def text(value: object) -> str:
    """A number with about three digits, thousands separated; None as a dash."""
    if value is None:
        return "–"
    if isinstance(value, float):
        return (
            f"{value:,.0f}"
            if abs(value) >= 1000
            else f"{value:.3g}"
            if abs(value) >= 0.001 or value == 0
            else f"{value:.1e}"
        )
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
