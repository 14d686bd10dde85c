"""Queries of `koco results`, answered with one table for the screen, JSON, CSV and Arrow."""

import json
from collections import defaultdict
from collections.abc import Sequence
from itertools import chain
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from flows.scores import differences_of
from flows.tables.parameters import params_text, sort_key, telling, varied
from flows.tables.text import grouped, laid_out
from flows.views.views import IN_ORDER, Views, quoted, runs_of
from koco_stream.errors import WrongInput, nearest, refuse_first
from koco_stream.io.paths import AnyPath, StorePath
from koco_stream.metrics import METRICS
from koco_stream.streams.stream import AS_STORED

STREAM = ("dataset", "dataset_hash", "order", "window_rows", "max_rows")
SUMMARY = (
    *STREAM,
    "learner",
    "params",
    "n_runs",
    "mean_loss_mean",
    "mean_loss_std",
    "error_rate_mean",
    "error_rate_std",
    "seconds_mean",
    "beats_constant",
)
BEST = (*SUMMARY, "sketch_size")
# what a comparison of two sweeps shows beside each other, what matters least last
COMPARED = ("mean_loss_mean", "params", "error_rate_mean", "n_runs", "seconds_mean")
NOT_WHOLE = """
    SELECT stream, learner, sum(repeats)::BIGINT AS runs, sum(diverged)::BIGINT AS diverged,
           sum(failed)::BIGINT AS failed, sum(stopped)::BIGINT AS stopped
    FROM configurations WHERE NOT rung GROUP BY ALL HAVING NOT bool_or(whole) ORDER BY ALL"""
MOST = 50  # rows of a table in Prefect
# of single runs on a terminal
SINGLE = (
    "dataset",
    "class_name",
    "multiclass",
    "order",
    "order_seed",
    "window_rows",
    "max_rows",
    "learner",
    "params",
    "learner_seed",
    "status",
    "error",
    "mean_loss",
    "error_rate",
    *METRICS,
    "seconds",
)
# columns that are left out where all rows have the same value
SAME = {*SINGLE[1 : SINGLE.index("learner")], "learner_seed", "status", "n_runs", "n_runs_other"}


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
) -> tuple[Views, pa.Table]:
    refuse_first(
        [
            (single and best, "--runs and --best cannot be combined; choose one"),
            (
                other is not None and (single or sweep is None),
                "--diff compares averages of two sweeps; give both --sweep NAME and --diff OTHER,"
                " and leave out --runs",
            ),
        ]
    )
    sweeps = [name for name in (sweep, other) if name is not None]
    views = Views(store, sweeps)
    views.select(
        [*named(views, "learner", learners), *named(views, "dataset", datasets), *conditions]
    )
    if single:
        names_of_classes = views.table(
            f"SELECT class_name FROM selected ORDER BY {IN_ORDER}"
        ).column("class_name")
        table = runs_of(views, "selected").append_column("class_name", names_of_classes)
    elif other is not None:
        table = _beside(views, sweeps, best)
    else:
        columns, rows = (BEST, "best") if best else (SUMMARY, "configurations WHERE n_runs > 0")
        table = views.table(f"SELECT {quoted(columns)} FROM {rows}")
    return views, _sorted(table, sort) if sort else table


def named(views: Views, name: str, wanted: Sequence[str]) -> list[str]:
    """The condition that a column is one of the wanted values, which some run must have."""
    found = views.column(f"SELECT DISTINCT {name} FROM runs")
    refuse_first(
        (value not in found, f"--{name} {value}: no run matches{nearest(value, found)}")
        for value in (wanted if found else ())
    )
    texts = ("'{}'".format(value.replace("'", "''")) for value in wanted)
    return [f"{name} IN ({', '.join(texts)})"] if wanted else []


def _sorted(table: pa.Table, name: str) -> pa.Table:
    if name in table.column_names:
        values = table.column(name).to_pylist()
    else:
        params = [json.loads(text or "{}") for text in table.column("params").to_pylist()]
        known = {parameter for one in params for parameter in one}
        if name not in known:
            close = nearest(name, [*table.column_names, *known])
            raise WrongInput(f"the table has no column {name!r}{close}")
        values = [one.get(name) for one in params]
    last = [value is None or value != value for value in values]  # also what is no number
    order = sorted(range(len(values)), key=lambda k: (last[k], sort_key(values[k])))
    return table.take(order)


