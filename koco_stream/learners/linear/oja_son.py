"""Oja-SON: sketched online Newton with Oja's sketch, in O(m² + ms) a round on rows with s
non-zeros.

Luo, Agarwal, Cesa-Bianchi, Langford: Efficient Second Order Online Learning by Sketching (NIPS
2016), Algorithms 1, 3, 4 and 5. Numbers like S9 are entries of docs/errata.md.

The paper keeps V = FZ (orthonormal rows, Z changed only where the row is non-zero) and w = w̄ +
Zᵀb. Here w = w̄ + Vᵀβ (S9), the orthonormalisation is a triangular factor known in closed form
(S2), and every formula is written without cancellation (S12). Z and w̄ lie side by side, one line
of memory a feature, so a round reads and writes each of its features once (S3).

The small vectors and F lie in one flat array `a`; `a[P * W + i]` is p_i, where W is the width (see
koco_stream.numerics.llvm.feature_lines).
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
    Cost,
    Parameter,
    Public,
    StreamSize,
    newton_params,
    real,
    whole,
)
from koco_stream.losses import curvature_at
from koco_stream.numerics.compiler import inlined, jit
from koco_stream.numerics.linear_algebra import orthonormalise, reorthonormalise
from koco_stream.numerics.llvm.feature_lines import (
    aligned_zeros,
    dot,
    dot3,
    gather,
    lanes_for,
    scatter,
    substitute,
    sums_after,
    sums_before,
    times,
)
from koco_stream.types import Array

SKETCH_SIZE = Parameter("sketch_size", int, "m, the rows of the sketch; 0: none", low=0, high=1023)
SKETCH_RATE = Parameter(
    "sketch_rate", float, "c in the sketch's rate min(c/t, 1)", low=0, above=True
)
# At the printed rate the first gradients err less on 37 of 65 streams, random rows on 11
# (docs/sketch-start.md); and they cost less.
SKETCH_START = Parameter(
    "sketch_start",
    str,
    "the sketch's first rows: the first gradients, or random",
    choices=("random", "gradients"),
)

FOLD_AT = 1e2  # fold when the bound on F⁻¹'s largest entry passes this (S4)
# a round that makes the sketch's Gram determinant grow by more than this is done densely (S12)
DENSE_AT = 1e3
# a row that starts may make V's rounding grow by this much; beyond it the round ends with a fold
CLEAN_AT = 1e2
# a gradient starts a row of the sketch if the square of its part off the sketch is above this share
# (S10)
NEW_ROW_AT = 1e-6

# Vectors in `a`, each (W,). State: β, tΛ, I − D = α/(α + tΛ) and D = tΛ/(α + tΛ). Scratch,
# meaningless between rounds: Zx; p = Vx; Σ_{j<i} p_j² and Σ_{j>i} p_j β_j; what is added to the
# features' lines; q = Vĝ; the factors by which L⁻¹ takes a row's own and the earlier rows' numbers.
# Then F, (W, W), by rows.
BETA, TLAM, I_MINUS_D, D, Z, P, ENERGY, MARGIN, COEF, Q, OWN, EARLIER, F = range(13)


class Params(NamedTuple):
    """What a run is told, as numbers.

    alpha: α, the ridge of A_0. clip: C, the bound on predictions. curvature: σ + η, the coefficient
    of g gᵀ in A (divided by √t if `decreasing`). rate: c in the sketch's rate γ_t = min(c/t, 1)
    (S8). from_gradients: how the sketch starts (S10). diagonal: NONE, BEFORE or UPDATED (S7).
    project_weights: whether u is projected, or only its prediction truncated. lanes: its length is
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
    lanes: tuple[int, ...]


