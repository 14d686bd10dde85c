"""The features in which kernel learners are linear, for many rows: one loop, compiled for each
learner that has such features.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from koco_stream.learners.scan import code_name
from koco_stream.numerics.compiler import jit_with
from koco_stream.streams.rows import Rows
from koco_stream.types import Array


def embed(params: Any, state: Any, idx: Array, val: Array, out: Array) -> None:
    """Stands for a learner's embedding of a row; `embedding_of` binds the name to one."""
    raise AssertionError("embedding_of binds this name")


def embed_rows(
    params: Any,
    state: Any,
    indptr: Array,
    indices: Array,
    index_stride: int,
    values: Array,
    out: Array,
) -> None:
    """out[i] ← the features of row i; learns nothing."""
    for i in range(out.shape[0]):
        lo, hi = indptr[i], indptr[i + 1]
        first = lo * index_stride
        embed(params, state, indices[first : first + hi - lo], values[lo:hi], out[i])


@cache
def embedding_of(learner: Any) -> Callable[..., None]:
    """The loop with the `embed` of a learner's class."""
    return jit_with(embed_rows, f"embed_{code_name(learner)}", embed=learner.embed)


def embedded(learner: Any, params: Any, state: Any, rows: Rows, n_features: int) -> Array:
    """The features (n, `n_features`) of the rows for a learner's class."""
    out = np.empty((rows.n_rows, n_features))
    embedding_of(learner)(
        params, state, rows.indptr, rows.indices, rows.index_stride, rows.values, out
    )
    return out
