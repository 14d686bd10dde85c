"""What is computed of all rows: statistics that a scale needs, and what is filled in for missing
values.
"""

import math
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from itertools import chain
from pathlib import Path

import numpy as np

from koco_stream.errors import WrongInput, refuse_first
from koco_stream.types import Array
from storage.preparing.files import (
    BLOCK,
    Chunk,
    Chunks,
    Cover,
    block_end,
    read_rows,
    rows_of,
    store_rows,
)
from storage.preparing.transform import BY_FEATURE, Transformation, square_norms, without_zeros
from storage.sources.features import ColumnSource
from storage.sources.source import ParallelMap, Source

HEADROOM = 40  # values are divided by 2^40, so that no sum of as many overflows


def known_rows(
    ranges: Iterable[tuple[int, int]], n_rows: int, scale_rows: int | None
) -> list[tuple[int, int]]:
    """The rows of ranges (first, end) from which statistics are computed."""
    end = n_rows if scale_rows is None else scale_rows
    if end > n_rows > 0:
        raise WrongInput(
            f"--scale-rows {end}: there are only {n_rows:,} rows; give at most that many"
        )
    moved = [(block_end(a, n_rows), min(block_end(b, n_rows), end)) for a, b in ranges]
    return [(first, stop) for first, stop in moved if first < stop]


def with_facts(
    transformation: Transformation,
    chunks: Chunks,
    ranges: Sequence[tuple[int, int]],
    parallel_map: ParallelMap,
    file: Path,
) -> Transformation:
    """The transformation with the statistics that its scale needs; `file` has large ones."""
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
    shape = transformation.shape
    if (
        found.scales_labels
        and shape.label_min < shape.label_max
        and found.label_range == (0.0, 0.0)
    ):
        raise WrongInput(
            f"--scale-rows {n_rows}: the target has only one value in these rows, so it cannot be"
            " scaled; give more rows"
        )
    return found


def range_facts(
    transformation: Transformation, covers: Sequence[Cover], parallel_map: ParallelMap, n_rows: int
) -> Array:
    """Smallest value, largest value, and number of rows with the feature, (3, d + 1)."""
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
    """Features that occur in some rows, in increasing order, and the target as feature d."""
    rows = transformation.laid_out(rows_of(cover))
    if transformation.kept == "dense":
        matrix = np.column_stack([rows.values.reshape(rows.n_rows, -1), rows.labels])
        return np.arange(matrix.shape[1]), matrix.min(axis=0), matrix.max(axis=0), rows.n_rows
    order = np.argsort(rows.indices, kind="stable")
    features = rows.indices[order]
    values = rows.values[order]
    starts = np.flatnonzero(np.diff(features, prepend=-1))
    labels = rows.labels
    d = transformation.shape.n_features
    return (
        np.append(features[starts], d),
        np.append(np.minimum.reduceat(values, starts), labels.min()),
        np.append(np.maximum.reduceat(values, starts), labels.max()),
        np.append(np.diff(starts, append=order.size), labels.size),
    )


def block_energies(transformation: Transformation, exponent: int, cover: Cover) -> list[float]:
    """Sum of squared values, scaled by 2^-exponent, in each block of `BLOCK` rows."""
    rows = transformation.laid_out(rows_of(cover))
    norms = square_norms(replace(rows, values=np.ldexp(rows.values, -exponent)))
    return np.add.reduceat(norms, np.arange(0, rows.n_rows, BLOCK)).tolist()


