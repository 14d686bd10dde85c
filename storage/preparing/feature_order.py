"""The order of the features by how often they occur, for `--order-features`.

A learner reads and writes the memory of a row's features. If frequent features are neighbours, most
of this memory stays in the processor's cache from one row to the next.
"""

from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from koco_stream.types import Array
from storage.preparing.chunks import Cover, rows_of
from storage.preparing.transform import Transformation
from storage.sources.source import ParallelMap


def in_order(
    transformation: Transformation, covers: Iterable[Cover], parallel_map: ParallelMap, file: Path
) -> tuple[Transformation, Array | None]:
    """The transformation with the features' new numbers, if it has an order for them.

    Parameters
    ----------
    transformation : Transformation
        All else that is done to the rows.
    covers : iterable of Cover
        All rows of the source, each once.
    parallel_map : ParallelMap
        Counts the features of the covers.
    file : Path
        The file to which the new numbers are written.

    Returns
    -------
    transformation : Transformation
        The transformation that also renumbers.
    original : Array (d,), int32, or None
        The original number of each new one; None if the numbers stay.
    """
    if transformation.order is None:
        return transformation, None
    # negative, so that the most frequent feature comes first and ties keep their order
    less = np.zeros(transformation.n_features, np.int64)
    for features, n_rows in parallel_map(partial(_features_in, transformation), covers):
        less[features] -= n_rows
    original = np.argsort(less, kind="stable").astype(np.int32)
    numbers = np.empty_like(original)
    numbers[original] = np.arange(original.size, dtype=np.int32)
    np.save(file, numbers)
    return replace(transformation, numbers=file), original


def _features_in(transformation: Transformation, cover: Cover) -> tuple[Array, Array]:
    """The features that occur in some rows, and in how many of these each has a non-zero value."""
    rows = transformation(rows_of(cover))
    return np.unique(rows.indices[rows.values != 0.0], return_counts=True)
