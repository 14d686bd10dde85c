"""AdaGrad with the full matrix G = Σ g gᵀ, this round's gradient included, in O(d³) a round: Duchi,
Hazan, Singer (JMLR 2011), w ← w − step·(G^½ + δI)⁻¹ g, with the pseudo-inverse if δ = 0. The
eigenvectors Q of G follow each gradient by a rank-one change. Predictions are truncated to [−C, C].
"""

import math
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from koco_stream.learners import spec
from koco_stream.learners.base import Learner
from koco_stream.learners.linear.adagrad import truncated
from koco_stream.losses import loses_digits, loss_slope
from koco_stream.numerics.compiler import jit
from koco_stream.numerics.linear_algebra import row_dot, square_norm
from koco_stream.numerics.llvm.feature_lines import aligned_zeros
from koco_stream.numerics.llvm.secular import AT_ONCE
from koco_stream.numerics.rank_one import add_outer_product, rank_one_lines
from koco_stream.types import Array

NEW_AT = 1e-10  # the share of ‖x‖² outside G's range from which on x is a new direction
LAMBDA, Z, FIRST_MATRIX = 1, 2, 3  # lines of `a`: the eigenvalues, Qg; then Q, and scratch


class Params(NamedTuple):
    """loss: its code. clip: C. step_size: the step. delta: δ."""

    loss: int
    clip: float
    step_size: float
    delta: float


class State(NamedTuple):
    """w: (d,) the weights. a: (lines, W) eigenvalues, Q and scratch, W ≥ d."""

    w: Array
    a: Array


def shape_of(d: int) -> tuple[int, int]:
    """The lines of `a` for d features, and their width W."""
    return FIRST_MATRIX + d + rank_one_lines(d), AT_ONCE * math.ceil(d / AT_ONCE)


def init(params: Params, n_features: int, seed: int) -> State:
    """w = 0, G = 0, Q = I. Nothing is drawn: `seed` is not used."""
    state = State(np.zeros(n_features), aligned_zeros(*shape_of(n_features)))
    np.fill_diagonal(state.a[FIRST_MATRIX : FIRST_MATRIX + n_features], 1.0)
    return state


@jit
def forward(params: Params, s: State, idx: Array, val: Array) -> float:
    """wᵀx for the row (idx, val), before it is held within [−C, C]. Learns nothing."""
    return row_dot(s.w, idx, val)


@jit
def step(params: Params, s: State, idx: Array, val: Array, y: float) -> float:
    """One round on the row (idx, val) with label y.

    Updates `s`; returns the prediction ŷ, or NaN if the step loses the digits of later rounds.
    """
    y_hat = truncated(forward(params, s, idx, val), params.clip)
    slope = loss_slope(params.loss, y_hat, y)
    if slope == 0.0 or math.isnan(y_hat):
        return y_hat
    d, W, new = s.w.size, s.a.shape[1], 0.0
    for k in range(d):
        s.a[Z, k] = row_dot(s.a[FIRST_MATRIX + k], idx, val)
        new += s.a[Z, k] ** 2 if s.a[LAMBDA, k] == 0.0 else 0.0
    rounding = new <= NEW_AT * square_norm(val)  # which the step would make large
    for k in range(d):
        s.a[Z, k] = 0.0 if rounding and s.a[LAMBDA, k] == 0.0 else s.a[Z, k] * slope
    scratch, moved = (FIRST_MATRIX + d) * W, 0.0
    add_outer_product(s.a.reshape(-1), W, d, LAMBDA * W, Z * W, FIRST_MATRIX * W, scratch)
    for k in range(d):
        root = math.sqrt(s.a[LAMBDA, k]) + params.delta
        change = params.step_size * s.a[Z, k] / root if root > 0.0 else 0.0
        moved += change * s.a[Z, k] / slope
        for j in range(d):
            s.w[j] -= change * s.a[FIRST_MATRIX + k, j]
    return math.nan if loses_digits(moved, params.clip) else y_hat


class FullAdaGrad(Learner):
    """AdaGrad with the full matrix, w ← w − step_size·(G^½ + δI)⁻¹ g, for a few hundred features.

    Parameters
    ----------
    step_size : float
        The step, above 0.
    delta : float
        δ ≥ 0, added to the roots of the eigenvalues.
    loss : {"squared", "half_squared", "logistic", "squared_hinge", "hinge"}
        The loss function.
    clip : float
        C > 0: predictions are truncated to [−C, C].
    fit_intercept : bool
        Add a feature that is always 1.
    seed : int
        Not used.

    Attributes
    ----------
    coef_ : ndarray of shape (d,)
        The weights, the intercept's last.

    Notes
    -----
    Duchi, Hazan, Singer (JMLR 2011). The reference of `SAdaGrad` (δ = 0) and `AdaFD`.
    """

    parameters = (*spec.SHARED, spec.STEP_SIZE, replace(spec.DELTA, above=False))
    init, step, forward = staticmethod(init), staticmethod(step), staticmethod(forward)

    def __init__(
        self,
        step_size: float = 1.0,
        delta: float = 0.0,
        *,
        loss: str = "squared",
        clip: float = 1.0,
        fit_intercept: bool = False,
        seed: int = 0,
    ) -> None:
        self._keep(locals())

    @classmethod
    def to_params(cls, q: spec.Public) -> Params:
        """The parameters of the compiled step, from the complete public parameters `q`."""
        return Params(
            **spec.loss_and_clip(q),
            step_size=spec.real(q, "step_size"),
            delta=spec.real(q, "delta"),
        )

    @classmethod
    def cost(cls, q: spec.Public, size: spec.StreamSize) -> spec.Cost:
        """The approximate cost of a run on a stream of this size, for the planner."""
        floats = math.prod(shape_of(size.d)) + size.d
        return spec.Cost(floats, 400 + 4 * size.d**2 + 0.06 * size.d**3)

    @property
    def coef_(self) -> Array:
        """The weights (d,), with the intercept's last if there is one."""
        return self._state.w.copy()
