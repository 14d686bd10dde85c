"""Queries of `koco results`, answered with one table for the screen, JSON, CSV and Arrow."""

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from flows.tables.decisions import whole_runs
from flows.tables.differences import differences_of_best, differences_of_configurations
from flows.tables.filters import found
from flows.tables.sweep_runs import of_sweep, runs_of, sweep_note
from flows.tables.tables import (
    BEST,
    SUMMARY,
    best_of,
    best_table,
    not_better,
    rows_of,
    summary_of,
    summary_table,
)
from koco_stream.errors import WrongInput, nearest
from koco_stream.io.files import json_text
from koco_stream.io.paths import StorePath
from koco_stream.runs.schemas import RUNS


@dataclass(frozen=True)
class Query:
    """What `koco results` is asked.

    Attributes
    ----------
    sweep : str or None
        Only runs of this sweep.
    learners, datasets, conditions : sequence of str
        Only runs that meet these (`flows.tables.filters`).
    single : bool
        Single runs instead of averages over a configuration's runs.
    best : bool
        Only the best configuration of each stream and learner.
    other : str or None
        A second sweep to compare with.
    sort : str or None
        The column, or parameter, by which rows are sorted, the smallest first.
    limit : int or None
        At most so many rows.
    """

    sweep: str | None = None
    learners: Sequence[str] = ()
    datasets: Sequence[str] = ()
    conditions: Sequence[str] = ()
    single: bool = False
    best: bool = False
    other: str | None = None
    sort: str | None = None
    limit: int | None = None


class Answer(NamedTuple):
    """The table that answers a query.

    Attributes
    ----------
    table : pyarrow.Table
        The rows and columns that were asked for.
    remarks : list of str
        Sentences on what a reader should see in it.
    more : int
        Rows that the limit leaves out.
    configurations : pyarrow.Table
        The columns `learner` and `params` of all runs that meet the filters, each pair once.
    """

    table: pa.Table
    remarks: list[str]
    more: int
    configurations: pa.Table


def answer(store: StorePath, query: Query) -> Answer:
    """Answer a query with a table.

    Its remarks name the learners whose best configuration does not beat `Constant`; single runs
    and differences have none.

    Raises
    ------
    WrongInput
        For an unknown sweep or column, a filter that no run meets, and for options that exclude
        each other.
    """
    _check(query)
    runs = _runs_of_both(store, query)
    runs = found(runs, query.learners, query.datasets, query.conditions)
    table, columns, remarks = _answered(store, query, runs)
    if query.sort is not None and table.num_rows:
        # missing values come last, and rows that are equal keep their order
        by = with_column(table, query.sort)
        table = table.take(pc.sort_indices(by, [(query.sort, "ascending")]))
    more = 0 if query.limit is None else max(table.num_rows - query.limit, 0)
    table = table.slice(0, table.num_rows - more)
    configurations = runs.select(["learner", "params"]).group_by(["learner", "params"])
    return Answer(table.select(columns), remarks, more, configurations.aggregate([]))


def with_column(table: pa.Table, name: str) -> pa.Table:
    """A table that has the column `name`, which may be a parameter in its `params`.

    Raises `WrongInput` for a name that is neither.
    """
    if name in table.column_names:
        return table
    texts = table.column("params").to_pylist() if "params" in table.column_names else []
    params = [json.loads(text) if text else {} for text in texts]
    known = list(dict.fromkeys(name for one in params for name in one))
    if name not in known:
        there = [*table.column_names, *known]
        raise WrongInput(f"the table has no column {name!r}{nearest(name, there)}")
    values = [one.get(name) for one in params]
    kinds = {type(value) for value in values if value is not None}
    if kinds == {int, float}:
        values = [None if value is None else float(value) for value in values]
    elif len(kinds) > 1 or kinds & {list, dict}:  # a column has one type
        values = [value if value is None else json_text(value) for value in values]
    return table.append_column(name, pa.array(values))


def _check(query: Query) -> None:
    """Raise `WrongInput` for options that exclude each other."""
    if query.single and query.best:
        raise WrongInput("--runs and --best cannot be combined; choose one")
    if query.other is not None and (query.single or query.sweep is None):
        raise WrongInput(
            "--diff compares averages of two sweeps; give both --sweep NAME and --diff OTHER, and"
            " leave out --runs"
        )


def _runs_of_both(store: StorePath, query: Query) -> pa.Table:
    """The runs of the sweep, and of the one that it is compared with."""
    if query.other is None:
        return runs_of(store, query.sweep)
    notes = [sweep_note(store, name) for name in (query.other, str(query.sweep))]
    both = {
        "run_ids": [run_id for note in notes for run_id in note["run_ids"]],
        "datasets": {key: name for note in notes for key, name in note["datasets"].items()},
    }
    return of_sweep(runs_of(store, None), both)


def _answered(
    store: StorePath, query: Query, runs: pa.Table
) -> tuple[pa.Table, Sequence[str], list[str]]:
    """The whole table, the columns of it that are shown if none are named, and its remarks."""
    if query.single:
        return runs, [column.name for column in RUNS], []
    if query.other is not None:
        notes = (sweep_note(store, name) for name in (str(query.sweep), query.other))
        mine, others = (of_sweep(runs, {**note, "datasets": {}}) for note in notes)
        joined = (
            differences_of_best(best_of(mine), best_of(others))
            if query.best
            else differences_of_configurations(summary_of(mine), summary_of(others))
        )
        table = _as_table(joined)
        return table, table.column_names, []
    # to the ends of their streams, unless the query asks for a length
    by_rounds = any(condition.startswith("max_rows") for condition in query.conditions)
    whole = whole_runs(store, query.sweep, runs) if query.best and not by_rounds else runs
    summary = summary_table(whole)
    shown, columns = (best_table(summary), BEST) if query.best else (summary, SUMMARY)
    left = runs.num_rows - whole.num_rows
    rungs = [f"{left:,} runs to the rungs of the halving are left out; --where max_rows=N has them"]
    ended = [
        f"{count:,} runs {status} and are not averaged; --runs --where status={status} has them"
        for status, count in sorted(Counter(whole.column("status").to_pylist()).items())
        if status != "ok"
    ]
    said = [*rungs * (left > 0), *ended, *not_better(summary)]
    return _as_table(rows_of(shown), columns), columns, said


def _as_table(rows: Iterable[dict[str, Any]], columns: Sequence[str] = SUMMARY) -> pa.Table:
    """Rows as a table; without any, it has these columns."""
    found = list(rows)
    return (
        pa.Table.from_pylist(found)
        if found
        else pa.table({name: pa.array([], pa.null()) for name in columns})
    )
