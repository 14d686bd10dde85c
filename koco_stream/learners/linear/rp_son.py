"""RP-SON: sketched online Newton with random projections, in O(m² + ms) a round on rows with s
non-zeros.

Luo, Agarwal, Cesa-Bianchi, Langford (NIPS 2016), Algorithm 1 and section 3: S ← S + r ĝᵀ with r ~
N(0, I/m) (S5 of docs/errata.md), and H = (αI + SSᵀ)⁻¹. A line of S changes only where the row is
non-zero, so w = w̄ + Sᵀb needs no more than b and sparse changes of w̄.

With s = Sĝ, n = ‖ĝ‖² and δ = n − sᵀHs, all of H's update is positive: Δ = δ rᵀHr + (1 + rᵀHs)², and
H ← H − (δ Hr(Hr)ᵀ + (1 + rᵀHs)(Hr(Hs)ᵀ + Hs(Hr)ᵀ) − rᵀHr Hs(Hs)ᵀ)/Δ, H_t S_tĝ = ((1 + rᵀHs) Hs + δ
Hr)/Δ (S15). Every 4m rounds, and when rounding has spoilt it, H is made anew from SSᵀ, which is
kept beside it. Once SSᵀ is a thousand times α, each product with H is refined by a step on its
residual. Once it is a million times α, an explicit H has too few digits for x − SᵀHSx even so, and
the rounds from then on solve with the Cholesky factor of αI + SSᵀ: O(m³ + ms), counted as dense
rounds.
"""

import math
from typing import NamedTuple

import numpy as np

from koco_stream.learners.base import Learner
from koco_stream.learners.linear.newton_round import (
    DIAGONAL_FORMS,
    FIRST_D,
    table_cost,
    with_sketch,
)
from koco_stream.learners.spec import (
    DIAGONAL,
    NEWTON_STEP,
    PROJECTION,
    SHARED,
    SKETCH_SIZE,
    Cost,
    Public,
    StreamSize,
    newton_params,
    whole,
)
from koco_stream.losses import curvature_at
from koco_stream.numerics.compiler import inlined, jit
from koco_stream.numerics.linear_algebra import (
    dot,
    factor_shifted,
    inverse_of_shifted,
    solve_factored,
)
from koco_stream.numerics.llvm.feature_lines import (
    add_outer,
    aligned_zeros,
    gather,
    lanes_for,
    scatter,
    times,
)
from koco_stream.numerics.random import normal
from koco_stream.types import Array

# Vectors in `a`, each (W,). State: b. Scratch: x̂ = Sx, r, Hx̂, Hr, what is added to the features'
# lines, the factors of the outer products. Then H, SSᵀ and the Cholesky factor of αI + SSᵀ, each
# (W, W).
B, X_HAT, R, HX, HR, COEF, ON_R, ON_S, BOTH, FIRST_MATRIX = range(10)

# w̄ᵀx and the parts of bᵀx̂ cancel when those pass this many times C: then w̄ ← w̄ + Sᵀb, b ← 0
FOLD_AT = 1e3
# from trace(SSᵀ) = this many times α on H is not kept: its rounding, 1e-16/α, times λ has to stay
# below α/λ
SOLVE_AT = 1e6
REFINE_AT = 1e3  # from here on Hv is refined by a step on what v − (αI + SSᵀ)Hv leaves
SPOILT_AT = 1e-9  # H is made anew if that step is larger than this share of Hv


class Params(NamedTuple):
    """loss: its code. alpha: α. clip: C. curvature: the coefficient of g gᵀ in A, divided by √t if
    `decreasing`. sketch_size: m. diagonal: NONE, BEFORE or UPDATED (S7). project_weights: whether u
    is projected, or only its prediction truncated. lanes: its length is W, the width of a line.
    """

    loss: int
    alpha: float
    clip: float
    curvature: float
    decreasing: bool
    sketch_size: int
    diagonal: int
    project_weights: bool
    lanes: tuple[int, ...]


