"""Statistics of the whole source that a scale needs, computed by ranges of rows and combined."""

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
from storage.preparing.transform import Transformation, square_norms
from storage.sources.source import ParallelMap


def with_facts(
    transformation: Transformation,
    chunks: Chunks,
    ranges: Sequence[tuple[int, int]],
    parallel_map: ParallelMap,
    file: Path,
) -> Transformation:
    """The transformation with the statistics of the whole source that its scale needs.

    The row `ranges` (first, end) cover all rows, and each starts at a multiple of `BLOCK`. Large
    statistics are written to `file`. Raises `WrongInput` for the scale "unit-mean-square" if every
    row is empty.
    """
    covers = [chunks.cover(start, stop) for start, stop in ranges]
    if transformation.scale == "unit-mean-square":
        exponent = int(np.frexp(max(chunk.largest for chunk in chunks.chunks))[1])
        energies = parallel_map(partial(block_energies, transformation, exponent), covers)
        mean = math.fsum(chain.from_iterable(energies)) / chunks.n_rows
        if mean == 0.0:
            raise WrongInput("--scale unit-mean-square: every row is empty")
        return replace(transformation, exponent=exponent, root=math.sqrt(mean))
    if transformation.scale not in ("minmax", "tf-idf"):
        return transformation
    low, high, rows_with = facts = np.zeros((3, transformation.shape.n_features))
    low[:], high[:] = np.inf, -np.inf
    for features, least, greatest, n_rows in parallel_map(
        partial(features_in, transformation), covers
    ):
        low[features] = np.minimum(low[features], least)
        high[features] = np.maximum(high[features], greatest)
        rows_with[features] += n_rows
    somewhere_not = rows_with < chunks.n_rows  # a feature that a row lacks is 0 in that row
    low[somewhere_not] = np.minimum(low[somewhere_not], 0.0)
    high[somewhere_not] = np.maximum(high[somewhere_not], 0.0)
    np.save(file, facts)
    return replace(transformation, facts=file)


def features_in(
    transformation: Transformation, cover: Cover
) -> tuple[Array, Array, Array, Array | int]:
    """Statistics of the features that occur in some rows.

    Returns their numbers in increasing order, their smallest and largest values, and the number of
    rows that have each feature.
    """
    rows = transformation.laid_out(rows_of(cover))
    if transformation.kept == "dense":
        matrix = rows.values.reshape(rows.n_rows, -1)
        return np.arange(matrix.shape[1]), matrix.min(axis=0), matrix.max(axis=0), rows.n_rows
    order = np.argsort(rows.indices, kind="stable")
    features, values = rows.indices[order], rows.values[order]
    starts = np.flatnonzero(np.diff(features, prepend=-1))
    return (
        features[starts],
        np.minimum.reduceat(values, starts),
        np.maximum.reduceat(values, starts),
        np.diff(starts, append=order.size),
    )


def block_energies(transformation: Transformation, exponent: int, cover: Cover) -> list[float]:
    """Sum of squared values in each block of `BLOCK` rows, after scaling all values by 2^-exponent.

    The result does not depend on how rows are split into ranges, because a range starts at a block.
    """
    rows = transformation.laid_out(rows_of(cover))
    norms = square_norms(replace(rows, values=np.ldexp(rows.values, -exponent)))
    sums: list[float] = np.add.reduceat(norms, np.arange(0, rows.n_rows, BLOCK)).tolist()
    return sums
