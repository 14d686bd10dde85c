"""What differs between rows that were kept and rows computed now: to the bit, or beyond what other
versions or another processor may change.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from koco_stream.metrics import METRICS


def differences(
    kept: Mapping[Any, Any], found: Mapping[Any, Any], columns: Iterable[Any], exact: bool = True
) -> Iterator[tuple[str, Any, Any]]:
    """The column, or what is nested in it, with what was kept there and what is found."""
    for name in columns:
        one, other = kept.get(name), found.get(name)
        if isinstance(one, list) and isinstance(other, list):
            one, other = dict(enumerate(one, 1)), dict(enumerate(other, 1))
        if isinstance(one, dict) and isinstance(other, dict):
            for inner, *values in differences(one, other, one | other, exact):
                yield f"{name}.{inner}", *values
        elif repr(one) != repr(other) and (exact or not _near(name, one, other, kept)):
            yield name, one, other


# In a row (of a run, a point of a curve, a window) of n rounds, these may be others elsewhere:
# counts by 2, or n/10,000 if that is more, as a prediction close to 0 may fall on its other side;
# error rates by that over n, and metrics that end at 1 by ten times that; the regret by 1e-6 of the
# cumulative loss, of which it is a difference; all other numbers by 1e-6 of themselves; and the
# text of an error.
def _near(name: str, kept: Any, found: Any, row: Mapping[str, Any]) -> bool:
    if {type(kept), type(found)} - {int, float}:
        return name == "error" and None not in (kept, found)
    rounds = row.get("rounds") or row.get("t") or row.get("last", 0) - row.get("first", 0) + 1
    few = max(2, rounds // 10_000)
    allowed = {
        **dict.fromkeys(("mistakes", "dictionary_size", "doubtful_rounds"), few),
        **{one.name: 10 * few / rounds for one in METRICS.values() if one.high == 1.0},
        "error_rate": few / rounds,
        "regret": 1e-6 * rounds * (row.get("mean_loss") or 0.0),
    }
    return bool(
        abs(kept - found) <= allowed.get(name, 1e-6 * max(abs(kept), abs(found))) < float("inf")
    )


def of_rows(
    kept: Iterable[Mapping[str, Any]],
    found: Iterable[Mapping[str, Any]],
    key: Sequence[str],
    columns: Sequence[str],
) -> dict[tuple[Any, ...], list[tuple[str, Any, Any]]]:
    """The differences of the rows of each key. A row that is not there has no values."""
    before, now = (
        {tuple(row[name] for name in key): row for row in rows} for rows in (kept, found)
    )
    return {
        of: list(differences(before.get(of, {}), now.get(of, {}), columns)) for of in before | now
    }
