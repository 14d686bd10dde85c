"""Comparison of a nightly run's numbers and speeds with accepted ones, without access to files."""

from collections.abc import Sequence
from statistics import median
from typing import Any

import pyarrow as pa

from flows.scores.means import known_of, means
from flows.tables.tables import grouped
from koco_stream.io.files import content_hash
from storage.nights import IDENTITY

FIRST = "first"
SAME = "same numbers"
CHANGED = "changed numbers"
SLOWER = "slower"
FASTER = "faster"
RESULTS = {"first": FIRST, "changed": CHANGED, "slower": SLOWER, "faster": FASTER}
FAILING = (CHANGED, SLOWER)  # results that give exit status 1 and a failed state
BAND = 1.25  # a median of ratios within this factor is the same speed
SHORTEST, FEWEST = 0.05, 3  # seconds of a run, and runs: less than that is noise

Row = dict[str, Any]


def compared(accepted: pa.Table, tonight: pa.Table) -> list[Row]:
    """Compare two tables of numbers: a row of the history for each dataset and learner.

    Both have the columns of `storage.nights.NUMBERS`. A row also has `what`, sentences on what has
    changed. Without accepted numbers everything is first.
    """
    is_first = not accepted.num_rows
    before, after = (
        {tuple(row[name] for name in IDENTITY): row for row in table.to_pylist()}
        for table in (tonight if is_first else accepted, tonight)
    )
    every = {**before, **after}
    pairs = grouped(every, lambda key: (every[key]["dataset"], every[key]["learner"]))
    return [
        _row(*pair, [(before.get(key), after.get(key)) for key in keys], is_first)
        for pair, keys in sorted(pairs.items())
    ]


def _row(
    dataset: str, learner: str, runs: Sequence[tuple[Row | None, Row | None]], is_first: bool
) -> Row:
    """The row of a learner on a dataset; `runs` are each run in the accepted night and tonight."""
    both = [(a, b) for a, b in runs if a and b]
    mine = [b for _, b in runs if b]
    gone = len(runs) - len(mine)
    new = len(mine) - len(both)
    data = sum(a["dataset_hash"] != b["dataset_hash"] for a, b in both)
    other = [
        (a["mean_loss"], b["mean_loss"])
        for a, b in both
        if a["dataset_hash"] == b["dataset_hash"] and a["digest"] != b["digest"]
    ]
    largest = max(
        (abs(b - a) / (max(abs(a), abs(b)) or 1.0) for a, b in other if None not in (a, b)),
        default=None,
    )
    by = "" if largest is None else f", mean loss by up to {largest:.1e} of itself"
    ratio = None if is_first else _ratio(both)
    verdict = ratio and (SLOWER if ratio > BAND else FASTER if ratio * BAND < 1.0 else "same")
    sentences = {
        f"{len(other):,} of {len(both):,} runs have changed numbers{by}": other,
        f"the dataset has other rows than in the accepted run ({data:,} runs)": data,
        f"{gone:,} of {len(both) + gone:,} runs of the accepted run are gone": gone,
        f"{new:,} runs that the accepted run did not have": new,
        f"{verdict}, {(ratio or 1.0) - 1:+.0%} of the accepted seconds": verdict
        in (SLOWER, FASTER),
    }
    changed = len(other) + data + gone
    numbers = {"first": is_first, "changed": changed, "new": new, "same": True}
    losses = [row["mean_loss"] for row in mine if row["mean_loss"] is not None]
    return {
        "dataset": dataset,
        "learner": learner,
        "runs": len(mine),
        "digest": content_hash([row["digest"] for row in mine]),
        "mean_loss": known_of(means([losses]))[0],
        "changed": changed,
        "largest_change": largest,
        "numbers": next(name for name, holds in numbers.items() if holds),
        "ratio": ratio,
        "speed": verdict,
        "scan_seconds": sum(row["seconds"] or 0.0 for row in mine),
        "what": [f"{learner} on {dataset}: {text}" for text, holds in sentences.items() if holds],
    }


def _ratio(runs: Sequence[tuple[Row, Row]]) -> float | None:
    """Median of the runs' seconds tonight over those accepted, of long runs on one machine."""
    ratios = [
        b["seconds"] / a["seconds"]
        for a, b in runs
        if a["status"] == b["status"] == "ok"
        and a["host"] == b["host"]
        and min(a["seconds"] or 0.0, b["seconds"] or 0.0) >= SHORTEST
    ]
    return median(ratios) if len(ratios) >= FEWEST else None


def result_of(rows: Sequence[Row]) -> str:
    """Overall result of a nightly run with these rows."""
    verdicts = {verdict for row in rows for verdict in (row["numbers"], row["speed"])}
    return next((RESULTS[one] for one in RESULTS if one in verdicts), SAME)
