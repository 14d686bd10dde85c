"""Normalised least mean squares: w ← w − step_size·ℓ'(ŷ)·x/‖x‖² (Nagumo and Noda, 1967)."""

import math
from typing import NamedTuple

import numpy as np

from koco_stream.learners.base import Learner
from koco_stream.learners.spec import SHARED, STEP_SIZE
from koco_stream.losses import loss_slope
from koco_stream.numerics.compiler import jit
from koco_stream.numerics.linear_algebra import square_norm
from koco_stream.types import Array


class Params(NamedTuple):
    """loss: its code. clip: C. step_size: the step."""

    loss: int
    clip: float
    step_size: float


class State(NamedTuple):
    """w: (d,) the weights."""

    w: Array


def init(params: Params, n_features: int, seed: int) -> State:
    return State(np.zeros(n_features))


@jit
def forward(params: Params, s: State, idx: Array, val: Array) -> float:
    y_hat = 0.0
    for i in range(idx.size):
        y_hat += s.w[idx[i]] * np.float64(val[i])
    return y_hat


@jit
def step(params: Params, s: State, idx: Array, val: Array, y: float) -> float:
    y_hat = forward(params, s, idx, val)
    if abs(y_hat) > params.clip:
        y_hat = math.copysign(params.clip, y_hat)
    n2 = square_norm(val)
    if n2 == 0.0:
        return 0.0  # an empty row
    change = params.step_size * loss_slope(params.loss, y_hat, y) / n2
    for i in range(idx.size):
        s.w[idx[i]] -= change * np.float64(val[i])
    return y_hat


class NLMS(Learner):
    """Normalised least mean squares, w ← w − step_size·g/‖x‖²."""

    parameters = (*SHARED, STEP_SIZE)
    params_type = Params
    init, step, forward = staticmethod(init), staticmethod(step), staticmethod(forward)

    def __init__(
        self,
        step_size: float = 0.5,
        *,
        loss: str = "squared",
        clip: float = 1.0,
        fit_intercept: bool = False,
        seed: int = 0,
    ) -> None:
        self._keep(locals())
