"""DualSGD: kernel stochastic gradient descent with a budget of points.

Removed points live on as random features. A round takes O(Bs + sD).

After Le, Nguyen, Nguyen, Phung: Dual Space Gradient Descent for Online Learning (NIPS 2016), from
its public description: gradient descent on regularisation/2·‖f‖² + loss, and a second space, of
random Fourier features, that keeps the information of removed points. What the description leaves
open is chosen here:

- the step is 1/(λt), λ the regularisation: f_t = Σ c_i φ(x_i)/(λ(t − 1)) with c_i = −ℓ'(ŷ_i), so
coefficients never have to be rescaled;
- ŷ is truncated to [−C, C] and the slope taken there: with the squared loss, steps of 1/(λt) would
otherwise diverge while t < 2/λ;
- when the budget is full, the point with the smallest |c| among its points and the new one is
removed, the oldest of equals: cz(x) is added to the weights of the features z, all cosines and
sines over √D. The features of a point are kept from the round in which it joined.
"""

from typing import NamedTuple

import numpy as np

from koco_stream.kernels.dictionary import (
    Points,
    add_point,
    grown,
    kernel_row,
    lacks_lines,
    leave,
    no_points,
)
from koco_stream.kernels.kernel import Kernel
from koco_stream.kernels.random_features import (
    COSINES,
    SINES,
    Frequencies,
    count_far,
    fourier_floats,
    fourier_row,
    frequencies,
)
from koco_stream.learners.kernel.base import DictionaryLearner, bounded_floats, held
from koco_stream.learners.spec import (
    BANDWIDTH,
    BUDGET,
    N_FREQUENCIES,
    SHARED,
    Parameter,
    Public,
    StreamSize,
)
from koco_stream.losses import loss_slope
from koco_stream.numerics.compiler import inlined
from koco_stream.numerics.instructions.feature_rows import aligned_zeros
from koco_stream.numerics.instructions.point_panels import add_scaled, panel_dot, room_for
from koco_stream.types import Array

REGULARISATION = Parameter(
    "regularisation",
    float,
    "λ in λ/2·‖f‖² + loss",
    low=0,
    above=True,
    note="The step size of round t is 1/(λt).",
)

K, C_LINE = range(2)  # lines of `a`: k(x, x_p), c
# Lines of `f` after those of koco_stream.kernels.random_features: the weights, divided by √D, of
# the cosines and the sines.
WEIGHTS = 3


class Params(NamedTuple):
    """Parameters of the compiled step.

    loss: its code. clip: C. regularisation: λ. budget: B. n_frequencies: D. kernel: the Gaussian
    kernel, and its bandwidth.
    """

    loss: int
    clip: float
    regularisation: float
    budget: int
    n_frequencies: int
    kernel: Kernel
    bandwidth: float


class State(NamedTuple):
    """The state of DualSGD.

    t: () rounds. doubtful_rounds: () how often. points: the dictionary. a (2,
    room): k(x), c. u: the frequencies. f (5, width): uᵀx, cos, sin, and the weights of the cosines
    and sines. kept (B, 2·width): cosines and sines of each point.
    """

    t: Array
    doubtful_rounds: Array
    points: Points
    a: Array
    u: Frequencies
    f: Array
    kept: Array


def init(params: Params, n_features: int, seed: int) -> State:
    """The initial state: no points, f = 0, frequencies of `seed`."""
    room, width = room_for(params.budget), room_for(params.n_frequencies)
    return State(
        t=np.zeros((), np.int64),
        doubtful_rounds=np.zeros((), np.int64),
        points=no_points(n_features, room),
        a=aligned_zeros(2, room),
        u=frequencies(n_features, params.n_frequencies, params.bandwidth, seed),
        f=aligned_zeros(5, width),
        kept=aligned_zeros(params.budget, 2 * width),
    )


def enlarge(params: Params, s: State, features: int) -> State:
    return s._replace(points=grown(s.points, features, more_points=False))


@inlined
def full(params: Params, s: State, features: int) -> bool:
    return lacks_lines(s.points, features)


@inlined
def inspect(params: Params, s: State, idx: Array, val: Array) -> tuple[float, float]:
    """f(x) before truncation and ‖x‖² for the row x = (idx, val).

    Leaves k(x), the cosines and the sines in the scratch lines of the state.
    """
    t, k, width = s.t[()], s.a[K], s.f.shape[1]
    _, n2 = kernel_row(params.kernel, s.points, idx, val, k)
    fourier_row(s.u, idx, val, params.n_frequencies, s.f)
    of_points = panel_dot(k, 0, s.a[C_LINE], 0, int(s.points.n[()]))
    of_features = panel_dot(s.f, COSINES * width, s.f, WEIGHTS * width, 2 * width)
    f = 0.0 if t == 0 else float((of_points + of_features) / (params.regularisation * t))
    return f, n2


@inlined
def forward(params: Params, s: State, idx: Array, val: Array) -> float:
    return inspect(params, s, idx, val)[0]


@inlined
def step(params: Params, s: State, idx: Array, val: Array, y: float) -> float:
    f, n2 = inspect(params, s, idx, val)
    count_far(s, n2, params.bandwidth)
    y_hat = held(f, params.clip)
    s.t[()] += 1
    c = -loss_slope(params.loss, y_hat, y)
    if c == 0.0:
        return y_hat
    p, width, D = int(s.points.n[()]), s.f.shape[1], params.n_frequencies
    if p == params.budget:
        p = least(s, p)
        if abs(c) < abs(s.a[C_LINE, p]):
            add_scaled(c / D, s.f, COSINES * width, s.f, WEIGHTS * width, 2 * width)
            return y_hat
        add_scaled(s.a[C_LINE, p] / D, s.kept, p * 2 * width, s.f, WEIGHTS * width, 2 * width)
        leave(s.points, p)
    add_point(s.points, p, idx, val, n2, s.t[()])
    s.a[C_LINE, p] = c
    for i in range(width):
        s.kept[p, i] = s.f[COSINES, i]
        s.kept[p, width + i] = s.f[SINES, i]
    return y_hat


@inlined
def least(s: State, n: int) -> int:
    """The number of the point with the smallest |c|; of equals the oldest."""
    best = 0
    for p in range(1, n):
        size, smallest = abs(s.a[C_LINE, p]), abs(s.a[C_LINE, best])
        if size < smallest or (size == smallest and s.points.rounds[p] < s.points.rounds[best]):
            best = p
    return best


class DualSGD(DictionaryLearner):
    """Regularised kernel gradient descent on B points, in O(Bs + Ds) a round. Removed points are
    approximated by D random Fourier features.

    Notes
    -----
    Le, Nguyen, Nguyen, Phung (NIPS 2016).
    """

    parameters = (*SHARED, REGULARISATION, BUDGET, N_FREQUENCIES, BANDWIDTH)
    always_stochastic = True
    init, step, forward = staticmethod(init), staticmethod(step), staticmethod(forward)
    full, enlarge, params_type = staticmethod(full), staticmethod(enlarge), Params

    def __init__(
        self,
        *,
        regularisation: float = 1e-3,
        budget: int = 100,
        n_frequencies: int = 400,
        bandwidth: float = 1.0,
        loss: str = "squared",
        clip: float = 1.0,
        fit_intercept: bool = False,
        seed: int = 0,
    ) -> None:
        self._keep(locals())

    @classmethod
    def floats(cls, q: Public, size: StreamSize) -> int:
        D, waves = q["n_frequencies"], 2 * q["budget"] + 2
        return fourier_floats(size.d, D) + bounded_floats(q, size) + waves * room_for(D)
