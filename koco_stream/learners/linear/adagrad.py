"""AdaGrad with a diagonal matrix: w_j ← w_j − step·g_j/√G_j, where G_j is the sum of all g_j² so
far, this round's included.

Duchi, Hazan, Singer (JMLR 2011), with no added constant: a feature that was never active has weight
0, and its first step is ±step. Predictions are truncated to [−C, C] before the loss is taken; the
weights are not projected.
"""

import math
from typing import NamedTuple

import numpy as np

from koco_stream.learners.base import Learner
from koco_stream.learners.spec import SHARED, STEP_SIZE
from koco_stream.losses import loss_slope
from koco_stream.numerics.compiler import jit
from koco_stream.numerics.instructions.first_order import adagrad_row
from koco_stream.types import Array


class Params(NamedTuple):
    """AdaGrad's parameters for compiled code. loss: its code. clip: C. step_size: the step."""

    loss: int
    clip: float
    step_size: float


class State(NamedTuple):
    """wG: (d, 2): the weight w_j and the accumulator G_j of a feature, side by side."""

    wG: Array


def init(params: Params, n_features: int, seed: int) -> State:
    return State(np.zeros((n_features, 2)))


@jit
def forward(params: Params, s: State, idx: Array, val: Array) -> float:
    y_hat = 0.0
    for i in range(idx.size):
        y_hat += s.wG[idx[i], 0] * np.float64(val[i])
    return y_hat


@jit
def truncated(y_hat: float, clip: float) -> float:
    """The prediction held within [−C, C]; NaN for one that is infinite."""
    if abs(y_hat) <= clip:
        return y_hat
    return math.nan if math.isinf(y_hat) else math.copysign(clip, y_hat)


@jit
def step(params: Params, s: State, idx: Array, val: Array, y: float) -> float:
    y_hat = truncated(forward(params, s, idx, val), params.clip)
    slope = loss_slope(params.loss, y_hat, y)
    adagrad_row(s.wG, idx, val, slope, params.step_size)
    return y_hat


class AdaGrad(Learner):
    """AdaGrad with a diagonal matrix, w_j ← w_j − step_size·g_j/√(Σ g_j²), in O(s) a round.

    Notes
    -----
    Duchi, Hazan, Singer (JMLR 2011).
    """

    parameters = (*SHARED, STEP_SIZE)
    params_type = Params
    init, step, forward = staticmethod(init), staticmethod(step), staticmethod(forward)

    def __init__(
        self,
        step_size: float = 1.0,
        *,
        loss: str = "squared",
        clip: float = 1.0,
        fit_intercept: bool = False,
        seed: int = 0,
    ) -> None:
        self._keep(locals())

    @property
    def coef_(self) -> Array:
        """The weights (d,), with the intercept's last if there is one."""
        return self._state.wG[:, 0].copy()
