"""The averages of two sweeps side by side, joined by what is equal in both."""

import json
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import partial
from typing import Any

from flows.scores.means import difference
from flows.tables.tables import STREAM, grouped
from koco_stream.io.files import json_text

Row = dict[str, Any]
Values = Mapping[str, Hashable]

# what is compared, of those of them that the averages have
COMPARED = ("params", "n_runs", "mean_loss_mean", "error_rate_mean", "seconds_mean")


def differences_of_best(mine: Sequence[Row], others: Sequence[Row]) -> list[Row]:
    """Join the best configurations of two sweeps by stream and learner.

    As in `differences_of_configurations`, what has changed of the streams does not separate them.
    """
    return _joined(mine, others, _stream_of, ())


def differences_of_configurations(mine: Sequence[Row], others: Sequence[Row]) -> list[Row]:
    """Join the averages of two sweeps by stream, learner and parameters.

    What has one value in all rows of a dataset and learner in one sweep, and another value in the
    other, does not separate them: they are joined by the rest, and the column `changed` has both
    values. It is None where nothing has changed, and in rows of one side only.
    """

    def all_of(row: Row) -> Values:
        params = json.loads(row["params"])
        return _stream_of(row) | {name: _plain(value) for name, value in params.items()}

    return _joined(mine, others, all_of, ("params",))


def _joined(
    mine: Sequence[Row],
    others: Sequence[Row],
    values_of: Callable[[Row], Values],
    same: Sequence[str],
) -> list[Row]:
    """Join rows by dataset, learner, and those of their values that separate rows of one side.

    The columns `same` are those of the first side that has the row.
    """
    shown = (*STREAM, "learner", *same)
    sides = [grouped(rows, lambda row: (row["dataset"], row["learner"])) for rows in (mine, others)]
    found = []
    for key in dict.fromkeys([*sides[0], *sides[1]]):
        ours, theirs = (side.get(key, []) for side in sides)
        changed = _changed([values_of(row) for row in ours], [values_of(row) for row in theirs])

        if any(
            len({_separating(values_of, changed, row) for row in rows}) < len(rows)
            for rows in (ours, theirs)
        ):
            changed = []  # without it rows of one side would be the same
        for a, b in _pairs(ours, theirs, partial(_separating, values_of, changed)):
            words = [
                f"{name}={_text(one)} -> {_text(other)}"
                for name in (changed if a and b else ())
                for one, other in [(values_of(a).get(name), values_of(b).get(name))]
                if one != other
            ]
            row = {name: (a or b)[name] for name in shown} | {"changed": ", ".join(words) or None}
            found.append(row | _beside(a, b, shown))
    return found


def _separating(values_of: Callable[[Row], Values], changed: Sequence[str], row: Row) -> Hashable:
    """The values of a row that have not changed between the sides."""
    return frozenset((name, value) for name, value in values_of(row).items() if name not in changed)


def _changed(mine: Sequence[Values], others: Sequence[Values]) -> list[str]:
    """Names of the values that are the same within each side, and not between the sides.

    A value that a row lacks, because it does not matter there, counts for neither.
    """
    names = dict.fromkeys(name for values in (*mine, *others) for name in values)
    found = []
    for name in names:
        here, there = (
            {values[name] for values in side if values.get(name) is not None}
            for side in (mine, others)
        )
        if here != there and len(here) < 2 and len(there) < 2:
            found.append(name)
    return found


def _pairs(
    mine: Sequence[Row], others: Sequence[Row], key: Callable[[Row], Hashable]
) -> list[tuple[Row, Row]]:
    """The rows of both sides with the same key; an empty row for a side that has none."""
    sides = [{key(row): row for row in rows} for rows in (mine, others)]
    keys = dict.fromkeys([*sides[0], *sides[1]])
    return [(sides[0].get(one, {}), sides[1].get(one, {})) for one in keys]


def _beside(a: Row, b: Row, but: Sequence[str]) -> Row:
    """The columns `COMPARED` of two rows side by side, and the difference of their mean losses."""
    row: Row = {}
    for name in COMPARED:
        if name not in but and (name in a or name in b):
            row |= {name: a.get(name), f"{name}_other": b.get(name)}
        if name == "mean_loss_mean":
            mine, other = a.get(name), b.get(name)
            row["difference"] = None if mine is None or other is None else difference(other, mine)
    return row


def _stream_of(row: Row) -> dict[str, Hashable]:
    return {name: row[name] for name in STREAM}


def _plain(value: Any) -> Hashable:
    """A parameter's value, or its JSON if it is a list or a table."""
    return json_text(value, sort_keys=True) if isinstance(value, list | dict) else value


def _text(value: Hashable) -> str:
    if value is None:
        return "none"
    return f"{value:.12g}" if isinstance(value, float) else str(value)