class State(NamedTuple):
    """t: () rounds. folds: () how often w̄ took over Sᵀb. dense_rounds: () rounds that solved with
    the factor. seed: () of the r's. sw: (d, W), line j = column j of S (m numbers), then w̄_j, then
    D_jj if `diagonal`, then padding. a: (9·W + 3·W²,) the small vectors, H, SSᵀ, the factor.
    scaled: (d,) scratch for D^(−1/2) x, or (0,).
    """

    t: Array
    folds: Array
    dense_rounds: Array
    seed: Array
    sw: Array
    a: Array
    scaled: Array


def init(params: Params, n_features: int, seed: int) -> State:
    """w = 0, S = 0, H = I/α."""
    width = len(params.lanes)
    a = aligned_zeros(FIRST_MATRIX + 3 * width, width)
    a[range(FIRST_MATRIX, FIRST_MATRIX + params.sketch_size), range(params.sketch_size)] = (
        1.0 / params.alpha
    )
    state = State(
        np.zeros((), np.int64),
        np.zeros((), np.int64),
        np.zeros((), np.int64),
        np.array(seed, np.uint64),
        aligned_zeros(n_features, width),
        a.reshape(-1),
        np.zeros(n_features if params.diagonal else 0),
    )
    if params.diagonal:
        state.sw[:, params.sketch_size + 1] = FIRST_D
    return state


@jit
def inspect(params: Params, s: State, idx: Array, val: Array) -> tuple[float, float]:
    """uᵀx and ‖x‖² for the row (idx, val); leaves x̂ = Sx in the scratch."""
    a, m, W = s.a, params.sketch_size, len(params.lanes)
    n2 = gather(s.sw, params.lanes, idx, val, a, X_HAT * W)
    margin = a[X_HAT * W + m]  # w̄ᵀx
    for i in range(m):
        margin += a[B * W + i] * a[X_HAT * W + i]
    for i in range(m, W):
        a[X_HAT * W + i] = 0.0
    return margin, n2


@inlined
def columns_of(params: Params, s: State) -> tuple[Array, int, int]:
    """The table, and where in its lines w̄ and D are."""
    return s.sw, params.sketch_size, params.sketch_size + 1


@inlined
def trace_of(params: Params, s: State) -> float:
    """The trace of SSᵀ."""
    W = len(params.lanes)
    K, trace = (FIRST_MATRIX + W) * W, 0.0
    for i in range(params.sketch_size):
        trace += s.a[K + i * (W + 1)]
    return trace


@inlined
def solves(params: Params, s: State, trace: float) -> bool:
    """Whether H is no longer kept: see `SOLVE_AT`."""
    return bool(s.dense_rounds[()] > 0) or trace > SOLVE_AT * params.alpha


@jit
def apply_H(params: Params, a: Array, trace: float, v: int, out: int) -> bool:
    """out ← Hv, the vectors at these places of `a`. Returns whether H's rounding is small enough
    for that.
    """
    m, W = params.sketch_size, len(params.lanes)
    H, K = FIRST_MATRIX * W, (FIRST_MATRIX + W) * W
    times(a, params.lanes, H, v, out)
    if trace <= REFINE_AT * params.alpha:
        return True
    times(a, params.lanes, K, out, ON_R * W)
    for i in range(m):
        a[ON_R * W + i] = a[v + i] - params.alpha * a[out + i] - a[ON_R * W + i]
    times(a, params.lanes, H, ON_R * W, ON_S * W)
    size, change = 0.0, 0.0
    for i in range(m):
        size += abs(a[out + i])
        change += abs(a[ON_S * W + i])
        a[out + i] += a[ON_S * W + i]
    return change <= SPOILT_AT * size


@jit
def residual_of(params: Params, s: State, n2: float) -> float:
    """αxᵀA⁻¹x = ‖x‖² − x̂ᵀHx̂; leaves Hx̂ in the scratch."""
    a, m, W = s.a, params.sketch_size, len(params.lanes)
    H, K, L = FIRST_MATRIX * W, (FIRST_MATRIX + W) * W, (FIRST_MATRIX + 2 * W) * W
    parts = 0.0
    for i in range(m):
        parts += abs(a[B * W + i] * a[X_HAT * W + i])
    a[BOTH * W + m] = parts  # of bᵀx̂, which decide whether the round folds
    trace = trace_of(params, s)
    if solves(params, s, trace):
        if s.dense_rounds[()] == 0:
            factor_shifted(a, W, m, K, params.alpha, L)
        solve_factored(a, W, m, L, 0, X_HAT * W, HX * W)
        xHx = dot(a, m, X_HAT * W, HX * W)
    else:
        sound = apply_H(params, a, trace, X_HAT * W, HX * W)
        xHx = dot(a, m, X_HAT * W, HX * W)
        if not (sound and 0.0 <= xHx <= n2):
            inverse_of_shifted(a, W, m, K, params.alpha, H, L)
            apply_H(params, a, trace, X_HAT * W, HX * W)
            xHx = dot(a, m, X_HAT * W, HX * W)
    # Never less than what the largest possible eigenvalue of A leaves of it.
    return max(n2 - xHx, n2 * params.alpha / (params.alpha + trace))


