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
        root = float(np.sqrt(_square_norms(table).mean()))
        if root == 0.0:
            raise WrongInput("--scale unit-mean-square: every row is empty")
        return replace(table, values=table.values / root), [f"all rows divided by {root!r}: mean square norm 1"]
    raise WrongInput(f"--scale {scale} is not one of {', '.join(SCALES)}")


def _square_norms(table: Table) -> Array:
    return np.bincount(row_numbers(table), weights=table.values**2, minlength=table.labels.size)


def _unit_rows(table: Table) -> Table:
    norms = np.sqrt(_square_norms(table))
    return replace(table, values=table.values / norms[row_numbers(table)])


def _minmax(table: Table, task: str) -> tuple[Table, list[str]]:
    done = ["each feature to [0, 1] over the file: (value - min)/(max - min), 0 if constant"]
    if table.layout == "dense":
        matrix = table.values.reshape(-1, table.n_features)
        low, high = matrix.min(axis=0), matrix.max(axis=0)
        span = np.where(high > low, high - low, 1.0)
        table = replace(table, values=((matrix - low) / span).reshape(-1))
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
        span = np.where(high > low, high - low, 1.0)
        table = without_zeros(replace(table, values=(table.values - low[table.indices]) / span[table.indices]))
    if task == "regression":
        low, high = table.labels.min(), table.labels.max()
        table = replace(table, labels=(table.labels - low) / (high - low if high > low else 1.0))
        done.append(f"the target to [0, 1]: (y - {float(low)!r})/{float(high - low)!r}")
    return table, done
