"""What a scale needs to know of all rows, computed in parallel with a dask array.

Its chunks are `sparse.GCXS`, or NumPy arrays where rows are dense."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from koco_stream.errors import WrongInput
from koco_stream.linalg import Array
from storage.parts import Parts, rows_of
from storage.shards import BLOCK
from storage.source import Piece
from storage.transform import NO_FACTS, Facts, Transformation, row_numbers

Compute = Callable[..., Any]


def chunk_of(cover: Sequence[tuple[str, int, int]], transformation: Transformation) -> Any:
    """The rows that `cover` names as a chunk (rows, d): `sparse.GCXS` by rows, or a NumPy array."""
    return as_chunk(transformation.laid_out(rows_of(cover)), transformation.shape.n_features, transformation.kept)


def as_chunk(rows: Piece, n_features: int, layout: str) -> Any:
    """Rows as one chunk (rows, d) of a dask array."""
    import sparse

    if layout == "dense":
        return rows.values.reshape(rows.n_rows, n_features)
    return sparse.GCXS((rows.values, rows.indices, rows.indptr), shape=(rows.n_rows, n_features), compressed_axes=[0])


def array_of(chunks: Sequence[Any], sizes: Sequence[int], n_features: int, layout: str) -> Any:
    """A dask array (n, d) of delayed chunks of these numbers of rows; sparse rows stay sparse."""
    import dask.array
    import sparse

    meta = np.zeros((0, 0)) if layout == "dense" else sparse.GCXS(np.zeros((0, 0)), compressed_axes=[0])
    blocks = [dask.array.from_delayed(chunk, (size, n_features), meta=meta) for chunk, size in zip(chunks, sizes, strict=True)]
    return dask.array.concatenate(blocks)


def facts_for(transformation: Transformation, parts: Parts, ranges: Sequence[tuple[int, int]], compute: Compute) -> Facts:
    """What `transformation` has to know; `ranges` of rows become the chunks, each beginning at a whole number of blocks. `compute` is
    `dask.compute`, or a client's.

    Raises `WrongInput` if every row is empty and the mean square is to be 1.
    """
    from dask import delayed

    scale, shape = transformation.scale, transformation.shape
    if scale not in ("minmax", "tf-idf", "unit-mean-square"):
        return NO_FACTS
    chunks = [delayed(chunk_of, pure=False)(parts.cover(lo, hi), transformation) for lo, hi in ranges]
    X = array_of(chunks, [hi - lo for lo, hi in ranges], shape.n_features, transformation.kept)
    if scale == "minmax":  # a feature that some row does not have is 0 there
        low, high = compute(X.min(axis=0), X.max(axis=0))
        return Facts(_dense(low), _dense(high), np.zeros(0))
    if scale == "tf-idf":
        (rows_with,) = compute((X != 0).sum(axis=0))
        return Facts(np.zeros(0), np.zeros(0), _dense(rows_with))
    (largest,) = compute(abs(X).max())
    exponent = int(np.frexp(float(_dense(largest)))[1])
    sums = compute(*(delayed(block_energies, pure=False)(chunk, exponent) for chunk in X.to_delayed().ravel()))
    root = math.sqrt(math.fsum(value for block in sums for value in block.tolist()) / shape.n_rows)
    if root == 0.0:
        raise WrongInput("--scale unit-mean-square: every row is empty")
    return Facts(np.zeros(0), np.zeros(0), np.zeros(0), exponent, root)


def block_energies(chunk: Any, exponent: int) -> Array:
    """The sum of squares of each block of rows, after a multiplication by 2^-exponent: the same whatever the chunks, which begin with a
    block."""
    n = chunk.shape[0]
    if isinstance(chunk, np.ndarray):
        values, numbers = chunk.reshape(-1), np.repeat(np.arange(n), chunk.shape[1])
    else:
        empty = np.zeros(n)
        values, numbers = chunk.data, row_numbers(Piece(empty, chunk.indptr, chunk.indices, chunk.data))
    norms = np.bincount(numbers, weights=np.ldexp(values, -exponent) ** 2, minlength=n)
    return np.add.reduceat(norms, np.arange(0, n, BLOCK))


def _dense(array: Any) -> Array:
    return np.asarray(array.todense() if hasattr(array, "todense") else array)
