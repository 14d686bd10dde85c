"""The Online Newton Step with the full matrix, O(d²) a round: what the sketches approximate.

Luo, Agarwal, Cesa-Bianchi, Langford (NIPS 2016), equations (1) and (2): A_t = αI + Σ ĝĝᵀ with ĝ =
√curvature·g, u ← w − A_t⁻¹g, and w the projection of u onto {w : |wᵀx| ≤ C} in the norm of A. A⁻¹
is kept, by the formula of Sherman and Morrison.

With α = 0 it is the pseudo-inverse, and predictions are the same for rows x and Mx, whatever the
invertible M. A row that is not in the span of the rows learnt from has a residual r, orthogonal to
A's range, along which A measures nothing, so any prediction is as near to u. The one that no map of
the features changes is taken: 0, by w = u − (uᵀx/rᵀx)r (docs/errata.md, S22). Kept beside A⁺ is
N = I − AA⁺, which gives r = Nx. Since no map of the features matters then, each feature is counted
in a unit of its own, the power of two at its first value: so features of very unlike scale keep
their digits.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from koco_stream.learners.base import Learner
from koco_stream.learners.linear.online_newton import (
    MOST_CLIPS,
    Diagnostics,
    gradient,
    no_diagnostics,
    predict,
)
from koco_stream.learners.spec import (
    CURVATURE,
    CURVATURE_SCHEDULE,
    PROJECTION,
    SHARED,
    Parameter,
    Public,
    StreamSize,
    newton_params,
)
from koco_stream.losses import curvature_at, loss_slope
from koco_stream.numerics.compiler import inlined, jit
from koco_stream.numerics.linear_algebra import row_dot, square_norm
from koco_stream.types import Array

LARGEST_UNIT = 1000  # exponent: a larger power of two and a value may overflow
ROUNDING = 1e-20  # a residual whose square is below this share of the row's is only rounding


class Params(NamedTuple):
    """loss: its code. alpha: α, or 0. clip: C. curvature: the coefficient of g gᵀ in A, divided by
    √t if `decreasing`. project_weights: whether u is projected, or only its prediction truncated.
    """

    loss: int
    alpha: float
    clip: float
    curvature: float
    decreasing: bool
    project_weights: bool
    most_clips: float


class State(NamedTuple):
    """t: () rounds. u: (d,) weights. A_inv: (d, d) A⁻¹,
    or A⁺. Ax: (d,) scratch, A⁻¹x. N: (d, d) I − AA⁺, Nx: (d,) scratch, unit: (d,) each feature's
    power of two, 0 before its first value, and scaled: (d,) scratch, the row in these units, if α =
    0; (0, 0) and (0,) else.
    """

    t: Array
    u: Array
    A_inv: Array
    Ax: Array
    N: Array
    Nx: Array
    unit: Array
    scaled: Array
    diagnostics: Diagnostics

    @inlined
    def ridge(s: Any, params: Params) -> float:
        """α, or infinity for none."""
        return params.alpha if params.alpha > 0.0 else math.inf

    @jit
    def project(s: Any, params: Params, excess: float, xAx: float) -> float:
        """w ← u − excess·A⁻¹x/(xᵀA⁻¹x) (Lemma 1): the multiple of A⁻¹x by which u changes."""
        return -excess / xAx


def init(params: Params, n_features: int, seed: int) -> State:
    d, free = n_features, n_features if params.alpha == 0.0 else 0
    with np.errstate(over="ignore"):  # of a tiny alpha, which diverges in the first round
        A_inv = np.eye(d) / params.alpha if params.alpha > 0.0 else np.zeros((d, d))
    return State(
        t=np.zeros((), np.int64),
        u=np.zeros(d),
        A_inv=A_inv,
        Ax=np.zeros(d),
        N=np.eye(free),
        Nx=np.zeros(free),
        unit=np.zeros(free),
        scaled=np.zeros(free),
        diagnostics=no_diagnostics(),
    )


@jit
def times_row(matrix: Array, idx: Array, val: Array, out: Array) -> float:
    """out ← Mx for a symmetric M (d, d) and the row x = (idx, val); returns xᵀMx."""
    for k in range(out.size):
        out[k] = 0.0
    for i in range(idx.size):
        j, v = idx[i], np.float64(val[i])
        for k in range(out.size):
            out[k] += v * matrix[j, k]
    return row_dot(out, idx, val)


@jit
def to_units(s: State, idx: Array, val: Array, learns: bool) -> None:
    """scaled ← the row (idx, val) in the features' units. New units are kept if it `learns`."""
    for i in range(idx.size):
        value, unit = np.float64(val[i]), s.unit[idx[i]]
        if unit == 0.0:
            unit = math.ldexp(1.0, min(-math.frexp(value)[1], LARGEST_UNIT))
            if learns:
                s.unit[idx[i]] = unit
        s.scaled[i] = value * unit


@jit
def off_range(s: State, idx: Array, x: Array) -> float:
    """‖r‖² for the residual r of the row (idx, x), orthogonal to A's range, which is left in Nx; 0
    if it is only rounding.
    """
    times_row(s.N, idx, x, s.Nx)
    left = square_norm(s.Nx)  # xᵀNx would be the same, with more rounding
    return left if left > ROUNDING * square_norm(x) else 0.0


