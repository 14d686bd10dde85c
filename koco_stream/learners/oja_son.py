"""Oja-SON: sketched online Newton with Oja's sketch, in O(m² + ms) a round on rows with s non-zeros.

Luo, Agarwal, Cesa-Bianchi, Langford: Efficient Second Order Online Learning by Sketching (NIPS 2016), Algorithms 1, 3, 4
and 5. Numbers like S9 are entries of docs/errata.md.

The paper keeps V = FZ (orthonormal rows, Z changed only where the row is non-zero) and w = w̄ + Zᵀb. Here w = w̄ + Vᵀβ (S9),
the orthonormalisation is a triangular factor known in closed form (S2), and every formula is written without cancellation (S12).
Z and w̄ lie side by side, one line of memory a feature, so a round reads and writes each of its features once (S3).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from koco_stream._jit import jit
from koco_stream.linalg import Array, gather, orthonormalise, scatter
from koco_stream.losses import loss_slope

FOLD_AT = 1e4  # fold when the bound on F⁻¹'s largest entry passes this (S4)
DENSE_AT = 1e3  # a round that makes the sketch's Gram determinant grow by more than this is done densely (S12)


class Params(NamedTuple):
    """What a run is told, as numbers.

    alpha: α, the ridge of A_0. clip: C, the bound on predictions. curvature: σ + η, the coefficient of g gᵀ in A (divided by √t if
    `decreasing`). rate: c in the sketch's rate γ_t = min(c/t, 1) (S8). lanes: its length is the width of a line of Z.
    """

    loss: int
    alpha: float
    clip: float
    curvature: float
    decreasing: bool
    rate: float
    sketch_size: int
    lanes: tuple[int, ...]


class State(NamedTuple):
    """What the next round needs.

    t: () rounds. zw: (d, width), line j = column j of Z (m numbers), then w̄_j, then padding. F: (width, width), V = FZ.
    beta: (width,) β. tlam: (width,) tΛ, the sketch's eigenvalues. growth: () bound on F⁻¹. folds, dense_rounds: () how often.
    work: (5, width) scratch: Zx, p = Vx, a running row, coefficients, and the s_i of S2.
    """

    t: Array
    zw: Array
    F: Array
    beta: Array
    tlam: Array
    growth: Array
    folds: Array
    dense_rounds: Array
    work: Array


def init(params: Params, n_features: int, seed: int) -> State:
    """The state before the first round: w = 0, V the orthonormalised rows of a Gaussian matrix drawn from `seed`."""
    width, m = len(params.lanes), params.sketch_size
    state = State(
        t=np.zeros((), np.int64),
        zw=np.zeros((n_features, width)),
        F=np.zeros((width, width)),
        beta=np.zeros(width),
        tlam=np.zeros(width),
        growth=np.ones(()),
        folds=np.zeros((), np.int64),
        dense_rounds=np.zeros((), np.int64),
        work=np.zeros((5, width)),
    )
    found = min(m, n_features)
    state.F[range(m), range(m)] = 1.0
    if found:
        state.zw[:, :found] = np.random.default_rng([seed, 0x0A]).standard_normal((n_features, found))
        for _ in range(2):
            orthonormalise(state.zw, found)
    return state


@jit
def look(params: Params, s: State, idx: Array, val: Array) -> tuple[float, float]:
    """uᵀx and ‖x‖² for the row (idx, val); leaves Zx in `work[0]` and x̂ = Vx in `work[1]`."""
    z, p, F, beta = s.work[0], s.work[1], s.F, s.beta
    width = len(params.lanes)
    n2 = gather(s.zw, params.lanes, idx, val, z)
    margin = z[params.sketch_size]  # w̄ᵀx
    z[params.sketch_size] = 0.0
    for i in range(width):
        p_i = 0.0
        for k in range(width):
            p_i += F[i, k] * z[k]
        p[i] = p_i
        margin += beta[i] * p_i
    return margin, n2


@jit
def predict(params: Params, s: State, idx: Array, val: Array) -> float:
    """uᵀx for the row (idx, val), before it is held within [−C, C]. Learns nothing."""
    return look(params, s, idx, val)[0]


@jit
def step(params: Params, s: State, idx: Array, val: Array, y: float) -> float:
    """One round of Algorithm 4 on the row (idx, val) with label y. Updates `s`; returns the prediction ŷ."""
    alpha, C, m = params.alpha, params.clip, params.sketch_size
    z, p, r, coef, sums = s.work[0], s.work[1], s.work[2], s.work[3], s.work[4]
    F, beta, tlam = s.F, s.beta, s.tlam
    width = len(params.lanes)

    # Line 5, projection. p = x̂ = Vx; D = tΛ/(α + tΛ) of the round before.
    y_hat, n2 = look(params, s, idx, val)
    if n2 == 0.0:
        return 0.0  # an empty row: nothing to predict from, nothing to learn
    p2 = 0.0
    for i in range(m):
        p2 += p[i] * p[i]
    h = 0.0
    if abs(y_hat) > C:
        h = y_hat - math.copysign(C, y_hat)
    w_coef = 0.0  # all changes to w̄ are multiples of x (S3): this is the multiple
    if h != 0.0:
        xHx = max(n2 - p2, 0.0)  # αxᵀA⁻¹x, without cancellation (S12)
        for i in range(m):
            xHx += alpha / (alpha + tlam[i]) * p[i] * p[i]
        gamma_p = h / xHx
        w_coef = -gamma_p
        for i in range(m):
            beta[i] += gamma_p * tlam[i] / (alpha + tlam[i]) * p[i]
        y_hat = math.copysign(C, y_hat)

    # Lines 6 and 7: predict, then the slope ℓ'; the to-sketch vector is ĝ = cx.
    slope = loss_slope(params.loss, y_hat, y)
    if m == 0:
        s.t[()] += 1
        coef[0] = w_coef - slope / alpha
        scatter(s.zw, params.lanes, idx, val, coef)
        return y_hat
    t = s.t[()] + 1
    s.t[()] = t
    curvature = params.curvature / math.sqrt(t) if params.decreasing else params.curvature
    c = math.sqrt(curvature) * slope
    c2n2 = c * c * n2  # ‖ĝ‖²

    # Algorithm 5, line 1: Λ ← (1 − γ)Λ + γ diag(q)², with q = Vĝ = cp; kept as tΛ.
    gamma = min(float(params.rate / t), 1.0)
    decay = (1.0 - gamma) * t / (t - 1.0) if t > 1 else 0.0
    gain = gamma * t * c * c
    for i in range(m):
        tlam[i] = decay * tlam[i] + gain * p[i] * p[i]

    # Lines 2 to 4 (S2, S12): V ← L⁻¹(V + γ q ĝᵀ), where LLᵀ = I + κ q qᵀ is known in closed form.
    kappa = gamma * (2.0 + gamma * c2n2)
    grown = 1.0  # s_i = s_{i−1} + κ q_i², from s_0 = 1; the last one is det(L)²
    for i in range(m):
        grown += kappa * (c * p[i]) * (c * p[i])
        sums[i] = grown
    dense = grown > DENSE_AT
    if dense or s.growth[()] * math.sqrt(grown) > FOLD_AT:
        fold(s.zw, F, beta, m, r)
        s.growth[()] = 1.0
        s.folds[()] += 1
        for k in range(m):
            z[k] = p[k]  # now Z = V
    if dense:
        s.dense_rounds[()] += 1
    s.growth[()] *= math.sqrt(grown)

    w_coef -= slope / alpha  # Algorithm 4, line 9
    q_beta = 0.0
    for i in range(width):
        r[i] = 0.0
        q_beta += c * p[i] * beta[i]
    w_coef -= gamma * q_beta * c
    # β ← Lᵀβ, from the last row up: L_ii β_i + b_i Σ_{j>i} q_j β_j with b_i = κ q_i/(s_{i−1} L_ii).
    tail = 0.0
    for i in range(m - 1, -1, -1):
        q, b = c * p[i], beta[i]
        before = sums[i - 1] if i > 0 else 1.0
        l_ii = math.sqrt(sums[i] / before)
        beta[i] = l_ii * b + kappa * q / (before * l_ii) * tail
        tail += q * b
    # F ← L⁻¹F (or, in a dense round, V ← L⁻¹(V + γ q ĝᵀ) itself) and β += (ℓ'/α) D Vx with the new V.
    turn = (1.0 + gamma * c2n2) * slope / alpha
    before = 1.0
    for i in range(m):
        q = c * p[i]
        after = sums[i]
        root = math.sqrt(after * before)
        keep, take = before / root, kappa * q / root
        for k in range(width):
            f = F[i, k]
            F[i, k] = keep * f - take * r[k]
            r[k] += q * f
        beta[i] += turn * tlam[i] / (alpha + tlam[i]) * p[i] / root
        before = after
    for k in range(width):
        coef[k] = gamma * c * c * z[k]  # δĝᵀ = γ c² (Zx) xᵀ (S1)
    coef[m] = w_coef
    scatter(s.zw, params.lanes, idx, val, coef)
    if dense:
        fold(s.zw, F, beta, m, r)
        s.growth[()] = 1.0
    return y_hat


@jit
def fold(zw: Array, F: Array, beta: Array, m: int, row: Array) -> None:
    """Z ← FZ, F ← I, w̄ ← w̄ + Vᵀβ, β ← 0, and one Gram–Schmidt clean-up of V's rows: O(m²d), at rounds decided by the state (S4)."""
    for j in range(zw.shape[0]):
        w = zw[j, m]
        for i in range(m):
            v = 0.0
            for k in range(m):
                v += F[i, k] * zw[j, k]
            row[i] = v
            w += beta[i] * v
        for i in range(m):
            zw[j, i] = row[i]
        zw[j, m] = w
    for i in range(m):
        beta[i] = 0.0
        for k in range(m):
            F[i, k] = 1.0 if i == k else 0.0
    orthonormalise(zw, m)
