"""Reading results for people: the runs of a sweep, averages, and the best configurations."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from flows.scores.constant import JUDGED, beats_constant, not_better_words
from flows.scores.means import with_means
from flows.tables.sweep_runs import runs_of
from koco_stream.io.paths import AnyPath
from koco_stream.metrics import METRICS
from koco_stream.streams.orders import AS_STORED

Key = TypeVar("Key")
T = TypeVar("T")
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
STREAM_AND_CONFIGURATION = (
    "dataset",
    "positive_class",
    "multiclass",
    "dataset_hash",
    "order",
    "window_rows",
    "sharding",
    "max_rows",
    "learner",
    "learner_code",
    "params",
)
JUDGED_MEANS = tuple(f"{name}_mean" for name in JUDGED)
RESULTS = ("dataset", "learner", "params", "n_runs", "mean_loss_mean", "mean_loss_std")
BEST = (*SUMMARY, "sketch_size")
BEST_OF = (*STREAM, "learner")


def grouped(items: Iterable[T], key: Callable[[T], Key]) -> dict[Key, list[T]]:
    """Items by their key, in their order."""
    groups: dict[Key, list[T]] = defaultdict(list)
    for item in items:
        groups[key(item)].append(item)
    return groups


def summary_of(runs: pa.Table) -> list[dict[str, Any]]:
    """`summary_table` as a list of rows, with the columns of `SUMMARY`, and means of metrics."""
    table = summary_table(runs)
    return list(rows_of(table.select([*SUMMARY, *metric_means(table)])))


def best_of(runs: pa.Table) -> list[dict[str, Any]]:
    """The best configuration of each stream and learner.

    The rows have the columns of `BEST`, in the order of the summary, and means of metrics.
    """
    table = best_table(summary_table(runs))
    return list(rows_of(table.select([*BEST, *metric_means(table)])))


def results_of(store: AnyPath, sweep: str) -> list[dict[str, Any]]:
    """The best configurations of a sweep, as `best_of`, in the few columns of `RESULTS`."""
    return [{name: row[name] for name in RESULTS} for row in best_of(runs_of(store, sweep))]


def metric_means(averaged: pa.Table) -> list[str]:
    """The columns with means of metrics in a table of averages: of those that were asked for."""
    return [name for name in averaged.column_names if name.removesuffix("_mean") in METRICS]


def best_table(table: pa.Table) -> pa.Table:
    """The rows of a `summary_table` that `best_of` takes."""
    first = (
        table.append_column("rank", pa.array(range(table.num_rows), pa.int64()))
        .group_by(BEST_OF)
        .aggregate([("rank", "min")])
    )
    return table.take(pa.array(sorted(first.column("rank_min").to_pylist()), pa.int64()))


def summary_table(runs: pa.Table) -> pa.Table:
    """Average of each configuration on each stream, over order seeds and learner seeds.

    Rows are sorted by dataset, then best first: by error rate, or by loss where there is none;
    equal ones by their learners' names, then by the text of their parameters. A stream here is a
    dataset with a given content, its positive class, its order, and the number of rows read. Runs
    of older code are ignored if newer code has computed them too. Beside the columns of `SUMMARY`
    there are the averages of `Constant` on the same streams.
    """
    table = of_newest_code(runs).select(
        [*STREAM_AND_CONFIGURATION, "sketch_size", "status", "seconds", *JUDGED, *METRICS]
    )
    found = averages(table, [*STREAM_AND_CONFIGURATION, "sketch_size"])
    judged = [
        beats_constant(*one)
        for one in zip(*lists_of(found, ["learner", *JUDGED_MEANS]), strict=True)
    ]
    found = found.append_column("beats_constant", pa.array(judged, pa.bool_()))
    named = zip(
        *(found.column(name).to_pylist() for name in ("dataset", "positive_class", "multiclass")),
        strict=True,
    )
    shown = pa.array([dataset_text(*one) for one in named], pa.string())
    found = found.set_column(found.column_names.index("dataset"), "dataset", shown)
    found = found.set_column(
        found.column_names.index("dataset_hash"),
        "dataset_hash",
        pc.utf8_slice_codeunits(found.column("dataset_hash"), 0, 12),
    )
    found = found.append_column(
        "merit", pc.coalesce(found.column("error_rate_mean"), found.column("mean_loss_mean"))
    )
    for name in ("window_rows", "max_rows"):
        found = found.append_column(f"{name} or 0", pc.fill_null(found.column(name), 0))
    by = (
        *("dataset", "dataset_hash", "order", "window_rows or 0", "max_rows or 0"),
        *("merit", "learner", "params", "learner_code", "sharding"),
    )
    return found.sort_by([(name, "ascending") for name in by])


def not_better(table: pa.Table) -> list[str]:
    """Sentences on the learners whose best configuration on a stream does not beat `Constant`.

    `table` is a `summary_table`, or some of its rows.
    """
    names = [*STREAM, "learner", *JUDGED_MEANS, "beats_constant"]
    best = dict[tuple[Any, ...], tuple[Any, ...]]()
    for values in zip(*lists_of(table, names), strict=True):
        best.setdefault(values[: len(BEST_OF)], values)  # the first is the best
    sentences = []
    for dataset, _, order, window_rows, max_rows, learner, *judged, beats in best.values():
        if beats is False:
            how = stream_text(dataset, order, window_rows, max_rows)
            sentences.append(not_better_words(learner, how, *judged))
    return sentences


def stream_text(dataset: str, order: str, window_rows: int | None, max_rows: int | None) -> str:
    """A dataset's name and how it is read."""
    return (
        dataset
        + ("" if order == AS_STORED else f", {order}")
        + (f" of {window_rows:,} rows" if window_rows else "")
        + (f", the first {max_rows:,} rows" if max_rows else "")
    )