class State(NamedTuple):
    """What the next round needs.

    t: () rounds. found: () rows of the sketch that have started. zw: (d, W), line j = column j of Z
    (m numbers), then w̄_j, then D_jj if `diagonal`, then padding. a: ((F + W)·W,) the small vectors
    and F, V = FZ. growth: () bound on F⁻¹. folds, dense_rounds: () how often. scaled: (d,) scratch
    for D^(−1/2) x, or (0,).
    """

    t: Array
    found: Array
    zw: Array
    a: Array
    growth: Array
    folds: Array
    dense_rounds: Array
    scaled: Array


def init(params: Params, n_features: int, seed: int) -> State:
    """w = 0; V is the orthonormalised rows of a Gaussian matrix drawn from `seed`, or all zero and
    still to be found.
    """
    width, m = len(params.lanes), params.sketch_size
    found = 0 if params.from_gradients else min(m, n_features)
    state = State(
        t=np.zeros((), np.int64),
        found=np.array(found),
        zw=aligned_zeros(n_features, width),
        a=aligned_zeros(F + width, width).reshape(-1),
        growth=np.ones(()),
        folds=np.zeros((), np.int64),
        dense_rounds=np.zeros((), np.int64),
        scaled=np.zeros(n_features if params.diagonal else 0),
    )
    state.a[I_MINUS_D * width : (I_MINUS_D + 1) * width] = 1.0
    for i in range(m):
        state.a[F * width + i * (width + 1)] = 1.0
    if params.diagonal:
        state.zw[:, m + 1] = FIRST_D
    if found:
        state.zw[:, :found] = np.random.default_rng([seed, 0x0A]).standard_normal(
            (n_features, found)
        )
        for _ in range(2):
            orthonormalise(state.zw, found, np.empty(found))
    return state


@jit
def inspect(params: Params, s: State, idx: Array, val: Array) -> tuple[float, float]:
    """uᵀx and ‖x‖² for the row (idx, val); leaves Zx and p = Vx in the scratch."""
    m, W = params.sketch_size, len(params.lanes)
    n2 = gather(s.zw, params.lanes, idx, val, s.a, Z * W)
    times(s.a, params.lanes, F * W, Z * W, P * W)  # F is zero beyond its first m rows and columns
    return s.a[Z * W + m] + dot(s.a, params.lanes, BETA * W, P * W), n2  # w̄ᵀx + βᵀVx


@inlined
def columns_of(params: Params, s: State) -> tuple[Array, int, int]:
    """The table, and where in its lines w̄ and D are."""
    return s.zw, params.sketch_size, params.sketch_size + 1


@inlined
def residual_of(params: Params, s: State, n2: float) -> float:
    """ρ² = ‖x‖² − ‖Vx‖², what the sketch's rows leave of the row's square norm."""
    W = len(params.lanes)
    return max(n2 - dot(s.a, params.lanes, P * W, P * W), 0.0)


