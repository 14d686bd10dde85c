"""Oja-SON: sketched online Newton with Oja's sketch, O(m² + ms) a round on rows of s non-zeros.

Luo, Agarwal, Cesa-Bianchi, Langford: Efficient Second Order Online Learning by Sketching (NIPS
2016), Algorithms 1, 3, 4 and 5. Numbers like S9 are entries of docs/errata.md.

The paper keeps V = FZ (orthonormal rows, Z changed only where the row is non-zero) and w = w̄ +
Zᵀb. Here w = w̄ + Vᵀβ (S9), the orthonormalisation is a triangular factor known in closed form
(S2), and every formula is written without cancellation (S12). Z and w̄ lie side by side, one line
of memory a feature, so a round reads and writes each of its features once (S3).

What a round asks of the sketch, and the layout of `a`, is in oja_sketch.py.
"""

import math
from copy import deepcopy
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from koco_stream.learners import spec
from koco_stream.learners.base import Learner
from koco_stream.learners.linear import oja_sketch as sketch
from koco_stream.learners.linear.newton_round import sketch_params, table_cost, with_sketch
from koco_stream.learners.linear.oja_sketch import BETA, COEF, I_MINUS_D, TLAM, F, P, Z
from koco_stream.losses import curvature_at
from koco_stream.numerics.compiler import jit
from koco_stream.numerics.instructions.feature_rows import (
    aligned_zeros,
    line_dot,
    row_at,
    shape_for,
)
from koco_stream.numerics.lazy_maps import (
    USED,
    Maps,
    empty_maps,
    first_use,
    maps_floats,
    scatter_lines,
)
from koco_stream.numerics.linear_algebra import gram_schmidt
from koco_stream.streams.rows import Rows, frozen
from koco_stream.types import Array

SKETCH_SIZE = spec.Parameter(
    "sketch_size", int, "m, the number of rows of the sketch; 0: no sketch", low=0, high=1023
)

FOLD_AT = 1e2  # fold when the bound on F⁻¹'s largest entry passes this (S4)
CANCELS_AT = 1e7  # fold when w̄ᵀx is this many C, so that w̄ and Vᵀβ are not kept against each other
DENSE_AT = 1e3  # a round is dense if the sketch's Gram determinant grows by more than this (S12)
CLEAN_AT = 2.0  # V is made orthonormal again when started rows multiply its rounding by more
DRAW_AT = 1000  # features for each row of the sketch, from which on random rows are drawn by need
NEW_ROW_AT = (
    1e-6  # a gradient starts a row if a larger share of its square is outside the sketch (S10)
)


class Params(NamedTuple):
    """loss: its code. alpha: α. clip: C. curvature: the coefficient of g gᵀ in A, divided by √t if
    `decreasing`. rate: c in the sketch's rate γ_t = min(c/t, 1) (S8). from_gradients: how the
    sketch starts (S10). diagonal: NONE, BEFORE or UPDATED (S7). project_weights: whether u is
    projected, or only its prediction truncated. shape: its length is
    W, the width of a line of Z.
    """

    loss: int
    alpha: float
    clip: float
    curvature: float
    decreasing: bool
    rate: float
    sketch_size: int
    from_gradients: bool
    diagonal: int
    project_weights: bool
    shape: tuple[int, ...]


class State(NamedTuple):
    """t: () rounds. found: () rows of the sketch that have started. zw: (d, W), line j = Z's column
    j (m numbers), then w̄_j, then D_jj if `diagonal`, then padding; last the line's epoch. a: ((F +
    W)·W,) the small vectors and F, V = FZ. maps: the folds that are to be applied to lines. growth:
    () bound on F⁻¹. spoilt: () bound on what V lacks of orthonormality, in roundings. folds,
    cleanings, dense_rounds, doubtful_rounds: () how often. longest_step: () so far. scale, seed: ()
    of a random start that is drawn by need; scale is 0 otherwise. scaled: (d,) scratch for D^(−1/2)
    x, or (0,).
    """

    t: Array
    found: Array
    zw: Array
    a: Array
    maps: Maps
    growth: Array
    spoilt: Array
    folds: Array
    cleanings: Array
    dense_rounds: Array
    doubtful_rounds: Array
    longest_step: Array
    scale: Array
    seed: Array
    scaled: Array


