"""Rows of tables: grouped, and as dictionaries."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

import pyarrow as pa

Key = TypeVar("Key")
T = TypeVar("T")
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


def grouped(items: Iterable[T], key: Callable[[T], Key]) -> dict[Key, list[T]]:
    """Items by their key, in their order."""
    groups: dict[Key, list[T]] = defaultdict(list)
    for item in items:
        groups[key(item)].append(item)
    return groups


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


def lists_of(table: pa.Table, names: Sequence[str]) -> Iterator[list[Any]]:
    """Yield the columns `names` of a table as lists."""
    return (table.column(name).to_pylist() for name in names)


def rows_of(table: pa.Table) -> Iterator[dict[str, Any]]:
    """Yield a table's rows as dicts, much faster than `to_pylist` for many rows."""
    for values in zip(*lists_of(table, table.column_names), strict=True):
        yield dict(zip(table.column_names, values, strict=True))
