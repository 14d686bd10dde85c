"""Queries of `koco results`, answered with one table for the screen, JSON, CSV and Arrow."""

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any, NamedTuple

import pyarrow as pa

from flows.tables.filters import filtered
from flows.tables.tables import (
    BEST,
    BEST_OF,
    CONFIGURATION,
    SUMMARY,
    best_of,
    best_table,
    differences,
    groups_of,
    not_better,
    rows_of,
    runs_of,
    summary_of,
    summary_table,
)
from koco_stream.errors import WrongInput
from koco_stream.io.paths import StorePath
from koco_stream.runs.schemas import RUNS


class Answer(NamedTuple):
    """The table that answers a query, and sentences on what a reader should see in it."""

    table: pa.Table
    remarks: list[str]


def answer(
    store: StorePath,
    sweep: str | None,
    conditions: Sequence[str],
    single: bool = False,
    best: bool = False,
    group: Sequence[str] = (),
    other: str | None = None,
) -> Answer:
    """Answer a query with a table.

    Its remarks name the learners whose best configuration does not beat `Constant`; single runs,
    groups and differences have none.

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
        return Answer(runs.select([column.name for column in RUNS]), [])
    if not group and other is None:
        summary = summary_table(runs)
        shown, columns = (best_table(summary), BEST) if best else (summary, SUMMARY)
        return Answer(_as_table(rows_of(shown.select(columns))), not_better(summary))
    average = partial(groups_of, by=group) if group else best_of if best else summary_of
    rows = average(runs)
    if other is not None:
        rows = differences(
            rows,
            average(filtered(runs_of(store, other), conditions)),
            group or (BEST_OF if best else CONFIGURATION),
        )
    return Answer(_as_table(rows), [])


def _as_table(rows: Iterable[dict[str, Any]]) -> pa.Table:
    found = list(rows)
    return (
        pa.Table.from_pylist(found)
        if found
        else pa.table({name: pa.array([], pa.null()) for name in SUMMARY})
    )
