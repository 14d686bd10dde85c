"""A source in memory: what reading gives, transformations change and shards hold."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from koco_stream.errors import WrongInput
from koco_stream.linalg import Array

LAYOUTS = ("dense", "sparse")
MOST_DENSE_VALUES = 500_000_000


@dataclass(frozen=True)
class Table:
    """A source, read: labels (n,), rows as canonical CSR (indptr (n + 1,), indices, values), or dense (then `indices` is empty and each
    row has `n_features` values). `done` says in words what reading did besides reading: labels mapped, columns left out or one-hot."""

    labels: Array
    indptr: Array
    indices: Array
    values: Array
    n_features: int
    layout: str
    format: str
    feature_names: list[str]
    done: tuple[str, ...] = ()


def row_numbers(table: Table) -> Array:
    """The row of each value, (number of values,)."""
    return np.repeat(np.arange(table.labels.size), np.diff(table.indptr))


def without_zeros(table: Table) -> Table:
    """A sparse table in canonical form: stored zeros dropped."""
    kept = table.values != 0.0
    if kept.all():
        return table
    sizes = np.bincount(row_numbers(table)[kept], minlength=table.labels.size)
    indptr = np.concatenate([[0], np.cumsum(sizes)])
    return replace(table, indptr=indptr, indices=table.indices[kept], values=table.values[kept])


def in_layout(table: Table, layout: str | None) -> Table:
    """The same rows as "dense" or "sparse"; as they are if None. Raises `WrongInput` if dense rows would not fit in memory."""
    if layout is None or layout == table.layout:
        return table
    if layout not in LAYOUTS:
        raise WrongInput(f"--layout {layout} is not one of {', '.join(LAYOUTS)}")
    n, d = table.labels.size, table.n_features
    done = (*table.done, f"rows kept {layout}")
    if layout == "sparse":
        indices = np.tile(np.arange(d, dtype=np.int32), n)
        return without_zeros(replace(table, indices=indices, layout="sparse", done=done))
    if n * d > MOST_DENSE_VALUES:
        raise WrongInput(f"--layout dense would hold {n:,} x {d:,} values, {8 * n * d / 2**30:.0f} GiB; keep this source sparse")
    matrix = np.zeros((n, d))
    matrix[row_numbers(table), table.indices] = table.values
    indptr = np.arange(0, (n + 1) * d, d)
    return replace(table, indptr=indptr, indices=np.zeros(0, np.int32), values=matrix.reshape(-1), layout="dense", done=done)
