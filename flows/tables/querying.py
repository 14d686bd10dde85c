"""Queries of `koco results`, answered with one table for the screen, JSON, CSV and Arrow."""

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any, NamedTuple

import pyarrow as pa

from flows.tables.filters import filtered, unmet
from flows.tables.tables import (
    CONFIGURATION,
    ONE_A_LEARNER,
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
from koco_stream.errors import WrongInput, nearest
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
    everything = runs_of(store, sweep)
    runs = filtered(everything, conditions)
    if single:
        columns = [column.name for column in RUNS]
        return Answer(runs.select(columns), [] if runs.num_rows else unmet(everything, conditions))
    if not group and other is None:
        summary = summary_table(runs)
        shown = best_table(summary, ONE_A_LEARNER) if best else summary
        remarks = not_better(summary) if runs.num_rows else unmet(everything, conditions)
        return Answer(_as_table(rows_of(shown.select(SUMMARY))), remarks)
    average = (
        partial(groups_of, by=group)
        if group
        else partial(best_of, by=ONE_A_LEARNER)
        if best
        else summary_of
    )
    rows = average(runs)
    if other is not None:
        rows = differences(
            rows,
            average(filtered(runs_of(store, other), conditions)),
            group or (ONE_A_LEARNER if best else CONFIGURATION),
        )
    return Answer(_as_table(rows), [])


def arranged(
    table: pa.Table, columns: Sequence[str] = (), order: str | None = None, limit: int | None = None
) -> pa.Table:
    """Some columns of a table, sorted by a column (`-COLUMN`: the largest first), and cut.

    Missing values come last. Raises `WrongInput` for a column that the table does not have.
    """
    for name in (*columns, *([order.removeprefix("-")] if order else [])):
        if name not in table.column_names:
            near = nearest(name, table.column_names)
            raise WrongInput(
                f"there is no column {name!r}{near}; the columns are"
                f" {', '.join(table.column_names)}"
            )
    if order:
        down = "descending" if order.startswith("-") else "ascending"
        table = table.sort_by([(order.removeprefix("-"), down)])
    if limit is not None:
        table = table.slice(0, limit)
    return table.select(list(columns)) if columns else table


def _as_table(rows: Iterable[dict[str, Any]]) -> pa.Table:
    found = list(rows)
    return (
        pa.Table.from_pylist(found)
        if found
        else pa.table({name: pa.array([], pa.null()) for name in SUMMARY})
    )