def init(params: Params, n_features: int, seed: int) -> State:
    """w = 0; V is all zero and still to be found, or Gaussian rows drawn from `seed`.

    Few features' rows are orthonormalised. Of many, a feature's numbers are drawn at its first use
    with variance 1/d, so that VVᵀ is I in expectation and within about √(m/d) of it.
    """
    width, m = len(params.shape), params.sketch_size
    found = 0 if params.from_gradients else min(m, n_features)
    by_need = found > 0 and n_features >= DRAW_AT * m
    counted = ("t", "folds", "cleanings", "dense_rounds", "doubtful_rounds")
    counts = {name: np.zeros((), np.int64) for name in counted}
    state = State(
        found=np.array(found),
        zw=aligned_zeros(n_features, width),
        a=aligned_zeros(F + width, width).reshape(-1),
        maps=empty_maps(n_features, m + 1, m + 1, params.shape, sketch.FOLDS),
        growth=np.ones(()),
        spoilt=np.ones(()),
        longest_step=np.zeros(()),
        scale=np.array(1.0 / math.sqrt(n_features) if by_need else 0.0),
        seed=np.array(seed, np.uint64),
        scaled=np.zeros(n_features if params.diagonal else 0),
        **counts,
    )
    state.a[I_MINUS_D * width : (I_MINUS_D + 1) * width] = 1.0
    for i in range(m):
        state.a[F * width + i * (width + 1)] = 1.0
    if found and not by_need:
        drawn, draw = aligned_zeros(n_features, width), np.random.default_rng([seed, 0x0A])
        drawn[:, :found] = draw.standard_normal((n_features, found))
        for _ in range(2):
            gram_schmidt(drawn, found, np.empty(found))
        state.zw[:, :found] = drawn[:, :found]
        for j in range(n_features):
            first_use(state.maps, state.zw, j)
    return state