@dataclass(frozen=True)
class Holes:
    """The `features` (k,) with missing values, of rows with d features in a layout."""

    features: Array
    d: int
    layout: str

    def columns(self, cover: Cover) -> Array:
        rows = rows_of(cover)
        if self.layout == "dense":
            return rows.values.reshape(rows.n_rows, self.d)[:, self.features]
        from scipy.sparse import csr_array  # slow

        whole = csr_array((rows.values, rows.indices, rows.indptr), (rows.n_rows, self.d))
        return whole[:, self.features].toarray()

    def known_in(self, cover: Cover) -> tuple[Array, Array]:
        """Counts (k,), and sums in each block divided by 2^`HEADROOM`."""
        values = np.ldexp(self.columns(cover), -HEADROOM)
        known = ~np.isnan(values)
        starts = np.arange(0, len(values), BLOCK)
        return known.sum(axis=0), np.add.reduceat(np.where(known, values, 0.0), starts)

    def filled(self, values: Array, chunk: Chunk) -> Chunk:
        rows = read_rows(chunk.path)
        of_feature = np.zeros(self.d)
        of_feature[self.features] = values
        dense = self.layout == "dense"
        instead = np.tile(of_feature, rows.n_rows) if dense else of_feature[rows.indices]
        rows = replace(rows, values=np.where(np.isnan(rows.values), instead, rows.values))
        new = Path(f"{chunk.path}.filled")
        stored = store_rows(without_zeros(rows), new, chunk.n_bytes)
        new.replace(chunk.path)
        return replace(stored, path=chunk.path)


def without_missing(
    source: Source, chunks: Chunks, ranges: Sequence[tuple[int, int]], parallel_map: ParallelMap
) -> tuple[Source, Chunks]:
    if source.missing is None:
        return source, chunks
    if source.missing == "drop":
        n_dropped = sum(chunk.n_dropped for chunk in chunks.chunks)
        if not chunks.n_rows:
            raise WrongInput(
                f"{source.paths[0]}: each of the {n_dropped:,} rows has a missing value; leave"
                " out the columns with missing values with --drop, and name another --target if its"
                " values are missing"
            )
        said = f"rows with missing values left out: {n_dropped:,}"
        return replace(source, done=(*source.done, said)), chunks
    # only columns have missing values, and it is known by now how many features they are
    assert isinstance(source, ColumnSource)
    d = source.n_features or 0
    n_missing = sum(
        parallel_map(partial(_missing_in, d), [chunk.path for chunk in chunks.chunks]),
        np.zeros(d, np.int64),
    )
    features = np.flatnonzero(n_missing)
    if not features.size:
        return replace(source, done=(*source.done, "no value is missing")), chunks
    names = source.feature_names or [f"{k + 1}" for k in source.choice.features]
    holes = Holes(features, d, source.layout)
    values = _means(
        source,
        holes,
        [names[j] for j in features],
        [chunks.cover(*rows) for rows in ranges],
        parallel_map,
    )
    by_feature = ", ".join(
        f"{names[j]} ({n_missing[j]:,} by {value!r})"
        for j, value in zip(features, values.tolist(), strict=True)
    )
    done = [*source.done, f"missing values filled in with the mean of the feature: {by_feature}"]
    return replace(source, done=tuple(done)), Chunks(
        parallel_map(partial(holes.filled, values), chunks.chunks)
    )


def _means(
    source: Source,
    holes: Holes,
    names: Sequence[str],
    covers: Sequence[Cover],
    parallel_map: ParallelMap,
) -> Array:
    """Blocks are summed in order, whatever the ranges."""
    known = total = np.zeros(holes.features.size)
    for counts, sums in parallel_map(holes.known_in, covers):
        known = known + counts
        total = reduce(np.add, sums, total)
    n_rows = sum(stop - start for _, start, stop in chain(*covers))
    refuse_first(
        (
            not n_known,
            f"{source.paths[0]}: column {name!r} has no value in the {n_rows:,} rows from which"
            f" missing values are filled in; leave it out with --drop {shlex.quote(name)}",
        )
        for name, n_known in zip(names, known, strict=True)
    )
    return np.ldexp(total / known, HEADROOM)


def _missing_in(d: int, path: str) -> Array:
    rows = read_rows(path)
    missing = np.flatnonzero(np.isnan(rows.values))
    return np.bincount(rows.indices[missing] if rows.indices.size else missing % d, minlength=d)
