"""KONS and Sketched-KONS: the kernel online Newton step, exact or with a sketch of sampled points.

It takes O(B² + t) per round for B points in the sketch, besides the kernel values.

Calandriello, Lazaric, Valko: Second-Order Kernel Online Convex Optimization with Adaptive Sketching
(ICML 2017), Algorithms 1 and 3. Labels like K4 refer to docs/errata.md. KONS is the special case in
which the sketch contains all points.

The weights are w_t = A⁻¹ Σ_s c_s φ_s minus the projection, with coefficients on φ (K2, K3). With D
= diag(ġ_i√η_i) over the sketch's points and LLᵀ and v as in koco_stream.learners.kernel.sketch:
φᵀÃ⁻¹φ = (k(x, x) − ‖v‖²)/α, and y̆ is vᵀb with Lb = D⁻¹c over the sketch's points, plus (kᵀc −
vᵀs)/α with Ls = DKc over the other rows (K4). A point that joins adds a row to L and numbers to b
and s. KORS sees ġ_t√η_t φ_t (K5) and has a sketch of its own.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from koco_stream.kernels.earlier_rows import History, no_rows
from koco_stream.kernels.kernel import Kernel
from koco_stream.learners.kernel import sketch
from koco_stream.learners.kernel.base import LEAST, count_doubt, held, note_step
from koco_stream.learners.kernel.kors import factor
from koco_stream.learners.kernel.shared_kernel_scan import SharedKernelLearner
from koco_stream.learners.kernel.sketch import B, S, Sketch, V, solve
from koco_stream.learners.spec import (
    ALPHA,
    BETA,
    CURVATURE,
    CURVATURE_SCHEDULE,
    EPSILON,
    ESTIMATE,
    KERNEL_SHAPE,
    SHARED,
    Parameter,
    Public,
    StreamSize,
)
from koco_stream.losses import curvature_at, hinge_gap, loss_slope
from koco_stream.numerics.compiler import inlined
from koco_stream.numerics.instructions.point_panels import BLOCK, add_scaled, panel_dot
from koco_stream.numerics.random import uniform
from koco_stream.types import Array


class Params(NamedTuple):
    """Parameters of the compiled step: the loss's code, α, the clip C, the kernel, the curvature η
    and the code of its schedule, ε, the estimate's code, β, or 0 if all points join (KONS), and
    the paper's γ.
    """

    loss: int
    alpha: float
    clip: float
    kernel: Kernel
    curvature: float = 0.0
    curvature_schedule: int = 0
    epsilon: float = 0.0
    estimate: int = 0
    beta: float = 0.0
    sampling_floor: float = 1.0


class State(NamedTuple):
    """The state of KONS, Sketched-KONS or KAWV.

    t: () rounds. doubtful_rounds: () how often. longest_step: () so far. seed: () of the coins.
    history: the rows. c (room of rows,): coefficients of those that are not in the sketch. sums (2,
    16): Σ c_s k(x_s, x_r) over the rows before the tile, over even s and over odd s. sketch, kors:
    the sampled points. Of the last round, () each: inclusion_probability, included, in_kors
    (whether KORS took it), dictionary_size.
    """

    t: Array
    doubtful_rounds: Array
    longest_step: Array
    seed: Array
    history: History
    c: Array
    sums: Array
    sketch: Sketch
    kors: Sketch
    inclusion_probability: Array
    included: Array
    in_kors: Array
    dictionary_size: Array


def init(params: Params, n_features: int, seed: int) -> State:
    """The initial state: c = 0 and no points."""
    return State(
        t=np.zeros((), np.int64),
        doubtful_rounds=np.zeros((), np.int64),
        longest_step=np.zeros(()),
        seed=np.array(seed, np.uint64),
        history=no_rows(),
        c=np.zeros(0),
        sums=np.zeros((2, BLOCK)),
        sketch=sketch.no_points(),
        kors=sketch.no_points(),
        inclusion_probability=np.zeros(()),
        included=np.zeros((), np.int64),
        in_kors=np.zeros((), np.int64),
        dictionary_size=np.zeros((), np.int64),
    )


def with_room(params: Params, s: State) -> State:
    return s._replace(sketch=sketch.with_room(s.sketch), kors=sketch.with_room(s.kors))


@inlined
def look_ahead(params: Params, s: State, tile: Array, rows: int) -> None:
    sketch.look_ahead(s.sketch, tile, rows)
    if params.beta > 0.0:
        sketch.look_ahead(s.kors, tile, rows)


@inlined
def expansion(s: State, tile: Array, r: int, first: int) -> float:
    """kᵀc for row r of the tile, whose first row is number `first`; c of this round is still 0."""
    even, odd = s.sums[0, r], s.sums[1, r]
    for i in range(first, s.t[()]):
        if i % 2 == 0:
            even += tile[i, r] * s.c[i]
        else:
            odd += tile[i, r] * s.c[i]
    return even + odd


@inlined
def breve(
    params: Params, s: State, tile: Array, r: int, first: int, k_tt: float
) -> tuple[float, float, float]:
    """Sketched-KONS, lines 5 and 6: y̆ for row r of the tile, what of it is of rows that are not
    in the sketch (K4), and q = α·φᵀÃ⁻¹φ. Leaves v in the sketch's scratch.
    """
    a, n = s.sketch.a, int(s.sketch.n[()])
    q = solve(s.sketch, tile, r, k_tt)
    others = (expansion(s, tile, r, first) - panel_dot(a[V], 0, a[S], 0, n)) / params.alpha
    return panel_dot(a[V], 0, a[B], 0, n) + others, others, q


@inlined
def forward(params: Params, s: State, tile: Array, r: int, first: int, k_tt: float) -> float:
    return breve(params, s, tile, r, first, k_tt)[0]


@inlined
def step(params: Params, s: State, tile: Array, r: int, first: int, k_tt: float, y: float) -> float:
    """Sketched-KONS, lines 4 to 11, on row r of the tile with label y; returns the prediction ỹ."""
    t = s.t[()] + 1
    s.t[()] = t
    s.inclusion_probability[()] = params.sampling_floor
    s.included[()] = s.in_kors[()] = False
    if k_tt == 0.0:
        return 0.0  # φ = 0: the row has no effect
    y_breve, others, q = breve(params, s, tile, r, first, k_tt)
    y_hat = held(y_breve, params.clip)  # line 7: ỹ = y̆ − h(y̆)
    if not q > LEAST * k_tt:
        s.doubtful_rounds[()] += 1
        return y_hat
    slope = loss_slope(params.loss, y_hat, y)
    count_doubt(s, k_tt, y_breve, params.clip, hinge_gap(params.loss, slope, y_hat, y))
    g = math.sqrt(curvature_at(params.curvature, params.curvature_schedule, t)) * slope
    joins = params.beta == 0.0 or sampled(params, s, tile, r, t, g, k_tt)
    s.included[()] = joins
    along = (y_breve - y_hat) * params.alpha / q
    shrink = params.alpha / (params.alpha + g * g * q) if joins else 1.0
    note_step(s, slope, shrink, along, k_tt, params.alpha)
    learn(params, s, t, joins, slope, g, y_breve - y_hat, others, q)
    return y_hat


@inlined
def sampled(params: Params, s: State, tile: Array, r: int, t: int, g: float, k_tt: float) -> bool:
    """Sketched-KONS, lines 8 to 10: whether row r of the tile, that of round t, joins the sketch.

    One coin decides for the sketch and for KORS, which sees ġ_t√η_t φ_t and has the ridge α (K5,
    equation 4).
    """
    q = max(solve(s.kors, tile, r, k_tt), 0.0)
    share = g * g * q / (params.alpha + g * g * q)
    p = min(params.beta * factor(params) * share, 1.0)
    coin = uniform(s.seed[()], t)
    s.inclusion_probability[()] = max(p, params.sampling_floor)
    s.in_kors[()] = coin < p
    if coin < p:  # with the weight 1/p; the row is the sketch's next point too
        sketch.add_point(s.kors, t, g / math.sqrt(p), params.alpha, q)
    return coin < max(p, params.sampling_floor)


@inlined
def learn(
    params: Params,
    s: State,
    t: int,
    joins: bool,
    slope: float,
    g: float,
    h: float,
    others: float,
    q: float,
) -> None:
    """Sketched-KONS, line 11, and c_t = z η ġ² ỹ − ġ − h/(φᵀÃ⁻¹φ), with h/(φᵀÃ⁻¹φ) = hα/q (K3)."""
    a, n = s.sketch.a, int(s.sketch.n[()])
    if joins and g * g > 0.0:  # a zero gradient adds nothing and no point
        pivot = sketch.add_point(s.sketch, t, g, params.alpha, q)
        a[S, n] = params.alpha * g * others / pivot
        a[B, n] = (g * others - slope / g) / pivot - h * pivot / (q * g)
        s.dictionary_size[()] = n + 1
    else:
        s.c[t - 1] = -slope - h * params.alpha / q
        add_scaled(s.c[t - 1], a[V], 0, a[S], 0, n)


class KernelNewtonStep(SharedKernelLearner):
    """The base of KONS, where all points join the sketch, and Sketched-KONS, where some do."""

    open_ended, params_type = True, Params
    init, step, forward = staticmethod(init), staticmethod(step), staticmethod(forward)
    look_ahead, with_room = staticmethod(look_ahead), staticmethod(with_room)

    @classmethod
    def floats(cls, q: Public, size: StreamSize) -> int:
        return 130 * size.rounds + 3 * (size.rounds + BLOCK) ** 2

    @staticmethod
    def joined(state: Any) -> Array:
        """The rounds in which the sketch's points joined, increasing."""
        return state.sketch.rows[: int(state.sketch.n)] + 1


