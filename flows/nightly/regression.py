"""Comparison of a nightly run's numbers and speeds with accepted ones, without access to files."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

import pyarrow as pa

from flows.tables.tables import grouped
from storage.nights import IDENTITY

FIRST, SAME, CHANGED, SLOWER, FASTER = (
    "first",
    "same numbers",
    "changed numbers",
    "slower",
    "faster",
)
UNCLEAR = "unclear"  # verdict on a speed measured while other processes kept the machine busy
# the machine is busy if others take more than this share of its cores; half-width of the band then
BUSY, BUSY_HALF = 0.25, 0.5
FAILING = (CHANGED, SLOWER)  # results that give exit status 1 and a failed state
FLOOR, CAP = 0.15, 0.20  # limits of the band's half-width, as a share of the expected ratio
WIDTH = 4 * 1.4826  # median deviations in four standard deviations of normal noise
REMEMBERED = 30  # number of latest ratios that give the band

Pair = tuple[str, str]  # dataset, learner


@dataclass(frozen=True)
class Change:
    """A difference between a nightly run and the accepted one, for a learner on a dataset.

    Attributes
    ----------
    dataset, learner : str
        Names of the dataset and the learner.
    what : {"numbers", "data", "gone", "new"}
        Results differ; the dataset has other rows; runs are missing; runs were added.
    runs, of : int
        Number of runs affected, and of runs compared.
    largest : float or None
        Largest relative change of a mean loss; None if no losses can be compared.
    """

    dataset: str
    learner: str
    what: str
    runs: int
    of: int
    largest: float | None = None

    def __str__(self) -> str:
        by = "" if self.largest is None else f", mean loss by up to {self.largest:.1e} of itself"
        found = {
            "data": f"the dataset has other rows than in the accepted run ({self.runs:,} runs)",
            "gone": f"{self.runs:,} of {self.of:,} runs of the accepted run are gone",
            "new": f"{self.runs:,} runs that the accepted run did not have",
            "numbers": f"{self.runs:,} of {self.of:,} runs have changed numbers{by}",
        }
        return f"{self.learner} on {self.dataset}: {found[self.what]}"


def changes(accepted: pa.Table, tonight: pa.Table) -> list[Change]:
    """List the differences between two tables of numbers, by dataset and learner.

    Both have the columns of `storage.nights.NUMBERS`.
    """
    before, after = (
        {tuple(row[name] for name in IDENTITY): row for row in numbers.to_pylist()}
        for numbers in (accepted, tonight)
    )
    by_pair = grouped(
        [(before.get(key), after.get(key)) for key in {**before, **after}],
        lambda rows: pair_of(rows[0] or rows[1]),
    )
    found: list[Change] = []
    for pair, rows in sorted(by_pair.items()):
        both = [(a, b) for a, b in rows if a and b]
        data = [a for a, b in both if a["dataset_hash"] != b["dataset_hash"]]
        other = [
            (a["mean_loss"], b["mean_loss"])
            for a, b in both
            if a["dataset_hash"] == b["dataset_hash"] and a["digest"] != b["digest"]
        ]
        gone, new = sum(b is None for _, b in rows), sum(a is None for a, _ in rows)
        relative = [
            abs(b - a) / max(abs(a), abs(b)) if a != b else 0.0
            for a, b in other
            if a is not None and b is not None
        ]
        every = (
            Change(*pair, "data", len(data), len(both)),
            Change(*pair, "numbers", len(other), len(both), max(relative, default=None)),
            Change(*pair, "gone", gone, len(both) + gone),
            Change(*pair, "new", new, len(both) + new),
        )
        found += [change for change in every if change.runs]
    return found


def pair_of(row: Any) -> Pair:
    """Dataset and learner of a row."""
    return row["dataset"], row["learner"]


@dataclass(frozen=True)
class Speed:
    """Speed of a learner on a dataset, relative to a calibration loop on the same machine.

    Attributes
    ----------
    dataset, learner : str
        Names of the dataset and the learner.
    probe : str
        Identifies the run that was timed.
    rows : int
        Number of its rounds that were timed.
    ratio : float
        Time of these rounds divided by the time of the calibration loop.
    expected : float or None
        Median ratio of earlier nightly runs since the accepted one; None if there are none.
    verdict : {"first", "same", "slower", "faster", "unclear"}
        The ratio compared with earlier ones.
    others : float
        Share of all cores that other processes took during the measurement.
    """

    dataset: str
    learner: str
    probe: str
    rows: int
    ratio: float
    expected: float | None = None
    verdict: str = FIRST
    others: float = 0.0

    def __str__(self) -> str:
        found = "timed for the first time"
        if self.expected is not None:
            found = f"{self.ratio / self.expected - 1:+.0%} time for the same rounds"
        if self.verdict == UNCLEAR:
            found += (
                f"; other processes took {self.others:.0%} of the machine, so this does not count"
            )
        return f"{self.learner} on {self.dataset}: {found}"


def band(ratios: Sequence[float]) -> tuple[float, float, float]:
    """Range of ratios that count as the same speed: its centre, lower end and upper end.

    The centre is the median of the earlier ratios. The half-width is four standard deviations,
    estimated from their median deviation, limited to between 15 % and 20 % of the centre.
    """
    centre = median(ratios)
    half = min(
        max(WIDTH * median(abs(ratio - centre) for ratio in ratios), FLOOR * centre), CAP * centre
    )
    return centre, centre - half, centre + half


def verdict_of(ratio: float, ratios: Sequence[float], others: float = 0.0) -> str:
    """Judge a ratio by those of earlier nightly runs: first, same, slower, faster or unclear.

    While other processes take more than a quarter of all cores, shared caches and dividers may cost
    a third of the speed. A first ratio is then unclear, and so is one outside the band whose
    deviation is at most half the centre.
    """
    if not ratios:
        return UNCLEAR if others > BUSY else FIRST
    centre, least, most = band(ratios)
    if others > BUSY and not least <= ratio <= most and abs(ratio - centre) <= BUSY_HALF * centre:
        return UNCLEAR
    return SLOWER if ratio > most else FASTER if ratio < least else "same"


def earlier_ratios(
    history: Sequence[dict[str, Any]],
    pair: Pair,
    probe: str,
    rows: int,
    host: str,
    calibration: int,
) -> list[float]:
    """Ratios in the history with which a new measurement can be compared, oldest first.

    They are of the accepted nightly run and later ones. Ratios judged slower or faster are left out
    unless they were accepted, and unclear ones always. At most the latest `REMEMBERED` are given.
    """
    same = [
        row
        for row in history
        if pair_of(row) == pair
        and (row["probe"], row["probe_rows"], row["host"], row["calibration"])
        == (probe, rows, host, calibration)
        and 0.0 < (row["ratio"] or 0.0) < math.inf
    ]
    last = max((k for k, row in enumerate(same) if row["accepted"]), default=0)
    counted = [
        row
        for row in same[last:]
        if row["speed"] in (FIRST, "same") or (row["accepted"] and row["speed"] != UNCLEAR)
    ]
    return [row["ratio"] for row in counted[-REMEMBERED:]]


def result_of(is_first: bool, found: Sequence[Change], speeds: Sequence[Speed]) -> str:
    """Overall result of a nightly run, from its changed numbers and its speeds."""
    if is_first:
        return FIRST
    verdicts = {speed.verdict for speed in speeds}
    if any(change.what != "new" for change in found):
        verdicts.add(CHANGED)
    return next((one for one in (CHANGED, SLOWER, FASTER) if one in verdicts), SAME)
