"""Projected online gradient descent: w ← w − step·g, predictions held within [−C, C].

The projection is the Euclidean one onto {w : |wᵀx| ≤ C} (Luo et al., 2016, Lemma 1 with A = I), so
that this is Oja-SON with no sketch and step_size = 1/α. Or predictions are truncated, and w is left
as it is.
"""

import math
from typing import NamedTuple

import numpy as np

from koco_stream.learners.base import Learner
from koco_stream.learners.spec import PROJECTION, SHARED, STEP_SIZE, Public, loss_and_clip, real
from koco_stream.losses import loss_slope
from koco_stream.numerics.compiler import jit
from koco_stream.numerics.linear_algebra import row_dot, square_norm
from koco_stream.types import Array


class Params(NamedTuple):
    """loss: its code. clip: C. step_size: the step. project_weights: whether w is projected, or
    only its prediction truncated.
    """

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
    """One round on the row (idx, val) with label y. Updates `s`; returns the prediction ŷ."""
    y_hat = forward(params, s, idx, val)
    n2 = square_norm(val)
    change = 0.0
    if abs(y_hat) > params.clip:
        clipped = math.copysign(params.clip, y_hat)
        if params.project_weights:
            change = -(y_hat - clipped) / n2
        y_hat = clipped
    if n2 == 0.0:
        return y_hat
    change -= params.step_size * loss_slope(params.loss, y_hat, y)
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
        The loss.
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
    Zinkevich (2003); the projection is Lemma 1 of Luo et al. (NIPS 2016).

    Examples
    --------
    >>> from koco_stream import OGD
    >>> OGD(0.1).progressive([[1.0], [1.0]], [1.0, 1.0]).tolist()
    [0.0, 0.2]
    """

    parameters = (*SHARED, STEP_SIZE, PROJECTION)
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
        return Params(
            **loss_and_clip(q),
            step_size=real(q, "step_size"),
            project_weights=q["projection"] == "weights",
        )

    @property
    def coef_(self) -> Array:
        """The weights (d,), with the intercept's last if there is one."""
        return self._state.w.copy()
