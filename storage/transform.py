"""Transformations of a source's values: declared, applied once while preparing, part of the dataset's identity."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from koco_stream.errors import WrongInput
from koco_stream.linalg import Array
from storage.table import Table, row_numbers, without_zeros

SCALES = ("none", "minmax", "unit-rows", "unit-mean-square", "tf-idf")


def transform(table: Table, scale: str, task: str) -> tuple[Table, list[str]]:
    """The table after `scale`, and what was done, in words.

    - minmax: each feature to [0, 1] over the whole file, and a real target too;
    - unit-rows: each row divided by its norm (a row of zeros stays);
    - unit-mean-square: all rows divided by one number, so that the mean of ‖x‖² is 1;
    - tf-idf: counts times log((1 + n)/(1 + rows with the feature)) + 1, then unit rows.
    """
    if scale == "none":
        return table, []
    if scale == "minmax":
        return _minmax(table, task)
    if scale == "tf-idf":
        if table.layout == "dense" or (table.values < 0).any():
            raise WrongInput("--scale tf-idf takes counts: a sparse file without negative values")
        rows_with = np.bincount(table.indices, minlength=table.n_features)
        idf = np.log((1 + table.labels.size) / (1 + rows_with)) + 1
        table = replace(table, values=table.values * idf[table.indices])
        return _unit_rows(table), ["tf-idf: value times log((1 + n)/(1 + rows with the feature)) + 1", "unit rows"]
    if scale == "unit-rows":
        return _unit_rows(table), ["each row divided by its Euclidean norm"]
    if scale == "unit-mean-square":
        exponent = np.frexp(np.abs(table.values).max(initial=0.0))[1]
        values = np.ldexp(table.values, -exponent)
        root = np.sqrt(_square_norms(table, values).mean())
        if root == 0.0:
            raise WrongInput("--scale unit-mean-square: every row is empty")
        said = float(root) * 2.0 ** min(int(exponent), 1023)
        return _canonical(replace(table, values=values / root)), [f"all rows divided by {said!r}: mean square norm 1"]
    raise WrongInput(f"--scale {scale} is not one of {', '.join(SCALES)}")


def _square_norms(table: Table, values: Array) -> Array:
    return np.bincount(row_numbers(table), weights=values**2, minlength=table.labels.size)


def _unit_rows(table: Table) -> Table:
    """Each row is first scaled by a power of two, which rounds nothing, so that no square overflows or vanishes."""
    rows = row_numbers(table)
    largest = np.zeros(table.labels.size)
    np.maximum.at(largest, rows, np.abs(table.values))
    values = np.ldexp(table.values, -np.frexp(largest)[1][rows])
    norms = np.sqrt(_square_norms(table, values))
    return _canonical(replace(table, values=values / np.where(norms > 0.0, norms, 1.0)[rows]))


def _canonical(table: Table) -> Table:
    """Without the zeros of a sparse table that dividing made of the smallest values."""
    return table if table.layout == "dense" else without_zeros(table)


def _to_unit(values: Array, low: Array, high: Array) -> Array:
    """(value - low)/(high - low), 0 where these are equal; halved first where the difference would overflow."""
    with np.errstate(over="ignore"):
        half = np.where(np.isfinite(high - low), 1.0, 0.5)
    span = np.where(high > low, high * half - low * half, 1.0)
    return (values * half - low * half) / span


def _minmax(table: Table, task: str) -> tuple[Table, list[str]]:
    done = ["each feature to [0, 1] over the file: (value - min)/(max - min), 0 if constant"]
    if table.layout == "dense":
        matrix = table.values.reshape(-1, table.n_features)
        table = replace(table, values=_to_unit(matrix, matrix.min(axis=0), matrix.max(axis=0)).reshape(-1))
    else:
        if (table.values < 0).any():
            raise WrongInput(
                "--scale minmax would make every row of this sparse source dense, because it has negative values; add --layout dense, or "
                "use --scale unit-rows"
            )
        low, high = np.full(table.n_features, np.inf), np.zeros(table.n_features)
        np.minimum.at(low, table.indices, table.values)
        np.maximum.at(high, table.indices, table.values)
        everywhere = np.bincount(table.indices, minlength=table.n_features) == table.labels.size
        low = np.where(everywhere, low, 0.0)  # a feature that some row does not have is 0 there
        table = without_zeros(replace(table, values=_to_unit(table.values, low[table.indices], high[table.indices])))
    if task == "regression":
        low, high = table.labels.min(), table.labels.max()
        table = replace(table, labels=_to_unit(table.labels, low, high))
        done.append(f"the target to [0, 1]: (y - {float(low)!r})/{float(high) - float(low)!r}")
    return table, done