def _beside(views: Views, sweeps: Sequence[str], best: bool) -> pa.Table:
    view, same = ("best", "") if best else ("configurations", ", params")
    for name, sweep in zip(("mine", "others"), sweeps, strict=True):
        views.choose([sweep])
        views.connection.register(name, views.table(f"FROM {view} WHERE n_runs > 0"))
    views.choose(sweeps)
    pairs = [f"a.{name}, b.{name} AS {name}_other" for name in COMPARED if name not in same]
    shared = [f'coalesce(a."{name}", b."{name}") AS "{name}"' for name in STREAM]
    table = views.table(
        f"SELECT {', '.join(shared)}, learner{same}, b.dataset_hash AS dataset_hash_other,"
        f" {', '.join(pairs)} FROM mine a FULL JOIN others b USING (stream, learner{same})"
        f" ORDER BY a.learner IS NULL, stream, a.merit, b.merit, learner{same}"
    )
    one, other = (table.column(f"mean_loss_mean{end}").to_numpy() for end in ("_other", ""))
    return table.add_column(
        table.column_names.index("mean_loss_mean"), "difference", differences_of(one, other)
    )


def _remarks(views: Views) -> list[str]:
    return [
        *(
            f"{row['n']:,} runs {row['status']} and are not averaged;"
            f" --runs --where \"status = '{row['status']}'\" has them"
            for row in views.rows(
                "SELECT status, count(*) AS n FROM selected WHERE status <> 'ok' GROUP BY ALL"
                " ORDER BY ALL"
            )
        ),
        *(
            f"{row['learner']} has no best on {row['stream']}: of its {row['runs']:,} runs"
            f" {row['diverged']:,} diverged, {row['failed']:,} failed and {row['stopped']:,} were"
            " stopped, some of each configuration"
            for row in views.rows(NOT_WHOLE)
            if row["diverged"] + row["failed"] + row["stopped"]
        ),
        *(
            f"{row['learner']}'s best on {row['stream']} is not better than always predicting a"
            " constant"
            for row in views.rows("FROM best WHERE NOT beats_constant")
        ),
    ]


def best_of(views: Views) -> pa.Table:
    found = views.table("FROM best")
    metrics = [name for name in METRICS if found.column(f"{name}_mean").null_count < len(found)]
    return found.select([*BEST, *(f"{name}_mean" for name in metrics)])


def results_of(store: AnyPath, sweep: str) -> list[dict[str, Any]]:
    return Views(store, [sweep]).rows(
        "SELECT dataset, learner, params, n_runs, mean_loss_mean, mean_loss_std FROM best"
        f" LIMIT {MOST}"
    )


def in_terminal(views: Views, table: pa.Table, more: int, width: int) -> tuple[str, list[str]]:
    names, same = _telling_columns(table)
    texts, constants = _params_in_words(views)
    remarks = [*same, *constants]
    rows = [
        [
            texts[row["learner"], value] if name.startswith("params") else value
            for name, value in row.items()
        ]
        for row in table.select(names).to_pylist()
    ]
    text, left_out = laid_out(names, rows, width, {"mean_loss_std": 2, "error_rate_std": 2})
    if more:
        remarks.insert(0, f"{more:,} more rows (--limit {len(rows)})")
    if left_out:
        remarks.append(f"no room for {', '.join(left_out)}")
    if {"run_id", "difference"}.isdisjoint(table.column_names):
        remarks += _remarks(views)
    return text, remarks


def _telling_columns(table: pa.Table) -> tuple[list[str], list[str]]:
    names = SINGLE if "run_id" in table.column_names else table.column_names
    hashes = {"dataset_hash", "dataset_hash_other"} & {*table.column_names}
    pairs = {
        tuple(row.values())
        for one in hashes
        for row in table.group_by(["dataset", one]).aggregate([]).to_pylist()
        if row[one]
    }
    one_each = len(pairs) == len({dataset for dataset, _ in pairs})
    dull = {"sketch_size"} | (hashes if one_each else set())  # sketch_size is among the parameters
    values = {name: pc.unique(table.column(name)).to_pylist() for name in names if name not in dull}
    told = {name: found for name, found in values.items() if found != [None]}
    same = {name: found[0] for name, found in told.items() if name in SAME and len(found) == 1}
    # these values go without saying
    said = [f"{name}={value}" for name, value in same.items() if value not in (AS_STORED, "ok")]
    remarks = [f"all rows: {' '.join(said)}"] * bool(said)
    return [name for name in told if name not in same], remarks


def _params_in_words(views: Views) -> tuple[dict[tuple[str, str | None], str], list[str]]:
    """Texts of parameters that vary, by learner and JSON, and remarks on unusual others."""
    texts: dict[tuple[str, str | None], str] = defaultdict(str)
    constants = defaultdict[str, list[str]](list)
    every = views.rows("SELECT DISTINCT learner, params FROM selected ORDER BY ALL")
    for learner, rows in grouped(every, lambda row: row["learner"]).items():
        decoded = {row["params"]: json.loads(row["params"]) for row in rows}
        vary = varied(learner, decoded.values())
        texts |= {(learner, text): params_text(params, vary) for text, params in decoded.items()}
        shared = dict(chain.from_iterable(params.items() for params in decoded.values()))
        told = [name for name in telling(learner, shared, vary) if name not in vary]
        constants[params_text(shared, told)].append(learner)
    remarks = [f"all rows of {', '.join(of)}: {words}" for words, of in constants.items() if words]
    return texts, remarks