@inlined
def project(params: Params, s: State, excess: float, residual: float) -> float:
    """Line 5: γ_p = h/(αxᵀA⁻¹x), w ← u − γ_p(x − SᵀHx̂). Returns −γ_p, which w̄ is still to get of
    x.
    """
    a, W = s.a, len(params.lanes)
    gamma_p = excess / residual
    for i in range(params.sketch_size):
        a[B * W + i] += gamma_p * a[HX * W + i]
    return -gamma_p


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
    """Lines 7 to 9 for the row that was looked at last."""
    alpha, m, W = params.alpha, params.sketch_size, len(params.lanes)
    a = s.a
    H, K, L = FIRST_MATRIX * W, (FIRST_MATRIX + W) * W, (FIRST_MATRIX + 2 * W) * W
    trace = trace_of(params, s)
    solving = solves(params, s, trace)
    s.dense_rounds[()] += solving
    parts = a[BOTH * W + m]
    # Line 7: the to-sketch vector is ĝ = cx.
    t = s.t[()] + 1
    s.t[()] = t
    c = math.sqrt(curvature_at(params.curvature, params.decreasing, t)) * slope

    # Line 8: S ← S + r ĝᵀ; SSᵀ and H follow.
    scale = 1.0 / math.sqrt(m)
    r_b = 0.0
    for i in range(m):
        a[R * W + i] = scale * normal(s.seed[()], t * m + i)
        r_b += a[R * W + i] * a[B * W + i]
    sound = True
    if solving:
        solve_factored(a, W, m, L, 0, R * W, HR * W)
    else:
        sound = apply_H(params, a, trace, R * W, HR * W)
    rHr, rHs = dot(a, m, R * W, HR * W), c * dot(a, m, R * W, HX * W)
    # Spoilt if below what H's smallest possible eigenvalue allows; that is then taken, and H made
    # anew after the round.
    least = dot(a, m, R * W, R * W) / (alpha + trace)
    spoilt = not (sound and rHr >= least)
    rHr = max(rHr, least)
    n, delta = c * c * n2, c * c * residual
    one = 1.0 + rHs
    Delta = delta * rHr + one * one
    for i in range(m):
        a[ON_R * W + i] = -(delta * a[HR * W + i] + one * c * a[HX * W + i]) / Delta
        a[ON_S * W + i] = -c * (one * a[HR * W + i] - rHr * c * a[HX * W + i]) / Delta
        a[BOTH * W + i] = c * a[X_HAT * W + i] + n * a[R * W + i]
        a[COEF * W + i] = c * a[R * W + i]  # δS = r ĝᵀ
    if not solving:
        add_outer(a, params.lanes, m, H, ON_R * W, HR * W)
        add_outer(a, params.lanes, m, H, ON_S * W, HX * W)
    add_outer(a, params.lanes, m, K, BOTH * W, R * W)
    add_outer(a, params.lanes, m, K, COEF * W, X_HAT * W)
    # Line 9: u ← w − (g − SᵀHSg)/α, with w̄ freed of what S's change adds to Sᵀb.
    w_coef -= slope / alpha + c * r_b
    for i in range(m):
        if c != 0.0:
            a[B * W + i] += (
                slope / (alpha * c) * (one * c * a[HX * W + i] + delta * a[HR * W + i]) / Delta
            )
    a[COEF * W + m] = w_coef
    scatter(s.sw, params.lanes, idx, val, a, COEF * W)
    if parts > FOLD_AT * params.clip:
        fold(s.sw, a, m, W)
        s.folds[()] += 1
    if solving:
        factor_shifted(a, W, m, K, alpha, L)
    elif spoilt or t % (4 * m) == 0:
        inverse_of_shifted(a, W, m, K, alpha, H, L)


