"""The trivial learner: the constant with the least loss on the labels so far.

It does not look at the rows. What learns from them should do better, and the tables of results say
of every run what this learner comes to on the same stream.
"""

import math
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from koco_stream.learners.base import Learner
from koco_stream.learners.spec import CLIP, FIT_INTERCEPT, LOSS, NEVER, Public, StreamSize
from koco_stream.losses import HINGE, LOGISTIC
from koco_stream.numerics.compiler import jit
from koco_stream.types import Array


class Params(NamedTuple):
    """loss: its code. clip: infinity, since predictions are not truncated."""

    loss: int
    clip: float = math.inf


class State(NamedTuple):
    """total: () the sum of the labels so far. rounds: () their number."""

    total: Array
    rounds: Array


def init(params: Params, n_features: int, seed: int) -> State:
    return State(np.zeros(()), np.zeros(()))


@jit
def forward(params: Params, s: State, idx: Array, val: Array) -> float:
    """The constant c with the least Σ ℓ(c, y) over the labels so far; 0 without any."""
    total, n = float(s.total[()]), float(s.rounds[()])
    if n == 0.0:
        return 0.0
    if params.loss == LOGISTIC:
        # n + total is twice the number of labels +1. A half more of each keeps it finite.
        return math.log((n + total + 1.0) / (n - total + 1.0))
    if params.loss == HINGE:
        return 0.0 if total == 0.0 else math.copysign(1.0, total)
    # The mean has the least squared loss. On labels −1 and +1, the squared hinge of a constant
    # within [−1, 1] is its squared loss.
    return total / n


@jit
def step(params: Params, s: State, idx: Array, val: Array, y: float) -> float:
    y_hat = forward(params, s, idx, val)
    s.total[()] += y
    s.rounds[()] += 1.0
    return y_hat


class Constant(Learner):
    """The trivial learner: the constant with the least loss on the labels so far, in O(1).

    It predicts the mean of the labels for squared losses, log((n₊ + ½)/(n₋ + ½)) for the logistic
    loss with n₊ labels +1 and n₋ labels −1, and the sign of the majority for the hinge loss (0 in a
    tie); at first 0. Predictions are not truncated.

    Notes
    -----
    What every learner should beat. The ½ in the logistic loss is that of Krichevsky and Trofimov
    (1981). Without it, the constant would be infinite until both labels were seen.

    Examples
    --------
    >>> from koco_stream import Constant
    >>> Constant().progressive([[5.0], [6.0], [7.0]], [1.0, 0.0, 1.0]).tolist()
    [0.0, 1.0, 0.5]
    """

    parameters = (LOSS, replace(CLIP, matters_if=NEVER), replace(FIT_INTERCEPT, matters_if=NEVER))
    params_type = Params
    init, step, forward = staticmethod(init), staticmethod(step), staticmethod(forward)

    def __init__(
        self,
        *,
        loss: str = "squared",
        clip: float = 1.0,
        fit_intercept: bool = False,
        seed: int = 0,
    ) -> None:
        self._keep(locals())

    @classmethod
    def floats(cls, q: Public, size: StreamSize) -> int:
        return 2

    @property
    def constant_(self) -> float:
        """The next prediction."""
        nothing = np.zeros(0)
        return float(type(self).forward(self._params, self._state, nothing, nothing))
