"""The Online Newton Step with the full matrix, O(d²) a round: what the sketches approximate.

Luo, Agarwal, Cesa-Bianchi, Langford (NIPS 2016), equations (1) and (2): A_t = αI + Σ ĝĝᵀ with ĝ = √curvature·g, u ← w − A_t⁻¹g, and w the
projection of u onto {w : |wᵀx| ≤ C} in the norm of A. A⁻¹ is kept, by the formula of Sherman and Morrison.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from koco_stream._jit import jit
from koco_stream.linalg import Array
from koco_stream.losses import curvature_at, loss_slope


class Params(NamedTuple):
    """loss: its code. alpha: α. clip: C. curvature: the coefficient of g gᵀ in A, divided by √t if `decreasing`."""

    loss: int
    alpha: float
    clip: float
    curvature: float
    decreasing: bool


class State(NamedTuple):
    """t: () rounds. u: (d,) weights. A_inv: (d, d) A⁻¹. Ax: (d,) scratch, A⁻¹x."""

    t: Array
    u: Array
    A_inv: Array
    Ax: Array


def init(params: Params, n_features: int, seed: int) -> State:
    """u = 0, A = αI. Nothing is drawn: `seed` is not used."""
    return State(np.zeros((), np.int64), np.zeros(n_features), np.eye(n_features) / params.alpha, np.zeros(n_features))


@jit
def predict(params: Params, s: State, idx: Array, val: Array) -> float:
    """uᵀx for the row (idx, val), before it is held within [−C, C]. Learns nothing."""
    y_hat = 0.0
    for i in range(idx.size):
        y_hat += s.u[idx[i]] * np.float64(val[i])
    return y_hat


@jit
def step(params: Params, s: State, idx: Array, val: Array, y: float) -> float:
    """One round on the row (idx, val) with label y. Updates `s`; returns the prediction ŷ."""
    if idx.size == 0:
        return 0.0
    u, A_inv, Ax = s.u, s.A_inv, s.Ax
    d = u.size
    y_hat = predict(params, s, idx, val)
    for k in range(d):
        Ax[k] = 0.0
    for i in range(idx.size):
        j, v = idx[i], np.float64(val[i])
        for k in range(d):
            Ax[k] += v * A_inv[j, k]
    xAx = 0.0
    for i in range(idx.size):
        xAx += np.float64(val[i]) * Ax[idx[i]]
    if xAx <= 0.0:
        return 0.0  # a row too small to be told from none
    change = 0.0  # all changes to u are multiples of A⁻¹x
    if abs(y_hat) > params.clip:
        clipped = math.copysign(params.clip, y_hat)
        change = -(y_hat - clipped) / xAx  # Lemma 1
        y_hat = clipped
    slope = loss_slope(params.loss, y_hat, y)
    t = s.t[()] + 1
    s.t[()] = t
    c2 = curvature_at(params.curvature, params.decreasing, t) * slope * slope
    shrink = 1.0 / (1.0 + c2 * xAx)
    change -= slope * shrink  # A_t⁻¹x = A_{t−1}⁻¹x / (1 + c²xᵀA_{t−1}⁻¹x)
    for k in range(d):
        u[k] += change * Ax[k]
    for j in range(d):
        factor = c2 * shrink * Ax[j]
        if factor != 0.0:
            for k in range(d):
                A_inv[j, k] -= factor * Ax[k]
    return y_hat
