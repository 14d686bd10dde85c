"""Comparison of a nightly run's numbers and speeds with accepted ones, without access to files."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

import pyarrow as pa

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
        where = f"{self.learner} on {self.dataset}"
        if self.what == "data":
            return (
                f"{where}: the dataset has other rows than in the accepted run ({self.runs:,} runs)"
            )
        if self.what == "gone":
            return f"{where}: {self.runs:,} of {self.of:,} runs of the accepted run are gone"
        if self.what == "new":
            return f"{where}: {self.runs:,} runs that the accepted run did not have"
        by = "" if self.largest is None else f", mean loss by up to {self.largest:.1e} of itself"
        return f"{where}: {self.runs:,} of {self.of:,} runs have other numbers{by}"


def changes(accepted: pa.Table, tonight: pa.Table) -> list[Change]:
    """List the differences between two tables of numbers, by dataset and learner.

    Both have the columns of `storage.nights.NUMBERS`.
    """
    before, after = _by_identity(accepted), _by_identity(tonight)
    pairs: dict[Pair, list[tuple[dict[str, Any] | None, dict[str, Any] | None]]] = defaultdict(list)
    for key in sorted({*before, *after}, key=repr):
        row = before.get(key) or after[key]
        pairs[row["dataset"], row["learner"]].append((before.get(key), after.get(key)))
    found: list[Change] = []
    for (dataset, learner), rows in sorted(pairs.items()):
        both = [(a, b) for a, b in rows if a and b]
        data = [a for a, b in both if a["dataset_hash"] != b["dataset_hash"]]
        other = [
            (a, b)
            for a, b in both
            if a["dataset_hash"] == b["dataset_hash"] and a["digest"] != b["digest"]
        ]
        gone, new = sum(b is None for _, b in rows), sum(a is None for a, _ in rows)
        relative = [
            r for a, b in other if (r := _relative(a["mean_loss"], b["mean_loss"])) is not None
        ]
        largest = max(relative, default=None)
        every = (
            Change(dataset, learner, "data", len(data), len(both)),
            Change(dataset, learner, "numbers", len(other), len(both), largest),
            Change(dataset, learner, "gone", gone, len(both) + gone),
            Change(dataset, learner, "new", new, len(both) + new),
        )
        found += [change for change in every if change.runs]
    return found


def _by_identity(numbers: pa.Table) -> dict[tuple[Any, ...], dict[str, Any]]:
    return {tuple(row[name] for name in IDENTITY): row for row in numbers.to_pylist()}


def _relative(before: float | None, after: float | None) -> float | None:
    """Relative change of a loss; None if one of the losses is missing."""
    if before is None or after is None:
        return None
    return abs(after - before) / max(abs(before), abs(after)) if before != after else 0.0


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
        where = f"{self.learner} on {self.dataset}"
        unclear = (
            f"; other processes took {self.others:.0%} of the machine, so it is not judged"
            if self.verdict == UNCLEAR
            else ""
        )
        if self.expected is None:
            return f"{where}: timed for the first time{unclear}"
        return f"{where}: {self.ratio / self.expected - 1:+.0%} time for the same rounds{unclear}"


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
    unless they were accepted, and unclear ones always.

    Parameters
    ----------
    history : sequence of dict
        Rows of the history, oldest first.
    pair : (str, str)
        Dataset and learner.
    probe : str
        Identifier of the run that was timed.
    rows : int
        Number of its rounds that were timed.
    host : str
        Name of this machine.
    calibration : int
        Version of the calibration loop.

    Returns
    -------
    list of float
        The latest ratios, at most `REMEMBERED`.
    """
    same = [
        row
        for row in history
        if (row["dataset"], row["learner"]) == pair
        and (row["probe"], row["probe_rows"], row["host"], row["calibration"])
        == (probe, rows, host, calibration)
        and row["ratio"] is not None
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
    if any(change.what != "new" for change in found):
        return CHANGED
    verdicts = {speed.verdict for speed in speeds}
    return SLOWER if SLOWER in verdicts else FASTER if FASTER in verdicts else SAME
