"""NAG, the normalised adaptive gradient, whose predictions do not depend on the features' scales.

Ross, Mineiro, Langford (UAI 2013): s_j is the largest |x_j| so far; a new one makes w_j ← w_j·s_j/
|x_j|. After ŷ = wᵀx, with N the sum of all (x_j/s_j)² and G_j that of g_j², round t makes w_j ← w_j
− step·√(t/N)·g_j/(s_j √G_j). Kept are u_j = s_j w_j, which a new s_j leaves as it is, and G_j/s_j²:
only s_j has the features' scale (docs/errata.md, G1). ŷ is truncated to [−C, C] before the loss.
"""

import math
from typing import NamedTuple

import numpy as np

from koco_stream.learners.base import Learner
from koco_stream.learners.spec import SHARED, STEP_SIZE
from koco_stream.losses import loss_slope
from koco_stream.numerics.compiler import jit
from koco_stream.types import Array

U, S, G = range(3)  # columns of the table


class Params(NamedTuple):
    """loss: its code. clip: C. step_size: the step."""

    loss: int
    clip: float
    step_size: float


class State(NamedTuple):
    """t: () rounds whose row was not empty. N: (). table: (d, 3) u_j, s_j, G_j/s_j²."""

    t: Array
    N: Array
    table: Array


def init(params: Params, n_features: int, seed: int) -> State:
    return State(t=np.zeros((), np.int64), N=np.zeros(()), table=np.zeros((n_features, 3)))


@jit
def forward(params: Params, s: State, idx: Array, val: Array) -> float:
    y_hat = 0.0
    for i in range(idx.size):
        j, x = idx[i], np.float64(val[i])
        y_hat += s.table[j, U] * (x / max(s.table[j, S], abs(x)))
    return y_hat


@jit
def step(params: Params, s: State, idx: Array, val: Array, y: float) -> float:
    if idx.size == 0:
        return 0.0  # not counted (docs/errata.md, G2)
    z, table = forward(params, s, idx, val), s.table
    y_hat = min(max(z, -params.clip), params.clip)
    slope = loss_slope(params.loss, y_hat, y)
    if not (math.isfinite(z) and math.isfinite(slope * slope)):
        return math.nan
    s.t[()] += 1
    for i in range(idx.size):
        j, x = idx[i], abs(np.float64(val[i]))
        if x > table[j, S]:
            table[j, G] *= (table[j, S] / x) * (table[j, S] / x)
            table[j, S] = x
        r = x / table[j, S]
        s.N[()] += r * r
    rate = params.step_size * math.sqrt(s.t[()] / s.N[()])
    for i in range(idx.size):
        j, x = idx[i], np.float64(val[i])
        r = x / max(table[j, S], abs(x))
        g = slope * r
        table[j, G] = total = table[j, G] + g * g
        table[j, U] -= rate * g / math.sqrt(total) if total > 0.0 else 0.0
    return y_hat


class NAG(Learner):
    """Normalised AdaGrad: the scale of a feature changes nothing; O(s) a round.

    Notes
    -----
    Ross, Mineiro, Langford (UAI 2013).
    """

    parameters = (*SHARED, STEP_SIZE)
    params_type = Params
    init, step, forward = staticmethod(init), staticmethod(step), staticmethod(forward)
    feature_floats = 3

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

    @property
    def coef_(self) -> Array:
        """The weights (d,), the intercept's last; a row with a new largest value rescales them
        first.
        """
        u, largest = self._state.table[:, U].copy(), self._state.table[:, S]
        return np.divide(u, largest, out=u, where=largest > 0.0)