@jit
def learn(
    params: Params,
    s: State,
    idx: Array,
    val: Array,
    slope: float,
    w_coef: float,
    residual: float,
    n2: float,
) -> None:
    """Lines 7 to 9 for the row that `inspect` was given last: Algorithm 5, then u ← w − A⁻¹g."""
    alpha, m, W, a = params.alpha, params.sketch_size, len(params.shape), s.a
    p, coefficients = row_at(a, P * W, params.shape), row_at(a, COEF * W, params.shape)
    # Line 7: the to-sketch vector is ĝ = cx.
    t = s.t[()] + 1
    s.t[()] = t
    c = math.sqrt(curvature_at(params.curvature, params.decreasing, t)) * slope
    c2n2 = c * c * n2  # ‖ĝ‖²
    started = -1
    if s.found[()] < m and c != 0.0 and residual > NEW_ROW_AT * n2:
        started = int(s.found[()])
        sketch.start_row(a, W, started, n2, residual)
        s.found[()] = started + 1
        s.growth[()] *= math.sqrt(n2 / residual)
        s.spoilt[()] *= n2 / residual

    # Algorithm 5, line 1: Λ ← (1 − γ)Λ + γ diag(q)², with q = Vĝ = cp; kept as tΛ. One γ stands for
    # the matrix Γ_t.
    gamma = min(float(params.rate / t), 1.0)
    decay = (1.0 - gamma) * t / (t - 1.0) if t > 1 else 0.0
    if slope == 0.0:  # g = 0: only Λ changes, and w̄ where it was projected
        sketch.forget(a, W, alpha, decay)
        for k in range(W):
            a[COEF * W + k] = w_coef if k == m else 0.0
        scatter_lines(s.maps, s.zw, params.shape, idx, val, coefficients, a[sketch.new_lines(W)])
        return
    gain = gamma * t * c * c
    # Lines 2 to 4 (S2, S12): V ← L⁻¹(V + γ q ĝᵀ), where LLᵀ = I + κ q qᵀ is known in closed form
    # from s_i = s_{i−1} + κ q_i², s_0 = 1. The last s is det(L)².
    kappa = gamma * (2.0 + gamma * c2n2)
    kappa_c2 = kappa * c * c
    grown = 1.0 + kappa_c2 * line_dot(p, p, params.shape)
    dense = grown > DENSE_AT
    # w̄ᵀx is still in the scratch: βᵀVx cancels it
    cancels = abs(a[Z * W + m]) > CANCELS_AT * params.clip
    if not dense and (cancels or s.growth[()] * math.sqrt(grown) > FOLD_AT):
        if started >= 0:  # the fold maps all of Z: its new row has to be there
            sketch.write_row(s.zw, a, s.maps, params.shape, idx, val, started, residual)
            started = -1
        sketch.fold(s.zw, a, s.maps, s.scale, s.seed, params.shape, m)
        sketch.bring(s.zw, s.maps, s.scale, s.seed, params.shape, m, idx)
        s.growth[()] = 1.0
        s.folds[()] += 1
        for k in range(m):
            a[Z * W + k] = a[P * W + k]  # now Z = V
    if dense:
        sketch.settle(a, m, W)
    s.growth[()] *= math.sqrt(grown)
    # Algorithm 4, line 9: w̄ ← w̄ − g/α − (δᵀb)ĝ, where δᵀb = γqᵀβ (S9).
    w_coef -= (
        gamma * c * c * line_dot(p, row_at(a, BETA * W, params.shape), params.shape) + slope / alpha
    )
    # Algorithm 5, line 3: Z ← Z + δĝᵀ with δĝᵀ = γc²(Zx)xᵀ (S1), before lines 1 and 4, so that
    # memory is written while these are computed.
    for k in range(W):
        a[COEF * W + k] = gamma * c * c * a[Z * W + k] if k < m and not dense else 0.0
    a[COEF * W + m] = w_coef
    if started >= 0:
        a[COEF * W + started] += 1.0 / math.sqrt(residual)
    scatter_lines(s.maps, s.zw, params.shape, idx, val, coefficients, a[sketch.new_lines(W)])

    # Lines 1 and 4: the rows of V are orthonormal again; β follows V.
    sketch.orthonormalise(
        a, params.shape, m, alpha, c, decay, gain, kappa, (1.0 + gamma * c2n2) * slope / alpha
    )
    unclean = s.spoilt[()] > CLEAN_AT
    if dense:
        sketch.add_densely(params, s, idx, val, c / (2.0 + gamma * c2n2))
        s.dense_rounds[()] += 1
    elif unclean:
        sketch.fold(s.zw, a, s.maps, s.scale, s.seed, params.shape, m)
    if unclean:
        sketch.clean(s.zw, a, s.maps, params.shape, m)
        s.spoilt[()] = 1.0
        s.cleanings[()] += 1
    if dense or unclean:
        s.growth[()] = 1.0
        s.folds[()] += 1


forward, step = with_sketch(
    "oja_son", sketch.inspect, sketch.residual_of, sketch.project, learn, sketch.columns_of
)


