"""Queries of `koco results`, answered with one table for the screen, JSON, CSV and Arrow."""

from collections.abc import Sequence
from functools import partial

import pyarrow as pa

from flows.tables.filters import filtered
from flows.tables.tables import (
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


def answer(
    store: StorePath,
    sweep: str | None,
    conditions: Sequence[str],
    single: bool = False,
    best: bool = False,
    group: Sequence[str] = (),
    other: str | None = None,
) -> pa.Table:
    """Answer a query with a table.

    Parameters
    ----------
    store : path
        The store.
    sweep : str or None
        Only runs of this sweep.
    conditions : sequence of str
        Only runs that meet these conditions (`flows.tables.filters`).
    single : bool
        Show single runs instead of averages over a configuration's runs.
    best : bool
        Show only the best configuration of each stream and learner.
    group : sequence of str
        Average over runs that are equal in these columns.
    other : str or None
        A second sweep to compare with.

    Raises
    ------
    WrongInput
        For an unknown sweep or column, and for options that exclude each other.
    """
    if single + best + bool(group) > 1:
        raise WrongInput("--runs, --best and --group exclude each other; take one of them")
    if other is not None and (single or sweep is None):
        raise WrongInput(
            "--diff shows averages of the two sweeps --sweep NAME and --diff OTHER; name both,"
            " without --runs"
        )
    runs = filtered(runs_of(store, sweep), conditions)
    if single:
        return runs.select([column.name for column in RUNS])
    average = partial(groups_of, by=group) if group else best_of if best else summary_of
    rows = average(runs)
    if other is not None:
        rows = differences(
            rows,
            average(filtered(runs_of(store, other), conditions)),
            group or (BEST_OF if best else CONFIGURATION),
        )
    return (
        pa.Table.from_pylist(rows)
        if rows
        else pa.table({name: pa.array([], pa.null()) for name in SUMMARY})
    )
