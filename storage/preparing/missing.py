"""Missing values, which are NaN in the chunks: filled in with the mean of the known values."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
import scipy.sparse

from koco_stream.errors import WrongInput
from koco_stream.types import Array
from storage.preparing.chunks import Chunk, Chunks, Cover, read_rows, rows_of, store_rows
from storage.preparing.columns import bounds, means
from storage.preparing.transform import without_zeros
from storage.sources.source import ParallelMap, Piece, Source


@dataclass(frozen=True)
class Columns:
    """The columns `features` (k,) of rows with d features, as a matrix (n, k)."""

    features: Array
    d: int
    layout: str

    def __call__(self, rows: Piece) -> Array:
        """The columns of these rows; features that a row lacks are 0 there."""
        if self.layout == "dense":
            return rows.values.reshape(rows.n_rows, self.d)[:, self.features]
        whole = scipy.sparse.csr_array(
            (rows.values, rows.indices, rows.indptr), (rows.n_rows, self.d)
        )
        return whole[:, self.features].toarray()


@dataclass(frozen=True)
class Filling:
    """What is filled in: `values` (k,) for the k features of `columns` that have missing values."""

    columns: Columns
    values: Array

    def __call__(self, rows: Piece) -> Piece:
        """Rows with their missing values filled in."""
        of_feature = np.zeros(self.columns.d)
        of_feature[self.columns.features] = self.values
        dense = self.columns.layout == "dense"
        known = np.tile(of_feature, rows.n_rows) if dense else of_feature[rows.indices]
        values = np.where(np.isnan(rows.values), known, rows.values)
        return without_zeros(replace(rows, values=values))


def without_missing(
    source: Source,
    chunks: Chunks,
    ranges: Sequence[tuple[int, int]],
    parallel_map: ParallelMap,
    scratch: Path,
) -> tuple[Source, Chunks]:
    """The source and its chunks after what it asks for is done with missing values.

    Statistics are those of the known values in the rows of `ranges` (first, end), each of which
    begins at a multiple of `BLOCK`. Raises `WrongInput` if every row is left out, or if a column
    with missing values has no value in these rows.
    """
    if source.missing is None:
        return source, chunks
    if source.missing == "drop":
        n_dropped = sum(chunk.n_dropped for chunk in chunks.chunks)
        if not chunks.n_rows:
            raise WrongInput(
                f"{source.paths[0]}: each of the {n_dropped:,} rows has a missing value; leave"
                " out the columns with many missing values (--drop), or fill them in with"
                " --missing mean"
            )
        said = f"rows with missing values left out: {n_dropped:,}"
        return replace(source, done=(*source.done, said)), chunks
    if source.n_features is None:
        raise TypeError("a source with missing values knows its features")
    d = source.n_features
    counts = parallel_map(partial(_missing_in, d), [chunk.path for chunk in chunks.chunks])
    n_missing = sum(counts, np.zeros(d, np.int64))
    features = np.flatnonzero(n_missing)
    if not features.size:
        return replace(source, done=(*source.done, "no value is missing")), chunks
    names = [source.feature_names[j] if source.feature_names else f"{j + 1}" for j in features]
    columns = Columns(features, d, source.layout)
    covers = [chunks.cover(*rows) for rows in ranges]
    values = _statistics(source, columns, names, covers, parallel_map)
    by_feature = ", ".join(
        f"{name} ({n:,} by {value!r})"
        for name, n, value in zip(names, n_missing[features], values.tolist(), strict=True)
    )
    done = [*source.done, f"missing values filled in with the mean of the feature: {by_feature}"]
    filling = Filling(columns, values)
    tasks = [(chunk, scratch / f"filled-{k:07d}.arrow") for k, chunk in enumerate(chunks.chunks)]
    filled = []
    for old, new in zip(chunks.chunks, parallel_map(partial(_fill, filling), tasks), strict=True):
        Path(old.path).unlink()
        filled.append(new)
    return replace(source, done=tuple(done)), Chunks(filled)


def _statistics(
    source: Source,
    columns: Columns,
    names: Sequence[str],
    covers: Sequence[Cover],
    parallel_map: ParallelMap,
) -> Array:
    over = bounds(parallel_map, covers, columns)
    for name, n_known in zip(names, over.n_known, strict=True):
        if not n_known:
            n_rows = sum(rows_of(cover).n_rows for cover in covers)
            raise WrongInput(
                f"{source.paths[0]}: column {name!r} has no value in the {n_rows:,} rows from"
                f" which missing values are filled in; leave it out with --drop {name}"
            )
    return np.ldexp(means(parallel_map, covers, columns, over), over.exponent)


def _missing_in(d: int, path: str) -> Array:
    """Number of missing values of each of the d features in a chunk."""
    rows = read_rows(path)
    missing = np.flatnonzero(np.isnan(rows.values))
    return np.bincount(rows.indices[missing] if rows.indices.size else missing % d, minlength=d)


def _fill(filling: Filling, task: tuple[Chunk, Path]) -> Chunk:
    chunk, path = task
    return store_rows(filling(read_rows(chunk.path)), path, chunk.n_bytes)