@jit
def fold(sw: Array, a: Array, m: int, W: int) -> None:
    """w̄ ← w̄ + Sᵀb, b ← 0: O(md), at rounds decided by the state."""
    for j in range(sw.shape[0]):
        for i in range(m):
            sw[j, m] += a[B * W + i] * sw[j, i]
    for i in range(m):
        a[B * W + i] = 0.0


forward, step = with_sketch("rp_son", inspect, residual_of, project, learn, columns_of)


class RPSON(Learner):
    """Sketched online Newton with random projections, O(m² + ms) a round.

    Parameters
    ----------
    sketch_size : int
        m, the rows of the sketch.
    alpha : float
        α > 0, the ridge; 1/α is the step off the sketch.
    curvature : float, optional
        The coefficient of g gᵀ in A. By default the loss's σ for `clip`.
    curvature_schedule : {"constant", "decreasing"}
        Whether `curvature` stays, or is divided by √t.
    diagonal : bool or "updated"
        Feed D^(−1/2) x with D_jj = 0.1 + Σ g_j² (section 5.2). True: with the D of the rounds
        before, as printed. "updated": predict so, and update the sketch and the weights with this
        round's g in D too, as Vowpal Wabbit does (docs/errata.md, S7).
    projection : {"weights", "prediction"}
        How predictions are bounded: the weights are projected onto {w : |wᵀx| ≤ C} before each
        prediction, as in the paper, or the prediction is truncated to [−C, C].
    loss : {"squared", "half_squared", "logistic", "squared_hinge", "hinge"}
        The loss.
    clip : float
        C > 0, the bound on predictions.
    fit_intercept : bool
        Add a feature that is always 1.
    seed : int
        Of the projections.

    Attributes
    ----------
    coef_ : ndarray of shape (d,)
        The weights, with the intercept's last if there is one (of the
        rescaled features if `diagonal`).
    sketch_ : ndarray of shape (m, d)
        S, the sketch.

    Notes
    -----
    Luo et al. (NIPS 2016), Algorithm 1 and section 3.
    """

    parameters = (*SHARED, SKETCH_SIZE, *NEWTON_STEP, DIAGONAL, PROJECTION)
    numbers_version = 3
    init, step, forward = staticmethod(init), staticmethod(step), staticmethod(forward)

    def __init__(
        self,
        sketch_size: int = 10,
        alpha: float = 1.0,
        *,
        curvature: float | None = None,
        curvature_schedule: str = "constant",
        diagonal: bool | str = False,
        projection: str = "weights",
        loss: str = "squared",
        clip: float = 1.0,
        fit_intercept: bool = False,
        seed: int = 0,
    ) -> None:
        self._keep(locals())

    @classmethod
    def to_params(cls, q: Public) -> Params:
        """As `Spec.to_params`."""
        m, diagonal = whole(q, "sketch_size"), bool(q["diagonal"])
        return Params(
            **newton_params(q),
            sketch_size=m,
            diagonal=DIAGONAL_FORMS[q["diagonal"]],
            project_weights=q["projection"] == "weights",
            lanes=lanes_for(m + 1 + diagonal),
        )

    @classmethod
    def stochastic(cls, q: Public) -> bool:
        """As `Spec.stochastic`: always."""
        return True

    @classmethod
    def cost(cls, q: Public, size: StreamSize) -> Cost:
        """As `Spec.cost`."""
        of_table = table_cost(q, size)
        width = len(lanes_for(whole(q, "sketch_size") + 2))
        return Cost(of_table.floats + 2 * width**2, 100 + of_table.nanoseconds)

    @property
    def sketch_(self) -> Array:
        """S (m, d), the sketch."""
        return self._state.sw[:, : self._params.sketch_size].T.copy()

    @property
    def coef_(self) -> Array:
        """The weights u (d,), with the intercept's last (of the rescaled features if
        `diagonal`).
        """
        m = self._params.sketch_size
        return self._state.sw[:, m] + self._state.sw[:, :m] @ self._state.a[:m]
