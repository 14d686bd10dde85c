"""Statistics of the source that a scale needs, computed by ranges of rows and combined."""

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path

import numpy as np

from koco_stream.errors import WrongInput
from koco_stream.types import Array
from storage.preparing.chunks import Chunks, Cover, rows_of
from storage.preparing.shards import BLOCK
from storage.preparing.transform import BY_FEATURE, Transformation, square_norms
from storage.sources.source import ParallelMap


def with_facts(
    transformation: Transformation,
    chunks: Chunks,
    ranges: Sequence[tuple[int, int]],
    parallel_map: ParallelMap,
    file: Path,
) -> Transformation:
    """The transformation with the statistics of the source that its scale needs.

    They are those of the rows of `ranges` (first, end), each of which begins at a multiple of
    `BLOCK`. Large statistics are written to `file`. Raises `WrongInput` for the scale
    "unit-mean-square" if every row is empty, and for one label in these rows if it is scaled and
    there are others.
    """
    covers = [chunks.cover(start, stop) for start, stop in ranges]
    n_rows = sum(stop - start for start, stop in ranges)
    if transformation.scale == "unit-mean-square":
        exponent = int(np.frexp(max(chunk.largest for chunk in chunks.chunks))[1])
        energies = parallel_map(partial(block_energies, transformation, exponent), covers)
        mean = math.fsum(chain.from_iterable(energies)) / n_rows
        if mean == 0.0:
            raise WrongInput("--scale unit-mean-square: every row is empty")
        return replace(transformation, exponent=exponent, root=math.sqrt(mean))
    if transformation.scale not in BY_FEATURE:
        return transformation
    np.save(file, range_facts(transformation, covers, parallel_map, n_rows))
    found = replace(transformation, facts=file)
    low, high = transformation.shape.label_min, transformation.shape.label_max
    if found.scales_labels and low < high and found.label_range == (0.0, 0.0):
        raise WrongInput(
            f"--scale-rows {n_rows}: the target has only one value in these rows, so it cannot be"
            " scaled; give more rows"
        )
    return found


def range_facts(
    transformation: Transformation, covers: Sequence[Cover], parallel_map: ParallelMap, n_rows: int
) -> Array:
    """Smallest value, largest value, and number of rows with the feature, (3, d + 1).

    The last column is the target's.
    """
    low, high, rows_with = facts = np.zeros((3, transformation.shape.n_features + 1))
    low[:], high[:] = np.inf, -np.inf
    for features, least, greatest, n_with in parallel_map(
        partial(features_in, transformation), covers
    ):
        low[features] = np.minimum(low[features], least)
        high[features] = np.maximum(high[features], greatest)
        rows_with[features] += n_with
    # a feature that a row lacks is 0 in that row; beyond the first rows, any sparse row may lack it
    zero_too = rows_with < n_rows
    if n_rows < transformation.shape.n_rows and transformation.kept == "sparse":
        zero_too[:-1] = True
    low[zero_too] = np.minimum(low[zero_too], 0.0)
    high[zero_too] = np.maximum(high[zero_too], 0.0)
    return facts


def features_in(
    transformation: Transformation, cover: Cover
) -> tuple[Array, Array, Array, Array | int]:
    """Statistics of the features that occur in some rows, and of the target as feature d.

    Returns their numbers in increasing order, their smallest and largest values, and the number of
    rows that have each feature.
    """
    rows = transformation.laid_out(rows_of(cover))
    if transformation.kept == "dense":
        matrix = np.column_stack([rows.values.reshape(rows.n_rows, -1), rows.labels])
        return np.arange(matrix.shape[1]), matrix.min(axis=0), matrix.max(axis=0), rows.n_rows
    order = np.argsort(rows.indices, kind="stable")
    features, values = rows.indices[order], rows.values[order]
    starts = np.flatnonzero(np.diff(features, prepend=-1))
    labels, d = rows.labels, transformation.shape.n_features
    return (
        np.append(features[starts], d),
        np.append(np.minimum.reduceat(values, starts), labels.min()),
        np.append(np.maximum.reduceat(values, starts), labels.max()),
        np.append(np.diff(starts, append=order.size), labels.size),
    )


def block_energies(transformation: Transformation, exponent: int, cover: Cover) -> list[float]:
    """Sum of squared values in each block of `BLOCK` rows, after scaling all values by 2^-exponent.

    The result does not depend on how rows are split into ranges, because a range starts at a block.
    """
    rows = transformation.laid_out(rows_of(cover))
    norms = square_norms(replace(rows, values=np.ldexp(rows.values, -exponent)))
    sums: list[float] = np.add.reduceat(norms, np.arange(0, rows.n_rows, BLOCK)).tolist()
    return sums
