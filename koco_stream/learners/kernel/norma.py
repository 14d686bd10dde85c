"""NORMA: functional gradient descent with a budget of the most recent points.

Kivinen, Smola, Williamson: Online Learning with Kernels (2004): f ← (1 − ηλ)f − ηℓ'k(x_t, ·). Two
things differ from the paper: predictions are truncated to [−C, C] before the loss is computed, and
the budget counts points whose slope was not zero, of which the oldest is removed. With the hinge
loss and `tube` ν > 0 the loss is the soft margin max(0, ρ − yŷ) − νρ: ρ starts at 0, changes by
−η(1 − ν) at a margin error (yŷ ≤ ρ), and by ην otherwise. A row with k(x, x) = 0 changes nothing.

A round reads its kernel values from a tile (see koco_stream.kernels.earlier_rows), whose rows are
those of the stream.
"""

from typing import NamedTuple

import numpy as np

from koco_stream.kernels.earlier_rows import History, no_rows
from koco_stream.kernels.kernel import Kernel
from koco_stream.learners.kernel.base import held
from koco_stream.learners.kernel.shared_kernel_scan import SharedKernelLearner
from koco_stream.learners.spec import (
    BUDGET,
    KERNEL_SHAPE,
    SHARED,
    STEP_SCHEDULE,
    STEP_SIZE,
    Parameter,
    Public,
    StreamSize,
)
from koco_stream.losses import CONSTANT, HINGE, NO_DIFFERENCE, loss_slope, step_at
from koco_stream.numerics.compiler import inlined
from koco_stream.numerics.instructions.point_panels import BLOCK, panel_dot, room_for
from koco_stream.types import Array

REGULARISATION = Parameter("regularisation", float, "λ in λ/2·‖f‖² + loss", low=0)

K, A = range(2)  # lines of `a`: k(x, x_p), coefficients


class Params(NamedTuple):
    """Parameters of the compiled step.

    loss: its code. clip: C. step_size: η. step_schedule: its code. regularisation: λ. tube: ν.
    kernel: the kernel. budget: the maximum number of points.
    """

    loss: int
    clip: float
    step_size: float
    step_schedule: int
    regularisation: float
    tube: float
    kernel: Kernel
    budget: int


class State(NamedTuple):
    """The state of NORMA.

    t: () rounds. history: the rows. c (0,), sums (2, 16): not used. dictionary_size: () points.
    next: () the position of the oldest point once the budget is full. rows (room,): the points' row
    numbers. a (2, room): kernel values and coefficients. margin: () ρ. steps: (1,) the rounds that
    may have changed it, if η changes; else (0,).
    """

    t: Array
    history: History
    c: Array
    sums: Array
    dictionary_size: Array
    next: Array
    rows: Array
    a: Array
    margin: Array
    steps: Array


def init(params: Params, n_features: int, seed: int) -> State:
    room = room_for(params.budget)
    return State(
        t=np.zeros((), np.int64),
        history=no_rows(),
        c=np.zeros(0),
        sums=np.zeros((2, BLOCK)),
        dictionary_size=np.zeros((), np.int64),
        next=np.zeros((), np.int64),
        rows=np.zeros(room, np.int64),
        a=np.zeros((2, room)),
        margin=np.zeros(()),
        steps=np.zeros(int(params.step_schedule != CONSTANT), np.int64),
    )


def first_row(s: State) -> int:
    """The number of the earliest row whose kernel values the next round needs."""
    n = int(s.dictionary_size)
    return int(s.rows[:n].min()) if n else int(s.t)


@inlined
def forward(params: Params, s: State, tile: Array, r: int, first: int, k_tt: float) -> float:
    n, k = int(s.dictionary_size[()]), s.a[K]
    for p in range(n):
        k[p] = tile[s.rows[p], r]
    return panel_dot(k, 0, s.a[A], 0, n)


@inlined
def step(params: Params, s: State, tile: Array, r: int, first: int, k_tt: float, y: float) -> float:
    row = int(s.t[()])
    s.t[()] = row + 1
    if k_tt == 0.0:
        return 0.0
    eta = params.step_size
    if s.steps.size:
        s.steps[0] += 1
        eta = step_at(eta, params.step_schedule, s.steps[0])
    y_hat = held(forward(params, s, tile, r, first, k_tt), params.clip)
    if params.loss == HINGE and params.tube > 0.0:
        rho = s.margin[()]
        wrong = y * y_hat - rho <= NO_DIFFERENCE * (abs(y_hat) + abs(rho))
        slope = -y if wrong else 0.0
        s.margin[()] += eta * (params.tube - wrong)
    else:
        slope = loss_slope(params.loss, y_hat, y)
    n = int(s.dictionary_size[()])
    for p in range(n):
        s.a[A, p] *= 1.0 - eta * params.regularisation
    if slope != 0.0:
        p = n
        if n < params.budget:
            s.dictionary_size[()] = n + 1
        else:  # replace the oldest point
            p = int(s.next[()])
            s.next[()] = (p + 1) % params.budget
        s.rows[p] = row
        s.a[A, p] = -eta * slope
    return y_hat


class NORMA(SharedKernelLearner):
    """Functional gradient descent with a budget of the B most recent points, in O(Bs) a round.

    Notes
    -----
    Kivinen, Smola, Williamson (2004).
    """

    parameters = (
        *(*SHARED, STEP_SIZE, STEP_SCHEDULE, REGULARISATION, BUDGET, *KERNEL_SHAPE),
        Parameter(
            "tube",
            float,
            "ν of the soft margin, with the hinge loss; 0 for the hinge loss itself",
            low=0,
            high=1,
            matters_if=("loss", ("hinge",)),
        ),
    )
    params_type = Params
    init, step, forward = staticmethod(init), staticmethod(step), staticmethod(forward)
    first_row = staticmethod(first_row)

    def __init__(
        self,
        step_size: float = 1.0,
        *,
        step_schedule: str = "constant",
        regularisation: float = 1e-3,
        budget: int = 100,
        kernel: str = "gaussian",
        bandwidth: float = 1.0,
        degree: int = 2,
        tube: float = 0.0,
        loss: str = "squared",
        clip: float = 1.0,
        fit_intercept: bool = False,
        seed: int = 0,
    ) -> None:
        self._keep(locals())

    @classmethod
    def floats(cls, q: Public, size: StreamSize) -> int:
        return 4 * q["budget"]

    @property
    def dictionary_(self) -> Array:
        """The row numbers of the points, oldest first, counted from 0 over all rows learnt from."""
        return np.sort(self._state.rows[: int(self._state.dictionary_size)])
