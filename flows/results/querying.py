"""Queries of `koco results`, answered with one table for the screen, JSON, CSV and Arrow."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import pyarrow as pa

from flows.results.filters import filtered
from flows.results.tables import (
    BEST_OF,
    CONFIGURATION,
    SUMMARY,
    best_of,
    differences,
    groups_of,
    runs_of,
    summary_of,
)
from koco_stream.errors import WrongInput
from koco_stream.io.paths import StorePath
from koco_stream.runs.schemas import RUNS


class Query(NamedTuple):
    """Which runs `koco results` shows, and how they are averaged.

    Attributes
    ----------
    sweep : str or None
        Only runs of this sweep.
    conditions : sequence of str
        Only runs that meet these conditions (`flows.results.filters`).
    single : bool
        Show single runs instead of averages over a configuration's runs.
    best : bool
        Show only the best configuration of each stream and learner.
    group : sequence of str
        Average over runs that are equal in these columns.
    other : str or None
        A second sweep to compare with.
    """

    sweep: str | None = None
    conditions: Sequence[str] = ()
    single: bool = False
    best: bool = False
    group: Sequence[str] = ()
    other: str | None = None


def answer(store: StorePath, query: Query) -> pa.Table:
    """Answer a query with a table.

    Raises `WrongInput` for an unknown sweep or column, and for options that exclude each other.
    """
    if query.single + query.best + bool(query.group) > 1:
        raise WrongInput("--runs, --best and --group do not go together; take one of them")
    if query.other is not None and (query.single or query.sweep is None):
        raise WrongInput(
            "--diff shows averages of the two sweeps --sweep NAME and --diff OTHER; name both,"
            " without --runs"
        )
    if query.single:
        return filtered(runs_of(store, query.sweep), query.conditions).select(
            [column.name for column in RUNS]
        )
    rows = _averaged(store, query.sweep, query)
    if query.other is not None:
        by = query.group or (BEST_OF if query.best else CONFIGURATION)
        rows = differences(rows, _averaged(store, query.other, query), by)
    return (
        pa.Table.from_pylist(rows)
        if rows
        else pa.table({name: pa.array([], pa.null()) for name in SUMMARY})
    )


def _averaged(store: StorePath, sweep: str | None, query: Query) -> list[dict[str, Any]]:
    runs = filtered(runs_of(store, sweep), query.conditions)
    if query.group:
        return groups_of(runs, query.group)
    return best_of(runs) if query.best else summary_of(runs)