@inlined
def project(params: Params, s: State, excess: float, residual: float) -> float:
    """Line 5: γ_p = h/(αxᵀA⁻¹x), w ← u − γ_p(x − VᵀDVx). Returns −γ_p, which w̄ is still to get of
    x.
    """
    a, W = s.a, len(params.lanes)
    # αxᵀA⁻¹x, without cancellation (S12)
    xAx = residual + dot3(a, params.lanes, I_MINUS_D * W, P * W, P * W)
    w_coef = -excess / xAx
    for i in range(W):
        a[BETA * W + i] -= w_coef * a[D * W + i] * a[P * W + i]
    return w_coef


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
    """Lines 7 to 9 for the row that was looked at last: Algorithm 5, then u ← w − A⁻¹g."""
    alpha, m, W = params.alpha, params.sketch_size, len(params.lanes)
    a = s.a
    # Line 7: the to-sketch vector is ĝ = cx.
    t = s.t[()] + 1
    s.t[()] = t
    c = math.sqrt(curvature_at(params.curvature, params.decreasing, t)) * slope
    c2n2 = c * c * n2  # ‖ĝ‖²
    unclean, started = False, -1
    if s.found[()] < m and c != 0.0 and residual > NEW_ROW_AT * n2:
        started = int(s.found[()])
        start_row(s, W, n2, residual)
        unclean = bool(s.growth[()] > CLEAN_AT)

    # Algorithm 5, line 1: Λ ← (1 − γ)Λ + γ diag(q)², with q = Vĝ = cp; kept as tΛ.
    gamma = min(float(params.rate / t), 1.0)
    decay = (1.0 - gamma) * t / (t - 1.0) if t > 1 else 0.0
    gain = gamma * t * c * c
    # Lines 2 to 4 (S2, S12): V ← L⁻¹(V + γ q ĝᵀ), where LLᵀ = I + κ q qᵀ is known in closed form
    # from s_i = s_{i−1} + κ q_i², s_0 = 1. The last s is det(L)².
    kappa = gamma * (2.0 + gamma * c2n2)
    kappa_c2 = kappa * c * c
    grown = 1.0 + kappa_c2 * dot(a, params.lanes, P * W, P * W)
    dense = grown > DENSE_AT
    if not dense and s.growth[()] * math.sqrt(grown) > FOLD_AT:
        if started >= 0:  # the fold reads all of Z: its new row has to be there
            write_row(s, params, idx, val, started, residual)
            started, unclean = -1, False
        fold(s.zw, a, m, W)
        s.growth[()] = 1.0
        s.folds[()] += 1
        for k in range(m):
            a[Z * W + k] = a[P * W + k]  # now Z = V
    if dense:
        settle(s.zw, a, m, W)
    s.growth[()] *= math.sqrt(grown)
    w_coef -= gamma * c * c * dot(a, params.lanes, P * W, BETA * W) + slope / alpha
    # What the row's features get, before the rest: the next row is read while that is computed.
    for k in range(W):
        # δĝᵀ = γ c² (Zx) xᵀ (S1)
        a[COEF * W + k] = gamma * c * c * a[Z * W + k] if k < m and not dense else 0.0
    a[COEF * W + m] = w_coef
    if started >= 0:
        a[COEF * W + started] += 1.0 / math.sqrt(residual)
    scatter(s.zw, params.lanes, idx, val, a, COEF * W)

    # With V goes Algorithm 4, line 9, as S9 has it: β ← Lᵀβ plus the gradient's part. All lanes
    # alike, so that they are computed side by side; beyond m they hold ones and zeros.
    sums_before(a, params.lanes, P * W, P * W, ENERGY * W)
    sums_after(a, params.lanes, P * W, BETA * W, MARGIN * W)
    turned = (1.0 + gamma * c2n2) * slope / alpha
    for i in range(W):
        p = a[P * W + i]
        tlam = decay * a[TLAM * W + i] + gain * p * p
        share = 1.0 / (alpha + tlam)
        a[TLAM * W + i] = tlam
        a[I_MINUS_D * W + i] = alpha * share
        a[D * W + i] = tlam * share
        a[Q * W + i] = c * p
        before = 1.0 + kappa_c2 * a[ENERGY * W + i]
        after = before + kappa_c2 * p * p
        inverse = 1.0 / math.sqrt(before * after)
        a[OWN * W + i] = before * inverse
        a[EARLIER * W + i] = kappa * c * p * inverse
        # L_ii β_i + Σ_{j>i} L_ji β_j + (ℓ'/α) D V_new x
        a[BETA * W + i] = (
            after * a[BETA * W + i] + kappa_c2 * p * a[MARGIN * W + i] + turned * (tlam * share) * p
        ) * inverse
    substitute(a, params.lanes, m, F * W, OWN * W, EARLIER * W, Q * W)  # F ← L⁻¹F
    if dense:
        # Row i of L⁻¹(V + γ q ĝᵀ) is that of L⁻¹V and γ q_i ĝ/√(s_{i−1} s_i): no digit of V is
        # lost, however large ĝ is.
        merge(s.zw, a, m, W)
        on_x = 0.0
        for i in range(m):
            a[COEF * W + i] = c / (2.0 + gamma * c2n2) * a[EARLIER * W + i]
            on_x += a[BETA * W + i] * a[COEF * W + i]
        a[COEF * W + m] = on_x
        scatter(s.zw, params.lanes, idx, val, a, COEF * W)
        clean(s.zw, a, m, W)
        s.dense_rounds[()] += 1
    elif unclean:
        fold(s.zw, a, m, W)
    if dense or unclean:
        s.growth[()] = 1.0
        s.folds[()] += 1


