"""FTRL-Proximal: follow the proximally regularised leader, with weights that are exactly 0.

McMahan et al. (KDD 2013), with n_j the sum of g_j²: z_j ← z_j + g_j − σ_j w_j, where σ_j is what
√n_j/step gains in the round, and w_j is 0 if |z_j| ≤ λ₁, else −(z_j − sgn(z_j)λ₁)/((β + √n_j)/step
+ λ₂); β is `damping`. Predictions are truncated to [−C, C] before the loss is taken.
"""

import math
from typing import NamedTuple

import numpy as np

from koco_stream.learners.base import Learner
from koco_stream.learners.spec import SHARED, STEP_SIZE, Parameter
from koco_stream.losses import loss_slope
from koco_stream.numerics.compiler import jit
from koco_stream.types import Array

DAMPING = Parameter(
    "damping",
    float,
    "β in FTRL-Proximal's steps step_size/(β + √Σ g_j²)",
    low=0,
    note="With 0 the first step of a feature is ±step_size.",
)
L1 = Parameter("l1", float, "λ₁, the weight of ‖w‖₁: with more, more weights are 0", low=0)
L2 = Parameter("l2", float, "λ₂, the weight of ‖w‖²/2", low=0)


class Params(NamedTuple):
    """loss: its code. clip: C. step_size, damping, l1 λ₁, l2 λ₂."""

    loss: int
    clip: float
    step_size: float
    damping: float
    l1: float
    l2: float


class State(NamedTuple):
    """zn: (d, 2): z_j and n_j of a feature, side by side."""

    zn: Array


def init(params: Params, n_features: int, seed: int) -> State:
    return State(np.zeros((n_features, 2)))


@jit
def weight(p: Params, zn: Array, j: int) -> float:
    """w_j, the weight of feature j."""
    z, n = zn[j, 0], zn[j, 1]
    over = p.damping + math.sqrt(n) + p.step_size * p.l2
    return 0.0 if abs(z) <= p.l1 or n == 0 else p.step_size * (math.copysign(p.l1, z) - z) / over


@jit
def forward(params: Params, s: State, idx: Array, val: Array) -> float:
    y_hat = 0.0
    for i in range(idx.size):
        y_hat += weight(params, s.zn, idx[i]) * np.float64(val[i])
    return y_hat


@jit
def step(params: Params, s: State, idx: Array, val: Array, y: float) -> float:
    z, zn = forward(params, s, idx, val), s.zn
    y_hat = min(max(z, -params.clip), params.clip)
    slope = loss_slope(params.loss, y_hat, y)
    finite = math.isfinite(z)
    if slope == 0.0:  # nothing changes
        return y_hat if finite else math.nan
    for i in range(idx.size):
        j, g = idx[i], slope * np.float64(val[i])
        w, root = weight(params, zn, j), math.sqrt(zn[j, 1])
        zn[j, 1] += g * g
        zn[j, 0] += g - (math.sqrt(zn[j, 1]) - root) / params.step_size * w
        finite = finite and math.isfinite(zn[j, 1])
    return y_hat if finite else math.nan


class FTRLProximal(Learner):
    """Follow the proximally regularised leader: AdaGrad with weights that are exactly 0, in O(s).

    Notes
    -----
    McMahan et al. (KDD 2013).
    """

    parameters = (*SHARED, STEP_SIZE, DAMPING, L1, L2)
    params_type = Params
    init, step, forward = staticmethod(init), staticmethod(step), staticmethod(forward)

    def __init__(
        self,
        step_size: float = 0.5,
        *,
        damping: float = 1.0,
        l1: float = 0.0,
        l2: float = 0.0,
        loss: str = "squared",
        clip: float = 1.0,
        fit_intercept: bool = False,
        seed: int = 0,
    ) -> None:
        self._keep(locals())

    @property
    def coef_(self) -> Array:
        """The weights (d,), with the intercept's last if there is one."""
        p, (z, n) = self._params, self._state.zn.T
        w = p.step_size * np.sign(-z) * np.maximum(np.abs(z) - p.l1, 0.0) * (n > 0.0) + 0.0
        return np.asarray(w / np.maximum(p.damping + np.sqrt(n) + p.step_size * p.l2, 5e-324))
