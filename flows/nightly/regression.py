"""Tonight's numbers and speeds against those that were accepted. Pure comparison: nothing is read
or written here.
"""

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
UNCLEAR = "unclear"  # of a speed: not as before, and the machine was busy with something else
BUSY, BUSY_HALF = 0.25, 0.5  # so much of all cores taken by other processes; and half the band then
FAILING = (CHANGED, SLOWER)  # of a night: exit status 1, and a failed state
FLOOR, CAP = 0.15, 0.20  # half the band, as a share of the expected ratio: at least, and at most
WIDTH = 4 * 1.4826  # times the median deviation: four standard deviations, if the noise were normal
REMEMBERED = 30  # nights that the band is made from

Pair = tuple[str, str]  # dataset, learner


@dataclass(frozen=True)
class Change:
    """What is not as in the accepted run, of one learner on one dataset: `runs` of `of` runs.
    `what` is "numbers", "data" (the dataset has other rows), "gone" (the accepted run had them) or
    "new" (it had not). `largest` is the largest relative change of a mean loss, None where there is
    none to compare.
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
    """What has changed from one table of numbers (`storage.nights.NUMBERS`) to the other, by
    dataset and learner.
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
    if before is None or after is None:
        return None
    return abs(after - before) / max(abs(before), abs(after)) if before != after else 0.0


@dataclass(frozen=True)
class Speed:
    """How fast a learner is on a dataset: `rows` rounds of the run `probe` take `ratio` times as
    long as the calibration loop. `expected` is that ratio in the nights since the accepted one,
    None if there are none; `others` the share of all cores that other processes took meanwhile;
    `verdict` first, same, slower, faster or unclear.
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
    """The expected ratio, and the least and the largest that are taken for the same speed: the
    median of earlier nights, give or take four standard deviations of theirs, though no less than
    15 % and no more than 20 %.
    """
    centre = median(ratios)
    half = min(
        max(WIDTH * median(abs(ratio - centre) for ratio in ratios), FLOOR * centre), CAP * centre
    )
    return centre, centre - half, centre + half


def verdict_of(ratio: float, ratios: Sequence[float], others: float = 0.0) -> str:
    """first, same, slower or faster: this ratio among those of earlier nights. Unclear while other
    processes take more than a quarter of the machine: if it is the first, or not the same though no
    more than half away. What cores share, caches and dividers, is worth a third then.
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
    """The ratios that this one can be compared with: of the accepted night and the later ones, on
    this machine, of the same rounds; without those that were found slower or faster, unless they
    were accepted, and without those that were unclear.
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
    """What the night came to."""
    if is_first:
        return FIRST
    if any(change.what != "new" for change in found):
        return CHANGED
    verdicts = {speed.verdict for speed in speeds}
    return SLOWER if SLOWER in verdicts else FASTER if FASTER in verdicts else SAME
