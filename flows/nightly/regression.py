"""Comparison of a nightly run's numbers and speeds with accepted ones, without access to files."""

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
FAILING = (CHANGED, SLOWER)  # results that give exit status 1 and a failed state
BAND = 1.25  # a median of ratios within this factor is the same speed
SHORTEST = 5e-3  # seconds of a run; shorter ones are not compared

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


def paired(
    accepted: pa.Table, tonight: pa.Table
) -> dict[Pair, list[tuple[dict[str, Any] | None, dict[str, Any] | None]]]:
    """Each run in the accepted night and tonight, by dataset and learner; None where it is not.

    Both tables have the columns of `storage.nights.NUMBERS`.
    """
    before, after = (
        {tuple(row[name] for name in IDENTITY): row for row in numbers.to_pylist()}
        for numbers in (accepted, tonight)
    )
    found = grouped(
        [(before.get(key), after.get(key)) for key in {**before, **after}],
        lambda rows: pair_of(rows[0] or rows[1]),
    )
    return dict(sorted(found.items()))


def changes(accepted: pa.Table, tonight: pa.Table) -> list[Change]:
    """List the differences between two tables of numbers, by dataset and learner."""
    found: list[Change] = []
    for pair, rows in paired(accepted, tonight).items():
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
    """Time that a learner takes on a dataset, relative to the accepted night on the same machine.

    Attributes
    ----------
    dataset, learner : str
        Names of the dataset and the learner.
    ratio : float
        Median, over the runs, of the run's seconds tonight over those in the accepted night.
    runs : int
        Number of runs that were compared.
    """

    dataset: str
    learner: str
    ratio: float
    runs: int

    @property
    def verdict(self) -> str:
        """Slower, faster or same."""
        return SLOWER if self.ratio > BAND else FASTER if self.ratio * BAND < 1.0 else "same"

    def __str__(self) -> str:
        return (
            f"{self.learner} on {self.dataset}: {self.verdict}, {self.ratio - 1:+.0%} of the"
            f" accepted seconds (median of {self.runs:,} runs)"
        )


def speeds(accepted: pa.Table, tonight: pa.Table) -> list[Speed]:
    """Speed of each learner on each dataset that has runs long enough, on the accepted machine."""
    found = []
    for pair, rows in paired(accepted, tonight).items():
        ratios = [
            after["seconds"] / before["seconds"]
            for before, after in rows
            if before
            and after
            and before["status"] == after["status"] == "ok"
            and before["host"] == after["host"]
            and min(before["seconds"], after["seconds"]) >= SHORTEST
        ]
        if ratios:
            found.append(Speed(*pair, median(ratios), len(ratios)))
    return found


def result_of(is_first: bool, found: Sequence[Change], speeds: Sequence[Speed]) -> str:
    """Overall result of a nightly run, from its changed numbers and its speeds."""
    if is_first:
        return FIRST
    verdicts = {speed.verdict for speed in speeds}
    if any(change.what != "new" for change in found):
        verdicts.add(CHANGED)
    return next((one for one in (CHANGED, SLOWER, FASTER) if one in verdicts), SAME)
