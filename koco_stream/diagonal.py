"""Diagonal adaptation (Luo et al., 2016, section 5.2; docs/errata.md, S7): feed D^(−1/2) x, where D_jj is 0.1 and the
squares of g_j so far.

D lies in one column of a learner's table, so a round finds it in the line it reads anyway.
"""

from __future__ import annotations

import math

import numpy as np

from koco_stream._jit import jit
from koco_stream.linalg import Array
from koco_stream.losses import loss_slope

FIRST_D = 0.1


@jit
def rescale(table: Array, column: int, idx: Array, val: Array, scaled: Array) -> None:
    """scaled ← D^(−1/2) x for the row (idx, val)."""
    for i in range(idx.size):
        scaled[i] = np.float64(val[i]) / math.sqrt(table[idx[i], column])


@jit
def adapt(table: Array, column: int, idx: Array, val: Array, loss: int, y_hat: float, y: float) -> None:
    """D_jj ← D_jj + g_j² for the row's features, with g = ℓ'(ŷ, y)·x of the unscaled x."""
    slope = loss_slope(loss, y_hat, y)
    for i in range(idx.size):
        g = slope * np.float64(val[i])
        table[idx[i], column] += g * g


def scratch(n_features: int, wanted: bool) -> tuple[Array, Array]:
    """A vector for `rescale` and a read-only view of it (a row's values are read-only, and the compiler sees one kind of row)."""
    scaled = np.zeros(n_features if wanted else 0)
    view = scaled.view()
    view.flags.writeable = False
    return scaled, view
