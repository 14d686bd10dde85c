"""Projected online gradient descent: w ← w − step·g, predictions held within [−C, C].

With a constant step it is Oja-SON with no sketch and step_size = 1/α.
"""

import math
from typing import NamedTuple

import numpy as np

from koco_stream.learners.base import Learner
from koco_stream.learners.spec import PROJECTION, SHARED, STEP_SCHEDULE, STEP_SIZE, WEIGHTS
from koco_stream.losses import CONSTANT, loss_slope, step_at
from koco_stream.numerics.compiler import jit
from koco_stream.numerics.linear_algebra import dot_and_norm, row_dot
from koco_stream.types import Array


class Params(NamedTuple):
    """loss, step_schedule, projection: their codes. clip: C."""

    loss: int
    clip: float
    step_size: float
    step_schedule: int
    projection: int


class State(NamedTuple):
    """w: (d,) the weights. t: () the rounds with a row that is not empty, if the step changes."""

    w: Array
    t: Array


def init(params: Params, n_features: int, seed: int) -> State:
    return State(np.zeros(n_features), np.zeros(()))


@jit
def forward(params: Params, s: State, idx: Array, val: Array) -> float:
    return row_dot(s.w, idx, val)


@jit
def answer(params: Params, y_hat: float, n2: float, y: float, t: float) -> tuple[float, float]:
    """The prediction ŷ of round t, from wᵀx and ‖x‖², and the c of the update w ← w + c·x.

    If wᵀx is infinite, ŷ is NaN and c is 0.
    """
    change = 0.0
    if abs(y_hat) > params.clip:
        if math.isinf(y_hat):
            return math.nan, 0.0
        clipped = math.copysign(params.clip, y_hat)
        change = -(y_hat - clipped) / n2 if params.projection == WEIGHTS else 0.0
        y_hat = clipped
    if n2 == 0.0:
        return y_hat, 0.0
    step_size = step_at(params.step_size, params.step_schedule, t)
    return y_hat, change - step_size * loss_slope(params.loss, y_hat, y)


@jit
def step(params: Params, s: State, idx: Array, val: Array, y: float) -> float:
    z, n2 = dot_and_norm(s.w, idx, val)
    if params.step_schedule != CONSTANT:
        s.t[()] += n2 > 0.0
    y_hat, change = answer(params, z, n2, y, s.t[()])
    for i in range(idx.size):
        s.w[idx[i]] += change * np.float64(val[i])
    return y_hat


class OGD(Learner):
    """Projected online gradient descent, w ← w − step_size·g, in O(s) a round.

    Notes
    -----
    Zinkevich (2003), whose steps decrease as 1/√t; the projection is Lemma 1 of Luo et al. (NIPS
    2016) with A = I.

    Examples
    --------
    >>> from koco_stream import OGD
    >>> OGD(0.1).progressive([[1.0], [1.0]], [1.0, 1.0]).tolist()
    [0.0, 0.2]
    """

    parameters = (*SHARED, STEP_SIZE, STEP_SCHEDULE, PROJECTION)
    params_type = Params
    init, step, forward = staticmethod(init), staticmethod(step), staticmethod(forward)

    def __init__(
        self,
        step_size: float = 1.0,
        *,
        step_schedule: str = "constant",
        projection: str = "weights",
        loss: str = "squared",
        clip: float = 1.0,
        fit_intercept: bool = False,
        seed: int = 0,
    ) -> None:
        self._keep(locals())

    @property
    def coef_(self) -> Array:
        """The weights (d,), with the intercept's last if there is one."""
        return self._state.w.copy()
