"""Coin betting: a feature's weight is a bet on the sign of its next gradient, and no step is tuned.

Orabona and Tommasi (NIPS 2017), Algorithm 1 (COCOB), not its variant for backpropagation. Feature j
has L_j, the largest |g_j| so far (docs/errata.md, G5), θ_j, the sum of −g_j, G_j, that of |g_j|,
which counts its own rounds in units of L_j, and a wealth. It bets the fraction tanh(θ_j/(G_j +
2L_j)) of it, for 2σ(2z) − 1 = tanh(z) and the paper's G_j begins with L_j. Kept is wealth/L_j: a
weight is the fraction of that.
"""

import math
from typing import NamedTuple

import numpy as np

from koco_stream.learners.base import Learner
from koco_stream.learners.spec import SHARED, Parameter
from koco_stream.losses import loss_slope
from koco_stream.numerics.compiler import inlined, jit
from koco_stream.types import Array

INITIAL_WEALTH = Parameter(
    "initial_wealth",
    float,
    "the wealth of a feature before its first round, in units of its largest gradient",
    low=0,
    above=True,
    note="The paper: 1. Weights begin below it, and grow or shrink by up to 76 % a round.",
)
W, THETA, G, L, WEALTH = range(5)  # columns of the table


class Params(NamedTuple):
    """loss: its code. clip: C. initial_wealth: ε."""

    loss: int
    clip: float
    initial_wealth: float


class State(NamedTuple):
    """table: (d, 5) w_j, θ_j, G_j, L_j, and the wealth over L_j."""

    table: Array


def init(params: Params, n_features: int, seed: int) -> State:
    table = np.zeros((n_features, 5))
    table[:, WEALTH] = params.initial_wealth
    return State(table)


@jit
def forward(params: Params, s: State, idx: Array, val: Array) -> float:
    y_hat = 0.0
    for i in range(idx.size):
        y_hat += s.table[idx[i], W] * np.float64(val[i])
    return y_hat


@inlined
def fraction(table: Array, j: int) -> float:
    """Line 9: L_jβ_j, the fraction that feature j bets, between −tanh(1) and tanh(1)."""
    return math.tanh(table[j, THETA] / (table[j, G] + 2.0 * table[j, L]))


@inlined
def grow(table: Array, j: int, size: float, initial_wealth: float) -> None:
    """A larger |g_j|: wealth and weight become what they were, had L_j been `size` before (G5)."""
    share = table[j, L] / size
    table[j, WEALTH] = table[j, WEALTH] * share + initial_wealth * (1.0 - share)
    table[j, L] = size
    table[j, W] = fraction(table, j) * table[j, WEALTH]


@jit
def step(params: Params, s: State, idx: Array, val: Array, y: float) -> float:
    z, table = forward(params, s, idx, val), s.table
    if not math.isfinite(z):
        return math.nan
    y_hat = min(max(z, -params.clip), params.clip)
    slope = loss_slope(params.loss, y_hat, y)
    held_back = z != y_hat and (z > 0.0) == (slope < 0.0)  # by the clip (docs/errata.md, G6)
    if slope == 0.0 or held_back:
        return y_hat
    for i in range(idx.size):
        j, g = idx[i], slope * np.float64(val[i])
        if g == 0.0:
            continue
        if abs(g) > table[j, L]:
            grow(table, j, abs(g), params.initial_wealth)
        table[j, WEALTH] -= g / table[j, L] * table[j, W]  # line 7; above 0, since |w_j| is below
        table[j, G] += abs(g)  # lines 6 and 8
        table[j, THETA] -= g
        table[j, W] = fraction(table, j) * table[j, WEALTH]  # line 10
    return y_hat


class Coin(Learner):
    """Coin betting on each feature's next gradient, without a step size, in O(s) a round.

    Notes
    -----
    Orabona, Tommasi (NIPS 2017), Algorithm 1.
    """

    parameters = (*SHARED, INITIAL_WEALTH)
    params_type = Params
    init, step, forward = staticmethod(init), staticmethod(step), staticmethod(forward)
    feature_floats = 5

    def __init__(
        self,
        initial_wealth: float = 1.0,
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
        return self._state.table[:, W].copy()

    @property
    def wealth_(self) -> Array:
        """The wealth (d,) of each feature, always above 0; in units of its largest gradient."""
        return self._state.table[:, WEALTH].copy()