@jit
def forward(params: Params, s: State, idx: Array, val: Array) -> float:
    """uᵀx for the row (idx, val), before it is held within [−C, C], and 0 for one outside A's
    range. Learns nothing.
    """
    if params.alpha > 0.0:
        return row_dot(s.u, idx, val)
    to_units(s, idx, val, False)
    x = s.scaled[: idx.size]
    return 0.0 if off_range(s, idx, x) > 0.0 else row_dot(s.u, idx, x)


@jit
def step(params: Params, s: State, idx: Array, val: Array, y: float) -> float:
    if params.alpha > 0.0:
        return newton(params, s, idx, val, y)
    to_units(s, idx, val, True)
    x = s.scaled[: idx.size]
    left = off_range(s, idx, x)
    if left == 0.0:
        return newton(params, s, idx, x, y)
    widen(params, s, idx, x, left, y)
    return 0.0


@jit
def newton(params: Params, s: State, idx: Array, val: Array, y: float) -> float:
    """The round of a row in A's range, in which every row is if α > 0."""
    margin = row_dot(s.u, idx, val)
    xAx = times_row(s.A_inv, idx, val, s.Ax)
    if xAx <= 0.0:  # an empty row, or rounding is all that is left of A⁻¹ along it
        s.diagnostics.doubtful_rounds[()] += idx.size > 0
        return min(max(margin, -params.clip), params.clip)
    if math.isinf(margin):
        return math.nan
    y_hat, change = predict(params, s, margin, xAx)  # all changes to u are multiples of A⁻¹x
    slope = gradient(params, s, margin, y_hat, y, square_norm(val))
    c2 = squared_to_sketch(params, s, slope)
    shrink = 1.0 / (1.0 + c2 * xAx)
    change -= slope * shrink  # A_t⁻¹x = A_{t−1}⁻¹x / (1 + c²xᵀA_{t−1}⁻¹x)
    for k in range(s.u.size):
        s.u[k] += change * s.Ax[k]
    for j in range(s.u.size):
        factor = c2 * shrink * s.Ax[j]
        if factor != 0.0:
            for k in range(s.u.size):
                s.A_inv[j, k] -= factor * s.Ax[k]
    return y_hat


@jit
def squared_to_sketch(params: Params, s: State, slope: float) -> float:
    """c² of ĝ = cx, in the round that begins."""
    t = s.t[()] + 1
    s.t[()] = t
    return curvature_at(params.curvature, params.decreasing, t) * slope * slope


@jit
def widen(params: Params, s: State, idx: Array, val: Array, left: float, y: float) -> None:
    """The round of a row outside A's range, with ‖r‖² = `left`: A's range gains a dimension
    (S22).
    """
    u, A_inv, Ax, N, r = s.u, s.A_inv, s.Ax, s.N, s.Nx
    d = u.size
    xAx = times_row(A_inv, idx, val, Ax)
    slope = loss_slope(params.loss, 0.0, y)
    c2 = squared_to_sketch(params, s, slope)
    change = -row_dot(u, idx, val) / left
    if c2 > 0.0:
        change -= slope / (c2 * left)  # A_t⁺x = r/(c²‖r‖²)
    for k in range(d):
        u[k] += change * r[k]
    if c2 > 0.0:
        along = (1.0 / c2 + xAx) / (left * left)
        for j in range(d):
            for k in range(d):
                A_inv[j, k] += along * r[j] * r[k] - (Ax[j] * r[k] + r[j] * Ax[k]) / left
                N[j, k] -= r[j] * r[k] / left


class ONS(Learner):
    """The Online Newton Step with the full matrix, in O(d²) a round and memory.

    Notes
    -----
    Luo et al. (NIPS 2016), equations 1 and 2.
    """

    parameters = (
        *SHARED,
        Parameter(
            "alpha",
            float,
            "α, the ridge; 0 for the pseudo-inverse",
            low=0,
            note="With 0, predictions do not change when all rows are mapped by an invertible"
            " matrix (docs/errata.md, S22).",
        ),
        CURVATURE,
        CURVATURE_SCHEDULE,
        PROJECTION,
    )
    init, step, forward = staticmethod(init), staticmethod(step), staticmethod(forward)

    def __init__(
        self,
        alpha: float = 1.0,
        *,
        curvature: float | None = None,
        curvature_schedule: str = "constant",
        projection: str = "weights",
        loss: str = "squared",
        clip: float = 1.0,
        fit_intercept: bool = False,
        seed: int = 0,
    ) -> None:
        self._keep(locals())

    @classmethod
    def to_params(cls, q: Public) -> Params:
        return Params(
            **newton_params(q), project_weights=q["projection"] == "weights", most_clips=MOST_CLIPS
        )

    @classmethod
    def floats(cls, q: Public, size: StreamSize) -> int:
        return (1 if q["alpha"] else 2) * size.d * (size.d + 2)

    @property
    def coef_(self) -> Array:
        """The weights u (d,), with the intercept's last if there is one."""
        u, unit = self._state.u, self._state.unit
        return u * unit if unit.size else u.copy()
