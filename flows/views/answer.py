"""Queries of `koco results`, answered with one table for the screen, JSON, CSV and Arrow."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import pyarrow as pa

from flows.scores.constant import not_better_words
from flows.scores.means import differences_of
from flows.views.views import IN_ORDER, NAMES, Views, as_runs, is_one_of, quoted
from koco_stream.errors import WrongInput, nearest
from koco_stream.io.paths import AnyPath, StorePath
from koco_stream.metrics import METRICS

STREAM = ("dataset", "dataset_hash", "order", "window_rows", "max_rows")
AVERAGES = (
    *("n_runs", "mean_loss_mean", "mean_loss_std", "error_rate_mean", "error_rate_std"),
    "seconds_mean",
)
SUMMARY = (*STREAM, "learner", "params", *AVERAGES, "beats_constant")
BEST = (*SUMMARY, "sketch_size")
RESULTS = ("dataset", "learner", "params", "n_runs", "mean_loss_mean", "mean_loss_std")
# what a comparison of two sweeps shows beside each other
COMPARED = ("params", *(name for name in AVERAGES if not name.endswith("_std")))
NOT_WHOLE = """
    SELECT stream, learner, sum(repeats)::BIGINT AS runs, sum(diverged)::BIGINT AS diverged,
           sum(failed)::BIGINT AS failed
    FROM configurations WHERE NOT rung GROUP BY ALL HAVING NOT bool_or(whole) ORDER BY ALL"""


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


def answer(
    store: StorePath,
    *,
    sweep: str | None = None,
    other: str | None = None,
    learners: Sequence[str] = (),
    datasets: Sequence[str] = (),
    conditions: Sequence[str] = (),
    single: bool = False,
    best: bool = False,
    sort: str | None = None,
    limit: int | None = None,
) -> Answer:
    """Answer a query with a table.

    Its remarks name the learners whose best configuration does not beat `Constant`; single runs
    and differences have none.

    Parameters
    ----------
    store : StorePath
        The store.
    sweep : str or None
        Only runs of this sweep.
    other : str or None
        A second sweep to compare with.
    learners, datasets : sequence of str
        Only runs of one of these.
    conditions : sequence of str
        Only runs that meet all of these conditions, in SQL.
    single : bool
        Single runs instead of averages over a configuration's runs.
    best : bool
        Only the best configuration of each stream and learner.
    sort : str or None
        The column, or parameter, by which rows are sorted, the smallest first.
    limit : int or None
        At most so many rows.

    Raises
    ------
    WrongInput
        For an unknown sweep or column, a filter that no run meets, and for options that exclude
        each other.
    """
    if single and best:
        raise WrongInput("--runs and --best cannot be combined; choose one")
    if other is not None and (single or sweep is None):
        raise WrongInput(
            "--diff compares averages of two sweeps; give both --sweep NAME and --diff OTHER, and"
            " leave out --runs"
        )
    sweeps = [name for name in (sweep, other) if name is not None]
    views = Views(store, sweeps, columns=None if single else conditions)
    named = [*_named(views, "learner", learners), *_named(views, "dataset", datasets)]
    views.select([*named, *conditions])
    columns: Sequence[str] = SUMMARY
    if single:
        table, columns = views.table(f"FROM selected ORDER BY {IN_ORDER}"), NAMES
    elif other is not None:
        table = _beside(views, sweeps, best)
        columns = table.column_names
    elif best:
        table, columns = views.table("FROM best"), BEST
    else:
        table = views.table("FROM configurations WHERE n_runs > 0")
    by = f"{_sorting(views, table, sort)}, place" if sort else "place"
    views.register("answered", table.append_column("place", pa.array(range(len(table)))))
    most = len(table) if limit is None else limit
    shown = views.table(f"SELECT {quoted(columns)} FROM answered ORDER BY {by} LIMIT {most}")
    plain = single or other is not None
    return Answer(
        as_runs(shown) if single else shown,
        [] if plain else _remarks(views, best),
        len(table) - len(shown),
        views.table(
            "SELECT DISTINCT learner, params"
            f" FROM {'selected' if plain else 'configurations'} ORDER BY ALL"
        ),
    )


def _named(views: Views, name: str, wanted: Sequence[str]) -> list[str]:
    """The condition that a column is one of the wanted values.

    Raises `WrongInput` for a value that no run has, if there are runs.
    """
    if not wanted:
        return []
    found = views.table(f"SELECT DISTINCT {name} FROM runs").column(name).to_pylist()
    for value in wanted if found else ():
        if value not in found:
            raise WrongInput(f"--{name} {value}: no run matches{nearest(value, found)}")
    return [is_one_of(name, wanted)]


def _sorting(views: Views, table: pa.Table, name: str) -> str:
    """What SQL sorts by for a column, or a parameter. Raises `WrongInput` if it is neither."""
    if name in table.column_names:
        return f'"{name}" NULLS LAST'
    known = views.table("SELECT DISTINCT unnest(json_keys(params)) AS name FROM selected")
    names = known.column("name").to_pylist()
    if "params" not in table.column_names or name not in names:
        there = [*table.column_names, *names]
        raise WrongInput(f"the table has no column {name!r}{nearest(name, there)}")
    value = "params->>'{}'".format(name.replace("'", "''"))
    return f"TRY_CAST({value} AS DOUBLE) NULLS LAST, {value} NULLS LAST"


def _beside(views: Views, sweeps: Sequence[str], best: bool) -> pa.Table:
    """The averages of two sweeps side by side, of the same streams, learners and parameters, or of
    the best ones. `difference` is the other one's mean loss minus the first one's.
    """
    view, same = ("best", "") if best else ("configurations", ", params")
    for name, sweep in zip(("mine", "others"), sweeps, strict=True):
        views.choose([sweep])
        views.register(name, views.table(f"FROM {view} WHERE n_runs > 0"))
    pairs = [f"a.{name}, b.{name} AS {name}_other" for name in COMPARED if name not in same]
    shared = [f'coalesce(a."{name}", b."{name}") AS "{name}"' for name in STREAM]
    table = views.table(
        f"SELECT {', '.join(shared)}, learner{same}, b.dataset_hash AS dataset_hash_other,"
        f" {', '.join(pairs)} FROM mine a FULL JOIN others b USING (stream, learner{same})"
        f" ORDER BY a.learner IS NULL, stream, a.merit, b.merit, learner{same}"
    )
    one, other = (table.column(f"mean_loss_mean{end}").to_numpy() for end in ("_other", ""))
    return table.append_column("difference", differences_of(one, other))


def _remarks(views: Views, best: bool) -> list[str]:
    """Sentences on what a table of averages does not show."""
    halving = "SELECT sum(repeats)::INT AS n FROM configurations WHERE rung"
    ends = "SELECT status, count(*) AS n FROM selected WHERE status <> 'ok' GROUP BY 1 ORDER BY 1"
    return [
        *(
            f"{row['n']:,} runs to the rungs of the halving are left out; without --best they are"
            " listed"
            for row in views.rows(halving)
            if best and row["n"]
        ),
        *(
            f"{row['n']:,} runs {row['status']} and are not averaged;"
            f" --runs --where \"status = '{row['status']}'\" has them"
            for row in views.rows(ends)
        ),
        *(
            f"{row['learner']} has no best on {row['stream']}: of its {row['runs']:,} runs"
            f" {row['diverged']:,} diverged and {row['failed']:,} failed, some of each"
            " configuration"
            for row in views.rows(NOT_WHOLE)
            if row["diverged"] + row["failed"]
        ),
        *(
            not_better_words(*row.values())
            for row in views.rows(
                "SELECT learner, stream, mean_loss_mean, error_rate_mean, constant_mean_loss_mean,"
                " constant_error_rate_mean FROM best WHERE NOT beats_constant"
            )
        ),
    ]


def best_of(views: Views) -> pa.Table:
    """The view `best` in the columns `BEST`, with the means of metrics that are measured."""
    found = views.table("FROM best")
    metrics = [name for name in METRICS if found.column(f"{name}_mean").null_count < len(found)]
    return found.select([*BEST, *(f"{name}_mean" for name in metrics)])


def results_of(store: AnyPath, sweep: str) -> list[dict[str, Any]]:
    """The best configurations of a sweep in the few columns of `RESULTS`."""
    return Views(store, [sweep]).rows(f"SELECT {quoted(RESULTS)} FROM best")
