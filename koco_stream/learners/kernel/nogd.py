"""NOGD: kernel gradient descent up to `budget` points, then descent on their Nyström features.

A round takes O(Bs + Bk).

Lu, Hoi, Wang, Zhao, Liu: Large Scale Online Kernel Learning (JMLR 17(47), 2016). With KV = VΛ for
the kernel matrix K of the B points, cut to the k largest eigenvalues, the features of x are z =
Λ^(−1/2) Vᵀ k(x), and f = Σ α_p k(x_p, ·) is carried over as w = Λ^(1/2) Vᵀ α: its projection onto
their span. The map is computed at the end of the round in which the last point joins. A point joins
whenever the loss has a slope there. Predictions are not truncated.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from koco_stream.errors import WrongInput
from koco_stream.kernels.dictionary import (
    Points,
    add_point,
    grown,
    kernel_row,
    lacks_room,
    no_points,
    panels,
)
from koco_stream.kernels.kernel import Kernel
from koco_stream.learners.kernel.base import DictionaryLearner, bounded_floats, kernel_of
from koco_stream.learners.kernel.fogd import TUBE, outside
from koco_stream.learners.spec import (
    BUDGET,
    KERNEL_SHAPE,
    STEP_SIZE,
    WITHOUT_CLIP,
    Parameter,
    Public,
    StreamSize,
)
from koco_stream.losses import loss_slope
from koco_stream.numerics.compiler import inlined, jit
from koco_stream.numerics.eigenvalues import symmetric_eigen
from koco_stream.numerics.instructions.feature_rows import aligned_zeros
from koco_stream.numerics.instructions.point_panels import (
    BLOCK,
    add_scaled,
    apply,
    panel_dot,
    room_for,
)
from koco_stream.types import Array

K, ALPHA, SPARE = range(3)  # rows of `a`: k(x, x_p), α, two of scratch
Z, WEIGHTS = range(2)  # lines of `b`: z, w
# Eigenvalues below this share of the largest one, as from repeated points, give no feature.
NO_FEATURE = 1e-12


class Params(NamedTuple):
    """Parameters of the compiled step.

    loss: its code. step_size: the step. budget: B. rank: k ≤ B. kernel: the kernel. tube: as for
    FOGD.
    """

    loss: int
    step_size: float
    budget: int
    rank: int
    kernel: Kernel
    tube: float
    clip: float = math.inf


class State(NamedTuple):
    """The state of NOGD.

    t: () rounds. mapped: () whether the map is computed. points: the dictionary. gram (room, room):
    the points' kernel matrix, until the map is computed. map (panels, room, 16): Λ^(−1/2) Vᵀ, by
    columns. a (4, room): k(x), α, scratch. b (2, k): z, w.
    """

    t: Array
    mapped: Array
    points: Points
    gram: Array
    map: Array
    a: Array
    b: Array


def init(params: Params, n_features: int, seed: int) -> State:
    """The initial state: no points, f = 0. NOGD uses no random numbers, so `seed` is ignored."""
    room, rank = room_for(params.budget), room_for(params.rank)
    return State(
        t=np.zeros((), np.int64),
        mapped=np.zeros((), np.int64),
        points=no_points(n_features, room),
        gram=aligned_zeros(room, room),
        map=panels(rank, room),
        a=aligned_zeros(4, room),
        b=aligned_zeros(2, rank),
    )


def enlarge(params: Params, s: State, features: int) -> State:
    return s._replace(points=grown(s.points, features))


@inlined
def full(params: Params, s: State, features: int) -> bool:
    return bool(s.mapped[()] == 0 and lacks_room(s.points, features))


@inlined
def inspect(params: Params, s: State, idx: Array, val: Array) -> tuple[float, float, float]:
    """f(x), k(x, x) and ‖x‖² for the row x = (idx, val).

    Leaves k(x), and z once there is the map, in the scratch lines of the state.
    """
    n, k, z = int(s.points.n[()]), s.a[K], s.b[Z]
    k_tt, n2 = kernel_row(params.kernel, s.points, idx, val, k)
    if s.mapped[()] == 0:
        return panel_dot(k, 0, s.a[ALPHA], 0, n), k_tt, n2
    apply(s.map, k, n, z, params.rank)
    return panel_dot(z, 0, s.b[WEIGHTS], 0, params.rank), k_tt, n2


@inlined
def forward(params: Params, s: State, idx: Array, val: Array) -> float:
    return inspect(params, s, idx, val)[0]


@inlined
def step(params: Params, s: State, idx: Array, val: Array, y: float) -> float:
    y_hat, k_tt, n2 = inspect(params, s, idx, val)
    s.t[()] += 1
    change = -params.step_size * loss_slope(params.loss, y_hat, y)
    if change == 0.0 or k_tt == 0.0 or not outside(params.loss, params.tube, y_hat, y):
        return y_hat
    if s.mapped[()] != 0:
        add_scaled(change, s.b[Z], 0, s.b[WEIGHTS], 0, params.rank)
        return y_hat
    n = int(s.points.n[()])
    s.a[ALPHA, n] = change
    for p in range(n):
        s.gram[n, p] = s.gram[p, n] = s.a[K, p]
    s.gram[n, n] = k_tt
    add_point(s.points, n, idx, val, n2, s.t[()])
    if n + 1 == params.budget:
        make_map(params, s)
    return y_hat


@jit
def make_map(params: Params, s: State) -> None:
    """Compute the map from k(x) to the features z, and the weights w.

    Overwrites the kernel matrix.
    """
    n, values = params.budget, s.a[K]
    symmetric_eigen(s.gram, n, values, s.a[SPARE], s.a[SPARE + 1])
    for r in range(min(params.rank, n)):
        if not values[r] <= NO_FEATURE * values[0]:  # NaN is seen in the next prediction
            root = math.sqrt(values[r])
            for j in range(n):
                s.map[r // BLOCK, j, r % BLOCK] = s.gram[r, j] / root
            s.b[WEIGHTS, r] = root * panel_dot(s.gram[r], 0, s.a[ALPHA], 0, n)
    s.mapped[()] = 1


class NOGD(DictionaryLearner):
    """Kernel gradient descent up to B points, then on their k Nyström features, in O(Bs + Bk).

    Predictions are not truncated.

    Notes
    -----
    Lu, Hoi, Wang, Zhao, Liu (JMLR 17(47), 2016).
    """

    parameters = (
        *(*WITHOUT_CLIP, STEP_SIZE, BUDGET),
        Parameter(
            "rank", int, "k, the number of Nyström features; at most the budget", low=1, high=4096
        ),
        *(*KERNEL_SHAPE, TUBE),
    )
    init, step, forward = staticmethod(init), staticmethod(step), staticmethod(forward)
    full, enlarge, params_type = staticmethod(full), staticmethod(enlarge), Params

    def __init__(
        self,
        step_size: float = 1.0,
        *,
        budget: int = 100,
        rank: int = 20,
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
    def to_params(cls, q: Public) -> Any:
        return cls.filled(q, kernel=kernel_of(q), rank=min(q["rank"], q["budget"]))

    @classmethod
    def floats(cls, q: Public, size: StreamSize) -> int:
        room = room_for(q["budget"])
        of_map = room_for(min(q["rank"], q["budget"]))
        return bounded_floats(q, size) + room * (room + of_map + 5) + 2 * of_map + 64

    def features(self, X: Any) -> Array:
        """The Nyström features (n, k) of the rows of X (n, d).

        Raises `WrongInput` while there are fewer points than the budget.
        """
        if not self._state.mapped:
            raise WrongInput(
                f"{self!r} has {self._state.points.n} points so far; its features exist once it"
                f" has {self._params.budget}"
            )
        return self._embedded(X, self._state.b[Z, : self._params.rank])
