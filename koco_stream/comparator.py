"""The best linear predictor in hindsight, which regret is measured against: least squares over a whole stream.

min_w Σ (wᵀx_t − y_t)² is solved by conjugate gradients on the normal equations (Paige and Saunders, 1982, call it CGLS), which touch
the rows only through products with X and Xᵀ, in a fixed order. The solution does not respect the clip: how far its predictions go is
returned beside the loss, and a regret is to be read with it.
"""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from koco_stream._jit import jit
from koco_stream.cache import private_folder
from koco_stream.files import content_hash, write_text
from koco_stream.linalg import Array
from koco_stream.rows import with_intercept
from koco_stream.stream import Block, StreamReader

STEPS = 500
TOLERANCE = 1e-9  # of ‖Xᵀr‖ against its start


class Comparator(NamedTuple):
    """loss: Σ (wᵀx_t − y_t)² of the solution. largest: its largest |wᵀx_t|."""

    loss: float
    largest: float


def comparator_of(reader: StreamReader, fit_intercept: bool) -> Comparator:
    """The comparator of a stream, from the cache folder if it was computed before. The order of the rows does not matter."""
    identity = {**reader.stream.identity(), "order": None, "order_seed": None, "intercept": fit_intercept, "version": 1}
    if reader.stream.max_rows is not None:
        identity["order"], identity["order_seed"] = reader.stream.order, reader.stream.order_seed
    path = Path(private_folder("comparators")) / f"{content_hash(identity)}.json"
    if path.is_file():
        return Comparator(**json.loads(path.read_text()))
    found = least_squares(reader, fit_intercept)
    write_text(path, json.dumps(found._asdict()))
    return found


def least_squares(reader: StreamReader, fit_intercept: bool) -> Comparator:
    """CGLS over the rows as stored (or the stream's own rows if it reads only some), to a relative tolerance of 1e-9 or 500 steps."""
    stored = replace(reader.stream, order="as-stored", order_seed=None) if reader.stream.max_rows is None else reader.stream
    whole = StreamReader(reader.store, stored)
    blocks = list(whole.blocks())  # of a shard and without zeros they are views, not copies
    if fit_intercept:
        blocks = [Block(with_intercept(block.rows), block.labels) for block in blocks]
    d = whole.manifest.n_features + int(fit_intercept)
    w, direction = np.zeros(d), np.zeros(d)
    residuals = [block.labels.copy() for block in blocks]
    gradient = _transposed(blocks, residuals, d)
    direction[:] = gradient
    norm2 = first = float(_square(gradient))
    for _ in range(STEPS):
        if norm2 <= TOLERANCE**2 * first:
            break
        images = [_times(block, direction) for block in blocks]
        curvature = math.fsum(float(_square(image)) for image in images)
        if curvature == 0.0:
            break
        step = norm2 / curvature
        w += step * direction
        for residual, image in zip(residuals, images, strict=True):
            residual -= step * image
        gradient = _transposed(blocks, residuals, d)
        before, norm2 = norm2, float(_square(gradient))
        direction = gradient + (norm2 / before) * direction
    largest = max((float(np.abs(_times(block, w)).max(initial=0.0)) for block in blocks), default=0.0)
    return Comparator(math.fsum(float(_square(residual)) for residual in residuals), largest)


def _times(block: Block, w: Array) -> Array:
    out = np.empty(block.labels.size)
    rows = block.rows
    products(rows.indptr, rows.indices, rows.index_stride, rows.values, w, out)
    return out


def _transposed(blocks: list[Block], residuals: list[Array], d: int) -> Array:
    out = np.zeros(d)
    for block, residual in zip(blocks, residuals, strict=True):
        rows = block.rows
        add_transposed(rows.indptr, rows.indices, rows.index_stride, rows.values, residual, out)
    return out


@jit
def products(indptr: Array, indices: Array, stride: int, values: Array, w: Array, out: Array) -> None:
    """out ← Xw."""
    for t in range(out.size):
        total = 0.0
        for i in range(indptr[t], indptr[t + 1]):
            total += np.float64(values[i]) * w[indices[i if stride else i - indptr[t]]]
        out[t] = total


@jit
def add_transposed(indptr: Array, indices: Array, stride: int, values: Array, r: Array, out: Array) -> None:
    """out ← out + Xᵀr."""
    for t in range(r.size):
        for i in range(indptr[t], indptr[t + 1]):
            out[indices[i if stride else i - indptr[t]]] += np.float64(values[i]) * r[t]


@jit
def _square(x: Array) -> float:
    """‖x‖², in order."""
    total = 0.0
    for i in range(x.size):
        total += x[i] * x[i]
    return total
