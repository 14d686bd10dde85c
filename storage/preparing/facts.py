"""What a scale needs to know of all rows, computed in parallel with a dask array.

Its chunks are `sparse.GCXS`, or NumPy arrays where rows are dense."""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from koco_stream.errors import WrongInput
from koco_stream.types import Array
from storage.preparing.parts import Parts, rows_of
from storage.preparing.shards import BLOCK
from storage.preparing.transform import NO_FACTS, Facts, Transformation, row_numbers
from storage.sources.source import Piece

Compute = Callable[..., Any]

FAN_IN = 16  # results that are put together at once


def chunk_of(cover: Sequence[tuple[str, int, int]], transformation: Transformation) -> Any:
    """The rows that `cover` names as a chunk (rows, d): `sparse.GCXS` by rows, or a NumPy array."""
    return as_chunk(
        transformation.laid_out(rows_of(cover)),
        transformation.shape.n_features,
        transformation.kept,
    )


def as_chunk(rows: Piece, n_features: int, layout: str) -> Any:
    """Rows as one chunk (rows, d) of a dask array."""
    import sparse

    if layout == "dense":
        return rows.values.reshape(rows.n_rows, n_features)
    return sparse.GCXS(
        (rows.values, rows.indices, rows.indptr),
        shape=(rows.n_rows, n_features),
        compressed_axes=[0],
    )


def array_of(chunks: Sequence[Any], sizes: Sequence[int], n_features: int, layout: str) -> Any:
    """A dask array (n, d) of delayed chunks of these numbers of rows; sparse rows stay sparse."""
    import dask.array
    import sparse

    meta = (
        np.zeros((0, 0))
        if layout == "dense"
        else sparse.GCXS(np.zeros((0, 0)), compressed_axes=[0])
    )
    blocks = [
        dask.array.from_delayed(chunk, (size, n_features), meta=meta)
        for chunk, size in zip(chunks, sizes, strict=True)
    ]
    return dask.array.concatenate(blocks)


class Seen(NamedTuple):
    """Features that occur in some rows, increasing, with the least and the largest value and the
    number of rows of each; all (k,). And the number of the rows.
    """

    features: Array
    low: Array
    high: Array
    rows_with: Array
    n_rows: int


def facts_for(
    transformation: Transformation,
    parts: Parts,
    ranges: Sequence[tuple[int, int]],
    compute: Compute,
) -> Facts:
    """What `transformation` has to know; `ranges` of rows become the chunks, each beginning at a
    whole number of blocks. `compute` is `dask.compute`, or a client's.

    Raises `WrongInput` if every row is empty and the mean square is to be 1.
    """
    from dask import delayed

    scale, shape = transformation.scale, transformation.shape
    if scale not in ("minmax", "tf-idf", "unit-mean-square"):
        return NO_FACTS
    covers = [
        delayed(chunk_of, pure=False)(parts.cover(lo, hi), transformation) for lo, hi in ranges
    ]
    X = array_of(covers, [hi - lo for lo, hi in ranges], shape.n_features, transformation.kept)
    chunks = X.to_delayed().ravel()
    if scale == "unit-mean-square":
        exponent = int(
            np.frexp(max(compute(*(delayed(largest, pure=False)(chunk) for chunk in chunks))))[1]
        )
        sums = compute(*(delayed(block_energies, pure=False)(chunk, exponent) for chunk in chunks))
        root = math.sqrt(
            math.fsum(value for block in sums for value in block.tolist()) / shape.n_rows
        )
        if root == 0.0:
            raise WrongInput("--scale unit-mean-square: every row is empty")
        return Facts(np.zeros(0), np.zeros(0), np.zeros(0), exponent, root)
    found = [delayed(seen_in, pure=False)(chunk) for chunk in chunks]
    while len(found) > 1:
        found = [
            delayed(together, pure=False)(found[k : k + FAN_IN])
            for k in range(0, len(found), FAN_IN)
        ]
    (seen,) = compute(*found)
    low, high, rows_with = (
        np.zeros(shape.n_features),
        np.zeros(shape.n_features),
        np.zeros(shape.n_features),
    )
    everywhere = seen.rows_with == seen.n_rows  # a feature that some row does not have is 0 there
    low[seen.features] = np.where(everywhere, seen.low, np.minimum(seen.low, 0.0))
    high[seen.features] = np.where(everywhere, seen.high, np.maximum(seen.high, 0.0))
    rows_with[seen.features] = seen.rows_with
    return Facts(low, high, rows_with)


def largest(chunk: Any) -> float:
    """The largest absolute value of a chunk."""
    return float(np.abs(chunk if isinstance(chunk, np.ndarray) else chunk.data).max(initial=0.0))


def seen_in(chunk: Any) -> Seen:
    """What a chunk has of each feature. Written with NumPy: the reductions of `sparse` are compiled
    anew in every process, for seconds.
    """
    n, d = chunk.shape
    if isinstance(chunk, np.ndarray):
        return Seen(np.arange(d), chunk.min(axis=0), chunk.max(axis=0), np.full(d, n), n)
    order = np.argsort(chunk.indices, kind="stable")
    return _by_feature(
        chunk.indices[order], chunk.data[order], chunk.data[order], np.ones(order.size, np.int64), n
    )


def together(parts: Sequence[Seen]) -> Seen:
    """What several sets of rows have of each feature."""
    features = np.concatenate([part.features for part in parts])
    order = np.argsort(features, kind="stable")
    low, high, rows_with = (
        np.concatenate(column)[order]
        for column in zip(*((p.low, p.high, p.rows_with) for p in parts), strict=True)
    )
    return _by_feature(features[order], low, high, rows_with, sum(part.n_rows for part in parts))


def _by_feature(features: Array, low: Array, high: Array, rows_with: Array, n_rows: int) -> Seen:
    """One entry a feature, of several; `features` does not decrease."""
    if not features.size:
        return Seen(features, low, high, rows_with, n_rows)
    starts = np.flatnonzero(np.diff(features, prepend=-1))
    return Seen(
        features[starts],
        np.minimum.reduceat(low, starts),
        np.maximum.reduceat(high, starts),
        np.add.reduceat(rows_with, starts),
        n_rows,
    )


def block_energies(chunk: Any, exponent: int) -> Array:
    """The sum of squares of each block of rows, after a multiplication by 2^-exponent: the same
    whatever the chunks, which begin with a block.
    """
    n = chunk.shape[0]
    if isinstance(chunk, np.ndarray):
        values, numbers = chunk.reshape(-1), np.repeat(np.arange(n), chunk.shape[1])
    else:
        empty = np.zeros(n)
        values, numbers = (
            chunk.data,
            row_numbers(Piece(empty, chunk.indptr, chunk.indices, chunk.data)),
        )
    norms = np.bincount(numbers, weights=np.ldexp(values, -exponent) ** 2, minlength=n)
    return np.add.reduceat(norms, np.arange(0, n, BLOCK))
