"""FOGD: online gradient descent on random Fourier features.

A round takes O(sD) for D frequencies and a row of s non-zeros.

Lu, Hoi, Wang, Zhao, Liu: Large Scale Online Kernel Learning (JMLR 17(47), 2016). z(x) is all cos
uᵀx and sin uᵀx over √D, so that z(x)ᵀz(x') approximates the kernel and `step_size` has the same
meaning as in NOGD; without the √D, a step would be D times smaller. Predictions are not truncated.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from koco_stream.kernels.random_features import (
    COSINES,
    Frequencies,
    count_far,
    fourier_floats,
    fourier_row,
    frequencies,
)
from koco_stream.learners.kernel.base import KernelLearner
from koco_stream.learners.spec import (
    BANDWIDTH,
    N_FREQUENCIES,
    STEP_SIZE,
    WITHOUT_CLIP,
    Parameter,
    Public,
    StreamSize,
)
from koco_stream.losses import HALF_SQUARED, OF_REAL_LABELS, SQUARED, loss_slope
from koco_stream.numerics.compiler import inlined, jit
from koco_stream.numerics.instructions.feature_rows import aligned_zeros
from koco_stream.numerics.instructions.point_panels import add_scaled, panel_dot, room_for
from koco_stream.numerics.linear_algebra import square_norm
from koco_stream.types import Array

TUBE = Parameter(
    "tube",
    float,
    "squared loss: no update while |ŷ - y| is within it",
    low=0,
    matters_if=("loss", OF_REAL_LABELS),
    note="The paper: 0.1.",
)

# Lines of `a` after those of koco_stream.kernels.random_features: the weights, divided by √D, of
# the cosines and the sines.
WEIGHTS = 3


class Params(NamedTuple):
    """Parameters of the compiled step.

    loss: its code. step_size: the step. n_frequencies: D. bandwidth: the kernel's. tube: no update
    while |ŷ − y| is within it (for the squared loss, or half of it).
    """

    loss: int
    step_size: float
    n_frequencies: int
    bandwidth: float
    tube: float
    clip: float = math.inf


class State(NamedTuple):
    """The state of FOGD.

    u: the frequencies. a (5, room): uᵀx, cos, sin, and the weights of the cosines and sines.
    doubtful_rounds: () how often.
    """

    u: Frequencies
    a: Array
    doubtful_rounds: Array


def init(params: Params, n_features: int, seed: int) -> State:
    """The initial state: w = 0, frequencies of `seed`."""
    D = params.n_frequencies
    u = frequencies(n_features, D, params.bandwidth, seed)
    return State(u, aligned_zeros(5, room_for(D)), np.zeros((), np.int64))


@inlined
def outside(loss: int, tube: float, y_hat: float, y: float) -> bool:
    """Whether a prediction is outside the tube around its label, so that the weights may change."""
    return (loss != SQUARED and loss != HALF_SQUARED) or abs(y_hat - y) > tube


@jit
def forward(params: Params, s: State, idx: Array, val: Array) -> float:
    """The prediction wᵀz for the row (idx, val).

    Leaves the cosines and sines in the scratch lines of the state. Does not learn.
    """
    room = s.a.shape[1]
    fourier_row(s.u, idx, val, params.n_frequencies, s.a)
    return panel_dot(s.a, COSINES * room, s.a, WEIGHTS * room, 2 * room)


@jit
def step(params: Params, s: State, idx: Array, val: Array, y: float) -> float:
    room = s.a.shape[1]
    count_far(s, square_norm(val), params.bandwidth)
    y_hat = forward(params, s, idx, val)
    if outside(params.loss, params.tube, y_hat, y):
        change = -params.step_size * loss_slope(params.loss, y_hat, y) / params.n_frequencies
        add_scaled(change, s.a, COSINES * room, s.a, WEIGHTS * room, 2 * room)
    return y_hat


class FOGD(KernelLearner):
    """Online gradient descent on D random Fourier features of the Gaussian kernel, in O(Ds).

    Predictions are not truncated.

    Notes
    -----
    Lu, Hoi, Wang, Zhao, Liu (JMLR 17(47), 2016).
    """

    parameters = (*WITHOUT_CLIP, STEP_SIZE, N_FREQUENCIES, BANDWIDTH, TUBE)
    always_stochastic = True
    params_type = Params
    init, step, forward = staticmethod(init), staticmethod(step), staticmethod(forward)

    def __init__(
        self,
        step_size: float = 1.0,
        *,
        n_frequencies: int = 400,
        bandwidth: float = 1.0,
        tube: float = 0.0,
        loss: str = "squared",
        clip: float = 1.0,
        fit_intercept: bool = False,
        seed: int = 0,
    ) -> None:
        self._keep(locals())

    @classmethod
    def floats(cls, q: Public, size: StreamSize) -> int:
        D = q["n_frequencies"]
        return fourier_floats(size.d, D) + 2 * room_for(D)

    @property
    def coef_(self) -> Array:
        """The weights (2D,) of `features`."""
        n = self._params.n_frequencies
        return np.sqrt(float(n)) * self._state.a[WEIGHTS:, :n].reshape(-1)

    def features(self, X: Any) -> Array:
        """Random Fourier features (n, 2D) of the rows of X (n, d): cosines, then sines, over √D."""
        waves = self._embedded(X, self._state.a[COSINES:WEIGHTS, : self._params.n_frequencies])
        return waves.reshape(len(waves), -1) / np.sqrt(self._params.n_frequencies)
