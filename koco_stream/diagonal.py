"""Diagonal adaptation (Luo et al., 2016, section 5.2; docs/errata.md, S7): feed D^(−1/2) x, where D_jj is 0.1 and the
squares of g_j so far.

D lies in one column of a learner's table, so a round finds it in the line it reads anyway.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from koco_stream._jit import jit, jit_with
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


def look(params: Any, s: Any, idx: Array, val: Array) -> tuple[float, float]:
    """Stands for a learner's look at a row; `with_diagonal` binds the name to one."""
    raise AssertionError("with_diagonal binds this name")


def newton_step(params: Any, s: Any, idx: Array, val: Array, y: float) -> float:
    """Stands for a learner's round without the diagonal; `with_diagonal` binds the name to one."""
    raise AssertionError("with_diagonal binds this name")


def diagonal_of(params: Any, s: Any) -> tuple[Array, int]:
    """Stands for where a learner has D: its table, and the column there; `with_diagonal` binds the name to one."""
    raise AssertionError("with_diagonal binds this name")


def predict(params: Any, s: Any, idx: Array, val: Array) -> float:
    """uᵀx for the row (idx, val), before it is held within [−C, C]. Learns nothing."""
    if params.diagonal:
        table, column = diagonal_of(params, s)
        rescale(table, column, idx, val, s.scaled)
        return look(params, s, idx, s.scaled_view[: idx.size])[0]
    return look(params, s, idx, val)[0]


def step(params: Any, s: Any, idx: Array, val: Array, y: float) -> float:
    """One round on the row (idx, val) with label y. Updates `s`; returns the prediction ŷ."""
    if not params.diagonal:
        return newton_step(params, s, idx, val, y)
    table, column = diagonal_of(params, s)
    rescale(table, column, idx, val, s.scaled)
    y_hat = newton_step(params, s, idx, s.scaled_view[: idx.size], y)
    adapt(table, column, idx, val, params.loss, y_hat, y)
    return y_hat


def with_diagonal(learner: str, look: Any, newton_step: Any, diagonal_of: Any) -> tuple[Callable[..., float], Callable[..., float]]:
    """A learner's `predict` and `step`: its own `look` and `newton_step`, on D^(−1/2) x if its `params.diagonal`. `learner` is its file."""
    names = {"look": look, "newton_step": newton_step, "diagonal_of": diagonal_of}
    return jit_with(predict, f"{learner}_predict", **names), jit_with(step, f"{learner}_step", **names)