class KONS(KernelNewtonStep):
    """The exact kernel online Newton step, in O(t² + ts) a round and O(t²) memory.

    Notes
    -----
    Calandriello, Lazaric, Valko (ICML 2017), Algorithm 1.
    """

    parameters = (*SHARED, ALPHA, CURVATURE, CURVATURE_SCHEDULE, *KERNEL_SHAPE)

    def __init__(
        self,
        alpha: float = 1.0,
        *,
        curvature: float | None = None,
        curvature_schedule: str = "constant",
        kernel: str = "gaussian",
        bandwidth: float = 1.0,
        degree: int = 2,
        loss: str = "squared",
        clip: float = 1.0,
        fit_intercept: bool = False,
        seed: int = 0,
    ) -> None:
        self._keep(locals())


class SketchedKONS(KernelNewtonStep):
    """The kernel online Newton step with a sketch of B sampled points, in O(B² + ts) a round.

    It stores all rows and takes O(B² + t) per round for B points, and O(td) for kernel values,
    which runs of a sweep share.

    Notes
    -----
    Calandriello, Lazaric, Valko (ICML 2017), Algorithm 3.
    """

    parameters = (
        *SHARED,
        ALPHA,
        BETA,
        EPSILON,
        ESTIMATE,
        Parameter(
            "sampling_floor",
            float,
            "the paper's γ, the least probability of a point in the sketch",
            low=0,
            high=1,
            note="1 keeps all points.",
        ),
        CURVATURE,
        CURVATURE_SCHEDULE,
        *KERNEL_SHAPE,
    )
    always_stochastic = True

    def __init__(
        self,
        alpha: float = 1.0,
        *,
        beta: float = 1.0,
        epsilon: float = 0.5,
        estimate: str = "icml",
        sampling_floor: float = 0.0,
        curvature: float | None = None,
        curvature_schedule: str = "constant",
        kernel: str = "gaussian",
        bandwidth: float = 1.0,
        degree: int = 2,
        loss: str = "squared",
        clip: float = 1.0,
        fit_intercept: bool = False,
        seed: int = 0,
    ) -> None:
        self._keep(locals())

    @property
    def dictionary_(self) -> Array:
        """The row numbers (B,) of the sketch's points, counted from 0 over all rows learnt from."""
        return self.joined(self._state) - 1
