"""Projected online gradient descent: w ← w − step·g, predictions held within [−C, C].

It is Oja-SON with no sketch and step_size = 1/α.
"""

import math
from typing import NamedTuple

import numpy as np

from koco_stream.learners.base import Learner
from koco_stream.learners.spec import PROJECTION, SHARED, STEP_SIZE, Public, loss_and_clip, real
from koco_stream.losses import loses_digits, loss_slope
from koco_stream.numerics.compiler import jit
from koco_stream.numerics.linear_algebra import row_dot, square_norm
from koco_stream.types import Array


class Params(NamedTuple):
    """loss: its code. clip: C. project_weights: else only the prediction is truncated."""

    loss: int
    clip: float
    step_size: float
    project_weights: bool


class State(NamedTuple):
    """w: (d,) the weights."""

    w: Array


def init(params: Params, n_features: int, seed: int) -> State:
    """w = 0. Nothing is drawn: `seed` is not used."""
    return State(np.zeros(n_features))


@jit
def forward(params: Params, s: State, idx: Array, val: Array) -> float:
    """wᵀx for the row (idx, val), before it is held within [−C, C]. Learns nothing."""
    return row_dot(s.w, idx, val)


@jit
def step(params: Params, s: State, idx: Array, val: Array, y: float) -> float:
    """One round on the row (idx, val) with label y.

    Updates `s`; returns the prediction ŷ, or NaN if the step loses the digits of later rounds.
    """
    y_hat, n2, change = forward(params, s, idx, val), square_norm(val), 0.0
    if abs(y_hat) > params.clip:
        clipped = math.copysign(params.clip, y_hat)
        change = -(y_hat - clipped) / n2 if params.project_weights else 0.0
        y_hat = clipped
    if n2 == 0.0:
        return y_hat
    step = params.step_size * loss_slope(params.loss, y_hat, y)
    if loses_digits(step * n2, params.clip):
        return math.nan
    change -= step
    for i in range(idx.size):
        s.w[idx[i]] += change * np.float64(val[i])
    return y_hat


class OGD(Learner):
    """Projected online gradient descent, w ← w − step_size·g.

    Parameters
    ----------
    step_size : float
        The step, above 0.
    projection : {"weights", "prediction"}
        Project the weights onto {w : |wᵀx| ≤ C} before each prediction, as in the paper, or
        truncate the prediction to [−C, C].
    loss : {"squared", "half_squared", "logistic", "squared_hinge", "hinge"}
        The loss function.
    clip : float
        C > 0, the bound on predictions.
    fit_intercept : bool
        Add a feature that is always 1.
    seed : int
        Not used.

    Attributes
    ----------
    coef_ : ndarray of shape (d,)
        The weights, with the intercept's last if there is one.

    Notes
    -----
    Zinkevich (2003); the projection is Lemma 1 of Luo et al. (NIPS 2016) with A = I.

    Examples
    --------
    >>> from koco_stream import OGD
    >>> OGD(0.1).progressive([[1.0], [1.0]], [1.0, 1.0]).tolist()
    [0.0, 0.2]
    """

    parameters = (*SHARED, STEP_SIZE, PROJECTION)
    numbers_version = 2
    init, step, forward = staticmethod(init), staticmethod(step), staticmethod(forward)

    def __init__(
        self,
        step_size: float = 1.0,
        *,
        projection: str = "weights",
        loss: str = "squared",
        clip: float = 1.0,
        fit_intercept: bool = False,
        seed: int = 0,
    ) -> None:
        self._keep(locals())

    @classmethod
    def to_params(cls, q: Public) -> Params:
        """The parameters of the compiled step, from the complete public parameters `q`."""
        step_size, project = real(q, "step_size"), q["projection"] == "weights"
        return Params(**loss_and_clip(q), step_size=step_size, project_weights=project)

    @property
    def coef_(self) -> Array:
        """The weights (d,), with the intercept's last if there is one."""
        return self._state.w.copy()