def dataset_text(name: str, positive_class: float | None, multiclass: str | None) -> str:
    """A dataset's name with what is learnt of its classes: `20news:3`, `20news:all`, `year`."""
    if multiclass is not None:
        return f"{name}:all"
    return name if positive_class is None else f"{name}:{positive_class:g}"


def of_newest_code(runs: pa.Table) -> pa.Table:
    """Leave out runs that newer code has computed too.

    Runs of the same stream and configuration are compared by their `numbers_version`.
    """
    table = runs.select([*STREAM_AND_CONFIGURATION, "numbers_version"])
    versions = table.group_by(STREAM_AND_CONFIGURATION).aggregate(
        [("numbers_version", "min"), ("numbers_version", "max")]
    )
    if versions.column("numbers_version_min") == versions.column("numbers_version_max"):
        return runs
    names = [*STREAM_AND_CONFIGURATION, "numbers_version_max"]
    newest = {tuple(key): version for *key, version in zip(*lists_of(versions, names), strict=True)}
    mine = zip(*lists_of(table, table.column_names), strict=True)
    keep = [newest[tuple(key)] == version for *key, version in mine]
    return runs.filter(pa.array(keep, pa.bool_()))


def averages(runs: pa.Table, by: Sequence[str]) -> pa.Table:
    """Average runs that are equal in the columns `by`.

    Each row has the number of runs with status ok, means and standard deviations of their results,
    and means of the metrics that a run has. Where only some runs have a metric, it is null.
    """
    runs = runs.filter(
        pc.and_(pc.equal(runs.column("status"), "ok"), pc.is_valid(runs.column("mean_loss")))
    )
    metrics = [
        name
        for name in METRICS
        if name in runs.column_names and runs.column(name).null_count < runs.num_rows
    ]
    names = ["mean_loss", "error_rate", "seconds", *JUDGED[2:], *metrics]
    # Not by threads: rows would have another order each time.
    found = runs.group_by(list(by), use_threads=False).aggregate(
        [("mean_loss", "count"), *((name, "list") for name in names)]
    )
    # Of `Constant`, one of some runs alone would be the average of other streams.
    found = with_means(found, names, JUDGED[:2], {*JUDGED[2:], *metrics})
    return found.rename_columns({"mean_loss_count": "n_runs"})


def lists_of(table: pa.Table, names: Sequence[str]) -> Iterator[list[Any]]:
    """Yield the columns `names` of a table as lists."""
    return (table.column(name).to_pylist() for name in names)


def rows_of(table: pa.Table) -> Iterator[dict[str, Any]]:
    """Yield a table's rows as dicts, much faster than `to_pylist` for many rows."""
    for values in zip(*lists_of(table, table.column_names), strict=True):
        yield dict(zip(table.column_names, values, strict=True))