@jit
def start_row(s: State, W: int, n2: float, residual: float) -> None:
    """The next row of V becomes what the sketch leaves of x, ρ⁻¹(x − Vᵀp) with ρ² = `residual`:
    Z's new row is x/ρ, F's is −pᵀF/ρ and a 1 (S10).

    Fills the scratch as if the row had been there when x came. ρ² is a difference: what V lacks of
    orthonormality is multiplied by ‖x‖²/ρ².
    """
    a, f, rho = s.a, s.found[()], math.sqrt(residual)
    for k in range(f):
        total = 0.0
        for i in range(f):
            total += a[P * W + i] * a[(F + i) * W + k]
        a[(F + f) * W + k] = -total / rho
    a[(F + f) * W + f] = 1.0
    a[Z * W + f] = n2 / rho
    a[P * W + f] = rho
    s.found[()] = f + 1
    s.growth[()] *= n2 / residual


@jit
def write_row(s: State, params: Params, idx: Array, val: Array, row: int, residual: float) -> None:
    """Z's row that has started: x/ρ. All features that it has are the row's, and none has a number
    there yet.
    """
    a, W = s.a, len(params.lanes)
    for k in range(W):
        a[COEF * W + k] = 0.0
    a[COEF * W + row] = 1.0 / math.sqrt(residual)
    scatter(s.zw, params.lanes, idx, val, a, COEF * W)


@jit
def settle(zw: Array, a: Array, m: int, W: int) -> None:
    """w̄ ← w̄ + Vᵀβ, β ← 0: before a round that would make β, and w̄ against it, very large."""
    for k in range(m):
        a[OWN * W + k] = 0.0
        for i in range(m):
            a[OWN * W + k] += a[BETA * W + i] * a[(F + i) * W + k]
    for j in range(zw.shape[0]):
        w = zw[j, m]
        for k in range(m):
            w += a[OWN * W + k] * zw[j, k]
        zw[j, m] = w
    for i in range(m):
        a[BETA * W + i] = 0.0


@jit
def fold(zw: Array, a: Array, m: int, W: int) -> None:
    """Z ← FZ, F ← I, w̄ ← w̄ + Vᵀβ, β ← 0, and a clean-up of V's rows: O(m²d), at rounds decided by
    the state (S4).
    """
    merge(zw, a, m, W)
    clean(zw, a, m, W)


@jit
def merge(zw: Array, a: Array, m: int, W: int) -> None:
    """Z ← FZ, w̄ ← w̄ + Zᵀβ with the new Z. F is transposed meanwhile, so that a line's numbers are
    computed side by side.
    """
    transpose(a, m, W)
    for j in range(zw.shape[0]):
        for i in range(m):
            a[OWN * W + i] = 0.0
        for k in range(m):
            z = zw[j, k]
            for i in range(m):
                a[OWN * W + i] += a[(F + k) * W + i] * z
        w = zw[j, m]
        for i in range(m):
            zw[j, i] = a[OWN * W + i]
            w += a[BETA * W + i] * a[OWN * W + i]
        zw[j, m] = w
    transpose(a, m, W)


@jit
def transpose(a: Array, m: int, W: int) -> None:
    """F ← Fᵀ."""
    for i in range(m):
        for k in range(i):
            upper, lower = (F + k) * W + i, (F + i) * W + k
            a[upper], a[lower] = a[lower], a[upper]


@jit
def clean(zw: Array, a: Array, m: int, W: int) -> None:
    """Gram–Schmidt on Z's rows, which are V's now; F ← I, β ← 0."""
    reorthonormalise(zw, m, a[F * W :], W)
    for i in range(m):
        a[BETA * W + i] = 0.0
        for k in range(m):
            a[(F + i) * W + k] = 1.0 if i == k else 0.0


