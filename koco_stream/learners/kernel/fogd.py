"""FOGD: online gradient descent on random Fourier features, O(sD) a round for D frequencies and a
row of s non-zeros.

Lu, Hoi, Wang, Zhao, Liu: Large Scale Online Kernel Learning (JMLR 17(47), 2016). z(x) is all cos
uᵀx and sin uᵀx over √D, so that z(x)ᵀz(x') is near the kernel's value and `step_size` means what it
means to NOGD; without the √D the same learner has a step D times smaller. Predictions are not
truncated.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from koco_stream.kernels.random_features import COSINES, fourier_row, frequencies, numbers_to
from koco_stream.losses import HALF_SQUARED, SQUARED, loss_slope
from koco_stream.numerics.compiler import inlined, jit
from koco_stream.numerics.linear_algebra import Array
from koco_stream.numerics.llvm.feature_lines import aligned_zeros
from koco_stream.numerics.llvm.point_panels import add_scaled, dot, room_for

# lines of `a` after those of koco_stream.kernels.random_features: the weights of the cosines and of
# the sines, over √D
WEIGHTS = 3


class Params(NamedTuple):
    """loss: its code. clip: infinite. step_size: the step. frequencies: D. bandwidth: of the
    kernel. tube: no update while |ŷ − y| is within it (squared loss, or half of it).
    """

    loss: int
    clip: float
    step_size: float
    frequencies: int
    bandwidth: float
    tube: float


class State(NamedTuple):
    """table (panels, d, 16): the frequencies. line_of (d,): 0, …, d − 1. a (5, room): uᵀx, cos,
    sin; weights of both.
    """

    table: Array
    line_of: Array
    a: Array


def init(params: Params, n_features: int, seed: int) -> State:
    """w = 0; the frequencies are drawn from `seed`."""
    D = params.frequencies
    return State(
        frequencies(n_features, D, params.bandwidth, seed),
        numbers_to(n_features),
        aligned_zeros(5, room_for(D)),
    )


@inlined
def outside(loss: int, tube: float, y_hat: float, y: float) -> bool:
    """Whether a round with this prediction and label may change anything."""
    return (loss != SQUARED and loss != HALF_SQUARED) or abs(y_hat - y) > tube


@jit
def predict(params: Params, s: State, idx: Array, val: Array) -> float:
    """wᵀz for the row (idx, val); leaves cos and sin in the scratch. Learns nothing."""
    room = s.a.shape[1]
    fourier_row(s.table, s.line_of, idx, val, params.frequencies, s.a)
    return dot(s.a, COSINES * room, s.a, WEIGHTS * room, 2 * room)


@jit
def step(params: Params, s: State, idx: Array, val: Array, y: float) -> float:
    """One round on the row (idx, val) with label y. Updates `s`; returns the prediction ŷ."""
    room = s.a.shape[1]
    y_hat = predict(params, s, idx, val)
    if outside(params.loss, params.tube, y_hat, y):
        change = -params.step_size * loss_slope(params.loss, y_hat, y) / params.frequencies
        add_scaled(change, s.a, COSINES * room, s.a, WEIGHTS * room, 2 * room)
    return y_hat


@jit
def embed(params: Params, s: State, idx: Array, val: Array, out: Array) -> None:
    """out ← z of the row (idx, val), (2D,): the cosines first."""
    D, root = params.frequencies, np.sqrt(np.float64(params.frequencies))
    predict(params, s, idx, val)
    for p in range(D):
        out[p] = s.a[COSINES, p] / root
        out[D + p] = s.a[COSINES + 1, p] / root