class OjaSON(Learner):
    """Sketched online Newton with Oja's sketch, in O(m² + ms) a round.

    Notes
    -----
    Luo et al. (NIPS 2016), Algorithms 4 and 5.

    Examples
    --------
    >>> from koco_stream import OjaSON
    >>> OjaSON(2, alpha=1.0).progressive([[1.0, 0.0], [1.0, 0.0]], [1.0, 1.0]).round(3).tolist()
    [0.0, 0.667]
    """

    parameters = (
        *spec.SHARED,
        SKETCH_SIZE,
        spec.ALPHA,
        replace(spec.CURVATURE, matters_if=("sketch_size", range(1, 1024))),
        replace(spec.CURVATURE_SCHEDULE, matters_if=("sketch_size", range(1, 1024))),
        sketch.SKETCH_RATE,
        sketch.SKETCH_START,
        spec.DIAGONAL,
        spec.PROJECTION,
    )
    init, step, forward = staticmethod(init), staticmethod(step), staticmethod(forward)

    def __init__(
        self,
        sketch_size: int = 10,
        alpha: float = 1.0,
        *,
        curvature: float | None = None,
        curvature_schedule: str = "constant",
        sketch_rate: float = 1.0,
        sketch_start: str = "gradients",
        diagonal: bool | str = False,
        projection: str = "weights",
        loss: str = "squared",
        clip: float = 1.0,
        fit_intercept: bool = False,
        seed: int = 0,
    ) -> None:
        self._keep(locals())

    @classmethod
    def to_params(cls, q: spec.Public) -> Params:
        m, diagonal = spec.whole(q, "sketch_size"), bool(q["diagonal"])
        return Params(
            **sketch_params(q),
            rate=spec.real(q, "sketch_rate"),
            from_gradients=q["sketch_start"] == "gradients",
            shape=shape_for(m + 2 + diagonal),
        )

    @classmethod
    def stochastic(cls, q: spec.Public) -> bool:
        return q["sketch_size"] != 0 and q["sketch_start"] == "random"

    @classmethod
    def cost(cls, q: spec.Public, size: spec.StreamSize) -> spec.Cost:
        n = spec.whole(q, "sketch_size") + 1
        cost = table_cost(q, size, n + 1)
        width = len(shape_for(n + 1 + bool(q["diagonal"])))
        return cost._replace(floats=cost.floats + maps_floats(size.d, n, n, width, sketch.FOLDS))

    @classmethod
    def expect(cls, params: Params, state: State, rows: Rows) -> Array:
        """Predictions (n,) for rows, each as if it came in the next round.

        Bringing a line up to date now and again later rounds otherwise than doing it once: so it is
        done on a copy of the lines of these rows.
        """
        features, indices = np.unique(rows.indices, return_inverse=True)
        lines = aligned_zeros(features.size, len(params.shape))
        lines[:] = state.zw[features]
        counts, products = state.maps.counts.copy(), state.maps.lines.copy()
        counts[USED] = 0
        maps = Maps(counts, np.zeros(features.size, np.int32), products)
        copied = state._replace(zw=lines, maps=maps)
        sketch.bring_lines(params, copied, features)
        return super().expect(
            params,
            copied,
            rows._replace(indices=frozen(indices, np.int32), n_features=features.size),
        )

    @property
    def sketch_(self) -> Array:
        """V (m, d), the sketch's orthonormal rows; zero where a row has not started."""
        return self._sketch_of(self._table())

    @property
    def eigenvalues_(self) -> Array:
        """tΛ (m,), the estimated eigenvalues of Σ ĝĝᵀ."""
        return self._lines(TLAM)[0, : self._params.sketch_size].copy()

    @property
    def coef_(self) -> Array:
        """The weights u (d,), the intercept's last; of the rescaled features if `diagonal`."""
        m, table = self._params.sketch_size, self._table()
        return table[:, m] + self._sketch_of(table).T @ self._lines(BETA)[0, :m]

    def _table(self) -> Array:
        """The table on a copy, all brought up to date."""
        copied = deepcopy(self._state)
        sketch.bring_lines(self._params, copied, np.arange(copied.zw.shape[0]))
        return copied.zw

    def _sketch_of(self, table: Array) -> Array:
        """V (m, d) from the table."""
        m = self._params.sketch_size
        return table[:, :m].dot(self._lines(F)[:m, :m].T).T

    def _lines(self, first: int) -> Array:
        """The small vectors and F, a line each, from this one on."""
        return self._state.a.reshape(-1, len(self._params.shape))[first:]