forward, step = with_sketch("oja_son", inspect, residual_of, project, learn, columns_of)


class OjaSON(Learner):
    """Sketched online Newton with Oja's sketch, O(m² + ms) a round on rows with s non-zeros.

    Parameters
    ----------
    sketch_size : int
        m, the rows of the sketch; 0 for projected gradient descent.
    alpha : float
        α > 0, the ridge; 1/α is the step off the sketch.
    curvature : float, optional
        The coefficient of g gᵀ in A. By default the loss's σ for `clip`.
    curvature_schedule : {"constant", "decreasing"}
        Whether `curvature` stays, or is divided by √t.
    sketch_rate : float
        c in the sketch's rate min(c/t, 1): 1 in the paper, for rows as they are. Rows that were
        scaled down turn the sketch less, and 16 to 128 work better (docs/errata.md, S8).
    sketch_start : {"gradients", "random"}
        The sketch's first rows: the first m gradients, orthonormalised, or drawn from `seed`.
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
        Of the random start.

    Attributes
    ----------
    coef_ : ndarray of shape (d,)
        The weights, with the intercept's last if there is one (of the
        rescaled features if `diagonal`).
    sketch_ : ndarray of shape (m, d)
        V, the sketch's orthonormal rows; zero where a row has not started.
    eigenvalues_ : ndarray of shape (m,)
        tΛ, the estimated eigenvalues of Σ ĝĝᵀ.

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
        *SHARED,
        SKETCH_SIZE,
        *NEWTON_STEP,
        SKETCH_RATE,
        SKETCH_START,
        DIAGONAL,
        PROJECTION,
    )
    numbers_version = 5
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
    def to_params(cls, q: Public) -> Params:
        """As `Spec.to_params`."""
        m, diagonal = whole(q, "sketch_size"), bool(q["diagonal"])
        return Params(
            **newton_params(q),
            rate=real(q, "sketch_rate"),
            sketch_size=m,
            from_gradients=q["sketch_start"] == "gradients",
            diagonal=DIAGONAL_FORMS[q["diagonal"]],
            project_weights=q["projection"] == "weights",
            lanes=lanes_for(m + 1 + diagonal),
        )

    @classmethod
    def irrelevant(cls, q: Public) -> set[str]:
        """As `Spec.irrelevant`: without a sketch, all that is said of it."""
        of_sketch = {"sketch_rate", "sketch_start", "curvature", "curvature_schedule"}
        return of_sketch if q["sketch_size"] == 0 else set()

    @classmethod
    def stochastic(cls, q: Public) -> bool:
        """As `Spec.stochastic`: if the sketch starts from random rows."""
        return q["sketch_size"] != 0 and q["sketch_start"] == "random"

    @classmethod
    def cost(cls, q: Public, size: StreamSize) -> Cost:
        """As `Spec.cost`."""
        return table_cost(q, size)

    @property
    def sketch_(self) -> Array:
        """V (m, d), the sketch's orthonormal rows; zero where a row has not started."""
        m = self._params.sketch_size
        return self._state.zw[:, :m].dot(self._lines(F)[:m, :m].T).T

    @property
    def eigenvalues_(self) -> Array:
        """tΛ (m,), the estimated eigenvalues of Σ ĝĝᵀ."""
        return self._lines(TLAM)[0, : self._params.sketch_size].copy()

    @property
    def coef_(self) -> Array:
        """The weights u (d,), with the intercept's last (of the rescaled features if
        `diagonal`).
        """
        m = self._params.sketch_size
        return self._state.zw[:, m] + self.sketch_.T @ self._lines(BETA)[0, :m]

    def _lines(self, first: int) -> Array:
        """The small vectors and F, a line each, from this one on."""
        return self._state.a.reshape(-1, len(self._params.lanes))[first:]
